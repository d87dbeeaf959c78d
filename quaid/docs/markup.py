"""Documents of each markup as blocks: markdown with MyST, reStructuredText, AsciiDoc; of other files paragraphs. Pure.

Nothing here is prose: anchors, directives that include or show something else, rows of badges.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from textwrap import dedent

from quaid.vault import markdown, notes
from quaid.vault.markdown import Block, split_blocks, split_paragraphs

MARKDOWN_ENDINGS = frozenset({".md", ".markdown", ".mkd", ".mdown", ".mdx", ".qmd", ".rmd"})
RST_ENDINGS = frozenset({".rst"})
ADOC_ENDINGS = frozenset({".adoc", ".asciidoc"})
_NOT_PROSE = re.compile(
    r"(?:py:)?(?:auto\w+|image|figure|toctree|contents|include|literalinclude|raw|eval-rst|meta|index|click|module"
    r"|currentmodule|highlight|role|default-role|title|mermaid|graphviz|tableofcontents|replace|date|unicode)"
)
_CODE = re.compile(r"code|code-block|code-cell|sourcecode|prompt|ipython\w*|doctest|parsed-literal|math|program-output")
_RST_MARKER = re.compile(
    r"(?P<indent>\s*)\.\.(?:[ \t]+(?:\|[^|]+\|[ \t]+)?(?P<name>[\w:+.-]+?)::(?P<rest>.*)|[ \t].*|)$"
)
_RST_LINE = re.compile(r"([!-/:-@\[-`{-~])\1*")
_FIELD = re.compile(r"\s*:[\w -]+:(?:\s|$)")
_ADOC_TITLE = re.compile(r"(={1,6}) +(\S.*)")
_ADOC_FENCE = re.compile(r"(-{4,}+|\.{4,}+|`{3,}+|\+{4,}+|/{4,}+)[\w, -]*")
_ADOC_MARKER = re.compile(
    r":[\w!-]+:|\[.*\]$|//|(?:include|image|toc|video|ifdef|ifndef|endif)::|[=*_]{4,}$|--$|\|===|'''"
)
_MYST_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})\{(?P<name>[\w:-]+)\}")
_MARK = re.compile(
    r"\s*(?:\([\w.:/ -]+\)=|:{3,}(?:\{[\w:-]+\}.*)?|import\s.+\sfrom\s.+|</?[A-Z][\w.]*(?:\s[^<>]*)?>)\s*$"
)
"""An anchor, or the beginning or end of a directive: of MyST, or of MDX."""
_ROLE = re.compile(
    r"(?:(?::[\w:+.-]{1,60}:|\{[\w:+.-]{1,60}\})`~?|`(?=[^`<>]{1,300}\s<[^`<>]{1,300}>`_))"
    r"([^`<>]{1,300}?)(?:\s{0,9}<[^`<>]{0,300}>)?`_{0,2}"
)
_TARGET = r"(?:\([^)]{0,600}\)|\[[^\]]{0,300}\])"
_IMAGE = re.compile(rf"\[!\[[^\]]{{0,300}}\]{_TARGET}\]{_TARGET}|!\[[^\]]{{0,300}}\]{_TARGET}")
_BADGE = re.compile(rf"{_IMAGE.pattern}|\|[^|\s]+\|_{{0,2}}")
_TAG = re.compile(
    r"</?(?:a|b|br|center|code|div|em|h[1-6]|i|img|kbd|p|picture|small|source|span|strong|su[bp])\b[^<>]*>",
    re.IGNORECASE,
)
_LINKED = re.compile(rf"\[[^\[\]]*\]{_TARGET}|\|[^|\s]+\|_?|`[^`<>]+<[^`<>]+>`_+|https?://\S+")
_WORD = re.compile(r"[^\W\d_]+|[\u3040-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(
    r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)(?<=[.!?])(?=[\"')]*(?:\s|$))|(?<=[。！？])"  # noqa: RUF001
)
_Mark = tuple[int, int, Sequence[Block]]
"""The first and last line of what is no paragraph, and its blocks."""
_MIN_WORDS = 3
"""Words outside of links that make a paragraph prose: a row of links has fewer."""


def read_blocks(path: str, lines: Sequence[str], first: int = 1) -> Iterator[Block]:
    """Yield the blocks of a document in their order; its first line has the number `first`."""
    ending = PurePosixPath(path).suffix.lower()
    if ending in MARKDOWN_ENDINGS:
        blocks = split_blocks(lines, first)
    elif ending in RST_ENDINGS:
        blocks = _split(lines, first, _mark_rst(lines, first))
    else:
        blocks = _split(lines, first, _mark_adoc(lines, first) if ending in ADOC_ENDINGS else ())
    for block in blocks:
        own = block.text.split("\n")
        fence = _MYST_FENCE.match(block.text) if block.kind == "fence" else None
        if block.kind == "text" and ending in RST_ENDINGS and (_is_line(block.text) or all(map(_FIELD.match, own))):
            continue
        if block.kind == "text" and ending not in {*ADOC_ENDINGS, ".txt", ""}:
            shown = ["" if _is_mark(line) else line for line in own]
            yield from [block] if shown == own else split_paragraphs(shown, block.first)
        elif fence is None or _CODE.fullmatch(fence["name"]):
            yield block
        elif not _NOT_PROSE.fullmatch(fence["name"]):  # more of the document, below the options of the directive
            start = _skip_options(own, 1, len(own) - 1)
            yield from read_blocks(path, own[start:-1], block.first + start)


def _is_mark(line: str) -> bool:
    """Return whether a line is an anchor, begins or ends a directive, or is a row of badges."""
    left = _BADGE.sub("", line)
    return _MARK.match(line) is not None or (left != line and not left.strip(" \t|·•*-"))


def _split(lines: Sequence[str], first: int, marks: Iterable[_Mark]) -> Iterator[Block]:
    """Yield the blocks of `marks`, and paragraphs of the lines between them."""
    begin = 0
    for start, end, blocks in (*marks, (len(lines), len(lines), ())):
        yield from split_paragraphs(lines[begin:start], first + begin)
        yield from blocks
        begin = end + 1


def plain(block: Block) -> str:
    """Return the text of a block without markup, roles and the addresses of links included."""
    return replace(block, text=_ROLE.sub(r"`\1`", block.text)).plain if block.kind == "text" else block.plain


def read_title(path: str, text: str) -> str:
    """Return the first heading with words, of the highest level if prose is before it; empty without one."""
    has_prose = False
    for block in _read(path, text):
        if (title := plain_title(block)) and (block.level == 1 or not has_prose):
            return title
        has_prose = has_prose or bool(_read_prose(block))
    return ""


def read_description(path: str, text: str) -> str:
    """Return the first sentence of prose, else the first words of prose without a full stop; empty without any."""
    paragraphs = list(filter(None, map(_read_prose, _read(path, text))))
    sentences = (_SENTENCE_END.split(prose, maxsplit=1) for prose in paragraphs)
    return next((parts[0] for parts in sentences if len(parts) > 1), "".join(paragraphs[:1]))


def _read_prose(block: Block) -> str:
    """Return a paragraph on one line; empty if it is a quotation, or a row of badges or links."""
    shown = _TAG.sub(" ", _IMAGE.sub(" ", block.text))
    has_words = len(_WORD.findall(_LINKED.sub(" ", shown))) >= _MIN_WORDS
    if block.kind != "text" or not has_words or shown.lstrip().startswith(">"):
        return ""
    return " ".join(plain(replace(block, text=shown)).split())


def _read(path: str, text: str) -> Iterator[Block]:
    return read_blocks(path, notes.split_body(text.removeprefix("\ufeff"))[1].replace("\r\n", "\n").split("\n"))


def plain_title(block: Block) -> str:
    """Return the title of a heading without markup; empty of another block, and of one without words."""
    if block.kind != "heading":
        return ""
    shown = markdown.plain(_ROLE.sub(r"`\1`", _TAG.sub(" ", _IMAGE.sub(" ", block.title))))
    return " ".join(shown.split()) if _WORD.search(shown) else ""


# -- reStructuredText and AsciiDoc -------------------------------------------------------------------------------------


def _mark_rst(lines: Sequence[str], first: int) -> Iterator[_Mark]:
    """Yield the headings and directives of reStructuredText. Of a directive that has prose the content is text, of code
    a fence.
    """
    lines = [*map(str.rstrip, lines), "", ""]
    styles: list[tuple[str, bool]] = []
    place = begin = 0  # of a paragraph
    while place < len(lines) - 2:
        line, below = lines[place : place + 2]
        begin = begin if lines[place - 1] else place
        marker = _RST_MARKER.match(line) if begin == place else None
        is_over = _is_line(line) and bool(below) and lines[place + 2] == line
        is_under = begin == place and line[:1].strip() and not _is_line(line) and _is_line(below)
        end, blocks = place, []
        if is_over or (is_under and len(below) >= min(len(line), 3)):
            end += 2 if is_over else 1
            style = (line if is_over else below)[0], is_over
            styles += [style] if style not in styles else []
            text, title = "\n".join(lines[place : end + 1]), (below if is_over else line).strip()
            blocks = [Block("heading", first + place, first + end, text, styles.index(style) + 1, title)]
        elif marker is not None:
            indented = re.compile(rf"\s{{{len(marker['indent']) + 1}}}|$")
            after = next((n for n in range(place + 1, len(lines)) if not indented.match(lines[n])), len(lines))
            end = next(n for n in range(after - 1, place - 1, -1) if lines[n])
            blocks = [
                *_read_directive(marker["name"] or "", marker["rest"] or "", lines[place : end + 1], first + place)
            ]
        else:
            place += 1
            continue
        yield place, end, blocks
        place = begin = end + 1


def _is_line(line: str) -> bool:
    return len(line.rstrip()) > 1 and _RST_LINE.fullmatch(line.rstrip()) is not None


def _skip_options(lines: Sequence[str], place: int, end: int) -> int:
    """Return the first of the lines from `place` to `end` that is neither blank nor an option of a directive."""
    return next((n for n in range(place, end) if lines[n].strip() and not _FIELD.match(lines[n])), end)


def _read_directive(name: str, rest: str, lines: Sequence[str], first: int) -> Iterator[Block]:
    if not name or _NOT_PROSE.fullmatch(name):
        return
    inner = _skip_options(lines, 1, len(lines))
    content = dedent("\n".join(lines[inner:])).split("\n")
    if not _CODE.fullmatch(name):
        yield from [Block("text", first, first, rest.strip())] if rest.strip() else ()
        yield from _split(content, first + inner, _mark_rst(content, first + inner))
    elif inner < len(lines):
        yield Block("fence", first + inner, first + len(lines) - 1, "\n".join(["```", *content, "```"]))


def _mark_adoc(lines: Sequence[str], first: int) -> Iterator[_Mark]:
    """Yield the headings and code of AsciiDoc, and as nothing attributes, anchors, comments and macros."""
    place = 0
    while place < len(lines):
        line, end, blocks = lines[place].rstrip(), place, []
        title, fence = _ADOC_TITLE.fullmatch(line), _ADOC_FENCE.fullmatch(line)
        if title:
            blocks = [Block("heading", first + place, first + place, line, len(title[1]), title[2])]
        elif fence:
            below = range(place + 1, len(lines))
            end = next((number for number in below if lines[number].rstrip() == fence[1]), len(lines) - 1)
            text = "\n".join(lines[place : end + 1])
            blocks = [Block("fence", first + place, first + end, text)] if line[0] != "/" else []
        elif not _ADOC_MARKER.match(line):
            place += 1
            continue
        yield place, end, blocks
        place = end + 1
