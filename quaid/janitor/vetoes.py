"""What the owner has undone, read from the history: by `quaid janitor undo`, by plain `git revert`, or by a refusal."""

from __future__ import annotations

from collections.abc import Collection

from quaid.janitor.context import Veto
from quaid.model import Commit
from quaid.vault.branches import VETO, Branches

TASK, DECISION = "Quaid-Task", "Quaid-Decision"
MOST_EXAMPLES = 8
"""Of one task, for its prompt."""


def read_vetoes(branches: Branches, own: Collection[str]) -> list[Veto]:
    """All vetoes that stand, newest first; one that was itself undone does not. `own` are Quaid's e-mail addresses."""
    lifted: set[str] = set()
    found: dict[tuple[str, str], Veto] = {}
    for commit, undoes in branches.undone(own):  # newest first: what undoes a veto comes before it
        if _is_lifted(commit.id, lifted):
            continue
        for undone in undoes:
            lifted.add(undone)
            for part in branches.contents(undone):
                for veto in _decisions(part):
                    found.setdefault((veto.task, veto.key), veto)
        for refused in commit.trailers.get(VETO, ()) if commit.email in own else ():
            task, _, key = refused.partition(" ")
            found.setdefault((task, key), Veto(task, key, commit.subject, commit.body))
    return list(found.values())


def _is_lifted(commit_id: str, lifted: set[str]) -> bool:
    return any(commit_id.startswith(undone) for undone in lifted)


def _decisions(commit: Commit) -> list[Veto]:
    task = next(iter(commit.trailers.get(TASK, ())), "")
    return [Veto(task, key, commit.subject, commit.body) for key in commit.trailers.get(DECISION, ())]
