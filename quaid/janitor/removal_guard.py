"""The removal guard: what stops a run before anything is written."""

from __future__ import annotations

from quaid.errors import QuaidError
from quaid.history.repository import KEEP_DETACHED
from quaid.history.vault_history import History
from quaid.place import CONFIG_FILE

SHRUNK_COUNT = 10
SHRUNK_SHARE = 0.2


class JanitorStoppedError(QuaidError):
    """A run that would do harm, or works on something that may be broken."""

    code = "janitor_stopped"

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(f"The janitor changed nothing: {reason}. {next_step}")


def check_size(notes_now: int, notes_before: int | None) -> None:
    """Stop a run on a vault that has lost many notes since the last one: it may be half mounted.

    Raises:
        JanitorStoppedError: it has.
    """
    lost = (notes_before or 0) - notes_now
    if notes_before and lost > SHRUNK_COUNT and lost > notes_before * SHRUNK_SHARE:
        raise JanitorStoppedError(
            f"{lost:,} of {notes_before:,} notes are gone since its last run",
            "If that is right: quaid janitor run --accept-removals",
        )


def check_branch(history: History) -> str:
    """Return the newest commit of the owner's branch, which has the vault in it.

    Raises:
        JanitorStoppedError: there is none.
    """
    state = history.state()
    if state.detached:
        raise JanitorStoppedError("HEAD is on no branch", f"Switch to yours first, or {KEEP_DETACHED}")
    if state.head is None or history.read_at(state.head, CONFIG_FILE) is None:
        raise JanitorStoppedError(
            "the vault is not committed yet",
            f"Commit it first: git add -- {CONFIG_FILE} && git commit -- {CONFIG_FILE}",
        )
    return state.head
