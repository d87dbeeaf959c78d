"""The source of an import, and the facts, entities, edges and files that a reader finds in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from quaid.model import Edge
from quaid.vault import notes

Admit = Callable[[str], tuple[str, tuple[str, ...]]]
"""The gate before disk: a text -> (what of it may be written, the names of the secrets that were taken out)."""

MARKDOWN = (".md", ".markdown")
NOT_MARKDOWN = "files that are not markdown"


@dataclass(frozen=True)
class ImportSource:
    """The files of what is imported, path -> bytes, by path. `name` is its own name, without the folders around it; a
    single file's path is that name. `passed_over` counts files that were not read, by reason.
    """

    name: str
    files: Mapping[str, bytes]
    is_folder: bool = True
    has_obsidian: bool = False
    passed_over: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def notes(self) -> dict[str, str]:
        """The markdown files that are text."""
        texts = {path: decode(data) for path, data in self.files.items() if path.lower().endswith(MARKDOWN)}
        return {path: text for path, text in texts.items() if text is not None}

    @cached_property
    def only_text(self) -> str | None:
        """The text of a source that is a single file."""
        return None if self.is_folder else decode(next(iter(self.files.values())))


@dataclass(frozen=True, slots=True)
class ImportedFact:
    """A statement. `place` is where the source has it: the file, permalink or id that makes it this one.

    `created` and `valid_from` are what the source says of its age, None where it says nothing.
    """

    text: str
    place: str
    type: str = "fact"
    created: datetime | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    keywords: tuple[str, ...] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedEntity:
    """A person, place or thing; `prose` is what its own note says of it besides facts and edges."""

    name: str
    type: str = "concept"
    aliases: tuple[str, ...] = ()
    prose: str = ""
    place: str | None = None
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file to be kept as it is, at `rel_path` of the vault."""

    rel_path: str
    data: bytes


@dataclass(slots=True)
class ImportContent:
    """The content of a source. `left_out` counts by reason, `redacted` names for each place what the gate took out.

    `into` is the folder of the vault for files that are kept as they are, `keeps_owners` whether a memory belongs to
    whom the source says.
    """

    admit: Admit
    into: str = ""
    keeps_owners: bool = False
    facts: list[ImportedFact] = field(default_factory=list)
    entities: dict[str, ImportedEntity] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    files: list[ImportedFile] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    redacted: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def admitted(self, place: str, text: str) -> str:
        """Return the part of a text that may be written; `redacted` gets the rest under `place`."""
        admitted, secrets = self.admit(text)
        if admitted != text:
            self.redacted[place] = (*self.redacted.get(place, ()), *(secrets or ("private",)))
        return admitted

    def admitted_bytes(self, place: str, data: bytes) -> bytes:
        """A file's bytes, the very same unless there is something in them that may not be written."""
        try:
            return self.admitted(place, data.decode("utf-8")).encode("utf-8")
        except UnicodeDecodeError:  # one character per byte: what is in no encoding comes out as the bytes it was
            return self.admitted(place, data.decode("latin-1")).encode("latin-1", "replace")


def decode(data: bytes) -> str | None:
    r"""Text with `\n` newlines and no byte order mark, None when it is not text."""
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    text, _ = notes.decode(data, len(data))
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
