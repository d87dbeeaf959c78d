"""The check for stale documents: those whose sources changed significantly since they were last true.

A document was last true at its own last real change, or at the commit that its owner noted. Results are stored: a check
reads no history while neither the documents nor the HEADs of their repositories have changed.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import significance, sources
from quaid.docs.catalogue import Doc
from quaid.docs.freshness import ChangeKind, Freshness, SourceCommit, SourceFinding, Status, first_commit_of
from quaid.docs.source_trees import SourcePlace, SourceTree, SourceTrees
from quaid.docs.sources import References
from quaid.errors import GitError, GitMissingError, QuaidError
from quaid.history.note_history import FileChange
from quaid.history.source_repository import MAX_COMMITS, Log, LoggedCommit, open_repository
from quaid.local.doc_cache import DocChecks
from quaid.local.tables import parse_rows
from quaid.place import LOCAL_FILE, state_folder
from quaid.redaction import admit
from quaid.vault import files, notes

if TYPE_CHECKING:
    from quaid.sync.embedding import Progress

Touch = tuple[LoggedCommit, FileChange]
"""A commit, and what it did to a file."""
Pair = tuple[str, str | None, str | None]
"""The name of a file and two of its blobs."""
MAX_COMMITS_COMPARED = 12
"""The maximum of commits that are compared one by one to find the first that mattered."""
_MAX_DOC_BYTES = 2_000_000
_FORMAT = "5"
"""Part of the key of a stored check. With another number everything is checked again."""


@dataclass(slots=True)
class _DocCheck:
    """One document during a check.

    `home` is the repository of a document outside the vault. `stated` is the commit that was noted for the document,
    `stated_at` its time if another repository has it. `base` is the commit at which the document was last true, `at`
    its time. `merged` are changes of the document on branches that were merged after `base`.
    """

    doc: Doc
    references: References
    places: Sequence[SourcePlace]
    home: SourceTree | None
    stated: str | None
    stated_at: float | None = None
    base: str | None = None
    at: float = 0.0
    merged: Sequence[str] = ()
    true_at: SourceCommit | None = None
    updated: str | None = None
    is_unreadable: bool = False
    sources: list[str] = field(default_factory=list)
    findings: list[tuple[SourceTree, SourceFinding, Sequence[Touch]]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def list_first_touches(self) -> list[tuple[int, LoggedCommit, FileChange]]:
        """Return the first changes of the sources, oldest first, each with the number of its finding."""
        touches = [(n, *touch) for n, (_, _, changes) in enumerate(self.findings) for touch in changes]
        return sorted(touches, key=lambda touch: touch[1].at)[:MAX_COMMITS_COMPARED]


class StalenessCheck:
    """Checks the documents of one vault without a model, and stores the results."""

    def __init__(self, root: Path, trees: SourceTrees, progress: Progress | None = None) -> None:
        self._root = root
        self._trees = trees
        self._progress = progress
        self._checks = DocChecks(state_folder(root) / LOCAL_FILE)

    def check(self, docs: Sequence[Doc], *, is_all: bool = False) -> list[Freshness]:
        """Check each of `docs`. With `is_all` there are no others: stored results of others are deleted."""
        stored = self._read_stored()
        keys = {doc.id: self._make_key(doc) for doc in docs}
        same = (stored[doc_id][1] for doc_id, key in keys.items() if doc_id in stored and stored[doc_id][0] == key)
        known = {found.doc: found for found in parse_rows(Freshness.parse, same)}
        todo = [doc for doc in docs if doc.id not in known]
        uncommitted: set[str] = set()
        fresh = {found.doc: found for found in self._check_now(todo, uncommitted)} if todo else {}
        gone = stored.keys() - keys.keys() if is_all else frozenset()
        if fresh or gone:
            # The vault's HEAD is not part of a key, as each memory moves it. What awaits a commit has no key.
            rows = {
                doc: ("" if doc in uncommitted else keys[doc], json.dumps(asdict(found)))
                for doc, found in fresh.items()
            }
            with suppress(QuaidError):  # where nothing can be written, the next check reads everything again
                self._checks.store(rows, gone)
        found = known | fresh
        return self._mark_edited(docs, [found[doc.id] for doc in docs])

    def stored(self) -> list[Freshness]:
        """Return the result of the last check of each document, whatever has happened since."""
        return list(parse_rows(Freshness.parse, (found for _, found in self._read_stored().values())))

    def note_edited(self, paths: Sequence[Path]) -> None:
        """Record that an agent has changed these files: they are reported until they are committed."""
        self._checks.note_edited([str(path) for path in paths], notes.render_time(datetime.now(UTC)))

    def _mark_edited(self, docs: Sequence[Doc], found: list[Freshness]) -> list[Freshness]:
        """Add to each result the sources that were edited and differ from HEAD."""
        try:
            noted = self._checks.edited()
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
            self._checks.forget_edited(settled)
        for place, doc in enumerate(docs if edited else ()):
            paths = {path for where in self._trees.places(doc) for path in edited.get(where.tree, ())}
            sources = tuple(path for path in found[place].sources if path in paths)
            found[place] = replace(found[place], edited=sources)
        return found

    def _read_stored(self) -> dict[str, tuple[str, str]]:
        """Return document -> (key, result); nothing if local.db cannot be opened, because a check must not need it."""
        try:
            return self._checks.read()
        except QuaidError:
            return {}

    def _make_key(self, doc: Doc) -> str:
        """Hash all that a check of `doc` depends on: its file, its row in the registry and the HEADs."""
        state: object = None
        with suppress(OSError):
            stat = doc.file.stat()
            state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        roots = self._trees.roots(doc)
        evidence = (_FORMAT, significance.VERSION, state, doc.sources, doc.true_at, roots, self._trees.heads(doc))
        return hashlib.sha256(repr(evidence).encode("utf-8", "surrogateescape")).hexdigest()

    # -- a check -------------------------------------------------------------------------------------------------

    def _check_now(self, docs: Sequence[Doc], uncommitted: set[str]) -> list[Freshness]:
        """Check `docs`, and add to `uncommitted` the ids of those in the vault that await a commit."""
        checked = []
        for doc in docs:
            text = (files.read_note(doc.folder, doc.rel_path, _MAX_DOC_BYTES) or b"").decode("utf-8", "replace")
            home = self._trees.open(doc.file.parent) if not doc.is_in_vault else None
            references = sources.sources_of(doc.rel_path, text, doc.sources)
            stated = sources.true_at_of(text) or doc.true_at
            checked.append(_DocCheck(doc, references, self._trees.places(doc), home, stated))
        for tree in dict.fromkeys(each.home for each in checked if each.home is not None):
            here = [each for each in checked if each.home is tree]
            try:
                _find_bases(tree, here)
            except GitError as error:
                for each in here:
                    each.problems.append(str(error))
        if in_vault := [each for each in checked if each.doc.is_in_vault]:
            uncommitted |= self._find_times(in_vault)
        for number, each in enumerate(checked):
            self._report("Reading histories", number, len(checked))
            try:
                self._find_changes(each)
            except (GitError, GitMissingError) as error:
                each.is_unreadable = True
                if not each.findings:
                    each.true_at = None
                each.problems.append(str(error))
        self._report("Reading histories", len(checked), len(checked))
        verdicts = self._compare(checked)
        return [_conclude(each, verdicts) for each in checked]

    def _report(self, task: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(task, done, total)

    def _find_times(self, checked: Sequence[_DocCheck]) -> set[str]:
        """Set when each document of the vault was last changed: its sources have another history. Return the ids of
        those that await a commit.
        """
        repository = open_repository(self._root)
        commits: Sequence[str | None] = [None] * len(checked)
        uncommitted = set()
        if repository is not None:
            tree = SourceTree(repository)
            paths = [tree.inside(each.doc.file) for each in checked]
            tree.log = repository.log(MAX_COMMITS, paths)
            commits = [commit for commit, _ in _read_last_changes(tree, paths)]
            for each, path in zip(checked, paths, strict=True):
                data = files.read_note(each.doc.folder, each.doc.rel_path) if each.references.written else None
                if data is not None and not repository.holds(path, data):
                    uncommitted.add(each.doc.id)
        for each, commit in zip(checked, commits, strict=True):
            if commit:
                each.at = tree.commit(commit).at
            else:
                with suppress(OSError):
                    each.at = each.doc.file.stat().st_mtime
            each.updated = notes.render_time(datetime.fromtimestamp(each.at, UTC))
        return uncommitted

    def _find_changes(self, checked: _DocCheck) -> None:
        """Find the changes of the sources of one document since it was true."""
        unclear: dict[str, int] = {}
        known: list[str] = []
        places = checked.places if checked.references.written else ()
        if checked.home is None and checked.stated and places:  # one of the repositories has the noted commit
            trees = [place.tree for place in places]
            found = ((tree, tree.find(checked.stated)) for tree in trees)
            checked.stated_at = next((float(tree.commit(commit).at) for tree, commit in found if commit), None)
            if checked.stated_at is None:
                names = " or ".join(dict.fromkeys(tree.top.name for tree in trees))
                checked.problems.append(f"{checked.stated[:12]} is not a commit that {names} knows")
        for place in self._trees.with_submodules(places):
            references = place.visible(checked.references)
            if not references.written:
                continue
            folder, root = ("", "") if place.prefix else (place.folder, place.root)
            named, unclear_here = place.tree.files.resolve(references, folder, root)
            for reference, count in unclear_here:
                unclear[reference] = max(count, unclear.get(reference, 0))
            own = place.tree.inside(checked.doc.file)
            paths = _find_changes_in(place.tree, checked, [path for path in named if path != own])
            known += [posixpath.join(place.prefix, path) for path in paths]
        for reference, count in unclear.items():
            tail = posixpath.normpath(reference).lstrip("./")
            if not any(f"/{path}".endswith(f"/{tail}") or f"/{tail}/" in f"/{path}" for path in known):
                problem = f"means {count} files; write more of its path" if count else "is not a file there"
                checked.problems.append(f"its source {reference} {problem}")

    def _compare(self, checked: Sequence[_DocCheck]) -> dict[Pair, tuple[bool, str]]:
        """Return for each pair of blobs whether the change is trivial, and why."""
        wanted: dict[Pair, SourceTree] = {}
        for each in checked:
            wanted |= {_pair(finding): tree for tree, finding, _ in each.findings}
            wanted |= {_pair(touch): each.findings[number][0] for number, _, touch in each.list_first_touches()}
        blobs: dict[str, bytes] = {}
        for tree in dict.fromkeys(wanted.values()):
            ids = [blob for pair, its in wanted.items() if its is tree for blob in pair[1:] if blob]
            blobs |= tree.repository.git.read_blobs(ids)
        verdicts = {}
        for number, (name, before, after) in enumerate(wanted):
            self._report("Comparing sources", number, len(wanted))
            verdict = False, "not fetched"
            if all(blob in blobs for blob in (before, after) if blob):
                verdict = significance.compare(name, blobs.get(before or ""), blobs.get(after or ""))
            verdicts[name, before, after] = verdict
        self._report("Comparing sources", len(wanted), len(wanted))
        return verdicts


def _pair(change: SourceFinding | FileChange) -> Pair:
    return posixpath.basename(change.path), change.before, change.after


def _conclude(checked: _DocCheck, verdicts: Mapping[Pair, tuple[bool, str]]) -> Freshness:
    findings = []
    for _, finding, _ in checked.findings:
        is_trivial, why = verdicts[_pair(finding)]
        if finding.kind == "renamed" and finding.old_path:
            is_trivial, why = False, f"renamed from {finding.old_path}"
        findings.append(replace(finding, is_trivial=is_trivial, why=why))
    references = checked.references
    status: Status = "stale"
    if not checked.sources and not findings:
        is_lost = checked.is_unreadable or (references.is_stated and not checked.places)
        status = "no history" if is_lost and references.written else "no sources"
    elif checked.true_at is None:
        status = "no history"
    elif all(finding.is_trivial for finding in findings):
        status = "fresh"
    # The first commit that alone changed what matters; else the first that changed anything.
    since = first_commit_of(findings)
    for number, commit, touch in checked.list_first_touches():
        is_rename = touch.old_path and findings[number].kind == "renamed"
        if not findings[number].is_trivial and (is_rename or not verdicts[_pair(touch)][0]):
            since = commit_of(commit)
            break
    return Freshness(
        doc=checked.doc.id,
        status=status,
        true_at=checked.true_at,
        since=since,
        origin=references.origin,
        sources=tuple(checked.sources),
        findings=tuple(findings),
        updated=checked.updated,
        problems=tuple(dict.fromkeys(checked.problems)),
    )


# -- when a document was last true -----------------------------------------------------------------------------------


def _find_bases(tree: SourceTree, checked: Sequence[_DocCheck]) -> None:
    """Set the commit of `tree` at which each document was last true, or why it is not known."""
    last_changes = _read_last_changes(tree, [tree.inside(each.doc.file) for each in checked])
    log = tree.log
    for each, (commit, changes) in zip(checked, last_changes, strict=True):
        if commit is not None:
            each.updated = commit_of(tree.commit(commit)).when
        if not each.references.written:
            continue
        stated = tree.find(each.stated) if each.stated else None
        if each.stated and stated is None:
            each.problems.append(f"{each.stated[:12]} is not a commit that {tree.top.name} knows")
        base = _newest(log, commit, stated)
        if base is None and log.commits:
            # A document without a commit is as new as HEAD. Else its last change is older than what was read.
            base = log.commits[0].id if log.is_whole else log.commits[-1].id
        if base in tree.repository.boundary:
            each.problems.append(f"{tree.top.name} is a shallow clone: its history begins at {str(base)[:10]}")
        elif not log.is_whole and base == log.commits[-1].id:
            each.problems.append(f"{tree.top.name} was looked at from {base[:10]} on: its history is long")
        if base is not None:
            each.base = base
            each.true_at = commit_of(tree.commit(base))
            each.at = float(tree.commit(base).at)
        if log.has_merges and changes:
            after = tree.after(changes[0][0].id)
            each.merged = [commit.id for commit, _ in changes if commit.id in after]


def _read_last_changes(tree: SourceTree, paths: Sequence[str]) -> list[tuple[str | None, list[Touch]]]:
    """Return for each document the last commit that changed more than its form, and all its changes, newest first."""
    log = tree.log
    changes = {path: _list_changes(tree, path) for path in paths}
    left = dict(changes)
    pending = set(paths)
    while pending:
        if not log.is_whole and not all(left[path] for path in pending):
            tree.read_older()
            if tree.log is not log:
                return _read_last_changes(tree, paths)
        touches = {path: left[path][0][1] for path in pending if left[path]}
        blobs = tree.repository.git.read_blobs(
            blob for touch in touches.values() for blob in (touch.before, touch.after) if blob
        )
        pending = set()
        for path, touch in touches.items():
            sides = [blobs.get(blob or "") for blob in (touch.before, touch.after)]
            # Who notes the sources of a document in its head or in SOURCES has not checked its text.
            texts = [None if side is None else sources.without_statement(side) for side in sides]
            if texts[0] is not None and significance.compare(path, *texts)[0]:
                left[path] = left[path][1:]
                pending.add(path)
    found = []
    for path in paths:
        # A document that was restored to an earlier version is as true as that version was.
        newest = left[path][0] if left[path] else None
        same = [past.id for past, its in left[path][1:] if newest and its.after == newest[1].after]
        on_branches = tree.after(newest[0].id) if newest and same and log.has_merges else {}
        restored = next((past for past in reversed(same) if past not in on_branches), None)
        found.append((restored or (newest[0].id if newest else None), changes[path]))
    return found


def _list_changes(tree: SourceTree, path: str) -> list[Touch]:
    """Return the changes of a document that no merge discarded, newest first."""
    changes = [(commit, touch) for commit, touch in changes_of(tree.log, path) if not touch.is_joined]
    now = tree.repository.files.get(path) if tree.log.has_merges else None
    made = next((commit for commit, touch in changes if touch.after == now), None)
    if now is None or made is None:
        return changes
    # The document is exactly what one branch made of it: it contains nothing of the other branches.
    discarded = tree.after(made.id)
    return [(commit, touch) for commit, touch in changes if touch.after == now or commit.id not in discarded]


# -- files in a log --------------------------------------------------------------------------------------------------


def commit_of(commit: LoggedCommit) -> SourceCommit:
    """Return a commit as it is stored and shown: without secrets in its subject."""
    when = notes.render_time(datetime.fromtimestamp(commit.at, UTC))
    return SourceCommit(commit.id, when, commit.author, admit(commit.subject).text)


def changes_of(log: Log, path: str) -> list[Touch]:
    """Return the commits that changed the file now at `path`, newest first. Renames are followed."""
    found: dict[str, Touch] = {}
    names: list[tuple[str, LoggedCommit | None]] = [(path, None)]
    for name, left in names:
        came: LoggedCommit | None = None
        for commit in log.touching.get(name, ()):
            touch = next((touch for touch in commit.touches if touch.path == name), None)
            if touch is None or commit.id in found:
                continue
            # Before the file got this name, and after it lost it, the name belongs to another file. On an unmerged
            # branch it is still this one.
            if (came and _is_before(log, commit, came)) or (left and _is_before(log, left, commit)):
                continue
            found[commit.id] = commit, touch
            if touch.old_path:
                came = commit
                names.append((touch.old_path, commit))
    return sorted(found.values(), key=lambda change: log.places[change[0].id])


def _is_before(log: Log, commit: LoggedCommit, other: LoggedCommit) -> bool:
    is_older = log.places[commit.id] > log.places[other.id]
    return is_older and (not log.has_merges or log.is_ancestor(commit.id, other.id))


def _newest(log: Log, *commits: str | None) -> str | None:
    return min((commit for commit in commits if commit in log.places), key=lambda c: log.places[c or ""], default=None)


def _find_base(tree: SourceTree, checked: _DocCheck) -> str | None:
    """Return the commit of another repository than the document's at which the document was last true."""
    if tree.log.commits and tree.log.commits[-1].at > checked.at:
        tree.read_older()
    stated = tree.log.find(checked.stated) if checked.stated else None
    if stated is None and checked.stated_at:
        stated = tree.log.at(checked.stated_at)
    base = _newest(tree.log, stated, tree.log.at(checked.at) if checked.at else None)
    if base is not None and checked.true_at is None:
        checked.true_at = commit_of(tree.commit(base))
    return base


def _find_changes_in(tree: SourceTree, checked: _DocCheck, paths: Sequence[str]) -> list[str]:
    """Add the changes of the sources `paths`; return those that exist, or existed when the document was true."""
    if not paths:
        return []
    base = checked.base if tree is checked.home else _find_base(tree, checked)
    there = tree.repository.files
    checked.sources += [path for path in paths if path in there]
    if base is None:
        return [path for path in paths if path in there]
    after = tree.after(base)
    if tree is checked.home and checked.merged:
        known = [tree.after(commit) for commit in checked.merged]
        # What a merge made of changes that the document knew on both sides is not new to it.
        ours = {commit_id: commit for commit_id, commit in after.items() if len(commit.parents) < 2}
        after = {id_: commit for id_, commit in ours.items() if all(id_ in others for others in known)}
    traces = {path: _trace(tree.log, after, path, there) for path in paths if path in tree.log.touching}
    traces = {path: traced for path, traced in traces.items() if traced[2]}
    before = tree.repository.blobs_at([(base, then) for then, _, _ in traces.values()]) if traces else []
    seen = {(its, finding.path) for its, finding, _ in checked.findings}
    for (path, (then, now, changes)), blob in zip(traces.items(), before, strict=True):
        if now and now not in checked.sources:
            checked.sources.append(now)
        has_old_name = now is not None and now != path
        if (tree, now or then) in seen or (blob == there.get(now or "") and not has_old_name):
            continue
        seen.add((tree, now or then))
        kind: ChangeKind = "deleted" if now is None else "added" if blob is None else "modified"
        kind = "renamed" if kind == "modified" and has_old_name else kind
        old_path = then if now and blob is not None and then != now else None
        commits = tuple(commit_of(commit) for commit, _ in changes)
        finding = SourceFinding(str(tree.top), now or then, old_path, kind, blob, there.get(now or ""), commits)
        checked.findings.append((tree, finding, changes))
    return [path for path in paths if path in there or path in traces]


def _trace(
    log: Log, after: Mapping[str, LoggedCommit], path: str, present: Collection[str]
) -> tuple[str, str | None, list[Touch]]:
    """Follow the source that a document calls `path` through the commits `after` the document was true.

    Returns: its path then, its path now (None if it is deleted), and its changes, newest first.
    """
    last = path
    seen = {path}
    while last not in present:
        commits = (commit for commit in log.touching.get(last, ()) if commit.id in after)
        moves = (touch.path for commit in commits for touch in commit.touches if touch.old_path == last)
        moved = next((new for new in moves if new not in seen), None)
        if moved is None:
            break
        last = moved
        seen.add(last)
    changes = [(commit, touch) for commit, touch in changes_of(log, last) if commit.id in after]
    then = last
    for _, touch in changes:
        then = touch.old_path if touch.path == then and touch.old_path else then
    return then, last if last in present else None, changes
