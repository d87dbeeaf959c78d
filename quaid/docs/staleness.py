"""The check for stale documents: those whose sources changed significantly since they were last true.

A check costs nothing but a look at files while neither documents nor HEADs have changed: what was found is kept.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import significance
from quaid.docs.catalogue import Doc
from quaid.docs.changes import ChangeKind
from quaid.docs.file_history import TracedFile, commit_of, trace
from quaid.docs.freshness import Freshness, SourceFinding, Status, first_commit_of
from quaid.docs.last_true import CheckedDoc, find_last_true
from quaid.docs.significance import Comparison
from quaid.docs.source_trees import SourceTree, SourceTrees
from quaid.errors import GitError, GitMissingError, QuaidError
from quaid.local.doc_cache import DocChecks
from quaid.local.tables import parse_rows
from quaid.place import LOCAL_FILE, state_folder
from quaid.vault import notes

if TYPE_CHECKING:
    from quaid.sync.embedding import Progress

Pair = tuple[str, str | None, str | None]
"""The name of a file and two of its blobs: what the filter compares."""
FirstCommits = Mapping[str, tuple[str, Pair] | None]
"""The oldest commits that touched what matters, oldest first: each with the repository and what it made of the source,
None where it gave it another name.
"""
MAX_COMMITS_COMPARED = 12
"""The maximum of commits that are compared one by one to find the first that mattered."""
_FORM = "4"
"""The form of what is kept; with another number everything is checked again."""


class StalenessCheck:
    """Checks the documents of one vault by the filter alone, and keeps what it found."""

    def __init__(self, root: Path, trees: SourceTrees, progress: Progress | None = None) -> None:
        self._root = root
        self._trees = trees
        self._progress = progress or (lambda _what, _done, _total: None)
        self._kept = DocChecks(state_folder(root) / LOCAL_FILE)

    def check(self, docs: Sequence[Doc], *, is_all: bool = False) -> list[Freshness]:
        """Check each of `docs`. `is_all` says that there are no others, so that what is kept of others may go."""
        kept = self._read_kept()
        keys = {doc.id: self._key(doc) for doc in docs}
        same = [doc.id for doc in docs if doc.id in kept and kept[doc.id][0] == keys[doc.id]]
        known = {found.doc: found for found in parse_rows(_of_text, (kept[doc_id][1] for doc_id in same))}
        todo = [doc for doc in docs if doc.id not in known]
        run = _CheckRun(self._root, self._trees, self._progress)
        for each in parse_rows(_comparisons_in, (found for _, found in kept.values()) if todo else ()):
            run.comparisons |= each
        fresh = {found.doc: found for found in run.at(todo)} if todo else {}
        gone = frozenset(kept.keys() - keys.keys()) if is_all else frozenset()
        if fresh or gone:
            found = {doc: {**asdict(found), "filter": significance.VERSION} for doc, found in fresh.items()}
            # The vault's HEAD is not part of a key, as each memory moves it. What awaits a commit has no key.
            rows = {doc: ("" if doc in run.uncommitted else keys[doc], json.dumps(its)) for doc, its in found.items()}
            with suppress(QuaidError):  # where nothing can be written, the next check looks again
                self._kept.keep(rows, gone)
        return self._with_edited(docs, [known.get(doc.id) or fresh[doc.id] for doc in docs])

    def kept(self) -> list[Freshness]:
        """Return what the last check of each document found, whatever has happened since."""
        return list(parse_rows(_of_text, (found for _, found in self._read_kept().values())))

    def note_edited(self, paths: Sequence[Path]) -> None:
        """Remember that an agent has changed these files: until they are committed, documents may wait for that."""
        self._kept.note_edited([str(path) for path in paths], notes.render_time(datetime.now(UTC)))

    def _with_edited(self, docs: Sequence[Doc], found: list[Freshness]) -> list[Freshness]:
        """The same, each with those of its sources that were edited and are not as HEAD has them."""
        try:
            noted = self._kept.edited()
        except QuaidError:
            return found
        edited: dict[SourceTree, set[str]] = {}
        settled = []
        for path in map(Path, noted):
            tree = self._trees.open(path.parent)
            if tree is None or not tree.is_changed(path):
                settled.append(str(path))
            else:
                edited.setdefault(tree, set()).add(tree.inside(path))
        if settled:
            self._kept.forget_edited(settled)
        if not edited:
            return found
        marked = []
        for doc, freshness in zip(docs, found, strict=True):
            paths = {path for place in self._trees.places(doc) for path in edited.get(place.tree, ())}
            marked.append(replace(freshness, edited=tuple(path for path in freshness.sources if path in paths)))
        return marked

    def _read_kept(self) -> dict[str, tuple[str, str]]:
        """Document -> (key, what was found); nothing where local.db cannot be opened: a check must not need it."""
        try:
            return self._kept.read()
        except QuaidError:
            return {}

    def _key(self, doc: Doc) -> str:
        """Names all that a check of `doc` rests on: its file, its row in the registry, and where the HEADs are."""
        try:
            stat = doc.file.stat()
            state: object = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        except OSError:
            state = None
        roots = self._trees.roots(doc)
        evidence = (_FORM, significance.VERSION, state, doc.sources, doc.true_at, roots, self._trees.heads(doc))
        return hashlib.sha256(repr(evidence).encode("utf-8", "surrogateescape")).hexdigest()


class _CheckRun:
    """One check of some documents: histories and blobs in, findings out. Known `comparisons` of the filter are not made
    again; `uncommitted` are the ids of those documents of the vault that wait for a commit.
    """

    def __init__(self, root: Path, trees: SourceTrees, progress: Progress) -> None:
        self._root = root
        self._trees = trees
        self._progress = progress
        self.comparisons: dict[Pair, Comparison] = {}
        self.uncommitted: set[str] = set()

    def at(self, docs: Sequence[Doc]) -> Iterator[Freshness]:
        """Check each of `docs`."""
        checked = [CheckedDoc.read(doc, self._trees) for doc in docs]
        find_last_true(self._root, checked)
        self.uncommitted |= {each.doc.id for each in checked if each.is_uncommitted}
        for number, each in enumerate(checked):
            self._progress("Reading histories", number, len(checked))
            try:
                self._find_changes(each)
            except (GitError, GitMissingError) as error:
                each.is_unreadable = True
                if not each.findings:  # what was seen before that is so whatever comes after it
                    each.true_at = None
                each.problems.append(str(error))
        self._progress("Reading histories", len(checked), len(checked))
        self._compare([(finding.top, _pair_of(finding)) for each in checked for finding in each.findings])
        first = [self._first_commits(each) for each in checked]
        self._compare([found for commits in first for found in commits.values() if found is not None])
        for each, commits in zip(checked, first, strict=True):
            yield self._conclude(each, commits)

    # -- what changed --------------------------------------------------------------------------------------------

    def _find_changes(self, checked: CheckedDoc) -> None:
        """Find the changes of the sources of one document since it was true."""
        unclear: dict[str, list[int]] = {}
        known: list[str] = []
        places = self._trees.places(checked.doc) if checked.references.written else []
        if checked.home is None and checked.stated:
            checked.find_time_stated([place.tree for place in places])
        for place in self._trees.with_submodules(places):
            references = place.visible(checked.references)
            if not references.written:
                continue
            folder, root = ("", "") if place.prefix else (place.folder, place.root)
            meant, unclear_here = place.tree.files.resolve(references, folder, root)
            for reference, count in unclear_here:
                unclear.setdefault(reference, []).append(count)
            own = place.tree.inside(checked.doc.file)
            paths = self._find_changes_in(place.tree, checked, [path for path in meant if path != own])
            known += [posixpath.join(place.prefix, path) for path in paths]
        for reference, counts in unclear.items():
            tail = posixpath.normpath(reference).lstrip("./")
            if not any(f"/{path}".endswith(f"/{tail}") or f"/{tail}/" in f"/{path}" for path in known):
                count = max(counts)
                problem = f"means {count} files; write more of its path" if count else "is not a file there"
                checked.problems.append(f"its source {reference} {problem}")

    def _find_changes_in(self, tree: SourceTree, checked: CheckedDoc, paths: Sequence[str]) -> list[str]:
        """Return the `paths` that are there, or were when the document was true."""
        if not paths:
            return []
        base = checked.base_in(tree)
        there = tree.repository.files
        checked.sources += [path for path in paths if path in there]
        if base is None:
            return [path for path in paths if path in there]
        after = checked.unknown_commits(tree, base)
        touched = [path for path in paths if path in tree.log.touching]
        traced = {path: found for path in touched if (found := trace(tree.log, after, path, there))}
        traces = list(traced.values())
        checked.sources += [found.now for found in traces if found.now and found.now not in checked.sources]
        before = tree.repository.blobs_at([(base, found.then) for found in traces]) if traces else []
        seen = {(finding.top, finding.path) for finding in checked.findings}
        for found, blob in zip(traces, before, strict=True):
            finding = _finding_of(found, blob, there.get(found.now or ""), str(tree.top))
            if finding is not None and (finding.top, finding.path) not in seen:
                seen.add((finding.top, finding.path))
                checked.findings.append(finding)
                checked.touches.append(found.touches)
        return [path for path in paths if path in there or path in traced]

    # -- what of it matters --------------------------------------------------------------------------------------

    def _compare(self, wanted: Sequence[tuple[str, Pair]]) -> None:
        """Let the filter compare each pair of blobs of a repository that it has not compared yet."""
        new = {pair: top for top, pair in wanted if pair not in self.comparisons}
        blobs: dict[str, bytes] = {}
        for top in dict.fromkeys(new.values()):
            tree = self._trees.open(Path(top))
            ids = [blob for pair, its in new.items() if its == top for blob in pair[1:] if blob]
            blobs |= tree.repository.read_blobs(ids) if tree is not None else {}
        for number, pair in enumerate(new):
            self._progress("Comparing sources", number, len(new))
            name, before, after = pair
            if all(blob in blobs for blob in (before, after) if blob):
                self.comparisons[pair] = significance.compare(name, blobs.get(before or ""), blobs.get(after or ""))
            else:
                self.comparisons[pair] = Comparison(is_trivial=False, why="not fetched")
        self._progress("Comparing sources", len(new), len(new))

    def _compared(self, finding: SourceFinding) -> SourceFinding:
        if finding.kind == "renamed" and finding.old_path:
            return replace(finding, is_trivial=False, why=f"renamed from {finding.old_path}")
        comparison = self.comparisons[_pair_of(finding)]
        return replace(finding, is_trivial=comparison.is_trivial, why=comparison.why)

    def _first_commits(self, checked: CheckedDoc) -> FirstCommits:
        touches = [
            (commit, touch, finding)
            for finding, commits in zip(checked.findings, checked.touches, strict=True)
            if not self._compared(finding).is_trivial
            for commit, touch in commits
        ]
        touches.sort(key=lambda one: one[0].at)
        return {
            commit.id: None
            if touch.old_path and finding.kind == "renamed"
            else (finding.top, (posixpath.basename(touch.path), touch.before, touch.after))
            for commit, touch, finding in touches[:MAX_COMMITS_COMPARED]
        }

    def _conclude(self, checked: CheckedDoc, first_commits: FirstCommits) -> Freshness:
        findings = tuple(map(self._compared, checked.findings))
        if not (checked.sources or findings):
            is_lost = checked.is_unreadable or (checked.references.is_stated and not checked.is_in_repository)
            status: Status = "no history" if is_lost and checked.references.written else "no sources"
        elif checked.true_at is None:
            status = "no history"
        else:
            status = "fresh" if all(finding.is_trivial for finding in findings) else "stale"
        # The first commit that by itself changed what matters; where none did, the first of those that changed it.
        alone = (commit for commit, its in first_commits.items() if not its or not self.comparisons[its[1]].is_trivial)
        oldest = first_commit_of(findings)
        since = next(alone, oldest.id if oldest is not None else None)
        commits = (commit for finding in findings for commit in finding.commits)
        return Freshness(
            checked.doc.id, status, checked.true_at, next((commit for commit in commits if commit.id == since), None),
            checked.references.origin, tuple(checked.sources), findings, checked.updated,
            problems=tuple(dict.fromkeys(checked.problems)),
        )  # fmt: skip


def _of_text(found: str) -> Freshness:
    return Freshness.of_json(json.loads(found))


def _comparisons_in(found: str) -> dict[Pair, Comparison]:
    """Return what the filter found in an earlier check, as stored; empty if that was another version of the filter."""
    shape = json.loads(found)
    return {
        (posixpath.basename(finding["path"]), finding["before"], finding["after"]): Comparison(
            finding["is_trivial"], finding["why"]
        )
        for finding in (shape["findings"] if shape.get("filter") == significance.VERSION else ())
        if finding["kind"] != "renamed"
    }


def _pair_of(finding: SourceFinding) -> Pair:
    return posixpath.basename(finding.path), finding.before, finding.after


def _finding_of(traced: TracedFile, before: str | None, after: str | None, top: str) -> SourceFinding | None:
    """Return how a traced source changed, by its blobs at both ends; None if it is again as it was."""
    if before == after and not traced.has_old_name:
        return None
    commits = tuple(commit_of(commit) for commit, _ in traced.touches)
    if traced.now is None:
        return SourceFinding(top, traced.then, None, "deleted", before, None, commits)
    if before is None:
        return SourceFinding(top, traced.now, None, "added", None, after, commits)
    old_path = traced.then if traced.then != traced.now else None
    kind: ChangeKind = "renamed" if traced.has_old_name else "modified"
    return SourceFinding(top, traced.now, old_path, kind, before, after, commits)
