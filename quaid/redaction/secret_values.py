"""The tests of a value: a secret, or a word, a variable, a measure, a placeholder."""

import re
from typing import NamedTuple


class Span(NamedTuple):
    """A secret in a text, from `start` up to `end`."""

    start: int
    end: int
    kind: str


# Written in the place of a secret: a variable, a row of stars, `your-password`.
PLACEHOLDER_VALUE = re.compile(
    r"""0x[0-9a-f]{1,31}
    |\$\{?[A-Z_][A-Z0-9_]*\}?|\$\{.*|\$\(.*|\$[a-z_]+|\{.*|%\(?\w+\)?[s%]?|[*•x.X_#?-]+|\[[\w .:-]*\]?|\(.*|\.{2,}.*
    |(?:(?:your|my|the|some|new|old|this|example|dummy|db|user)?[-_ ]?
        (?:pass(?:word|wd|phrase|code)?|pwd|secret|token|pin|(?:api)?[-_ ]?key)(?:[-_ ]?here)?)
    |.*(?:your[-_]|[-_]here|placeholder|changeme|\.\.\.).*|(?:.*[-_.])?example(?:[-_.].*)?
    |<%.*|!(?:vault|env|ref|sub|secret|include|!\w+)|redacted.*|str(?:ing)?|null|none|nil|undefined|true|false|1password""",
    re.IGNORECASE | re.VERBOSE,
)
IN_CODE = re.compile(
    r"[a-z_]\w{0,19}=.*|[a-z_]\w*=(?!=?\Z).*|[a-z_$][\w$]*(?:\??\.[a-z_$][\w$]*)+|[\w.$]+[(\[].*|.*\(\)|\w+::.*",
    re.IGNORECASE,
)
MEASURE = re.compile(
    r"""\d{1,3}|\d+(?:st|nd|rd|th|s|ms|m|h|d|kb|mb|gb|x|%|\+|[-\u2011]?(?:char|digit|day|hour|minute|month|year|word|bit|factor|step)\w*)
    |\d{4}-\d\d(?:-\d\d.*)?|\d{1,2}:\d\d.*|v\d[\d.]*|\w+://.*|[~.]{0,2}/.*|\S+\.(?:py|js|ts|md|txt|json|ya?ml|toml|env|com|org|net|io|html?|pem)
    |\w+v\d|(?:sha|md|bcrypt|argon|pbkdf|oauth|base|utf|aes|rsa|rc|[hre]s|ipv|http|f|web|win|python)-?\d\w{0,4}|2fa|mfa|\w+_id""",
    re.IGNORECASE | re.VERBOSE,
)
"""A number with its unit, a date, a version, an algorithm, a file."""
PLAIN_WORD = re.compile(r"_*[^\W\d_]+(?:[-/'’&._]+[^\W\d_]+)*_*", re.UNICODE)
ENDS_LIKE_HOW = re.compile(r"\w+(?:ed|ing|ly|able|ible|ous|ive|ful|less|ary|ent|ect|ong|ate)", re.IGNORECASE)
# `The password is wrong` contains none.
SAYS_HOW = re.compile(
    r"""not|no|yes|in|on|at|to|the|an?|my|your|it|its|that|this|what|which|same|old|new|weak|secure|safe|long|short|empty
    |blank|(?:in)?valid|unique|numbers?|text|bytes|field|any|required|optional|plaintext|cleartext|hashed|encrypted|random
    |easy|hard|simple|complex|good|bad|fine|here|there|below|above|lost|n/?a|tb[acd]|todo|gone|stolen|public|private|see
    |unknown|ok(?:ay)?|due|only|also|never|always|still|now|case|enough|default|hidden|bcrypt|hash|input|value|(?:in)?correct
    |wrong|expired|missing""",
    re.IGNORECASE | re.VERBOSE,
)
APP_PASSWORD = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}")
PIN = re.compile(r"\d{4,8}")
CODE = re.compile(r"[#*]?\d{3,8}[#*]?|\d{1,2}(?:[-–]\d{1,2}){2,4}")
_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_GROUPS = re.compile(r"[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){2,7}")
_SYMBOL = re.compile(r"[!@#$%^&*+=~?]")
_TRAILING = ".,;:)]}…。，、"


def is_opaque(value: str) -> bool:
    """Return True if a value is not a word, name, date or expression: letters and digits mixed, or too long for a word."""
    if is_placeholder(value) or IN_CODE.fullmatch(value) or MEASURE.fullmatch(value):
        return False
    runs = [value] if _GROUPS.fullmatch(value) else _RUN.findall(value)
    if len(value) >= 12 and _has_both(value) and _SYMBOL.search(value):
        return True
    return any(_has_both(run) or (len(run) >= 24 and not run.islower() and not run.isupper()) for run in runs)


def _has_both(run: str) -> bool:
    return any(map(str.isdigit, run)) and any(map(str.isalpha, run))


def is_strong(value: str) -> bool:
    """Return True if a value can hardly be a word: letters with digits or signs, and not a measure or code."""
    if len(value) < 6 or is_placeholder(value) or IN_CODE.fullmatch(value) or MEASURE.fullmatch(value):
        return False
    has_digit = any(map(str.isdigit, value))
    has_letter = any(map(str.isalpha, value))
    return has_letter and (has_digit or _SYMBOL.search(value) is not None) and "@" not in value[1:-1]


def is_made(value: str) -> bool:
    """Return True if a value was made up as passwords are: letters with digits and signs, or with digits in both cases."""
    has_cases = any(map(str.islower, value)) and any(map(str.isupper, value[1:]))
    return is_strong(value) and any(map(str.isdigit, value)) and (_SYMBOL.search(value) is not None or has_cases)


def is_placeholder(value: str) -> bool:
    return PLACEHOLDER_VALUE.fullmatch(value) is not None


def value_of(found: re.Match[str]) -> str:
    return found.string[found.start(found.lastgroup or 0) : end_of(found)]


def end_of(found: re.Match[str]) -> int:
    """Return the end of the value, without the punctuation of its sentence."""
    group = found.lastgroup or 0
    end = found.end(group)
    if group != "bare":
        return end
    value = found[group].rstrip(_TRAILING)
    return found.start(group) + len(value or found[group])


def span_of(found: re.Match[str], kind: str) -> Span:
    return Span(found.start(found.lastgroup or 0), end_of(found), kind)
