"""`quaid janitor`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation, fields, print_error
from quaid.cli.terminal import (
    clipped,
    coloured,
    count,
    known,
    line_width,
    lines,
    moment,
    paragraphs,
    section,
    short,
    styled,
    titled,
)
from quaid.cli.undo import tell_undone
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.janitor.decision import Decision
    from quaid.janitor.janitor import Janitor
    from quaid.janitor.questions import Answer
    from quaid.janitor.run_report import RunReport
    from quaid.janitor.runner import RunOptions
    from quaid.memory import Memory
    from quaid.model import Commit

ACTIONS = ("run", "list", "show", "accept", "reject", "undo", "install", "uninstall")
MAX_SHOWN = 20
_ANSWERS: dict[str, Answer] = {
    "accept": "yes", "reject": "no", "a": "a", "b": "b", "both": "both", "neither": "neither"
}  # fmt: skip
_PAST = {"show": "shown", "accept": "accepted", "reject": "rejected", "undo": "undone"}


def run_janitor(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    reference: Annotated[
        str | None,
        typer.Argument(metavar="REF", help="A run or a commit (show, undo), or a question (accept, reject)."),
    ] = None,
    answer: Annotated[
        str | None, typer.Argument(metavar="ANSWER", help="accept: which of two facts is true: a, b, both or neither.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="NAME", help="run: only this task; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="run, install: show what would be done.")] = False,
    accept_removals: Annotated[
        bool, typer.Option("--accept-removals", help="run: go on although many notes are gone since the last run.")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="run: here from now on, though another machine runs the janitor.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="list: show at most N runs.")] = 10,
    at: Annotated[str, typer.Option(metavar="HH:MM", help="install: the time of day.")] = "03:30",
) -> int:
    r"""Tidy the memory: review and merge facts, resolve contradictions. A decision is a commit, a night is one merge.

    \b
    run        decide and merge; --task NAME for one task, --dry-run to look first
    list       the last runs, and the questions that wait for you
    show REF   what a run or a commit did, with its changes
    accept REF, reject REF
               answer a question (its name in review/, its key, or all); the next run acts on it
    accept REF ANSWER
               answer which of two facts is true: a, b, both or neither
    undo REF   revert a run or one commit; the same is not proposed again
    install, uninstall
               run every night, or no longer

    Examples:
      quaid janitor run --dry-run
      quaid janitor show 7k3qd
      quaid janitor accept merge-3f0c9a1b
      quaid janitor accept conflict-5d1e07c2 b
      quaid janitor undo 7k3qd
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if action in _PAST and reference is None:
        raise UsageError(f"What is to be {_PAST[action]}? Give its name, see them with: quaid janitor list")
    if answer is not None and (action != "accept" or answer not in _ANSWERS):
        raise UsageError(f"{answer!r} is not an answer. Say it with: quaid janitor accept {reference} a|b|both|neither")
    from quaid.janitor.runner import RunOptions

    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        if action == "run":
            return run_night(
                invocation, memory.janitor, RunOptions(tuple(task or ()), dry_run, accept_removals, take_over)
            )
        if action == "list":
            list_runs(invocation, memory.janitor, limit)
        elif action in {"install", "uninstall"}:
            change_schedule(invocation, memory, at if action == "install" else None, dry_run=dry_run)
        elif action == "show":
            show_commits(invocation, memory, reference or "")
        elif action == "undo":
            tell_undone(invocation, memory.timeline.undo(reference or ""))
        else:
            answer_questions(invocation, memory.janitor, reference or "", _ANSWERS[answer or action])
    return 0


def run_night(invocation: Invocation, janitor: Janitor, options: RunOptions) -> int:
    """Decide and merge; return the exit code."""
    report = janitor.run(options)
    invocation.respond(render_report(report), **shape_of_report(report))
    for task, why in report.failed.items():
        print_error(f"{task} could not be done: {why}")
    for sentence in report.lost:
        print_error(f"nothing {'would be' if options.dry_run else 'was'} merged: {sentence}")
    for remark in report.remarks:
        invocation.notify(remark)
    return 1 if report.failed or report.lost else 0


def shape_of_report(report: RunReport) -> dict[str, object]:
    """A run as JSON."""
    return {
        "run": report.run,
        "dry_run": report.is_dry_run,
        "commit": report.commit,
        "notes": report.notes,
        "took_s": round(report.took_s, 3),
        "done": [shape_of_decision(decision) for decision in report.done],
        "asked": [shape_of_decision(decision) for decision in report.asked],
        "held_back": [{**shape_of_decision(decision), "reason": reason} for decision, reason in report.held_back],
        **fields(report, "answered", "vetoed", "overruled", "waiting", "failed", "lost", "stale"),
        "usage": fields(report.usage, "calls", "tokens", "cost_usd"),
    }


def shape_of_decision(decision: Decision) -> dict[str, object]:
    """A decision as JSON."""
    return fields(decision, "task", "kind", "key", "subject", "why", "facts", "paths")


def render_report(report: RunReport) -> str:
    """A run for a person."""
    verb = "Would do" if report.is_dry_run else "Done"
    head = f"{styled(verb, 'green')}: {count(len(report.done), 'decision')}" if report.done else "Nothing to do"
    major = [decision for decision in report.done if not decision.is_minor]
    minor = Counter(decision.kind for decision in report.done if decision.is_minor)
    rows = [(f"{number} x {kind}", "") for kind, number in minor.items()]
    rows += [(decision.task, clipped(decision.subject, line_width() - 20)) for decision in major[:MAX_SHOWN]]
    rows += [("", f"and {len(major) - MAX_SHOWN} more")] if len(major) > MAX_SHOWN else []
    held = [(clipped(decision.subject, line_width() // 2), reason) for decision, reason in report.held_back]
    cost = f", ${report.usage.cost_usd:.4f}" if report.usage.cost_usd else ""
    tail = known(
        ("run", report.run[-5:]),
        ("waits for a model", ", ".join(report.waiting)),
        ("vetoed", f"{report.vetoed} that you have undone before" if report.vetoed else None),
        ("overruled", f"{report.overruled} that would undo what you wrote" if report.overruled else None),
        ("model", f"{report.usage.tokens:,} tokens{cost}" if report.usage.calls else None),
        ("commit", short(report.commit)),
    )
    return lines(
        titled(head, rows),
        section("To ask you", [(clipped(decision.subject, line_width()),) for decision in report.asked]),
        section("Answered by you", [(text,) for text in report.answered]),
        section("Held back", held[:MAX_SHOWN]),
        titled("", tail),
    )


def list_runs(invocation: Invocation, janitor: Janitor, limit: int) -> None:
    """Show the last runs, and the questions that wait for the owner."""
    runs, waiting = janitor.runs(limit), janitor.visible_questions()
    rows = [
        (run.run[-5:], moment(run.started), run.outcome, f"{len(run.decisions)} decided", short(run.commit))
        for run in runs
    ]
    questions = [
        (one.rel_path.removeprefix("review/").removesuffix(".md"), clipped(one.title, line_width() - 24))
        for one in waiting
    ]
    invocation.respond(
        lines(section("Runs", rows), section("Waiting for you", questions)) or "No run yet.",
        runs=[run._asdict() for run in runs],
        questions=[{"path": one.rel_path, **fields(one, "key", "task", "title")} for one in waiting],
    )


def show_commits(invocation: Invocation, memory: Memory, reference: str) -> None:
    """Show what a run or a commit did, with its changes."""
    commits = memory.timeline.commits_of(reference)
    diffs = {commit.id: memory.git.diff(commit.id) for commit in commits}
    invocation.respond(
        paragraphs(*(render_commit(commit, diffs[commit.id]) for commit in reversed(commits))),
        commits=[{**asdict(commit), "diff": diffs[commit.id]} for commit in commits],
    )


def render_commit(commit: Commit, diff: str) -> str:
    """A commit with its diff, of whose headers only the new file's path is left."""
    rows = [row for row in diff.splitlines() if not row.startswith(("diff --git", "index ", "--- ", "old mode"))]
    return lines(
        f"{styled(short(commit.id), 'yellow')}  {styled(commit.subject, 'bold')}",
        "\n".join(f"  {row}" for row in commit.body.splitlines()),
        "\n".join(
            f"  {row.removeprefix('+++ b/')}" if row.startswith("+++ b/") else coloured(row, "  ") for row in rows
        ),
    )


def answer_questions(invocation: Invocation, janitor: Janitor, reference: str, answer: Answer) -> None:
    """Answer the questions that `reference` names; the next run carries it out."""
    meant, _ = janitor.answer(reference, answer, by_owner=True)
    verb = {"yes": "Accepted", "no": "Rejected"}.get(answer, "Answered")
    head = f"{styled(verb, 'green')}: {count(len(meant), 'question')}"
    rows = [(clipped(question.title, line_width()),) for question in meant]
    invocation.respond(titled(head, rows), answer=answer, questions=[question.rel_path for question in meant])
    invocation.notify("The next run carries it out: quaid janitor run")


def change_schedule(invocation: Invocation, memory: Memory, at: str | None, *, dry_run: bool) -> None:
    """Run the janitor every day `at` a time, or no longer."""
    from quaid.janitor import schedule

    if at is not None:
        told = schedule.install(memory.root, at, dry_run=dry_run)
    else:
        told = schedule.uninstall(memory.root, dry_run=dry_run)
    invocation.respond("\n".join(told), told=told)
