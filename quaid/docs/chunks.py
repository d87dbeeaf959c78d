"""Cut a document into passages, which are shown, and chunks, by which they are found.

A passage is the markdown under one heading, short enough to be read, with its lines. A chunk is as much plain text as
an embedding model reads, because one vector for a long text finds less. A passage is scored by its best chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import PurePosixPath

from quaid.model import CONFLICT_PROBLEM, Chunk, Kind, Note, ParsedDoc, Passage
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN
from quaid.redaction import admit
from quaid.vault import files, frontmatter, markdown, notes
from quaid.vault.headings import Block, split_blocks, split_paragraphs

MARKDOWN_ENDINGS = frozenset({".md", ".markdown", ".mkd", ".mdown", ".mdx", ".qmd", ".rmd"})
"""Other files are plain text."""
CHUNK_TOKENS, OVERLAP_TOKENS = 800, 100
"""The maximum length of a passage, tables and code blocks aside, and the overlap of two that were one section."""
SHARED_PART = 4
"""Adjacent sections share a passage of up to this part of the maximum: a sentence under a heading needs no passage of
its own, but a passage about several things is found for all of them and answers none.
"""
MAX_TITLE = 200
_NEWLINE = re.compile(r"\r\n?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, or a part of one that fits, under its heading. A `whole` one is never split."""

    path: tuple[str, ...]
    first: int
    last: int
    text: str
    whole: bool
    plain: str


_Section = tuple[tuple[str, ...], list[_Piece]]
"""The path of a heading, and the pieces directly below it."""


def parse_doc(doc_id: str, project: str, data: bytes, max_bytes: int) -> ParsedDoc:
    """Parse a document; only its first `max_bytes` are searched. `note.problems` are sentences about what is odd."""
    text, problems = notes.decode(data, max_bytes)
    # Before the text is cut: half of a key would not be recognised.
    safe = admit(_NEWLINE.sub("\n", text), keep_lines=True)
    place = PurePosixPath(doc_id.removeprefix(f"{project}:"))
    is_markdown = place.suffix.lower() in MARKDOWN_ENDINGS
    start = frontmatter.body_start(safe.text) if is_markdown else 0
    fields = frontmatter.parse(safe.text).fields if start else {}
    body = safe.text[start:].removeprefix("\ufeff")
    if markdown.has_conflict_markers(body):
        problems += (CONFLICT_PROBLEM,)
    split = split_blocks if is_markdown else split_paragraphs
    sections = _sections(split(body.split("\n"), safe.text.count("\n", 0, start) + 1))
    headings = (name for path, _ in sections for name in path[:1])
    named = fields.get("title")
    title = " ".join((named if isinstance(named, str) else next(headings, "")).split())[:MAX_TITLE] or place.stem
    # The words of its path are searched too: `docs/recall.md` -> docs, recall.
    words = [*place.parent.parts, place.stem]
    for key in ("keywords", "tags", "description"):
        value = fields.get(key)
        words += [word for word in (value if isinstance(value, list) else [value]) if isinstance(word, str)]
    passages, chunks = _Cutter().cut(sections, title, " ".join(words))
    if safe.redacted:
        problems += (f"secrets in it are not searched: {', '.join(dict.fromkeys(safe.redacted))}",)
    owner, privacy = read_ownership(place.name, data)
    note = Note(
        rel_path=doc_id, content_hash=notes.content_hash(data), kind=Kind.DOC, id=doc_id, title=title, text="",
        chunks=chunks, owner=owner, privacy=privacy, project=project, names=(place.stem,), problems=problems,
    )  # fmt: skip
    return ParsedDoc(note, passages, safe.redacted)


def read_ownership(path: str, data: bytes) -> tuple[str, str]:
    """Return (owner, privacy) of a document: it is shared unless its head makes it private."""
    if PurePosixPath(path).suffix.lower() in MARKDOWN_ENDINGS and files.may_state_owner(data):
        text, _ = notes.decode(data, len(data))
        head = frontmatter.parse(text)
        # Without a head, lines about owners and private parts describe software.
        is_sound = notes.is_sound(head) or not text.lstrip("\ufeff\r\n ").startswith("---")
        owner, privacy = notes.read_ownership(text, head.fields, is_sound=is_sound)
        if privacy == "private":
            return owner or "default", privacy
    return "default", "shared"


# -- sections ----------------------------------------------------------------------------------------------------------


def _sections(blocks: Iterable[Block]) -> list[_Section]:
    """Split a document at its headings. One that is directly followed by a deeper heading belongs to that section."""
    found: list[_Section] = []
    above: list[tuple[int, str]] = []
    pieces: list[_Piece] = []
    bare: list[_Piece] = []

    def path() -> tuple[str, ...]:
        return tuple(title for _, title in above if title)

    def close(level: int) -> None:
        """End the section before a heading of `level`, or at the end of the document (0)."""
        has_text = any(piece.plain for piece in pieces)
        if not has_text and (not above or level > above[-1][0]):
            bare.extend(pieces)
        elif pieces:
            if not has_text and above[-1][1]:  # a heading without text is found by its own words
                pieces[0] = replace(pieces[0], path=path()[:-1], plain=above[-1][1])
            found.append((path(), [*bare, *pieces]))
            bare.clear()
        pieces.clear()

    for block in blocks:
        if block.kind == "heading":
            close(block.level)
            del above[next((i for i, (depth, _) in enumerate(above) if depth >= block.level), len(above)) :]
            above.append((block.level, markdown.plain(block.title)[:MAX_TITLE].strip()))
        pieces.append(_Piece(path(), block.first, block.last, block.text, block.kind != "text", _plain(block)))
    close(0)
    return [*found, ((), bare)] if bare else found


def _plain(block: Block) -> str:
    """Return the searched text of a block; empty for a heading, which is the context of what is below it."""
    lines = block.text.split("\n")
    match block.kind:
        case "heading":
            return ""
        case "fence":
            return "\n".join(lines[1:-1])
        case "table":
            rows = [lines[0], *lines[2:]]
            return markdown.plain("\n".join(row.strip(" \t|") for row in rows))
        case "text":
            return markdown.plain(block.text)


# -- passages ----------------------------------------------------------------------------------------------------------


class _Cutter:
    """Cuts documents into passages of `limit` characters, each repeating up to `overlap` of the one before it."""

    def __init__(self) -> None:
        self._limit = CHUNK_TOKENS * CHARACTERS_PER_TOKEN
        self._overlap = OVERLAP_TOKENS * CHARACTERS_PER_TOKEN

    def cut(
        self, sections: Sequence[_Section], title: str, keywords: str
    ) -> tuple[tuple[Passage, ...], tuple[Chunk, ...]]:
        passages: list[Passage] = []
        chunks: list[Chunk] = []
        for heading, pieces in self._join(sections):
            for repeated, own in self._cut(pieces):
                shown = [*repeated, *own]
                passages.append(Passage(len(passages), heading, _text(shown), shown[0].first, shown[-1].last))
                for context, text in _searched(own, title):
                    chunks.append(Chunk(len(chunks), text, context, keywords, passage=passages[-1].ordinal))
        return tuple(passages), tuple(chunks)

    def _join(self, sections: Sequence[_Section]) -> Iterator[tuple[tuple[str, ...], list[_Piece]]]:
        """Yield passages before they are cut, with their headings: small adjacent sections are joined."""
        heading: tuple[str, ...] = ()
        parent: tuple[str, ...] | None = None
        pieces: list[_Piece] = []
        size = 0
        for path, added in sections:
            above = path[:-1]
            is_kin = above == (parent if parent is not None else heading) or (parent is None and above == heading[:-1])
            if pieces and is_kin and size + _size(added) <= self._limit // SHARED_PART:
                heading = parent = above
                pieces.extend(added)
                size += _size(added)
                continue
            if pieces:
                yield heading, pieces
            heading, parent = path, None
            pieces, size = [*added], _size(added)
        if pieces:
            yield heading, pieces

    def _cut(self, pieces: Sequence[_Piece]) -> Iterator[tuple[list[_Piece], list[_Piece]]]:
        """Cut a section; yield (pieces repeated from the passage before, new pieces) of each passage."""
        headings = _size([piece for piece in pieces if piece.whole and not piece.plain])
        repeated: list[_Piece] = []
        own: list[_Piece] = []
        size = 0
        has_text = False
        for piece in _fitting(pieces, max(self._limit - headings, self._limit // 2)):
            if not has_text and size + len(piece.text) > self._limit:  # new text takes the place of repeated text
                repeated, size = [], _size(own)
            # A heading stays with the text below it, even if that is too long for any passage.
            is_cut = has_text or (own and len(piece.text) <= self._limit)
            if is_cut and size + len(piece.text) > self._limit:
                yield repeated, own
                repeated = _end_of(own, self._overlap)
                if _size(repeated) + len(piece.text) > self._limit:
                    repeated = []
                own, has_text = [], False
                size = _size(repeated)
            own.append(piece)
            size += len(piece.text) + len(_SEPARATOR)
            has_text |= bool(piece.plain) or not piece.whole
        if own:
            yield repeated, own


def _searched(own: Sequence[_Piece], title: str) -> Iterator[tuple[str, str]]:
    """Yield (context, text) of the chunks of a passage, without what it repeats."""
    for path, pieces in groupby((piece for piece in own if piece.plain.strip()), key=lambda piece: piece.path):
        context = " > ".join(dict.fromkeys((title, *path)))
        for text in markdown.split_text("\n\n".join(piece.plain for piece in pieces)):
            yield context, text


def _fitting(pieces: Iterable[_Piece], limit: int) -> Iterator[_Piece]:
    """Yield the pieces; a text that is too long in lines, a line that is too long in sentences."""
    for piece in pieces:
        if piece.whole or len(piece.text) <= limit:
            yield piece
            continue
        for number, line in enumerate(piece.text.split("\n"), piece.first):
            # The last part may be a quarter longer than the others.
            for part in markdown.split_text(line, limit * 4 // 5) if len(line) > limit else [line] * bool(line.strip()):
                yield _part(piece, number, part)


def _part(piece: _Piece, line: int, text: str) -> _Piece:
    return _Piece(piece.path, line, line, text, whole=False, plain=markdown.plain(text))


def _end_of(own: Sequence[_Piece], room: int) -> list[_Piece]:
    """Return the last pieces, lines or sentences of a passage in at most `room` characters."""
    taken: list[_Piece] = []
    for piece in reversed(own):
        if len(piece.text) + len(_SEPARATOR) <= room and piece.plain:
            taken.append(piece)
            room -= len(piece.text) + len(_SEPARATOR)
            continue
        if not piece.whole:
            taken += _last_lines(piece, room, may_cut=not taken)
        break
    return taken[::-1]


def _last_lines(piece: _Piece, room: int, *, may_cut: bool) -> list[_Piece]:
    """Return whole lines from the end, last first; with `may_cut` the end of the last one if that is too long."""
    taken: list[_Piece] = []
    lines = piece.text.split("\n")
    for number, line in zip(range(piece.last, piece.last - len(lines), -1), reversed(lines), strict=True):
        if len(line) + len(_SEPARATOR) > room:
            if may_cut and not taken:
                end = line[len(line) - room :] if room else ""
                sentences = _SENTENCE.split(end, maxsplit=1)
                part = sentences[1] if len(sentences) > 1 else end.partition(" ")[2]
                taken += [_part(piece, number, part)] * bool(part.strip())
            break
        taken.append(_part(piece, number, line))
        room -= len(line) + len(_SEPARATOR)
    return taken


def _text(pieces: Sequence[_Piece]) -> str:
    """Join pieces as in the document: with a blank line where there was one, words of one line with a blank."""
    parts = [pieces[0].text]
    for before, piece in pairwise(pieces):
        distance = piece.first - before.last
        parts += [" " if distance <= 0 else "\n" if distance == 1 else _SEPARATOR, piece.text]
    return "".join(parts)


def _size(pieces: Sequence[_Piece]) -> int:
    """Return the maximum characters of these pieces."""
    return sum(len(piece.text) + len(_SEPARATOR) for piece in pieces)
