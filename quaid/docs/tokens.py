"""Code without comments -> tokens in which its formatting no longer shows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quaid.docs.languages import Language
from quaid.docs.lexing import MARK, Source

LINE = "\n"
"""The end of a statement, of a directive, or (in a layout, with the indentation after it) of a line."""
CLOSING = {"(": ")", "[": "]", "{": "}"}

_SEMICOLON = "\n;"  # until the end: a semicolon that says what the end of a line does
_OPENING = {closing: opening for opening, closing in CLOSING.items()}
# What belongs together, the longest first. Not `>>`: it closes two lists of types, too.
_SIGNS = """<<= **= ... ..= === !== <=> &&= ||= ??= ;; -> => == != <= >= << ++ -- += -= *= /= %= &= |= ^= && || ?? ?. ?:
    !! :: := .. <- ~= =~ |> // **""".split()  # noqa: SIM905
_TOKEN = re.compile(
    rf"{MARK}|\\\n[ \t]*|\n[ \t\f\v]*|[ \t\f\v]+|\d\w*(?:\.\d\w*)?|[\w$@]+|{'|'.join(map(re.escape, _SIGNS))}|.",
    re.DOTALL,
)
_GOES_ON_AFTER = frozenset(
    """( [ { , . ?. :: ?: && || ?? => -> = == === != !== <= >= + - * / % & | ^ += -= := <- |> :""".split()  # noqa: SIM905
)
_GOES_ON_BEFORE = frozenset(
    """) ] } , . ?. ?: ? : && || ?? => = == === != !== <= >= * % | |> { else catch finally""".split()  # noqa: SIM905
)
# Where blanks count, most signs may be parts of words.
_GOES_ON_AFTER_BLANKS = frozenset({"(", "[", "{", ",", "&&", "||", "|"})
_GOES_ON_BEFORE_BLANKS = frozenset({")", "]", "}"})
_HEADS = frozenset({"if", "while", "for", "with", "switch", "foreach"})
_NO_CALLS = _HEADS | {"return", "in", "match", "else", "case", "yield", "and", "or", "not", "await", "of"}
_NO_CALLS |= {"let", "mut", "ref", "var", "const"}
# What stands behind them must begin in their line.
_END_WITH_THEIR_LINE = frozenset({"return", "break", "continue", "throw", "yield"})
_BEFORE_TAG_NAME = re.compile(r"(?:^|[^\w\s)\]'\"`])</?\Z|(?:\n|return)<\Z|</\Z")
_TAGS = frozenset({"<", "</"})
_TEXT = ">"  # a bracket for what stands between two tags
_PLAIN_IN_TEXT = frozenset("()[]")
_ENDS_EXPRESSION = frozenset({")", "]", "}", ",", ";", ":", LINE, _SEMICOLON})
_BEFORE_ELEMENT = frozenset({"=", "=>", "return", "&&", "?", ":"})
_OPERATORS = frozenset({"&&", "||", "??", "?", "=", "=>", ","})
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote)", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:(['\"])|.)", re.DOTALL)
_MAY_MEAN_MORE = frozenset("\\#$'\"")


def spell(literal: str, language: Language) -> str:
    """A literal as it is compared: in double quotes, where quotes say nothing."""
    quoted = _QUOTED.fullmatch(literal) if language.quotes != "differ" else None
    if quoted is None or (language.quotes == "plain" and _MAY_MEAN_MORE & set(quoted["text"])):
        return literal
    return '"' + _ESCAPED.sub(lambda found: found[1] or found[0], quoted["text"]) + '"'


def tokens_of(source: Source, language: Language) -> list[str]:
    """What texts of a language have in common that differ in their formatting only."""
    reader = _Reader(language)
    literals = iter(source.literals)
    for token in _TOKEN.findall(source.code):
        if token == MARK:
            reader.take(spell(next(literals), language))
        elif token[0] == "\n":
            reader.take_line(token)
        elif token.isspace() or token[:2] == "\\\n":
            reader.take_blank()
        else:
            reader.take(token)
    return reader.end()


@dataclass(slots=True)
class _Bracket:
    opening: str = ""
    is_call: bool = False
    is_head: bool = False
    commas: int = 0
    start: int = 0
    has_operators: bool = False


class _Reader:
    """Is given what a text consists of, in its order, and keeps what says something."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.tokens: list[str] = []
        self.brackets: list[_Bracket] = []
        self.around_tags: list[tuple[int, int]] = []
        self.is_line_new = True
        self.is_after_head = False
        self.is_after_tag = False
        self.is_directive = False
        self.goes_on_after = _GOES_ON_AFTER_BLANKS if language.has_blanks else _GOES_ON_AFTER
        self.goes_on_before = _GOES_ON_BEFORE_BLANKS if language.has_blanks else _GOES_ON_BEFORE

    @property
    def last(self) -> str:
        return self.tokens[-1] if self.tokens else LINE

    @property
    def bracket(self) -> _Bracket:
        return self.brackets[-1] if self.brackets else _Bracket()

    def end(self) -> list[str]:
        while self.tokens and self.last[0] in {LINE, " "}:
            self.tokens.pop()
        unneeded = {place for pair in self.around_tags if self._ends_after(pair[1]) for place in pair}
        tokens = (token for place, token in enumerate(self.tokens) if place not in unneeded)
        return [LINE if token == _SEMICOLON else token for token in tokens]

    def _ends_after(self, place: int) -> bool:
        return _ENDS_EXPRESSION.issuperset(self.tokens[place + 1 : place + 2])

    def take_line(self, line: str) -> None:
        self.is_line_new = True
        if self.is_directive:
            self.is_directive = False
            self.tokens.append(LINE)
        elif self.language.breaks == "free":
            self.take_blank()
        elif self.language.breaks == "layout":
            self._drop(" ")
            if self.last[0] == LINE:
                self._drop(self.last)
            self.tokens.append(line)
        else:
            self._drop(" ")
            if self.last[0] != LINE and not self._goes_on():
                self.tokens.append(LINE)

    def take_blank(self) -> None:
        counts = self.language.has_blanks or self.is_directive or self.bracket.opening == _TEXT
        if counts and self.last[0] not in {LINE, " "} and self.last not in self.language.glue:
            self.tokens.append(" ")

    def take(self, sign: str) -> None:
        """Takes a sign, a word or a literal."""
        self._end_line_before(sign)
        if sign == ";" and self._is_end_of_statement():
            self._drop(LINE, " ")
            if self.last[0] != LINE and self.last != "{":
                self.tokens.append(_SEMICOLON)
            return
        if sign in _OPERATORS:
            self.bracket.has_operators = True
        self._follow_brackets(sign)
        if self.language.has_tags:
            self._follow_tag(sign)
        self.is_after_head = self.is_after_head and sign == ")"
        self.is_line_new = False
        self.tokens.append(sign)

    def _follow_brackets(self, sign: str) -> None:
        if self.bracket.opening == _TEXT and sign in _PLAIN_IN_TEXT:
            return
        if sign in CLOSING:
            self._open(sign)
        elif sign in _OPENING:
            self._close(sign)
        elif sign == "," and self.brackets:
            self.bracket.commas += 1
        elif sign == ">" and self.language.loose_commas:
            self._drop(",")
        elif sign == "=>" and self.language.has_expressions and self.tokens[-3::2] == ["(", ")"]:
            self.tokens[-3:] = self.tokens[-2:-1]

    def _drop(self, *tokens: str) -> None:
        while self.tokens and self.tokens[-1] in tokens:
            self.tokens.pop()

    def _goes_on(self) -> bool:
        is_at_tag = self.is_after_tag or self.bracket.opening in _TAGS
        return self.last in self.goes_on_after or self.is_after_head or is_at_tag

    def _end_line_before(self, sign: str) -> None:
        if sign in self.language.glue:
            self._drop(" ")
        if self.language.breaks == "ends" and self._goes_on_with(sign):
            self._drop(LINE)
        if sign == "#" and self.is_line_new and self.language.has_directives:
            self.is_directive = True
            self.tokens.append(LINE)

    def _goes_on_with(self, sign: str) -> bool:
        continues = sign[0] in self.language.goes_on and sign not in {"++", "--"}
        return (continues or sign in self.goes_on_before) and not _END_WITH_THEIR_LINE.intersection(self.tokens[-2:-1])

    def _is_end_of_statement(self) -> bool:
        """Whether a semicolon says no more than the end of a line: it may be a loop's body, or stand in its head."""
        return self.language.breaks == "ends" and self.bracket.opening != "(" and not self.is_after_head

    def _open(self, opening: str) -> None:
        before = "".join(self.tokens[-2:]).strip() if self.last == " " else self.last
        is_call = before in {")", "]", ">", "!"} or (before.isidentifier() and before not in _NO_CALLS)
        self.brackets.append(_Bracket(opening, is_call, before in _HEADS, start=len(self.tokens)))

    def _close(self, closing: str) -> None:
        while self.bracket.opening == _TEXT:  # nothing has closed it
            self.brackets.pop()
        bracket = self.brackets.pop() if self.brackets else _Bracket()
        if self.language.breaks == "ends":
            self._drop(LINE, *([_SEMICOLON] if closing == "}" else []))
        if self.language.has_loose_semicolons:
            self._drop(";")
        if self.is_after_tag and closing == ")" and self._is_around_tags(bracket):
            self.around_tags.append((bracket.start, len(self.tokens)))
        is_one_tuple = bracket.opening == "(" and not bracket.is_call and bracket.commas == 1
        is_after_item = self.last == "," and self.tokens[-2:-1] not in ([","], [bracket.opening])
        if is_after_item and bracket.opening in set(self.language.loose_commas) and not is_one_tuple:
            self.tokens.pop()
        self.is_after_head = bracket.is_head

    def _is_around_tags(self, bracket: _Bracket) -> bool:
        """Whether brackets that close now say nothing, but that an element in them has lines of its own."""
        around = self.tokens[max(0, bracket.start - 1) : bracket.start + 2]
        is_element = around[1:] == ["(", "<"] and not bracket.has_operators
        return is_element and around[0] in _BEFORE_ELEMENT

    def _follow_tag(self, sign: str) -> None:
        """The ends of lines say nothing in a tag, nor on either side of one; blanks do between tags."""
        is_text = self.bracket.opening == _TEXT
        self.is_after_tag = sign == ">" and self.bracket.opening in _TAGS
        if self.is_after_tag:
            self._drop(" ")
            opening = self.brackets.pop().opening
            if opening == "<" and self.last != "/":
                self.brackets.append(_Bracket(_TEXT))
        elif sign == "<" and not _END_WITH_THEIR_LINE.intersection(self.tokens[-2:-1]):
            self._drop(LINE)
        elif sign == ">" and self.last == "<":
            self.brackets.append(_Bracket(_TEXT))
        elif sign == "/" and self.last == "<" and is_text:
            self.brackets.pop()
        elif sign.isidentifier() and (
            (self.last == "<" and (is_text or self.language.has_blanks))
            or _BEFORE_TAG_NAME.search("".join(self.tokens[-3:]))
        ):
            self.brackets.append(_Bracket("</" if self.last == "/" else "<"))
