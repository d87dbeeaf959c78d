"""A write to a served vault: committed in a working copy, pushed, and acknowledged when the remote has it.

If another push was faster, the commit is dropped and the write is planned again on the new state of the vault.
"""

import hashlib
import time
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from quaid.capture.writer import WriteResult
from quaid.config import settings_for_reading
from quaid.errors import GitError, LockedError, QuaidError
from quaid.history.messages import on_one_line
from quaid.history.mirrors import Mirror, WorkingCopy
from quaid.history.remotes import RemoteRefusedError, RemoteUnreachableError
from quaid.janitor.vetoes import CLIENT
from quaid.memory import Memory
from quaid.resident.worker import Job
from quaid.server.catalogue import ServedVault
from quaid.server.tokens import Caller
from quaid.server.vaults import VaultFolder
from quaid.trust import make_state_folder

ATTEMPTS = 8
PAUSE_S = 0.05
"""The longest pause after the first push that lost a race; it doubles each time."""
CALL = "Quaid-Call"
"""Trailer: the call that a commit answers; `CLIENT` names the caller."""


class OutcomeUnknownError(QuaidError):
    """The connection to the remote broke during a push."""

    exit_code = 75
    code = "outcome_unknown"

    def __init__(self) -> None:
        super().__init__(
            "It is not known if this was stored: the vault's repository did not answer in time. Ask for it before you "
            "store it again; a call that is repeated with the same Idempotency-Key is never stored twice."
        )


def write(
    folder: VaultFolder, vault: ServedVault, caller: Caller, key: str, job: Job[WriteResult]
) -> tuple[WriteResult, int]:
    """Run `job` on the latest state of the vault. Return its result once the remote has its commit, and the number of
    pushes. `key` identifies a call that may be repeated; it is empty for others.

    Raises:
        OutcomeUnknownError
        QuaidError: nothing was stored.
    """
    mirror = folder.mirror
    head = mirror.fetch()
    if head is None:
        raise _nothing_stored(f"the repository has no branch {vault.branch}.")
    for attempt in range(1, ATTEMPTS + 1):
        with folder.writing() as copy:
            copy.bring_to(head)
            written = _run_job(copy, caller, key, job)
            made = copy.head()
            if written.left or made is None:
                raise _nothing_stored(written.hint or "git did not commit it.")
            if made == head:
                return written, 0
            if _push(copy, mirror, made):
                return replace(written, commit=made), attempt
        time.sleep(SystemRandom().uniform(0, PAUSE_S * 2**attempt))
        head = mirror.fetch() or head
    raise LockedError("Others keep pushing to this vault")


def open_memory(root: Path, caller: Caller) -> Memory:
    """Open a vault that this server has cloned, as `caller` may see it, without models, remotes or recall logs."""
    settings, problem = settings_for_reading(root)
    make_state_folder(root)
    name = f"{on_one_line(caller.owner)} ({settings.git.name})"
    quiet = replace(settings.git, name=name, sync="off", sign="off", maintenance="off")
    models = replace(settings.models, provider="none")
    recall = replace(settings.recall, log="off", gaps="off")
    return Memory(root, replace(settings, owner=caller.owner, git=quiet, models=models, recall=recall), problem)


def _run_job(copy: WorkingCopy, caller: Caller, key: str, job: Job[WriteResult]) -> WriteResult:
    # Neither key nor client can be read from the commit.
    digest = hashlib.sha256(f"{caller.client}\0{key}".encode("utf-8", "replace")).hexdigest()[:40]
    with open_memory(copy.root, caller) as memory:
        repeated = memory.git.log(limit=1, grep_trailer=(CALL, digest)) if key else []
        for commit in repeated:
            path = commit.files[0] if commit.files else ""
            fact = commit.trailers.get("Quaid-Fact", (path,))[0]
            return WriteResult(fact, path, "known", commit=commit.id, hint="This very call was carried out before.")
        memory.check_settings()
        memory.trailers = ((CLIENT, caller.client), *(((CALL, digest),) if key else ()))
        return job(memory)


def _nothing_stored(reason: object) -> QuaidError:
    return QuaidError(f"Nothing was stored: {reason}", code="nothing_stored")


def _push(copy: WorkingCopy, mirror: Mirror, commit: str) -> bool:
    """Push, and return whether the remote has the commit; False if another push was faster."""
    try:
        return copy.push(commit)
    except RemoteRefusedError as error:
        raise _nothing_stored(error) from error
    except (RemoteUnreachableError, GitError) as error:
        # The remote may have accepted it nevertheless.
        try:
            there = mirror.fetch()
        except QuaidError:
            raise OutcomeUnknownError from error
        if there is not None and mirror.resolve(commit) is not None and mirror.git.is_ancestor(commit, there):
            return True
        if isinstance(error.__cause__, TimeoutError):
            raise OutcomeUnknownError from error
        raise _nothing_stored(error) from error
