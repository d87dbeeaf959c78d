"""The order of a purge: look, refuse or ask, mark, rewrite, move, clean, take away the old objects, prove.

Killed at any point, the next `quaid purge` completes it: each step may be repeated, and the old objects, from which is
seen what has to change, go last. The mark in the state folder holds no text, only ids of notes' old versions.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from quaid.errors import NoteNotFoundError, QuaidError, UsageError
from quaid.history import rewriting, vault_guard
from quaid.history.git import Git
from quaid.history.remotes import FETCHED
from quaid.history.repository import MERGED, Repository, find_repository
from quaid.history.rewriting import Survey
from quaid.janitor.cleanup import prune_cache
from quaid.janitor.worktree import WORKTREES, clear_worktrees
from quaid.local.rows import compact
from quaid.memory import Memory
from quaid.model import Message
from quaid.place import CACHE_FILE, state_folder, write_private
from quaid.purge.holders import hold_alone
from quaid.purge.proof import Proof, clean_state, clean_tree, iterate_entries, iterate_files, prove, read_file
from quaid.purge.wording import MIN_CHARS, Wording, list_texts
from quaid.trust import trusted_vaults
from quaid.vault import transaction

MARK_FILE = "purging.json"


class PurgeRefusedError(QuaidError):
    """The purge would not be complete, or would lose something of the owner's."""

    code = "purge_refused"

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__(f"Nothing was purged, since it could not be complete: {'; '.join(reasons)}.")


class Plan(NamedTuple):
    """What a purge would do, counted; `uncommitted` are files with work of the owner that hold the text."""

    notes: tuple[str, ...]
    changed: tuple[str, ...]
    uncommitted: tuple[str, ...]
    blobs: int
    commits: int
    messages: int
    signed: int
    remotes: tuple[tuple[str, str], ...]
    clones: tuple[str, ...]
    obstacles: tuple[str, ...]


def find_note(memory: Memory, reference: str) -> Wording:
    """Return what purging the note `reference`, also a forgotten one, means. Raises as `Memory.get`."""
    repository = _repository_of(memory.root)
    try:
        view = memory.get(reference)
        if view.turn is not None or view.heading:
            return Wording([view.text])
        path, present = view.document.path, view.source
    except NoteNotFoundError:
        removed = memory.git.find_removed(reference)
        if removed is None:
            raise
        _, path, present = removed
    return _with_versions(repository, rewriting.list_versions(repository, repository.to_git(path)), present)


def find_text(memory: Memory, text: str, *, is_regex: bool = False) -> Wording:
    """Return what purging `text` means; a regular expression is purged as all that it finds in the history and files.
    Raises UsageError: the text is too short, or no regular expression.
    """
    if not is_regex:
        return Wording([text])
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"{text!r} is no regular expression ({error}). Correct it.") from error
    repository = _repository_of(memory.root)
    stored = (item.data for item in Git(repository).iterate_objects() if item.kind != "tree")
    contents = chain(stored, map(read_file, iterate_files(repository.top)))
    found = dict.fromkeys(match[0] for data in contents for match in pattern.finditer(data.decode("utf-8", "replace")))
    return Wording(text for text in found if text.strip())


def find_interrupted(memory: Memory) -> Wording | None:
    """Return the request of a killed purge, without the texts that it was given. None where none was killed."""
    try:
        stored = json.loads((memory.state / MARK_FILE).read_text())
        versions = [str(blob) for blob in stored["versions"]]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        return Wording(())
    return _with_versions(_repository_of(memory.root), versions)


def join(first: Wording, second: Wording | None) -> Wording:
    """Return what purges both."""
    return Wording((*first.texts, *second.texts), (*first.versions, *second.versions)) if second else first


def look(memory: Memory, asked: Wording) -> tuple[Plan, Survey]:
    """Return what a purge would do. Nothing is changed."""
    root = memory.root
    repository = _repository_of(root)
    found = rewriting.survey(Git(repository), asked, memory.show_progress)
    notes, changed = [], []
    for path in iterate_files(repository.top):
        name = path.relative_to(repository.top).as_posix()
        data = read_file(path)
        after = asked.change_file(data)
        if after is None:
            notes.append(name)
        elif after != data or asked.change_path(os.fsencode(name)) != os.fsencode(name):
            changed.append(name)
    held = {*notes, *changed}
    git = Git(repository)
    with git.reading() as reader:
        commits = rewriting.iterate_changed(git, reader, asked, found)
        signed = [rewriting.is_signed(commit.head) for commit in commits]
    plan = Plan(
        tuple(notes),
        tuple(changed),
        tuple(line[3:] for line in git.list_changed() if line[3:] in held),
        len(found.files),
        len(signed),
        len(found.messages),
        sum(signed),
        tuple(rewriting.list_remotes(repository)),
        tuple(_list_clones(repository)),
        tuple(_list_obstacles(root, repository, asked)),
    )
    return plan, found


def purge(memory: Memory, asked: Wording, *, may_drop_signatures: bool = False) -> tuple[Plan, Proof]:
    """Purge what is `asked`, wherever this machine keeps it for the vault, and prove it.

    Raises:
        PurgeRefusedError: it could not be complete; nothing was changed.
        LockedError: another process uses the vault.
        GitError: git refused; run it again.
    """
    root, state = memory.root, memory.state
    repository = _repository_of(root)
    with hold_alone(repository, root, state), transaction.begin(root, memory.git, memory.settings.git.wait_s):
        memory.close()  # held alone, it starts no exchange with the remotes
        clear_worktrees(root, memory.git)
        plan, found = look(memory, asked)
        if plan.obstacles:
            raise PurgeRefusedError(plan.obstacles)
        if plan.signed and not may_drop_signatures:
            raise PurgeRefusedError(
                [f"{plan.signed:,} signed commits would lose their signatures. Say that they may: --drop-signatures"]
            )
        blobs = [Git(repository).store(data) for data in asked.versions]  # until the old objects are taken away
        mark = {"since": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "versions": blobs}
        write_private(state / MARK_FILE, json.dumps(mark), sync=True)
        _rewrite_repository(memory, repository, asked, found)
        clean_state(state, asked)
        # The ids of what was purged, for the other machines. If git refuses the commit, the next write makes it.
        purges, head = memory.git.purges, memory.git.state().head
        if head and (edits := purges.plan_lists(head)):
            message = Message("purge: list the objects that were removed")
            change = transaction.VaultChange("purge", edits, message, stays=True)
            head = transaction.apply(root, change, memory.git).id or head
        if head:
            purges.accept(head)
    # Index the notes as they are now, and keep only the vectors of what they say.
    with Memory(root, memory.settings) as again:
        again.reindex()
    prune_cache(state, keeps_spare=False)
    if (state / CACHE_FILE).exists():
        compact(state / CACHE_FILE)
    memory.show_progress("proof", 0, 0)
    proof = prove(memory, repository, asked)
    if proof.holds:
        (state / MARK_FILE).unlink(missing_ok=True)
    return plan, proof


def _rewrite_repository(memory: Memory, repository: Repository, wording: Wording, found: Survey) -> None:
    rewritten = rewriting.rewrite(Git(repository), wording, found, memory.show_progress)
    # An id may have the text among its digits by chance.
    ids = {each for each in (*found.files, *found.trees, *found.messages) if not wording.is_in(each.encode())}
    there = {
        old for name, old in rewriting.list_refs(repository) if name.startswith((rewriting.REMOTES, FETCHED, MERGED))
    }
    memory.git.purges.record(ids, there & rewritten.keys())
    rewriting.move_refs(repository, rewritten)
    for tree in rewriting.list_worktrees(repository):
        clean_tree(tree.top, wording)
        rewriting.move_index(tree, wording, rewritten)
    rewriting.clean_git_dir(repository, wording, rewritten)
    vault_guard.accept(memory.root)  # the first commits are others, and the text may have been in .git/config
    memory.show_progress("packs", 0, 0)
    rewriting.prune(repository)


def _list_obstacles(root: Path, repository: Repository, wording: Wording) -> Iterator[str]:
    yield from rewriting.list_obstacles(repository)
    for path in (path for folder in (repository.common_dir, state_folder(root)) for path in iterate_entries(folder)):
        if path.is_symlink() and path.is_dir():
            yield f"{path} is a link to a folder, which others may use: put the folder itself in its place"
        elif path.is_file() and not os.access(path, os.R_OK):
            yield f"{path} cannot be read: make it readable"
    for name, _ in rewriting.list_refs(repository):
        raw = name.encode("utf-8", "surrogateescape")
        if not name.startswith(rewriting.REMOTES) and wording.change_path(raw) != raw:
            yield f"the name of the ref {wording.change_path(raw).decode('utf-8', 'replace')} holds the text: rename it"
    own = state_folder(root) / WORKTREES
    for tree in rewriting.list_worktrees(repository)[1:]:
        if own in tree.top.parents:
            continue
        yield from (f"in the worktree {tree.top} {obstacle}" for obstacle in rewriting.list_obstacles(tree))
        # A purge that was killed may have changed its files already.
        if Git(tree).list_changed() and not (state_folder(root) / MARK_FILE).exists():
            yield f"the worktree {tree.top} holds work that is not committed: commit it there"


def _list_clones(repository: Repository) -> Iterator[str]:
    """Vaults of this user that were cloned from this one or share a remote with it, as far as this machine knows."""
    here = {str(repository.top), *(url for _, url in rewriting.list_remotes(repository))}
    for root in trusted_vaults():
        with suppress(OSError, QuaidError):
            there = find_repository(Path(root))
            if there is None or there.common_dir == repository.common_dir:
                continue
            urls = {url.removeprefix("file://").rstrip("/") for _, url in rewriting.list_remotes(there)}
            if urls & here or str(there.top) in here:
                yield str(there.top)


def _with_versions(repository: Repository, versions: list[str], *present: bytes) -> Wording:
    contents = tuple(dict.fromkeys((*Git(repository).read_blobs(versions).values(), *present)))
    return Wording((text for text in list_texts(contents) if len(text) >= MIN_CHARS), contents)


def _repository_of(root: Path) -> Repository:
    repository = find_repository(root)
    if repository is None:
        raise PurgeRefusedError([f"{root} is in no git repository: git init {root}"])
    return repository
