"""A look at what became of the sources of documents since they were true: histories and blobs in, findings out."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.docs import significance, staleness
from quaid.docs.cases import Case
from quaid.docs.catalogue import Doc
from quaid.docs.last_true import find_last_true
from quaid.docs.significance import Judged
from quaid.docs.sources import Said
from quaid.docs.staleness import Finding, Freshness
from quaid.docs.trees import Place, Tree, Trees
from quaid.errors import GitError, GitMissingError
from quaid.history.source_repository import LoggedCommit
from quaid.local.tables import readable

if TYPE_CHECKING:
    from quaid.sync.embedding import Progress

Pair = tuple[str, str | None, str | None]
"""The name of a file and two of its blobs: what a verdict of the filter rests on."""
MOST_STEPS = 12
"""So many commits are judged one by one to tell which was the first that mattered."""


class Look:
    """One look at some documents. `verdicts` of the filter are taken where they are known, and added to."""

    def __init__(self, root: Path, trees: Trees, verdicts: dict[Pair, Judged], progress: Progress) -> None:
        self._root = root
        self._trees = trees
        self._verdicts = verdicts
        self._progress = progress
        self.uncommitted: set[str] = set()

    def at(self, docs: Sequence[Doc]) -> Iterator[Freshness]:
        """How true each of `docs` is."""
        cases = [Case.of(doc, self._trees) for doc in docs]
        find_last_true(self._root, cases)
        self.uncommitted |= {case.doc.id for case in cases if case.is_uncommitted}
        for number, case in enumerate(cases):
            self._progress("Reading histories", number, len(cases))
            try:
                self._draft(case)
            except (GitError, GitMissingError) as error:
                case.is_unreadable = True
                if not case.drafts:  # what was seen before that is so whatever comes after it
                    case.true_at = None
                case.problems.append(str(error))
        self._progress("Reading histories", len(cases), len(cases))
        self._judge([(finding.top, pair_of(finding)) for case in cases for finding in case.drafts])
        first = [self._first_commits(case) for case in cases]
        self._judge([found for commits in first for found in commits.values() if found is not None])
        for case, commits in zip(cases, first, strict=True):
            yield self._conclude(case, commits)

    # -- drafts --------------------------------------------------------------------------------------------------

    def _draft(self, case: Case) -> None:
        """What changed of the sources of one document since it was true."""
        unclear: dict[str, list[int]] = {}
        known: list[str] = []
        places = self._trees.places(case.doc) if case.said.references else []
        if case.home is None and case.stated:
            _find_time_stated(case, [place.tree for place in places])
        for place in self._trees.with_submodules(places):
            said = _as_seen_from(case.said, place)
            if not said.references:
                continue
            folder, root = ("", "") if place.prefix else (place.folder, place.root)
            resolved = place.tree.files.resolve(said, folder, root)
            for reference, count in resolved.open:
                unclear.setdefault(reference, []).append(count)
            own = place.tree.inside(case.doc.file)
            paths = [path for path in resolved.paths if path != own]
            if paths:
                known += [posixpath.join(place.prefix, path) for path in self._draft_in(case, place.tree, paths)]
        for reference, counts in unclear.items():
            if not any(_ends_with(source, reference) for source in known):
                most = max(counts)
                said_so = f"means {most} files; write more of its path" if most else "is no file there"
                case.problems.append(f"its source {reference} {said_so}")

    def _draft_in(self, case: Case, tree: Tree, paths: Sequence[str]) -> list[str]:
        """Those of `paths` that are there, or were when the document was true."""
        base = case.base if tree is case.home else _base_in(case, tree)
        there = tree.repository.files
        case.sources += [path for path in paths if path in there]
        if base is None:
            return [path for path in paths if path in there]
        after = _after(case, tree, base)
        touched = [path for path in paths if path in tree.log.touching]
        traced = {path: found for path in touched if (found := staleness.trace(tree.log, after, path, there))}
        traces = list(traced.values())
        case.sources += [found.now for found in traces if found.now and found.now not in case.sources]
        before = tree.repository.blobs_at([(base, found.then) for found in traces]) if traces else []
        seen = {(finding.top, finding.path) for finding in case.drafts}
        for found, blob in zip(traces, before, strict=True):
            drafted = staleness.draft(found, blob, there.get(found.now or ""), str(tree.top))
            if drafted is not None and (drafted.top, drafted.path) not in seen:
                seen.add((drafted.top, drafted.path))
                case.drafts.append(drafted)
                case.steps.append(found.touches)
        return [path for path in paths if path in there or path in traced]

    # -- verdicts ------------------------------------------------------------------------------------------------

    def _judge(self, wanted: Sequence[tuple[str, Pair]]) -> None:
        """Put the verdict of the filter on each pair of blobs of a repository where it can be found."""
        new = {pair: top for top, pair in wanted if pair not in self._verdicts}
        blobs: dict[str, bytes] = {}
        for top in dict.fromkeys(new.values()):
            tree = self._trees.open(Path(top))
            ids = [blob for pair, its in new.items() if its == top for blob in pair[1:] if blob]
            blobs |= tree.repository.read_blobs(ids) if tree is not None else {}
        for number, pair in enumerate(new):
            self._progress("Comparing sources", number, len(new))
            name, before, after = pair
            if all(blob in blobs for blob in (before, after) if blob):
                self._verdicts[pair] = significance.judge(name, blobs.get(before or ""), blobs.get(after or ""))
            else:
                self._verdicts[pair] = Judged(is_trivial=False, why="not fetched")
        self._progress("Comparing sources", len(new), len(new))

    def _judged(self, finding: Finding) -> Finding:
        if finding.kind == "renamed" and finding.old_path:
            return replace(finding, is_trivial=False, why=f"renamed from {finding.old_path}")
        verdict = self._verdicts[pair_of(finding)]
        return replace(finding, is_trivial=verdict.is_trivial, why=verdict.why)

    def _first_commits(self, case: Case) -> dict[str, tuple[str, Pair] | None]:
        """The oldest commits of the findings that matter, each with what it made of the source, None where it gave it
        another name; oldest first.
        """
        touches = [
            (step, touch, finding)
            for finding, steps in zip(case.drafts, case.steps, strict=True)
            if not self._judged(finding).is_trivial
            for step, touch in steps
        ]
        touches.sort(key=lambda one: one[0].at)
        return {
            step.id: None
            if touch.old_path and finding.kind == "renamed"
            else (finding.top, (posixpath.basename(touch.path), touch.before, touch.after))
            for step, touch, finding in touches[:MOST_STEPS]
        }

    def _since(self, commits: Mapping[str, tuple[str, Pair] | None], findings: Iterable[Finding]) -> str | None:
        """The first commit that by itself changed what matters; where none did, the first of them."""
        for commit, found in commits.items():
            if found is None or not self._verdicts[found[1]].is_trivial:
                return commit
        first = staleness.first_of(findings)
        return first.id if first is not None else None

    def _conclude(self, case: Case, first: Mapping[str, tuple[str, Pair] | None]) -> Freshness:
        findings = tuple(map(self._judged, case.drafts))
        if not (case.sources or findings):
            is_lost = case.is_unreadable or (case.said.is_stated and not case.is_in_repository)
            status: staleness.Status = "no history" if is_lost and case.said.references else "no sources"
        elif case.true_at is None:
            status = "no history"
        else:
            status = "fresh" if all(finding.is_trivial for finding in findings) else "stale"
        since = self._since(first, findings)
        commits = (commit for finding in findings for commit in finding.commits)
        return Freshness(
            case.doc.id, status, case.true_at, next((commit for commit in commits if commit.id == since), None),
            case.said.origin, tuple(case.sources), findings, case.updated, problems=tuple(dict.fromkeys(case.problems)),
        )  # fmt: skip


def pair_of(finding: Finding) -> Pair:
    return posixpath.basename(finding.path), finding.before, finding.after


def read_verdicts(kept: Iterable[str]) -> dict[Pair, Judged]:
    """Verdicts of the filter in what earlier looks have found, as JSON."""
    found: dict[Pair, Judged] = {}
    for each in readable(_verdicts_of, kept):
        found |= each
    return found


def _verdicts_of(text: str) -> dict[Pair, Judged]:
    told = json.loads(text)
    return {
        (posixpath.basename(finding["path"]), finding["before"], finding["after"]): Judged(
            finding["is_trivial"], finding["why"]
        )
        for finding in (told["findings"] if told.get("filter") == significance.VERSION else ())
        if finding["kind"] != "renamed"
    }


def _after(case: Case, tree: Tree, base: str) -> Mapping[str, LoggedCommit]:
    """The commits that a document cannot know of."""
    after = tree.after(base)
    beside = case.beside if tree is case.home else ()
    if not beside:
        return after
    unknown = [tree.after(commit) for commit in beside]
    # What a merge has made of what the document knew on both sides, is no news to it.
    ours = {commit: step for commit, step in after.items() if len(step.parents) < 2}
    return {commit: step for commit, step in ours.items() if all(commit in steps for steps in unknown)}


def _base_in(case: Case, tree: Tree) -> str | None:
    """The commit of another repository than the document's own at which it was true."""
    if tree.log.commits and tree.log.commits[-1].at > case.at:
        tree.look_further()
    stated = tree.log.find(case.stated) if case.stated else None
    if stated is None and case.stated_at:
        stated = tree.log.at(case.stated_at)
    written = tree.log.at(case.at) if case.at else None
    found = staleness.newest_of(tree.log, (stated, written))
    if found is not None and case.true_at is None:
        case.true_at = staleness.commit_of(tree.log.commits[tree.log.places[found]])
    return found


def _find_time_stated(case: Case, trees: Sequence[Tree]) -> None:
    """When the commit was made that a document in none of these repositories names: one of them knows it."""
    for tree in trees:
        commit = tree.find(case.stated or "")
        if commit is not None:
            case.stated_at = float(tree.log.commits[tree.log.places[commit]].at)
            return
    if trees:
        names = " or ".join(dict.fromkeys(tree.top.name for tree in trees))
        case.problems.append(f"{str(case.stated)[:12]} is no commit that {names} knows")


def _as_seen_from(said: Said, place: Place) -> Said:
    """The references of a document as a submodule sees them: those that lead into it, without the way there."""
    if not place.prefix:
        return said
    inside = []
    for reference in said.references:
        for base in dict.fromkeys((place.folder, place.root, "")):
            full = posixpath.normpath(posixpath.join(base, reference))
            if full == place.prefix or full.startswith(f"{place.prefix}/"):
                inside.append(full[len(place.prefix) + 1 :] or ".")
                break
    return replace(said, references=tuple(inside))


def _ends_with(path: str, reference: str) -> bool:
    tail = posixpath.normpath(reference).lstrip("./")
    return f"/{path}".endswith(f"/{tail}") or f"/{tail}/" in f"/{path}"
