"""The context that the hook of a prompt injects: memories that answer its question and that its session lacks.

The import is light: most prompts of a session ask nothing of a memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from quaid.errors import count
from quaid.text.replies import asks_nothing

if TYPE_CHECKING:
    from pathlib import Path

    from quaid.agents.prompt_evidence import Evidence
    from quaid.local.sessions import Given
    from quaid.model import Hit, Neighbour, Recall
    from quaid.settings import NotificationSettings, Settings

MAX_HITS = 8
MAX_WEIGHED = 20
"""Hits that are weighed: `we` in a question about a project ranks everything about the owner before it."""
MAX_SHORT = 60
"""Characters of a turn up to which the question that it answers is shown with it."""
MAX_QUESTION = 1_000
MAX_PASTED = 10_000
"""Characters at either end of a long prompt that are looked at."""
GIVEN_BEFORE = "given to this session before"
_COMMAND = re.compile(r"\s*(?:/[\w:.-]+(?:\s|\Z)|[!#<])")
_PASTED = re.compile(
    r"```(?s:.)*?```"
    r"|^(?:[ \t]+at |[ \t]+File \"|[ \t]*-->|Traceback |goroutine |npm ERR!|\w*(?:Error|Exception|panic)\b.*:).*$"
    r"|https?://\S+",
    re.MULTILINE,
)
"""Pasted parts of a prompt: code, stack traces, links."""
_MAX_NEWS = 60
"""Characters of each memory in the news."""


class HookAnswer(NamedTuple):
    """The output of a hook: `text` is for the agent, `news` for the person at the terminal, `problem` what was wrong
    with the settings; each may be empty. `given` is to be recorded of the session once the text was delivered.
    """

    text: str = ""
    news: str = ""
    problem: str = ""
    given: Mapping[str, object] = {}


def question_in(prompt: str) -> str | None:
    """Return what of `prompt` can be asked of a memory; None for commands, for `ok`, `yes` and the like, and for what
    is only pasted.
    """
    if _COMMAND.match(prompt):
        return None
    if len(prompt) > 2 * MAX_PASTED:
        prompt = f"{prompt[:MAX_PASTED]}\n{prompt[-MAX_PASTED:]}"
    prompt = _PASTED.sub(" ", prompt)
    if asks_nothing(prompt[:MAX_QUESTION]):
        return None
    if len(prompt) <= MAX_QUESTION:
        return prompt
    # Pasted text is mostly in the middle.
    return f"{prompt[: MAX_QUESTION // 2]}\n{prompt[-MAX_QUESTION // 2 :]}"


def build_prompt_context(
    root: Path,
    settings: Settings,
    recall: Callable[..., Recall],
    prompt: str,
    session: str,
    *,
    is_retained: bool = True,
) -> HookAnswer:
    """Return the memories that `recall` finds for `prompt` in the vault at `root`.

    A host that retains injected text (`is_retained`) gets nothing that `session` got since it began or was compacted.
    """
    from quaid.agents.prompt_evidence import AskedWords
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
        MAX_WEIGHED,
        session=session or None,
        door="hook",
        depth="fast",
        exclude_session=session or None,
        compacted_at=given.compacted_at,
        with_neighbours=True,
        comparable=True,
    )
    known = given if is_retained else sessions.Given()
    asked = AskedWords(question, found.scale)
    evidence = {hit.id: asked.weigh(hit) for hit in found.hits}
    new, withheld = _select(found.hits, evidence, known, is_gated=settings.hooks.recall == "auto")
    new = [replace(hit, text=asked.excerpt(hit.text), beside=_explaining(hit, given)) for hit in new]
    degraded = cast("Sequence[object]", found.trace.get("degraded", ()))
    conflicts = [f"({neutralise(text)})" for text in map(str, degraded) if text.startswith("conflict:")]
    frame = tokens(wrap_memory("\n".join([" ", *conflicts])))
    room = min(MAX_BLOCK // CHARACTERS_PER_TOKEN, settings.hooks.recall_tokens) - frame
    shown = pack(new, max(0, room), question=question, more=found.more)
    # Hits that were left out for length were not given.
    shown_ids = [hit.id for hit in shown.hits] + [each.id for hit in shown.hits for each in hit.beside if each.turn]
    withheld |= {hit.id: "no room for it before the prompt" for hit in new if hit.id not in shown_ids}
    weighed = {hit_id: str(each) for hit_id, each in evidence.items() if hit_id not in withheld}
    recall_trail.add(
        state,
        settings.recall.log,
        found,
        door="hook",
        session=session,
        asker=settings.owner,
        withheld=withheld,
        weighed=weighed,
    )
    if not shown.text:
        return HookAnswer()
    text = "\n".join([shown.text, *conflicts])
    news = notify_recalled(root, settings.notifications, shown.hits)
    ids = {"ids" if is_retained else "shown": list(dict.fromkeys(shown_ids))}
    return HookAnswer(wrap_memory(text), news, given={**ids, "asker": settings.owner, "tokens": tokens(text)})


def _select(
    hits: Sequence[Hit], evidence: dict[str, Evidence], given: Given, *, is_gated: bool
) -> tuple[list[Hit], dict[str, str]]:
    """Select the hits to inject: those with enough evidence of their own that were not given yet, and those that
    contradict or replace one that was or is. Also return why the others are withheld, by id.
    """
    from quaid.agents.prompt_evidence import NONE, put_facts_first, without_far, without_weaker

    answering = put_facts_first([hit for hit in hits if evidence[hit.id] != NONE], evidence)
    answering = without_far(answering, evidence) if is_gated else answering
    known = [hit for hit in hits if given.has(hit.id, hit.text)]
    already = [hit for hit in answering if hit in known]
    # The context at the start of a session answered no prompt, so nothing is a remainder of it.
    before_prompts = [hit for hit in already if hit.id in given.ids]
    new = without_weaker([hit for hit in answering if hit not in known], before_prompts, evidence)
    stated = {hit.id for hit in (*already, *new)}
    going_with = [hit for hit in hits if not stated.isdisjoint((*hit.contradicts, *hit.later_than))]
    chosen = [hit for hit in hits if hit in new or (hit in going_with and hit not in known)]
    chosen = chosen[:MAX_HITS]
    withheld = {hit.id: f"little to do with the prompt: {evidence[hit.id]}" for hit in hits if hit not in chosen}
    withheld |= {hit.id: "no more than was given before" for hit in answering if hit not in new}
    withheld |= {hit.id: f"more than {MAX_HITS} answer" for hit in new if hit not in chosen}
    withheld |= dict.fromkeys((hit.id for hit in known), GIVEN_BEFORE)
    return chosen, withheld


def _explaining(hit: Hit, given: Given) -> tuple[Neighbour, ...]:
    """Return what a hit cannot be understood without: the question that a short turn answers."""
    from quaid.agents.prompt_evidence import find_asked

    asked = find_asked(hit) if len(hit.text) < MAX_SHORT else None
    return (asked,) if asked and asked.id not in given.ids else ()


def notify_recalled(root: Path, settings: NotificationSettings, hits: Sequence[Hit]) -> str:
    """Write into the news file which `hits` an agent was given, and return the same for a terminal, empty where it is
    not wanted. No popup at every prompt, and no waiting for a webhook.
    """
    from quaid.local.notifications import deliver, level_of, list_channels
    from quaid.text.quoting import neutralise

    level = level_of(settings, "retrieval")
    if level == "off" or not hits:
        return ""
    news = f"Quaid recalled {count(len(hits), 'memory', 'memories')}."
    if level == "full":
        news += "".join(f"\n- {' '.join(hit.text.split())[:_MAX_NEWS]} ({hit.score:.2f})" for hit in hits)
    deliver(root, settings, "retrieval", news, only=("file", "host"))
    return neutralise(news) if "terminal" in list_channels(settings, "retrieval") else ""
