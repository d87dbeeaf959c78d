"""The text of markdown without its markup: plain text, links, edges, sections."""

import re
import string
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from posixpath import normpath
from textwrap import dedent
from typing import Literal, NamedTuple
from urllib.parse import unquote

from quaid.model import Citation, Edge

CHUNK_CHARS = 900
"""About 200 tokens: a chunk with its heading fits the 256 tokens of a small embedding model."""

_WIKILINK = re.compile(r"!?\[\[([^\[\]|#]*)(#[^\[\]|]*)?(?:\|([^\[\]]*))?\]\]")
_PATH = re.compile(
    r"\]\(\s*(?:<([^<>\n]+)>|((?:[^()<>\s]|\([^()\s]*\))+))|^ {0,3}\[(?!\^)[^\[\]\n]+\]:[ \t]*<?([^<>\s]+)",
    re.MULTILINE,
)
"""The target of a markdown link, and of the definition of one."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:|//|#|\[", re.IGNORECASE)
_ENDING = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)
_MAY_HIDE = re.compile(r"`|~~~|%%|<!--|\\[\[\]]")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()]*\))+(?:\s+\"[^\"]*\")?\)")
_COMMENT_ENDS = {"%%": "%%", "<!--": "-->"}
_CODE_OR_COMMENT = re.compile(
    r"^(?P<within>(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t]))*)[ \t]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r"|(?P<escape>\\[!-/:-@\[-`{-~])|(?P<code>`+)|(?P<comment>%%|<!--)",
    re.MULTILINE,
)
_FENCE_END = re.compile(r"^[ \t>]*(?P<fence>`{3,}|~{3,})[ \t]*\r?$|^(?P<outside>(?![ \t]*>))", re.MULTILINE)
_PARAGRAPH_END = re.compile(r"\n(?=[ \t]*(?:\r?\n|[>|#]|[-*+][ \t]|\d{1,9}[.)][ \t]|`{3}|~{3}))")
_DELIMITER = re.compile(r"\*+|_+|~+|=+|\n")
_BLOCK_ID = re.compile(r"(?:^|(?<![ \t])[ \t]+)\^[A-Za-z0-9-]+[ \t]*(?=\r?$)", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:>[ \t]?|#{1,6}[ \t]+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)+", re.MULTILINE)
_NAME = r"[\w\u0300-\u036f\u0900-\u109f\u1780-\u17ff-]"  # with the marks of Indic scripts and their neighbours
_EDGE = re.compile(
    r"^[ \t]*[-*+][ \t]+(?:\[\[(?P<subject>[^\[\]\n]+)\]\][ \t]+)?"
    rf"(?P<relation>[^\W\d_]{_NAME}*(?:[ ]{_NAME}+){{0,4}})[ \t]+\[\[(?P<object>[^\[\]\n]+)\]\]"
    r"[ \t]*(?:\^[\w-]+)?[ \t]*\r?$",
    re.MULTILINE,
)
_MARK_IN_LINE = re.compile(
    r"(?P<always>^(?:#{1,6}(?=[ \t]|$)|>|[-+*](?=[ \t]|$)|[0-9]{1,9}[.)](?=[ \t]|$)|`{3,}|~{3,}|<(?=[A-Za-z/!?]))"
    r"|^\[(?=[^\[\]]*\]:)|\\(?=[!-/:-@\[-`{-~])|\[(?=[\[^])|(?<=\[)\[|\](?=\()|\^(?=\[)|(?<!\S)\^(?=[A-Za-z0-9-]+$)"
    r"|%{2,}|<(?=!--|[A-Za-z/?][^<]*>)|&(?=#?\w{1,40};))|`+|(?<=\S)\$(?!\d)"
    r"|(?<=\S)(?:\*+|~~+|==+)|(?:\*++|~~++|==++)(?=\S)|(?<![^\W_])_++(?=\S)|(?<=\S)_++(?![^\W_])"
)
"""What is markup `always`, or where there is another mark of its kind."""
_INERT = {ord(sign): 0xDC00 + ord(sign) for sign in string.punctuation}
"""Punctuation that is no markup, as lone surrogates, which no text has."""
_ACTIVE = {inert: sign for sign, inert in _INERT.items()}
_NOT_SPACE = re.compile(r"\S")
_SENTENCE_END = r"[.!?]\s|[。！？।]"  # noqa: RUF001
_CITATION = re.compile(r"\[\[(?:[^\[\]|#]*/)?([^\[\]|#/]+?)(?:\.md)?#\^t([0-9]{1,9})(?:\|[^\[\]]*)?\]\]")
_TAG = re.compile(r"(?<!\S)#([\w/-]*[^\W\d][\w/-]*)")
_CONFLICT_MARK = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?= |\r?$)", re.MULTILINE)


class Section(NamedTuple):
    """A stretch of a note under one heading; `heading` is the path of headings, outermost first."""

    heading: tuple[str, ...]
    text: str


def plain(text: str) -> str:
    """`text` without markup: links as what they show, no emphasis, comments or block ids. The numbers of lists stay."""
    if any(mark in text for mark in ("`", "~~~", "%%", "<!--", "\\")):
        inner = []  # without the marks of code and escapes; the signs in them mean nothing any more
        for start, end, kind, mark in verbatim(text):
            shown = ""
            if kind == "escape":
                shown = text[start + 1 : end]
            elif kind == "code":
                shown = text[start + len(mark) : end - len(mark)]
            elif kind == "fence":
                shown = text[start:end].partition("\n")[2]
                last = shown.rpartition("\n")[2]
                shown = shown.removesuffix(last) if _FENCE_END.fullmatch(last) else shown
            inner.append((start, end, shown.translate(_INERT)))
        text = replace_spans(text, inner)
    if "[[" in text:
        text = _WIKILINK.sub(_shown, text)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if any(mark in text for mark in ("*", "_", "~~", "==")):
        text = _without_emphasis(text)
    if "^" in text:
        text = _BLOCK_ID.sub("", text)
    return _LINE_MARK.sub("", text).strip().translate(_ACTIVE)


def escape(text: str) -> str:
    r"""Return a line that is not markdown as markdown that shows it: `plain` gives it back. Only what would be read as
    markup gets a backslash, by Quaid, Obsidian or CommonMark: `3. Mai` -> `3\. Mai`.
    """
    count = Counter(text)

    def escape_mark(found: re.Match[str]) -> str:
        is_markup = found["always"] is not None or count[found[0][0]] > len(found[0])
        return re.sub(r"[!-/:-@\[-`{-~]", r"\\\g<0>", found[0]) if is_markup else found[0]

    return _MARK_IN_LINE.sub(escape_mark, text)


def links(text: str, folder: str = ".") -> list[str]:
    """Return the targets of all wikilinks, then of all markdown links to files, without heading, block and `.md`, each
    once; none of code or comments. A path that is relative to `folder`, that of the note, is returned from the root of
    the vault: `/Work/Pond`.
    """
    readable = _without_code(text) if "[" in text else ""
    targets = [match[1].strip().rstrip("\\") for match in _WIKILINK.finditer(readable)]
    relative = [target for target in targets if target.startswith((".", "/"))]
    targets = [target for target in targets if target not in relative]
    if "](" in readable or "]:" in readable:
        written = (match[1] or match[2] or match[3] for match in _PATH.finditer(readable))
        relative += [unquote(path.partition("#")[0]) for path in written if not _ADDRESS.match(path)]
    paths = (normpath(path if path.startswith("/") else f"/{folder}/{path}") for path in relative if path)
    return [target for target in dict.fromkeys(_ENDING.sub("", target) for target in (*targets, *paths)) if target]


def link_target(link: str) -> str:
    """`Maya Chen|Maya` or `Maya Chen#Work` -> `Maya Chen`."""
    return re.split(r"[|#]", link, maxsplit=1)[0].strip().rstrip("\\")


def edges(text: str, subject: str | None = None) -> list[Edge]:
    """List items `[[Subject]] relation [[Object]]`; without a subject they belong to `subject`, if given."""
    found = []
    for match in _EDGE.finditer(_without_code(text)) if "[[" in text else ():
        source = match["subject"] or subject
        if source:
            relation = re.sub(r"[\s-]+", "_", match["relation"].lower())
            found.append(
                Edge(_ENDING.sub("", link_target(source)), relation, _ENDING.sub("", link_target(match["object"])))
            )
    return found


def tags(listed: Sequence[str], text: str) -> list[str]:
    """Return the tags of a head and of the text below it, `#at/home` as `at/home`; none of code or comments."""
    written = _TAG.findall(_without_code(text)) if "#" in text else ()
    return [tag for each in (*listed, *written) if (tag := each.lstrip("#"))]


def without_edges(text: str) -> str:
    readable = _without_code(text)
    return _EDGE.sub(lambda found: "" if readable.startswith(found[0], found.start()) else found[0], text)


def citations(texts: list[str]) -> list[Citation]:
    """`[[20-1402-2f1c9a#^t3]]` in any of `texts` -> (episode's note name, turn)."""
    found = (match for text in texts if "#^t" in text for match in _CITATION.finditer(_without_code(text)))
    return [Citation(match[1].strip(), int(match[2])) for match in found]


def replace_spans(text: str, spans: Iterable[tuple[int, int, str]]) -> str:
    """Return `text` with each (start, end, new), in their order, replaced."""
    parts: list[str] = []
    place = 0
    for start, end, new in spans:
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])


def blank(text: str, *kinds: str) -> str:
    """Return `text` with blanks, line by line, in the place of each span that is of one of `kinds`: `fence`, `code` (in
    a line), `comment`, `escape` (of brackets). A fence that nothing closes goes on to the end of the text, or of the
    quotation that it is in.
    """
    if not _MAY_HIDE.search(text):
        return text
    found = (
        (start, end, re.sub(r"\S", " ", text[start:end]))
        for start, end, kind, _ in verbatim(text)
        if kind in kinds and (kind != "escape" or text[start + 1] in "[]")
    )
    return replace_spans(text, found)


def _without_code(text: str) -> str:
    return blank(text, "fence", "code", "comment", "escape")


def has_conflict_markers(text: str) -> bool:
    """Return whether `text` has the marks of a merge conflict in their order, outside of code. Only git knows whether
    they are from a merge, or what somebody wrote.
    """
    if "<<<<<<<" not in text or ">>>>>>>" not in text:
        return False
    marks = "".join(mark[0][0] for mark in _CONFLICT_MARK.finditer(blank(text, "fence", "code")))
    return re.search(r"<=*\|?=+>", marks) is not None


def sections(body: str) -> list[Section]:
    """Return a note's body by heading. A heading with nothing below it is text."""
    if has_conflict_markers(body):  # a line of seven "=" would make a heading of what is before it
        body = _CONFLICT_MARK.sub(r"\n\g<0>", body)
    found: list[Section] = []
    path: list[tuple[int, str]] = []
    text, last = "", 0
    lines = without_comments(body).replace("\r\n", "\n").split("\n")
    for block in (*split_blocks(lines), Block("heading", 0, 0, "")):
        if block.kind != "heading":
            if shown := block.plain:
                text += ("\n" if block.first == last + 1 else "\n\n") + shown
                last = block.last
            continue
        if text := text.strip():
            found.append(Section(tuple(title for _, title in path), text))
        elif path and path[-1][0] >= block.level and path[-1][1]:
            found.append(Section(tuple(title for _, title in path[:-1]), path[-1][1]))
        path = [*(outer for outer in path if outer[0] < block.level), (block.level, plain(block.title))]
        text = ""
    return found


def split_text(text: str, limit: int = CHUNK_CHARS) -> Iterator[str]:
    """`text` in pieces of at most about `limit` characters, cut at paragraphs, else lines, sentences, words."""
    text = text.strip()
    start = 0
    while len(text) - start > limit * 1.25:
        window = text[start : start + limit]
        paragraph = window.rfind("\n\n")
        cut = paragraph if paragraph > limit // 3 else 0
        cut = cut or _last(window, r"\n", limit) or _last(window, _SENTENCE_END, limit) or _last(window, r"\s", limit)
        end = start + (cut or limit)
        yield text[start:end].strip()
        start = next(found.start() for found in _NOT_SPACE.finditer(text, end))
    if start < len(text):
        yield text[start:]


def _last(window: str, pattern: str, limit: int) -> int:
    ends = [match.end() for match in re.finditer(pattern, window)]
    return ends[-1] if ends and ends[-1] > limit // 3 else 0


def without_comments(text: str, *, is_shown: bool = False) -> str:
    """`text` without its comments. Where it `is_shown` as it is, outside of Obsidian, `%%` is none, and the newlines
    stay.
    """
    found = (
        (start, end, "\n" * text.count("\n", start, end) * is_shown)
        for start, end in comments(text)
        if not is_shown or text[start] != "%"
    )
    return replace_spans(text, found)


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each comment, which Obsidian (`%%…%%`) or markdown (`<!--…-->`) does not show."""
    if "%%" in text or "<!--" in text:
        yield from ((start, end) for start, end, kind, _ in verbatim(text) if kind == "comment")


def verbatim(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield (start, end, kind, first mark) of each fence, code, comment and escape that is outside of the others: what
    begins first decides what the marks of the others mean.

    Ends are looked up in lists: a pattern that searches the end of each takes quadratic time where there is none.
    """
    runs: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        runs.setdefault(len(run[0]), []).append(run.start())
    paragraph_ends = [found.start() for found in _PARAGRAPH_END.finditer(text)] if runs else []
    place = 0
    never_closed: set[str] = set()
    while found := _CODE_OR_COMMENT.search(text, place):
        start, place, kind = found.start(found.lastgroup or 0), found.end(), found.lastgroup
        mark = found[kind or 0]
        if kind == "fence":
            place = _fence_end(text, found)
        elif kind == "code":
            closings, paragraph = runs.get(len(mark), []), bisect_left(paragraph_ends, place)
            closing = bisect_left(closings, place)
            limit = paragraph_ends[paragraph] if paragraph < len(paragraph_ends) else len(text)
            if closing == len(closings) or closings[closing] > limit:
                continue
            place = closings[closing] + len(mark)
        elif kind == "comment":
            end = -1 if mark in never_closed else text.find(_COMMENT_ENDS[mark], place)
            if end < 0:
                never_closed.add(mark)
                continue
            place = end + len(_COMMENT_ENDS[mark])
        yield start, place, str(kind), mark


def _fence_end(text: str, opened: re.Match[str]) -> int:
    """Return where the code fence ends: behind the line that closes it, or before one that leaves its quotation."""
    is_quoted = ">" in opened["within"]
    for end in _FENCE_END.finditer(text, text.find("\n", opened.end()) + 1 or len(text)):
        if end["outside"] is None and end["fence"].startswith(opened["fence"]):
            return end.end("fence")
        if end["outside"] is not None and is_quoted:
            return end.start()
    return len(text)


def _without_emphasis(text: str) -> str:
    """Remove the marks of emphasis, highlights and strike-through, line by line.

    A pass over the runs of delimiters with a stack, as CommonMark does it: a pattern that searches the end of each
    run takes quadratic time on a line of unmatched stars.
    """
    runs = list(_DELIMITER.finditer(text))
    left = [len(run[0]) for run in runs]  # the characters of each run that are not markup
    opened: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        if run[0] == "\n":
            opened.clear()
        if run[0] == "\n" or (run[0][0] in "~=" and len(run[0]) != 2):
            continue
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        openers = opened.setdefault(run[0][0], [])
        if before.strip() and not _is_word(after):
            while openers and left[index]:
                matched = min(left[openers[-1]], left[index])
                left[openers[-1]] -= matched
                left[index] -= matched
                if not left[openers[-1]]:
                    openers.pop()
        if left[index] and after.strip() and not _is_word(before):
            openers.append(index)
    return replace_spans(text, ((*run.span(), run[0][:count]) for run, count in zip(runs, left, strict=True)))


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _shown(match: re.Match[str]) -> str:
    _, is_aliased, alias = match[0].rstrip("]").rpartition(chr(_INERT[ord("|")]))  # `[[A\|b]]`, as in a table
    if match[3] or is_aliased:
        return match[3] or alias
    target = match[1].strip()
    return target or (match[2] or "").lstrip("#^")


# -- blocks -----------------------------------------------------------------------------------------------------------
#
# Lines are read, not a syntax tree: enough to cut a text without harming it, and each block has its lines. Nothing
# inside code or a comment is a heading, and a fence without an end hides nothing.

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r"[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*$")
_HEADING = re.compile(r" {0,3}(?P<level>#{1,6})(?:[ \t]+(?P<title>.*))?$")
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_NO_TITLE = re.compile(r"(?: {4}|\t| {0,3}(?:[-*+][ \t]|\d{1,9}[.)][ \t]|[>|<]))")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_COMMENT = re.compile(r" {0,3}<!--")
_TABLE_DASHES = re.compile(r"(?=[^|]*\|)(?=[^-]*-)[ \t>|:-]*$")
_CELL_END = re.compile(r"(?<!\\)\|")
_NO_ROW = re.compile(f"{_HEADING.pattern}|{_COMMENT.pattern}|{_FENCE.pattern.replace('mark', 'fence')}")
_INDENTED = ("    ", "\t")
_MAX_TITLE_LINES = 3
"""Lines: a parser alone takes a longer paragraph above a line of dashes for a title."""


BlockKind = Literal["heading", "text", "fence", "table", "comment"]


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `first` to `last` of a text (from 1) that belong together, as `text`, without comments.

    Of a heading `level` is 1 to 6 and `title` its text, markup included.
    """

    kind: BlockKind
    first: int
    last: int
    text: str
    level: int = 0
    title: str = ""

    @property
    def plain(self) -> str:
        """The text without markup; empty for a heading, which is the context of the blocks below it."""
        lines = self.text.split("\n")
        match self.kind:
            case "heading":
                return ""
            case "fence":
                return dedent("\n".join(lines[1:-1]))
            case "table":
                rows = [_CELL_END.split(row) for row in [lines[0], *lines[2:]]]
                return "\n".join(" | ".join(filter(None, (plain(cell.strip()) for cell in row))) for row in rows)
            case _:
                is_code = all(line.startswith(_INDENTED) for line in lines)
                return dedent(self.text).rstrip() if is_code else plain("\n".join(map(str.strip, lines)))


def split_blocks(lines: Sequence[str], first: int = 1) -> Iterator[Block]:
    """Yield the blocks of a markdown text in their order; its first line has the number `first`.

    Comments (`<!-- … -->`), rules and blank lines are in none.
    """
    lines = [*lines, ""]
    spans = _find_spans(lines)
    begin = place = 0  # of the paragraph, and the line that is read
    while place < len(lines):
        line, start = lines[place], place
        kind: BlockKind | None
        kind, end = spans.get(place, (None, place))
        level, title = 0, ""
        if not kind and (heading := _HEADING.match(line)):
            kind, level, title = "heading", len(heading["level"]), heading["title"] or ""
        elif 0 < place - begin <= _MAX_TITLE_LINES and _UNDERLINE.match(line) and not _NO_TITLE.match(lines[begin]):
            kind, level, title = "heading", 1 if "=" in line else 2, " ".join(map(str.strip, lines[begin:place]))
            start = begin
        elif not kind and line.strip() and not _RULE.match(line):
            place += 1
            continue
        paragraph = without_comments("\n".join(lines[begin:start]), is_shown=True)
        if paragraph.strip():
            yield Block("text", first + begin, first + start - 1, paragraph)
        if kind == "comment":  # what follows it in its last line is text
            rest = without_comments(lines[end].partition("-->")[2], is_shown=True).strip()
            if rest:
                yield Block("text", first + end, first + end, rest)
        elif kind:
            title = _CLOSING_HASHES.sub("", title.strip()).strip()
            yield Block(kind, first + start, first + end, "\n".join(lines[start : end + 1]), level, title)
        begin = place = end + 1


def _find_spans(lines: Sequence[str]) -> dict[int, tuple[BlockKind, int]]:
    """Return (kind, last line) of the fences, comments and tables by the lines at which one would begin."""
    found: dict[int, tuple[BlockKind, int]] = {}
    marks = [(place, line) for place, line in enumerate(lines) if "```" in line or "~~~" in line]
    closings = [(place, mark["mark"]) for place, line in marks if (mark := _CLOSING.match(line))]
    comment_ends = [place for place, line in enumerate(lines) if "-->" in line]
    end = 0
    for place, line in enumerate(lines):
        if place >= end and "|" in line and _TABLE_DASHES.match(lines[place + 1]) and not _HEADING.match(line):
            end = place + 2
            while "|" in lines[end] and not _NO_ROW.match(lines[end]):
                end += 1
            found[place] = "table", end - 1
        if "<!--" in line and _COMMENT.match(line) and (later := bisect_left(comment_ends, place)) < len(comment_ends):
            found[place] = "comment", comment_ends[later]
    unclosed: list[str] = []
    for place, line in marks:
        fence = _FENCE.match(line)
        if fence and not fence["mark"].startswith(tuple(unclosed)):
            places = range(bisect_left(closings, (place + 1, "")), len(closings))
            closing = next((closings[n][0] for n in places if closings[n][1].startswith(fence["mark"])), None)
            if closing is None:
                unclosed.append(fence["mark"])
            else:
                found[place] = "fence", closing
    return found


def split_paragraphs(lines: Sequence[str], first: int = 1) -> Iterator[Block]:
    """Yield the paragraphs between blank lines of a text that is not markdown."""
    begin = 0
    for place, line in enumerate([*lines, ""]):
        if not line.strip():
            if begin < place:
                yield Block("text", first + begin, first + place - 1, "\n".join(lines[begin:place]))
            begin = place + 1


_HEAD = re.compile(r"\A---\r?\n.*?^---\r?\n", re.DOTALL | re.MULTILINE)
_SAYS_SOMETHING = re.compile(r"(?m)^(?!#)\s*\S")


def text_of_note(text: str) -> str:
    """A note without its head and comments; empty where only headings are left."""
    visible = without_comments(_HEAD.sub("", text.removeprefix("\ufeff"))).strip()
    return visible if _SAYS_SOMETHING.search(visible) else ""
