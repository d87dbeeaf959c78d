"""`sources/lease-3fa2c.md`: the facts that were learned from a file.

The head names the file, its checksum, its commit, and the facts that were drawn from it: `facts` are in the file,
`former` were in it before, or have been forgotten. The body is a summary; its owner's text below, or instead, stays.
"""

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from quaid.capture.files.source_file import SourceFile
from quaid.history.source_repository import Checkout
from quaid.model import Edit
from quaid.vault import files, frontmatter, layout, markdown, notes
from quaid.vault.notes import StoredNote

_MIN_DIGITS = 5
"""Hex digits of a note's name; more are used where another file has that name."""


class AnalysisRequest(NamedTuple):
    """A file to analyze, its place in a repository, and the focus of the analysis."""

    file: SourceFile
    checkout: Checkout | None
    focus: str = ""
    project: str | None = None

    @property
    def path(self) -> str:
        """Relative to its repository, else to the home folder or the root: the same on other machines, if possible."""
        if self.checkout is not None:
            return files.printable(self.checkout.path)
        real, home = self.file.path.resolve(), Path.home()
        is_at_home = real.is_relative_to(home)
        return files.printable(f"~/{real.relative_to(home).as_posix()}" if is_at_home else real.as_posix())

    @property
    def repository(self) -> str | None:
        return self.checkout.repository if self.checkout else None

    def note_paths(self) -> list[str]:
        """Return the paths that its note can have, the likeliest first."""
        digest = hashlib.sha256(f"{self.repository}\0{self.path}".encode()).hexdigest()
        return [layout.source_path(self.file.path.name, digest[:length]) for length in (_MIN_DIGITS, 12, 40)]


class SourceNote(StoredNote):
    """A source note on disk. Its lists are names of fact notes."""

    @property
    def facts(self) -> list[str]:
        return _names(self.head.fields.get("facts"))

    @property
    def former(self) -> list[str]:
        return _names(self.head.fields.get("former"))

    def is_of(self, request: AnalysisRequest) -> bool:
        return (self.head.fields.get("path"), self.head.fields.get("repository")) == (request.path, request.repository)

    def is_current(self, request: AnalysisRequest, prompt: str) -> bool:
        """Return True for the same content, focus and prompt."""
        known = (self.head.fields.get("checksum"), self.head.fields.get("focus") or "", self.head.fields.get("prompt"))
        return known == (request.file.checksum, request.focus, prompt)


def plan_note(
    rel_path: str,
    request: AnalysisRequest,
    note: SourceNote | None,
    names: Sequence[str],
    summary: str,
    source: tuple[str | None, str | None],
    living: Collection[str],
    now: datetime,
    owner: str,
) -> tuple[Edit, tuple[str, ...]]:
    """Return the edit that writes or updates a source note, and the names of the facts that the file no longer states.

    Args:
        rel_path: its path.
        request: the file and the focus.
        note: the existing note.
        names: of the fact notes that were found.
        summary: of the file.
        source: (prompt, model).
        living: of the names that `note` lists those whose notes exist.
        now: the time of the analysis.
        owner: of a new note, to whom it is private.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the existing note cannot be edited.
    """
    before = [name for name in note.facts if name in living] if note else []
    # Another focus or prompt finds other facts in the same text: only changed text makes a fact missing.
    is_comparable = note is not None and (note.head.fields.get("focus") or "") == request.focus
    is_changed = note is not None and note.head.fields.get("checksum") != request.file.checksum
    missing = [name for name in before if name not in names] if is_comparable and is_changed else []
    facts = list(dict.fromkeys([*(name for name in before if name not in missing), *names]))
    gone = [*note.former, *(name for name in note.facts if name not in living), *missing] if note else []
    former = [name for name in dict.fromkeys(gone) if name not in facts]
    fields: dict[str, frontmatter.Value | None] = {
        "title": request.file.title or files.printable(request.file.path.name),
        "path": request.path,
        "checksum": request.file.checksum,
        "size": request.file.size,
        "media": request.file.media,
        "pages": request.file.pages,
        "repository": request.repository,
        "branch": request.checkout.branch if request.checkout else None,
        "commit": request.checkout.commit if request.checkout else None,
        "uncommitted": True if request.checkout and request.checkout.is_changed else None,
        "analysed": notes.render_time(now),
        "focus": request.focus or None,
        "project": request.project,
        "prompt": source[0],
        "model": source[1],
        "summary_hash": _summary_hash(summary),
        "facts": _links(facts),
        "former": _links(former),
    }
    if note is None:
        whose: dict[str, frontmatter.Value | None] = (
            {"owner": owner, "privacy": "private"} if owner != "default" else {}
        )
        head = frontmatter.render(
            {"id": layout.new_id(now), "type": "source", **whose, "created": notes.render_time(now), **fields}
        )
        return Edit(rel_path, None, f"{head}{summary}\n".encode()), ()
    text = note.data.decode("utf-8")
    if request.project is None:  # it was given once
        del fields["project"]
    head, body = notes.split_body(frontmatter.set_fields(text, fields))
    start = len(body) - len(body.lstrip())
    end = body.find(notes.newline_of(body) * 2, start)
    end = len(body.rstrip()) if end < 0 else end
    if _summary_hash(body[start:end]) == note.head.fields.get("summary_hash"):  # the owner has not edited it
        body = f"{body[:start]}{summary}{body[end:]}"
    return Edit(note.rel_path, note.data, (head + body).encode()), tuple(missing)


def _summary_hash(summary: str) -> str:
    return notes.text_hash(summary)[:12]


def _links(names: Sequence[str]) -> list[str] | None:
    return [f"[[{name}]]" for name in names] or None


def _names(listed: object) -> list[str]:
    return [target for link in frontmatter.list_values(listed) for target in markdown.links(link)]
