"""A text in the encodings that files, databases and git objects may hold it in: found, and replaced."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from quaid.errors import UsageError
from quaid.vault.layout import slug

PURGED = "[purged]"
MIN_CHARS = 4
"""A shorter text stands by chance in any base64 and in many words."""
_BETWEEN = rb"(?:\s|\\[nrt]|[>*_])+"
"""Between two words: editors wrap lines, JSON escapes them, markdown adds its signs."""
_MIN_BASE64 = 6
_UNQUOTED = re.compile(rb"(?m)^([^\"'\n#]*?(?:: |- ))(\[purged\][^\"\n]*)$")
"""A value of YAML that begins with a bracket would be a list."""


class Wording:
    """Texts to look for, whatever the case of their letters.

    Raises:
        UsageError: a text is too short.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(text.strip() for text in texts))
        for text in self.texts:
            if len(text) < MIN_CHARS:
                raise UsageError(f"A text to purge needs at least {MIN_CHARS} characters. Give more of it.")
        plain = {form for text in self.texts for form in _plain_forms(text)}
        wide = {form for text in self.texts for form in _wide_forms(text)}
        exact = {form for text in self.texts for form in _base64_forms(text)}
        slugs = {slug(text).encode() for text in self.texts if len(text.split()) > 2}
        groups = [
            _alternatives(b"wide", map(re.escape, wide)),
            _alternatives(b"exact", map(re.escape, exact), flag=b"-i"),
            _alternatives(b"slug", map(re.escape, slugs)),
            _alternatives(b"plain", (_BETWEEN.join(map(re.escape, form.split())) for form in plain)),
        ]
        self._pattern = re.compile(b"|".join(filter(None, groups)) or b"(?!)", re.IGNORECASE)
        # One search of memory for each: the pattern is tried only where one of these stands.
        self._anchors = {form.lower() for form in wide | slugs} | {
            max(re.split(rb"\s+", form), key=len).lower() for form in plain
        }
        self._exact = exact

    def is_in(self, data: bytes) -> bool:
        """Return whether `data` holds one of the texts in any encoding."""
        if any(form in data for form in self._exact):
            return True
        lowered = data.lower()
        return any(anchor in lowered for anchor in self._anchors) and self._pattern.search(data) is not None

    def replace(self, data: bytes) -> bytes:
        """Return `data` with `[purged]` for each of the texts; in YAML's frontmatter it stays a string."""
        if not self.is_in(data):
            return data
        data = self._pattern.sub(_stand_in, data)
        end = data.find(b"\n---", 4) if data.startswith(b"---\n") else -1
        return data if end < 0 else _UNQUOTED.sub(rb'\1"\2"', data[:end]) + data[end:]

    def replace_name(self, path: bytes) -> bytes:
        """Return a path with `purged` for each of the texts."""
        return self._pattern.sub(b"purged", path) if self.is_in(path) else path


def _plain_forms(text: str) -> Iterator[bytes]:
    for written in _spellings(text):
        yield written.encode("utf-8", "surrogatepass")
        yield json.dumps(written)[1:-1].encode()
        yield json.dumps(written, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
        yield quote(written, safe="").encode()
        yield quote(written).encode()
        yield quote(written, safe="").replace("%20", "+").encode()
        try:
            yield written.encode("latin-1")
        except UnicodeEncodeError:
            continue


def _wide_forms(text: str) -> Iterator[bytes]:
    for written in _spellings(text):
        yield from (written.encode(name, "surrogatepass") for name in ("utf-16-le", "utf-16-be"))


def _spellings(text: str) -> set[str]:
    cases = {text, text.lower(), text.upper()}  # the pattern ignores the case of ASCII alone
    return {unicodedata.normalize(form, case) for case in cases for form in ("NFC", "NFD")}


def _base64_forms(text: str) -> Iterator[bytes]:
    """What does not depend on the neighbours of the text, at each of the three places it can have in base64."""
    for data in {unicodedata.normalize(form, text).encode("utf-8", "surrogatepass") for form in ("NFC", "NFD")}:
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + data)
            own = encoded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
            if len(own) >= _MIN_BASE64:
                yield from {own, own.replace(b"+", b"-").replace(b"/", b"_")}


def _alternatives(name: bytes, patterns: Iterable[bytes], flag: bytes = b"") -> bytes:
    ordered = sorted(patterns, key=len, reverse=True)
    inner = b"|".join(ordered)
    return b"(?P<%s>%s)" % (name, b"(?%s:%s)" % (flag, inner) if flag else inner) if ordered else b""


def _stand_in(found: re.Match[bytes]) -> bytes:
    if found.lastgroup == "wide":
        return PURGED.encode("utf-16-be" if found[0].startswith(b"\0") else "utf-16-le")
    return b"purged" if found.lastgroup in {"slug", "exact"} else PURGED.encode()
