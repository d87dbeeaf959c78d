"""Three versions of a file of the vault into one, by what kind of note it is."""

from __future__ import annotations

import re
from itertools import product
from typing import Literal, NamedTuple

from quaid.vault import frontmatter
from quaid.vault.frontmatter import FrontmatterBrokenError
from quaid.vault.merging.bodies import list_sentences, merge_bodies, merge_turns
from quaid.vault.merging.heads import merge_heads
from quaid.vault.merging.sequences import choose

DISPUTED = "disputed"
"""The key of a fact that lists the statements of which only one is true."""
MAX_BYTES = 4_000_000
_OTHER = re.compile(r"^%%merged: [^\n]*%%[ \t]*\n?", re.MULTILINE)
"""A value that was not chosen; markdown shows it to nobody, git and an editor do."""
_ALIKE = 0.4
"""The share of words that two statements about one thing have in common."""


_JOURNAL = re.compile(r"(?:.*/)?journal/(?:archive/)?[^/]+\.md")
_BY_NAME = re.compile(
    r"(?:.*/)?snippets/[^/]+\.snippets\.md|(?:.*/)?review/[^/]+\.md|(?:.*/)?projects/[^/]+/PROJECT\.md"
    r"|(?:SOUL|USER|MEMORY|AGENTS)\.md"
)
_Shape = Literal["fact", "note", "journal", "episode"]


class _Text(NamedTuple):
    """A file as it is merged: with bare newlines and without a byte order mark."""

    bom: str
    newline: str
    text: str


def merge_note(base: bytes, ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Return the file at `path` with the changes of both sides to `base`, which is empty where both have added it.

    None where only lines can be compared: it is no note of Quaid's, or its head or bytes cannot be read without
    guessing.
    """
    if ours in (theirs, base) or theirs == base:
        return choose(base, ours, theirs)
    if max(map(len, (base, ours, theirs))) > MAX_BYTES:
        return None
    try:
        if path.endswith(".tsv"):
            return _merge_ledgers(ours, theirs, path)
        texts = [_read(data) for data in (base, ours, theirs)]
        merged = _merge_texts(texts[0].text, texts[1].text, texts[2].text, path)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    if merged is None:
        return None
    newline = choose(*(each.newline for each in texts))
    return (choose(*(each.bom for each in texts)) + merged.replace("\n", newline or "\n")).encode()


def _merge_texts(base: str, ours: str, theirs: str, path: str) -> str | None:
    shapes = {_shape_of(path, text) for text in (base, ours, theirs) if text}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None:
        return None
    starts = [frontmatter.body_start(text) for text in (base, ours, theirs)]
    bodies = [text[start:] for text, start in zip((base, ours, theirs), starts, strict=True)]
    kept = [set(_OTHER.findall(body)) for body in bodies]
    bodies = [f"{_OTHER.sub('', body).rstrip()}\n" if other else body for body, other in zip(bodies, kept, strict=True)]
    body = merge_turns(*bodies) if shape == "episode" else merge_bodies(*bodies, newest_first=shape == "journal")
    disputed = _list_disputed(*bodies) if shape == "fact" and bodies[1] != bodies[2] else []
    head = merge_heads(base, ours, theirs, {DISPUTED: disputed} if disputed else None)
    written = {line.rstrip() for line in (kept[0] & kept[1] & kept[2]) | (kept[1] - kept[0]) | (kept[2] - kept[0])}
    written |= {f"%%merged: {name}: {' '.join(value.split()).replace('%%', '% %')}%%" for name, value in head.other}
    if not written:
        return head.text + body
    return head.text + "\n".join([*([body.rstrip(), ""] if body.strip() else []), *sorted(written), ""])


def _shape_of(path: str, text: str) -> _Shape | None:
    """How a note is cut into parts; None for any other file, of which only the lines are known.

    What a note is and to whom it belongs is for layout.py to say, which a merge has no time to import. A mistake here
    costs nothing but form.
    """
    if not path.endswith(".md") or ("<<<<<<<" in text and ">>>>>>>" in text):
        return None
    fields = frontmatter.parse(text).fields
    if fields.get("type") == "episode" and "session" in fields:
        return "episode"
    if "id" in fields and "type" in fields:
        return "fact" if "status" in fields or "confidence" in fields else "note"
    return "journal" if _JOURNAL.fullmatch(path) else "note" if _BY_NAME.fullmatch(path) else None


def _list_disputed(base: str, ours: str, theirs: str) -> list[str]:
    """Return the statements that one side made, with those of the other side that cannot be true beside them."""
    from quaid.claims import Reading, difference, is_about_others
    from quaid.vault import markdown

    said = [dict.fromkeys(map(markdown.plain, list_sentences(body))) for body in (base, ours, theirs)]
    is_replaced = not said[0].keys() <= said[1].keys() | said[2].keys()
    new = [
        [text for text in side if text not in said[0] and text not in other] for side, other in (said[1:], said[:0:-1])
    ]
    disputed: set[str] = set()
    for one, other in product(*new):
        words, others = Reading(one).words, Reading(other).words
        is_alike = len(words & others) >= _ALIKE * len(words | others)
        if (is_replaced or is_alike) and difference(one, other) and not is_about_others(one, other):
            disputed |= {one, other}
    return sorted(disputed)


def _read(data: bytes) -> _Text:
    """Raises:
    UnicodeDecodeError: it is not UTF-8, or no text.
    """
    text = data.decode("utf-8")
    if "\0" in text:
        raise UnicodeDecodeError("utf-8", data, data.index(0), data.index(0) + 1, "it is not text")
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    lines = text.count("\n")
    newline = ("\r\n" if text.count("\r\n") == lines else "\n") if lines else ""
    return _Text(bom, newline, text.removeprefix(bom).replace("\r\n", "\n") if newline == "\r\n" else text[len(bom) :])


def _merge_ledgers(ours: bytes, theirs: bytes, path: str) -> bytes | None:
    """Of one device's two counters for a memory the later one holds all that the other knew."""
    from quaid.vault import ledger

    sides = [ledger.parse_ledger(data) for data in (ours, theirs)]
    if any(side.broken for side in sides) or "usage" not in path.split("/"):
        return None
    return ledger.render_ledger(ledger.merge_versions(sides[0].rows, sides[1].rows))
