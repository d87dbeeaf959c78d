"""What a remote has, merged into the owner's branch: planned outside the work tree, written like every
change.

The owner's uncommitted work stays uncommitted. Where it cannot be separated from what comes, nothing is pulled.
"""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from quaid.errors import GitError, LockedError, NoteChangedError, QuaidError, name_first
from quaid.history.authorship import find_signed
from quaid.history.commit_hook import find_folder
from quaid.history.committing import NotAheadError
from quaid.history.git import Version
from quaid.history.merge import merge_lines
from quaid.history.merges import Conflict, commit_merge, merge_trees
from quaid.history.staging import NEW_FILE
from quaid.history.steering import SteeringChangedError
from quaid.history.vault_history import History
from quaid.local import claimed
from quaid.model import Edit, Kind, Message
from quaid.open_vault import OpenVault
from quaid.remotes import incoming
from quaid.remotes.incoming import IncomingRefusedError, Source
from quaid.settings import MAX_NOTE_BYTES
from quaid.sync.diff import looks_like_accident
from quaid.vault import files, frontmatter, layout, notes, transaction
from quaid.vault.layout import Layout
from quaid.vault.merging import merge_note

ATTEMPTS = 5
_MARK = b"<<<<<<< "

Contents = Mapping[str, bytes]
"""Blob id -> bytes."""
Settled = dict[str, bytes | None]
"""Path -> what the file becomes, None for no file."""


class Pulled(NamedTuple):
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


def pull(vault: OpenVault, source: Source, accepted: str = "", *, accept_removals: bool = False) -> Pulled:
    """Bring the owner's branch to all that it and the source have. Done again, it does nothing.

    The owner has agreed to the steering files whose digest is `accepted`, and to many removals or not.

    Raises:
        IncomingRefusedError: what comes is refused. QuaidError: uncommitted work is in the way.
        LockedError: the branch keeps moving, another writer or a rebase of the owner's does not end.
        GitError: the two have nothing in common.
    """
    for _ in range(ATTEMPTS):
        with transaction.begin(vault.root, vault.git, vault.settings.git.wait_s, vault.notify):
            try:
                return _pull_once(vault, source, accepted, accept_removals=accept_removals)
            except (NoteChangedError, NotAheadError):
                continue
    raise LockedError("Your branch keeps changing while Quaid pulls")


def _pull_once(vault: OpenVault, source: Source, accepted: str, *, accept_removals: bool) -> Pulled:
    root, history, git, remote = vault.root, vault.git, vault.git.runner, source.remote
    ours, theirs = history.state().head, source.commit
    if ours is None:
        raise GitError("pull", "the vault has no commit yet. Begin with a clone: quaid clone URL")
    if history.has_adopted(theirs):
        return Pulled(None)
    _, commits = history.count_apart(ours, theirs)
    is_merge = not git.is_ancestor(ours, theirs)
    target, conflicts = _merge(vault, ours, source, commits) if is_merge else (theirs, ())
    changes = git.diff_trees(ours, target)
    vouched = None if source.is_own else _list_vouched(history, ours, theirs)
    top, hooks = root.resolve(), find_folder(root).resolve()
    incoming.check(
        changes,
        source,
        git.read_sizes(new.blob for _, new in changes.values() if new is not None),
        accepted,
        paths=tuple(history.list_tree(target)) if git.is_set("core.ignoreCase") else (),
        hooks=hooks.relative_to(top).as_posix() if hooks.is_relative_to(top) else "",
        vouched=vouched,
    )
    olds, news = history.revisions.read_changed(ours, target)
    removed = incoming.list_removed_notes(changes, olds, news)
    gone = [*removed, *incoming.list_emptied_notes(olds, news)]
    known = sum(map(layout.is_note_path, history.list_tree(ours))) if gone else 0
    if not accept_removals and looks_like_accident(gone, known):
        raise IncomingRefusedError(
            f"{remote} removes or empties {len(gone):,} of {known:,} notes",
            "If that is right: quaid pull --accept-removals",
        )
    # What Quaid has written and would commit with the next memory: a conversation that two machines heard is merged.
    travelling = {edit.rel_path for each in transaction.list_deferred(root) for edit in each.change.edits}
    if in_the_way := sorted(travelling & changes.keys()):
        transaction.commit_deferred(root, history, in_the_way[0])
        raise NotAheadError
    edits = plan_edits(root, olds, news)
    # The facts that somebody wrote, or wrote in, who is not known.
    unknown = (path for path in news if vouched is not None and path not in vouched and layout.is_note_path(path))
    parsed = (notes.parse_note(path, news[path], MAX_NOTE_BYTES, vault.layout) for path in unknown)
    claims = [note.id for note in parsed if note.kind is Kind.FACT]
    claimed_before = claimed.read(root)
    claimed.write(root, claimed_before | dict.fromkeys(claims, remote))  # before anybody indexes them
    backup = history.remotes.back_up(ours, datetime.now(UTC)) if is_merge else ""
    change = transaction.VaultChange(f"pull {theirs}", edits, Message(f"pull {remote}"), adopted=target)
    try:
        done = transaction.apply(root, change, history)
    except QuaidError as error:
        claimed.write(root, claimed_before)
        if not isinstance(error, SteeringChangedError):
            raise
        # A hook, or what .git/config includes: with all else that git runs it is confirmed as a whole.
        branch, place = f"{remote}/{source.branch}", shlex.quote(str(root))
        step = f"See how: git diff HEAD...{branch}. If that is meant: git merge {branch} && quaid trust {place}"
        raise IncomingRefusedError(f"{remote} changes what git runs here", step) from error
    changed = tuple(filter(layout.is_note_path, changes))
    return Pulled(done.id, commits, is_merge, changed, len(removed), conflicts, backup, len(claims))


def plan_edits(root: Path, olds: Mapping[str, bytes], news: Mapping[str, bytes]) -> tuple[Edit, ...]:
    """Return what is written so that the files become what the new commit has, and the owner's own changes stay.

    Raises:
        QuaidError: they cannot be separated, or an uncommitted file of theirs is in the way.
    """
    edits: list[Edit] = []
    foreign: list[str] = []
    collided: list[str] = []
    for path in sorted({*olds, *news}):
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
    if in_the_way := collided or foreign:
        of_both = "has changes of yours where the remote has changed it too"
        problem = of_both if collided else "is not committed here, and the remote has another file of that name"
        raise QuaidError(
            f"{name_first(in_the_way)} {problem}: nothing was pulled, and nothing of yours was changed. "
            "Commit the changes you want to keep with git add and git commit, then: quaid pull",
            code="own_work",
        )
    return tuple(edits)


def _merge(vault: OpenVault, ours: str, source: Source, commits: int) -> tuple[str, tuple[str, ...]]:
    """Commit the merge of the branch and the source's `commits`; also return the notes in which markers are left."""
    git, settings = vault.git.runner, vault.settings.git
    tree, unmerged = merge_trees(git, ours, source.commit)
    conflicts: tuple[str, ...] = ()
    if unmerged:  # what git leaves open is decided
        contents = git.read_blobs(one.blob for each in unmerged for one in (each.base, each.ours, each.theirs) if one)
        blobs = {path: version.blob for path, version in git.list_tree(tree, *(each.path for each in unmerged)).items()}
        texts = git.read_blobs(blobs.values())
        merged = {path: texts[blob] for path, blob in blobs.items() if blob in texts}
        both = [each.path for each in unmerged if each.ours and each.theirs]
        # A file that one side only has removed may have another name there.
        added = {
            path: new.blob
            for side in ((ours, source.commit) if len(both) < len(unmerged) else ())
            for path, (old, new) in git.diff_trees(side, tree).items()
            if old is None and new is not None and layout.is_note_path(path)
        }
        texts = git.read_blobs(added.values())
        notes_there = {path: texts[blob] for path, blob in added.items() if blob in texts}
        conflicts = tuple(path for path in both if has_markers(merged.get(path, b"")))
        if settled := _settle(unmerged, contents, merged, notes_there, vault.layout):
            modes = {path: version.mode for path, version in git.list_tree(tree, *settled).items()}
            versions = {
                path: None if data is None else Version(modes.get(path, NEW_FILE), git.store(data))
                for path, data in settled.items()
            }
            tree = git.write_tree(tree, versions)
    trailers = (("Quaid-Task", "pull"), *(("Quaid-Conflict", path) for path in conflicts))
    message = Message(f"merge: {commits} commit{'s' * (commits != 1)} of {source.remote}", "", trailers)
    target = commit_merge(git, tree, [ours, source.commit], message, (settings.name, settings.email))
    return target, conflicts


def _list_vouched(history: History, ours: str, theirs: str) -> frozenset[str]:
    """The paths that, of what comes, only commits touch which somebody signed whom the user's own git config trusts.
    Where another merge is among them, which may hold anything, there are none.
    """
    log = history.log_changes(f"{ours}..{theirs}")
    signed = find_signed(history.runner, (each.commit.id for each in log))
    touched: dict[bool, set[str]] = {True: set(), False: set()}
    for each in log:
        is_signed = each.commit.id in signed
        if not is_signed and not each.changes:
            return frozenset()
        touched[is_signed].update(path for change in each.changes for path in (change.path, change.old_path) if path)
    return frozenset(touched[True] - touched[False])


def _settle(
    unmerged: Sequence[Conflict], contents: Contents, merged: Contents, added: Contents, place: Layout
) -> Settled:
    """Return the files that one machine removed or renamed and another changed, where they are not to be as the merge
    left them: git leaves these to a person. `merged` is what it made of each path, `added` what it has of the paths
    that only one side has.

    What was forgotten stays forgotten, what the owner wrote stays, and what was added to a collection stays. A note
    that was renamed and rewritten, which git takes for removed, gets what the other machine wrote.
    """
    by_path = sorted(added.items(), reverse=True)
    ids = {note_id: path for path, data in by_path if path not in merged and (note_id := _read_id(data))}
    settled: Settled = {}
    for each in unmerged:
        side = each.ours or each.theirs
        if each.ours and each.theirs:
            # Where git cannot mark a conflict, as in a picture, and took our version, theirs is stored next to it.
            now, data = merged.get(each.path, b""), contents.get(each.theirs.blob)
            if data is not None and data != now and not has_markers(now):
                name = PurePosixPath(each.path)
                settled[str(name.with_name(f"{name.stem}.conflict-{each.theirs.blob[:7]}{name.suffix}"))] = data
        elif each.base and side:
            base, theirs = contents.get(each.base.blob, b""), contents.get(side.blob, b"")
            if renamed := ids.get(_read_id(base) or ""):
                # Its other name, with a text that git does not recognise, is on the side that seems to have removed it.
                both = merge_note(base, settled.get(renamed) or added[renamed], theirs, renamed)
                settled |= {} if both is None else {renamed: both, each.path: None}
            elif (kind := place.kind_of(each.path, _read_head(base))) not in (Kind.NOTE, Kind.CORE, Kind.DOC):
                # One side removed it, the other changed it. Of the owner's words nothing is removed.
                left = merge_lines(base, b"", theirs) if kind in (Kind.SNIPPET, Kind.JOURNAL) else None
                settled[each.path] = left if left and left.strip() else None
    # Both sides gave a note another name: of its two files, which git makes equal, the one that sorts first stays.
    named: dict[str, list[str]] = {}
    for each in unmerged:
        data = merged.get(each.path)
        if each.base is None and bool(each.ours) != bool(each.theirs) and data and (note_id := _read_id(data)):
            named.setdefault(note_id, []).append(each.path)
    groups = (sorted(paths) for paths in named.values())
    return settled | {path: None for first, *others in groups for path in others if merged[path] == merged[first]}


def has_markers(data: bytes) -> bool:
    """Return whether a text has the markers of a conflict."""
    return data.startswith(_MARK) or b"\n" + _MARK in data


def _read_id(data: bytes) -> str | None:
    found = _read_head(data).get("id")
    return found if isinstance(found, str) else None


def _read_head(data: bytes) -> Mapping[str, Any]:
    return frontmatter.parse(data.decode("utf-8", "replace")).fields
