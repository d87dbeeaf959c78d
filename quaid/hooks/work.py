"""The worker: takes in what hooks have left in the queue, beside whatever the agent does, and ends.

One at a time in a vault; it is started by hooks and outlives the program that they belong to.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import QuaidError
from quaid.local import queue, state_files
from quaid.place import state_folder
from quaid.text.invisible import escaped

if TYPE_CHECKING:
    from quaid.capture.extractor import ExtractResult
    from quaid.capture.transcripts import AgentLog
    from quaid.docs.catalogue import Doc
    from quaid.docs.staleness import Freshness
    from quaid.memory import Memory

LOCK_FILE = "worker.lock"
LOG_FILE = "worker.log"
LONGEST_LOG = 1_000_000
RETRY_S = 300.0
"""After a failure; after the second one twice as long."""


def start_worker(root: Path) -> None:
    """Start a worker for the vault at `root` and do not wait for it. It ends at once where one is at work."""
    log = state_folder(root) / "log" / LOG_FILE
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state_files.begin_anew(log, LONGEST_LOG)
    # -P: the folder that the agent works in may hold a quaid/ or a json.py of its own.
    argv = [sys.executable, "-P", "-m", "quaid.hooks.work", str(root)]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
    ]
    # A session of its own: the terminal that is closed takes the agent's program along, not the worker.
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=files, setsid=True)


def work(root: Path, *, idle_s: float | None = None) -> int:
    """Take in what is due; how many conversations were. 0 as well where another worker is at it.

    `idle_s` overrules `hooks.idle_minutes`: a conversation that was never ended is due when it has been silent so long.
    """
    from quaid.local import sessions
    from quaid.memory import Memory

    state = state_folder(root)
    taken = 0
    with Memory.open(root) as memory:
        hooks = memory.settings.hooks
        silent_s = hooks.idle_minutes * 60.0 if idle_s is None else idle_s
        queue.set_aside(state)
        # Once more after letting go: what came in meanwhile has found its worker at work and started none.
        while _due(state, silent_s) or queue.has_edited(state):
            with state_files.alone(state / LOCK_FILE) as is_ours:
                if not is_ours:
                    break
                sessions.clear_old(state)
                for item in _due(state, silent_s):
                    if hooks.extract and memory.settings.systems.memory:
                        taken += _take_in(memory, state, item)
                    else:
                        queue.done(state, item)
                _follow_edits(memory, state)
    return taken


def _due(state: Path, silent_s: float) -> list[queue.Item]:
    now = time.time()
    return [
        item
        for item in queue.waiting(state)
        if now - item.at >= item.attempts * RETRY_S and (item.when == "now" or _is_silent(state, item, silent_s))
    ]


def _is_silent(state: Path, item: queue.Item, idle_s: float) -> bool:
    latest = item.at
    with suppress(OSError, QuaidError), _log_of(state, item).opening() as log:
        latest = max(latest, os.fstat(log.fileno()).st_mtime)
    return time.time() - latest >= idle_s


def _take_in(memory: Memory, state: Path, item: queue.Item) -> int:
    from quaid.errors import BadInputError, NothingSaidError

    try:
        done = list(memory.extract_each(_log_of(state, item), trigger=item.reason.capitalize()))
    except NothingSaidError:
        queue.done(state, item)
        return 0
    except QuaidError as error:
        problem, for_good = str(error), isinstance(error, BadInputError)
    except Exception as error:  # noqa: BLE001 - one conversation must not keep the others
        problem, for_good = f"{type(error).__name__}: {error}", False
    else:
        queue.done(state, item)
        for extracted in done:
            if extracted.problem:
                _log(f"{extracted.session} is kept and waits to be learned from: {extracted.problem}")
        _tell(memory, done)
        return len(done)
    queue.fail(state, item, problem, for_good=for_good)
    _log(problem)
    return 0


def _log_of(state: Path, item: queue.Item) -> AgentLog:
    from quaid.capture.transcripts import SPOOL, AgentLog
    from quaid.hooks.transcripts import open_own, open_spooled

    if item.spooled:
        return AgentLog(item.transcript, lambda: open_spooled(item.transcript, state / queue.FOLDER), SPOOL)
    return AgentLog(item.transcript, lambda: open_own(item.transcript))


def _follow_edits(memory: Memory, state: Path) -> None:
    """Tell which documents are about the files that agents have edited, and bring them up to date where that is set."""
    from quaid.local.notifications import deliver

    edited = queue.take_edited(state)
    settings = memory.settings
    try:
        if edited and settings.systems.projects and settings.docs.check:
            found = memory.documentation.follow(edited)
            deliver(memory.root, settings.notifications, "docs", _render_edits(found))
            if found and settings.docs.update_on_compact:
                from quaid.janitor.runner import RunOptions

                memory.janitor.run(RunOptions(tasks=("docs_staleness",)))
    except QuaidError as error:
        _log(f"The documents of what was edited could not be looked at: {error}")
    queue.forget_edited(state)


def _render_edits(found: list[tuple[Doc, Freshness]]) -> str:
    waiting = [(doc.id, freshness.edited) for doc, freshness in found if freshness.edited]
    if not waiting:
        return ""
    lines = [f"- {doc}: {', '.join(edited[:5])}" for doc, edited in waiting[:20]]
    count = "1 document tells" if len(waiting) == 1 else f"{len(waiting)} documents tell"
    return "\n".join([f"What {count} of was edited.", *lines])


def _log(line: str) -> None:
    from quaid.redaction import admit

    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{when}  {escaped(' '.join(admit(line).text.split()))}", file=sys.stderr, flush=True)


def _tell(memory: Memory, done: list[ExtractResult]) -> None:
    from datetime import UTC, datetime

    from quaid.janitor.news import overdue_in
    from quaid.local.notifications import deliver, level_of

    settings = memory.settings.notifications
    level = level_of(settings, "extraction")
    facts = [fact for extracted in done for fact in extracted.facts]
    if level == "off" or not facts:
        return
    count = "1 fact" if len(facts) == 1 else f"{len(facts)} facts"
    sessions = ", ".join(extracted.session for extracted in done)
    lines = [f"Quaid learned {count} from {sessions}."]
    if level == "full":
        lines += [f"- {fact.text}" for fact in facts]
    if warning := overdue_in(state_folder(memory.root), datetime.now(UTC)):
        lines.append(warning)
    deliver(memory.root, settings, "extraction", "\n".join(lines))


if __name__ == "__main__":
    os.chdir("/")  # the folder that the agent works in may be removed or unmounted, and is nothing to this process
    work(Path(sys.argv[1]))
