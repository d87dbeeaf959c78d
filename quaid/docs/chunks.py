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

from quaid.model import CONFLICT_PROBLEM, Chunk, Kind, Note, Passage
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN
from quaid.redaction import admit
from quaid.vault import files, frontmatter, markdown, notes
from quaid.vault.markdown import Block, split_blocks, split_paragraphs

MARKDOWN_ENDINGS = frozenset({".md", ".markdown", ".mkd", ".mdown", ".mdx", ".qmd", ".rmd"})
"""Other files are plain text."""
CHUNK_TOKENS, OVERLAP_TOKENS = 800, 100
"""The maximum length of a passage, tables and code blocks aside, and the overlap of two that were one section."""
MAX_TITLE = 200
_NEWLINE = re.compile(r"\r\n?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SEPARATOR = "\n\n"
_JOINED_PART = 4
"""Up to this part of the maximum, adjacent sections share a passage: a sentence under a heading needs no passage
alone, but a passage about several things is found for all of them and answers none.
"""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, or a part of one that fits, under its heading. A `whole` one is never split."""

    path: tuple[str, ...]
    first: int
    last: int
    text: str
    whole: bool
    plain: str


def parse_doc(doc_id: str, project: str, data: bytes, max_bytes: int) -> Note:
    """Parse a document; only its first `max_bytes` are searched. `problems` are sentences about what is odd."""
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
    sections = list(_split_sections(split(body.split("\n"), safe.text.count("\n", 0, start) + 1)))
    headings = (name for path, _ in sections for name in path[:1])
    named = fields.get("title")
    title = " ".join((named if isinstance(named, str) else next(headings, "")).split())[:MAX_TITLE] or place.stem
    # The words of its path are searched too: `docs/recall.md` -> docs, recall.
    words = [*place.parent.parts, place.stem]
    for key in ("keywords", "tags", "description"):
        value = fields.get(key)
        words += [word for word in (value if isinstance(value, list) else [value]) if isinstance(word, str)]
    passages: list[Passage] = []
    chunks: list[Chunk] = []
    limit, overlap = (tokens * CHARACTERS_PER_TOKEN for tokens in (CHUNK_TOKENS, OVERLAP_TOKENS))
    for heading, pieces in _join_small(sections, limit // _JOINED_PART):
        for repeated, own in _cut(pieces, limit, overlap):
            shown = [*repeated, *own]
            # As in the document: a blank line where there was one, words of one line with a blank between.
            gaps = (after.first - before.last for before, after in pairwise(shown))
            between = ["", *(" " if gap <= 0 else "\n" if gap == 1 else _SEPARATOR for gap in gaps)]
            text = "".join(f"{lead}{piece.text}" for lead, piece in zip(between, shown, strict=True))
            passages.append(Passage(len(passages), heading, text, shown[0].first, shown[-1].last))
            searched = (piece for piece in own if piece.plain.strip())  # without what is repeated
            for path, group in groupby(searched, key=lambda piece: piece.path):
                context = " > ".join(dict.fromkeys((title, *path)))
                for part in markdown.split_text("\n\n".join(piece.plain for piece in group)):
                    chunks.append(Chunk(len(chunks), part, context, " ".join(words), passage=passages[-1].ordinal))
    if safe.redacted:
        problems += (f"secrets in it are not searched: {', '.join(dict.fromkeys(safe.redacted))}",)
    owner, privacy = read_ownership(place.name, data)
    return Note(
        rel_path=doc_id, content_hash=notes.content_hash(data), kind=Kind.DOC, id=doc_id, title=title, text="",
        chunks=tuple(chunks), owner=owner, privacy=privacy, project=project, names=(place.stem,), problems=problems,
        passages=tuple(passages), redacted=safe.redacted,
    )  # fmt: skip


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


def _split_sections(blocks: Iterable[Block]) -> Iterator[tuple[tuple[str, ...], list[_Piece]]]:
    """Yield the path of each heading and the pieces directly below it. A heading that is directly followed by a deeper
    one belongs to that section.
    """
    above: list[tuple[int, str]] = []
    pieces: list[_Piece] = []
    bare: list[_Piece] = []
    path: tuple[str, ...] = ()
    for block in (*blocks, Block("heading", 0, 0, "")):
        if block.kind == "heading":
            has_text = any(piece.plain for piece in pieces)
            if not has_text and (not above or block.level > above[-1][0]):
                bare += pieces
            elif pieces:
                if not has_text and above[-1][1]:  # a heading without text is found by its own words
                    pieces[0] = replace(pieces[0], path=path[:-1], plain=above[-1][1])
                yield path, [*bare, *pieces]
                bare = []
            pieces = []
            title = markdown.plain(block.title)[:MAX_TITLE].strip()
            above = [*(outer for outer in above if outer[0] < block.level), (block.level, title)]
            path = tuple(title for _, title in above if title)
        pieces.append(_Piece(path, block.first, block.last, block.text, block.kind != "text", block.plain))
    if bare:
        yield (), bare


def _join_small(
    sections: Iterable[tuple[tuple[str, ...], list[_Piece]]], limit: int
) -> Iterator[tuple[tuple[str, ...], list[_Piece]]]:
    """Yield the sections, small adjacent ones as one."""
    heading: tuple[str, ...] = ()
    parent: tuple[str, ...] | None = None
    pieces: list[_Piece] = []
    for path, added in sections:
        above = path[:-1]
        is_kin = above == (parent if parent is not None else heading) or (parent is None and above == heading[:-1])
        if pieces and is_kin and _size([*pieces, *added]) <= limit:
            heading = parent = above
            pieces += added
            continue
        if pieces:
            yield heading, pieces
        heading, parent, pieces = path, None, [*added]
    if pieces:
        yield heading, pieces


# -- passages ----------------------------------------------------------------------------------------------------------


def _cut(pieces: Sequence[_Piece], limit: int, overlap: int) -> Iterator[tuple[list[_Piece], list[_Piece]]]:
    """Cut a section; yield (pieces repeated from the passage before, new pieces) of each passage."""
    headings = _size([piece for piece in pieces if piece.whole and not piece.plain])
    repeated: list[_Piece] = []
    own: list[_Piece] = []
    size = 0
    has_text = False
    for piece in _split_long(pieces, max(limit - headings, limit // 2)):
        if not has_text and size + len(piece.text) > limit:  # new text takes the place of repeated text
            repeated, size = [], _size(own)
        # A heading stays with the text below it, even if that is too long for any passage.
        is_cut = has_text or (own and len(piece.text) <= limit)
        if is_cut and size + len(piece.text) > limit:
            yield repeated, own
            repeated = _end_of(own, overlap)
            if _size(repeated) + len(piece.text) > limit:
                repeated = []
            own, has_text = [], False
            size = _size(repeated)
        own.append(piece)
        size += _size([piece])
        has_text |= bool(piece.plain) or not piece.whole
    if own:
        yield repeated, own


def _split_long(pieces: Iterable[_Piece], limit: int) -> Iterator[_Piece]:
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


def _end_of(own: Sequence[_Piece], left: int) -> list[_Piece]:
    """Return the last pieces of a passage, then lines, then sentences, in at most `left` characters."""
    taken: list[_Piece] = []
    for piece in reversed(own):
        is_whole = _size([piece]) <= left and piece.plain
        lines = piece.text.split("\n")
        numbered = zip(range(piece.last, piece.last - len(lines), -1), reversed(lines), strict=True)
        parts: Iterable[_Piece] = (
            [piece] if is_whole else (_part(piece, *line) for line in numbered) if not piece.whole else ()
        )
        for part in parts:
            if _size([part]) > left:
                if not taken and left:  # the end of a line that is too long
                    end = part.text[-left:]
                    sentences = _SENTENCE.split(end, maxsplit=1)
                    words = sentences[1] if len(sentences) > 1 else end.partition(" ")[2]
                    taken += [_part(piece, part.first, words)] * bool(words.strip())
                break
            taken.append(part)
            left -= _size([part])
        if not is_whole:
            break
    return taken[::-1]


def _size(pieces: Sequence[_Piece]) -> int:
    """Return the maximum characters of these pieces."""
    return sum(len(piece.text) + len(_SEPARATOR) for piece in pieces)
