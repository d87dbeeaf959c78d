"""The source of an import, and the facts, entities, edges and files that a format finds in it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from quaid.capture.facts import NewFact
from quaid.errors import QuaidError
from quaid.history.source_repository import open_repository
from quaid.model import Edge
from quaid.vault import notes

Redact = Callable[[str], tuple[str, tuple[str, ...]]]
"""text -> (the text without secrets, their kinds)."""

MARKDOWN = (".md", ".markdown", ".mdc")
NOT_MARKDOWN = "files that are not markdown"
_MARKS = re.compile(r"[\s>]*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(?:\[[ xX/>-]\]\s+)?")
_REFERENCE = re.compile(r"(?:(?<!\s)\s+)?\[[^\[\]]*\]\s*$")


class ImportSource:
    """The files of a source by path. `name` is its own name, without its folders; a single file's path is that name.

    `passed_over` counts files that were not read, by reason. `program` stores these memories, if they are one's.
    `modified` has the times of the files, and `places` are the files and folders that they are in.
    """

    def __init__(self, name: str, files: Mapping[str, bytes], *, is_folder: bool = True, **more: Any) -> None:
        self.name = name
        self.files = files
        self.is_folder = is_folder
        self.has_obsidian: bool = more.get("has_obsidian", False)
        self.passed_over: Mapping[str, int] = more.get("passed_over", {})
        self.program: str = more.get("program", "")
        self.modified: Mapping[str, datetime] = more.get("modified", {})
        self.places: Sequence[Path] = more.get("places", ())

    @cached_property
    def first_committed(self) -> dict[str, float]:
        """The time at which each line, without its marks, was first committed to the git repository around it."""
        first: dict[str, float] = {}
        for place in self.places:
            with suppress(QuaidError, OSError):
                repository = open_repository(place if place.is_dir() else place.parent)
                for at, data in repository.read_versions(place, MARKDOWN) if repository else ():
                    for line in _list_lines((decode(data) or "").split("\n")):
                        first[line] = min(first.get(line, at), at)
        return first

    def find_commit_date(self, lines: Iterable[str]) -> datetime | None:
        """Return when all of these lines were committed for the first time; None where git does not have each."""
        committed = [self.first_committed.get(line) for line in _list_lines(lines)]
        known = [at for at in committed if at is not None]
        return datetime.fromtimestamp(max(known), UTC) if known and len(known) == len(committed) else None

    def find_modified(self, place: str) -> datetime | None:
        """Return when the file of a place was last changed, or else the whole source. A place begins with a format."""
        newest = max(self.modified.values(), default=None)
        return self.modified.get(place.partition(" ")[2], newest)

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


class LeftOut(Counter[str]):
    """What is not taken in, counted by reason. `lines` are (reason, text) of what was a line of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def add(self, reason: str, text: str) -> None:
        self[reason] += 1
        self.lines.append((reason, " ".join(text.split())))


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
        self.left_out = LeftOut()
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


def _list_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the words of each line that has any, without list marks and without a reference in brackets at its end."""
    for line in lines:
        if words := re.findall(r"\w+", _REFERENCE.sub("", _MARKS.sub("", line, count=1))):
            yield " ".join(words)


def decode(data: bytes) -> str | None:
    r"""Return text with `\n` newlines and no byte order mark, None when it is not text."""
    if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    text, _ = notes.decode(data, len(data))
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
