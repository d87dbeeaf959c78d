"""`quaid why`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quaid.cli.invocation import Invocation
from quaid.cli.notes import document_shape
from quaid.cli.options import Reference, choosing
from quaid.cli.terminal import clipped, count, line_width, moment, one_line, short, styled
from quaid.index.listing import TurnText
from quaid.index.references import Related
from quaid.recall.provenance import CitedTurn, NoteChange, Provenance, SessionView
from quaid.shapes import json_object

MAX_EDITS = 20
MAX_RELATED = 10
MAX_TEXT = 300
TRAILERS = ("task", "run", "decision", "model", "prompt", "session")


def run_why(
    invocation: Invocation,
    ref: Reference,
) -> None:
    """Show where a memory comes from: its source, its author, what has changed since.

    Examples:
      quaid why 7k3qd
      quaid why 20-1402-2f1c9a#t3
      quaid why "Maya Chen" --json
    """
    with invocation.open() as memory:
        found = choosing(invocation, memory, ref, memory.why)
    shape = {
        "note": document_shape(found.note.document),
        "turn": found.note.turn,
        "text": found.note.text,
        "source": found.source,
        "turns": [
            {**json_object(turn.cited), **json_object(turn, "path", "session", "before", "after")}
            for turn in found.turns
        ],
        "sessions": found.sessions,
        "created": _step_shape(found.created) if found.created else None,
        "edits": [_step_shape(step) for step in found.edits],
        **json_object(found, "replaces", "replaced_by", "facts", "linked_from", "remarks"),
    }
    invocation.respond(render_provenance(found), **shape)


def _step_shape(step: NoteChange) -> dict[str, Any]:
    names = ("when", "author", "email", "subject", "body")
    about = json_object(step.commit, *names) if step.commit else dict.fromkeys(names)
    trailers = {name: step.trailer(name.capitalize()) for name in TRAILERS}
    commit = step.commit.id if step.commit else None
    return {"by": step.by, "commit": commit, **about, **trailers, "changes": step.changes}


# -- for people ------------------------------------------------------------------------------------------------------


class _Branch(NamedTuple):
    """A line of the tree, and what hangs below it."""

    text: str
    below: Sequence[_Branch] = ()


def render_provenance(found: Provenance) -> str:
    """The memory, and a tree of what it comes from."""
    document, width = found.note.document, line_width()
    about = [
        document.type or document.kind,
        document.status,
        f"confidence {document.confidence:g}" if document.confidence is not None else None,
        f"confirmed {count(document.confirmations, 'time')}" if document.confirmations else None,
        f"said by {document.speaker}" if document.speaker else None,
        f"source {found.source}" if found.source and found.source != "other" else None,
        f"valid from {document.valid_from[:10]}" if document.valid_from else None,
        f"valid until {document.valid_until[:10]}" if document.valid_until else None,
        document.id if document.id != document.path else None,
    ]
    place = document.path + (f"#t{found.note.turn}" if found.note.turn is not None else "")
    text = clipped(one_line(found.note.text) or document.title, MAX_TEXT)
    head, place, details = (
        textwrap.fill(part, width, break_on_hyphens=False) for part in (text, place, " · ".join(filter(None, about)))
    )
    return "\n".join([styled(head, "bold"), place, details, "", *_draw(list(_branches(found)), width)])


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


def _branches(found: Provenance) -> Iterator[_Branch]:
    for session in found.sessions:
        turns = [turn for turn in found.turns if turn.path == session.path]
        yield _session(session, turns, has_words=found.note.turn is not None)
    if found.created:
        yield _Branch(_who("created", found.created), list(_details(found.created)))
    left_out = max(0, len(found.edits) - MAX_EDITS)
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


def _session(session: SessionView, turns: Sequence[CitedTurn], *, has_words: bool) -> _Branch:
    """`has_words` says that the turn's own words are printed above the tree."""
    known = [session.started and session.started[:10], session.source, count(session.turns, "turn")]
    head = f"session {session.session or session.title} ({', '.join(part for part in known if part)}), {session.path}"
    below = []
    for each in turns:
        context = [("before", each.before), ("after", each.after)]
        words = "" if has_words else f": {clipped(each.cited.text, MAX_TEXT)}"
        around = [_Branch(f"{where}: {_describe_turn(turn)}: {one_line(turn.text)}") for where, turn in context if turn]
        below.append(_Branch(_describe_turn(each.cited) + words, around))
    if session.facts:
        below.append(_Branch(f"also drawn from it: {count(len(session.facts), 'fact')}", list(_related(session.facts))))
    return _Branch(head, below)


def _describe_turn(turn: TurnText) -> str:
    return ", ".join(part for part in (turn.speaker, f"turn {turn.turn}", moment(turn.said_at)) if part)


def _who(what: str, step: NoteChange) -> str:
    if step.commit is None:
        return f"{what} in the working tree, not committed"
    author = step.commit.author if step.by == "human" else step.by
    return f"{what} {moment(step.commit.when)} by {author}, commit {short(step.commit.id)}"


def _details(step: NoteChange) -> Iterator[_Branch]:
    if step.commit is not None:
        yield _Branch(one_line(step.commit.subject))
        if step.commit.body:
            yield _Branch(clipped(step.commit.body, MAX_TEXT))
    made = [f"{name} {value}" for name in TRAILERS[:-1] if (value := step.trailer(name.capitalize()))]
    if made:
        yield _Branch(", ".join(made))
    for change in step.changes:
        yield _Branch(change)


def _related(related: Sequence[Related]) -> Iterator[_Branch]:
    for one in related[:MAX_RELATED]:
        over = " [replaced]" if one.replaced else ""
        yield _Branch(f"{clipped(one.text, MAX_TEXT)}{over} ({one.id})")
    if len(related) > MAX_RELATED:
        yield _Branch(f"and {len(related) - MAX_RELATED:,} more; all with --json")
