"""`quaid why`."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from quaid.cli.invocation import Invocation
from quaid.cli.notes import document_shape
from quaid.cli.options import Reference, choosing
from quaid.cli.terminal import clipped, count, line_width, moment, one_line, short, styled
from quaid.index.listing import TurnText
from quaid.index.references import Related
from quaid.recall.provenance import NoteChange, Provenance
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


_Branch = tuple[str, Sequence["_Branch"]]
"""A line of the tree, and what hangs below it."""


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
    for place, (text, children) in enumerate(branches, 1):
        is_last = place == len(branches)
        below = indent + ("   " if is_last else "│  ")
        yield from textwrap.wrap(
            text,
            width,
            initial_indent=indent + ("└─ " if is_last else "├─ "),
            subsequent_indent=below + ("│  " if children else "   "),
            break_on_hyphens=False,
        )
        yield from _draw(children, width, below)


def _branches(found: Provenance) -> Iterator[_Branch]:
    is_turn = found.note.turn is not None
    for session in found.sessions:
        turns = [turn for turn in found.turns if turn.path == session.path]
        started = session.started and session.started[:10]
        about = ", ".join(filter(None, (started, session.source, count(session.turns, "turn"))))
        below: list[_Branch] = []
        for each in turns:
            around = [
                (f"{where}: {_describe_turn(turn)}: {one_line(turn.text)}", ())
                for where, turn in (("before", each.before), ("after", each.after))
                if turn
            ]
            words = "" if is_turn else f": {clipped(each.cited.text, MAX_TEXT)}"  # else they are above the tree
            below.append((_describe_turn(each.cited) + words, around))
        if session.facts:
            below.append((f"also drawn from it: {count(len(session.facts), 'fact')}", list(_related(session.facts))))
        yield f"session {session.session or session.title} ({about}), {session.path}", below
    left_out = max(0, len(found.edits) - MAX_EDITS)
    if found.created:
        yield _describe_step("created", found.created)
    if left_out:
        yield f"changed {count(left_out, 'time')} more before; all with --json", ()
    for step in found.edits[left_out:]:
        yield _describe_step("changed", step)
    facts = {"entity": "mentioned by", "episode": "rests on it" if is_turn else "came from it"}
    for title, related in (
        ("replaces", found.replaces),
        ("replaced by", found.replaced_by),
        (facts.get(found.note.document.kind, "facts"), found.facts),
        ("linked from", found.linked_from),
    ):
        if related:
            yield title, list(_related(related))
    for remark in found.remarks:
        yield remark, ()


def _describe_turn(turn: TurnText) -> str:
    return ", ".join(part for part in (turn.speaker, f"turn {turn.turn}", moment(turn.said_at)) if part)


def _describe_step(what: str, step: NoteChange) -> _Branch:
    head, rows = f"{what} in the working tree, not committed", list[str]()
    if step.commit is not None:
        author = step.commit.author if step.by == "human" else step.by
        head = f"{what} {moment(step.commit.when)} by {author}, commit {short(step.commit.id)}"
        rows = [one_line(step.commit.subject), clipped(step.commit.body, MAX_TEXT)]
    rows.append(", ".join(f"{name} {value}" for name in TRAILERS[:-1] if (value := step.trailer(name.capitalize()))))
    return head, [(row, ()) for row in (*filter(None, rows), *step.changes)]


def _related(related: Sequence[Related]) -> Iterator[_Branch]:
    for one in related[:MAX_RELATED]:
        over = " [replaced]" if one.replaced else ""
        yield f"{clipped(one.text, MAX_TEXT)}{over} ({one.id})", ()
    if len(related) > MAX_RELATED:
        yield f"and {len(related) - MAX_RELATED:,} more; all with --json", ()
