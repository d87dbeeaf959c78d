"""The names of code that a page has: in code spans and blocks, roles and directives, options and variables in prose."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from quaid.redaction import admit
from quaid.text.quoting import shorten

_SPAN = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\(\s*<?([^()<>\s]+)|^\s*\[[^\[\]\n]+\]:\s*(\S+)")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OPTION = re.compile(r"(?<![\w-])--[A-Za-z][\w-]+")
_PATH = re.compile(r"(?<![\w.])/-?[\w./{}:-]{2,}")
_HYPHENED = re.compile(r"(?<![\w-])[a-z][a-z0-9]*(?:-[a-z0-9]+)+(?![\w-])")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_WORD = re.compile(r"[a-z][\w-]*")
_ROLE = re.compile(
    r"(?::|\{)(?!ref|doc|term|download)(?:[\w-]{1,40}:){0,3}[\w-]{1,40}[:}]`~?(?:[^`<]{0,300}<)?([^`<>]{1,300})>?`"
)
_DIRECTIVE = re.compile(
    r"\s*(?:\.\. |:::|[`~:]{3,}\{)\s*(?:py:)?(?:auto\w+|click|program|option|envvar|function|class|method|attribute"
    r"|data|(?:current)?module)(?:::|\})?\s*(\S.*)"
)
_CODE_BLOCK = re.compile(r"\s*\.\. (?:code|code-block|sourcecode|prompt|ipython)::")
_FENCE = re.compile(r"\s*(?:>\s*)?(`{3,}|~{3,}|:{3,})")
_UNDERLINE = re.compile(r"([=\-~^\"#*+.`])\1{2,}\s*")
_MAX_LINE = 5_000
_MAX_SENTENCE = 300
_AROUND = 6
"""Lines of a paragraph before and after the one that has a name."""


def find_mentions(path: str, text: str) -> dict[str, int]:
    """Return each name of code in the page `text`, with the number of the line (from 0) that has it first.

    A line of prose counts before one of an example. The words of a command, such as `logs list`, are one name.
    """
    prose: dict[str, int] = {}
    code: dict[str, int] = {}
    for number, kind, line in _read_lines(path.endswith(".rst"), text.replace("\r\n", "\n").split("\n")):
        into = code if kind == "code" else prose
        for name in _names_in_code(line) if kind == "code" else _names_in_prose(line, is_heading=kind == "heading"):
            into.setdefault(name, number)
    return code | prose


def find_paths(path: str, text: str) -> Iterator[str]:
    """Yield what may be the path of a file in the page `text`: link targets and code spans of its prose."""
    for _, kind, line in _read_lines(path.endswith(".rst"), text.replace("\r\n", "\n").split("\n")):
        if kind != "code":
            targets = (unquote(link[1] or link[2]) for link in _LINK.finditer(line))
            yield from (target for target in targets if "://" not in target and target[0] not in "#/")
            yield from (span[2].strip() for span in _SPAN.finditer(line))


def is_plain(name: str) -> bool:
    """Return whether a name may as well be a word of the language: `request`, and not `--limit` or `max_rows`."""
    return name.isalpha() and (name[1:].islower() or name.isupper())


def _read_lines(is_rst: bool, lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yield each line that has text, with what it is: code, heading or prose."""
    fence = ""
    is_indented_code = False
    for number, line in enumerate(each[:_MAX_LINE] for each in lines):
        marker = _FENCE.match(line)
        if directive := _DIRECTIVE.match(line) if not fence else None:
            yield number, "code", directive[1]
        if marker and marker[1][0] != ":" and not is_rst:
            fence = "" if fence and marker[1].startswith(fence) else fence or marker[1]
        elif fence or (is_indented_code and (not line.strip() or line[:1] in " \t")):
            yield number, "code", line
        elif not directive:
            below = lines[number + 1] if number + 1 < len(lines) else ""
            is_heading = bool(_UNDERLINE.fullmatch(below)) if is_rst else line.startswith("#")
            is_indented_code = is_rst and (
                bool(_CODE_BLOCK.match(line)) or (line.rstrip().endswith("::") and not line.startswith(".."))
            )
            is_code = not is_rst and line.startswith(("    ", "\t")) and not re.match(r"\s*(?:[-*+]|\d+\.)\s", line)
            yield number, "code" if is_code else "heading" if is_heading else "prose", line


def _names_in_prose(line: str, *, is_heading: bool) -> Iterator[str]:
    for role in _ROLE.finditer(line):
        yield from _names_in_code(role[1])
    for span in _SPAN.finditer(line):
        yield span[2].strip()
        yield from _names_in_code(span[2])
    yield from (found[0] for pattern in (_OPTION, _VARIABLE) for found in pattern.finditer(line))
    if is_heading:
        title = line.strip("# \t")
        names = [title, *(found[0] for found in _NAME.finditer(title))]
        yield from (name for name in names if name == title or not is_plain(name))


def _names_in_code(text: str) -> Iterator[str]:
    for found in _NAME.finditer(text):
        parts = found[0].split(".")
        yield from (".".join(parts[place:]) for place in range(len(parts)))
    yield from (found[0] for pattern in (_OPTION, _PATH, _HYPHENED, _VARIABLE) for found in pattern.finditer(text))
    words = re.split(r"[\s|;\"'()]+", text)
    for place, word in enumerate(words):
        for end in (place + 2, place + 3):
            if end <= len(words) and _WORD.fullmatch(word) and all(map(_WORD.fullmatch, words[place:end])):
                yield " ".join(words[place:end])


def find_sentence(text: str, line: int, name: str) -> str:
    """Return the sentence around a line that has `name`, or the line of code, without secrets."""
    lines = text.replace("\r\n", "\n").split("\n")
    first = last = line
    while first > 0 and _is_words(lines[first - 1]) and line - first < _AROUND:
        first -= 1
    while last + 1 < len(lines) and _is_words(lines[last + 1]) and last - line < _AROUND:
        last += 1
    around = " ".join(" ".join(lines[first : last + 1]).split()) if _is_words(lines[line]) else ""
    pieces = re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\[])", around)
    found = next((piece for piece in pieces if name in piece), lines[line].strip())
    return shorten(admit(found).text, _MAX_SENTENCE)


def _is_words(line: str) -> bool:
    """Return whether a line may be a part of a sentence: it is not empty, indented, a fence or a heading."""
    return bool(re.match(r"[^\s`~#|:.$>]|`[^`]", line))
