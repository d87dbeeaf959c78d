"""`quaid analyze`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import clipped, columns, count, line_width, size, styled
from quaid.cli.written import warn_left
from quaid.errors import BadInputError, ModelAnswerError, ModelRefusedError, NoteBrokenError, QuaidError

if TYPE_CHECKING:
    from quaid.analyzing import Analyzed

OF_ONE_FILE = (BadInputError, NoteBrokenError, ModelAnswerError, ModelRefusedError)
"""Trouble that the next file need not have."""
MOST_SHOWN = 10


def run_analyze(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Text, markdown or PDF files.")],
    focus: Annotated[str, typer.Option(metavar="TEXT", help="What to look for above all.")] = "",
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The project its facts belong to.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Ask the model even when nothing has changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, write nothing.")] = False,
) -> int:
    """Learn from files: a model draws facts and names from them, each with the page or heading it stands at.

    The file stays where it is; a note in sources/ names it with its checksum, what git knows of it, a summary and its
    facts. A file that has not changed since costs nothing. When it has, new facts are added, known ones stay as they
    are, and those that it no longer says are named, never removed.

    Examples:
      quaid analyze lease.pdf --focus "deadlines and amounts"
      quaid analyze docs/*.md --project quaid
      quaid analyze minutes.txt --dry-run
    """
    invocation: Invocation = ctx.obj
    shapes: list[dict[str, object]] = []
    failed: list[QuaidError] = []
    with invocation.open() as memory, invocation.progress(memory):
        for name in dict.fromkeys(paths):
            try:
                done = memory.analyze(
                    Path(name).expanduser(), focus=focus, project=project, again=again, dry_run=dry_run
                )
            except QuaidError as error:
                if len(paths) == 1:
                    raise
                shapes.append({"file": name, "error": {"code": error.code, "message": str(error)}})
                failed.append(error)
                print(f"quaid: {error}", file=sys.stderr)
                if isinstance(error, OF_ONE_FILE):
                    continue
                break
            shapes.append(as_shape(name, done))
            if not invocation.as_json:
                invocation.print(render(done))
            _remark(invocation, done)
    if invocation.as_json:
        invocation.answer(files=shapes)
    return max((error.exit_code for error in failed), default=0)


def as_shape(name: str, done: Analyzed) -> dict[str, object]:
    """`Analyzed` as JSON. Ids and paths of facts that a dry run would make do not exist yet."""
    file, checkout, usage = done.file, done.inquiry.checkout, done.usage
    return {
        "file": name,
        "outcome": done.outcome,
        "note": done.note,
        "dry_run": done.is_dry_run,
        "title": file.title,
        "media": file.media,
        "size": file.size,
        "pages": file.pages,
        "checksum": file.checksum,
        "repository": done.inquiry.repository,
        "branch": checkout.branch if checkout else None,
        "file_commit": checkout.commit if checkout else None,
        "uncommitted": checkout.is_changed if checkout else None,
        "focus": done.inquiry.focus or None,
        "summary": done.summary or None,
        "facts": [
            {
                "id": None if done.is_dry_run and fact.outcome == "created" else fact.id,
                "path": None if done.is_dry_run and fact.outcome == "created" else fact.path,
                "text": fact.text,
                "outcome": fact.outcome,
            }
            for fact in done.facts
        ],
        "missing": [{"id": fact.id, "text": fact.text} for fact in done.missing],
        "entities": list(done.entities),
        "edges": done.edges,
        "left_out": [{"text": item.text, "reason": item.reason} for item in done.left_out],
        "redacted": dict(Counter(file.redacted)),
        "remarks": list(file.remarks),
        "pieces": done.pieces,
        "model": done.model,
        "prompt": done.prompt,
        "usage": {
            "calls": usage.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "cost_usd": usage.cost_usd,
        },
        "degraded": list(done.degraded),
        "commit": done.commit,
        "left": list(done.left),
    }


def render(done: Analyzed) -> str:
    """What was done with one file, for a person."""
    if done.outcome == "unchanged":
        return (
            f"Nothing to do: {done.file.path.name} is as it was when it was analyzed ({done.note}). --again asks anew."
        )
    new = [fact for fact in done.facts if fact.outcome == "created"]
    known = len(done.facts) - len(new)
    head = styled("Would learn" if done.is_dry_run else "Learned", "green")
    said = f"{count(len(new), 'new fact')}{f', {known} known already' if known else ''}"
    width = line_width() - 12
    rows = [("note", done.note), ("file", _described(done))]
    rows += [("git", _checkout(done))] if done.inquiry.checkout else []
    rows += [("summary", clipped(done.summary, width))] if done.summary else []
    rows += _listed("facts", [fact.text for fact in new], width, len(new) if done.is_dry_run else MOST_SHOWN)
    rows += _listed("missing", [f"{fact.text} ({fact.id[-5:]})" for fact in done.missing], width, MOST_SHOWN)
    rows += _listed("not kept", [f"{item.text}: {item.reason}" for item in done.left_out], width, MOST_SHOWN)
    rows += [("names", clipped(", ".join(done.entities), width))] if done.entities else []
    rows += [("model", f"{done.model}, {done.usage.tokens:,} tokens")] if done.usage.calls else []
    rows += [("commit", done.commit[:10])] if done.commit else []
    body = "\n".join(f"  {line}" for line in columns(rows).splitlines())
    return f"{head}: {said} from {done.file.path.name}\n{body}"


def _described(done: Analyzed) -> str:
    file = done.file
    pages = [count(file.pages, "page")] if file.pages else []
    return ", ".join([file.media, *pages, size(file.size), *([file.title] if file.title else [])])


def _checkout(done: Analyzed) -> str:
    checkout = done.inquiry.checkout
    assert checkout is not None
    commit = f" at {checkout.commit[:10]}" if checkout.commit else ""
    return f"{checkout.repository}{commit}{', with uncommitted changes' if checkout.is_changed else ''}"


def _listed(title: str, lines: list[str], width: int, most: int) -> list[tuple[str, str]]:
    rows = [("" if number else title, clipped(line, width)) for number, line in enumerate(lines[:most])]
    return rows + ([("", f"and {len(lines) - most} more")] if len(lines) > most else [])


def _remark(invocation: Invocation, done: Analyzed) -> None:
    for remark in done.file.remarks:
        invocation.say(remark)
    if done.file.redacted and done.outcome != "unchanged":
        kinds = ", ".join(f"{number} {kind}" for kind, number in Counter(done.file.redacted).items())
        invocation.say(f"Secrets were replaced before anything was read or written: {kinds}.")
    if done.missing:
        invocation.say("What the file no longer says is kept. Forget it with: quaid forget REF")
    if "relations" in done.degraded:
        invocation.say("New relations were stored as they were said: the fast model did not answer.")
    if done.left:
        warn_left(invocation, done.left)
