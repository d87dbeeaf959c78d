"""What a remote has, merged into the owner's branch: planned outside the work tree, written like every
change.

The owner's uncommitted work stays uncommitted. Where it cannot be separated from what comes, nothing is pulled.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quaid.errors import GitError, LockedError, NoteChangedError, QuaidError
from quaid.history.committing import NotAheadError
from quaid.history.merge import merge_lines
from quaid.history.merges import TreeChange, TreeMerge
from quaid.history.steering import SteeringChangedError
from quaid.history.vault_history import History
from quaid.local import claimed
from quaid.model import Edit, Kind, Message
from quaid.remotes import incoming, settling
from quaid.remotes.incoming import Allowance, IncomingRefusedError, Surroundings
from quaid.settings import MAX_NOTE_BYTES, Settings
from quaid.sync.diff import looks_like_accident
from quaid.vault import files, layout, notes, transaction
from quaid.vault.layout import Layout

ATTEMPTS = 5


class OwnWorkError(QuaidError):
    """Uncommitted work of the owner's collides with what comes."""

    code = "own_work"

    def __init__(self, paths: Sequence[str], problem: str) -> None:
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        super().__init__(
            f"{', '.join(paths[:3])}{more} {problem}: nothing was pulled, and nothing of yours was changed. "
            "Commit what is to stay with git add and git commit, then: quaid pull"
        )


@dataclass(frozen=True, slots=True)
class Pulled:
    """What became of a pull: the commit that the branch is at, how many came, whether that took a merge, the notes
    that were removed, those with conflict markers, and the ref that keeps the branch as it was before a merge. `claims`
    counts the facts that are somebody else's word.
    """

    commit: str | None
    commits: int = 0
    merged: bool = False
    changed: tuple[str, ...] = ()
    removed: int = 0
    conflicts: tuple[str, ...] = ()
    backup: str = ""
    claims: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """The branch that is pulled: its remote, its name, the commit it is at. `is_own`: its owner alone writes there."""

    remote: str
    branch: str
    commit: str
    is_own: bool = False


def pull(
    root: Path, history: History, settings: Settings, source: Source, allowed: Allowance, say: Callable[[str], None]
) -> Pulled:
    """Bring the owner's branch to all that it and the source have. Done again, it does nothing.

    Raises:
        IncomingRefusedError, OwnWorkError, StagedWorkError: nothing was changed.
        LockedError: the branch keeps moving, another writer or a rebase of the owner's does not end.
        GitError: the two have nothing in common.
    """
    for _ in range(ATTEMPTS):
        with transaction.begin(root, history, settings.git.wait_s, say):
            try:
                return _pull_once(root, history, settings, source, allowed)
            except (NoteChangedError, NotAheadError):
                continue
    raise LockedError("Your branch keeps changing while Quaid pulls")


def _pull_once(root: Path, history: History, settings: Settings, source: Source, allowed: Allowance) -> Pulled:
    state, trees = history.state(), history.branches.trees
    ours, theirs = state.head, source.commit
    if ours is None:
        raise GitError("pull", "the vault has no commit yet. Begin with a clone: quaid clone URL")
    if history.has_adopted(theirs):
        return Pulled(None)
    commits = history.remotes.distance(ours, theirs).behind
    is_merge = not history.remotes.is_ancestor(ours, theirs)
    conflicts: tuple[str, ...] = ()
    target = theirs
    if is_merge:
        merge = trees.merge(ours, theirs)
        tree, conflicts = _settle(history, merge, (ours, theirs), Layout.of(settings.vault))
        trailers = (("Quaid-Task", "pull"), *(("Quaid-Conflict", path) for path in conflicts))
        subject = f"merge: {commits} commit{'s' * (commits != 1)} of {source.remote}"
        target = trees.commit_tree(
            tree, [ours, theirs], Message(subject, "", trailers), (settings.git.name, settings.git.email)
        )
    changes = trees.changes(ours, target)
    around = Surroundings(
        source.remote,
        source.branch,
        trees.sizes([change.new.blob for change in changes if change.new is not None]),
        paths=tuple(history.list_tree(target)) if trees.ignores_case() else (),
        hooks=trees.hooks_folder(),
        vouched=None if source.is_own else _list_vouched(history, ours, theirs),
    )
    incoming.check(changes, around, allowed)
    olds = trees.read({change.path: change.old for change in changes if change.old is not None})
    news = trees.read({change.path: change.new for change in changes if change.new is not None})
    removed = incoming.list_removed_notes(changes, olds, news)
    gone = [*removed, *incoming.list_emptied_notes(olds, news)]
    known = sum(map(layout.is_note_path, history.list_tree(ours))) if gone else 0
    if not allowed.removals and looks_like_accident(gone, known):
        raise IncomingRefusedError(
            f"{source.remote} removes or empties {len(gone):,} of {known:,} notes",
            "If that is right: quaid pull --accept-removals",
        )
    # What Quaid has written and would commit with the next memory: a conversation that two machines heard is merged.
    travelling = {edit.rel_path for each in transaction.list_deferred(root) for edit in each.change.edits}
    if in_the_way := sorted(travelling.intersection(change.path for change in changes)):
        transaction.commit_deferred(root, history, in_the_way[0])
        raise NotAheadError
    edits = plan_edits(root, changes, olds, news)
    claims = _list_claims(news, around, settings)
    claimed_before = claimed.read(root)
    claimed.write(root, claimed_before | dict.fromkeys(claims, source.remote))  # before anybody indexes them
    backup = history.remotes.back_up(ours, datetime.now(UTC)) if is_merge else ""
    change = transaction.VaultChange(f"pull {theirs}", edits, Message(f"pull {source.remote}"), adopted=target)
    try:
        done = transaction.apply(root, change, history)
    except QuaidError as error:
        claimed.write(root, claimed_before)
        if not isinstance(error, SteeringChangedError):
            raise
        # A hook, or what .git/config includes: with all else that git runs it is confirmed as a whole.
        branch, place = f"{source.remote}/{source.branch}", shlex.quote(str(root))
        step = f"See how: git diff HEAD...{branch}. If that is meant: git merge {branch} && quaid trust {place}"
        raise IncomingRefusedError(f"{source.remote} changes what git runs here", step) from error
    changed = tuple(change.path for change in changes if layout.is_note_path(change.path))
    return Pulled(done.id, commits, is_merge, changed, len(removed), conflicts, backup, len(claims))


def plan_edits(
    root: Path, changes: Sequence[TreeChange], olds: Mapping[str, bytes], news: Mapping[str, bytes]
) -> tuple[Edit, ...]:
    """Return what is written so that the files become what the new commit has, and the owner's own changes stay.

    Raises:
        OwnWorkError: they cannot be separated, or an uncommitted file of theirs is in the way.
    """
    edits: list[Edit] = []
    foreign: list[str] = []
    collided: list[str] = []
    for path in (change.path for change in changes):
        old, new, disk = olds.get(path), news.get(path), files.read_note(root, path)
        if disk in (old, new):
            edits += [Edit(path, old, new)] if disk != new else []
        elif disk is None:
            continue  # its owner has removed it: that is theirs to commit
        elif old is None:
            foreign.append(path)
        elif new is None or (merged := merge_lines(old, disk, new)) is None:
            collided.append(path)
        else:
            edits.append(Edit(path, disk, merged))
    if collided:
        raise OwnWorkError(collided, "has changes of yours where the remote has changed it too")
    if foreign:
        raise OwnWorkError(foreign, "is not committed here, and the remote has another file of that name")
    return tuple(edits)


def _settle(history: History, merge: TreeMerge, sides: tuple[str, str], place: Layout) -> tuple[str, tuple[str, ...]]:
    """The tree of a merge with what git leaves open decided, and the notes in which markers are left."""
    if not merge.unmerged:
        return merge.tree, ()
    trees = history.branches.trees
    versions = (one for each in merge.unmerged for one in (each.base, each.ours, each.theirs) if one)
    contents = trees.read_blobs({version.blob for version in versions})
    merged = trees.read_raw(merge.tree, [each.path for each in merge.unmerged])
    both = [each.path for each in merge.unmerged if each.ours and each.theirs]
    # A file that one side only has removed may have another name there.
    added = {
        change.path: change.new.blob
        for side in (sides if len(both) < len(merge.unmerged) else ())
        for change in trees.changes(side, merge.tree)
        if change.old is None and change.new is not None and layout.is_note_path(change.path)
    }
    texts = trees.read_blobs(set(added.values()))
    notes_there = {path: texts[blob] for path, blob in added.items() if blob in texts}
    settled = settling.settle(merge.unmerged, contents, merged, notes_there, place)
    conflicts = tuple(path for path in both if settling.has_markers(merged.get(path, b"")))
    return trees.with_files(merge.tree, settled), conflicts


def _list_vouched(history: History, ours: str, theirs: str) -> frozenset[str]:
    """The paths that, of what comes, only commits touch which somebody signed whom the user's own git config trusts.
    Where another merge is among them, which may hold anything, there are none.
    """
    log = history.branches.log(f"{ours}..{theirs}")
    signed = history.branches.find_signed(each.commit.id for each in log)
    touched: dict[bool, set[str]] = {True: set(), False: set()}
    for each in log:
        is_signed = each.commit.id in signed
        if not is_signed and not each.changes:
            return frozenset()
        touched[is_signed].update(path for change in each.changes for path in (change.path, change.source) if path)
    return frozenset(touched[True] - touched[False])


def _list_claims(news: Mapping[str, bytes], around: Surroundings, settings: Settings) -> list[str]:
    """The ids of the facts that somebody wrote, or wrote in, who is not known."""
    if around.vouched is None:
        return []
    unknown = (path for path in news if layout.is_note_path(path) and path not in around.vouched)
    limit, place = MAX_NOTE_BYTES, Layout.of(settings.vault)
    parsed = (notes.parse_note(path, news[path], limit, place) for path in unknown)
    return [note.id for note in parsed if note.kind is Kind.FACT]
