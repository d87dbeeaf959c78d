"""Secrets in a text replaced by placeholders that name their kind.

Passwords and what else only people write are found by `secret_forms`; keys by Kingfisher, whose rules follow hundreds
of services and which works without the network.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from quaid.redaction.private_spans import PLACEHOLDER
from quaid.redaction.secret_forms import find_forms
from quaid.redaction.secret_values import Span

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
    while spans := _find_secrets(text, after):
        # What a secret has hidden, such as a quote, can show another one.
        text = _replace(text, spans, keep_lines=keep_lines)
    return text, tuple((Counter(PLACEHOLDER.findall(text)) - known).elements())


def _find_secrets(text: str, after: str) -> list[Span]:
    """The secrets in `text`, in order and apart from each other."""
    before = f"{after}\n" if after else ""
    plain = _Plain(before + text)
    found = _within(_apart(find_forms(plain.text), plain), len(before))
    return found or (_within(_apart(_detect(plain.text), plain), len(before)) if _may_hold_keys(plain.text) else [])


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


def _apart(spans: Iterator[Span], plain: _Plain) -> list[Span]:
    """`spans` in the original text: in order, joined where they overlap, and clear of placeholders."""
    apart: list[Span] = []
    moved = (Span(plain.origin(span.start), plain.origin(span.end - 1) + 1, span.kind) for span in spans)
    for span in sorted(_clear(moved, plain.placeholders), key=lambda span: (span.start, -span.end)):
        if apart and span.start < apart[-1].end:
            apart[-1] = apart[-1]._replace(end=max(apart[-1].end, span.end))
        else:
            apart.append(span)
    return apart


def _clear(spans: Iterator[Span], placeholders: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """`spans` as far as they reach before a placeholder: what is behind one is looked at again."""
    for span in spans:
        behind = bisect_right(placeholders, (span.start, span.start))
        inside = behind > 0 and placeholders[behind - 1][1] > span.start
        end = min(span.end, placeholders[behind][0]) if behind < len(placeholders) else span.end
        if not inside and span.start < end:
            yield span._replace(end=end)


def _may_hold_keys(text: str) -> bool:
    for run in _OPAQUE.finditer(text):
        is_separate = run.start() < 2 or text[run.start() - 1] not in "_-." or not text[run.start() - 2].isalnum()
        if not (is_separate and _HARMLESS.fullmatch(run[0])):
            return True
    return False


def _detect(text: str) -> Iterator[Span]:
    findings = _detector().scan(text.encode("utf-8", "replace"))
    kinds = {finding.secret: _kind(finding.rule_id) for finding in findings if finding.visible and finding.secret}
    for secret, kind in kinds.items():
        yield from (Span(*found.span(), kind) for found in re.finditer(re.escape(secret), text))


def _kind(rule: str) -> str:
    """`betterleaks.github-pat` -> `github-pat`."""
    return re.sub("[^a-z0-9]+", "-", re.split("[./]", rule)[-1].lower()).removeprefix("generic-").strip("-") or "secret"


@lru_cache(maxsize=1)
def _detector() -> Scanner:
    from kingfisher_sdk import Scanner

    return Scanner(base64=False)
