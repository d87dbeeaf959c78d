"""Secrets in a text replaced by placeholders that name their kind.

Keys are found by Kingfisher, whose rules follow hundreds of services and which works without the network, but it reads
code: one line, quotes, entropy. A person writes `my password is hunter2`: these forms come first. Each pattern has
bounds, so that no text takes long.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from quaid.redaction import keys, layouts
from quaid.redaction.name_hints import may_have_number
from quaid.redaction.private_spans import PLACEHOLDER
from quaid.redaction.secret_values import Span, is_made, is_placeholder, is_strong, span_of, value_of
from quaid.redaction.sentences import PAIR, find_named, find_names, is_password

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

_DRESSING = re.compile(r"(?P<space>\\[nrt](?![a-z]))|[*\\\u200b-\u200d\u2060\ufeff\u00ad]")
"""The signs that markdown and JSON put into a secret, and those that cannot be seen in one."""
_OPAQUE = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{16,}|[A-Za-z]{24,}")
"""The form of a key. Loading the detector takes a third of a second, so plain prose must not ask for it."""
_HARMLESS = re.compile(r"[0-9a-f]+|[0-9A-HJKMNP-TV-Z]{26}|[0-9a-hjkmnp-tv-z]{26}|01[0-9a-hjkmnp-tv-z]{20,24}")
"""Hashes and ULIDs, standing alone."""


def redact(text: str, *, after: str = "", keep_lines: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return `text`, which follows `after`, with a placeholder for each secret, and the kinds of the secrets; with
    `keep_lines` the newlines of a secret stay behind it.
    """
    known = Counter(PLACEHOLDER.findall(text))
    before = f"{after}\n" if after else ""
    while True:  # what a secret has hidden, such as a quote, can show another one
        plain = _Plain(before + text)
        spans = _within(_disjoint(find_forms(plain.text), plain), len(before))
        spans = spans or _within(_disjoint(_detect(plain.text), plain), len(before))
        if not spans:
            break
        text = _replace(text, spans, keep_lines=keep_lines)
    return text, tuple((Counter(PLACEHOLDER.findall(text)) - known).elements())


def _within(spans: Sequence[Span], start: int) -> list[Span]:
    """Return the `spans` that end after `start`, counted from there."""
    if not start:
        return list(spans)
    return [Span(max(0, span.start - start), span.end - start, span.kind) for span in spans if span.end > start]


def _replace(text: str, spans: Sequence[Span], *, keep_lines: bool) -> str:
    parts = []
    position = 0
    for span in spans:
        lines = text.count("\n", span.start, span.end) if keep_lines else 0
        parts += [text[position : span.start], f"[redacted: {span.kind}]", "\n" * lines]
        position = span.end
    return "".join([*parts, text[position:]])


class _Plain:
    """A text without markdown's emphasis and what escapes it, and where each of its places is in the original."""

    def __init__(self, original: str) -> None:
        self.placeholders = [placeholder.span() for placeholder in PLACEHOLDER.finditer(original)]
        # What was taken out before says `password` and is followed by a bracket: it must not be read again.
        original = PLACEHOLDER.sub(lambda found: "\N{WHITE SQUARE}" * len(found[0]), original)
        self._starts, self._origins = [0], [0]
        parts: list[str] = []
        position = length = 0
        for dressing in _DRESSING.finditer(original):
            parts += [original[position : dressing.start()], " " * bool(dressing["space"])]
            length += sum(map(len, parts[-2:]))
            position = dressing.end()
            self._starts.append(length)
            self._origins.append(position)
        self.text = "".join([*parts, original[position:]]) if parts else original

    def origin(self, place: int) -> int:
        """Return the place in the original of the character at `place`."""
        part = bisect_right(self._starts, place) - 1
        return self._origins[part] + place - self._starts[part]


def _disjoint(spans: Iterator[Span], plain: _Plain) -> list[Span]:
    """`spans` in the original text: in order, joined where they overlap, and as far as they reach before a placeholder;
    what is behind one is looked at again.
    """
    clear: list[Span] = []
    for found in spans:
        span = Span(plain.origin(found.start), plain.origin(found.end - 1) + 1, found.kind)
        behind = bisect_right(plain.placeholders, (span.start, span.start))
        inside = behind > 0 and plain.placeholders[behind - 1][1] > span.start
        end = min(span.end, plain.placeholders[behind][0]) if behind < len(plain.placeholders) else span.end
        clear += [span._replace(end=end)] if not inside and span.start < end else []
    disjoint: list[Span] = []
    for span in sorted(clear, key=lambda span: (span.start, -span.end)):
        if disjoint and span.start < disjoint[-1].end:
            disjoint[-1] = disjoint[-1]._replace(end=max(disjoint[-1].end, span.end))
        else:
            disjoint.append(span)
    return disjoint


def _detect(text: str) -> Iterator[Span]:
    """Yield what Kingfisher finds, if the text has something with the form of a key at all."""
    for run in _OPAQUE.finditer(text):
        is_separate = run.start() < 2 or text[run.start() - 1] not in "_-." or not text[run.start() - 2].isalnum()
        if not (is_separate and _HARMLESS.fullmatch(run[0])):
            break
    else:
        return
    findings = _detector().scan(text.encode("utf-8", "replace"))
    for secret, rule in {finding.secret: finding.rule_id for finding in findings if finding.visible}.items():
        # `betterleaks.github-pat` -> `github-pat`
        kind = re.sub("[^a-z0-9]+", "-", re.split("[./]", rule)[-1].lower()).removeprefix("generic-").strip("-")
        if secret:
            yield from (Span(*found.span(), kind or "secret") for found in re.finditer(re.escape(secret), text))


@lru_cache(maxsize=1)
def _detector() -> "Scanner":
    from kingfisher_sdk import Scanner

    return Scanner(base64=False)


# -- forms -------------------------------------------------------------------------------------------------------------

_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}://[^\s/:@\"'<>]{0,100}:(?P<bare>[^\s/\"'<>]{1,256})@(?=[\w\[.$%{-])",
    re.IGNORECASE,
)
_AUTHORIZED = re.compile(
    r"(?:authorization|x-(?:[\w-]{1,40}-)?(?:key|token)|private-token|api-key|ocp-apim-subscription-key)[\"']{0,2}\s{0,5}[:=]\s{0,5}[\"']?"
    r"(?:(?P<scheme>basic|bearer|token|digest|apikey|bot)\s{1,3})?(?P<bare>[^\s\"'<>,;]{8,4096})"
    r"|(?<![a-z])bearer\s{1,3}(?P<alone>[\w.~+/=-]{16,4096})",
    re.IGNORECASE,
)
# What is given to commands, and what files of a form of their own hold: a word without which a form is not there, and
# the form.
_GIVEN = (
    ("-u", r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]{1,3}[\"']?(?!\d+:)[^\s:\"']{1,100}:(?P<value>[^\s\"']{2,256})"),
    (
        "--",
        r"--(?:\w{1,20}-)?(?:password|passwd|pass|passphrase|token|secret|(?:api|private)-?key)[ =]{1,3}"
        r"(?:\"(?P<double>[^\"\n]{2,256})\"|'(?P<single>[^'\n]{2,256})'|(?P<value>[^\s\"'|;&-][^\s\"'|;&]{2,256}))",
    ),
    (
        " -p",
        r"(?<!\w)(?:mysql\w{0,6}|mariadb|sshpass)[^\n|;]{0,120}?\s-p ?[\"']?(?P<value>[^\s\"'|;-][^\s\"'|;]{2,256})",
    ),
    (" -p", r"(?<!\w)(?:un)?zip[^\n|;]{0,80}?\s-P ?(?P<value>[^\s\"'|;-][^\s\"'|;]{2,256})"),
    (
        "htpasswd",
        r"htpasswd\s(?=[^\n]{0,20}-\w{0,3}b)[^\n|;]{0,120}?\s[\w.@]{1,40}\s(?P<value>[^\s|;&-][^\s|;&]{2,256})"
        r"[ \t]{0,3}(?=[\r\n|;&]|\Z)",
    ),
    ("identified", r"identified\s{1,3}by\s{1,3}'(?P<value>[^'\n]{2,256})'"),
    ("password", r"with\s{1,3}password\s{1,3}'(?P<value>[^'\n]{2,256})'"),
    (" pass:", r"\spass:(?P<value>[^\s\"'|;&]{3,256})"),
    ("/pass", r"\s/pass(?:word)?:(?P<value>[^\s/]{3,256})"),
    ("/rp ", r"\s/rp\s(?P<value>[^\s/]{3,256})"),
    ("/user:", r"net\s+use\s[^\n]{0,160}?/user:\S{1,80}[ \t](?P<value>[^\s/*]\S{2,256})"),
    ("securestring", r"securestring\s{1,3}(?:-string\s{1,3})?[\"'](?P<value>[^\"'\n]{3,256})[\"']"),
    ("assword", r"assword:?\s?[\"']\s{1,3}send\s{1,3}(?:--\s)?[\"'](?P<value>[^\"'\n\\]{3,256})"),
    ("community", r"snmp-server\s+community\s+(?P<value>\S{3,64})(?=\s+R[OW])"),
    ("password", r"password\s+[5-9]\s+(?P<value>[\w$./]{8,128})"),
    ("bindpw", r"(?<![a-z])bindpw\s+(?P<value>\S{3,256})"),
    ("]:", r"\]:\d{2,5}\s+[^\s:]{1,80}:(?P<value>\S{3,256})"),
    ("wifi:", r"(?<![a-z])WIFI:[^\n]{0,120}?(?<=[:;])P:(?P<value>[^;\n]{3,128});"),
    (
        ":",
        r"^[\w.-]{1,80}:(?:\d{2,5}|\*?):[\w.*-]{0,64}:[\w.*@-]{1,64}:(?P<value>(?=\S{0,64}[A-Za-z])[^\s:]{4,256})[ \t]*$",
    ),
    (
        " ",
        r"(?<![\w$])(?:set\s+-\w{1,4}|setx|ENV|ARG)[ \t]+(?=\w{0,60}(?:passw|pass(?!\w)|secret|token|key|pwd))\w{2,80}[ \t]+"
        r"(?P<value>[^\s=]\S{3,4096})",
    ),
    ("otpauth", r"otpauth://[^\s\"'<>]{1,300}?[?&]secret=(?P<value>[A-Z2-7]{8,128})"),
    ("private-lines", r"Private-Lines:\s\d{1,3}\s(?P<value>[A-Za-z0-9+/=\s]{16,8000})(?=\sPrivate-MAC)"),
    ("fernet", r"Fernet\(\s{0,3}b?[\"'](?P<value>[\w=-]{40,48})[\"']"),
    ('"d"', r"\"d\"\s{0,3}:\s{0,3}\"(?P<value>[\w-]{40,1024})\""),
)
_COOKIES = re.compile(
    r"(?:(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}|(?:-b|--cookie)[ =]{1,3})[\"']?(?P<pairs>[\w.%-]{1,64}=[^\n\"']{1,4000})",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"(?P<name>[\w.%-]{1,64})=(?P<bare>[^;\s,\"']{8,4096})")
_MAILED = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}\s{0,3}(?:/|\||:|;|,?\s(?:and|with|und|mit)\s|\s-\s)\s{0,3}[\"'`]?(?P<bare>[^\s\"'`<>,;|]{6,128})"
)
_LOGGED_IN = re.compile(
    r"(?:log(?:ged)?[ -]?(?:in|on)|sign(?:ed)?[ -]?in|zugangsdaten|login)(?:\s\w{1,12}){0,2}\s[\w.@+-]{1,64}\s(?:with|using|and|und|mit|/)\s"
    r"[\"'`]?(?P<bare>[^\s\"'`<>,;|]{6,128})",
    re.IGNORECASE,
)
_SECOND_FACTOR = re.compile(
    r"(?<![A-Za-z])(?i:2fa|totp|otp|mfa|two-factor|authenticator)[ _-]?(?:\w{1,12}[ _-]){0,2}(?:secret|seed|key|code)?\s{0,3}(?:is|:|=|to)?"
    r"[\"'\s]{0,3}(?P<bare>[A-Z2-7]{16,64}=*|(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}"
    r"|(?=[a-z -]{0,80}[2-7])(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})(?![A-Za-z0-9])",
)
_BYTES = re.compile(r"\[\s{0,4}(?:\d{1,3}\s{0,2},\s{0,4}){63}\d{1,3}\s{0,4}\]")
_MIN_COOKIE = 16
_NOT_A_WORD = re.compile(r"\d|=\Z|.{41}", re.DOTALL)


def find_forms(text: str) -> Iterator[Span]:
    """The secrets in `text`, in no order; spans may overlap."""
    for find in (keys.find_keys, keys.find_bodies, keys.find_broken, keys.find_encoded, keys.find_phrases):
        yield from find(text)
    lowered = text.lower()
    if may_have_number(lowered):
        yield from keys.find_numbers(text)
    if "-----begin" in lowered:
        yield from keys.find_blocks(text)
    yield from layouts.find_codes(text)
    yield from layouts.find_manifests(text)
    names = find_names(text)
    yield from find_named(names, text)
    yield from layouts.find_in_tables(names, text)
    yield from layouts.find_answers(names, text)
    yield from (Span(*found.span(), "wallet-key") for found in _BYTES.finditer(text))
    yield from (span_of(pair, "password") for pair in PAIR.finditer(text) if is_password(pair, may_be_word=False))
    yield from (span_of(found, "password") for found in _LOGGED_IN.finditer(text) if is_made(value_of(found)))
    if "@" in text:
        yield from (span_of(found, "password") for found in _MAILED.finditer(text) if is_made(value_of(found)))
    if "://" in text:
        yield from (
            span_of(found, "password") for found in _ADDRESS.finditer(text) if not is_placeholder(found["bare"])
        )
    if any(hint in lowered for hint in ("authorization", "bearer", "x-", "-token", "-key")):
        yield from (
            span_of(found, "authorization")
            for found in _AUTHORIZED.finditer(text)
            if not is_placeholder(value_of(found)) and _NOT_A_WORD.search(value_of(found))
        )
    if "cookie" in lowered or " -b" in text:
        cookies = (
            cookie for header in _COOKIES.finditer(text) for cookie in _COOKIE.finditer(text, *header.span("pairs"))
        )
        strong = (cookie for cookie in cookies if is_strong(value_of(cookie)))
        yield from (span_of(cookie, "cookie") for cookie in strong if len(value_of(cookie)) >= _MIN_COOKIE)
    yield from (span_of(found, "totp-secret") for found in _SECOND_FACTOR.finditer(text))
    for hint, form in _GIVEN:
        if hint in lowered:
            found = re.compile(form, re.IGNORECASE | re.MULTILINE).finditer(text)
            yield from (span_of(given, "password") for given in found if not is_placeholder(value_of(given)))
