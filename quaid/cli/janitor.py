"""`quaid janitor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation, complain
from quaid.cli.terminal import clipped, columns, count, has_terminal, line_width, moment, section, styled
from quaid.errors import UsageError

if TYPE_CHECKING:
    from quaid.janitor.decision import Decision
    from quaid.janitor.janitor import Janitor
    from quaid.janitor.questions import Question
    from quaid.janitor.run_report import RunReport
    from quaid.janitor.runner import RunOptions
    from quaid.local.runs import Run
    from quaid.memory import Memory
    from quaid.model import Commit

ACTIONS = ("run", "list", "show", "accept", "reject", "undo", "install", "uninstall")
MOST_SHOWN = 20


def run_janitor(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="ACTION", help=", ".join(ACTIONS))] = "list",
    reference: Annotated[
        str | None, typer.Argument(metavar="REF", help="A run or commit (show, undo), a question (accept, reject).")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(metavar="NAME", help="run: only this task; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="run, install: show what would be done.")] = False,
    accept_removals: Annotated[
        bool, typer.Option("--accept-removals", help="run: though many notes are gone since the last one.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="list: at most so many.")] = 10,
    at: Annotated[str, typer.Option(metavar="HH:MM", help="install: when, every day.")] = "03:30",
) -> int:
    r"""Tidy the memory: review, merge, resolve, fold; every decision a commit, a night one merge.

    \b
    run        decide and merge; --task NAME for one task, --dry-run to look first
    list       the last runs, and the questions that wait for you
    show REF   what a run or commit did, with its changes
    accept REF, reject REF
               answer a question (its name in review/, its key, or all); the next run carries it out
    undo REF   take back a run or one commit; the same is not proposed again
    install, uninstall
               run every night by itself

    Examples:
      quaid janitor run --dry-run
      quaid janitor show 7k3qd
      quaid janitor accept merge-3f0c9a1b
      quaid janitor undo 7k3qd
    """
    if action not in ACTIONS:
        raise UsageError(f"There is no action {action!r}. Give one of {', '.join(ACTIONS)}.")
    if action in {"show", "accept", "reject", "undo"} and reference is None:
        raise UsageError(f"What is to be {_PAST[action]}? Give its name, see them with: quaid janitor list")
    from quaid.janitor.runner import RunOptions

    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        janitor = memory.janitor
        if action == "run":
            return _run(invocation, janitor, RunOptions(tuple(task or ()), dry_run, accept_removals))
        if action == "list":
            return _list(invocation, janitor, limit)
        if action in {"install", "uninstall"}:
            return _schedule(invocation, memory, action, at, dry_run=dry_run)
        assert reference is not None
        if action == "show":
            return _show(invocation, memory, janitor, reference)
        if action == "undo":
            return _undo(invocation, janitor, reference)
        return _answer(invocation, janitor, reference, yes=action == "accept")


_PAST = {"show": "shown", "accept": "accepted", "reject": "rejected", "undo": "undone"}


def _run(invocation: Invocation, janitor: Janitor, options: RunOptions) -> int:
    report = janitor.run(options)
    invocation.tell(lambda: render_report(report), **shape_of_report(report))
    for task, why in report.failed.items():
        complain(f"{task} could not be done: {why}")
    for sentence in report.lost:
        complain(f"nothing was merged: {sentence}")
    for remark in report.remarks:
        invocation.say(remark)
    return 1 if report.failed or report.lost else 0


def shape_of_report(report: RunReport) -> dict[str, object]:
    """A run as JSON."""
    usage = report.usage
    return {
        "run": report.run,
        "dry_run": report.is_dry_run,
        "commit": report.commit,
        "notes": report.notes,
        "took_s": round(report.took_s, 3),
        "done": [_shape(decision) for decision in report.done],
        "asked": [_shape(decision) for decision in report.asked],
        "held_back": [{**_shape(decision), "reason": reason} for decision, reason in report.held_back],
        "answered": report.answered,
        "vetoed": report.vetoed,
        "waiting": report.waiting,
        "failed": report.failed,
        "skipped": report.skipped,
        "lost": report.lost,
        "stale": report.stale,
        "usage": {"calls": usage.calls, "tokens": usage.tokens, "cost_usd": usage.cost_usd},
    }


def render_report(report: RunReport) -> str:
    """A run for a person."""
    verb = "Would do" if report.is_dry_run else "Done"
    did = [decision for decision in report.done if not decision.is_minor]
    minor: dict[str, int] = {}
    for decision in report.done:
        if decision.is_minor:
            minor[decision.kind] = minor.get(decision.kind, 0) + 1
    head = f"{styled(verb, 'green')}: {count(len(report.done), 'decision')}" if report.done else "Nothing to do"
    rows = [(f"{number} x {kind}", "") for kind, number in minor.items()]
    rows += [(decision.task, clipped(decision.subject, line_width() - 20)) for decision in did[:MOST_SHOWN]]
    rows += [("", f"and {len(did) - MOST_SHOWN} more")] if len(did) > MOST_SHOWN else []
    parts = [head, *(f"  {line}" for line in columns(rows).splitlines())]
    parts.append(section("To ask you", [(clipped(decision.subject, line_width()),) for decision in report.asked]))
    parts.append(section("Answered by you", [(text,) for text in report.answered]))
    held = [(clipped(decision.subject, line_width() // 2), reason) for decision, reason in report.held_back]
    parts.append(section("Held back", held[:MOST_SHOWN]))
    tail = [("run", report.run[-5:])]
    tail += [("waits for a model", ", ".join(report.waiting))] if report.waiting else []
    tail += [("skipped", ", ".join(report.skipped))] if report.skipped else []
    tail += [("vetoed", f"{report.vetoed} that you have undone before")] if report.vetoed else []
    cost = f", ${report.usage.cost_usd:.4f}" if report.usage.cost_usd else ""
    tail += [("model", f"{report.usage.tokens:,} tokens{cost}")] if report.usage.calls else []
    tail += [("commit", report.commit[:10])] if report.commit else []
    parts += [f"  {line}" for line in columns(tail).splitlines()]
    return "\n".join(filter(None, parts))


def _list(invocation: Invocation, janitor: Janitor, limit: int) -> int:
    runs, waiting = janitor.runs(limit), janitor.open_questions()
    shape = {
        "runs": [run._asdict() for run in runs],
        "questions": [
            {"path": question.rel_path, "key": question.key, "task": question.task, "title": question.title}
            for question in waiting
        ],
    }
    invocation.tell(lambda: _render_list(runs, waiting), **shape)
    return 0


def _render_list(runs: Sequence[Run], waiting: Sequence[Question]) -> str:
    rows = [
        (run.run[-5:], moment(run.started), run.outcome, f"{len(run.decisions)} decided", (run.commit or "")[:10])
        for run in runs
    ]
    names = [
        (question.rel_path.removeprefix("review/").removesuffix(".md"), clipped(question.title, line_width() - 24))
        for question in waiting
    ]
    return "\n".join(filter(None, [section("Runs", rows), section("Waiting for you", names)])) or "No run yet."


def _show(invocation: Invocation, memory: Memory, janitor: Janitor, reference: str) -> int:
    commits = janitor.commits_of(reference)
    diffs = {commit.id: memory.git.diff(commit.id) for commit in commits}
    shape = {"commits": [{**asdict(commit), "diff": diffs[commit.id]} for commit in commits]}
    invocation.tell(
        lambda: "\n\n".join(_render_commit(commit, diffs[commit.id]) for commit in reversed(commits)), **shape
    )
    return 0


def _render_commit(commit: Commit, diff: str) -> str:
    head = f"{styled(commit.id[:10], 'yellow')}  {styled(commit.subject, 'bold')}"
    body = "\n".join(f"  {line}" for line in commit.body.splitlines())
    return "\n".join(filter(None, [head, body, _coloured(diff)]))


def _coloured(diff: str) -> str:
    """What changed, line by line, without git's own bookkeeping."""
    kept = [line for line in diff.splitlines() if not line.startswith(("diff --git", "index ", "--- ", "old mode"))]
    colours = {"+": "green", "-": "red", "@": "cyan"}
    lines = [line.removeprefix("+++ b/") if line.startswith("+++ b/") else line for line in kept]
    if not has_terminal():
        return "\n".join(f"  {line}" for line in lines)
    return "\n".join(f"  {styled(line, colours[line[0]]) if line[:1] in colours else line}" for line in lines)


def _answer(invocation: Invocation, janitor: Janitor, reference: str, *, yes: bool) -> int:
    meant = janitor.answer(reference, "yes" if yes else "no")
    verb = "Accepted" if yes else "Rejected"
    rows = [(clipped(question.title, line_width()),) for question in meant]
    invocation.tell(
        lambda: (
            f"{styled(verb, 'green')}: {count(len(meant), 'question')}\n" + "\n".join(f"  {row[0]}" for row in rows)
        ),
        answer="yes" if yes else "no",
        questions=[question.rel_path for question in meant],
    )
    invocation.say("The next run carries it out: quaid janitor run")
    return 0


def _undo(invocation: Invocation, janitor: Janitor, reference: str) -> int:
    undone = janitor.undo(reference)
    commit = f"\n  commit  {undone.commit[:10]}" if undone.commit else ""
    subjects = "\n".join(f"  {item.subject}" for item in undone.commits[:MOST_SHOWN])
    said = f"{styled('Undone', 'green')}: {count(len(undone.commits), 'commit')}\n{subjects}{commit}"
    invocation.tell(
        lambda: said if undone.commit else "Nothing was changed: it is undone already, or has only asked and counted",
        commits=[item.id for item in undone.commits],
        commit=undone.commit,
        left=list(undone.left),
    )
    return 0


def _schedule(invocation: Invocation, memory: Memory, action: str, at: str, *, dry_run: bool) -> int:
    from quaid.janitor import schedule

    if action == "install":
        told = schedule.install(memory.root, at, dry_run=dry_run)
    else:
        told = schedule.uninstall(memory.root, dry_run=dry_run)
    invocation.tell(lambda: "\n".join(told), told=list(told))
    return 0


def _shape(decision: Decision) -> dict[str, object]:
    return {
        "task": decision.task,
        "kind": decision.kind,
        "key": decision.key,
        "subject": decision.subject,
        "why": decision.why,
        "facts": list(decision.facts),
        "paths": list(decision.paths),
    }
