"""The source of an import, and the facts, entities, edges and files that a format finds in it."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from quaid.capture.facts import NewFact
from quaid.model import Edge
from quaid.vault import notes

Redact = Callable[[str], tuple[str, tuple[str, ...]]]
"""text -> (the text without secrets, their kinds)."""

MARKDOWN = (".md", ".markdown")
NOT_MARKDOWN = "files that are not markdown"


@dataclass(frozen=True)
class ImportSource:
    """The files of a source by path. `name` is its own name, without its folders; a single file's path is that name.
    `passed_over` counts files that were not read, by reason.
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


class ImportedEntity(NamedTuple):
    """A person, place or thing; `prose` is the text of its note besides facts and edges."""

    name: str
    type: str = "concept"
    aliases: tuple[str, ...] = ()
    prose: str = ""
    place: str | None = None
    created: datetime | None = None


class ImportContent:
    """The content of a source. `left_out` counts by reason; `redacted` names for each place the removed secrets.

    `imported_from` of the facts is their place: the file, permalink or id in the source. `files` are copied as they are
    (path in the vault, bytes), notes below the folder `into`. With `keeps_owners` a fact has the owner that the source
    names.
    """

    def __init__(self, redact: Redact, into: str = "", *, keeps_owners: bool = False) -> None:
        self.redact = redact
        self.into = into
        self.keeps_owners = keeps_owners
        self.facts: list[NewFact] = []
        self.entities: dict[str, ImportedEntity] = {}
        self.edges: list[Edge] = []
        self.files: list[tuple[str, bytes]] = []
        self.left_out: Counter[str] = Counter()
        self.redacted: dict[str, tuple[str, ...]] = {}

    def admit(self, place: str, text: str) -> str:
        """Return a text without its secrets, which `redacted` names under `place`."""
        admitted, secrets = self.redact(text)
        if admitted != text:
            self.redacted[place] = (*self.redacted.get(place, ()), *(secrets or ("private",)))
        return admitted

    def admit_bytes(self, place: str, data: bytes) -> bytes:
        """Return a file's bytes, unchanged unless there are secrets in them."""
        try:
            return self.admit(place, data.decode("utf-8")).encode("utf-8")
        except UnicodeDecodeError:  # one character per byte: other encodings come out as the bytes they were
            return self.admit(place, data.decode("latin-1")).encode("latin-1", "replace")


class ImportFormat:
    """A format that can be imported."""

    name = ""
    """As `--from` takes it and a commit names it."""

    @staticmethod
    def recognises(source: ImportSource) -> bool:
        """Return True when the content of `source` is of this format."""
        raise NotImplementedError

    @staticmethod
    def read(source: ImportSource, found: ImportContent) -> None:
        """Add all statements of the source to `found`, each text through `found.admit`."""
        raise NotImplementedError


def decode(data: bytes) -> str | None:
    r"""Return text with `\n` newlines and no byte order mark, None when it is not text."""
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    text, _ = notes.decode(data, len(data))
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
