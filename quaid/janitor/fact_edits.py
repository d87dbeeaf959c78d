"""Edits of facts that change nothing else of their notes: approve, rewrite, merge …

Nothing here deletes what was known: a fact that another one replaces stays, says by which and until when, and links to
it still resolve. Pure functions of the bytes they are given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from quaid.capture.fact_note import read_number, supersede
from quaid.model import PRIVACIES, SOURCES, Edge, Edit, name_key
from quaid.vault import frontmatter, markdown, notes

Fields = Mapping[str, frontmatter.Value | None]

_LINE = re.compile(r"[^\n]+\n?|\n")
_HEADING = re.compile(r"\ufeff? {0,3}#{1,6}(?:\s|$)")
_LEAD = re.compile(r"\ufeff?[ \t]*(?:>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)*")
_BLOCK_ID = re.compile(r"(?<!\s)\s+\^[A-Za-z0-9-]+\s*\Z")


def set_fields(rel_path: str, data: bytes, changes: Fields) -> Edit:
    """Change some keys of a head, and nothing else.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note cannot be edited safely.
    """
    return Edit(rel_path, data, frontmatter.set_fields(data.decode("utf-8"), changes).encode())


def set_status(rel_path: str, data: bytes, status: str) -> Edit:
    """Change the status of a fact, and nothing else.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note cannot be edited safely.
    """
    return set_fields(rel_path, data, {"status": status})


def rewrite(rel_path: str, data: bytes, statement: str, changes: Fields | None = None) -> Edit:
    """Reword the claim; edges, citations and the owner's own text around it stay.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note cannot be edited safely.
    """
    text = data.decode("utf-8")
    wanted = dict(changes or {})
    old = notes.split_body(text)[1]
    cited = [f"[[{turn.episode}#^t{turn.turn}]]" for turn in markdown.citations([old[slice(*statement_span(old))]])]
    if cited:  # they stood in the words that go
        listed = wanted if "turns" in wanted else frontmatter.parse(text).fields
        wanted["turns"] = _union([listed, {"turns": cited}], "turns")
    head, body = notes.split_body(frontmatter.set_fields(text, wanted) if wanted else text)
    start, end = statement_span(body)
    newline = notes.newline_of(text)
    behind = newline * (2 if body[end:].strip() else not body[end:]) if start == end else ""
    return Edit(rel_path, data, f"{head}{body[:start]}{statement}{behind}{body[end:]}".encode())


def statement_span(body: str) -> tuple[int, int]:
    """The span of a fact's body that says its claim: its first paragraph, headings, edges and comments aside, without
    the mark of a list before it or a block id behind it. (place, place) is where it would stand in a body without one.
    """
    shown = markdown.blank(body, "comment")
    said: list[tuple[int, int]] = []
    for line in _LINE.finditer(shown):
        if line[0].strip() and not _HEADING.match(line[0]) and markdown.without_edges(line[0]).strip():
            said.append(line.span())
        elif said:
            break
    if not said:
        place = len(body) - len(body.lstrip("\ufeff\r\n"))
        return place, place
    start, end = said[0][0], said[-1][1]
    lead = _LEAD.match(shown, start)
    start = lead.end() if lead else start
    block_id = _BLOCK_ID.search(shown, start, end)
    return start, block_id.start() if block_id else len(shown[:end].rstrip())


def remove_edges(rel_path: str, data: bytes, edges: Sequence[Edge]) -> Edit:
    """Take the lines with these edges out of a note, and nothing else.

    Raises:
        UnicodeDecodeError: the note is not text.
    """
    gone = {_edge_key(edge) for edge in edges}
    head, body = notes.split_body(data.decode("utf-8"))
    lines = body.splitlines(keepends=True)
    kept = (line for line in lines if not any(_edge_key(edge) in gone for edge in markdown.edges(line)))
    return Edit(rel_path, data, f"{head}{''.join(kept)}".encode() if gone else data)


def add_edges(rel_path: str, data: bytes, edges: Iterable[Edge]) -> Edit:
    """Add lines with those of `edges` that a note does not have yet, as a list at its end.

    Raises:
        UnicodeDecodeError: the note is not text.
    """
    text = data.decode("utf-8")
    known = {_edge_key(edge) for edge in markdown.edges(notes.split_body(text)[1])}
    for edge in edges:
        if _edge_key(edge) in known:
            continue
        known.add(_edge_key(edge))
        lines = text.rstrip().splitlines()
        if lines and not lines[-1].startswith("- "):
            text = text.rstrip("\r\n") + notes.newline_of(text) * 2
        text = notes.append_line(text, notes.edge_line(edge))
    return Edit(rel_path, data, text.encode())


def merge(
    winner: tuple[str, bytes], losers: Sequence[tuple[str, bytes]], statement: str | None = None
) -> tuple[Edit, ...]:
    """Make one fact of several: all edits or none.

    The winner keeps its id, owner and session. It gets the highest confidence, the sum of the confirmations and one for
    each loser, all citations, keywords, tags and edges; it is as private as the most private of them, and active unless
    nobody has reviewed any of them. With a new `statement` it comes from the least certain of their sources. The losers
    stay, superseded by it.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: one of the notes cannot be edited safely.
    """
    path, data = winner
    parsed = [frontmatter.parse(each.decode("utf-8")) for each in (data, *(each for _, each in losers))]
    heads = [head.fields for head in parsed]
    changes = {key: value for key, value in _merged(heads, statement).items() if value != _value(heads[0], key)}
    edit = rewrite(path, data, statement, changes) if statement else set_fields(path, data, changes)
    edges = [edge for head in parsed[1:] for edge in markdown.edges(head.body)]
    linked = add_edges(path, edit.after or b"", edges)
    superseded = (supersede(loser, each, path, None) for loser, each in losers)
    return (Edit(path, data, linked.after), *superseded)


def _merged(heads: Sequence[Mapping[str, object]], statement: str | None) -> dict[str, frontmatter.Value]:
    """The changes to the head of the first of several facts when it stands for all of them."""
    changes: dict[str, frontmatter.Value] = {
        "confirmations": sum(int(read_number(head.get("confirmations"), 0)) for head in heads) + len(heads) - 1
    }
    certain = [read_number(head["confidence"], 0.0) for head in heads if head.get("confidence")]
    if certain:
        changes["confidence"] = round(max(certain), 3)
    if any(_value(head, "status") != "pending" for head in heads):
        changes["status"] = "active"
    private = min((_value(head, "privacy") for head in heads), key=_place_in(PRIVACIES))
    changes["privacy"] = str(private)
    if statement and all(head.get("source") in SOURCES for head in heads):
        changes["source"] = str(min((head["source"] for head in heads), key=_place_in(_BY_TRUST)))
    changes |= {key: found for key in ("turns", "keywords", "tags") if (found := _union(heads, key))}
    return changes


_BY_TRUST = ("tool", "import", "assistant", "user")
_USUAL = {"status": "active", "privacy": "private", "confirmations": "0"}


def _value(head: Mapping[str, object], key: str) -> object:
    """The value in a head, or what its silence means, in the form in which `_merged` gives it."""
    if key in {"turns", "keywords", "tags"}:
        return _union([head], key)
    value = head.get(key) or _USUAL.get(key)
    return read_number(value, math.nan) if key in {"confidence", "confirmations"} else value


def _place_in(order: Sequence[str]) -> Callable[[object], int]:
    """Return a sort key: the place of a value in `order`, and behind all of it what is not in it."""
    return lambda value: order.index(value) if isinstance(value, str) and value in order else len(order)


def _edge_key(edge: Edge) -> tuple[str, str, str]:
    return name_key(edge.subject), edge.relation, name_key(edge.object)


def _union(heads: Iterable[Mapping[str, object]], key: str) -> list[str]:
    found: list[str] = []
    for head in heads:
        value = head.get(key)
        if isinstance(value, str):
            found += [part.strip() for part in value.split(",")]
        for item in value if isinstance(value, list) else ():
            match item:
                case [[str(name)]]:  # an unquoted [[Link]]
                    found.append(f"[[{name}]]")
                case str():
                    found.append(item.strip())
    return list(dict.fromkeys(item for item in found if item))
