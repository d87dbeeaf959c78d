"""The context that a session begins with; without an open memory quick, so without an embedding model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.agents.prompt_context import HookAnswer
from quaid.agents.session_context import build_session_context, is_current
from quaid.config import own_names, settings_for_reading
from quaid.errors import QuaidError
from quaid.index.sqlite import database
from quaid.index.sqlite.database import IndexReader
from quaid.place import INDEX_FILE, state_folder
from quaid.settings import Settings
from quaid.sync.derived_index import SyncOptions
from quaid.sync.embedding import Embedding
from quaid.sync.indexer import Indexer
from quaid.text.zones import local_now
from quaid.vault import markdown
from quaid.vault.layout import Layout

if TYPE_CHECKING:
    from quaid.memory import Memory

WAIT_MS = 500
"""The time to wait for another process that is indexing."""


def begin(root: Path, session: str, longest: int, cwd: str, memory: Memory | None) -> HookAnswer:
    """Return the context of a session in the folder `cwd`, in at most `longest` characters."""
    settings, problem = (memory.settings, memory.problem) if memory else settings_for_reading(root)
    if not settings.hooks.context:
        return HookAnswer(problem=str(problem or ""))
    text = memory.context(None, longest, cwd) if memory else _build_context(root, settings, longest, cwd)
    # Facts are given as they are, notes without markup.
    given = {"text": f"{text}\n{markdown.plain(text)}", "asker": settings.owner} if session and text else {}
    return HookAnswer(text, problem=str(problem or ""), given=given)


def _build_context(root: Path, settings: Settings, longest: int, cwd: str) -> str:
    """Return the context of a session from the index, which is updated if necessary."""
    reader, layout = IndexReader(state_folder(root) / INDEX_FILE), Layout.of(settings.vault)
    now = local_now(settings.timezone)
    try:
        try:
            index = reader.open()
            is_behind = index is None or not is_current(root, layout, index, now)
        except database.DatabaseError:  # damaged: the sync rebuilds it
            is_behind = True
        if is_behind:
            reader.close()
            quick = replace(settings, embedding=replace(settings.embedding, provider="none"))
            # After a failure the session begins with what there is, and `quaid status` says why.
            with suppress(QuaidError):
                options = SyncOptions(fetch_weights=False, wait_ms=WAIT_MS)
                Indexer(root, quick, Embedding(root, quick.embedding)).sync(options)
        tokens, owners = settings.hooks.context_tokens, own_names(root, settings)
        return build_session_context(root, reader.open(), owners, tokens, longest, cwd, place=layout, now=now)
    finally:
        reader.close()
