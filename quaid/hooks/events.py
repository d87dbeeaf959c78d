"""The answer to each event: inject context from memory, or queue something for the worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.agents.prompt_context import HookAnswer, question_in
from quaid.hooks.transcripts import open_transcript
from quaid.local import queue
from quaid.place import INDEX_FILE, state_folder
from quaid.redaction import admit

if TYPE_CHECKING:
    from quaid.memory import Memory
    from quaid.settings import Settings

Event = Mapping[str, Any]
_GIVES_CONTEXT = frozenset({"startup", "clear", "compact", ""})
"""Sources of a session that has no context yet: one that is resumed or forked has what it was given before."""
_LOSES_CONTEXT = frozenset({"clear", "compact"})
_EDITING_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_SHOW_ONCE = frozenset({"openclaw"})
"""Programs that show their model the context of a prompt once, and do not keep it."""
_MAX_FIELD = 4_000
WAIT_MS = 500
"""The time to wait for another process that is indexing."""

MAX_ANSWER = 8_000
"""Characters. Claude Code takes 10,000 and shows its agent a fifth of what is longer."""


def answer(name: str, root: Path, event: Event, memory: Memory | None = None) -> HookAnswer:
    """Return what the event `name` injects into the agent's session, for the vault at `root`; from `memory` where it is
    open already.
    """
    state = state_folder(root)
    session = admit(_field(event, "session_id")).text
    if name == "session-start":
        return _begin(root, state, session, event, memory)
    if name == "user-prompt-submit":
        return _prompt(root, session, event, memory)
    if name == "post-tool-use":
        _note_edit(state, session, event)
    elif name == "stop":
        _queue(root, session, event, "idle", "session")
    elif name == "pre-compact":
        _end(root, state, session, event, "compaction")
    elif name == "session-end":
        _end(root, state, session, event, "session")
    return HookAnswer()


def _begin(root: Path, state: Path, session: str, event: Event, memory: Memory | None) -> HookAnswer:
    from quaid.hooks.queue_worker import start_worker

    source = _field(event, "source")
    has_work = queue.is_any(state) or queue.has_edited(state)
    if has_work and memory is not None:
        from quaid.resident.listener import DeclinedError

        raise DeclinedError  # a worker asks models, with the keys of whoever starts it
    if session and source in _LOSES_CONTEXT:
        from datetime import UTC, datetime

        from quaid.local import sessions

        sessions.compact(state, session, datetime.now(UTC))
    if has_work:
        start_worker(root)  # what was never ended, or left by a worker that was killed
    if source not in _GIVES_CONTEXT:
        return HookAnswer()
    from quaid.config import settings_for_reading

    settings, problem = (memory.settings, memory.problem) if memory else settings_for_reading(root)
    if not settings.hooks.context:
        return HookAnswer(problem=str(problem or ""))
    longest, cwd = MAX_ANSWER - 200, _field(event, "cwd")
    text = memory.context(None, longest, cwd) if memory else _context_alone(root, settings, longest, cwd)
    given = {}
    if session and text:
        from quaid.vault import markdown

        given = {"text": f"{text}\n{markdown.plain(text)}"}  # facts are as they are, notes are plain
    return HookAnswer(text, problem=str(problem or ""), given=given)


def _context_alone(root: Path, settings: Settings, longest: int, cwd: str) -> str:
    """The context of a session from the index, brought up to date where it must be."""
    from datetime import UTC, datetime

    from quaid.agents.session_context import build_session_context, is_current
    from quaid.config import own_names
    from quaid.index.sqlite import database
    from quaid.index.sqlite.reader import IndexReader
    from quaid.vault.layout import Layout

    reader, place = IndexReader(state_folder(root) / INDEX_FILE), Layout.of(settings.vault)
    try:
        try:
            index = reader.open()
            is_behind = index is None or not is_current(root, place, index, datetime.now(UTC))
        except database.DatabaseError:  # damaged: the sync rebuilds it
            is_behind = True
        if is_behind:
            reader.close()
            _bring_up_to_date(root, settings)
        tokens, owners = settings.hooks.context_tokens, own_names(root, settings)
        return build_session_context(root, reader.open(), owners, tokens, longest, cwd, place=place)
    finally:
        reader.close()


def _bring_up_to_date(root: Path, settings: Settings) -> None:
    """Sync without embedding, for which there is no time. Where that fails, the session begins with what there is, and
    `quaid status` tells why.
    """
    from dataclasses import replace

    from quaid.errors import QuaidError
    from quaid.sync.derived_index import SyncOptions
    from quaid.sync.embedding import Embedding
    from quaid.sync.indexer import Indexer

    quick = replace(settings, embedding=replace(settings.embedding, provider="none"))
    with suppress(QuaidError):
        options = SyncOptions(fetch_weights=False, wait_ms=WAIT_MS)
        Indexer(root, quick, Embedding(root, quick.embedding)).sync(options)


def _prompt(root: Path, session: str, event: Event, memory: Memory | None) -> HookAnswer:
    prompt = event.get("prompt")
    if not isinstance(prompt, str) or question_in(prompt) is None:
        return HookAnswer()
    if len(prompt) > 2 * _MAX_FIELD:
        prompt = f"{prompt[:_MAX_FIELD]}\n{prompt[-_MAX_FIELD:]}"
    is_kept = event.get("host") not in _SHOW_ONCE
    if memory is None:
        return _recall_alone(root, prompt, session, is_kept=is_kept)
    from quaid.agents.prompt_context import build_prompt_context

    found = build_prompt_context(root, memory.settings, memory.recall, prompt, session, is_kept=is_kept)
    return found._replace(problem=str(memory.problem or ""))


def _recall_alone(root: Path, prompt: str, session: str, *, is_kept: bool) -> HookAnswer:
    """The context of a prompt by words and graph alone: there is no time to load an embedding model."""
    from dataclasses import replace

    from quaid.agents.prompt_context import build_prompt_context
    from quaid.config import settings_for_reading

    settings, problem = settings_for_reading(root)
    if settings.hooks.recall == "off":
        return HookAnswer(problem=str(problem or ""))
    from quaid.memory import Memory

    quick = replace(
        settings,
        embedding=replace(settings.embedding, provider="none"),
        models=replace(settings.models, provider="none"),
    )
    with Memory(root, quick) as memory:
        found = build_prompt_context(memory.root, memory.settings, memory.recall, prompt, session, is_kept=is_kept)
    return found._replace(problem=str(problem or ""))


def _note_edit(state: Path, session: str, event: Event) -> None:
    given = event.get("tool_input")
    if event.get("tool_name") not in _EDITING_TOOLS or not isinstance(given, Mapping):
        return
    path = given.get("file_path") or given.get("notebook_path")
    if isinstance(path, str) and 0 < len(path) <= _MAX_FIELD and not admit(path).redacted:
        queue.note_edited(state, path, session)


def _end(root: Path, state: Path, session: str, event: Event, reason: str) -> None:
    """Have the worker learn from the conversation and check the documents about the files that were edited in it."""
    if _queue(root, session, event, "now", reason) or queue.has_edited(state):
        from quaid.hooks.queue_worker import start_worker

        start_worker(root)


def _queue(root: Path, session: str, event: Event, when: queue.When, reason: str) -> bool:
    """Queue the conversation: the program's own transcript, else a copy of the messages it gives. Return whether there
    was one.
    """
    state, transcript, messages = state_folder(root), event.get("transcript_path"), event.get("messages")
    spooled = False
    if isinstance(transcript, str) and transcript:
        try:
            open_transcript(transcript).close()
        except FileNotFoundError:
            return False  # nothing was said in the session
        path = str(Path(transcript).absolute())  # the worker runs in another folder
    elif isinstance(messages, list) and messages and session:
        from quaid.config import settings_for_reading

        settings_for_reading(root)  # whether numbers are secrets
        path = queue.spool(state, session, [message for message in messages if isinstance(message, dict)])
        spooled = True
    else:
        return False
    queue.put(state, queue.QueuedItem(session or path, path, when, reason, time.time(), spooled=spooled))
    return True


def _field(event: Event, name: str) -> str:
    value = event.get(name)
    return value[:_MAX_FIELD] if isinstance(value, str) else ""
