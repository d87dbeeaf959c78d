"""The check for stale documents: those that name symbols which changed since they were last true.

A document was last true at its own last real change, or at the commit that its owner noted. The definitions in its
sources then and now are compared. Results are stored: a check reads no history while neither the documents nor the
HEADs of their repositories have changed.
"""

import hashlib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from quaid.docs import definitions, sources
from quaid.docs.catalogue import Doc
from quaid.docs.doubts import CERTAIN, PageNames, Weighed, certainty, list_shares
from quaid.docs.freshness import PARTS, Doubt, Freshness, SourceCommit, SourceFinding, Status, rank
from quaid.docs.mentions import find_mentions, find_paths, find_sentence
from quaid.docs.source_code import SourceCode, commit_of, is_guessed
from quaid.docs.source_trees import SourceTrees
from quaid.errors import GitError, GitMissingError, QuaidError
from quaid.history.source_repository import LoggedCommit, SourceRepository
from quaid.local.doc_cache import DocChecks
from quaid.local.tables import parse_rows
from quaid.place import LOCAL_FILE, state_folder
from quaid.sync.embedding import Progress
from quaid.vault import files, notes

MAX_DOUBTS, MAX_DATED = 12, 3
"""Doubts of a document, and those of which the commit is looked for."""
MAX_TOGETHER = 3
"""Files that are named because they change together with a page."""
_MAX_DOC_BYTES = 2_000_000
_FORMAT = f"10 {definitions.VERSION}"
"""Part of the key of a stored check. With another one everything is checked again."""
_PROSE = re.compile(r".*\.(?:md|markdown|mdx|rst|adoc|txt)")


class StalenessCheck:
    """Checks the documents of one vault without a model, and stores the results."""

    def __init__(self, root: Path, trees: SourceTrees, progress: Progress | None = None) -> None:
        self._trees = trees
        self._progress = progress
        self._local = state_folder(root) / LOCAL_FILE
        self._checks = DocChecks(self._local)
        self._code: dict[SourceRepository, SourceCode] = {}

    def check(self, docs: Sequence[Doc], *, is_all: bool = False) -> list[Freshness]:
        """Check `docs`, which are all of their projects: how rare a name is among them decides what it says. With
        `is_all` there are no other projects, and stored results of other documents are deleted.
        """
        stored = self._read_stored()
        found: dict[str, Freshness] = {}
        rows: dict[str, tuple[str, str]] = {}
        for project in dict.fromkeys(doc.project for doc in docs):
            own = [doc for doc in docs if doc.project == project]
            key = self._make_key(own)
            same = [stored[doc.id][1] for doc in own if doc.id in stored and stored[doc.id][0] == key]
            known = list(parse_rows(Freshness.parse, same))
            if len(known) < len(own):
                known, is_settled = self._check_project(own)
                rows |= {one.doc: (key if is_settled else "", json.dumps(asdict(one))) for one in known}
            found |= {one.doc: one for one in known}
        gone = stored.keys() - found.keys() if is_all else frozenset()
        if rows or gone:
            with suppress(QuaidError):  # where nothing can be written, the next check reads everything again
                self._checks.store(rows, gone)
        return [found[doc.id] for doc in docs]

    def stored(self) -> list[Freshness]:
        """Return the result of the last check of each document, whatever has happened since."""
        return list(parse_rows(Freshness.parse, (found for _, found in self._read_stored().values())))

    def _read_stored(self) -> dict[str, tuple[str, str]]:
        """Return document -> (key, result); nothing if local.db cannot be opened, because a check must not need it."""
        try:
            return self._checks.read()
        except QuaidError:
            return {}

    def _make_key(self, docs: Sequence[Doc]) -> str:
        """Hash all that a check of one project depends on: its files, their rows in the registry and the HEADs. The
        vault's HEAD is not a part, as each memory moves it.
        """
        evidence: list[object] = [_FORMAT]
        for doc in sorted(docs, key=lambda doc: doc.id):
            state: object = None
            with suppress(OSError):
                stat = doc.file.stat()
                state = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
            evidence.append((doc.id, state, doc.sources, doc.true_at, self._trees.roots(doc), self._trees.heads(doc)))
        return hashlib.sha256(repr(evidence).encode("utf-8", "surrogateescape")).hexdigest()

    # -- a check -------------------------------------------------------------------------------------------------

    def _check_project(self, docs: Sequence[Doc]) -> tuple[list[Freshness], bool]:
        """Check the documents of one project. Return the most certain guesses as stale, and whether nothing of it in
        the vault awaits a commit.
        """
        pages = [Page(doc, self._trees.open(doc.file.parent)) for doc in docs]
        counted = Counter(name for page in pages for name in page.mentions)
        is_settled = True
        for tree, is_in_vault in dict.fromkeys((page.own, page.doc.is_in_vault) for page in pages):
            here = {page.path: page for page in pages if page.own is tree and page.doc.is_in_vault == is_in_vault}
            try:
                last = self._open_code(tree).last_changes(list(here), is_alone=is_in_vault) if tree is not None else {}
                for path, page in here.items():
                    page.date(last.get(path))
                    is_settled &= not is_in_vault or page.is_committed
                if tree is not None and not is_in_vault:
                    bases = {base.id for page in here.values() if (base := page.find_base(tree)) is not None}
                    self._open_code(tree).read_all(bases, self._progress)
            except GitError as error:
                for page in here.values():
                    page.problems.append(str(error))
        for number, page in enumerate(pages, 1):
            if self._progress is not None:
                self._progress("Comparing sources", number, len(pages))
            try:
                self._find_changes(page, counted)
            except (GitError, GitMissingError) as error:
                page.is_unreadable = True
                if not page.findings:
                    page.true_at = None
                page.problems.append(str(error))
        return rank([page.conclude(has_places=bool(self._trees.places(page.doc))) for page in pages]), is_settled

    def _open_code(self, tree: SourceRepository) -> SourceCode:
        return self._code.setdefault(tree, SourceCode(tree, self._local))

    def _find_changes(self, page: "Page", pages: Mapping[str, int]) -> None:
        """Find what changed of the sources of one document since it was true."""
        places = self._trees.places(page.doc) if page.references.written or page.mentions else []
        if page.stated and places:  # one of the repositories has the noted commit
            noted = ((tree, tree.log.find(page.stated)) for tree, _ in places)
            page.stated_at = next((float(tree.log.commit(commit).at) for tree, commit in noted if commit), 0.0)
            if not page.stated_at:
                names = " or ".join(dict.fromkeys(tree.top.name for tree, _ in places))
                page.problems.append(f"{page.stated[:12]} is not a commit that {names} knows")
        lost = [page.find_changes(self._open_code(tree), root, pages) for tree, root in places]
        for reference in (each for each in lost[0] if all(each in others for others in lost)) if lost else ():
            count = max(each[reference] for each in lost)
            problem = f"means {count} files; write more of its path" if count else "is not a file there"
            page.problems.append(f"its source {reference} {problem}")


class Page:
    """One document during a check.

    `own` is its repository, `path` its place there, and `stated` the commit that was noted for it. `last` is its last
    real change, `at` the time at which it was last true, and `stated_at` that of the noted commit.
    """

    def __init__(self, doc: Doc, own: SourceRepository | None) -> None:
        text = (files.read_note(doc.folder, doc.rel_path, _MAX_DOC_BYTES) or b"").decode("utf-8", "replace")
        self.doc = doc
        self.own = own
        self.path = own.inside(doc.file) if own is not None else doc.id
        self.text = text
        self.stated = sources.true_at_of(text) or doc.true_at
        self.references = sources.sources_of(text, doc.sources)
        # Nothing is learned from a record, such as a changelog or a dated decision: it describes a moment.
        self.is_record = sources.is_record(doc.rel_path)
        self.mentions = {} if self.is_record else find_mentions(doc.rel_path, text)
        if self.references.origin == "none" and not self.is_record:
            self.references = sources.learned_from(find_paths(doc.rel_path, text))
        self.last: LoggedCommit | None = None
        self.at = self.stated_at = 0.0
        self.true_at: SourceCommit | None = None
        self.updated: str | None = None
        self.is_unreadable = False
        self.sources: list[str] = []
        self.findings: list[SourceFinding] = []
        self.weighed: list[tuple[SourceCode, str, Weighed]] = []
        self.shares: list[float] = []
        self.problems: list[str] = []

    def is_home(self, tree: SourceRepository) -> bool:
        """Return whether the document and its sources have one history in `tree`."""
        return tree is self.own and not self.doc.is_in_vault

    def date(self, last: LoggedCommit | None) -> None:
        """Set the last real change of the document; one of the vault that was never committed is as old as its file."""
        self.last = last
        if last is not None:
            self.at, self.updated = float(last.at), commit_of(last).when
        elif self.doc.is_in_vault:
            with suppress(OSError):
                self.at = self.doc.file.stat().st_mtime
            self.updated = notes.render_time(datetime.fromtimestamp(self.at, UTC))

    @property
    def is_committed(self) -> bool:
        """Whether the document is as HEAD has it, or has no sources."""
        if self.own is None or not self.references.written:
            return True
        data = files.read_note(self.doc.folder, self.doc.rel_path)
        return data is None or self.own.holds(self.path, data)

    def find_base(self, tree: SourceRepository) -> LoggedCommit | None:
        """Return the commit of `tree` at which the document was last true: its own last change or the noted one,
        whichever is newer. In another repository than the document's it is the one that was there then.
        """
        log, is_home = tree.log, self.is_home(tree)
        noted = log.find(self.stated) if self.stated else None
        if noted is None and self.stated_at:
            noted = log.at(self.stated_at)
        then = [log.commit(noted)] if noted else []
        if not is_home:
            there = log.at(self.at) if self.at else None
            then += [log.commit(there)] if there else []
        elif self.last is not None:
            then.append(self.last)
        elif not then:  # without a commit it is as new as HEAD
            then += log.commits[:1]
        newest = min(then, key=log.age, default=None)
        if newest is not None and is_home:
            self.at = float(newest.at)
        return newest

    def resolve(self, code: SourceCode, own: str, root: str) -> tuple[list[str], list[tuple[str, str]], dict[str, int]]:
        """Return the files that the document names, the symbols as (path or "", name), and the references that are
        neither, with the number of files that each may mean. `own` is the document's path in the repository, `root` the
        project's folder.
        """
        named: list[str] = []
        chosen: list[tuple[str, str]] = []
        lost: dict[str, int] = {}
        is_stated = self.references.is_stated
        folder = root if self.doc.is_in_vault else posixpath.dirname(own)
        for reference in self.references.written:
            path, _, symbol = reference.partition("::")
            found, count = code.files.resolve(path, folder, root, is_stated=is_stated)
            if symbol:
                chosen += [(file, symbol) for file in found]
            elif count == 0 and path in code.names:
                chosen.append(("", path))  # `--limit`, `LLM_KEY`, `/-/query`, `Schema.load`
                continue
            else:
                named += found
            if count is not None:
                lost[reference] = count
        return list(dict.fromkeys(named)), chosen, lost

    def find_changes(self, code: SourceCode, root: str, pages: Mapping[str, int]) -> Mapping[str, int]:
        """Find what changed in one repository. Return the references that mean no file of it, with the number of files
        that they may mean. `pages` is the number of pages that have each name.
        """
        tree, there = code.repository, code.repository.files
        own = self.path if tree is self.own else tree.inside(self.doc.file)
        named, chosen, lost = self.resolve(code, own, root)
        if not self.references.is_stated:
            self.sources += code.guess_symbols(self.mentions)
        base = self.find_base(tree)
        if base is None:
            self.sources += [path for path in named if path in there and path != own]
            return lost
        if base.id in tree.boundary:
            self.problems.append(f"{tree.top.name} is a shallow clone: its history begins at {base.id[:10]}")
        self.true_at = self.true_at or commit_of(base)
        since = code.changes_since(base.id)
        new_names = {old: new for new, old in since.old_names.items()}
        # What is gone for longer than the document is true, it does not describe.
        named = [path for path in named if path != own and (path in there or path in since.files)]
        alive = {path: new_names.get(path, path) for path in named}
        self.sources[:0] = [now for now in dict.fromkeys(alive.values()) if now in there]
        self.sources += [f"{path}::{name}" if path else name for path, name in chosen]
        about = {*alive, *alive.values(), *(path for path, _ in chosen)}
        more = code.compare(since, (path for path in about if not is_guessed(path)))
        changes = [each for each in (*since.symbols, *more.symbols) if each.path != own]
        changes += [definitions.lose_file(path, now) for path, now in alive.items() if now not in there or now != path]
        missing = since.missing | more.missing
        if missing & about if self.references.is_stated else missing:
            self.is_unreadable = True
            self.problems.append(
                f"{tree.top.name} is a partial clone: changes of files that were not fetched are not seen"
            )
        names = PageNames(self.mentions, alive.values(), chosen, is_stated=self.references.is_stated)
        weighed = names.weigh(changes, pages, {**since.before, **more.before})
        self.weighed += [(code, base.id, one) for one in weighed]
        reasons = {one.change.path: f"{one.change.name} {PARTS[one.change.part]}" for one in reversed(weighed)}
        if self.is_home(tree):
            touched = {change.path for change in changes}
            unread = (path for path in since.files if not (is_guessed(path) or _PROSE.fullmatch(path)))
            together = list_shares(tree.mainline, base, own, dict.fromkeys([*touched & since.files.keys(), *unread]))
            self.shares += together.values()
            if certainty(weighed, together.values(), is_stated=names.is_stated) >= CERTAIN:
                first = list(together.items())[:MAX_TOGETHER]
                history = {path: f"{share:.0%} of its commits before changed this page too" for path, share in first}
                reasons = history | reasons
        self.findings += [
            code.describe_change(base.id, path, why)
            for path, why in reasons.items()
            if path in since.files or path in since.old_names
        ]
        return lost

    def conclude(self, *, has_places: bool) -> Freshness:
        """Return the result; `has_places` says whether there is a repository that the document may refer to."""
        weighed = sorted(self.weighed, key=lambda item: -item[2].weight)
        sure = certainty([one for _, _, one in weighed], self.shares, is_stated=self.references.is_stated)
        status: Status = "fresh"
        if not self.references.written and self.is_record:
            status = "record"
        elif not self.sources and not self.findings:
            is_lost = self.is_unreadable or (self.references.is_stated and not has_places)
            status = "no history" if is_lost and self.references.written else "no sources"
        elif self.true_at is None or (self.is_unreadable and sure < CERTAIN):
            status = "no history"
        elif sure >= CERTAIN:
            status = "stale"
        elif self.findings:
            status = "moved"
        shown = enumerate(weighed[:MAX_DOUBTS] if status in ("stale", "moved") else ())
        doubts = [self.describe(*item, is_dated=sure >= CERTAIN and place < MAX_DATED) for place, item in shown]
        dated = [doubt.commit for doubt in doubts if doubt.commit is not None]
        dated = dated or [found.commits[-1] for found in self.findings if found.commits]
        return Freshness(
            doc=self.doc.id,
            status=status,
            true_at=self.true_at,
            since=min(dated, key=lambda commit: commit.when, default=None) if status == "stale" else None,
            origin=self.references.origin if self.references.is_stated else "learned" if self.sources else "none",
            sources=tuple(dict.fromkeys(self.sources)),
            findings=tuple(self.findings),
            doubts=tuple(doubts),
            certainty=round(sure, 3),
            updated=self.updated,
            problems=tuple(dict.fromkeys(self.problems)),
        )

    def describe(self, code: SourceCode, base: str, one: Weighed, *, is_dated: bool) -> Doubt:
        """Return a doubt with the sentence of the document, and with its commit if `is_dated`."""
        change = one.change
        line = self.mentions.get(one.name, -1)
        part = "renamed" if change.part == "removed" and change.after is not None else change.part
        sentence = find_sentence(self.text, line, one.name) if line >= 0 else ""
        commit = code.find_commit(base, change) if is_dated else None
        return Doubt(change.name, change.path, part, round(one.weight, 3), line + 1, sentence, commit)
