"""`sources/lease-3fa2c.md`: what was learned from which file, in which state of it.

The head names the file, its checksum, what git knows of it, and the facts that were drawn from it: `facts` are in the
file, `former` were in it before, or have been forgotten. The body is a summary; what its owner writes below, or
instead, stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from quaid.capture.files.source_file import SourceFile
from quaid.history.checkout import Checkout
from quaid.model import Edit
from quaid.vault import files, frontmatter, layout, markdown, notes

_SHORTEST = 5
"""Hex digits of a note's name; more are taken where that name is another file's."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What is asked of which file: what was read of it, where it is kept, what to look for."""

    file: SourceFile
    checkout: Checkout | None
    focus: str = ""
    project: str | None = None

    @property
    def path(self) -> str:
        """In its repository, else from the home folder or the root: the same on another machine, where that can be."""
        if self.checkout is not None:
            return files.printable(self.checkout.path)
        real, home = self.file.path.resolve(), Path.home()
        is_at_home = real.is_relative_to(home)
        return files.printable(f"~/{real.relative_to(home).as_posix()}" if is_at_home else real.as_posix())

    @property
    def repository(self) -> str | None:
        return self.checkout.repository if self.checkout else None

    def note_paths(self) -> list[str]:
        """Where its note may be, the likeliest first."""
        digest = hashlib.sha256(f"{self.repository}\0{self.path}".encode()).hexdigest()
        return [layout.source_path(self.file.path.name, digest[:length]) for length in (_SHORTEST, 12, 40)]


@dataclass(frozen=True, slots=True)
class KeptNote:
    """A source note as it is on disk. Lists are names of fact notes."""

    rel_path: str
    data: bytes
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, rel_path: str, data: bytes) -> KeptNote:
        return cls(rel_path, data, frontmatter.parse(data.decode("utf-8", errors="replace")).fields)

    @property
    def facts(self) -> list[str]:
        return _names(self.fields.get("facts"))

    @property
    def former(self) -> list[str]:
        return _names(self.fields.get("former"))

    def is_of(self, inquiry: Inquiry) -> bool:
        return (self.fields.get("path"), self.fields.get("repository")) == (inquiry.path, inquiry.repository)

    def is_current(self, inquiry: Inquiry, prompt: str) -> bool:
        """Whether the same was asked of the same content by the same prompt."""
        asked = (self.fields.get("checksum"), self.fields.get("focus") or "", self.fields.get("prompt"))
        return asked == (inquiry.file.checksum, inquiry.focus, prompt)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a model made of an inquiry: names of the fact notes, found now, and the summary."""

    found: Sequence[str]
    summary: str
    prompt: str
    model: str


@dataclass(frozen=True, slots=True)
class NotePlan:
    """`missing` are names of facts that the file said before and does not say now."""

    edit: Edit
    missing: tuple[str, ...] = ()


def plan_note(
    rel_path: str, inquiry: Inquiry, kept: KeptNote | None, analysis: Analysis, living: Collection[str], now: datetime
) -> NotePlan:
    """The note of an analysis; an earlier one is brought up to date.

    Args:
        rel_path: where it is to be.
        inquiry: the file and the question.
        kept: the note that is there.
        analysis: what was found.
        living: of the names that `kept` lists those whose notes are there still.
        now: the moment of the analysis.

    Raises:
        FrontmatterBrokenError, UnicodeDecodeError: the note that is there cannot be edited.
    """
    facts, former, missing = _sort(inquiry, kept, analysis.found, living)
    fields: dict[str, frontmatter.Value | None] = {
        "title": inquiry.file.title or files.printable(inquiry.file.path.name),
        "path": inquiry.path,
        "checksum": inquiry.file.checksum,
        "size": inquiry.file.size,
        "media": inquiry.file.media,
        "pages": inquiry.file.pages,
        "repository": inquiry.repository,
        "branch": inquiry.checkout.branch if inquiry.checkout else None,
        "commit": inquiry.checkout.commit if inquiry.checkout else None,
        "uncommitted": True if inquiry.checkout and inquiry.checkout.is_changed else None,
        "analysed": notes.render_time(now),
        "focus": inquiry.focus or None,
        "project": inquiry.project,
        "prompt": analysis.prompt,
        "model": analysis.model,
        "summary_hash": _summary_hash(analysis.summary),
        "facts": _links(facts),
        "former": _links(former),
    }
    if kept is None:
        head = frontmatter.render(
            {"id": layout.new_id(now), "type": "source", "created": notes.render_time(now), **fields}
        )
        return NotePlan(Edit(rel_path, None, f"{head}{analysis.summary}\n".encode()))
    text = kept.data.decode("utf-8")
    if inquiry.project is None:  # it was named once; that need not be said again
        del fields["project"]
    head, body = notes.split_body(frontmatter.set_fields(text, fields))
    body = _with_summary(body, str(kept.fields.get("summary_hash")), analysis.summary)
    return NotePlan(Edit(kept.rel_path, kept.data, (head + body).encode()), missing)


def _sort(
    inquiry: Inquiry, kept: KeptNote | None, found: Sequence[str], living: Collection[str]
) -> tuple[list[str], list[str], tuple[str, ...]]:
    """(facts, former facts, those that went from one to the other because the file no longer says them)."""
    if kept is None:
        return list(dict.fromkeys(found)), [], ()
    before = [name for name in kept.facts if name in living]
    # Another focus or prompt finds other facts in the same words: only of changed words is it news.
    is_changed = kept.fields.get("checksum") != inquiry.file.checksum
    is_same_question = (kept.fields.get("focus") or "") == inquiry.focus
    missing = [name for name in before if name not in found] if is_changed and is_same_question else []
    facts = dict.fromkeys([*(name for name in before if name not in missing), *found])
    former = dict.fromkeys([*kept.former, *(name for name in kept.facts if name not in living), *missing])
    return list(facts), [name for name in former if name not in facts], tuple(missing)


def _with_summary(body: str, old_hash: str, summary: str) -> str:
    """The body with its first paragraph replaced, if that still is the summary Quaid wrote."""
    newline = "\r\n" if "\r\n" in body else "\n"
    start = len(body) - len(body.lstrip())
    end = body.find(newline * 2, start)
    end = len(body.rstrip()) if end < 0 else end
    is_ours = _summary_hash(body[start:end]) == old_hash
    return f"{body[:start]}{summary}{body[end:]}" if is_ours else body


def _summary_hash(summary: str) -> str:
    return notes.text_hash(summary)[:12]


def _links(names: Sequence[str]) -> list[str] | None:
    return [f"[[{name}]]" for name in names] or None


def _names(listed: object) -> list[str]:
    links = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
    return [target for link in links if isinstance(link, str) for target in markdown.links(link)]
