"""Merges: two commits into one tree without touching the work tree, the conflicts that git leaves, and what each side
of a merge of two machines had added.

Attributes and merge drivers are those of our own commit and configuration: what comes from elsewhere counts when it has
been merged.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from quaid.errors import GitError, QuaidError
from quaid.history import repository as repositories
from quaid.history.authorship import choose_identity
from quaid.history.git import Git, Version, split_items
from quaid.history.messages import render
from quaid.model import Kind, Message
from quaid.vault import files, frontmatter, merging
from quaid.vault.layout import Layout

MAX_MERGES = 50
"""Merges that are read, the newest first: more come together only where nobody has looked for months."""
_FORGETTABLE = (Kind.FACT, Kind.ENTITY, Kind.EPISODE, Kind.REVIEW)
_UNRELATED = (
    "Your vault and the remote have no commit in common, so they cannot be merged: nothing was changed. "
    "If both are yours, clone the remote into a new folder and copy your notes there: quaid clone URL PATH, "
    "then in it: quaid import --from notes OLD_VAULT"
)
_TOO_OLD = "this git cannot merge without touching your files. Install git 2.38 or newer, or merge by hand: git merge"


class Conflict(NamedTuple):
    """A path that git could not merge: the versions of the common ancestor, of ours and of theirs that there are.
    `is_committed` if a pull has committed it with marks.
    """

    path: str
    base: Version | None = None
    ours: Version | None = None
    theirs: Version | None = None
    is_committed: bool = False

    @property
    def is_removed(self) -> bool:
        """Return whether one side has removed what the other has changed."""
        return self.base is not None and (self.ours is None) != (self.theirs is None)


def merge_trees(git: Git, ours: str, theirs: str) -> tuple[str, list[Conflict]]:
    """Return the tree that two commits make, and the conflicts: such a path is in the tree with conflict markers, or as
    one side had it. Paths are git's.

    Raises:
        QuaidError: they have no common ancestor.
        GitError: git is too old.
    """
    with tempfile.TemporaryDirectory(prefix="quaid-merge-") as folder:
        # git puts the files of merge drivers into its working folder, and reads attributes there.
        attributes = git.query("cat-file", "blob", f"{ours}:.gitattributes")
        if attributes is not None:
            (Path(folder) / ".gitattributes").write_bytes(attributes)
        env = {"GIT_DIR": str(git.repository.git_dir), "GIT_INDEX_FILE": str(Path(folder) / "index")}
        elsewhere = Git(replace(git.repository, top=Path(folder)))
        args = ("merge-tree", "--write-tree", "-z", "--no-messages", ours, theirs)
        try:
            out = elsewhere.run("merge", *args, env=env, accept=(0, 1))[1]
        except GitError as error:
            if "usage: git merge-tree" in error.said or "unknown rev --write-tree" in error.said:
                raise GitError("merge", _TOO_OLD) from error
            if "refusing to merge unrelated histories" in error.said:
                raise QuaidError(_UNRELATED, code="unrelated_histories") from error
            raise
    tree, *listed = split_items(out)
    return tree, _parse_unmerged(listed)


def _parse_unmerged(items: Iterable[str]) -> list[Conflict]:
    """Parse "mode blob stage<tab>path", as git prints each side of an unmerged path."""
    found: dict[str, dict[str, Version]] = {}
    for item in items:
        head, _, path = item.partition("\t")
        mode, blob, stage = head.split(" ")
        found.setdefault(path, {})[stage] = Version(mode, blob)
    return [Conflict(path, sides.get("1"), sides.get("2"), sides.get("3")) for path, sides in found.items()]


def commit_merge(git: Git, tree: str, parents: Sequence[str], message: Message, ours: tuple[str, str]) -> str:
    """Make a commit by `ours` (name, e-mail), signed if the owner has git sign all of theirs. No branch moves."""
    signs = git.is_set("commit.gpgsign")
    keeps_committer = signs and bool(git.query("config", "--get", "user.email"))
    identity = choose_identity(git, ours, None, signs=keeps_committer)
    text = render(message).encode("utf-8", "replace")
    return git.commit_tree(tree, parents, text, identity, *(["-S"] if signs else []))


def list_unmerged(root: Path) -> list[Conflict]:
    """The files of the vault at `root` that a merge in progress has left, by path; none where there is no merge."""
    repository = repositories.find_repository(root)
    if repository is None:
        return []
    out = Git(repository).read("look for conflicts", "ls-files", "-u", "-z", "--", repository.prefix or ".")
    found = sorted(_parse_unmerged(split_items(out)))
    return [each._replace(path=repository.to_vault(each.path)) for each in found]


def list_conflicts(root: Path) -> list[Conflict]:
    """Return the files of the vault at `root` that a merge has left, by path: those of a merge in progress, and those
    that a pull has committed with marks which are still there.
    """
    repository = repositories.find_repository(root)
    found = {each.path: each for each in list_unmerged(root)}
    if repository is None or repositories.read_state(repository).head is None:
        return list(found.values())
    shape = ("-z", "--merges", "--format=%H%n%(trailers:key=Quaid-Conflict,valueonly,unfold)")
    for item in split_items(Git(repository).read("look for conflicts", "log", *shape, "--grep=^Quaid-Conflict: ")):
        commit, *paths = item.split("\n")
        for path in filter(None, paths):
            sides = [Version("", f"{commit}{parent}:{repository.to_git(path)}") for parent in ("", "^1", "^2")]
            now = files.read_note(root, path) if path not in found else None
            if now is None or b"<<<<<<<" not in now:
                continue
            marked, ours, theirs = (read_side(root, side) or b"" for side in sides)
            if any(conflict in now for conflict in merging.find_conflicts(marked, ours, theirs)):
                found[path] = Conflict(path, None, sides[1], sides[2], is_committed=True)
    return [found[path] for path in sorted(found)]


def read_side(root: Path, side: Version | None) -> bytes | None:
    """Return a version of an unmerged file; None where that side has it not."""
    repository = repositories.find_repository(root)
    return Git(repository).read("read a note", "cat-file", "blob", side.blob) if side and repository else None


def settle_conflict(root: Path, path: str, after: bytes | None) -> None:
    """Make `after` the outcome of the merge for a file, on disk and in git's index; None removes it.

    Raises:
        NoteChangedError: an editor is saving it.
        GitError: git refused.
    """
    repository = repositories.find_repository(root)
    before = files.read_note(root, path)
    if before != after:
        files.write_note(root, path, before, after)
    if repository is not None:
        Git(repository).read("settle a conflict", "add", "-A", "--", repository.to_git(path))


def keep_forgotten(root: Path, place: Layout) -> list[str]:
    """Remove what one side has forgotten and the other has changed, and return the paths: nothing forgotten returns.

    Only notes that Quaid made: what happens to a note of the owner's is the owner's to say.
    """
    forgotten = []
    for unmerged in list_unmerged(root):
        text = read_side(root, unmerged.ours or unmerged.theirs) if unmerged.is_removed else None
        fields = frontmatter.parse(text.decode("utf-8", "replace")).fields if text is not None else {}
        if text is not None and place.kind_of(unmerged.path, fields) in _FORGETTABLE:
            settle_conflict(root, unmerged.path, None)
            forgotten.append(unmerged.path)
    return forgotten


def read_operation(root: Path) -> str | None:
    """Return the operation that git is in the midst of: merge, rebase, cherry-pick …"""
    repository = repositories.find_repository(root)
    return repositories.read_state(repository).operation if repository is not None else None


def list_merges(git: Git, since: str | None) -> list[tuple[frozenset[str], frozenset[str], frozenset[str]]]:
    """The merges that HEAD has and the commit `since` has not, oldest first; without `since` HEAD, if it is one.

    Each is three sets of paths in the vault: the notes that our side alone has added, those that theirs alone has
    added, and those that both have added or changed. Nothing where git cannot tell: a shallow clone, no commit yet.
    Merges of a night with its branch are left out.
    """
    known = [f"^{since}"] if since and git.resolve(since) else []
    span = ("--merges", f"-n{MAX_MERGES}", "HEAD", *known) if known else ("--no-walk", "--merges", "HEAD")
    listed = git.query("rev-list", "--parents", *span, "--") or b""
    merges = []
    for _, *parents in (line.split() for line in reversed(listed.decode().splitlines())):
        base = (git.query("merge-base", *parents) or b"").decode().strip() if len(parents) == 2 else ""
        if not base or base in parents:
            continue
        changes = [git.diff_trees(base, side, *git.repository.inside) for side in parents]
        sides = [{git.repository.to_vault(path): old for path, (old, _) in side.items()} for side in changes]
        both = sides[0].keys() & sides[1].keys()
        added = [frozenset({path for path, old in side.items() if old is None} - both) for side in sides]
        merges.append((added[0], added[1], frozenset(both)))
    return merges
