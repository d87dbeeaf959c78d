"""The worker process that hooks start: it learns from the queued conversations, checks documents, and ends.

There is one at a time in a vault, and it outlives the program that the hooks belong to. With a session as its second
argument it only looks for the documents that describe what the session has edited.
"""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from quaid.capture.extractor import ExtractResult
from quaid.capture.transcripts import SPOOL, AgentLog
from quaid.errors import BadInputError, NothingSaidError, QuaidError, count
from quaid.hooks.transcripts import open_spooled, open_transcript
from quaid.janitor.news import overdue
from quaid.janitor.runner import RunOptions
from quaid.local import doc_notices, locks, queue, sessions
from quaid.local.notifications import deliver, level_of
from quaid.memory import Memory
from quaid.place import state_folder
from quaid.redaction import admit
from quaid.text.invisible import escaped

LOCK_FILE, NOTICES_LOCK = "worker.lock", "doc_notices.lock"
IDLE_S = 1_800.0
RETRY_S = 300.0
"""The wait after a failure; after the second one twice as long."""


def run_worker(root: Path, *, idle_s: float | None = None) -> int:
    """Learn from the conversations that are due, and return their number; also 0 if another worker is running.

    `idle_s` overrides `IDLE_S`: a conversation that never ended is due after such a silence.
    """
    state = state_folder(root)
    number = 0
    with Memory.open(root) as memory:
        hooks = memory.settings.hooks
        silent_s = IDLE_S if idle_s is None else idle_s
        queue.set_aside(state)
        # Again after the lock is released: hooks that found it locked have started no worker.
        while _due(state, silent_s) or queue.has_edited(state):
            with locks.try_lock(state / LOCK_FILE) as is_ours:
                if not is_ours:
                    break
                sessions.clear_old(state)
                for item in _due(state, silent_s):
                    if hooks.extract and memory.settings.systems.memory:
                        number += _learn(memory, state, item)
                    else:
                        queue.done(state, item)
                _check_documents(memory, state)
    return number


def _due(state: Path, silent_s: float) -> list[queue.QueuedItem]:
    now, due = time.time(), []
    for item in queue.waiting(state):
        changed_at = item.at
        if item.when != "now":
            with suppress(OSError, QuaidError), _open_transcript(state, item).stream as file:
                changed_at = max(changed_at, os.fstat(file.fileno()).st_mtime)
        if now - item.at >= item.attempts * RETRY_S and (item.when == "now" or now - changed_at >= silent_s):
            due.append(item)
    return due


def _learn(memory: Memory, state: Path, item: queue.QueuedItem) -> int:
    """Learn from one conversation, or leave it in the queue with the problem. Return how many were learned from."""
    try:
        learned = list(memory.extract_each(_open_transcript(state, item), trigger=item.reason.capitalize()))
    except NothingSaidError:
        queue.done(state, item)
        return 0
    except QuaidError as error:
        problem, for_good = str(error), isinstance(error, BadInputError)
    except Exception as error:  # noqa: BLE001 - one conversation must not stop the others
        problem, for_good = f"{type(error).__name__}: {error}", False
    else:
        queue.done(state, item)
        for extracted in learned:
            if extracted.problem:
                log(f"{extracted.session} is kept and waits to be learned from: {extracted.problem}")
        _notify(memory, learned)
        return len(learned)
    queue.fail(state, item, problem, for_good=for_good)
    log(problem)
    return 0


def _open_transcript(state: Path, item: queue.QueuedItem) -> AgentLog:
    try:
        if item.spooled:
            return AgentLog(item.transcript, open_spooled(item.transcript, state / queue.FOLDER), SPOOL)
        return AgentLog(item.transcript, open_transcript(item.transcript))
    except OSError as error:
        raise BadInputError.unreadable(item.transcript, error) from error


def _check_documents(memory: Memory, state: Path) -> None:
    """Report the documents about what agents have edited, and update them if that is configured."""
    edited = queue.take_edited(state)
    settings = memory.settings
    try:
        if edited and settings.systems.projects and settings.docs.check:
            affected = memory.documentation.follow(edited)
            lines = [f"- {doc.id} describes {what}" for doc, what in affected[:20]]
            news = ["Documents about what agents changed:", *lines] if affected else []
            deliver(memory.root, settings.notifications, "docs", "\n".join(news))
            memory.documentation.check()
            if affected and settings.docs.update_on_compact:
                memory.janitor.run(RunOptions(tasks=("docs_staleness",)))
    except QuaidError as error:
        log(f"The documents of what was edited could not be checked: {error}")
    queue.forget_edited(state)


def write_notices(root: Path, session: str) -> None:
    """Store which documents describe what a session has edited; does nothing while another process does the same."""
    state = state_folder(root)
    with locks.try_lock(state / NOTICES_LOCK) as is_ours:
        edited = queue.read_edited(state, session) if is_ours else {}
        if not edited:
            return
        with Memory.open(root) as memory:
            is_wanted = memory.settings.systems.projects and memory.settings.docs.check
            affected = memory.documentation.follow(edited) if is_wanted else []
        notices = [
            doc_notices.DocNotice(doc.id, what, session, str(doc.file), str(doc.folder), doc.file.stat().st_mtime_ns)
            for doc, what in affected
        ]
        doc_notices.store(state, session, notices)


def log(line: str) -> None:
    """Write `line` to the worker's log, without secrets and control characters."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f"{when}  {escaped(' '.join(admit(line).text.split()))}", file=sys.stderr, flush=True)


def _notify(memory: Memory, learned: Sequence[ExtractResult]) -> None:
    settings = memory.settings.notifications
    level = level_of(settings, "extraction")
    facts = [fact for extracted in learned for fact in extracted.facts]
    if level == "off" or not facts:
        return
    sessions = ", ".join(extracted.session for extracted in learned)
    lines = [f"Quaid learned {count(len(facts), 'fact')} from {sessions}."]
    if level == "full":
        lines += [f"- {fact.text}" for fact in facts]
    if warning := overdue(memory.state, datetime.now(UTC), memory.git):
        lines.append(warning)
    deliver(memory.root, settings, "extraction", "\n".join(lines))


if __name__ == "__main__":
    os.chdir("/")  # the folder that the agent works in may be removed or unmounted
    if len(sys.argv) > 2:
        write_notices(Path(sys.argv[1]), sys.argv[2])
    else:
        run_worker(Path(sys.argv[1]))
