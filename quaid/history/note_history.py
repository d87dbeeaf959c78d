"""One note's life in the history: every commit that changed it, with its content before and after.

Not `git log --follow`: where a note begins, it goes on with another note that looks alike, and facts look alike.
Here a note that has an id is followed by it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import lexists
from typing import NamedTuple

from quaid.history.git import Git, split_log
from quaid.history.messages import LOG_FORMAT, build_commit
from quaid.history.revisions import Revisions
from quaid.model import Commit
from quaid.vault import frontmatter
from quaid.vault.layout import is_note_path

MAX_RENAMES = 50
RAW = ("-z", "--raw", "--no-abbrev", "--no-color")


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit of a note's life.

    `befores` has one version for each parent of the commit, None where that parent has no such note; `after` is None
    where the commit took the note away. `renamed_from` is a path, vault-relative like `path`.
    """

    commit: Commit
    path: str
    befores: tuple[bytes | None, ...]
    after: bytes | None
    renamed_from: str | None = None

    @property
    def begins(self) -> bool:
        """Return True if no parent of the commit knows the note."""
        return not any(before is not None for before in self.befores)


class FileChange(NamedTuple):
    """One file in what `--raw` prints: blob ids (a merge has one before for each parent), None for no file; `old_path`
    if it was renamed.
    """

    path: str
    befores: tuple[str | None, ...]
    after: str | None
    old_path: str | None = None

    @property
    def before(self) -> str | None:
        """The blob that the first parent has."""
        return self.befores[0]


def read_note_history(git: Git, rel_path: str, note_id: str | None) -> list[Revision]:
    """The commits that changed the note at `rel_path`, newest first, across its renames; none for one never committed.

    The path that git knows may be another: the first revision's, when the owner renamed the note and has not
    committed that.

    Args:
        git: runs git in the work tree.
        rel_path: vault-relative.
        note_id: the `id` in the note's head. None for a note without one: then its path, and git's own detection of
            renames, is all there is to go by.
    """
    path = git.repository.to_git(rel_path)
    life: list[Revision] = []
    start = "HEAD"
    for _ in range(MAX_RENAMES):
        reached = _walk(git, start, path, note_id, life)
        if not life and note_id is not None:
            # Perhaps only the working tree has the note at this path. Not by `git diff`, which may run a filter over
            # files that were saved a moment ago.
            vault, own = git.repository.top / git.repository.prefix, git.repository.to_vault(path)
            files = (each for each in Revisions(git).list_files("HEAD") if is_note_path(each.rel_path))
            gone = [each for each in files if each.rel_path != own and not lexists(vault / each.rel_path)]
            blobs = git.read_blobs([each.blob for each in gone])
            moved = (each.rel_path for each in gone if _is_same(blobs.get(each.blob), note_id))
            reached = next((("HEAD", git.repository.to_git(found)) for found in moved), None)
        if reached is None:
            break
        start, path = reached
    return life


def _walk(git: Git, start: str, path: str, note_id: str | None, life: list[Revision]) -> tuple[str, str] | None:
    """Add the revisions of `path` up to `start` to `life`; where the note goes on under another path."""
    # A merge is shown (-c) only where its result is neither parent's.
    shape = (*RAW, "-c", "--no-renames", "--encoding=UTF-8", f"--format={LOG_FORMAT}%x00")
    logged = read_log(git, *shape, start, "--", path)
    listed = [(fields, change) for fields, changes in logged for change in changes]
    blobs = git.read_blobs([blob for _, change in listed for blob in (*change.befores, change.after) if blob])
    for fields, change in listed:
        revision = Revision(
            build_commit(fields[:6], git.repository, [change.path]),
            git.repository.to_vault(path),
            tuple(blobs.get(blob) if blob else None for blob in change.befores),
            blobs.get(change.after) if change.after else None,
        )
        if life and life[-1].begins and revision.after is None and not _is_same(revision.befores[0], note_id):
            return None  # another note had the path before
        life.append(revision)
        if revision.begins and len(revision.befores) == 1:
            source = _find_source(git, revision.commit.id, path, note_id)
            if source is not None:
                before = git.repository.to_vault(source[0])
                life[-1] = replace(revision, befores=(source[1],), renamed_from=before)
                return f"{revision.commit.id}^", source[0]
    return None


def read_log(git: Git, *args: str) -> Iterator[tuple[Sequence[str], list[FileChange]]]:
    """(fields, changes) of each commit that `git log` prints as `RAW`, with `LOG_FORMAT` and one field more."""
    for fields, items in split_log(git.read("read the history", "log", *args), 7):
        yield fields, list(parse_changes(items))


def parse_changes(items: Sequence[str]) -> Iterator[FileChange]:
    rest = iter(items)
    for item in rest:
        line = item.lstrip("\n")
        if line.startswith(":"):
            parents = len(line) - len(line.lstrip(":"))
            words = line.split(" ")
            blobs = [blob if blob.strip("0") else None for blob in words[parents + 1 : 2 * parents + 2]]
            path = next(rest)
            source = path if words[-1][0] == "R" else None
            yield FileChange(next(rest) if source else path, tuple(blobs[:-1]), blobs[-1], source)


def _find_source(git: Git, commit_id: str, path: str, note_id: str | None) -> tuple[str, bytes] | None:
    """The (path, bytes) under which the parent of `commit_id` knows the note that begins there as `path`."""
    args = ("diff-tree", "--root", "-r", *RAW, "--no-commit-id", "-M", "--diff-filter=DR", commit_id)
    out = git.read("look for a rename", *args)
    gone = list(parse_changes(out.decode("utf-8", "surrogateescape").split("\0")))
    paired = [change for change in gone if change.old_path and change.path == path]
    for changes in (paired, gone) if note_id is not None else (paired,):
        blobs = git.read_blobs([blob for change in changes if (blob := change.befores[0])])
        for change in changes:
            before = blobs.get(change.befores[0] or "")
            if before is not None and _is_same(before, note_id):
                return change.old_path or change.path, before
    return None


def find_note(files: Iterable[tuple[str, bytes | None]], note_id: str) -> tuple[str, bytes] | None:
    """Return the one of `files` (path, bytes) that is the note with this id: its path, or the `id` in its head."""
    found = ((path, data) for path, data in files if data is not None and (path == note_id or _is_same(data, note_id)))
    return next(found, None)


def matches_id(reference: str, note_id: str) -> bool:
    """Return True if `reference` is the id, or at least four characters from either end of it."""
    is_part = note_id.startswith(reference) or note_id.endswith(reference)
    return reference == note_id or (is_part and len(reference) >= 4)


def _is_same(data: bytes | None, note_id: str | None) -> bool:
    if data is None:
        return False
    if note_id is None:
        return True
    # Looked for first: a commit may have moved thousands of notes, and reading a head takes its time.
    return note_id.encode() in data and frontmatter.parse(data.decode("utf-8", "replace")).fields.get("id") == note_id
