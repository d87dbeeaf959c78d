"""A file -> its text in parts, each with its page or heading: text, markdown, PDF, HTML, Office, EPUB."""

import codecs
import hashlib
import io
import logging
import mimetypes
import os
import re
import shlex
import stat
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import BadInputError
from quaid.redaction import admit
from quaid.vault import frontmatter, markdown
from quaid.vault.headings import without_control

if TYPE_CHECKING:
    from pypdf import PdfReader

MEGABYTE = 1_000_000
MAX_BYTES = 50 * MEGABYTE
MAX_CHARS = 2 * MEGABYTE
"""Half a million tokens: as much as one file should cost."""
MAX_PAGES = 2_000
PART_CHARS = 2_000
"""Longer parts are split: a few of them are shown again with the next piece, as context."""

PDF = "application/pdf"
MARKDOWN = "text/markdown"
_MARKDOWN_ENDINGS = {".md", ".markdown", ".mkd", ".mdown", ".qmd", ".rmd"}
_WEB_ENDINGS = {".html", ".htm", ".xhtml"}
_CONVERTED_ENDINGS = {".docx", ".pptx", ".xlsx", ".xls", ".epub", *_WEB_ENDINGS}
MAX_UNPACKED_BYTES = 500 * MEGABYTE
"""The parts of an Office file or a book together: a small file may unpack to any size."""
_EXTRA = "pip install 'quaid[office]'"
_ARCHIVES = {
    b"PK\x03\x04": "an archive or an office document",
    b"\x1f\x8b": "a compressed file",
    b"\xd0\xcf\x11\xe0": "an old office document",
}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file without its secrets, whose kinds are `redacted`; `remarks` are sentences about unreadable parts.

    `parts` are (place, text): the place is `page 3`, a path of headings such as `Setup > Linux`, or empty.
    """

    path: Path
    data: bytes
    checksum: str
    media: str
    title: str | None
    pages: int | None
    parts: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return len(self.data)


def read_file(path: Path) -> SourceFile:
    """Read a text, markdown or PDF file; HTML, an Office file or an EPUB with the extra `office`.

    Raises:
        BadInputError: it is none of these, or damaged, encrypted, empty or too large.
    """
    data = _read_bytes(path)
    guessed = mimetypes.guess_type(path.name)[0] or ""
    found = SourceFile(path, data, hashlib.sha256(data).hexdigest(), "text/plain", None, None, ())
    if b"%PDF-" in data[:1024]:
        return _read_pdf(found)
    remarks: tuple[str, ...] = ()
    if path.suffix.lower() in _CONVERTED_ENDINGS:
        converted = _to_markdown(path, data)
        if converted is not None:
            safe = admit(converted)
            return _by_heading(replace(found, redacted=tuple(safe.redacted)), safe.text, guessed)
        remarks = (f"{os.fspath(path)} is read with its tags. This reads it as a browser shows it: {_EXTRA}",)
    if data.startswith(_UTF16):
        text = data.decode("utf-16", errors="replace")
    elif len(_CONTROL.findall(data)) > len(data) // 20 or data.startswith(tuple(_ARCHIVES)):
        what = next((f" (it looks like {what})" for magic, what in _ARCHIVES.items() if data.startswith(magic)), "")
        raise BadInputError(
            f"{path} is not a text, markdown, PDF, Office, EPUB or HTML file{what}. Save it as one of these."
        )
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", errors="replace")
            remarks += (f"{os.fspath(path)} is not UTF-8; read as Windows-1252.",)
    # Before the text is split: half of a key is not recognised as one.
    safe = admit(text)
    found = replace(found, remarks=remarks, redacted=tuple(safe.redacted))
    if path.suffix.lower() in _MARKDOWN_ENDINGS:
        head = frontmatter.parse(safe.text)
        title = head.fields.get("title")
        return _by_heading(found, head.body, MARKDOWN, title if isinstance(title, str) else "")
    return _filled(found, [("", safe.text)], media=guessed if guessed.startswith("text/") else found.media)


def _to_markdown(path: Path, data: bytes) -> str | None:
    """Return the text of an HTML, Office or EPUB file as markdown; None for HTML where the extra is not installed.

    Raises:
        BadInputError: the extra is missing, or the file is damaged or unpacks to too much.
    """
    ending = path.suffix.lower()
    try:
        from markitdown import MarkItDown, StreamInfo
    except ImportError as error:
        if ending in _WEB_ENDINGS:
            return None
        raise BadInputError(f"Reading {path} needs an extra of Quaid. Install it with: {_EXTRA}") from error
    try:
        if _unpacked_size(data) <= MAX_UNPACKED_BYTES:
            stream, form = io.BytesIO(data), StreamInfo(extension=ending)
            return MarkItDown(enable_plugins=False).convert_stream(stream, stream_info=form).markdown
    except Exception as error:
        what = " ".join(str(error).split())[:120]
        raise BadInputError(f"{path} cannot be read ({what}). Open it, save it anew and try again.") from error
    limit = f"{MAX_UNPACKED_BYTES // MEGABYTE} MB"
    raise BadInputError(
        f"{path} unpacks to more than {limit}, the most that is read. Give the part of it that matters."
    )


def _unpacked_size(data: bytes) -> int:
    """Return the size of all parts of a zip file, and 0 for any other."""
    if not data.startswith(b"PK"):
        return 0
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return sum(part.file_size for part in packed.infolist())


def _by_heading(found: SourceFile, text: str, media: str, title: str = "") -> SourceFile:
    """Return the file with the parts of its markdown `text`; the first heading is its title where it has no other."""
    sections = markdown.sections(text)
    title = title or next((name for section in sections for name in section.heading[:1]), "")
    parts = [(" > ".join(section.heading), section.text) for section in sections]
    return _filled(found, parts, media=media or found.media, title=title)


def _read_pdf(found: SourceFile) -> SourceFile:
    """Read a PDF page by page."""
    path = found.path
    # The library logs every oddity of a file, which would go to stderr, and stumbles over damaged ones in many ways.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = _open_pdf(path, found.data)
    try:
        count = len(reader.pages)
    except Exception as error:
        raise _broken_pdf(path, error) from error
    if count > MAX_PAGES:
        raise BadInputError(
            f"{path} has {count:,} pages, and up to {MAX_PAGES:,} are read. Give the part that matters."
        )
    texts: list[str] = []
    unread: list[int] = []
    for number in range(count):
        try:
            texts.append(reader.pages[number].extract_text())
        except Exception:  # noqa: BLE001 - other pages may be readable
            texts.append("")
            unread.append(number + 1)
    if unread and len(unread) == count:
        raise _broken_pdf(path, "no page can be read")
    if not any(text.strip() for text in texts):
        raise BadInputError(
            f"{path} holds pictures of its {count:,} pages and no text. Recognise the text first, for example "
            "with: ocrmypdf IN.pdf OUT.pdf"
        )
    blank = sum(not text.strip() for text in texts) - len(unread)
    remarks = [f"{path}: page {', '.join(map(str, unread[:10]))} cannot be read."] if unread else []
    remarks += [f"{path}: {blank:,} of {count:,} pages hold no text, pictures perhaps."] if blank else []
    title = None
    with suppress(Exception):  # a title is not worth failing for
        title = reader.metadata.title if reader.metadata else None
    safe = [admit(text) for text in (title if isinstance(title, str) else "", *texts)]
    pages = [(f"page {number}", page.text) for number, page in enumerate(safe[1:], 1)]
    redacted = tuple(kind for page in safe for kind in page.redacted)
    found = replace(found, media=PDF, pages=len(pages), remarks=tuple(remarks), redacted=redacted)
    return _filled(found, pages, title=safe[0].text)


def _open_pdf(path: Path, data: bytes) -> "PdfReader":
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(io.BytesIO(data))
        # Many files are encrypted with an empty password, only to forbid printing.
        is_locked = reader.is_encrypted and not reader.decrypt("")
    except DependencyError:  # AES, which needs a library of its own
        is_locked = True
    except Exception as error:
        raise _broken_pdf(path, error) from error
    if is_locked:
        raise BadInputError(
            f"{path} is encrypted. Save a copy without a password (print it to a PDF) and analyze that."
        )
    return reader


def _broken_pdf(path: Path, reason: object) -> BadInputError:
    what = " ".join(str(reason).split())[:120] or type(reason).__name__
    return BadInputError(f"{path} is a damaged PDF ({what}). Open it in a viewer, save it anew and try again.")


def _filled(
    found: SourceFile, parts: Iterable[tuple[str, str]], *, media: str | None = None, title: str = ""
) -> SourceFile:
    split = tuple(
        (" ".join(without_control(place).split()), piece)
        for place, text in parts
        for piece in markdown.split_text(without_control(text), PART_CHARS)
    )
    if not split:
        raise BadInputError(f"{found.path} holds no text. Give a file with something to read in it.")
    if sum(len(text) for _, text in split) > MAX_CHARS:
        raise BadInputError(
            f"{found.path} holds more than {MAX_CHARS // MEGABYTE} million characters of text. "
            "Give the part that matters."
        )
    title = " ".join(without_control(title).split())
    return replace(found, media=media or found.media, title=title or None, parts=split)


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file; reading a pipe or a device could block."""
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
        raise BadInputError.unreadable(path, error) from error
    if not data.strip():
        raise BadInputError(f"{path} is empty. Give a file with something to read in it.")
    return data
