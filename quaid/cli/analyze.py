"""`quaid analyze`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.extraction_output import MAX_SHOWN, listed, remark_on_learned, rows_of_learned, shape_of_learned
from quaid.cli.invocation import Invocation, fields, print_error
from quaid.cli.terminal import count, known, short, size, styled, titled
from quaid.errors import BadInputError, ModelAnswerError, ModelRefusedError, NoteBrokenError, QuaidError

if TYPE_CHECKING:
    from quaid.capture.files.analyzer import AnalyzeResult

OF_ONE_FILE = (BadInputError, NoteBrokenError, ModelAnswerError, ModelRefusedError)
"""Trouble that the next file need not have."""


def run_analyze(
    ctx: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Text, markdown or PDF files.")],
    focus: Annotated[str, typer.Option(metavar="TEXT", help="What the model should look for above all.")] = "",
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The project its facts belong to.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Ask the model even when nothing has changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written; write nothing.")] = False,
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
    from quaid.capture.right_command import hint_for

    invocation: Invocation = ctx.obj
    shapes: list[dict[str, object]] = []
    failed: list[QuaidError] = []
    with invocation.open() as memory, invocation.progress(memory):
        for name in dict.fromkeys(paths):
            path = Path(name).expanduser()
            try:
                if path.is_dir() and (hint := hint_for(path, "analyze")):
                    raise BadInputError(f"{name} is a folder. Give its files one by one: quaid analyze {name}/*.{hint}")
                done = memory.analyze(path, focus=focus, project=project, again=again, dry_run=dry_run)
            except QuaidError as error:
                if len(paths) == 1:
                    raise
                shapes.append({"file": name, "error": {"code": error.code, "message": str(error)}})
                failed.append(error)
                print_error(f"{error}")
                if isinstance(error, OF_ONE_FILE):
                    continue
                break
            shapes.append(shape_of_analyzed(name, done))
            if not invocation.as_json:
                invocation.print(render_analyzed(done))
            for remark in done.file.remarks:
                invocation.notify(remark)
            remark_on_learned(invocation, done, done.file.redacted if done.outcome != "unchanged" else ())
            if done.missing:
                invocation.notify("What the file no longer says is kept. Forget it with: quaid forget REF")
    if invocation.as_json:
        invocation.print_json(files=shapes)
    return max((error.exit_code for error in failed), default=0)


def shape_of_analyzed(name: str, done: AnalyzeResult) -> dict[str, object]:
    """`AnalyzeResult` as JSON."""
    file, checkout = done.file, done.request.checkout
    return {
        "file": name,
        "outcome": done.outcome,
        "note": done.note,
        **fields(file, "title", "media", "size", "pages", "checksum"),
        "repository": done.request.repository,
        "branch": checkout.branch if checkout else None,
        "file_commit": checkout.commit if checkout else None,
        "uncommitted": checkout.is_changed if checkout else None,
        "focus": done.request.focus or None,
        "summary": done.summary or None,
        "missing": [fields(fact, "id", "text") for fact in done.missing],
        **shape_of_learned(done),
        "redacted": Counter(file.redacted),
        "remarks": file.remarks,
        "pieces": done.pieces,
    }


def render_analyzed(done: AnalyzeResult) -> str:
    """One file and what was done with it, for a person."""
    file, checkout = done.file, done.request.checkout
    if done.outcome == "unchanged":
        return f"Nothing to do: {file.path.name} is as it was when it was analyzed ({done.note}). --again asks anew."
    new = [fact for fact in done.facts if fact.outcome == "created"]
    repeated = len(done.facts) - len(new)
    head = styled("Would learn" if done.is_dry_run else "Learned", "green")
    said = f"{count(len(new), 'new fact')}{f', {repeated} known already' if repeated else ''}"
    details = (file.media, count(file.pages, "page") if file.pages else "", size(file.size), file.title)
    git = None
    if checkout:
        commit = f" at {short(checkout.commit)}" if checkout.commit else ""
        git = f"{checkout.repository}{commit}{', with uncommitted changes' if checkout.is_changed else ''}"
    rows = [
        *known(("note", done.note), ("file", ", ".join(filter(None, details))), ("git", git)),
        *listed("summary", [done.summary] if done.summary else []),
        *listed("facts", [fact.text for fact in new], None if done.is_dry_run else MAX_SHOWN),
        *listed("missing", [f"{fact.text} ({fact.id[-5:]})" for fact in done.missing], MAX_SHOWN),
        *rows_of_learned(done),
    ]
    return titled(f"{head}: {said} from {file.path.name}", rows)
