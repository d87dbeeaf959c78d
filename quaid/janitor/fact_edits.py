"""Edits of facts that change nothing else of their notes: approve, rewrite, merge …

Nothing here deletes what was known: a fact that another one replaces stays, with the name of the other and the day it
ended, and links to it still resolve. Pure functions of the bytes they are given. They raise FrontmatterBrokenError or
UnicodeDecodeError for a note that cannot be edited safely.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from quaid.capture.facts import read_number, supersede
from quaid.index.documents import Document
from quaid.model import PRIVACIES, SOURCES, Edge, Edit, name_key
from quaid.vault import frontmatter, markdown, notes
from quaid.vault.frontmatter import FrontmatterBrokenError

UNSAFE = (FrontmatterBrokenError, UnicodeDecodeError)
"""Raised for a note that cannot be edited safely; `quaid doctor` names it."""
Fields = Mapping[str, frontmatter.Value | None]
_LINE = re.compile(r"[^\n]+\n?|\n")
_HEADING = re.compile(r"\ufeff? {0,3}#{1,6}(?:\s|$)")
_LEAD = re.compile(r"\ufeff?[ \t]*(?:>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)*")
_BLOCK_ID = re.compile(r"(?<!\s)\s+\^[A-Za-z0-9-]+\s*\Z")
_BY_TRUST = ("tool", "import", "assistant", "user")
_DEFAULTS = {"status": "active", "privacy": "private", "confirmations": "0"}
_LISTS = ("turns", "keywords", "tags")


def set_fields(rel_path: str, data: bytes, changes: Fields) -> Edit:
    """Change some keys of a head, and nothing else."""
    return Edit(rel_path, data, frontmatter.set_fields(data.decode("utf-8"), changes).encode())


def changed_period(before: Document, after: Document) -> dict[str, str | None]:
    """Return the changes to a head after which a fact holds when `after` does."""
    ends = ("valid_from", "valid_until")
    return {end: getattr(after, end) for end in ends if getattr(after, end) != getattr(before, end)}


def rewrite(rel_path: str, data: bytes, statement: str, changes: Fields | None = None) -> Edit:
    """Reword the claim; edges, citations and the owner's own text around it stay."""
    text = data.decode("utf-8")
    wanted = dict(changes or {})
    old = notes.split_body(text)[1]
    cited = [f"[[{turn.episode}#^t{turn.turn}]]" for turn in markdown.citations([old[slice(*statement_span(old))]])]
    if cited:  # they are in the words that are replaced
        listed = wanted if "turns" in wanted else frontmatter.parse(text).fields
        wanted["turns"] = _union([listed, {"turns": cited}], "turns")
    head, body = notes.split_body(frontmatter.set_fields(text, wanted) if wanted else text)
    start, end = statement_span(body)
    newline = notes.newline_of(text)
    gap = newline * (2 if body[end:].strip() else not body[end:]) if start == end else ""
    return Edit(rel_path, data, f"{head}{body[:start]}{statement}{gap}{body[end:]}".encode())


def statement_span(body: str) -> tuple[int, int]:
    """Return the span of the claim in a fact's body: its first paragraph that is no heading, edge or comment, without
    the mark of a list before it or a block id after it. For a body without one, (place, place) is where it belongs.
    """
    shown = markdown.blank(body, "comment")
    lines: list[tuple[int, int]] = []
    for line in _LINE.finditer(shown):
        if line[0].strip() and not _HEADING.match(line[0]) and markdown.without_edges(line[0]).strip():
            lines.append(line.span())
        elif lines:
            break
    if not lines:
        place = len(body) - len(body.lstrip("\ufeff\r\n"))
        return place, place
    start, end = lines[0][0], lines[-1][1]
    lead = _LEAD.match(shown, start)
    start = lead.end() if lead else start
    block_id = _BLOCK_ID.search(shown, start, end)
    return start, block_id.start() if block_id else len(shown[:end].rstrip())


def remove_edges(rel_path: str, data: bytes, edges: Sequence[Edge], own: str | None = None) -> Edit:
    """Remove the lines with these edges from a note, and nothing else. A line without a subject is about `own`."""
    gone = {_edge_key(edge) for edge in edges}
    head, body = notes.split_body(data.decode("utf-8"))
    lines = body.splitlines(keepends=True)
    rest = (line for line in lines if not any(_edge_key(edge) in gone for edge in markdown.edges(line, own)))
    return Edit(rel_path, data, f"{head}{''.join(rest)}".encode() if gone else data)


def add_edges(rel_path: str, data: bytes, edges: Iterable[Edge]) -> Edit:
    """Add lines with the edges that a note does not have yet, as a list at its end."""
    text = data.decode("utf-8")
    known = {_edge_key(edge) for edge in markdown.edges(notes.split_body(text)[1])}
    for edge in edges:
        if _edge_key(edge) in known:
            continue
        known.add(_edge_key(edge))
        text = notes.append_edge(text, edge)
    return Edit(rel_path, data, text.encode())


def merge(
    winner: tuple[str, bytes],
    losers: Sequence[tuple[str, bytes]],
    statement: str | None = None,
    period: Fields | None = None,
) -> tuple[Edit, ...]:
    """Make one fact of several: all edits or none.

    The winner keeps its id, owner and session. It gets the highest confidence, the sum of the confirmations and one for
    each loser, all citations, keywords, tags and edges; it is as private as the most private of them, and active unless
    nobody has reviewed any of them. A new `statement` comes from the least trusted of their sources. `period` are the
    changes to when it holds. The losers stay, superseded by it.
    """
    path, data = winner
    parsed = [frontmatter.parse(each.decode("utf-8")) for each in (data, *(each for _, each in losers))]
    heads = [head.fields for head in parsed]
    merged = _merge_heads(heads, statement)
    changes: dict[str, frontmatter.Value | None] = {k: v for k, v in merged.items() if v != _value(heads[0], k)}
    changes |= period or {}
    edit = rewrite(path, data, statement, changes) if statement else set_fields(path, data, changes)
    edges = [edge for head in parsed[1:] for edge in markdown.edges(head.body)]
    linked = add_edges(path, edit.after or b"", edges)
    superseded = (supersede(loser, each, path, None) for loser, each in losers)
    return (Edit(path, data, linked.after), *superseded)


def _merge_heads(heads: Sequence[Mapping[str, object]], statement: str | None) -> dict[str, frontmatter.Value]:
    """Return the changes to the head of the first of several facts when it replaces all of them."""
    changes: dict[str, frontmatter.Value] = {
        "confirmations": sum(int(read_number(head.get("confirmations"), 0)) for head in heads) + len(heads) - 1
    }
    certain = [read_number(head["confidence"], 0.0) for head in heads if head.get("confidence")]
    if certain:
        changes["confidence"] = round(max(certain), 3)
    if any(_value(head, "status") != "pending" for head in heads):
        changes["status"] = "active"
    changes["privacy"] = _first_of(PRIVACIES, [_value(head, "privacy") for head in heads])
    if statement and all(head.get("source") in SOURCES for head in heads):
        changes["source"] = _first_of(_BY_TRUST, [head["source"] for head in heads])
    return changes | {key: found for key in _LISTS if (found := _union(heads, key))}


def _value(head: Mapping[str, object], key: str) -> object:
    """Return the value in a head, or its default, in the form in which `_merge_heads` gives it."""
    if key in _LISTS:
        return _union([head], key)
    value = head.get(key) or _DEFAULTS.get(key)
    return read_number(value, math.nan) if key in {"confidence", "confirmations"} else value


def _first_of(order: Sequence[str], values: Sequence[object]) -> str:
    """Return the value that comes first in `order`; values that are not in it come last."""
    return str(min(values, key=lambda value: order.index(value) if value in order else len(order)))


def _edge_key(edge: Edge) -> tuple[str, str, str]:
    return name_key(edge.subject), edge.relation, name_key(edge.object)


def _union(heads: Iterable[Mapping[str, object]], key: str) -> list[str]:
    items = (item for head in heads for item in frontmatter.read_items(head.get(key)))
    return list(dict.fromkeys(filter(None, items)))
