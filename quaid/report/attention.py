"""What of a vault needs its owner's attention, each with the next step: the list below `quaid status`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.place import LOCAL_FILE, state_folder
from quaid.vault import transaction

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.report.status import EmbeddingState, Index, Repository, Watcher

_NEXT_STEPS = {
    "rebase": "git rebase --continue or --abort",
    "am": "git am --continue or --abort",
    "merge": "git merge --continue or --abort",
    "cherry-pick": "git cherry-pick --continue or --abort",
    "revert": "git revert --continue or --abort",
    "bisect": "git bisect reset",
}


@dataclass(frozen=True, slots=True)
class Attention:
    """Something the owner may want to do: what it is, and the next step, empty where `what` names it already."""

    what: str
    next_step: str = ""
    paths: tuple[str, ...] = ()


def list_attention(
    memory: Memory,
    index: Index,
    embedding: EmbeddingState,
    watcher: Watcher | None,
    repository: Repository,
    problems: Sequence[tuple[str, str]],
) -> tuple[Attention, ...]:
    """Everything that needs attention, the most pressing first; `problems` are (path, problem) of notes."""
    return (
        *([Attention(f"All settings are defaults. {memory.problem}")] if memory.problem else []),
        *_damaged(state_folder(memory.root)),
        *_index_attention(index, embedding, watcher),
        *_repository_attention(repository, is_lock_abandoned=repository.locked and memory.git.is_lock_abandoned),
        *_note_attention(problems),
        *_interrupted(memory),
        *_overdue(memory),
        *_given_up(memory),
        *_left_behind(memory),
    )


def _damaged(state: Path) -> list[Attention]:
    """That local.db was begun anew: all else that is set aside is made again from files."""
    kept = state / f"{LOCAL_FILE}.damaged"
    if not os.path.lexists(kept):
        return []
    what = f"{LOCAL_FILE} was damaged: counters since the last night, queued lines and logs were begun anew"
    return [Attention(what, f"see what {kept} holds, then remove it")]


def _repository_attention(repository: Repository, *, is_lock_abandoned: bool) -> list[Attention]:
    found = []
    if repository.problem:
        found.append(Attention(repository.problem))
    if repository.operation:
        what = f"A {repository.operation} is in progress: Quaid commits nothing until it has ended"
        found.append(Attention(what, _NEXT_STEPS.get(repository.operation, "end it, then try again")))
    if is_lock_abandoned:
        found.append(
            Attention("A killed write of Quaid left index.lock", "the next write finishes it and removes that")
        )
    elif repository.locked:
        what = "Another git process holds index.lock"
        found.append(Attention(what, "wait for it; if none is running, remove .git/index.lock"))
    if repository.detached and not repository.operation:
        found.append(Attention("HEAD is detached: commits belong to no branch", "git switch BRANCH"))
    if repository.uncommitted:
        what = f"{_notes(len(repository.uncommitted))} with changes that are not committed"
        found.append(Attention(what, "git status, then git add -A && git commit", repository.uncommitted))
    return found


def _index_attention(index: Index, embedding: EmbeddingState, watcher: Watcher | None) -> list[Attention]:
    found = []
    if index.problem:
        found.append(Attention(index.problem))
    if embedding.problem:
        found.append(Attention(embedding.problem))
    elif index.pending and embedding.ready:
        found.append(Attention(f"{index.pending:,} chunks have no vector yet", "quaid sync"))
    if index.failed:
        found.append(Attention(f"{index.failed:,} chunks could not be embedded", "quaid reindex"))
    if watcher is not None and not watcher.alive:
        found.append(Attention(f"The watcher (process {watcher.pid}) died", "quaid watch"))
    if watcher is not None and watcher.problem:
        found.append(Attention(f"The watcher says: {watcher.problem}", "quaid doctor"))
    return found


def _note_attention(problems: Sequence[tuple[str, str]]) -> list[Attention]:
    if not problems:
        return []
    paths = tuple(f"{path}: {problem}" for path, problem in problems)
    what = f"{_notes(len({path for path, _ in problems}))} could not be read as meant"
    return [Attention(what, "repair them in an editor; they stay searchable as text meanwhile", paths)]


def _interrupted(memory: Memory) -> list[Attention]:
    found = [
        Attention(unfinished.reason, f"what it wanted is kept in {unfinished.folder}; use it, then delete that folder")
        for unfinished in transaction.list_unfinished(memory.root)
    ]
    if transaction.needs_recovery(memory.root):
        found.append(Attention("A write was interrupted", "the next write finishes it; nothing is lost"))
    return found


def _overdue(memory: Memory) -> list[Attention]:
    from quaid.janitor.news import overdue_in

    sentence = overdue_in(state_folder(memory.root), datetime.now(UTC))
    return [Attention(sentence)] if sentence else []


def _given_up(memory: Memory) -> list[Attention]:
    from quaid.local import queue

    state = state_folder(memory.root)
    given_up = queue.failed(state)
    if not given_up:
        return []
    what = "1 conversation" if len(given_up) == 1 else f"{len(given_up):,} conversations"
    paths = tuple(f"{item.transcript}: {item.problem}" for item in given_up)
    return [Attention(f"{what} of agents could not be taken in", queue.next_step(state), paths)]


def _left_behind(memory: Memory) -> list[Attention]:
    stale = tuple(memory.documentation.known_stale())
    if not stale:
        return []
    what = "1 document was stale" if len(stale) == 1 else f"{len(stale):,} documents were stale"
    return [Attention(f"{what} at the last check", "quaid docs check", stale)]


def _notes(number: int) -> str:
    return "1 note" if number == 1 else f"{number:,} notes"
