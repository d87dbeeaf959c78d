"""One document on its way through a check, and what is found out about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceCommit
from quaid.docs.sources import Said, sources_of, true_at_of
from quaid.docs.staleness import Finding
from quaid.docs.trees import Tree, Trees
from quaid.history.source_repository import LoggedCommit, Touch
from quaid.vault import files

LONGEST_DOC = 2_000_000
"""Bytes of a document that are read."""


@dataclass(slots=True)
class Case:
    """`home` is the repository that a document lies in, None for one of the vault, whose sources have another history.

    `stated` is the commit at which it says, or its registry says, that it was true, `stated_at` when that was, where it
    is one of another repository; `base` the one at which it was, as far as can be told, and `at` when that was, in
    seconds since 1970. `beside` are its changes on branches that were merged since: what they knew, it knows. `steps`
    are the commits of each of the `drafts`, newest first. `is_in_repository` says that its sources are in one,
    `is_unreadable` that git cannot read that, `is_uncommitted` that it is a document of the vault that waits for a
    commit.
    """

    doc: Doc
    said: Said
    home: Tree | None
    stated: str | None
    stated_at: float | None = None
    base: str | None = None
    at: float = 0.0
    beside: Sequence[str] = ()
    true_at: SourceCommit | None = None
    updated: str | None = None
    is_in_repository: bool = False
    is_unreadable: bool = False
    is_uncommitted: bool = False
    sources: list[str] = field(default_factory=list)
    drafts: list[Finding] = field(default_factory=list)
    steps: list[Sequence[tuple[LoggedCommit, Touch]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, doc: Doc, trees: Trees) -> Case:
        text = (files.read_note(doc.folder, doc.rel_path, LONGEST_DOC) or b"").decode("utf-8", "replace")
        home = trees.open(doc.file.parent) if not doc.is_in_vault else None
        said = sources_of(doc.rel_path, text, doc.sources)
        return cls(doc, said, home, true_at_of(text) or doc.true_at, is_in_repository=bool(trees.places(doc)))
