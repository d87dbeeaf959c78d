"""What markdown says once its markup is gone: plain text, links, edges, sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from quaid.model import Citation, Edge

CHUNK_CHARS = 900
"""About 200 tokens: a chunk with its heading fits the 256 tokens of a small embedding model."""

_WIKILINK = re.compile(r"!?\[\[([^\[\]|#]*)(#[^\[\]|]*)?(?:\|([^\[\]]*))?\]\]")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()]*\))+(?:\s+\"[^\"]*\")?\)")
_COMMENT = re.compile(r"%%.*?%%|<!--.*?-->", re.DOTALL)
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3}|~~|==)(?=\S)(.+?)(?<=\S)\1(?![\w*])")
_UNDERSCORES = re.compile(r"(?<!\w)(_{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)")
_CODE = re.compile(r"(`+)(.+?)\1")
_BLOCK_ID = re.compile(r"(?:^|[ \t]+)\^[A-Za-z0-9-]+[ \t]*$", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:>[ \t]?|#{1,6}[ \t]+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|\d+[.)][ \t]+)+", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_EDGE = re.compile(
    r"^[ \t]*[-*+][ \t]+(?:\[\[(?P<subject>[^\[\]]+)\]\][ \t]+)?"
    r"(?P<relation>[A-Za-z][\w-]*(?:[ ][\w-]+){0,4})[ \t]+\[\[(?P<object>[^\[\]]+)\]\][ \t]*(?:\^[\w-]+)?[ \t]*\r?$",
    re.MULTILINE,
)
_CITATION = re.compile(r"\[\[(?:[^\[\]|#]*/)?([^\[\]|#/]+?)(?:\.md)?#\^t(\d+)(?:\|[^\[\]]*)?\]\]")
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: [^\r\n]*)?\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a note under one heading; `heading` is the path of headings, outermost first."""

    heading: tuple[str, ...]
    text: str


def plain(text: str) -> str:
    """`text` without markup: links as what they show, no emphasis, comments or block ids."""
    if "[[" in text:
        text = _WIKILINK.sub(_shown, text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "%%" in text or "<!--" in text:
        text = _COMMENT.sub("", text)
    if "`" in text:
        text = _CODE.sub(r"\2", _FENCE.sub("", text))
    if "*" in text or "~~" in text or "==" in text:
        text = _EMPHASIS.sub(r"\2", text)
    if "_" in text:
        text = _UNDERSCORES.sub(r"\2", text)
    if "^" in text:
        text = _BLOCK_ID.sub("", text)
    return _LINE_MARK.sub("", text).strip()


def links(text: str) -> list[str]:
    """The targets of all wikilinks, in order, without heading or block part, each once."""
    targets = (match[1].strip() for match in _WIKILINK.finditer(text))
    return list(dict.fromkeys(target for target in targets if target))


def link_target(link: str) -> str:
    """`Maya Chen|Maya` or `Maya Chen#Work` -> `Maya Chen`."""
    return re.split(r"[|#]", link, maxsplit=1)[0].strip()


def edges(text: str, subject: str | None = None) -> list[Edge]:
    """List items `[[Subject]] relation [[Object]]`; without a subject they belong to `subject`, if given."""
    found = []
    for match in _EDGE.finditer(text) if "[[" in text else ():
        source = match["subject"] or subject
        if source:
            relation = re.sub(r"[\s-]+", "_", match["relation"].lower())
            found.append(Edge(link_target(source), relation, link_target(match["object"])))
    return found


def without_edges(text: str) -> str:
    return _EDGE.sub("", text) if "[[" in text else text


def citations(texts: list[str]) -> list[Citation]:
    """`[[20-1402-2f1c9a#^t3]]` in any of `texts` -> (episode's note name, turn)."""
    return [Citation(match[1].strip(), int(match[2])) for text in texts for match in _CITATION.finditer(text)]


def has_conflict_markers(text: str) -> bool:
    return "<<<<<<<" in text and ">>>>>>>" in text and len(_CONFLICT.findall(text)) >= 3


def without_conflict_markers(text: str) -> str:
    """Both sides of a merge conflict, one after the other."""
    return _CONFLICT.sub("", text)


def sections(body: str) -> list[Section]:
    """A note's body by heading. Code fences, tables, lists and quotes are read as blocks, never split by a `#`."""
    path: list[tuple[int, str]] = []
    found: list[Section] = []
    pending: list[str] = []

    def close() -> None:
        text = "\n\n".join(pending).strip()
        if text:
            found.append(Section(tuple(title for _, title in path), text))
        pending.clear()

    for block in _blocks(_COMMENT.sub("", body) if "%%" in body or "<!--" in body else body):
        if block["type"] == "heading":
            close()
            level = block["attrs"]["level"]
            del path[next((i for i, (depth, _) in enumerate(path) if depth >= level), len(path)) :]
            path.append((level, plain(block.get("text", ""))))
        elif text := _block_text(block):
            pending.append(text)
    close()
    if path and not (found and found[-1].heading == tuple(title for _, title in path)):
        found.append(Section(tuple(title for _, title in path[:-1]), path[-1][1]))
    return found


def split_text(text: str, limit: int = CHUNK_CHARS) -> Iterator[str]:
    """`text` in pieces of at most about `limit` characters, cut at paragraphs, else lines, sentences, words."""
    while len(text) > limit * 1.25:
        window = text[:limit]
        cut = max(window.rfind("\n\n"), 0) if window.rfind("\n\n") > limit // 3 else 0
        cut = cut or _last(window, r"\n", limit) or _last(window, r"[.!?]\s", limit) or _last(window, r"\s", limit)
        cut = cut or limit
        yield text[:cut].strip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _last(window: str, pattern: str, limit: int) -> int:
    ends = [match.end() for match in re.finditer(pattern, window)]
    return ends[-1] if ends and ends[-1] > limit // 3 else 0


def _shown(match: re.Match[str]) -> str:
    if match[3]:
        return match[3]
    target = match[1].strip()
    return target or (match[2] or "").lstrip("#^")


@cache
def _parser() -> Any:
    import mistune

    # The block parser alone: sections need headings, fences and tables, never the inline markup within them.
    return mistune.create_markdown(renderer=None, plugins=["table"])


def _blocks(body: str) -> list[dict[str, Any]]:
    markdown = _parser()
    state = markdown.block.state_cls()
    state.process(body.replace("\r\n", "\n"))
    markdown.block.parse(state)
    return list(state.tokens)


def _block_text(block: dict[str, Any]) -> str:
    """The text of a block and all in it, a line each."""
    kind = block["type"]
    if kind in {"block_code", "block_html"}:
        return str(block.get("raw", "")).strip("\n") if kind == "block_code" else plain(str(block.get("raw", "")))
    if kind in {"blank_line", "thematic_break"}:
        return ""
    if "text" in block:
        return plain(block["text"])
    separator = " | " if kind in {"table_row", "table_head"} else "\n"
    return separator.join(filter(None, (_block_text(child) for child in block.get("children", ()))))
