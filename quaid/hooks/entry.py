"""`quaid hook EVENT`, which programs call that agents run in: reads the event, prints the answer.

Whatever happens here, the agent goes on: the answer comes within a moment or not at all, and the exit code is 0.
Nothing is imported that the event does not need.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from quaid import trust
from quaid.agents.prompt_context import HookAnswer, build_prompt_context, question_in
from quaid.errors import ConfigError, QuaidError
from quaid.history import vault_guard
from quaid.hooks.transcripts import open_transcript
from quaid.local import doc_notices, hook_log, queue, sessions, state_files
from quaid.local.notifications import take_host_news
from quaid.place import LOG_DIR, state_folder, state_home
from quaid.redaction import admit
from quaid.resident.call import NO_HOOKS, DeclinedError, event_name, named_vaults, read_input
from quaid.text.host_blocks import without_host_blocks
from quaid.text.invisible import escaped, whole_json
from quaid.text.quoting import wrap_memory

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.settings import Settings

EVENTS = ("session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end")
SHOWN_EVENTS = ("session-start", "user-prompt-submit")
"""Events whose answer a program shows to the person at its terminal."""
MAX_ANSWER = 8_000
"""Characters. Claude Code accepts 10,000 and shows its agent a fifth of what is longer."""
_NEW_CONTEXT = frozenset({"startup", "clear", "compact", ""})
"""Sources of a session without context: one that is resumed or forked has it from before."""
_LOST_CONTEXT = frozenset({"clear", "compact"})
_EDITING_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "apply_patch"})
"""Of Claude Code, Gemini CLI and Codex."""
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_FORGETFUL_HOSTS = frozenset({"openclaw"})
"""Programs that show their model the context of a prompt only once."""
_MAX_FIELD = 4_000
Event = Mapping[str, Any]


def main(arguments: Sequence[str], stdin: bytes | None = None) -> int:
    """Answer one event. `arguments` are its name, and `--text` for the bare text instead of JSON; `stdin` is the event,
    which is read if it is not given.
    """
    if os.environ.get(NO_HOOKS):
        return 0
    started, name = time.perf_counter(), event_name(arguments)
    event: Event = {}
    root: Path | None = None
    is_readable = False
    found = HookAnswer()
    try:
        event = _read(read_input() if stdin is None else stdin) if name in EVENTS else {}
        cwd = event.get("cwd")
        start = Path(cwd) if isinstance(cwd, str) and cwd.startswith("/") else None
        root, remark = trust.locate_vault("".join(named_vaults(arguments)[-1:]) or None, start=start)
        if remark:
            print(f"quaid: {remark}", file=sys.stderr)
        vault_guard.check(root)
        is_readable = True
        if name == "work":
            from quaid.hooks.queue_worker import run_worker

            run_worker(root)
        elif name in EVENTS:
            found = answer(name, root, event)
        else:
            found = HookAnswer(problem=f"there is no event {name!r}; known are {', '.join(EVENTS)}")
    except QuaidError as error:
        found = HookAnswer(problem=str(error))
    except Exception as error:  # noqa: BLE001 - the agent goes on, whatever is wrong with its memory
        found = HookAnswer(problem=f"{type(error).__name__}: {error}")
    with suppress(OSError):  # nobody reads: nothing was given
        if record := _finish(arguments, event, root, found, started, is_readable=is_readable):
            state_files.append(*record)
    return 0


def respond(memory: Memory, arguments: Sequence[str], stdin: bytes) -> tuple[Path, str] | None:
    """Answer an event from an open memory, for the process that was called. An error is raised: that process answers
    the event itself then. Return the file and the line that it appends once the answer is delivered.
    """
    started, event = time.perf_counter(), _read(stdin)
    found = answer(event_name(arguments), memory.root, event, memory)
    return _finish(arguments, event, memory.root, found, started, is_readable=True)


def _read(stdin: bytes) -> Event:
    """Return the event, empty if it cannot be read."""
    try:
        event = json.loads(whole_json(stdin.decode(json.detect_encoding(stdin), "replace")), strict=False)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _finish(
    arguments: Sequence[str], event: Event, root: Path | None, found: HookAnswer, started: float, *, is_readable: bool
) -> tuple[Path, str] | None:
    """Print the answer, with failures of hooks once a session, and log the event. Return the file and the line that
    record what the session was given, None if nothing was.
    """
    name, session = event_name(arguments), event.get("session_id")
    problem, news = admit(found.problem).text, found.news
    with suppress(OSError):
        vault = root or Path()
        if problem and name in (*EVENTS, "work"):
            hook_log.record_failure(vault, name, problem, is_there=is_readable)
        elif name in (*EVENTS, "work"):
            hook_log.record_success(vault, name)
        if name in SHOWN_EVENTS and isinstance(session, str):
            failures = hook_log.take_news(vault, session, is_there=is_readable)
            waiting = take_host_news(vault) if is_readable and "--text" not in arguments else ""
            news = "\n".join(filter(None, (waiting, news, failures)))
    # No program accepts a longer context.
    text = found.text if len(json.dumps(found.text, ensure_ascii=False)) <= MAX_ANSWER else ""
    shown = text
    if "--text" not in arguments:
        output: dict[str, Any] = {}
        if text:
            camel_case = "".join(part.capitalize() for part in name.split("-"))
            output["hookSpecificOutput"] = {"hookEventName": camel_case, "additionalContext": text}
        if news:
            output["systemMessage"] = news
        shown = json.dumps(output, ensure_ascii=False) if output else ""
    if shown:
        sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
    if problem:
        print(escaped(f"quaid: hook {name}: {problem}"), file=sys.stderr)
    with suppress(OSError):
        state = state_folder(root) if root and is_readable else state_home()
        hook_log.write(state, name, (time.perf_counter() - started) * 1000, problem)
    if root is None or not (text and found.given and session):
        return None
    programs = re.findall(r"/\.(claude|codex|gemini|openclaw)/", _field(event, "transcript_path"))
    host = admit(_field(event, "host")[:60]).text or "".join(programs[:1])
    whose = {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "session": admit(str(session)).text, "host": host}
    return sessions.plan_record(state_folder(root), whose["session"], {**whose, **found.given})


# -- the answer to each event ----------------------------------------------------------------------------------------


def answer(name: str, root: Path, event: Event, memory: Memory | None = None) -> HookAnswer:
    """Return what an event injects into the agent's session, for the vault at `root`; from `memory` if it is open."""
    session = admit(_field(event, "session_id")).text
    if name == "session-start":
        return _start_session(root, session, event, memory)
    if name == "user-prompt-submit":
        return _with_notices(root, session, _answer_prompt(root, session, event, memory))
    if name == "post-tool-use":
        for path in _edited_paths(event):
            if 0 < len(path) <= _MAX_FIELD and not admit(path).redacted:
                queue.note_edited(state_folder(root), path, session)
    elif name == "stop":
        _queue(root, session, event, "idle", "session")
        if session and queue.has_edited(state_folder(root)):
            start_notices(root, session)
    elif name in {"pre-compact", "session-end"}:
        # The worker learns from the conversation and checks the documents about the files that were edited in it.
        reason = "compaction" if name == "pre-compact" else "session"
        if _queue(root, session, event, "now", reason) or queue.has_edited(state_folder(root)):
            start_worker(root)
    return HookAnswer()


def _start_session(root: Path, session: str, event: Event, memory: Memory | None) -> HookAnswer:
    state, source = state_folder(root), _field(event, "source")
    if source == "resume" and "/.gemini/" in _field(event, "transcript_path"):
        source = "clear"  # Gemini CLI resumes without what hooks gave
    has_work = queue.is_any(state) or queue.has_edited(state)
    if has_work and memory is not None:
        raise DeclinedError  # a worker calls models, with the keys of the process that starts it
    if session and source in _LOST_CONTEXT:
        sessions.compact(state, session, datetime.now(UTC))
    if has_work:
        start_worker(root)  # for sessions that never ended, or whose worker was killed
    if source not in _NEW_CONTEXT:
        return HookAnswer()
    from quaid.hooks.session_start import begin

    cwd = _field(event, "cwd")
    notices = [each for each in doc_notices.read(state) if f"{cwd}/".startswith(f"{each.root}/")]
    line = doc_notices.render([each for each in notices if each.session != session], "an earlier session")
    begun = begin(root, session, MAX_ANSWER - 400 - 2 * len(line), cwd, memory)
    return begun._replace(text=_join(begun.text, line))


def _with_notices(root: Path, session: str, found: HookAnswer) -> HookAnswer:
    """Add what the documents say about files that the session has edited, each once."""
    state = state_folder(root)
    own = [each for each in doc_notices.read(state) if each.session == session and session]
    given = sessions.read(state, session).ids if own else frozenset()
    notices = [each for each in own if f"doc {each.doc}" not in given]
    if not notices:
        return found
    ids = [*cast("list[str]", found.given.get("ids", [])), *(f"doc {notice.doc}" for notice in notices)]
    text = _join(found.text, doc_notices.render(notices, "you"))
    return found._replace(text=text, given={**found.given, "ids": ids})


def _join(text: str, line: str) -> str:
    return "\n\n".join(filter(None, (text, wrap_memory(line))))


def _answer_prompt(root: Path, session: str, event: Event, memory: Memory | None) -> HookAnswer:
    prompt = event.get("prompt")
    prompt = without_host_blocks(prompt) if isinstance(prompt, str) else ""
    if question_in(prompt) is None:
        return HookAnswer()
    if len(prompt) > 2 * _MAX_FIELD:
        prompt = f"{prompt[:_MAX_FIELD]}\n{prompt[-_MAX_FIELD:]}"
    is_retained = event.get("host") not in _FORGETFUL_HOSTS
    if memory is not None:
        found = build_prompt_context(root, memory.settings, memory.recall, prompt, session, is_retained=is_retained)
        return found._replace(problem=str(memory.problem or ""))
    settings, problem = _read_settings(root)
    if settings.hooks.recall == "off":
        return HookAnswer(problem=str(problem or ""))
    from quaid.memory import Memory

    # By words and graph: a model would take too long to load.
    embedding, models = replace(settings.embedding, provider="none"), replace(settings.models, provider="none")
    with Memory(root, replace(settings, embedding=embedding, models=models), problem) as quick:
        return _answer_prompt(root, session, event, quick)


def _edited_paths(event: Event) -> list[str]:
    """Return the files that a tool has edited; one that it names relatively lies in the folder of the session."""
    given = event.get("tool_input")
    if event.get("tool_name") not in _EDITING_TOOLS or not isinstance(given, Mapping):
        return []
    found = [given.get("file_path"), given.get("notebook_path"), *_PATCHED.findall(str(given.get("command")))]
    return [str(Path(_field(event, "cwd"), path)) for path in found if isinstance(path, str) and path]


def _queue(root: Path, session: str, event: Event, when: queue.When, reason: str) -> bool:
    """Queue the conversation: the program's own transcript, else a copy of the messages of the event. Return whether
    there was one.
    """
    state, transcript, messages = state_folder(root), event.get("transcript_path"), event.get("messages")
    spooled = False
    if isinstance(transcript, str) and transcript:
        try:
            open_transcript(transcript).close()
        except FileNotFoundError:
            return False  # the session is empty
        path = str(Path(transcript).absolute())  # the worker runs in another folder
    elif isinstance(messages, list) and messages and session:
        _read_settings(root)  # whether numbers are secrets
        path = queue.spool(state, session, [message for message in messages if isinstance(message, dict)])
        spooled = True
    else:
        return False
    queue.put(state, queue.QueuedItem(session or path, path, when, reason, time.time(), spooled=spooled))
    return True


def _read_settings(root: Path) -> tuple[Settings, ConfigError | None]:
    from quaid.config import settings_for_reading  # not above: most events need no setting

    return settings_for_reading(root)


def start_worker(root: Path) -> None:
    """Start a worker for the vault at `root` without waiting for it. It ends at once if another one is running."""
    log = state_folder(root) / LOG_DIR / "worker.log"
    state_files.start_detached("quaid.hooks.queue_worker", [str(root)], log)


def start_notices(root: Path, session: str) -> None:
    """Start to look for the documents that describe what a session has edited, without waiting for it."""
    from quaid.vault.layout import Layout, list_project_files  # not above: few events edit files

    if not any(list_project_files(root, Layout.of_vault(root))):
        return
    log = state_folder(root) / LOG_DIR / "worker.log"
    state_files.start_detached("quaid.hooks.queue_worker", [str(root), session], log)


def _field(event: Event, name: str) -> str:
    value = event.get(name)
    return value[:_MAX_FIELD] if isinstance(value, str) else ""
