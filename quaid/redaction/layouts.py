"""Secrets that are separate from their name: in a table's column, in the answer to a question, in the lines below."""

import re
from collections.abc import Generator, Iterable, Iterator

from quaid.redaction.secret_values import CODE, PIN, PLAIN_WORD, SAYS_HOW, Span, is_opaque, is_placeholder, is_strong
from quaid.redaction.sentences import ASKS, NAME

_CELL_QUOTES = " \t`*\"'"
_RULE = re.compile(r"[\s|:+-]+")
_WHO = re.compile(r"user|login|log-in|name|account|e-?mail|benutzer|konto|host|service|site|url|dienst", re.IGNORECASE)
_MAX_COLUMN_WORDS = 3
_MAX_LINE = 2_000

_TIME = r"(?:[\[(]?\d[\d:.,T/ -]{3,20}\s?(?:[ap]m)?[\])]?)"
_SPEAKER = re.compile(
    rf"[ \t>*_#-]{{0,6}}(?:{_TIME}[ \t-]{{1,3}})?(?:\*\*)?[^\W\d_][\w .-]{{0,24}}?(?:\*\*)?(?:[ \t]{_TIME})?:(?:\*\*)?[ \t]+"
)
_SPACED_PIN = re.compile(r"(?<![\d.,:-])\d(?:[ -]?\d){3,7}(?![\d.,:-]?\d)")
_QUESTION_END = re.compile(r"[^.!?\n]{0,80}(?P<end>[?？:：](?:\*\*)?|[.!…]?)[ \t\"'*]{0,4}\r?\n")
_SHORT_QUESTION = 160
_WORD = re.compile(r"[^\s,;\"'`“”„«»<>|]+")
_SAYS_NOTHING = re.compile(
    r"(?:sure|nope?|yep|yeah|yes|ok(?:ay)?|done|thanks?|sorry|later|ja|nein|oui|non|sí|никакой|hm+|idk|dunno|skip|cancel"
    r"|none|nothing|unknown|user|assistant|system|same|again|wait|stop)",
    re.IGNORECASE,
)
_CODES = re.compile(
    r"(?:backup|recovery|scratch|emergency|one-time|rescue|wiederherstellungs)[ -]?codes?\b"
    r"(?:[^\n:]{0,40}?\b(?:are|is|sind)\b|[^\n:]{0,40}:?[ \t]*\n|[^\n:]{0,40}:)",
    re.IGNORECASE,
)
_ONE_CODE = re.compile(
    r"[\s,;>*-]{0,6}(?:\d{1,2}[.)]\s)?(?P<code>(?=[^\s,;]{0,24}\d)[A-Za-z0-9]{4,10}(?:-[A-Za-z0-9]{4,10}){0,3})(?=[\s,;]|\Z)"
)
_MANIFEST = re.compile(r"^[ \t\"']*kind[\"']?:[ \t]*[\"']?Secret\b", re.MULTILINE)
_MANIFEST_DATA = re.compile(
    r"^(?P<indent>[ \t]*)(?:data|stringData):[ \t]*\n(?P<lines>(?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z))+)", re.MULTILINE
)
_MANIFEST_VALUE = re.compile(r"^[ \t]+[\w.-]+:[ \t]*[\"']?(?P<value>[^\s\"'|>{][^\n\"']{2,4000})", re.MULTILINE)


def find_codes(text: str) -> Iterator[Span]:
    """Recovery codes for a second factor, which are given out as lists."""
    for name in _CODES.finditer(text):
        position = name.end()
        while code := _ONE_CODE.match(text, position):
            yield Span(*code.span("code"), "backup-code")
            position = code.end()


def find_manifests(text: str) -> Iterator[Span]:
    """Yield the values that a Secret of Kubernetes holds."""
    if _MANIFEST.search(text):
        for data in _MANIFEST_DATA.finditer(text):
            for value in _MANIFEST_VALUE.finditer(text, data.start("lines"), data.end("lines")):
                if not is_placeholder(value["value"].strip()):
                    yield Span(*value.span("value"), "kubernetes-secret")


# -- tables ------------------------------------------------------------------------------------------------------------


def find_in_tables(names: Iterable[re.Match[str]], text: str) -> Iterator[Span]:
    """Yield the secrets in the columns below these names of `text`."""
    done = 0
    for name in names:
        start = text.rfind("\n", 0, name.start()) + 1
        if start < done:
            continue
        end = _line_end(text, start)
        done = end
        if end - start <= _MAX_LINE and (columns := _columns(text[start:end])):
            done = yield from _find_in_rows(text, end, columns, _mark(text[start:end]))


def _columns(header: str) -> dict[int, str]:
    """Return the columns of a table that hold secrets, with the kind: `password` or `key`. Empty if it is not a header."""
    mark = _mark(header)
    cells = [cell.strip(_CELL_QUOTES) for cell in header.split(mark)] if mark else []
    if len([cell for cell in cells if cell]) < 2 or any(len(cell.split()) > _MAX_COLUMN_WORDS for cell in cells):
        return {}
    has_user = any(_WHO.search(cell) for cell in cells)
    named = {column: NAME.search(cell) for column, cell in enumerate(cells)}
    return {
        column: ("login" if has_user else "password") if name["password"] else "pin" if name["pin"] else "key"
        for column, name in named.items()
        if name is not None and name.end() == len(name.string)
    }


def _find_in_rows(text: str, start: int, columns: dict[int, str], mark: str) -> Generator[Span, None, int]:
    """Yield the values in the `columns` of the rows from `start` on; return where the table ends, so that each row is
    read once. A row that could be another header adds its columns.
    """
    while start < len(text):
        start += 1
        end = _line_end(text, start)
        row = text[start:end]
        if mark not in row or len(row) > _MAX_LINE:
            return start - 1
        if not _RULE.fullmatch(row):
            place = start
            for column, cell in enumerate(row.split(mark)):
                value = cell.strip(_CELL_QUOTES)
                if column in columns and _is_in_column(value, columns[column]):
                    found = place + cell.index(value)
                    yield Span(found, found + len(value), "password" if columns[column] == "login" else columns[column])
                place += len(cell) + len(mark)
            columns = {**_columns(row), **columns}
        start = end
    return start


def _is_in_column(value: str, kind: str) -> bool:
    if len(value) < 4 or " " in value or is_placeholder(value) or SAYS_HOW.fullmatch(value):
        return False
    if kind == "key":
        return is_opaque(value)
    if kind == "pin":
        return PIN.fullmatch(value) is not None
    return not PLAIN_WORD.fullmatch(value) if kind == "password" else not NAME.search(value)


def _mark(line: str) -> str:
    return next((mark for mark in "|\t;," if mark in line), "")


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


# -- questions and the lines below -------------------------------------------------------------------------------------


def find_answers(names: Iterable[re.Match[str]], text: str) -> Iterator[Span]:
    """Yield the secrets in the lines below these names, asked for or under a heading."""
    for name in names:
        end = _QUESTION_END.match(text, name.end())
        if end is None:
            continue
        before = re.split(r"[.!?\n]", text[max(0, name.start() - _SHORT_QUESTION) : name.start()])[-1]
        sentence = before + text[name.start() : end.end()]
        is_asked = ASKS.search(sentence) is not None and (end["end"] in "?？" or len(sentence) < _SHORT_QUESTION)
        is_heading = not (_SPEAKER.sub("", before).strip(" \t>*_#-") or text[name.end() : end.start("end")].strip())
        if is_asked or is_heading:
            yield from _answer(name, text, end.end(), is_asked=is_asked)


def _answer(name: re.Match[str], text: str, start: int, *, is_asked: bool) -> Iterator[Span]:
    while start < len(text) and text[start] in "\r\n":
        start += 1
    end = _line_end(text, start)
    speaker = _SPEAKER.match(text, start, end)
    if speaker is not None and not NAME.search(speaker[0]):
        start = speaker.end()
    words = list(_WORD.finditer(text, start, min(end, start + _MAX_LINE)))
    if not words or len(words) > 12:
        return
    if name["pin"] and (spaced := _SPACED_PIN.search(text, start, end)):
        yield Span(*spaced.span(), "pin")
        return
    for word in words:
        value = word[0].rstrip(".,;:!?)") if len(words) > 1 else word[0].rstrip(".,;")
        if _answers(name, value, is_alone=len(words) == 1, is_asked=is_asked):
            kind = next(kind for kind in ("password", "pin", "code", "key") if name[kind])
            yield Span(word.start(), word.start() + len(value), kind)
            return


def _answers(name: re.Match[str], value: str, *, is_alone: bool, is_asked: bool) -> bool:
    if name["pin"] or name["code"]:
        return (PIN if name["pin"] else CODE).fullmatch(value) is not None
    if not name["password"]:
        return is_alone and is_opaque(value)
    if name[0].lower() == "pass":
        return False
    if is_alone and is_asked and PLAIN_WORD.fullmatch(value):
        return len(value) > 5 and not (
            SAYS_HOW.fullmatch(value) or _SAYS_NOTHING.fullmatch(value) or is_placeholder(value)
        )
    return (is_alone or is_asked) and is_strong(value)
