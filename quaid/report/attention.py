"""The things that need an owner's attention, each with the next step: the list below `quaid status`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from quaid.config import person_of
from quaid.errors import SettingError
from quaid.history.repository import KEEP_DETACHED, NEXT_STEPS
from quaid.index.scope import list_unclaimed
from quaid.janitor.decision import SET_ASIDE
from quaid.model import Level
from quaid.place import LOCAL_FILE, state_folder
from quaid.recall.visibility import read_core_notes, visible_paths
from quaid.report.language import STEP
from quaid.vault import transaction
from quaid.vault.files import find_named, printable
from quaid.vault.layout import Layout, is_other_format
from quaid.vault.notes import NOT_MADE
from quaid.vault.transaction import list_uncommitted

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.remotes.exchange import RemoteState
    from quaid.report.status import EmbeddingState, Index, RepositoryStatus, Watcher

MISPLACED_STEP = "move them elsewhere, or make their frontmatter count with: quaid config vault.hand_written managed"
WAITING_STEP = "end that; the notes are in the vault, and the next write of Quaid commits them"
"""The next step where git refuses to commit what is written."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Something the owner may want to do: what it is, and the next step, empty where `what` names it already."""

    what: str
    next_step: str = ""
    paths: tuple[str, ...] = ()
    level: Level = "warning"


def list_attention(
    memory: Memory,
    index: Index,
    embedding: EmbeddingState,
    watcher: Watcher | None,
    repository: RepositoryStatus,
    problems: Sequence[tuple[str, str]],
) -> tuple[Attention, ...]:
    """Everything that needs attention, the most pressing first; `problems` are (path, problem) of notes."""
    found = []
    if memory.problem is not None:
        some = "Settings that cannot be used are defaults, and nothing is written."
        said = some if isinstance(memory.problem, SettingError) else "All settings are defaults."
        found.append(Attention(f"{said} {memory.problem}"))
    # All other databases that are set aside are made again from files.
    damaged = state_folder(memory.root) / f"{LOCAL_FILE}.damaged"
    if os.path.lexists(damaged):
        what = f"{LOCAL_FILE} was damaged: counters, queued lines and logs since its last daily copy may be missing"
        found.append(Attention(what, f"see what {damaged} holds, then remove it"))
    if waiting := list_uncommitted(memory.root):
        refused = dict.fromkeys(edit.rel_path for each in waiting for edit in each.change.edits)
        what = f"{_count(len(waiting), 'change')} not committed since {waiting[0].since}: {waiting[-1].reason}"
        found.append(Attention(what, WAITING_STEP, tuple(refused), "error"))
    found += _index_attention(index, embedding, watcher)
    found += _repository_attention(repository, is_lock_abandoned=repository.locked and memory.git.is_lock_abandoned)
    misplaced = tuple(path for path, problem in problems if problem == NOT_MADE)
    unread = [(path, problem) for path, problem in problems if problem != NOT_MADE]
    if unread:
        what = f"{_count(len({path for path, _ in unread}), 'note')} could not be read as meant"
        paths = tuple(f"{path}: {problem}" for path, problem in unread)
        found.append(Attention(what, "repair them in an editor; they stay searchable as text meanwhile", paths))
    if other := sorted(str(path.relative_to(memory.root)) for path in find_named(memory.root, is_other_format)):
        what = f"{_count(len(other), 'file')} in other formats than markdown: not searched"
        found.append(Attention(what, "save as markdown what is to be found", tuple(map(printable, other))))
    if misplaced:
        what = f"{_count(len(misplaced), 'note')} in Quaid's folders that Quaid did not make: searched as your own"
        found.append(Attention(what, MISPLACED_STEP, misplaced))
    found += _list_unclaimed(memory)
    found += [
        Attention(f"{note} is longer than a session has room for: {over:,} characters of it are left out", step)
        for note, over, step in list_long_core_notes(memory)
    ]
    return (*found, *_list_over_quota(memory), *_background_attention(memory))


def _list_over_quota(memory: Memory) -> list[Attention]:
    """What agents brought today and yesterday beyond what one may bring in a day."""
    if not memory.settings.audit.facts_per_day:
        return []
    from quaid.report.audit import list_over_quota_since

    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    limit = memory.settings.audit.facts_per_day
    return [
        Attention(f"{source} brought {_count(facts, 'fact')} on {day}, of {limit:,}", f"quaid audit --source {source}")
        for source, day, facts in list_over_quota_since(memory, yesterday)
    ]


def _list_unclaimed(memory: Memory) -> Iterator[Attention]:
    """Yield the owner's own notes that their words about owner and privacy may hide from the owner."""
    mine = person_of(memory.root, memory.settings) or memory.settings.owner
    for owner, found in groupby(list_unclaimed(memory.whole_index(), memory.owners), itemgetter(0)):
        paths = tuple(printable(path) for _, path in found)
        what = f"{_count(len(paths), 'note')} stated as private to {owner!r}, and so hidden from {mine!r}"
        yield Attention(what, f"if that is you, write owner: {mine} there", paths)


def list_long_core_notes(memory: Memory) -> list[tuple[str, int, str]]:
    """Return (file, characters left out, next step) of each core note that a session's context shows in part."""
    from quaid.recall.core_room import list_cut
    from quaid.recall.cutoff import CHARACTERS_PER_TOKEN

    hooks = memory.settings.hooks
    place = Layout.of(memory.settings.vault)
    cut = list_cut(tuple(read_core_notes(memory.root, memory.owners, place)), hooks)
    wanted = hooks.context_tokens + sum(2 * over for _, over in cut) // CHARACTERS_PER_TOKEN
    step = f"shorten it, or give sessions more room: quaid config hooks.context_tokens {-(-wanted // 100) * 100}"
    return [(note, over, step) for note, over in cut]


def _repository_attention(repository: RepositoryStatus, *, is_lock_abandoned: bool) -> list[Attention]:
    found = []
    if repository.problem:
        found.append(Attention(repository.problem))
    if repository.operation:
        what = f"A {repository.operation} is in progress: Quaid commits nothing until it has ended"
        found.append(Attention(what, NEXT_STEPS.get(repository.operation, "end it, then try again")))
    if is_lock_abandoned:
        what = "A killed write of Quaid left index.lock"
        found.append(Attention(what, "the next write finishes it and removes that"))
    elif repository.locked:
        what = "Another git process holds index.lock"
        found.append(Attention(what, "wait for it; if none is running, remove .git/index.lock"))
    if repository.detached and not repository.operation:
        found.append(Attention("HEAD is detached: commits belong to no branch", KEEP_DETACHED))
    if repository.uncommitted:
        what = f"{_count(len(repository.uncommitted), 'note')} with changes that are not committed"
        found.append(
            Attention(what, "see them with git status; git add and git commit what is to stay", repository.uncommitted)
        )
    return found


def list_remote_attention(remotes: Sequence[RemoteState]) -> list[Attention]:
    """What the remotes wait for; one that was never confirmed waits for nothing."""
    found = []
    for remote in remotes:
        if remote.trust == "changed":
            what = f"The remote {remote.name} is not reached as it was when you confirmed it: {remote.address}"
            found.append(Attention(what, f"if that was you: quaid remote trust {remote.name}"))
        if remote.problem:
            found.append(Attention(remote.problem))
        if remote.claims and remote.own is None:
            what = f"{_count(remote.claims, 'fact')} that {remote.name} brought count as the word of others"
            step = f"say once who writes there: quaid remote trust {remote.name} --own (your own machines), or --shared"
            found.append(Attention(what, step))
    return found


def _index_attention(index: Index, embedding: EmbeddingState, watcher: Watcher | None) -> list[Attention]:
    found = [Attention(index.problem)] if index.problem else []
    if embedding.problem:
        found.append(Attention(embedding.problem))
    elif index.pending and embedding.ready and not index.embedding:
        found.append(Attention(f"{index.pending:,} chunks have no vector yet", "quaid sync"))
    if embedding.proposal:
        found.append(Attention(embedding.proposal, STEP))
    if index.failed:
        found.append(Attention(f"{index.failed:,} chunks could not be embedded", "quaid reindex"))
    if watcher is not None and not watcher.alive:
        found.append(Attention(f"The watcher (process {watcher.pid}) died", "quaid watch"))
    if watcher is not None and watcher.problem:
        found.append(Attention(f"The watcher says: {watcher.problem}", "quaid doctor"))
    return found


def _background_attention(memory: Memory) -> list[Attention]:
    """Writes that were killed, nights that did not run, conversations that were given up, documents that are stale."""
    from quaid.janitor.news import overdue_in
    from quaid.local import hook_failures, queue

    state = state_folder(memory.root)
    found = [
        Attention(unfinished.reason, f"what it wanted is kept in {unfinished.folder}; use it, then delete that folder")
        for unfinished in transaction.list_unfinished(memory.root)
    ]
    if transaction.needs_recovery(memory.root):
        found.append(Attention("A write was interrupted", "the next write finishes it; nothing is lost"))
    found += [Attention(str(failure), "quaid doctor --hooks") for failure in hook_failures.read(memory.root)]
    if late := overdue_in(state, memory.git, datetime.now(UTC)):
        found.append(Attention(late))
    if given_up := queue.failed(state):
        what = f"{_count(len(given_up), 'conversation')} of agents could not be taken in"
        paths = tuple(f"{item.transcript}: {item.problem}" for item in given_up)
        found.append(Attention(what, queue.next_step(state), paths))
    found += list_set_aside(memory)
    stale = sorted(each.doc for each in memory.documentation.known() if each.is_stale)
    if stale := visible_paths(stale, memory.whole_index(), memory.visible_index()):
        what = f"{_count(len(stale), 'document')} {'was' if len(stale) == 1 else 'were'} stale at the last check"
        found.append(Attention(what, "quaid docs check", tuple(stale)))
    return found


def list_set_aside(memory: Memory) -> list[Attention]:
    """What no model would judge, as the last run has left it."""
    last = [run for run in memory.janitor.runs(2) if run.outcome != "running"][:1]
    found = [one for run in last for one in run.decisions if one.get("kind") == SET_ASIDE]
    if not found:
        return []
    what = f"{_count(len(found), 'thing')} could not be judged by a model and will not be put to it again"
    step = "reword or forget it, or name another model with: quaid config models.deep NAME, or models.fast"
    return [Attention(what, step, tuple(f"{one.get('subject')}: {one.get('outcome')}" for one in found))]


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
