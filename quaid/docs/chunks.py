"""Cut a document into passages, which are shown, and chunks, by which they are found.

A passage is the markdown under one heading, short enough to be read, with its lines. A chunk is as much plain text as
an embedding model reads, because one vector for a long text finds less. A passage is scored by its best chunk.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath

from quaid.docs import markup
from quaid.docs.markup import MARKDOWN_ENDINGS
from quaid.model import CONFLICT_PROBLEM, Chunk, Kind, Note, Passage
from quaid.recall.cutoff import CHARACTERS_PER_TOKEN
from quaid.redaction import admit
from quaid.vault import files, frontmatter, markdown, notes
from quaid.vault.markdown import Block

CHUNK_TOKENS, OVERLAP_TOKENS = 800, 100
"""The maximum length of a passage, tables and code blocks aside, and the overlap of two that were one section."""
MAX_TITLE = 200
_NEWLINE = re.compile(r"\r\n?")
_SEPARATOR = "\n\n"


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
    found = markup.read_blocks(place.name, body.split("\n"), safe.text.count("\n", 0, start) + 1)
    sections = list(_split_sections(found))
    headings = (path[0] for path, _ in sections if path)
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
    for path, blocks in sections:
        context = " > ".join(dict.fromkeys((title, *path)))
        for repeated, own in _cut(blocks, limit, overlap):
            shown = [*repeated, *own]
            text = _join(shown, (block.text for block in shown)).rstrip()
            passages.append(Passage(len(passages), path, text, shown[0].first, shown[-1].last))
            searched = [block for block in own if markup.plain(block).strip()]
            for part in markdown.split_text(_join(searched, map(markup.plain, searched))):
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


def _join(blocks: Sequence[Block], texts: Iterable[str]) -> str:
    """Return the texts of blocks as they are in the document: with a blank line where there is one."""
    gaps = (after.first - before.last for before, after in pairwise(blocks))
    between = ["", *("" if gap <= 0 else "\n" if gap == 1 else _SEPARATOR for gap in gaps)]
    return "".join(f"{lead}{text}" for lead, text in zip(between, texts, strict=False))


def _split_sections(blocks: Iterable[Block]) -> Iterator[tuple[tuple[str, ...], list[Block]]]:
    """Yield each heading with those over it, and the blocks directly below it. A heading that is directly followed by a
    deeper one belongs to that section; another one with nothing below it is found by its own words.
    """
    above: list[tuple[int, str]] = []
    section: list[Block] = []
    for block in (*blocks, Block("heading", 0, 0, "")):
        if block.kind == "heading":
            is_bare = bool(section) and section[-1].kind == "heading"
            if is_bare and block.level <= section[-1].level:
                section[-1], is_bare = replace(section[-1], kind="text"), False
            if section and not is_bare:
                yield tuple(title for _, title in above if title), section
                section = []
            title = markup.plain_title(block)[:MAX_TITLE].strip()
            above = [*(outer for outer in above if outer[0] < block.level), (block.level, title)]
        section.append(block)


def _cut(section: Sequence[Block], limit: int, overlap: int) -> Iterator[tuple[Sequence[Block], Sequence[Block]]]:
    """Cut a section; yield (text repeated from the passage before, new blocks) of each passage."""
    blocks = section if _size(section) <= limit else [*_split_texts(section, overlap)]
    start = 0
    while start < len(blocks):
        begin, end = start, start + 1
        while begin and blocks[begin - 1].kind == "text" and _size(blocks[begin - 1 : start]) <= overlap:
            begin -= 1
        if _size(blocks[begin:end]) > limit:
            begin = start
        # A heading stays with what is below it, even if that is too long for any passage.
        while end < len(blocks) and (blocks[end - 1].kind == "heading" or _size(blocks[begin : end + 1]) <= limit):
            end += 1
        yield blocks[begin:start], blocks[start:end]
        start = end


def _split_texts(section: Iterable[Block], longest: int) -> Iterator[Block]:
    """Yield the blocks; a text that is longer in parts that end with a line, else with a sentence, else with a word."""
    part = rf"(?s:.{{1,{longest}}}(?:\n|\Z)|.{{1,{longest}}}(?<=[.!?])\s+|.{{1,{longest}}}\S*\s*)"
    for block in section:
        line = block.first
        for text in re.findall(part, block.text) if block.kind == "text" else ():
            if text.strip():
                yield Block("text", line, line + text.strip("\n").count("\n"), text.removesuffix("\n"))
            line += text.count("\n")
        if block.kind != "text":
            yield block


def _size(blocks: Iterable[Block]) -> int:
    """Return the maximum characters of these blocks."""
    return sum(len(block.text) + len(_SEPARATOR) for block in blocks)
