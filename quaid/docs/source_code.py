"""What the source files of a repository define, in HEAD and at other commits. Each file is read once and then cached by
its blob.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

from quaid.docs import definitions, sources
from quaid.docs.definitions import VERSION, Definition, Definitions, SymbolChange, define, digest, is_python
from quaid.docs.doubts import MEMBERS, Scopes, group_by_scope
from quaid.docs.freshness import SourceCommit, SourceFinding
from quaid.docs.mentions import is_plain
from quaid.docs.sources import FileList
from quaid.errors import QuaidError
from quaid.history.source_repository import LoggedCommit, SourceRepository
from quaid.local.doc_cache import BlobDefinitions
from quaid.redaction import admit
from quaid.sync.embedding import Progress
from quaid.vault import notes

MAX_COMMITS_LISTED = 12
FileVersion = tuple[str, str]
"""The path of a file and a blob, empty for no file."""
MAX_SYMBOLS = 40
"""Symbols that are listed as guessed sources."""
_MAX_DEFINITIONS = 2
"""Definitions of one name; one that more have is not a guessed source."""
_MAX_DEFINED = 3_000
"""Files of a repository in which guessed symbols are looked up; of a larger one only those that changed."""
_BATCH = 200
"""Files whose definitions are read at once."""
_NOT_SOURCE = re.compile(
    r"(?:.*/)?(?:tests?|testing|docs?|examples?|benchmarks?|scripts|\.github)/.*"
    r"|(?:.*/)?(?:test_[^/]*|[^/]*_test|conftest|setup|noxfile)\.py"
)
"""Files of which no page is guessed to speak."""
_TAGGED = re.compile(
    r".+\.(?:[ch](?:pp)?|cc|cs|d|dart|exs?|go|java|jl|[cm]?[jt]sx?|kt|lua|m|php|p[lm]|proto|rb?|rs|scala|sh|sql|swift|zig)"
)
"""Endings of files that universal-ctags reads, where it is installed."""
_UNNAMED = re.compile(r"(?i)anon(?:ymous\w{0,20}?)?_?[0-9a-f]{8,}")
"""What ctags makes up for a function without a name: another one with each change of its file."""
_CTAGS = ("ctags", "--options=NONE", "--output-format=json", "--fields=+neKS", "--sort=no", "-f", "-")
_CTAGS_S = 20
_MAX_TAGGED = 1_000_000


def is_guessed(path: str) -> bool:
    """Return whether a page may be guessed to speak of what a file defines."""
    return (is_python(path) or _TAGGED.fullmatch(path) is not None) and not _NOT_SOURCE.fullmatch(path)


@lru_cache(maxsize=4_096)
def commit_of(commit: LoggedCommit) -> SourceCommit:
    """Return a commit as it is stored and shown: without secrets in its subject."""
    when = notes.render_time(datetime.fromtimestamp(commit.at, UTC))
    return SourceCommit(commit.id, when, commit.author, admit(commit.subject).text)


class Changes(NamedTuple):
    """What changed in a repository since a commit: the blobs of `files` then and now, new -> old names, the definitions
    of code, those that there were before, and the files whose contents are not here.
    """

    files: Mapping[str, tuple[str | None, str | None]]
    old_names: Mapping[str, str]
    symbols: Sequence[SymbolChange]
    before: Scopes
    missing: AbstractSet[str]


class SourceCode:
    """What one repository defines. `cache` is the local.db of the vault."""

    def __init__(self, repository: SourceRepository, cache: Path) -> None:
        self.repository = repository
        self._cache = BlobDefinitions(cache)
        self._known: dict[FileVersion, Definitions] = {}
        self._absent: set[FileVersion] = set()
        self._compared: dict[tuple[FileVersion, FileVersion], tuple[Sequence[SymbolChange], Scopes]] = {}
        self._changes: dict[str, Changes] = {}

    @cached_property
    def files(self) -> FileList:
        """The files of HEAD, and those that are gone."""
        there = self.repository.files
        return FileList(tuple(there), tuple(path for path in self.repository.log.touching if path not in there))

    @cached_property
    def names(self) -> Mapping[str, Sequence[tuple[str, Definition]]]:
        """What the files of HEAD define, by each name that a page may use; nothing of a very large repository."""
        read = self.read(self._python)
        found: dict[str, list[tuple[str, Definition]]] = {}
        for path, blob in self._python:
            for defined in read.get((path, blob), {}).values():
                for name in defined.names:
                    found.setdefault(name, []).append((path, defined))
        return found

    @cached_property
    def _python(self) -> Sequence[FileVersion]:
        found = [each for each in self.repository.files.items() if is_python(each[0]) and is_guessed(each[0])]
        return found if len(found) <= _MAX_DEFINED else []

    def guess_symbols(self, mentions: Iterable[str]) -> list[str]:
        """Return the symbols that a page names and that hardly anything else is called like."""
        found: list[str] = []
        for name in mentions:
            known = self.names.get(name, ())
            if 0 < len(known) <= _MAX_DEFINITIONS and not (is_plain(name) and known[0][1].kind in MEMBERS):
                found += [f"{path}::{defined.name}" for path, defined in known]
        return list(dict.fromkeys(found))[:MAX_SYMBOLS]

    def read(self, wanted: Iterable[FileVersion]) -> Mapping[FileVersion, Definitions]:
        """Return the definitions of each file version; a blob that the repository does not have is left out."""
        asked = [each for each in dict.fromkeys(wanted) if each not in self._known and each not in self._absent]
        if not asked:
            return self._known
        keys = {f"{VERSION} {blob} {digest(path)}": (path, blob) for path, blob in asked}
        with suppress(QuaidError):
            for key, stored in self._cache.known(keys).items():
                with suppress(ValueError, TypeError):
                    self._known[keys[key]] = {row[0]: Definition(*row) for row in json.loads(stored)}
        new = {key: version for key, version in keys.items() if version not in self._known}
        blobs = self.repository.read_blobs(blob for _, blob in new.values())
        contents = {version: blobs[version[1]] for version in new.values() if version[1] in blobs}
        found = _run_ctags({version: data for version, data in contents.items() if _TAGGED.fullmatch(version[0])})
        found |= {version: define(version[0], data) for version, data in contents.items() if not found.get(version)}
        self._known |= found
        self._absent.update(version for version in new.values() if version not in found)
        with suppress(QuaidError):  # where nothing can be written, the next check reads the files again
            self._cache.add({key: json.dumps(list(found[new[key]].values())) for key in new if new[key] in found})
        return self._known

    def read_all(self, bases: Collection[str], progress: Progress | None) -> None:
        """Read the definitions of HEAD, and of all that changed since the commits `bases`."""
        self.repository.compare(bases)
        changed = (item for base in bases for item in self.repository.changes_since(base).items())
        before_and_after = ((path, blob) for path, pair in changed if is_guessed(path) for blob in pair if blob)
        versions = list(dict.fromkeys((*self._python, *before_and_after)))
        for first in (*range(0, len(versions), _BATCH), len(versions)):
            if progress is not None:
                progress("Reading sources", first, len(versions))
            self.read(versions[first : first + _BATCH])

    def changes_since(self, base: str) -> Changes:
        """Return what changed after a commit."""
        if base not in self._changes:
            changed = self.repository.changes_since(base)
            renamed = self.repository.renames_since(base)
            there = self.repository.files
            old_names = {new: old for old, new in renamed.items() if old in changed and new in there}
            since = Changes(changed, old_names, (), {}, frozenset())
            self._changes[base] = self.compare(since, filter(is_guessed, changed))
        return self._changes[base]

    def compare(self, since: Changes, paths: Iterable[str]) -> Changes:
        """Compare the definitions of the files `paths` in `since`; of a renamed one those of its old name."""
        paths = list(paths)
        renamed = {since.old_names[path] for path in paths if path in since.old_names}
        pairs: dict[str, tuple[FileVersion, FileVersion]] = {}
        for path in (each for each in paths if each not in renamed):
            old = since.old_names.get(path, path)
            before, after = since.files.get(old, (None, None))[0], since.files.get(path, (None, None))[1]
            if before or after:
                pairs[path] = (old, before or ""), (path, after or "")
        read = self.read(version for pair in pairs.values() for version in pair if version[1])
        symbols: list[SymbolChange] = []
        scopes: dict[tuple[str, str | None], Sequence[Definition]] = {}
        missing = {path for path, pair in pairs.items() if any(each[1] and each not in read for each in pair)}
        for path, pair in pairs.items():
            if path in missing:
                continue
            if pair not in self._compared:
                then, now = (read.get(version, {}) for version in pair)
                self._compared[pair] = definitions.compare(path, then, now), group_by_scope(path, then)
            changes, public = self._compared[pair]
            symbols += changes
            scopes |= public
        return since._replace(symbols=definitions.join_moved(symbols), before=scopes, missing=missing)

    def last_changes(self, paths: Sequence[str], *, is_alone: bool) -> dict[str, LoggedCommit]:
        """Return for each document that was committed the last commit that changed more than its form.

        One that was restored to an earlier version is as true as that version was.
        """
        pending = {}
        for path, changes in self.repository.last_changes(paths, is_alone=is_alone).items():
            # What a merge left out, or another branch made of the document, is not in it.
            now = self.repository.files.get(path)
            first = next((place for place, (_, touch) in enumerate(changes) if touch.after == now), 0)
            if changes:
                pending[path] = changes[first:]
        found: dict[str, LoggedCommit] = {}
        while pending:
            touches = {path: changes[0][1] for path, changes in pending.items()}
            blobs = self.repository.read_blobs(
                blob for touch in touches.values() for blob in (touch.before, touch.after) if blob
            )
            for path, touch in touches.items():
                sides = [blobs.get(blob or "") for blob in (touch.before, touch.after)]
                # Who notes the sources of a document in its head or in SOURCES has not checked its text.
                texts = [side if side is None else sources.without_statement(side).split() for side in sides]
                (commit, _), *older = pending[path]
                if texts[0] is not None and texts[0] == texts[1] and older:
                    pending[path] = older
                    continue
                left = next((place for place, (_, its) in enumerate(older) if its.before == touch.after), len(older))
                same = [past for past, its in older[left:] if its.after == touch.after]
                found[path] = same[-1] if same else commit
                del pending[path]
        return found

    def describe_change(self, base: str, path: str, why: str) -> SourceFinding:
        """Return what happened to a source since a commit, and `why` that matters."""
        since, tree = self.changes_since(base), self.repository
        old = since.old_names.get(path)
        commits = tree.commits_since(base, path, old)
        if len(commits) > MAX_COMMITS_LISTED:
            commits[MAX_COMMITS_LISTED - 1 : -1] = []  # the newest, and the oldest
        made = tuple(map(commit_of, commits))
        return SourceFinding(str(tree.top), path, old, since.files[old or path][0], tree.files.get(path), made, why)

    def find_commit(self, base: str, change: SymbolChange) -> SourceCommit:
        """Return the commit after `base` that changed a symbol; of several that did, one of the first."""
        commits = self.repository.commits_since(base, change.path)[::-1]
        touches = [(each, touch) for each in commits for touch in each.touches if touch.path == change.path]
        first, last = 0, len(touches) - 1
        while first < last and change.definition.kind != "file":
            middle = (first + last) // 2
            version = (change.path, touches[middle][1].after or "")
            then = self.read([version]).get(version, {}).get(change.name)
            is_changed = definitions.compare_one(change.before, then) is not None
            first, last = (first, middle) if is_changed else (middle + 1, last)
        return commit_of(touches[last][0] if touches else self.repository.log.commits[0])


def _run_ctags(contents: Mapping[FileVersion, bytes]) -> dict[FileVersion, Definitions]:
    """Return what universal-ctags finds in files of other languages than Python; nothing where it is not installed."""
    if not contents or shutil.which("ctags") is None:
        return {}
    with tempfile.TemporaryDirectory(prefix="quaid-ctags-") as folder:
        files = {}
        for number, ((path, blob), data) in enumerate(contents.items()):
            if len(data) <= _MAX_TAGGED:
                file = Path(folder, f"{number}{Path(path).suffix}")
                file.write_bytes(data)
                files[str(file)] = (path, blob)
        try:
            done = subprocess.run([*_CTAGS, *files], capture_output=True, timeout=_CTAGS_S, check=False, cwd=folder)
        except (OSError, subprocess.TimeoutExpired):
            return {}
    found: dict[FileVersion, dict[str, Definition]] = {}
    lines = {version: data.decode("utf-8", "replace").splitlines() for version, data in contents.items()}
    for line in done.stdout.splitlines():
        with suppress(ValueError, KeyError, TypeError):  # another ctags, or a warning
            tag = json.loads(line)
            version = files[tag["path"]]
            defined = _parse_tag(tag, lines[version])
            if not _UNNAMED.search(defined.name):
                found.setdefault(version, {}).setdefault(defined.name, defined)
    return dict(found)


def _parse_tag(tag: Mapping[str, object], lines: Sequence[str]) -> Definition:
    first = int(str(tag["line"]))
    last = int(str(tag.get("end", first)))
    scope, own = str(tag.get("scope", "")), str(tag["name"])
    name = f"{scope}.{own}" if scope else own
    head = lines[first - 1].strip() if first <= len(lines) else ""
    body = digest("\n".join(line.strip() for line in lines[first:last] if line.strip()))
    return Definition(name, str(tag["kind"]), (name, own), scope, (first, last), digest(head), "", body)
