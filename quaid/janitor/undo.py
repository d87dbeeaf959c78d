"""Undo of a night or of one of its commits: found by name, planned as edits, with a message that later nights read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import BadInputError, QuaidError
from quaid.history.merge import revert_change
from quaid.janitor.vetoes import REVERTS, RUN, TASK, asks, is_byproduct, trailers_of_undoing
from quaid.model import Commit, Edit, Message
from quaid.vault import files
from quaid.vault.uncommitted import TRAVELLED

if TYPE_CHECKING:
    from quaid.history.branches import VaultCommit
    from quaid.history.vault_history import History


@dataclass(frozen=True, slots=True)
class Undone:
    """The commits that `Janitor.undo` took back, newest first, and the commit that does; None where nothing was left to
    undo. `kept` is what was changed since and so stays: paths, each with its lines. `left` are paths whose change is on
    disk and not committed.
    """

    commits: tuple[Commit, ...]
    commit: str | None
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left: tuple[str, ...] = ()


def find_commits(history: History, log: Sequence[VaultCommit], reference: str) -> list[VaultCommit]:
    """The commits of `log` that are meant, oldest first: those of a run, or one. A run is found by its name, which a
    rebase leaves as it is.

    Raises:
        BadInputError: there is no such run or commit.
    """

    def runs_of(commits: Sequence[VaultCommit]) -> list[str]:
        return [run for logged in commits for run in logged.commit.trailers.get(RUN, ())]

    runs: list[str] = []
    chosen: list[VaultCommit] = []
    if len(reference) >= 4:
        runs = [run for run in runs_of(log) if run.startswith(reference) or run.endswith(reference)]
    if not runs:
        with suppress(QuaidError):
            commit_id = history.revisions.find(reference).id
            chosen = [logged for logged in log if logged.commit.id == commit_id]
        runs = runs_of([logged for logged in chosen if not logged.changes])  # the merge of a night
    if runs:
        chosen = [logged for logged in log if runs[-1] in logged.commit.trailers.get(RUN, ())]
    found = [logged for logged in chosen if logged.changes]
    if not found:
        raise BadInputError(f"No run and no commit is called {reference!r}. See them with: quaid janitor list")
    return found


def plan_undo(
    root: Path, history: History, undone: Sequence[VaultCommit], log: Sequence[VaultCommit], reference: str
) -> tuple[tuple[Edit, ...], dict[str, list[str]]]:
    """Return the edits that take back what the commits `undone` of `log`, oldest first, did, none where all of it is
    undone already; and by path the lines that stay because they were changed since, none for a whole note.

    Raises:
        BadInputError: all of it was changed since.
    """
    spans: dict[str, tuple[str, str]] = {}  # path -> the first and the last of the commits that changed it
    for logged in undone:
        for path in _own_paths(logged):
            spans[path] = (spans.get(path, (logged.commit.id,))[0], logged.commit.id)
    edits: list[Edit] = []
    kept: dict[str, list[str]] = {}
    for path in sorted(path for path in spans if asks(path) or not is_byproduct(path)):
        first, last = spans[path]
        before, after = history.read_at(f"{first}^", path), history.read_at(last, path)
        now = files.read_note(root, path)
        wanted = now
        if asks(path):
            # Of what comes along with decisions only questions that nobody has answered go: counters go on.
            wanted = before if before is None and now == after else now
        elif now in (before, after):
            wanted = before
        elif before is None or after is None or now is None:
            kept[path] = []
        else:
            wanted, lines = revert_change(before, after, now)
            if lines:
                kept[path] = [line.decode(errors="replace").strip() for line in lines]
        edits += [Edit(path, now, wanted)] if now != wanted else []
    if kept and not edits:
        path = next(iter(kept))
        raise BadInputError(
            f"{path} was changed since in the same lines{_changed_again(path, undone, log)}: nothing was undone. "
            f"Undo that first, or single commits instead: quaid janitor show {reference}"
        )
    return tuple(edits), kept


def _own_paths(logged: VaultCommit) -> set[str]:
    """The paths that a commit changed, but for what only came along with it."""
    travelled = logged.commit.trailers.get(TRAVELLED, ())
    paths = (path for change in logged.changes for path in (change.path, change.source))
    return {path for path in paths if path and path not in travelled}


def undo_message(commits: Sequence[Commit]) -> Message:
    """The message of the commit that takes back `commits`, newest first."""
    subject = commits[0].subject if len(commits) == 1 else f"{len(commits)} commits of a run"
    return Message(
        f"janitor: undo {subject}",
        "\n".join(f"This reverts commit {commit.id}." for commit in commits),
        (*((REVERTS, commit.id) for commit in commits), *trailers_of_undoing(reversed(commits)), (TASK, "undo")),
    )


def _changed_again(path: str, undone: Sequence[VaultCommit], log: Sequence[VaultCommit]) -> str:
    """The first commit after `undone` that changed a file, as its owner knows it; empty where none is."""
    for logged in log[log.index(undone[-1]) + 1 :]:
        if any(change.path == path for change in logged.changes):
            return f", first by {logged.commit.id[:10]} ({logged.commit.subject})"
    return ""
