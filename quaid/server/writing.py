"""A write to a served vault: planned and committed in a working copy, pushed, and acknowledged when the remote has it.

Where others were quicker, the commit is dropped and the write is planned again on what they have made of the vault.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from quaid.config import settings_for_reading
from quaid.errors import GitError, LockedError, QuaidError
from quaid.history.messages import on_one_line
from quaid.history.mirrors import Mirror, WorkingCopy
from quaid.history.network import Pushed, RemoteRefusedError, RemoteUnreachableError
from quaid.janitor.vetoes import CLIENT
from quaid.resident.worker import Job
from quaid.server.catalogue import ServedVault
from quaid.server.folders import VaultFolder
from quaid.server.tokens import Caller
from quaid.trust import make_state_folder

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.memory import Memory

ATTEMPTS = 8
PAUSE_S = 0.05
"""The pause after the first push that others were quicker than, at most; it doubles each time."""
CALL = "Quaid-Call"
"""Trailer: which call a commit answers; `CLIENT` says who asked for it."""


class NothingStoredError(QuaidError):
    """A write was not stored, and certainly not."""

    exit_code = 75
    code = "nothing_stored"

    def __init__(self, reason: object) -> None:
        super().__init__(f"Nothing was stored: {reason}")


class OutcomeUnknownError(QuaidError):
    """The connection to the remote broke while it was told of a write."""

    exit_code = 75
    code = "outcome_unknown"

    def __init__(self) -> None:
        super().__init__(
            "It is not known if this was stored: the vault's repository did not answer in time. Ask for it before you "
            "store it again; a call that is repeated with the same Idempotency-Key is never stored twice."
        )


@dataclass(frozen=True, slots=True)
class WriteCall:
    """Who writes, and the key under which the same call may be repeated; empty where there is none."""

    caller: Caller
    key: str = ""

    @property
    def digest(self) -> str:
        """What the commit says of the call: neither key nor client can be read from it."""
        return hashlib.sha256(f"{self.caller.client}\0{self.key}".encode("utf-8", "replace")).hexdigest()[:40]

    @property
    def trailers(self) -> tuple[tuple[str, str], ...]:
        return ((CLIENT, self.caller.client), *(((CALL, self.digest),) if self.key else ()))


@dataclass(frozen=True, slots=True)
class Stored:
    """The answer to a write, the commit that the remote is at with it, and the number of pushes that it took."""

    written: WriteResult
    head: str
    attempts: int = 0


def write(folder: VaultFolder, vault: ServedVault, call: WriteCall, job: Job[WriteResult]) -> Stored:
    """Carry out `job` on the newest state of the vault, and return when the remote has its commit.

    Raises:
        NothingStoredError, LockedError, RemoteUnreachableError, RemoteRefusedError: nothing was stored.
        OutcomeUnknownError
        QuaidError: the job refused; nothing was stored.
    """
    mirror = folder.mirror
    head = mirror.fetch()
    if head is None:
        raise NothingStoredError(f"the repository has no branch {vault.branch}.")
    for attempt in range(1, ATTEMPTS + 1):
        with folder.writing() as copy:
            copy.bring_to(head)
            written = _carry_out(copy, call, job)
            made = copy.head()
            if written.left or made is None:
                raise NothingStoredError(written.hint or "git did not commit it.")
            if made == head:
                return Stored(written, head)
            if _push(copy, mirror, made):
                return Stored(replace(written, commit=made), made, attempt)
        time.sleep(SystemRandom().uniform(0, PAUSE_S * 2**attempt))
        head = mirror.fetch() or head
    raise LockedError("Others keep pushing to this vault")


def open_memory(root: Path, caller: Caller) -> Memory:
    """Open a vault that this server has cloned, as `caller` may see it. It asks no model, exchanges nothing itself and
    keeps no record of questions.
    """
    from quaid.memory import Memory

    settings, problem = settings_for_reading(root)
    make_state_folder(root)
    name = f"{on_one_line(caller.owner)} ({settings.git.name})"  # whose agent it is
    quiet = replace(settings.git, name=name, sync="off", sign="off", maintenance="off")
    models = replace(settings.models, provider="none")
    recall = replace(settings.recall, log="off", gaps="off")
    return Memory(root, replace(settings, owner=caller.owner, git=quiet, models=models, recall=recall), problem)


def _carry_out(copy: WorkingCopy, call: WriteCall, job: Job[WriteResult]) -> WriteResult:
    with open_memory(copy.root, call.caller) as memory:
        if call.key and (known := _find_repeated(memory, call)) is not None:
            return known
        if memory.problem is not None:
            raise memory.problem
        memory.trailers = call.trailers
        return job(memory)


def _find_repeated(memory: Memory, call: WriteCall) -> WriteResult | None:
    """Return the answer to a call that was carried out before and whose answer was lost; None where it was not."""
    from quaid.capture.writer import WriteResult

    found = memory.git.log(limit=1, grep_trailer=(CALL, call.digest))
    if not found:
        return None
    (commit,) = found
    path = commit.files[0] if commit.files else ""
    named = commit.trailers.get("Quaid-Fact", (path,))
    return WriteResult(named[0], path, "known", commit=commit.id, hint="This very call was carried out before.")


def _push(copy: WorkingCopy, mirror: Mirror, commit: str) -> bool:
    """Push, and return whether the remote has it; False if others were quicker."""
    try:
        return copy.push(commit) is Pushed.DONE
    except RemoteRefusedError as error:
        raise NothingStoredError(error) from error
    except (RemoteUnreachableError, GitError) as error:
        # The remote may have taken it all the same.
        try:
            there = mirror.fetch()
        except QuaidError:
            raise OutcomeUnknownError from error
        if there is not None and mirror.resolve(commit) is not None and mirror.includes(there, commit):
            return True
        if isinstance(error.__cause__, TimeoutError):
            raise OutcomeUnknownError from error
        raise NothingStoredError(error) from error
