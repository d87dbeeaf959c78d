"""A text in the encodings that files, databases and git objects may hold it in: found, and replaced by `[purged]`."""

import base64
import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate, pairwise
from urllib.parse import quote

from quaid.errors import UsageError
from quaid.vault.files import is_binary
from quaid.vault.layout import slug

PURGED = "[purged]"
MIN_CHARS = 4
"""A shorter text occurs by chance in any base64 and in many words."""
_SIGNS = b" \t\r\n\v\f>*_"
_BETWEEN = rb"(?:\s|\\[nrt]|[>*_])+"
"""Between two words: editors wrap lines, JSON escapes them, markdown adds its signs."""
_GAPS = (re.compile(rb"[\s>*_]+"), re.compile(rb"(?:\\[nrt]|[\s>*_])+"))
_MIN_SPLIT = 12
"""Bytes of a text within which a line may end: shorter ones may be two words by chance."""
_WIDE = {"utf-16-le": rb"(?:\s\0)+", "utf-16-be": rb"(?:\0\s)+"}
_ELLIPSIS = re.compile(rb"\s?(?:\xe2\x80\xa6|\\u2026|\.\.\.)\s?")
_MIN_CUT = 8
"""Bytes that are left of a text before or after an ellipsis: with fewer many another one begins as well."""
_MIN_BASE64 = 6
_UNQUOTED = re.compile(rb"(?m)^([^\"'\n#]*?(?:: |- ))(\[purged\][^\"\n]*)$")
"""A value of YAML that begins with a bracket would be a list."""
_FACT = re.compile(rb"(?m)^type: *fact *$")
_ID = re.compile(rb"(?m)^id: *[\"']?([0-9a-z]+)")
_MIN_WORDS = 3
"""A line of a note with fewer may be in any other note as well: a heading, a name."""
_MIN_VERSION = 10
"""Bytes of the version of a note that no other file has by chance."""


class Wording:
    """Texts to purge, whatever the case of their letters, also where lines end within them or `…` cuts them off.

    A fact that holds one loses its note, and so does a note of which one of the `versions` is given.

    Raises:
        UsageError: a text is too short, or a part of its replacement.
    """

    def __init__(self, texts: Iterable[str], versions: Iterable[bytes] = ()) -> None:
        self.versions = tuple(dict.fromkeys(versions))
        long = [data for data in self.versions if len(data) >= _MIN_VERSION]
        self._digests = {hashlib.sha256(data).digest() for data in long}
        self._ids = set(filter(None, map(_read_id, long)))
        self.texts = tuple(dict.fromkeys(text.strip() for text in texts))
        for text in self.texts:
            if len(text) < MIN_CHARS:
                raise UsageError(f"A text to purge needs at least {MIN_CHARS} characters. Give more of it.")
            if text.casefold() in PURGED:
                raise UsageError(f"{PURGED} stands for what is purged, so {text!r} cannot be. Give more of it.")
        plain = {tuple(form.lower().split()) for text in self.texts for form in _plain_forms(text)}
        wide = {  # the words in the encodings of two bytes a letter, and what is between them
            (tuple(word.encode(name, "surrogatepass") for word in re.split(r"[ \t\r\n\v\f]+", written)), between)
            for text in self.texts
            for written in _spellings(text)
            for name, between in _WIDE.items()
        }
        exact = {form for text in self.texts for form in _base64_forms(text)}
        slugs = {slug(text).encode() for text in self.texts if len(text.split()) > 2}
        groups = [
            _alternatives(b"wide", (between.join(map(re.escape, words)) for words, between in wide)),
            _alternatives(b"exact", map(re.escape, exact), flag=b"-i"),
            _alternatives(b"slug", map(re.escape, slugs)),
            _alternatives(b"plain", (_BETWEEN.join(map(re.escape, words)) for words in plain)),
        ]
        self._pattern = re.compile(b"|".join(filter(None, groups)) or b"(?!)", re.IGNORECASE)
        # One search of memory for each: the pattern is tried only where one of these occurs.
        # With how many letters of the text are before each of its words.
        lengths = {words: [len(word.translate(None, _SIGNS)) for word in words] for words in plain}
        self._squeezed = {
            b"".join(words).translate(None, _SIGNS): frozenset(accumulate(lengths[words])) for words in plain
        }
        anchors = {max(words, key=len).lower().translate(None, _SIGNS) for words, _ in wide}
        self._anchors = {*self._squeezed, *anchors, *(name.translate(None, _SIGNS) for name in slugs)}
        self._exact = exact
        self._long = [form for form in map(b" ".join, plain) if len(form) > _MIN_CUT]

    def is_in(self, data: bytes) -> bool:
        """Return whether `data` holds one of the texts in any encoding."""
        if self._is_near(data) and (self._pattern.search(data) or any(self._list_split(data))):
            return True
        return any(self._list_cuts(data))

    def change_file(self, data: bytes) -> bytes | None:
        """Return a file without the texts, None if it goes altogether."""
        is_version = bool(self._digests) and hashlib.sha256(data).digest() in self._digests
        if is_version or (self._ids and _read_id(data) in self._ids):
            return None
        if not self.is_in(data):
            return data
        return None if _FACT.search(_head(data)) else self.change_text(data)

    def change_text(self, data: bytes) -> bytes:
        """Return `data` with `[purged]` for each of the texts; in YAML's frontmatter it stays a string, and a file that
        is not text keeps its length.
        """
        if not self.is_in(data):
            return data
        if is_binary(data):  # offsets in it, such as those of a database or an archive, stay right
            data = self._pattern.sub(lambda found: _stand_in(found)[: len(found[0])].ljust(len(found[0])), data)
        else:
            data = self._pattern.sub(_stand_in, data)
        for listed in (self._list_split, self._list_cuts):
            last = len(data)
            for start, end in sorted(listed(data), reverse=True):
                if end <= last:
                    data, last = data[:start] + PURGED.encode() + data[end:], start
        end = data.find(b"\n---", 4) if data.startswith(b"---\n") else -1
        return data if end < 0 else _UNQUOTED.sub(rb'\1"\2"', data[:end]) + data[end:]

    def change_path(self, path: bytes) -> bytes:
        """Return a path with `purged` for each of the texts."""
        return self._pattern.sub(b"purged", path) if self._is_near(path) else path

    def _is_near(self, data: bytes) -> bool:
        """Return whether the letters of a text are there, whatever is between them."""
        joined = data.translate(None, _SIGNS)
        if any(form in joined for form in self._exact):
            return True
        lowered = [joined.lower()]
        if b"\\" in data:
            lowered.append(_GAPS[1].sub(b"", data).lower())
        return any(anchor in each for each in lowered for anchor in self._anchors)

    def _list_split(self, data: bytes) -> Iterator[tuple[int, int]]:
        """The (start, end) of texts within whose words lines end."""
        for gap in _GAPS:
            joined = gap.sub(b"", data)
            lowered = joined.lower()
            found = [(form, borders, lowered) for form, borders in self._squeezed.items() if len(form) >= _MIN_SPLIT]
            found += [(form, frozenset(), joined) for form in self._exact]
            found = [each for each in found if each[0] in each[2]]
            if not found:
                continue
            places = list(range(len(data)))
            for run in reversed(list(gap.finditer(data))):
                del places[run.start() : run.end()]
            for form, borders, text in found:
                for match in re.finditer(re.escape(form), text):
                    at = places[match.start() : match.end()]
                    jumps = ((offset, data[one + 1 : other]) for offset, (one, other) in enumerate(pairwise(at), 1))
                    if all(not run or offset in borders or b"n" in run or b"\n" in run for offset, run in jumps):
                        yield at[0], at[-1] + 1

    def _list_cuts(self, data: bytes) -> Iterator[tuple[int, int]]:
        """The (start, end) of what is left of a text that was cut off, such as in the subject of a commit."""
        lowered = data.lower()
        done = 0
        for gap in _ELLIPSIS.finditer(lowered) if self._long else ():
            for text in self._long:
                start = lowered.find(text[:_MIN_CUT], max(done, gap.start() - len(text)), gap.start())
                if start >= 0 and text.startswith(lowered[start : gap.start()]):
                    yield start, (done := gap.start())
                    break
            for text in self._long:
                end = lowered.find(text[-_MIN_CUT:], gap.end(), gap.end() + len(text)) + _MIN_CUT
                if end > gap.end() and text.endswith(lowered[gap.end() : end]):
                    yield gap.end(), (done := end)
                    break


def list_texts(versions: Collection[bytes]) -> list[str]:
    """Return what facts say, of all `versions`, a line a text: nobody else may repeat it. Other notes are no statement,
    and their words may well be elsewhere.
    """
    bodies = (data[len(_head(data)) :].decode("utf-8", "replace") for data in versions if _FACT.search(_head(data)))
    lines = (line.strip() for body in bodies for line in body.splitlines() if line.strip("- \t"))
    return list(dict.fromkeys(line for line in lines if len(line.split()) >= _MIN_WORDS))


def _read_id(data: bytes) -> bytes:
    """Return the id in the frontmatter of a note, empty where there is none."""
    found = _ID.search(_head(data))
    return found[1] if found else b""


def _head(data: bytes) -> bytes:
    end = data.find(b"\n---", 4) if data.startswith(b"---") else -1
    return data[: end + 4] if end > 0 else b""


def _plain_forms(text: str) -> Iterator[bytes]:
    for written in _spellings(text):
        raw = written.encode("utf-8", "surrogatepass")
        in_json = json.dumps(written)[1:-1]
        yield from (raw, raw.hex().encode(), quote(written, safe="").encode(), quote(written).encode())
        yield from (in_json.encode(), json.dumps(in_json)[1:-1].encode())
        yield json.dumps(written, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
        yield quote(written, safe="").replace("%20", "+").encode()
        yield html.escape(written).encode("utf-8", "surrogatepass")
        yield b"".join(b"%%%02x" % byte for byte in raw)
        yield re.sub("(....)", r"\\u\1", written.encode("utf-16-be", "surrogatepass").hex()).encode()
        yield "".join(f"&#{ord(letter)};" for letter in written).encode()
        yield "".join(f"&#x{ord(letter):x};" for letter in written).encode()
        try:
            yield written.encode("latin-1")
        except UnicodeEncodeError:
            continue


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
