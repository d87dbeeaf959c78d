"""A reference, as a person or an agent types it -> the notes that it may mean.

Every command that takes a reference asks here: `get`, `forget`, `why`, `edit`, `history`, and the tools of MCP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import AmbiguousReferenceError, NoteNotFoundError
from quaid.index import documents
from quaid.index.documents import Document
from quaid.model import Kind, name_key, note_name, without_ending
from quaid.text.invisible import whole

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

_MAX_ID_LENGTH = 200
"""Longer references are sentences; SQLite would refuse them as a pattern."""
_MIN_ID_PART = 4
_LINK = re.compile(r"!?\[\[(?P<target>[^\[\]]+)\]\]|\[[^\[\]]*\]\((?P<path>[^()]+)\)")
_SHOWN_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]+)\]\]")
_TURN = re.compile(r"\^?t(\d{1,9})")
_AMONG = "doc_id IN (SELECT CAST(value AS INTEGER) FROM json_each(?))"
_MAX_SHOWN = 80
"""Characters of a note's text in a list to choose from."""


class Meant(NamedTuple):
    """A note that a reference means: all of it, one turn, or what stands under `heading` (`^id` names a block)."""

    document: Document
    turn: int | None = None
    heading: str = ""


def has_reference(connection: IndexConnection, references: Sequence[str]) -> bool:
    """Return whether one of `references` is the id, path, session, file name, title or alias of any document."""
    rows = connection.execute(
        "SELECT 1 FROM documents WHERE id IN (SELECT value FROM json_each(:called)) UNION ALL "
        "SELECT 1 FROM documents WHERE path IN (SELECT value FROM json_each(:called)) UNION ALL "
        "SELECT 1 FROM documents WHERE session IN (SELECT value FROM json_each(:called)) UNION ALL "
        "SELECT 1 FROM names WHERE name_key IN (SELECT value FROM json_each(:keys)) LIMIT 1",
        {
            "called": json.dumps(references),
            "keys": json.dumps([name_key(without_ending(name)) for name in references]),
        },
    )
    return next(rows, None) is not None


def resolve(connection: IndexConnection, reference: str) -> list[Meant]:
    """Return what a person may mean by `reference`, by path; several when it is ambiguous, none when nothing fits.

    It is an id or a part of one, a path with or without `.md`, a name, title or alias in any case, the exact text of a
    fact, each also as a link (`[[Note#Heading|shown]]`) and with a turn (`#t3`) or a heading behind it.
    """
    text = target_of(whole(reference))
    for note, part in _splits(text):
        if found := _find(connection, note):
            turn = _TURN.fullmatch(part)
            return [Meant(each, int(turn[1])) if turn else Meant(each, heading=part) for each in found]
    return []


def resolve_one(connection: IndexConnection, reference: str) -> Meant:
    """Return the one thing that `reference` means.

    Raises:
        NoteNotFoundError, AmbiguousReferenceError
    """
    found = resolve(connection, reference)
    if not found:
        raise NoteNotFoundError(reference)
    if len(found) > 1:
        raise AmbiguousReferenceError(reference, [_describe(connection, meant) for meant in found])
    return found[0]


def target_of(reference: str) -> str:
    """Return the target of a link, `Note#Heading` of `[[Note#Heading|shown]]`; what is not a link as it is."""
    text = reference.strip()
    link = _LINK.fullmatch(text)
    if link is None:
        return text
    if link["path"]:
        from urllib.parse import unquote

        return unquote(link["path"].strip("<>"))
    return link["target"].partition("|")[0].rstrip("\\").strip()


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to read `text` as (note, part of it), the longest note first: `#` may stand in a name."""
    yield text, ""
    end = len(text)
    while (end := text.rfind("#", 0, end)) > 0:
        yield text[:end].rstrip(), text[end + 1 :].rpartition("#")[2].strip()


def _find(connection: IndexConnection, text: str) -> list[Document]:
    """Return what the first way to read `text` finds: what names a note exactly goes before what only resembles it."""
    if not text:
        return []
    for look in (documents.find_by_identity, _by_path, _by_name, _by_part_of_id, _by_statement, _by_first_heading):
        if found := look(connection, text):
            return found
    return []


def _by_path(connection: IndexConnection, text: str) -> list[Document]:
    """Return notes by path in any case, with or without its ending, or by the end of it, as links give it."""
    given = text.replace("\\", "/").removeprefix("./").strip("/")
    forms = (given, without_ending(given))  # `x.md` names x.md.md too
    keys = {name_key(form) for form in forms}
    called = documents.list_called(connection, [form.rpartition("/")[2] for form in forms])
    paths = {each: name_key(without_ending(each)) for each in called}
    meant = [each for each in called if paths[each] in keys]
    meant = [each for each in meant if without_ending(each) in forms] or meant
    meant = meant or [each for each in called for key in keys if "/" in key and paths[each].endswith(f"/{key}")]
    return documents.find_documents(connection, "path IN (SELECT value FROM json_each(?))", (json.dumps(meant),))


def _by_name(connection: IndexConnection, text: str) -> list[Document]:
    """Return the notes that are called so: the file name goes before an alias or a title, as it does in a link."""
    name = without_ending(text)
    found = documents.find_by_name(connection, name)
    by_file = [each for each in found if name_key(note_name(each.path)) == name_key(name)]
    return [each for each in by_file if note_name(each.path) == name] or by_file or found


def _by_part_of_id(connection: IndexConnection, text: str) -> list[Document]:
    if not _MIN_ID_PART <= len(text) <= _MAX_ID_LENGTH:
        return []
    escaped = text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return documents.find_documents(
        connection,
        "id <> path AND (lower(id) LIKE ? ESCAPE '\\' OR lower(id) LIKE ? ESCAPE '\\')",
        (f"{escaped}%", f"%{escaped}"),
    )


def find_survivor(connection: IndexConnection, document: Document, *merged: int) -> Document | None:
    """Return the fact that `document` was merged into, itself if it was not; None if that no longer holds. `merged` are
    the documents that led to this one.
    """
    if document.valid_until is not None and (merged or document.superseded_by is not None):
        return None
    if document.superseded_by is None or document.doc_id in merged:
        return document if document.superseded_by is None else None
    for each in documents.find_by_reference(connection, document.superseded_by):
        if each.kind == "fact" and each.owner == document.owner:
            return find_survivor(connection, each, *merged, document.doc_id)
    return None


def _by_statement(connection: IndexConnection, text: str) -> list[Document]:
    """Return the facts that say exactly this; case, white space and a final full stop make no difference."""
    wanted = _statement_key(_SHOWN_LINK.sub(r"\1", text))
    said = documents.list_openings(connection, "= 'fact'")
    doc_ids = [doc_id for doc_id, _, _, statement in said if _statement_key(statement) == wanted]
    found = documents.find_documents(connection, _AMONG, (json.dumps(doc_ids),))
    return [each for each in found if each.superseded_by is None] or found


def _by_first_heading(connection: IndexConnection, text: str) -> list[Document]:
    """Return the notes that begin with this heading: what is their title where files are named by a number."""
    wanted = name_key(text)
    doc_ids = []
    for doc_id, title, context, _ in documents.list_openings(connection, "NOT IN ('fact', 'entity', 'episode')"):
        headings = name_key(context).removeprefix(f"{name_key(title)} > ")
        if wanted in accumulate(headings.split(" > "), "{} > {}".format):  # ` > ` may be part of the first heading
            doc_ids.append(doc_id)
    return documents.find_documents(connection, _AMONG, (json.dumps(doc_ids),))


def _statement_key(text: str) -> str:
    return name_key(text).rstrip(".")


def _describe(connection: IndexConnection, meant: Meant) -> tuple[str, str]:
    """Return (reference, text) of one choice: the reference names this note alone."""
    document, part = meant.document, meant.heading
    if meant.turn is not None:
        part = f"t{meant.turn}"
    text = documents.text_of(connection, document.doc_id) if document.kind == Kind.FACT else document.title
    shown = " ".join(text.split())
    shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN].rstrip()} …"
    # An id may be used twice; then the path tells them apart.
    is_unique = len(documents.find_by_identity(connection, document.id)) == 1
    name = document.id if is_unique else document.path
    return (f"{name}#{part}" if part else name), f"{document.type or document.kind}: {shown}"
