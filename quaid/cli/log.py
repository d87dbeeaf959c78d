"""`quaid log` and `quaid why`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.notes import document_shape
from quaid.cli.terminal import columns, moment, one_line, styled
from quaid.errors import NoteNotFoundError
from quaid.memory import Memory, Provenance
from quaid.model import Commit


def run_log(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many commits.")] = 20,
    author: Annotated[str | None, typer.Option(metavar="NAME", help="Only whose name or e-mail contains this.")] = None,
    fact: Annotated[str | None, typer.Option(metavar="REF", help="Only what concerns this fact.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only what came from this session.")] = None,
    since: Annotated[str | None, typer.Option(metavar="DATE", help="Only after this date, as git reads it.")] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Also the files of each commit.")] = False,
) -> None:
    """What changed, newest first, one commit a line. Times are in UTC.

    Examples:
      quaid log -n 5 --stat
      quaid log --fact 7k3qd
      quaid log --author Quaid --since yesterday --json
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        trailer = ("Quaid-Fact", _fact_id(memory, fact)) if fact else ("Quaid-Session", session) if session else None
        commits = memory.git.log(limit=limit, author=author, grep_trailer=trailer, since=since)
        if fact and session:
            commits = [commit for commit in commits if session in commit.trailers.get("Quaid-Session", ())]
    invocation.tell(lambda: _render_log(commits, stat=stat), commits=[asdict(commit) for commit in commits])
    if not commits:
        invocation.say("No commit fits.")


def run_why(
    ctx: typer.Context,
    ref: Annotated[str, typer.Argument(metavar="REF", help="An id or part of one, a path, or a name.")],
) -> None:
    """Why a fact is believed: what was said, and the commits that made and changed it.

    Examples:
      quaid why 7k3qd
      quaid why "Maya Chen" --json
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        found = memory.why(ref)
    shape = {
        "note": document_shape(found.note.document),
        "text": found.note.text,
        "turns": [_turn_shape(turn) for turn in found.turns],
        "commits": [asdict(commit) for commit in found.commits],
    }
    invocation.tell(lambda: _render_why(found), **shape)


def _fact_id(memory: Memory, reference: str) -> str:
    try:
        return memory.get(reference).document.id
    except NoteNotFoundError:  # it may have been forgotten: take the reference for the whole id
        return reference


def _turn_shape(turn: object) -> dict[str, object]:
    names = ("path", "turn", "speaker", "said_at", "session", "text")
    return {name: getattr(turn, name) for name in names}


def _render_log(commits: Sequence[Commit], *, stat: bool) -> str:
    authors = max((len(commit.author) for commit in commits), default=0)
    lines = []
    for commit in commits:
        head = f"{styled(commit.id[:10], 'yellow')}  {moment(commit.when)}  {commit.author:{authors}}"
        lines.append(f"{head}  {one_line(commit.subject)}")
        lines += [f"            {path}" for path in commit.files] if stat else []
    return "\n".join(lines)


def _render_why(found: Provenance) -> str:
    document = found.note.document
    parts = [f"{styled(one_line(found.note.text) or document.title, 'bold')}\n  {document.path}"]
    facts = [(name, value) for name, value in _facts(found) if value]
    parts.append("\n".join(f"  {line}" for line in columns(facts).splitlines()))
    if found.turns:
        said = [
            f"  {moment(turn.said_at)} {turn.speaker or ''} (turn {turn.turn} of session {turn.session})\n"
            f"    {one_line(turn.text)}"
            for turn in found.turns
        ]
        parts.append("\n".join([styled("What was said", "bold"), *said]))
    if found.commits:
        commits = [line for commit in found.commits for line in _render_commit(commit)]
        parts.append("\n".join([styled("Commits", "bold"), *commits]))
    else:
        parts.append("It is in no commit yet: somebody wrote it by hand and has not committed it.")
    return "\n\n".join(part for part in parts if part)


def _facts(found: Provenance) -> list[tuple[str, str]]:
    document = found.note.document
    return [
        ("type", document.type or document.kind),
        ("said by", document.speaker or ""),
        ("source", document.source or ""),
        ("session", document.session or ""),
        ("confidence", "" if document.confidence is None else f"{document.confidence:g}"),
        ("confirmed", f"{document.confirmations} times" if document.confirmations else ""),
        ("created", moment(document.created)),
        ("valid", " to ".join([(document.valid_from or "")[:10], (document.valid_until or "")[:10]]).strip(" to")),
    ]


def _render_commit(commit: Commit) -> list[str]:
    head = f"  {styled(commit.id[:10], 'yellow')}  {moment(commit.when)}  {commit.author}  {one_line(commit.subject)}"
    body = [f"    {line}" for line in commit.body.splitlines()]
    return [head, *body, *(f"    {key}: {value}" for key, values in commit.trailers.items() for value in values)]
