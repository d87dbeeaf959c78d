"""Editing a note as it is written: the form, saving it, and both versions if another person changed the same lines."""

import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from starlette.requests import Request

from quaid.capture.writer import describe_new_problems
from quaid.errors import BadInputError, NoteChangedError, NoteNotFoundError, QuaidError, name_first
from quaid.history.merge import revert_change
from quaid.memory import Memory
from quaid.redaction import admit
from quaid.text.invisible import escaped, list_unseen
from quaid.text.line_ends import restore_lines
from quaid.vault import files, notes
from quaid.web.answer import Context, Form, Shown, go_to_written
from quaid.web.templating import memory_path
from quaid.web.word_diff import diff_words

MAX_EDITED = 512 * 1024
"""Bytes of a note that is edited on a page: a form holds it twice, each character in up to three bytes."""
MAX_LINES_NAMED = 5
"""Lines with an invisible character that are named."""
_BOM = "\ufeff"


def show_edit(memory: Memory, request: Request) -> Context:
    """Return the form with the whole referenced note."""
    path = memory.get(request.path_params["reference"]).document.path
    data = read_bytes(memory, path)
    return _fill_form(request, path, data, _decode(path, data))


def read_version(memory: Memory, request: Request) -> str:
    """Return a hash of the referenced note as it is on disk."""
    return notes.content_hash(read_bytes(memory, memory.get(request.path_params["reference"]).document.path))


def save_edit(memory: Memory, form: Form, request: Request) -> str | Shown:
    """Save the text of the form, as a commit in the owner's name; return the way to the memory, or, if that cannot be
    done, a page with the text.
    """
    try:
        before = urlsafe_b64decode(form.get("before", "").encode("ascii"))
        before.decode("utf-8")
    except ValueError as error:
        raise BadInputError("The form is incomplete, so nothing was saved. Open the note again.") from error
    reference = path = request.path_params["reference"]
    after = read_from_form(before, form.get("text", ""))
    try:
        path = memory.get(reference).document.path
        was, now = (notes.parse_note(path, data, place=memory.layout) for data in (before, after))
        if form.get("anyway"):
            loss = ""
        elif now.kind is not was.kind:
            loss = f"Without its frontmatter this would become a note of your own instead of a {was.kind.value}."
        else:
            loss = describe_new_problems(was, now) or ""
        if not loss:
            written = memory.writer.save_edit(path, before, after)
            return go_to_written(memory_path(written.id), written, "edited")
        problem = loss
    except NoteChangedError:
        there = read_bytes(memory, path)
        # The other changes are merged into the reader's text, which wins where both changed a line.
        filled = _fill_form(request, path, there, show_in_form(revert_change(there, before, after)[0]))
        theirs, yours = (admit(text, keep_lines=True).text for text in (_decode(path, there), show_in_form(after)))
        both = {"theirs": theirs, "yours": yours, "pieces": diff_words(theirs, yours)}
        return Shown("conflict.html", {**filled, **both})
    except QuaidError as error:
        path, problem, loss = reference, str(error).partition("\n")[0], ""
    filled = _fill_form(request, path, before, show_in_form(after))
    return Shown("edit.html", {**filled, "problem": problem, "warning": loss})


def show_in_form(data: bytes) -> str:
    """Return the text of a note for a form. UnicodeDecodeError: it is not UTF-8."""
    return data.decode("utf-8").removeprefix(_BOM)


def read_from_form(before: bytes, sent: str) -> bytes:
    """Return the note that was `before` in a form and came back as `sent`, with its byte order mark and its line ends.

    A browser ends every line of a form with CRLF, replaces NUL, and shows no byte order mark.
    """
    mark = _BOM if before.startswith(_BOM.encode()) else ""
    old = show_in_form(before)
    restored = restore_lines(old, sent, old.replace("\0", "\ufffd"))
    return f"{mark}{restored}".encode()


def _fill_form(request: Request, path: str, before: bytes, text: str) -> dict[str, Any]:
    """Return the fields of the form that changes the note `before` and contains `text`."""
    unseen = []
    for character, lines in list_unseen(text).items():
        name = unicodedata.name(character[0], "a control character").lower()
        where = name_first(list(map(str, lines)), MAX_LINES_NAMED)
        unseen.append(f"{escaped(character)} ({name}) in line{'s' if len(lines) > 1 else ''} {where}")
    return {
        "reference": request.path_params["reference"],
        "note_path": path,
        "before": urlsafe_b64encode(before).decode(),
        "version": notes.content_hash(before),
        "text": text,
        "unseen": unseen,
        "problem": "",
        "warning": "",
    }


def read_bytes(memory: Memory, path: str) -> bytes:
    """Return a note as it is on disk. NoteNotFoundError: it is gone."""
    data = files.read_note(memory.root, path)
    if data is None:
        raise NoteNotFoundError(path)
    return data


def _decode(path: str, data: bytes) -> str:
    problem = f"has more than {MAX_EDITED // 1024} KiB"
    if len(data) <= MAX_EDITED:
        try:
            return show_in_form(data)
        except UnicodeDecodeError:
            problem = "is not UTF-8"
    raise BadInputError(f"{path} {problem}: it cannot be edited on a page. Edit it with: quaid edit {path!r}")
