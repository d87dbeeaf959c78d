"""The text of a PDF, page by page."""

from __future__ import annotations

import io
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import BadInputError

if TYPE_CHECKING:
    from pypdf import PdfReader

MAX_PAGES = 2_000


def read_pdf(path: Path, data: bytes) -> tuple[str | None, list[str], tuple[str, ...]]:
    """(title, the text of each page, remarks).

    Raises:
        BadInputError: it is encrypted, broken, too long, or holds pictures of pages only.
    """
    # It tells of every oddity of a file by way of logging, which ends on stderr.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = _open(path, data)
    try:
        count = len(reader.pages)
    except Exception as error:  # a damaged file makes the library stumble in many ways
        raise _broken(path, error) from error
    if count > MAX_PAGES:
        raise BadInputError(
            f"{path} has {count:,} pages, and up to {MAX_PAGES:,} are read. Give the part that matters."
        )
    texts: list[str] = []
    unread: list[int] = []
    for number in range(count):
        try:
            texts.append(reader.pages[number].extract_text())
        except Exception:  # noqa: BLE001 - as above; other pages go on
            texts.append("")
            unread.append(number + 1)
    if unread and len(unread) == count:
        raise _broken(path, "no page can be read")
    if not any(text.strip() for text in texts):
        raise BadInputError(
            f"{path} holds pictures of its {count:,} pages and no text. Recognise the text first, for example "
            "with: ocrmypdf IN.pdf OUT.pdf"
        )
    blank = sum(not text.strip() for text in texts) - len(unread)
    remarks = [f"{path}: page {', '.join(map(str, unread[:10]))} cannot be read."] if unread else []
    remarks += [f"{path}: {blank:,} of {count:,} pages hold no text, pictures perhaps."] if blank else []
    title = None
    with suppress(Exception):  # as above: a title is not worth failing for
        title = reader.metadata.title if reader.metadata else None
    return title if isinstance(title, str) else None, texts, tuple(remarks)


def _open(path: Path, data: bytes) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(io.BytesIO(data))
        # Many files are encrypted with an empty password, only to forbid printing.
        is_locked = reader.is_encrypted and not reader.decrypt("")
    except DependencyError:  # AES, which needs a library of its own
        is_locked = True
    except Exception as error:  # as above
        raise _broken(path, error) from error
    if is_locked:
        raise BadInputError(
            f"{path} is encrypted. Save a copy without a password (print it to a PDF) and analyze that."
        )
    return reader


def _broken(path: Path, reason: object) -> BadInputError:
    what = " ".join(str(reason).split())[:120] or type(reason).__name__
    return BadInputError(f"{path} is a damaged PDF ({what}). Open it in a viewer, save it anew and try again.")
