"""The context that the hook of a prompt injects: memories that answer its question and that its session lacks.

The import is light: most prompts of a session ask nothing of a memory.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from quaid.text.replies import asks_nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from quaid.model import Hit, Recall
    from quaid.settings import NotificationSettings, Settings

MAX_HITS = 8
MIN_SCORE_BY_WORDS = 0.65
"""A best score under this is doubt where there were no vectors: 65 of 80 questions about a conversation pass, 4 of 16
prompts that have nothing to do with it.
"""
MAX_QUESTION = 1_000
GIVEN_BEFORE = "given to this session before"
_COMMAND = re.compile(r"\s*(?:/[\w:.-]+(?:\s|\Z)|[!#<])")
_MAX_NEWS = 60
"""Characters of each memory in the news."""


class HookAnswer(NamedTuple):
    """The output of a hook: `text` is for the agent, `news` for the person at the terminal, `problem` what was wrong
    with the settings; each may be empty.
    """

    text: str = ""
    news: str = ""
    problem: str = ""


def question_in(prompt: str) -> str | None:
    """Return what of `prompt` can be asked of a memory; None for commands, and for `ok`, `yes` and the like."""
    if _COMMAND.match(prompt):
        return None
    if asks_nothing(prompt[:MAX_QUESTION]):
        return None
    if len(prompt) <= MAX_QUESTION:
        return prompt
    # What is pasted stands mostly in the middle.
    return f"{prompt[: MAX_QUESTION // 2]}\n{prompt[-MAX_QUESTION // 2 :]}"


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
    from quaid.local import recall_trail, sessions
    from quaid.place import state_folder
    from quaid.recall.blocks import pack
    from quaid.recall.cutoff import CHARACTERS_PER_TOKEN, tokens
    from quaid.text.quoting import MAX_BLOCK, neutralise, wrap_memory

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
        beside=True,
    )
    # Scores without vectors are lower, for good answers as for bad ones.
    by_words = "vectors" in found.degraded
    best = found.hits[0].score if found.hits else 0.0
    is_in_doubt = best < MIN_SCORE_BY_WORDS if by_words else found.doubt is not None
    known = frozenset(given.ids) if is_kept else frozenset()

    def keep_reasons(shown: Collection[str], why: str) -> None:
        withheld = {hit.id: GIVEN_BEFORE if hit.id in known else why for hit in found.hits if hit.id not in shown}
        recall_trail.add(state, settings.recall.log, found, door="hook", session=session, withheld=withheld)

    if settings.hooks.recall == "auto" and is_in_doubt:
        keep_reasons((), found.doubt or f"the best score is under {MIN_SCORE_BY_WORDS}, by words alone")
        return HookAnswer()
    new = [_without_known(hit, known) for hit in found.hits if hit.id not in known]
    degraded = cast("Sequence[object]", found.trace.get("degraded", ()))
    conflicts = [f"({neutralise(said)})" for said in map(str, degraded) if said.startswith("conflict:")]
    frame = tokens(wrap_memory("\n".join([" ", *conflicts])))
    room = min(MAX_BLOCK // CHARACTERS_PER_TOKEN, settings.hooks.recall_tokens) - frame
    shown = pack(new, max(0, room), question=question, more=found.more)
    keep_reasons({hit.id for hit in shown.hits}, "no room for it before the prompt")
    if not shown.text:
        return HookAnswer()
    if is_kept:  # what was left out for length was not given
        told = [hit.id for hit in shown.hits] + [each.id for hit in shown.hits for each in hit.beside if each.turn]
        sessions.record(state, session, list(dict.fromkeys(told)))
    text = "\n".join([shown.text, *conflicts])
    return HookAnswer(wrap_memory(text), notify_recalled(root, settings.notifications, shown.hits))


def _without_known(hit: Hit, known: frozenset[str]) -> Hit:
    return replace(hit, beside=tuple(each for each in hit.beside if each.id not in known))


def notify_recalled(root: Path, settings: NotificationSettings, hits: Sequence[Hit]) -> str:
    """Write into the news file which `hits` an agent was given, and return the same for a terminal, empty where it is
    not wanted. No popup at every prompt, and no waiting for a webhook.
    """
    from quaid.local.notifications import deliver, level_of, list_channels
    from quaid.text.quoting import neutralise

    level = level_of(settings, "retrieval")
    if level == "off" or not hits:
        return ""
    news = "Quaid recalled 1 memory." if len(hits) == 1 else f"Quaid recalled {len(hits)} memories."
    if level == "full":
        news += "".join(f"\n- {' '.join(hit.text.split())[:_MAX_NEWS]} ({hit.score:.2f})" for hit in hits)
    deliver(root, settings, "retrieval", news, only=("file",))
    return neutralise(news) if "terminal" in list_channels(settings) else ""
