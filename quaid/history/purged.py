"""What was purged and must not come back: lists of the objects that held it, and the histories that have one of them.

Each purge commits its ids as a separate file in `FOLDER`, so the lists of two machines never collide. This machine
also remembers each list that its branch had in its state folder, whatever becomes of the file. A list is data of
its author: its ids count against new commits only, never against a history that was accepted before.
"""

import json
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path

from quaid.errors import BadInputError, QuaidError
from quaid.history.git import Git, hash_blob, split_items
from quaid.history.repository import read_ref
from quaid.model import Edit
from quaid.place import state_folder, write_private
from quaid.vault import files

FOLDER = "purged"
CLEAN = "refs/quaid/clean"
"""The newest commit that was accepted: only what is newer is searched."""
MAX_LIST_BYTES = 1_000_000
MAX_IDS = 500_000
_STATE_FILE = "purged.json"
_HEADER = (
    "# Ids of git objects that `quaid purge` removed. No history with one is pulled or pushed: docs/how-to/purge.md\n"
)
_ID = re.compile(r"(?m)^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
_SEARCH = "look for purged objects"


class PurgedError(QuaidError):
    """A history has what was purged."""

    code = "purged"

    def __init__(self, whose: str, object_id: str, next_step: str, way_out: str = "") -> None:
        short = object_id[:12]
        super().__init__(
            f"{whose} has what was purged (object {short}): nothing was pulled or pushed. {next_step}. "
            f"If nobody purged it: {way_out or f'quaid purge --disown {short}'}"
        )


class Purges:
    """What this machine knows of the purges of the vault at `root`."""

    def __init__(self, root: Path, git: Git) -> None:
        self._root = root
        self._git = git
        try:
            stored = json.loads(files.read_note(state_folder(root), _STATE_FILE) or b"{}")
        except (OSError, ValueError):  # the lists are in the vault too
            stored = {}
        self._lists: dict[str, list[str]] = stored.get("lists", {})  # by the blob of each
        self._disowned: list[str] = stored.get("disowned", [])
        self.replaced: list[str] = stored.get("replaced", [])
        """The commits that remotes had when a purge here made them again."""

    def record(self, ids: Iterable[str], replaced: Iterable[str]) -> None:
        """Remember what a purge on this machine removes. Raises OSError."""
        if listed := sorted(set(ids)):
            self._lists[hash_blob(_render(listed), listed[0])] = listed
        self.replaced = sorted({*self.replaced, *replaced})
        self._write()

    def plan_lists(self, head: str) -> tuple[Edit, ...]:
        """Return the edits that add the lists which the commit `head` lacks."""
        missing = self._lists.keys() - _list_blobs(self._git, head)
        texts = {f"{FOLDER}/{blob[:16]}.txt": _render(self._lists[blob]) for blob in sorted(missing)}
        return tuple(Edit(path, files.read_note(self._root, path), data) for path, data in texts.items())

    def disown(self, object_id: str) -> None:
        """Ignore every list with an id that begins with `object_id`. Raises BadInputError, OSError."""
        if not re.fullmatch(r"[0-9a-f]{7,64}", object_id):
            raise BadInputError(f"{object_id!r} is no id of an object. Give the one that quaid pull or push named.")
        self.replaced = [each for each in self.replaced if not each.startswith(object_id)]
        self._disowned = sorted({*self._disowned, object_id})
        self._write()

    def has_unread(self, head: str) -> bool:
        """Return whether the commit `head` has a list that this machine does not know yet."""
        return bool(_list_blobs(self._git, head) - self._lists.keys())

    def find(self, tip: str, theirs: str | None = None) -> str | None:
        """Return an object in the new commits of `tip` that was purged. The lists of the commit `theirs` count too,
        for objects that its own history lacks.
        """
        new = self._ids_of(_read_lists(self._git, theirs, self._lists)) if theirs else set()
        clean = read_ref(self._git.repository.common_dir, CLEAN)
        found = _find(self._git, new, tip, theirs)
        return found or _find(self._git, self._ids_of(self._lists), tip, clean)

    def has_own_version(self, theirs: str, since: str) -> bool:
        """Return whether the owner has changed a file that held what was purged, after the commit `since`.

        A merge of it may bring the text back, in an object that no list names. The lists of `theirs` count too.
        """
        ids = self._ids_of(self._lists | _read_lists(self._git, theirs, self._lists))
        shape = ("--raw", "--no-renames", "--no-abbrev")
        commits = self._git.read(_SEARCH, "log", *shape, "-m", "--format=", f"{since}..HEAD", "--")
        work = self._git.read(_SEARCH, "diff-index", *shape, "HEAD", "--")
        return not ids.isdisjoint((commits + work).decode("utf-8", "replace").split())

    def accept(self, head: str, theirs: str | None = None) -> None:
        """Remember the lists of `head`, whose new commits were searched, as were those of a remote, `theirs`."""
        new = _read_lists(self._git, head, self._lists)
        if sum(map(len, (self._lists | new).values())) > MAX_IDS:
            new = {}
        if new or (theirs and self.replaced):
            self._lists |= new
            self.replaced = [] if theirs else self.replaced
            with suppress(OSError):  # the lists are in the vault too
                self._write()
        if self._lists:
            self._git.read("remember a commit", "update-ref", CLEAN, head)

    def _ids_of(self, lists: dict[str, list[str]]) -> set[str]:
        disowned = tuple(self._disowned)
        return set(chain(*(ids for ids in lists.values() if not any(each.startswith(disowned) for each in ids))))

    def _write(self) -> None:
        stored = json.dumps({"lists": self._lists, "disowned": self._disowned, "replaced": self.replaced})
        write_private(state_folder(self._root) / _STATE_FILE, stored, sync=True)


def find_returned(git: Git, new: str, old: str, listing: str) -> str | None:
    """Return an object that the history of `new` has and that of `old` lacks, if the commit `listing` lists it."""
    return _find(git, set(chain(*_read_lists(git, listing).values())), new, old)


def _find(git: Git, ids: set[str], tip: str, accepted: str | None) -> str | None:
    if not ids:
        return None
    found = ids & _list_objects(git, tip, *([f"^{accepted}"] if accepted else []))
    if found and accepted:
        found -= _list_objects(git, accepted)  # the first answer leaves out only what recent commits have
    return min(found, default=None)


def _list_objects(git: Git, *revisions: str) -> set[str]:
    args = ("rev-list", "--objects", "--no-object-names", "--missing=print", "--ignore-missing", *revisions, "--")
    return {line.lstrip("?") for line in git.read(_SEARCH, *args).decode().split()}


def _list_blobs(git: Git, commit: str) -> set[str]:
    place = f"{git.repository.to_git(FOLDER)}/"
    rows = split_items(git.read(_SEARCH, "ls-tree", "-z", "-l", "--full-tree", commit, "--", place))
    words = (row.partition("\t")[0].split() for row in rows)
    return {blob for _, kind, blob, size in words if kind == "blob" and size.isdigit() and int(size) <= MAX_LIST_BYTES}


def _read_lists(git: Git, commit: str, known: Collection[str] = ()) -> dict[str, list[str]]:
    """Return the lists of a commit that are not `known`."""
    found = git.read_blobs(_list_blobs(git, commit).difference(known))
    return {blob: _ID.findall(data.decode("ascii", "replace")) for blob, data in found.items()}


def _render(ids: Iterable[str]) -> bytes:
    return (_HEADER + "".join(f"{each}\n" for each in ids)).encode()
