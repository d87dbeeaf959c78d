"""Which documents their sources have left behind: the histories are read here, and what was found is kept.

A check costs nothing but a look at files while neither documents nor HEADs have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import significance
from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange
from quaid.docs.looking import Look, read_verdicts
from quaid.docs.registry import Project
from quaid.docs.staleness import Finding, Freshness
from quaid.docs.trees import Tree, Trees
from quaid.errors import QuaidError
from quaid.local.doc_checks import DocChecks
from quaid.local.tables import readable
from quaid.place import LOCAL_FILE, state_folder
from quaid.vault import notes

if TYPE_CHECKING:
    from quaid.sync.embedding import Progress

_FORM = "4"
"""Of what is kept; another number, and everything is looked at anew."""


class Checker:
    """Checks the documents of one vault."""

    def __init__(self, root: Path, projects: Sequence[Project], progress: Progress | None = None) -> None:
        self._root = root
        self._trees = Trees(root, projects)
        self._progress = progress or (lambda _what, _done, _total: None)
        self._kept = DocChecks(state_folder(root) / LOCAL_FILE)

    def check(self, docs: Sequence[Doc], *, is_all: bool = False) -> list[Freshness]:
        """How true each of `docs` is, by the filter alone. `is_all` says that there are no others, so that what is
        kept of others may go.
        """
        kept = self._read_kept()
        keys = {doc.id: self._key(doc) for doc in docs}
        same = {doc.id for doc in docs if doc.id in kept and kept[doc.id][0] == keys[doc.id]}
        known = {found.doc: found for found in readable(_of_text, (kept[doc_id][1] for doc_id in same))}
        todo = [doc for doc in docs if doc.id not in known]
        verdicts = read_verdicts(found for _, found in kept.values()) if todo else {}
        look = Look(self._root, self._trees, verdicts, self._progress)
        fresh = {found.doc: found for found in look.at(todo)} if todo else {}
        gone = frozenset(kept.keys() - keys.keys()) if is_all else frozenset()
        if fresh or gone:
            told = {doc: {**found.as_json(), "filter": significance.VERSION} for doc, found in fresh.items()}
            # Where the vault's HEAD is, is no part of a key: each memory moves it. What awaits a commit has none.
            rows = {doc: ("" if doc in look.uncommitted else keys[doc], json.dumps(its)) for doc, its in told.items()}
            with suppress(QuaidError):  # where nothing can be written, the next check looks again
                self._kept.keep(rows, gone)
        return self._with_edited(docs, [known.get(doc.id) or fresh[doc.id] for doc in docs])

    def note_edited(self, paths: Sequence[Path]) -> None:
        """Remember that an agent has changed these files: until they are committed, documents may wait for that."""
        self._kept.note_edited([str(path) for path in paths], notes.render_time(datetime.now(UTC)))

    def _with_edited(self, docs: Sequence[Doc], found: list[Freshness]) -> list[Freshness]:
        """The same, each with those of its sources that were edited and are not as HEAD has them."""
        try:
            open_paths = self._kept.edited()
        except QuaidError:
            return found
        if not open_paths:
            return found
        edited: dict[Tree, set[str]] = {}
        settled = []
        for path in map(Path, open_paths):
            tree = self._trees.open(path.parent)
            if tree is None or not tree.is_changed(path):
                settled.append(str(path))
            else:
                edited.setdefault(tree, set()).add(tree.inside(path))
        if settled:
            self._kept.forget_edited(settled)
        return [
            replace(freshness, edited=tuple(source for source in freshness.sources if source in mine))
            if mine
            else freshness
            for doc, freshness in zip(docs, found, strict=True)
            for mine in [{path for place in self._trees.places(doc) for path in edited.get(place.tree, ())}]
        ]

    def kept(self) -> list[Freshness]:
        """What the last check of each document found, whatever has happened since."""
        return list(readable(_of_text, (found for _, found in self._read_kept().values())))

    def _read_kept(self) -> dict[str, tuple[str, str]]:
        """Nothing, where local.db cannot be opened: a check must not need it."""
        try:
            return self._kept.read()
        except QuaidError:
            return {}

    def changes(self, findings: Sequence[Finding]) -> list[SourceChange]:
        """The findings with their bytes."""
        blobs: dict[str, bytes] = {}
        for top in dict.fromkeys(finding.top for finding in findings):
            tree = self._trees.open(Path(top))
            wanted = [
                blob for finding in findings if finding.top == top for blob in (finding.before, finding.after) if blob
            ]
            if tree is not None:
                blobs |= tree.repository.read_blobs(wanted)
        return [
            SourceChange(
                finding.path, finding.old_path, finding.kind,
                blobs.get(finding.before or ""), blobs.get(finding.after or ""), finding.commits,
            )
            for finding in findings
        ]  # fmt: skip

    def read_sources(self, found: Freshness, doc: Doc) -> dict[str, bytes]:
        """The sources of a document as HEAD has them."""
        contents: dict[str, bytes] = {}
        for place in self._trees.places(doc):
            there = place.tree.repository.files
            blobs = {there[path]: path for path in found.sources if path in there}
            contents |= {blobs[blob]: data for blob, data in place.tree.repository.read_blobs(blobs).items()}
        return contents

    def head_of(self, doc: Doc) -> str | None:
        """The commit at which the repository of a document's sources stands."""
        trees = [place.tree for place in self._trees.places(doc)]
        if len(trees) > 1:  # the newest: of the others it is the time that counts
            trees.sort(key=lambda tree: tree.log.commits[0].at if tree.log.commits else 0, reverse=True)
        return trees[0].repository.head if trees else None

    def _key(self, doc: Doc) -> str:
        """Names all that a check of `doc` rests on: its file, its row in the registry, and where the HEADs are."""
        try:
            stat = doc.file.stat()
            state: object = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        except OSError:
            state = None
        roots = self._trees.roots(doc)
        told = (_FORM, significance.VERSION, state, doc.sources, doc.true_at, roots, self._trees.heads(doc))
        return hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()


def _of_text(found: str) -> Freshness:
    return Freshness.of_json(json.loads(found))
