"""`quaid why`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.notes import document_shape
from quaid.cli.terminal import count, moment, one_line, styled

if TYPE_CHECKING:
    from quaid.index.backlinks import Related
    from quaid.recall.provenance import CitedTurn, NoteChange, Provenance, SessionView, TurnText

WIDEST = 100
MOST_EDITS = 20
MOST_RELATED = 10
LONGEST_TEXT = 300
TRAILERS = ("task", "run", "decision", "model", "prompt", "session")


def run_why(
    ctx: typer.Context,
    ref: Annotated[
        str, typer.Argument(metavar="REF", help="An id or part of one, a path, a name, or a turn of a conversation.")
    ],
) -> None:
    """Why a memory is believed: what was said, who wrote it down, what has changed since.

    Examples:
      quaid why 7k3qd
      quaid why 20-1402-2f1c9a#t3
      quaid why "Maya Chen" --json
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory:
        found = memory.why(ref)
    invocation.tell(lambda: _render(found), **_shape(found))


def _shape(found: Provenance) -> dict[str, Any]:
    return {
        "note": document_shape(found.note.document),
        "turn": found.note.turn,
        "text": found.note.text,
        "source": found.source,
        "turns": [_turn_shape(turn) for turn in found.turns],
        "sessions": [asdict(session) for session in found.sessions],
        "created": _step_shape(found.created) if found.created else None,
        "edits": [_step_shape(step) for step in found.edits],
        **{
            name: [asdict(related) for related in getattr(found, name)]
            for name in ("replaces", "replaced_by", "facts", "linked_from")
        },
        "remarks": found.remarks,
    }


def _turn_shape(turn: CitedTurn) -> dict[str, Any]:
    shape = asdict(turn)
    return {**shape.pop("said"), **shape}


def _step_shape(step: NoteChange) -> dict[str, Any]:
    commit = step.commit
    told = {
        name: getattr(commit, name) if commit else None for name in ("id", "when", "author", "email", "subject", "body")
    }
    return {
        "by": step.by,
        "commit": told.pop("id"),
        **told,
        **{name: step.trailer(name.capitalize()) for name in TRAILERS},
        "changes": step.changes,
    }


# -- for people ------------------------------------------------------------------------------------------------------


class _Branch(NamedTuple):
    """A line of the tree, and what hangs below it."""

    text: str
    below: Sequence[_Branch] = ()


def _render(found: Provenance) -> str:
    width = min(get_terminal_size().columns, WIDEST)
    document = found.note.document
    said = one_line(found.note.text) or document.title
    place = document.path + (f"#t{found.note.turn}" if found.note.turn is not None else "")
    head = [styled(_filled(_clipped(said), width), "bold"), _filled(place, width), _filled(_about(found), width)]
    return "\n".join([*head, "", *_draw(list(_branches(found)), width)])


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)


def _draw(branches: Sequence[_Branch], width: int, indent: str = "") -> Iterator[str]:
    for place, branch in enumerate(branches, 1):
        is_last = place == len(branches)
        below = indent + ("   " if is_last else "│  ")
        yield from textwrap.wrap(
            branch.text,
            width,
            initial_indent=indent + ("└─ " if is_last else "├─ "),
            subsequent_indent=below + ("│  " if branch.below else "   "),
            break_on_hyphens=False,
        )
        yield from _draw(branch.below, width, below)


def _about(found: Provenance) -> str:
    document = found.note.document
    parts = [
        document.type or document.kind,
        document.status,
        f"confidence {document.confidence:g}" if document.confidence is not None else None,
        f"confirmed {count(document.confirmations, 'time')}" if document.confirmations else None,
        f"said by {document.speaker}" if document.speaker else None,
        f"source {found.source}" if found.source else None,
        f"valid from {document.valid_from[:10]}" if document.valid_from else None,
        f"valid until {document.valid_until[:10]}" if document.valid_until else None,
        document.id if document.id != document.path else None,
    ]
    return " · ".join(part for part in parts if part)


def _branches(found: Provenance) -> Iterator[_Branch]:
    for session in found.sessions:
        turns = [turn for turn in found.turns if turn.path == session.path]
        yield _session(session, turns, is_told=found.note.turn is not None)
    if found.created:
        yield _Branch(_who("created", found.created), list(_details(found.created)))
    left_out = max(0, len(found.edits) - MOST_EDITS)
    if left_out:
        yield _Branch(f"changed {count(left_out, 'time')} more before; all with --json")
    for step in found.edits[left_out:]:
        yield _Branch(_who("changed", step), list(_details(step)))
    facts = {"entity": "mentioned by", "episode": "rests on it" if found.note.turn is not None else "came from it"}
    for title, related in (
        ("replaces", found.replaces),
        ("replaced by", found.replaced_by),
        (facts.get(found.note.document.kind, "facts"), found.facts),
        ("linked from", found.linked_from),
    ):
        if related:
            yield _Branch(title, list(_related(related)))
    for remark in found.remarks:
        yield _Branch(remark)


def _session(session: SessionView, turns: Sequence[CitedTurn], *, is_told: bool) -> _Branch:
    """`is_told` says that the turn's own words stand above the tree."""
    known = [session.started and session.started[:10], session.source, count(session.turns, "turn")]
    head = f"session {session.session or session.title} ({', '.join(part for part in known if part)}), {session.path}"
    below = [_turn(turn, is_told=is_told) for turn in turns]
    if session.facts:
        below.append(_Branch(f"also drawn from it: {count(len(session.facts), 'fact')}", list(_related(session.facts))))
    return _Branch(head, below)


def _turn(cited: CitedTurn, *, is_told: bool) -> _Branch:
    beside = [("before", cited.before), ("after", cited.after)]
    below = [_Branch(f"{where}: {_speaker(said)}: {one_line(said.text)}") for where, said in beside if said]
    words = "" if is_told else f": {_clipped(one_line(cited.said.text))}"
    return _Branch(_speaker(cited.said) + words, below)


def _speaker(said: TurnText) -> str:
    return ", ".join(part for part in (said.speaker, f"turn {said.turn}", moment(said.said_at)) if part)


def _who(what: str, step: NoteChange) -> str:
    if step.commit is None:
        return f"{what} in the working tree, not committed"
    author = step.commit.author if step.by == "human" else step.by
    return f"{what} {moment(step.commit.when)} by {author}, commit {step.commit.id[:10]}"


def _details(step: NoteChange) -> Iterator[_Branch]:
    if step.commit is not None:
        yield _Branch(one_line(step.commit.subject))
        if step.commit.body:
            yield _Branch(_clipped(one_line(step.commit.body)))
    made = [f"{name} {value}" for name in TRAILERS[:-1] if (value := step.trailer(name.capitalize()))]
    if made:
        yield _Branch(", ".join(made))
    for change in step.changes:
        yield _Branch(change)


def _related(related: Sequence[Related]) -> Iterator[_Branch]:
    for one in related[:MOST_RELATED]:
        over = " [replaced]" if one.replaced else ""
        yield _Branch(f"{_clipped(one_line(one.text))}{over} ({one.id})")
    if len(related) > MOST_RELATED:
        yield _Branch(f"and {len(related) - MOST_RELATED:,} more; all with --json")


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1].rstrip() + "…"
