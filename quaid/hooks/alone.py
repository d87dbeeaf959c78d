"""Answers of a hook without an open memory: quick, so without an embedding model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quaid.agents.prompt_context import HookAnswer, build_prompt_context
from quaid.agents.session_context import build_session_context, is_current
from quaid.config import own_names, settings_for_reading
from quaid.errors import QuaidError
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.place import INDEX_FILE, state_folder
from quaid.settings import Settings
from quaid.vault.layout import Layout

WAIT_MS = 500
"""The time to wait for another process that is indexing."""


def build_context(root: Path, settings: Settings, longest: int, cwd: str) -> str:
    """Return the context of a session from the index, which is updated if necessary."""
    reader, layout = IndexReader(state_folder(root) / INDEX_FILE), Layout.of(settings.vault)
    try:
        try:
            index = reader.open()
            is_behind = index is None or not is_current(root, layout, index, datetime.now(UTC))
        except database.DatabaseError:  # damaged: the sync rebuilds it
            is_behind = True
        if is_behind:
            reader.close()
            _update_index(root, settings)
        tokens, owners = settings.hooks.context_tokens, own_names(root, settings)
        return build_session_context(root, reader.open(), owners, tokens, longest, cwd, place=layout)
    finally:
        reader.close()


def _update_index(root: Path, settings: Settings) -> None:
    """Sync without embedding. After a failure the session begins with what there is, and `quaid status` says why."""
    from quaid.sync.derived_index import SyncOptions
    from quaid.sync.embedding import Embedding
    from quaid.sync.indexer import Indexer

    quick = replace(settings, embedding=replace(settings.embedding, provider="none"))
    with suppress(QuaidError):
        options = SyncOptions(fetch_weights=False, wait_ms=WAIT_MS)
        Indexer(root, quick, Embedding(root, quick.embedding)).sync(options)


def answer_prompt(root: Path, prompt: str, session: str, *, is_retained: bool) -> HookAnswer:
    """Return the context of a prompt by words and graph."""
    settings, problem = settings_for_reading(root)
    if settings.hooks.recall == "off":
        return HookAnswer(problem=str(problem or ""))
    from quaid.memory import Memory

    embedding = replace(settings.embedding, provider="none")
    quick = replace(settings, embedding=embedding, models=replace(settings.models, provider="none"))
    with Memory(root, quick) as memory:
        found = build_prompt_context(
            memory.root, memory.settings, memory.recall, prompt, session, is_retained=is_retained
        )
    return found._replace(problem=str(problem or ""))
