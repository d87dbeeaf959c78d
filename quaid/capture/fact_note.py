"""A statement -> the edit that makes it a fact note, that confirms the fact which says it, or that replaces one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from quaid.errors import BadInputError, FactTooShortError
from quaid.model import Edge, Edit, name_key, note_name
from quaid.text.invisible import without_unseen
from quaid.text.words import is_long_enough, stands_alone
from quaid.vault import frontmatter, layout, markdown, notes
from quaid.vault.layout import Layout

CONFIRMATION_BOOST = 0.1
"""Share of the remaining doubt that one confirmation removes."""
ASSISTANT_FACTOR = 0.9
"""Factor on the confidence of what an assistant inferred."""

_UNLINKABLE = re.compile(r"[\[\]|#^\n\\`]")
"""Characters that a name inside `[[…]]` cannot hold."""
_CLOSED = re.compile(r"\[\[[^\[\]]*\]\]|!?\[[^\[\]]*\]\([^()]*\)|`[^`]*`|\b\w++://\S+|<[^<>]*>")


@dataclass(frozen=True, slots=True)
class FactDetails:
    """The details of a fact besides its words. `id` is given where the same fact must come out twice the same."""

    id: str | None = None
    type: str = "fact"
    status: str = "active"
    owner: str = "default"
    confidence: float = 0.8
    extraction_confidence: float | None = None
    durability: str = "mutable"
    privacy: str = "private"
    speaker: str | None = None
    source: str = "user"
    session: str | None = None
    imported_from: str | None = None
    project: str | None = None
    technical: bool = False
    pinned: bool = False
    valid_from: str | None = None
    valid_until: str | None = None
    keywords: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    document: str | None = None
    """A link to the source note of the file it was drawn from."""
    edges: tuple[Edge, ...] = ()


def clean_statement(text: str) -> str:
    """One line as every reader shows it: white space collapsed, without characters that nobody sees.

    Raises:
        FactTooShortError: fewer than three words.
    """
    statement = " ".join(without_unseen(text).split())
    if not is_long_enough(statement):
        raise FactTooShortError(statement)
    return statement


def check_period(details: FactDetails) -> None:
    """Refuse a fact that is over before it begins.

    Raises:
        BadInputError
    """
    since, until = details.valid_from, details.valid_until
    width = min(len(since or ""), len(until or ""), len("2026-11-01"))
    if since and until and until[:width] < since[:width]:
        raise BadInputError(
            f"It would be over on {until}, before it begins on {since}. Give valid_from before valid_until."
        )


def plan_fact(
    statement: str,
    details: FactDetails,
    now: datetime,
    names: Iterable[tuple[str, str]] = (),
    place: Layout = layout.DEFAULT,
) -> tuple[str, Edit]:
    """(id, the edit that writes it). Known `names` (as written, name of their note) become links."""
    note_id = details.id or layout.new_id(now)
    factor = ASSISTANT_FACTOR if details.source == "assistant" else 1.0
    fields: dict[str, frontmatter.Value | None] = {
        "id": note_id,
        "type": details.type,
        "status": details.status,
        "owner": details.owner,
        "confidence": round(details.confidence * factor, 3),
        "extraction_confidence": details.extraction_confidence,
        "durability": details.durability,
        "privacy": None if details.privacy == "private" else details.privacy,
        "speaker": details.speaker,
        "source": details.source,
        "session": details.session,
        "imported_from": details.imported_from,
        "project": details.project,
        "technical": True if details.technical else None,
        "pinned": True if details.pinned else None,
        "created": notes.render_time(now),
        "valid_from": details.valid_from,
        "valid_until": details.valid_until,
        "keywords": list(details.keywords) or None,
        "turns": list(details.turns) or None,
        "document": details.document,
    }
    text = notes.render_fact(fields, render_statement(statement, names), details.edges)
    return note_id, Edit(place.place(layout.fact_path(statement, note_id, now)), None, text.encode())


def plan_confirmation(rel_path: str, data: bytes, turns: Sequence[str] = (), *, counts: bool = True) -> Edit:
    """Count one more confirmation and raise the confidence, unless it `counts` for none; cite `turns` as well. Nothing
    else of the note changes.
    """
    text = data.decode("utf-8")
    fields = frontmatter.parse(text).fields
    changes: dict[str, frontmatter.Value | None] = {}
    if counts:
        confidence = read_number(fields.get("confidence"), 0.8)
        raised = min(1.0, confidence + CONFIRMATION_BOOST * (1.0 - confidence))
        changes["confidence"] = round(raised, 3)
        changes["confirmations"] = int(read_number(fields.get("confirmations"), 0)) + 1
    listed = fields.get("turns")
    cited = [str(turn) for turn in listed] if isinstance(listed, list) else [listed] if isinstance(listed, str) else []
    if not set(turns) <= set(cited):
        changes["turns"] = list(dict.fromkeys([*cited, *turns]))
    return Edit(rel_path, data, frontmatter.set_fields(text, changes).encode() if changes else data)


def supersede(rel_path: str, data: bytes, winner_path: str, until: str | None) -> Edit:
    """Mark as replaced by another fact, and true until then if that is known.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note cannot be edited safely.
    """
    text = data.decode("utf-8")
    changes: dict[str, frontmatter.Value | None] = {"superseded_by": f"[[{note_name(winner_path)}]]"}
    if until and not frontmatter.parse(text).fields.get("valid_until"):
        changes["valid_until"] = until
    return Edit(rel_path, data, frontmatter.set_fields(text, changes).encode())


def render_statement(statement: str, names: Iterable[tuple[str, str]]) -> str:
    """A statement, which is not markdown, as the markdown that shows it. The first mention of each known name is a
    wikilink; longer names first, nothing linked twice or in a link, an address, code or a longer word.
    """
    statement = markdown.escape(statement)
    linked: set[str] = set()
    mentioned = [pair for pair in names if len(pair[0]) > 1 and pair[0] in statement]
    for name, note in sorted(mentioned, key=lambda pair: (-len(pair[0]), pair)):
        if name_key(note) in linked or name not in statement:
            continue
        if _UNLINKABLE.search(name) or _UNLINKABLE.search(note):
            continue
        place = _first_mention(statement, name)
        if place is not None:
            shown = f"[[{name}]]" if name == note else f"[[{note}|{name}]]"
            statement = statement[:place] + shown + statement[place + len(name) :]
            linked.add(name_key(note))
    return statement


def _first_mention(statement: str, name: str) -> int | None:
    closed = [found.span() for found in _CLOSED.finditer(statement)]
    for found in re.finditer(rf"(?<!\w[-.@])(?<![\\!])(?<!(?<!\\)\[){re.escape(name)}(?![-.@]\w)", statement):
        if not stands_alone(statement, *found.span()):
            continue
        if not any(start < found.end() and found.start() < end for start, end in closed):
            return found.start()
    return None


def read_number(value: object, default: float) -> float:
    """Return a value of a head as a number; `default` where it is none."""
    try:
        number = float(str(value))
    except ValueError:
        return default
    return number if math.isfinite(number) else default
