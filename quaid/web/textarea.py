"""A note in a form and back: what the reader has not touched comes back byte for byte.

A browser ends every line of a form with CRLF, replaces NUL, and shows a byte order mark nowhere.
"""

from __future__ import annotations

from quaid.text.line_ends import restore_lines

_BOM = "\ufeff"


def show_in_form(data: bytes) -> str:
    """Return the text of a note for a form.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    return data.decode("utf-8").removeprefix(_BOM)


def read_from_form(before: bytes, sent: str) -> bytes:
    """Return the note that was `before` in a form and came back as `sent`: its mark, its bytes where the text is the
    same, and line by line its own ends.
    """
    mark = _BOM if before.startswith(_BOM.encode()) else ""
    restored = restore_lines(show_in_form(before), sent, lambda line: line.replace("\0", "\ufffd"))
    return f"{mark}{restored}".encode()
