"""What of the memory goes before a prompt: what answers the question in it and its session has not been given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from quaid.agents.question import question_in
from quaid.agents.session_context import CHARACTERS_PER_TOKEN
from quaid.local import sessions
from quaid.model import Hit, Recall
from quaid.place import state_folder
from quaid.text.quoting import MAX_BLOCK, neutralise, render_memory_block

if TYPE_CHECKING:
    from quaid.settings import NotificationSettings, Settings

MAX_HITS = 8
MIN_SCORE_BY_WORDS = 0.65
"""A best score under this is doubt where there were no vectors: 65 of 80 questions about a conversation pass, 4 of 16
prompts that have nothing to do with it.
"""
_MAX_NEWS = 60


class HookAnswer(NamedTuple):
    """`text` goes before the prompt, `news` is for the person at the terminal; both may be empty."""

    text: str = ""
    news: str = ""


def build_prompt_context(
    root: Path,
    settings: Settings,
    recall: Callable[..., Recall],
    prompt: str,
    session: str,
    *,
    is_kept: bool = True,
) -> HookAnswer:
    """Return what `recall` of the memory at `root` finds for `prompt`. A program that keeps what goes before its
    prompts (`is_kept`) is given nothing that `session` was given since it began or was compacted.
    """
    question = question_in(prompt)
    if question is None or settings.hooks.recall == "off":
        return HookAnswer()
    state = state_folder(root)
    given = sessions.read(state, session)
    found = recall(
        question,
        MAX_HITS,
        session=session or None,
        door="hook",
        depth="fast",
        exclude_session=session or None,
        compacted_at=given.compacted_at,
    )
    if settings.hooks.recall == "auto" and _is_in_doubt(found):
        return HookAnswer()
    new = [hit for hit in found.hits if not (is_kept and hit.id in given.ids)]
    longest = min(MAX_BLOCK, settings.hooks.recall_tokens * CHARACTERS_PER_TOKEN)
    shown, text = _fitting(new, longest)
    if not shown:
        return HookAnswer()
    if is_kept:
        sessions.give(state, session, [hit.id for hit in shown])
    return HookAnswer(text, notify_recalled(root, settings.notifications, shown))


def _is_in_doubt(found: Recall) -> bool:
    """Scores without vectors are lower, for good answers as for bad ones."""
    if "vectors" in found.degraded:
        return not found.hits or found.hits[0].score < MIN_SCORE_BY_WORDS
    return found.doubt is not None


def _fitting(hits: Sequence[Hit], longest: int) -> tuple[Sequence[Hit], str]:
    """As many of `hits` as the block has room for: what is left out for length is not given."""
    for count in range(len(hits), 0, -1):
        text = render_memory_block(hits[:count], longest=10**9)
        if len(text) <= longest:
            return hits[:count], text
    return (), ""


def notify_recalled(root: Path, settings: NotificationSettings, hits: Sequence[Hit]) -> str:
    """News of what an agent was given: into the news file at once, and as a text for whoever has a terminal to show it
    at. No popup at every prompt, and no waiting for a webhook.
    """
    from quaid.local.notifications import deliver, level_of, list_channels

    level = level_of(settings, "retrieval")
    if level == "off" or not hits:
        return ""
    told = "Quaid recalled 1 memory." if len(hits) == 1 else f"Quaid recalled {len(hits)} memories."
    if level == "full":
        told += "".join(f"\n- {' '.join(hit.text.split())[:_MAX_NEWS]} ({hit.score:.2f})" for hit in hits)
    deliver(root, settings, "retrieval", told, only=("file",))
    return neutralise(told) if "terminal" in list_channels(settings) else ""
