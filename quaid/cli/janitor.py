"""`quaid janitor`."""

from collections import Counter
from typing import Annotated, cast

from quaid.cli import terminal as ui
from quaid.cli.commands import Actions
from quaid.cli.history import tell_undone
from quaid.cli.invocation import Invocation, print_error
from quaid.cli.options import DryRun, argument, check_one_of, flag, option, require_installation
from quaid.janitor import schedule
from quaid.janitor.decision import RunReport
from quaid.janitor.questions import Answer
from quaid.janitor.runner import RunOptions
from quaid.model import Commit
from quaid.shapes import json_object

CHOICES = ("a", "b", "both", "neither")
MAX_SHOWN = 20
_Reference = Annotated[str, argument("REF", "A run or a commit.")]
_Question = Annotated[str, argument("REF", "Its name in review/, its key, or all.")]

run_janitor = Actions(
    """
    Tidy the memory: review and merge facts, resolve contradictions. A decision is a commit, a run is one merge.

    Examples:
      quaid janitor run --dry-run
      quaid janitor show 7k3qd
      quaid janitor accept merge-3f0c9a1b
      quaid janitor accept conflict-5d1e07c2 b
      quaid janitor undo 7k3qd
    """,
    default="list",
)


@run_janitor.action("run")
def run_now(
    invocation: Invocation,
    task: Annotated[list[str] | None, option("NAME", "Only this task; repeatable.")] = None,
    dry_run: DryRun = False,
    accept_removals: Annotated[
        bool, flag("Run although many notes are gone since the last run.", "--accept-removals")
    ] = False,
    take_over: Annotated[
        bool, flag("Run even if another machine holds the lease, and hold it from now on.", "--take-over")
    ] = False,
) -> int:
    """Decide and merge."""
    options = RunOptions(tuple(task or ()), dry_run, accept_removals, take_over)
    with invocation.open() as memory, invocation.progress(memory):
        report = memory.janitor.run(options)
    invocation.respond(render_report(report), **shape_of_report(report))
    for task_name, why in report.failed.items():
        print_error(f"{task_name} could not be done: {why}")
    for sentence in report.lost:
        print_error(f"nothing {'would be' if dry_run else 'was'} merged: {sentence}")
    for remark in report.remarks:
        invocation.notify(remark)
    return 1 if report.failed or report.lost else 0


@run_janitor.action("list")
def list_runs(
    invocation: Invocation,
    limit: Annotated[int, option("N", "Show at most N runs.", "--limit", "-n", min=1)] = 10,
) -> None:
    """List the last runs and the open questions (the default)."""
    with invocation.open() as memory:
        runs, questions = memory.janitor.runs(limit), memory.janitor.visible_questions()
    run_rows = [
        (run.run[-5:], ui.moment(run.started), run.outcome, f"{len(run.decisions)} decided", ui.short(run.commit))
        for run in runs
    ]
    question_rows = [
        (one.rel_path.removeprefix("review/").removesuffix(".md"), ui.clipped(one.title, ui.line_width() - 24))
        for one in questions
    ]
    invocation.respond(
        ui.lines(ui.section("Runs", run_rows), ui.section("Waiting for you", question_rows)) or "No run yet.",
        runs=runs,
        questions=[json_object(one, "key", "task", "title", path=one.rel_path) for one in questions],
    )


@run_janitor.action("show")
def show(invocation: Invocation, reference: _Reference) -> None:
    """Show what a run or a commit did, with its changes."""
    with invocation.open() as memory:
        commits = memory.timeline.commits_of(reference)
        diffs = {commit.id: memory.git.diff(commit.id) for commit in commits}
    invocation.respond(
        ui.paragraphs(*(render_commit(commit, diffs[commit.id]) for commit in reversed(commits))),
        commits=[json_object(commit, diff=diffs[commit.id]) for commit in commits],
    )


@run_janitor.action("accept")
def accept(
    invocation: Invocation,
    reference: _Question,
    choice: Annotated[str | None, argument("ANSWER", "Which of two facts is true: a, b, both or neither.")] = None,
) -> None:
    """Accept a question's proposal, or answer which of two facts is true."""
    check_one_of("ANSWER", [choice] if choice else None, CHOICES)
    _answer(invocation, reference, cast("Answer", choice or "yes"))


@run_janitor.action("reject")
def reject(invocation: Invocation, reference: _Question) -> None:
    """Reject a question's proposal."""
    _answer(invocation, reference, "no")


def _answer(invocation: Invocation, reference: str, answer: Answer) -> None:
    with invocation.open() as memory:
        questions, _ = memory.janitor.answer(reference, answer, by_owner=True)
        memory.janitor.carry_out_answers()
        is_waiting = any((memory.root / question.rel_path).exists() for question in questions)
    verb = {"yes": "Accepted", "no": "Rejected"}.get(answer, "Answered")
    head = f"{ui.styled(verb, 'green')}: {ui.count(len(questions), 'question')}"
    rows = [(ui.clipped(question.title, ui.line_width()),) for question in questions]
    invocation.respond(ui.titled(head, rows), answer=answer, questions=[question.rel_path for question in questions])
    if is_waiting:
        invocation.notify("The next run carries it out: quaid janitor run")


@run_janitor.action("undo")
def undo(invocation: Invocation, reference: _Reference) -> None:
    """Revert a run or one commit; the same is not proposed again."""
    with invocation.open() as memory, invocation.progress(memory):
        tell_undone(invocation, memory.timeline.undo(reference))


@run_janitor.action("install")
def install(
    invocation: Invocation,
    at: Annotated[str, option("HH:MM", "The time of day.")] = "03:30",
    dry_run: DryRun = False,
) -> None:
    """Run every night."""
    if not dry_run:
        require_installation()
    with invocation.open() as memory:
        changes = schedule.install(memory.root, at, dry_run=dry_run)
    invocation.respond("\n".join(changes), told=changes)


@run_janitor.action("uninstall")
def uninstall(invocation: Invocation, dry_run: DryRun = False) -> None:
    """Run every night no longer."""
    with invocation.open() as memory:
        changes = schedule.uninstall(memory.root, dry_run=dry_run)
    invocation.respond("\n".join(changes), told=changes)


def shape_of_report(report: RunReport) -> dict[str, object]:
    """Return a run as JSON."""
    names = ("task", "kind", "key", "subject", "why", "facts", "paths")
    return {
        **json_object(report, "run", "commit", "notes", dry_run=report.is_dry_run, took_s=round(report.took_s, 3)),
        "done": [json_object(decision, *names) for decision in report.done],
        "asked": [json_object(decision, *names) for decision in report.asked],
        "held_back": [json_object(decision, *names, reason=reason) for decision, reason in report.held_back],
        **json_object(report, "answered", "vetoed", "overruled", "waiting", "failed", "lost", "stale"),
        "usage": json_object(report.usage, "calls", "tokens", "cost_usd"),
    }


def render_report(report: RunReport) -> str:
    """Return a run for a person."""
    verb = "Would do" if report.is_dry_run else "Done"
    head = f"{ui.styled(verb, 'green')}: {ui.count(len(report.done), 'decision')}" if report.done else "Nothing to do"
    major = [decision for decision in report.done if not decision.is_minor]
    minor = Counter(decision.kind for decision in report.done if decision.is_minor)
    rows = [(f"{number} x {kind}", "") for kind, number in minor.items()]
    rows += [(decision.task, ui.clipped(decision.subject, ui.line_width() - 20)) for decision in major[:MAX_SHOWN]]
    rows += [("", f"and {len(major) - MAX_SHOWN} more")] if len(major) > MAX_SHOWN else []
    held = [(ui.clipped(decision.subject, ui.line_width() // 2), reason) for decision, reason in report.held_back]
    cost = f", ${report.usage.cost_usd:.4f}" if report.usage.cost_usd else ""
    tail = ui.known(
        ("run", report.run[-5:]),
        ("waits for a model", ", ".join(report.waiting)),
        ("vetoed", f"{report.vetoed} that you have undone before" if report.vetoed else None),
        ("overruled", f"{report.overruled} that would undo what you wrote" if report.overruled else None),
        ("model", f"{report.usage.tokens:,} tokens{cost}" if report.usage.calls else None),
        ("commit", ui.short(report.commit)),
    )
    return ui.lines(
        ui.titled(head, rows),
        ui.section("To ask you", [(ui.clipped(decision.subject, ui.line_width()),) for decision in report.asked]),
        ui.section("Answered by you", [(text,) for text in report.answered]),
        ui.section("Held back", held[:MAX_SHOWN]),
        ui.titled("", tail),
    )


def render_commit(commit: Commit, diff: str) -> str:
    """Return a commit with its diff, of whose headers only the new file's path is left."""
    rows = [row for row in diff.splitlines() if not row.startswith(("diff --git", "index ", "--- ", "old mode"))]
    return ui.lines(
        f"{ui.styled(ui.short(commit.id), 'yellow')}  {ui.styled(commit.subject, 'bold')}",
        "\n".join(f"  {row}" for row in commit.body.splitlines()),
        "\n".join(
            f"  {row.removeprefix('+++ b/')}" if row.startswith("+++ b/") else ui.coloured(row, "  ") for row in rows
        ),
    )
