"""`quaid log`, `diff`, `undo`, `bisect` and `branch`: what became of memories, and other memories next to this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quaid.cli import terminal as ui
from quaid.cli.change_output import warn_left
from quaid.cli.commands import Actions
from quaid.cli.invocation import Invocation
from quaid.cli.options import DryRun, argument, flag, option, parse_option_moment
from quaid.errors import NoteNotFoundError, UsageError
from quaid.model import Kind
from quaid.shapes import json_object
from quaid.text.zones import local_now
from quaid.timeline.changes import MemoryChange, diff_words
from quaid.timeline.states import AnswerChange, read_questions

if TYPE_CHECKING:
    from quaid.timeline.log import CommitView
    from quaid.timeline.undo import Undone

MAX_CHANGES = 50
"""Changes of one sort that are listed; of the others their number."""
MAX_COMMITS = 20
_FACTS = {"learned": "Learned", "changed": "Changed", "superseded": "No longer true", "restored": "True again"}
_FACTS |= {"forgotten": "Forgotten", "moved": "Moved"}
_OTHERS = {
    "Entities": {"entity"},
    "Core notes": {"core"},
    "Conversations": {"episode"},
    "Questions to you": {"review"},
    "Notes and files": {"snippet", "journal", "doc", "note", "file"},
}
_MARKS = {"learned": "+", "added": "+", "restored": "+", "forgotten": "-", "removed": "-", "superseded": "-"}
_STYLES = {"+": "green", "-": "red", "~": "yellow"}


def run_log(
    invocation: Invocation,
    limit: Annotated[int, option("N", "Show at most N commits.", "--limit", "-n", min=1)] = 20,
    author: Annotated[str | None, option("NAME", "Only commits of authors whose name or e-mail contains this.")] = None,
    fact: Annotated[str | None, option("REF", "Only commits that concern this fact.")] = None,
    session: Annotated[str | None, option("ID", "Only commits that came from this session.")] = None,
    since: Annotated[str | None, option("DAY", "From this day on: 2026-03-01, last March, 2026-03-01T14:30.")] = None,
    stat: Annotated[bool, flag("List the files of each commit.", "--stat")] = False,
) -> None:
    """Show who changed what and what it meant, newest first, a night of the janitor's as one line. Times are in UTC.

    With --author, --fact or --session each decision of a night is a line of its own.

    Examples:
      quaid log -n 5 --stat
      quaid log --fact 7k3qd
      quaid log --author Quaid --since yesterday --json
    """
    with invocation.open() as memory:
        after = parse_option_moment("--since", since, local_now(memory.settings.timezone))
        trailer = ("Quaid-Session", session) if session else None
        if fact:
            with suppress(NoteNotFoundError):  # a forgotten note is referenced by its whole id
                fact = memory.get(fact).document.id
            trailer = ("Quaid-Fact", fact)
        views = memory.timeline.log(
            limit, author=author, grep_trailer=trailer, since=after.isoformat() if after else None
        )
        if fact and session:
            views = [view for view in views if session in view.commit.trailers.get("Quaid-Session", ())]
    names = [view.commit.author if view.who == "other" else view.who for view in views]
    width = max(map(len, names), default=0)
    rows = []
    for name, view in zip(names, views, strict=True):
        head = f"{ui.styled(ui.short(view.commit.id), 'yellow')}  {ui.moment(view.commit.when)}  {name:{width}}"
        rows.append(f"{head}  {ui.one_line(view.what)}")
        rows += [f"            {path}" for path in view.commit.files] if stat else []
    invocation.respond("\n".join(rows), commits=[_commit_shape(view) for view in views])
    if not views:
        invocation.notify("No commit fits.")


def _commit_shape(view: CommitView) -> dict[str, object]:
    return json_object(view.commit, who=view.who, what=view.what)


def run_diff(
    invocation: Invocation,
    span: Annotated[str, argument("A..B", "Two commits or days; without B up to the files as they are.")] = "HEAD..",
    recall: Annotated[Path | None, option("FILE", "Also compare the answers to the questions of this file.")] = None,
    limit: Annotated[int, option("N", "--recall: the hits that count as an answer.", "--limit", "-n", min=1)] = 5,
) -> None:
    """Show what the memory learned, changed, replaced and forgot between two commits or days.

    Days are whole: yesterday.. is what changed since yesterday began. Without A..B it is what is not committed.

    Examples:
      quaid diff yesterday..
      quaid diff 2026-03-01..2026-03-31
      quaid diff HEAD~5..HEAD --recall questions.txt
    """
    with invocation.open() as memory, invocation.progress(memory):
        before, after, changes = memory.timeline.diff(span)
        questions = read_questions(recall) if recall else []
        answers = memory.timeline.diff_answers(before, after, questions, limit)
    facts = Counter(change.how for change in changes if change.kind == Kind.FACT)
    others = len(changes) - facts.total()
    counts = [f"{number:,} {how}" for how, number in facts.items()] + (
        [ui.count(others, "other note")] if others else []
    )
    names = [
        f"{ui.moment(point.when)}, at {ui.short(point.id)}" if point else otherwise
        for point, otherwise in ((before, "the beginning"), (after, "now"))
    ]
    summary = ui.styled(f"{' to '.join(names)}: {', '.join(counts) or 'nothing changed'}", "dim")
    invocation.respond(
        ui.paragraphs(render_changes(changes), render_answers(answers), summary),
        before=json_object(before, "id", "when") if before else None,
        after=json_object(after, "id", "when") if after else None,
        changes=changes,
        answers=[
            {
                "question": one.question.text,
                "gained": [json_object(hit, "id", "kind", "path", "text") for hit in one.gained],
                "lost": [json_object(hit, "id", "kind", "path", "text") for hit in one.lost],
                "found": one.found,
                "missing": one.missing,
            }
            for one in answers
        ],
    )


def run_undo(
    invocation: Invocation,
    reference: Annotated[
        str | None,
        argument("REF", "A commit, a run of the janitor's (night: the last), or a note; see them with: quaid log"),
    ] = None,
    last: Annotated[bool, flag("The last change that Quaid made and that is not undone.", "--last")] = False,
    anybodys: Annotated[bool, flag("Also a commit that is not Quaid's.", "--any")] = False,
    dry_run: DryRun = False,
) -> None:
    """Take back a change that Quaid made: a fact, a conversation, an import, a night, an answer, a setting, an undo.

    What was changed since stays, line by line, and is named. The undo is a commit, which can be undone too. Of a note,
    Quaid's last decision about it is taken back, alone also where it shares its commit with others.

    Examples:
      quaid undo --last
      quaid undo night
      quaid undo --dry-run 4fea123456
      quaid undo 7k3qd
    """
    if (reference is None) != last:
        raise UsageError("Nothing to undo was given. Use --last, or a commit or run id from: quaid log")
    with invocation.open() as memory, invocation.progress(memory):
        undone = memory.timeline.undo(reference, anybodys=anybodys, dry_run=dry_run)
    tell_undone(invocation, undone, dry_run=dry_run)


def tell_undone(invocation: Invocation, undone: Undone, *, dry_run: bool = False) -> None:
    """Print what was taken back, and what stays."""
    head = f"{ui.styled('Would undo' if dry_run else 'Undone', 'green')}: {ui.count(len(undone.commits), 'commit')}"
    subjects = [f"  {ui.clipped(commit.subject, ui.line_width())}" for commit in undone.commits[:MAX_COMMITS]]
    text = "Nothing was changed: it is undone already, or has only asked and counted"
    if undone.changes or undone.commit:
        text = ui.lines(head, *subjects, f"  commit  {ui.short(undone.commit)}" if undone.commit else None)
    kept = [(path, line) for path, changed in undone.kept.items() for line in changed or ("the whole note",)]
    invocation.respond(
        ui.paragraphs(text, render_changes(undone.changes), ui.section("Changed since, so it stays", kept)),
        dry_run=dry_run,
        commits=[commit.id for commit in undone.commits],
        **json_object(undone, "commit", "changes", "kept", "left"),
    )
    warn_left(invocation, undone.left)
    if undone.commit:
        invocation.notify(f"Take that back with: quaid undo {ui.short(undone.commit)}")


def run_bisect(
    invocation: Invocation,
    query: Annotated[str, option("QUESTION", "The question.", "--query")],
    expect: Annotated[str, option("X", "What it should have: a text, or a note by its name or id.", "--expect")],
    span: Annotated[str, option("A..B", "Look between these commits or days, not everywhere.", "--between")] = "",
    limit: Annotated[int, option("N", "The hits that count.", "--limit", "-n", min=1)] = 5,
) -> int:
    """Find the commit at which the answer to a question lost, or gained, what is expected of it.

    Bisecting n commits takes about log2(n) queries. No model is asked and nothing of the vault is touched. The exit
    code is 1 when the answer was never seen to change.

    Examples:
      quaid bisect --query "Where does Maya live?" --expect Lisbon
      quaid bisect --query "what milk?" --expect 7k3qd --between "last March.."
    """
    with invocation.open() as memory, invocation.progress(memory):
        memory.warm()
        is_there, asked, commits, view = memory.timeline.bisect(query, expect, span, limit)
    head = f"The answer {'has' if is_there else 'does not have'} {expect!r}, and never was seen otherwise"
    if view:
        verb = ui.styled("gained", "green") if is_there else ui.styled("lost", "red")
        when = (
            f"{ui.styled(ui.short(view.commit.id), 'yellow')}  {ui.moment(view.commit.when)}  {view.who}  {view.what}"
        )
        head = ui.lines(f"The answer {verb} {expect!r} with", f"  {when}")
    changes = view.changes if view else ()
    invocation.respond(
        ui.paragraphs(head, render_changes(changes)),
        query=query,
        expect=expect,
        is_there=is_there,
        asked=asked,
        commits=commits,
        commit=_commit_shape(view) if view else None,
        changes=changes,
    )
    invocation.notify(f"(asked at {asked:,} of {ui.count(commits, 'commit')})")
    return 0 if view else 1


def render_changes(changes: Sequence[MemoryChange]) -> str:
    """Return the changes under a heading for each sort; empty where there are none."""
    facts = [change for change in changes if change.kind == Kind.FACT]
    groups = {title: [fact for fact in facts if fact.how == how] for how, title in _FACTS.items()}
    groups |= {title: [change for change in changes if change.kind in kinds] for title, kinds in _OTHERS.items()}
    sections = []
    for title, group in groups.items():
        rows = []
        for change in group[:MAX_CHANGES]:
            mark = _MARKS.get(change.how, "~")
            text = ui.clipped(change.text, ui.line_width() - 4)
            if change.was is not None:
                text = render_words(change.was, change.text)
            rows.append(f"  {ui.styled(mark, _STYLES[mark])} {text}")
            details = [*(() if change.by is None else (f"replaced by {change.by}",)), *change.details]
            if change.how in {"superseded", "restored"}:  # which says it
                details = [each for each in details if not each.startswith(("superseded_by ", "valid_until "))]
            rows += [f"      {ui.clipped(sentence, ui.line_width() - 6)}" for sentence in details]
        more = len(group) - MAX_CHANGES
        rows += [f"  and {more:,} more"] if more > 0 else []
        sections.append(ui.lines(ui.styled(f"{title} ({len(group):,})", "bold"), *rows) if group else "")
    return ui.paragraphs(*sections)


def render_words(before: str, after: str) -> str:
    """Return how a sentence was reworded: [-what was taken-]{+what was brought+}, as `git diff --word-diff` has it."""
    marks = {"-": ("[-{}-]", "red"), "+": ("{{+{}+}}", "green")}
    words = []
    for how, text in diff_words(before, after):
        shape, style = marks.get(how, ("", ""))
        words.append(ui.styled(shape.format(text.strip()), style) if shape else text.strip())
    return " ".join(words)


def render_answers(answers: Sequence[AnswerChange]) -> str:
    """Return the questions whose answers differ, and how; empty without questions."""
    differing = [one for one in answers if one.gained or one.lost]
    rows = [ui.styled(f"Answers: {len(differing)} of {ui.count(len(answers), 'question')} changed", "bold")]
    for one in differing:
        rows.append(f"  {one.question.text}")
        for mark, hits in (("+", one.gained), ("-", one.lost)):
            rows += [
                f"    {ui.styled(mark, _STYLES[mark])} {ui.clipped(hit.text, ui.line_width() - 6)}" for hit in hits
            ]
        rows += [f"    {ui.styled('expected and found', 'green')}: {name}" for name in one.found]
        rows += [f"    {ui.styled('expected and missing', 'red')}: {name}" for name in one.missing]
    return ui.lines(*rows) if answers else ""


_Name = Annotated[str, argument("NAME", "The branch.")]

run_branch = Actions(
    """
    Keep another memory in the same vault: for an experiment, an agent or a persona. A branch is one of git's.

    Compare two with quaid diff MAIN..NAME, which also compares their answers.

    Examples:
      quaid branch create experiment
      quaid branch switch experiment
      quaid diff main..experiment --recall questions.txt
      quaid branch merge experiment
    """,
    default="list",
)


@run_branch.action("list")
def list_branches(invocation: Invocation) -> None:
    """List the branches, and how far each is from the one in use (the default)."""
    rows, shapes = [], []
    with invocation.open() as memory:
        heads = memory.timeline.branches.list()
        for head, newest in zip(heads, memory.timeline.tell(*(head.id for head in heads)), strict=True):
            ahead, behind = memory.git.count_apart(head.id, "HEAD")
            mark = ui.styled("*", "green") if head.is_current else " "
            apart = "" if head.is_current else f"{ahead} more, {behind} fewer commits"
            when = head.when.isoformat()
            rows.append((mark, head.name, ui.moment(when), apart, ui.clipped(newest.what, ui.line_width() // 2)))
            shape = json_object(head, "name", "id", "is_current", "place", when=when, ahead=ahead, behind=behind)
            shapes.append({**shape, "what": newest.what})
    invocation.respond(ui.section("Branches", rows) or "No branch yet: nothing is committed.", branches=shapes)


@run_branch.action("create")
def create(
    invocation: Invocation,
    name: _Name,
    start: Annotated[str, option("REV|DATE", "Begin with the memory as it was then.", "--from")] = "HEAD",
) -> None:
    """Make a branch of the memory as it is, or as it was --from."""
    with invocation.open() as memory:
        head = memory.timeline.branches.create(name, start)
    text = ui.titled(f"{ui.styled('Made', 'green')}: the branch {name}", [("at", ui.short(head.id))])
    invocation.respond(text, **json_object(head, "name", "id"))
    invocation.notify(f"Use that memory with: quaid branch switch {name}")


@run_branch.action("switch")
def switch(invocation: Invocation, name: _Name) -> None:
    """Use that memory from now on, with every program."""
    with invocation.open() as memory, invocation.progress(memory):
        branches = memory.timeline.branches
        before = next((head.name for head in branches.list() if head.is_current), None)
        head = branches.switch(name)
    text = ui.titled(f"{ui.styled('In use', 'green')}: the branch {name}", [("at", ui.short(head.id))])
    invocation.respond(text, **json_object(head, "name", "id", before=before))
    if before not in {None, name}:
        invocation.notify(f"Go back with: quaid branch switch {before}")


@run_branch.action("merge")
def merge(invocation: Invocation, name: _Name) -> None:
    """Take into this memory what the other has learned."""
    with invocation.open() as memory, invocation.progress(memory):
        into = memory.timeline.branches.find().name
        done = memory.timeline.branches.merge(name)
    text = f"Nothing to merge: {into} has all that {name} has"
    if done.id:
        text = ui.titled(f"{ui.styled('Merged', 'green')}: {name} into {into}", [("commit", ui.short(done.id))])
    invocation.respond(text, name=name, into=into, commit=done.id, left=done.left)
    warn_left(invocation, done.left)
    if done.id:
        step = f"undo it with: quaid undo {ui.short(done.id)}"
        invocation.notify(f"See what it brought with: quaid diff HEAD^..HEAD; {step}")


@run_branch.action("delete")
def delete(
    invocation: Invocation,
    name: _Name,
    force: Annotated[bool, flag("Also a branch that is not merged.", "--force")] = False,
) -> None:
    """Delete a branch that is merged; what it held is kept as a backup."""
    with invocation.open() as memory:
        backup = memory.timeline.branches.delete(name, force=force)
    invocation.respond(f"{ui.styled('Deleted', 'green')}: the branch {name}", name=name, backup=backup)
    invocation.notify(f"Bring it back with: quaid branch create {name} --from {backup}")
