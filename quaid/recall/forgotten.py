"""A note that was taken out of the vault, as git still has it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from quaid.index import references
from quaid.recall.visibility import may_see

if TYPE_CHECKING:
    from quaid.history.vault_history import History
    from quaid.vault.layout import Layout


class Forgotten(NamedTuple):
    """The commit that took a note out, the note's path, and its bytes before that."""

    commit_id: str
    path: str
    data: bytes


def find_forgotten(history: History, reference: str, owners: Collection[str], place: Layout) -> Forgotten | None:
    """Return the note that `reference` called when it was last forgotten; None where there is none that may be seen."""
    found = history.find_removed(references.target_of(reference))
    return Forgotten(*found) if found is not None and may_see(*found[1:], owners, place) else None
