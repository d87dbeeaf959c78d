"""A file of the owner's -> its text in parts, each with the place it stands at: a page, a heading."""

from __future__ import annotations

import codecs
import hashlib
import mimetypes
import os
import re
import shlex
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from quaid.errors import BadInputError
from quaid.redaction import admit
from quaid.vault import frontmatter, markdown
from quaid.vault.headings import without_control

MEGABYTE = 1_000_000
MAX_BYTES = 50 * MEGABYTE
MAX_CHARS = 2 * MEGABYTE
"""The maximum of text: half a million tokens, which is as much as one file should cost."""
PART_CHARS = 2_000
"""Longer parts are split: a few of them are shown again with the next piece, to understand it by."""

PDF = "application/pdf"
MARKDOWN = "text/markdown"
_MARKDOWN_ENDINGS = {".md", ".markdown", ".mkd", ".mdown", ".qmd", ".rmd"}
_ARCHIVES = {
    b"PK\x03\x04": "an archive or an office document",
    b"\x1f\x8b": "a compressed file",
    b"\xd0\xcf\x11\xe0": "an old office document",
}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file's text. `place` is `page 3`, a path of headings `Setup > Linux`, or empty."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as it was read, without its secrets: `redacted` names their kinds.

    `checksum` is the SHA-256 of its bytes; `remarks` are sentences about what could not be read.
    """

    path: Path
    data: bytes
    checksum: str
    media: str
    title: str | None
    pages: int | None
    parts: tuple[Part, ...]
    remarks: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.data)


def read_file(path: Path) -> SourceFile:
    """Read a text, markdown or PDF file.

    Raises:
        BadInputError: it is not such a file, cannot be read, holds no text, or is too large.
    """
    data = _read_bytes(path)
    found = SourceFile(path, data, hashlib.sha256(data).hexdigest(), "text/plain", None, None, ())
    if b"%PDF-" in data[:1024]:
        return _read_pdf(found)
    text, remarks = _decode(path, data)
    # Before anything is taken apart: half of a key is not recognised as one.
    safe = admit(text)
    found = replace(found, remarks=remarks, redacted=tuple(safe.redacted))
    if path.suffix.lower() in _MARKDOWN_ENDINGS:
        head = frontmatter.parse(safe.text)
        sections = markdown.sections(head.body)
        title = head.fields.get("title") or next((name for section in sections for name in section.heading[:1]), "")
        parts = [(" > ".join(section.heading), section.text) for section in sections]
        return _filled(found, parts, media=MARKDOWN, title=title if isinstance(title, str) else "")
    guessed = mimetypes.guess_type(path.name)[0] or ""
    return _filled(found, [("", safe.text)], media=guessed if guessed.startswith("text/") else found.media)


def _read_pdf(found: SourceFile) -> SourceFile:
    from quaid.capture.files.pdf import read_pdf

    title, texts, remarks = read_pdf(found.path, found.data)
    safe = [admit(text) for text in (title or "", *texts)]
    pages = [(f"page {number}", page.text) for number, page in enumerate(safe[1:], 1)]
    redacted = tuple(kind for page in safe for kind in page.redacted)
    found = replace(found, media=PDF, pages=len(pages), remarks=remarks, redacted=redacted)
    return _filled(found, pages, title=safe[0].text)


def _filled(
    found: SourceFile, parts: Iterable[tuple[str, str]], *, media: str | None = None, title: str = ""
) -> SourceFile:
    split = tuple(
        Part(" ".join(without_control(place).split()), piece)
        for place, text in parts
        for piece in markdown.split_text(without_control(text), PART_CHARS)
    )
    if not split:
        raise BadInputError(f"{found.path} holds no text. Give a file with something to read in it.")
    if sum(len(part.text) for part in split) > MAX_CHARS:
        raise BadInputError(
            f"{found.path} holds more than {MAX_CHARS // MEGABYTE} million characters of text. "
            "Give the part that matters."
        )
    title = " ".join(without_control(title).split())
    return replace(found, media=media or found.media, title=title or None, parts=split)


def _read_bytes(path: Path) -> bytes:
    """The bytes of a regular file; a pipe or a device would keep us waiting."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise BadInputError(
                f"{path} is a folder. Give its files one by one: quaid analyze {shlex.quote(str(path))}/*"
            )
        if not stat.S_ISREG(found.st_mode):
            raise BadInputError(f"{path} is not a regular file. Give a text, markdown or PDF file.")
        if found.st_size > MAX_BYTES:
            raise BadInputError(
                f"{path} has {found.st_size / MEGABYTE:,.0f} MB, and files up to {MAX_BYTES // MEGABYTE} MB are read. "
                "Give the part of it that matters."
            )
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise BadInputError(f"{path} does not exist. Check the path.") from error
    except (OSError, ValueError) as error:  # a name with a NUL
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInputError(f"{path} cannot be read ({reason}). Check the path and its permissions.") from error
    if not data.strip():
        raise BadInputError(f"{path} is empty. Give a file with something to read in it.")
    return data


def _decode(path: Path, data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file as a note would be read: UTF-8, UTF-16 with its mark, else Windows-1252.

    Raises:
        BadInputError: it is not text.
    """
    if data.startswith(_UTF16):
        return data.decode("utf-16", errors="replace"), ()
    if len(_CONTROL.findall(data)) > len(data) // 20 or data.startswith(tuple(_ARCHIVES)):
        what = next((f" (it looks like {what})" for magic, what in _ARCHIVES.items() if data.startswith(magic)), "")
        raise BadInputError(f"{path} is not a text, markdown or PDF file{what}. Save it as one of these and try again.")
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), (f"{os.fspath(path)} is not UTF-8; read as Windows-1252.",)
