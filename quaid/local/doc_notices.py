"""Notices for agents about documents that describe what they have changed: a file of the state folder.

A notice counts until its document is written again: nothing else is looked at by the hooks that deliver it.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.local import state_files
from quaid.place import write_private

FILE = "doc_notices.json"
MAX_SHOWN = 3
_MAX_STORED = 200


class DocNotice(NamedTuple):
    """That the document `doc`, a `file` of the project at `root`, describes what `session` changed: `what`."""

    doc: str
    what: str
    session: str
    file: str
    root: str
    modified_ns: int


def read(state: Path) -> list[DocNotice]:
    """Return the notices whose documents were not written since."""
    found = []
    with suppress(OSError, ValueError, TypeError):
        for row in json.loads(state_files.read(state / FILE)):
            notice = DocNotice(*row)
            with suppress(OSError):
                found += [notice] * (os.stat(notice.file).st_mtime_ns == notice.modified_ns)  # noqa: PTH116 - quick
    return found


def store(state: Path, session: str, notices: Sequence[DocNotice]) -> None:
    """Replace the notices of a session, and those of others about the same documents."""
    docs = {notice.doc for notice in notices}
    others = [known for known in read(state) if known.session != session and known.doc not in docs]
    write_private(state / FILE, json.dumps([*others, *notices][-_MAX_STORED:]))


def render(notices: Sequence[DocNotice], who: str) -> str:
    """Return the notices in one line; empty without any. `who` changed what the documents describe."""
    named = "; ".join(f"{notice.doc} describes {notice.what}" for notice in notices[:MAX_SHOWN])
    more = len(notices) - MAX_SHOWN
    rest = f"; and {more} more documents: quaid docs check" if more > 0 else ""
    return f"{named}, which {who} changed{rest}." if named else ""
