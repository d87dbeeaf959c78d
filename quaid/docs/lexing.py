"""Source text -> its code without comments, and its literals.

Not a highlighter: those that exist take a minute for some texts of a few kilobytes, and what they call a comment need
not be one. Every expression here moves on with each match, so the work is bounded by the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from quaid.docs.languages import Hole, Language

MARK = "\0"
"""Stands in the code of a `Source` for its next literal; no text that is read holds one."""

_FLAGS = re.MULTILINE | re.DOTALL
_HEREDOC = (
    r"<<(?P<mark>[-~<]?)[ \t]*+(?:(?P<fence>[\"'])(?P<quoted>[\w.!:-]++)(?P=fence)|\\?(?P<delimiter>[A-Za-z_]\w*+|!))"
)
_BEFORE_EXPRESSION = re.compile(
    r"(?:[=({\[,;:!&|?+\-*%^~>}\n]|\b(?:return|typeof|case|in|of|do|else|void|throw|if|unless|when|and|or|not|elsif|while|yield|await|default))\s*\Z"
)
_EXPRESSION = re.compile(r"/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*+\]?)++(?:/[a-z]*)?", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_YAML_HEAD = re.compile(r"[ ]*+(?:- +)*+")


@dataclass(frozen=True, slots=True)
class Source:
    """Code with a MARK for each literal and a blank for each comment, and the literals in their order."""

    code: str
    literals: tuple[str, ...]


def is_doubtful(text: str, language: Language) -> bool:
    """Whether something in `text` is beyond what is known of its language."""
    return bool(language.doubt) and re.search(language.doubt, text, _FLAGS) is not None


def read_source(text: str, language: Language) -> Source:
    """`text` without its comments. Raises nothing; linear in its length."""
    return _Reader(text, language).read()


@dataclass(slots=True)
class _Open:
    """A hole that is being read: the literal it is in, what closes it, and how many brackets are open in it."""

    literal: Hole
    closing: str
    depth: int = 0


class _Reader:
    def __init__(self, text: str, language: Language) -> None:
        self.text = text
        self.language = language
        self.code: list[str] = []
        self.literals: list[str] = []
        self.open: list[_Open] = []
        self.pos = 0

    def read(self) -> Source:
        outside, inside = _patterns(self.language)
        limit = len(self.text)
        fences: list[re.Pattern[str]] = []
        while self.pos < len(self.text):
            found = (inside if self.open else outside).search(self.text, self.pos, limit)
            if found is None:
                self._code_until(limit)
                for fence in fences:
                    self._literal_until(_end_of_heredoc(self.text, self.pos, fence))
                fences, limit = [], len(self.text)
                continue
            self._code_until(found.start())
            if found.lastgroup == "heredoc":
                self._literal_until(found.end())
                fences.append(_closing_line(found, self.language))
                limit = _index(self.text, "\n", self.pos)
            else:
                self._take(found)
        return Source("".join(self.code), tuple(self.literals))

    def _take(self, found: re.Match[str]) -> None:
        match found.lastgroup:
            case "line":
                self._comment_until(found.end(), found[0])
            case "block":
                self._block(found.start())
            case "literal":
                self._literal_until(found.end())
            case "long":
                end = _end_of_long(self.text, found)
                is_comment = bool(found.groupdict().get("remark")) and end < len(self.text)
                self._comment_until(end, "") if is_comment else self._literal_until(end)
            case "slash":
                self._slash(found.start())
            case "nesting":
                self._bracket(found[0])
            case name:
                self._inside_literal(self.language.holes[int(str(name).removeprefix("hole"))], found.end())

    def _code_until(self, end: int) -> None:
        if end > self.pos:
            self.code.append(self.text[self.pos : end])
            self.pos = end

    def _literal_until(self, end: int) -> None:
        if end > self.pos:
            self.literals.append(self.text[self.pos : end])
            self.code.append(MARK)
            self.pos = end

    def _comment_until(self, end: int, comment: str) -> None:
        if self.language.kept and re.match(self.language.kept, comment.lstrip(), _FLAGS):
            self._literal_until(end)
        else:
            self.code.append(" ")
            self.pos = end

    def _block(self, start: int) -> None:
        assert self.language.block is not None
        opening, closing = self.language.block
        if self.language.nests:
            end = _end_of_nested(self.text, start, opening, closing)
        else:
            end = _index(self.text, closing, start + len(opening)) + len(closing)
        # One that nobody closes is none.
        if end > len(self.text):
            self._literal_until(len(self.text))
        else:
            self._comment_until(end, self.text[start:end])

    def _slash(self, start: int) -> None:
        before = "".join(self.code[-3:])[-40:]
        is_argument = (
            self.language.has_blanks and before[-1:].isspace() and not self.text[start + 1 : start + 2].isspace()
        )
        closes_tag = self.text.startswith("/>", start) and before.rstrip()[-1:] not in {"(", ",", "=", ":"}
        begins = not before.strip() or is_argument or _BEFORE_EXPRESSION.search(before)
        # A division is not looked at as an expression: that would read the rest of the line for each of its slashes.
        expression = _EXPRESSION.match(self.text, start) if begins and not closes_tag else None
        self._literal_until(expression.end()) if expression else self._code_until(start + 1)

    def _bracket(self, bracket: str) -> None:
        hole = self.open[-1]
        if bracket == hole.closing and hole.depth == 0:
            self.open.pop()
            self._inside_literal(hole.literal, self.pos + 1)
            return
        if _CLOSING.get(bracket) == hole.closing:
            hole.depth += 1
        elif bracket == hole.closing:
            hole.depth -= 1
        self._code_until(self.pos + 1)

    def _inside_literal(self, literal: Hole, start: int) -> None:
        """From `start` inside of a literal to its end, or into its next hole."""
        found = _literal_pattern(literal).match(self.text, start)
        end = found.end() if found else len(self.text)
        self._literal_until(end)
        if found and found["hole"]:
            self.open.append(_Open(literal, _CLOSING[found["hole"][-1]]))


@cache
def _literal_pattern(literal: Hole) -> re.Pattern[str]:
    ends = "|".join((literal.quote, literal.hole, *(["\n"] if literal.is_one_line else [])))
    character = "." if literal.is_raw else r"(?:\\.|.)"
    text = rf"(?:[^\\\n$#%{{{literal.quote[0]}]++|(?!{ends}){character})*+"
    return re.compile(rf"{text}(?:(?P<hole>{literal.hole})|{literal.quote})?", _FLAGS)


@lru_cache(maxsize=64)
def _patterns(language: Language) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What interrupts code, outside of literals and in the holes of one."""
    kinds = [("long", language.long), ("heredoc", _HEREDOC if language.has_heredocs else "")]
    kinds += [("line", language.line), ("block", re.escape(language.block[0]) if language.block else "")]
    kinds += [(f"hole{n}", literal.opens) for n, literal in enumerate(language.holes)]
    kinds += [("literal", language.literals), ("slash", "/" if language.has_expressions else "")]
    outside = [f"(?P<{name}>{expression})" for name, expression in kinds if expression]
    inside = [*outside, r"(?P<nesting>[(){}\[\]])"]
    return re.compile("|".join(outside or ["(?!)"]), _FLAGS), re.compile("|".join(inside), _FLAGS)


def _index(text: str, wanted: str, start: int) -> int:
    found = text.find(wanted, start)
    return len(text) if found < 0 else found


def _end_of_nested(text: str, start: int, opening: str, closing: str, *, has_escapes: bool = False) -> int:
    """Where what opens at `start` ends; beyond the text when it does not."""
    depth = 0
    ends = f"{re.escape(opening)}|{re.escape(closing)}"
    for found in re.compile(rf"\\.|{ends}" if has_escapes else ends, re.DOTALL).finditer(text, start):
        if found[0] == closing and depth:
            depth -= 1
            if not depth:
                return found.end()
        elif found[0] == opening:
            depth += 1
    return len(text) + 1


def _closing_line(opening: re.Match[str], language: Language) -> re.Pattern[str]:
    """The line that ends a heredoc. What only begins like it is text: to go on too far leaves nothing out."""
    indent = r"[ \t]*+" if opening["mark"] or not language.has_blanks else ""
    end = r"\b" if opening["mark"] == "<" else "$"
    return re.compile(rf"^{indent}{re.escape(opening['quoted'] or opening['delimiter'])}{end}", re.MULTILINE)


def _end_of_heredoc(text: str, start: int, closing: re.Pattern[str]) -> int:
    found = closing.search(text, start)
    return found.end() if found else len(text)


def _end_of_long(text: str, found: re.Match[str]) -> int:
    groups = found.groupdict()
    if groups.get("bracket"):
        closing = _CLOSING.get(groups["bracket"], groups["bracket"])
        end = _end_of_nested(text, found.start("bracket"), groups["bracket"], closing, has_escapes=True)
        return min(end, len(text))
    if found[0][:1] in {"|", ">"}:
        return _end_of_block_scalar(text, found.start(), found.end())
    for name, closing in (("raw", '){}"'), ("hashes", '"{}'), ("level", "]{}]"), ("tag", "${}$")):
        if groups.get(name) is not None:
            wanted = closing.format(groups[name])
            return min(_index(text, wanted, found.end()) + len(wanted), len(text))
    return min(_index(text, "<?", found.end()) + len("<?"), len(text))


def _end_of_block_scalar(text: str, start: int, header_end: int) -> int:
    """A block scalar of YAML goes on while its lines are blank or further in than what it belongs to."""
    line_start = text.rfind("\n", 0, start) + 1
    head = _YAML_HEAD.match(text, line_start)
    assert head is not None
    depth = len(head[0])
    if head.end() == start:  # the item of a list itself
        depth = max(head[0].rfind("-"), 0)
    header_end = _index(text, "\n", header_end)
    body = re.compile(rf"(?:\n(?:[ ]{{{depth + 1}}}[^\n]*+|[ \t]*+(?=\n|\Z)))*+")
    found = body.match(text, header_end)
    return found.end() if found else header_end
