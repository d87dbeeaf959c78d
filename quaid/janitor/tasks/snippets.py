"""Observations folded into the core notes: each is held against its note, then goes into it or is let go.

A note of the owner's gets new lines and loses none. What is folded or let go leaves the snippets; both files change in
one commit, so that taking it back brings the observations back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from quaid.claims import problem_of
from quaid.janitor.decision import Decision
from quaid.janitor.evidence import refused_evidence, remember_evidence
from quaid.janitor.judgements import JsonJudgement, known_judgements
from quaid.janitor.model_questions import ask, by_number, judge_all, list_refused, number_problems, numbered_lines
from quaid.janitor.model_text import CarelessAnswerError, clean_reason, is_safe_line, quote, statement_problem
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import ItemProblem
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import evidence_key
from quaid.model import CORE_FILES, Edit
from quaid.vault import core_notes, headings, layout, notes
from quaid.vault.snippets import parse_sections, remove_bullets

TASK = "snippets"
SUSPICIOUS = 10
"""An answer that drops all of this many observations is refused."""
_INPUT_TOKENS = 8_000
_TOKENS_PER_ANSWER = 150


@dataclass(frozen=True, slots=True)
class _Judgement(JsonJudgement):
    """A model's judgement of one observation. `text` is its new wording, if it has one that can be used."""

    says: Literal["fold", "rewrite", "discard"]
    section: str
    text: str
    reason: str
    model: str
    prompt: str


@dataclass(frozen=True, slots=True)
class _Observations:
    """The observations about one core note that are not decided yet, and the note."""

    core: str
    before: bytes | None
    text: str
    snippets: bytes
    texts: Mapping[str, str]
    """Key of an observation -> what it says."""

    def judgement_key(self, observation: str, core: bytes | None) -> str:
        return evidence_key(TASK, self.core, notes.content_hash(core or b""), observation)


def plan(context: TaskContext) -> Iterator[Decision]:
    """One decision for each core note that has observations waiting; a second one, which asks, for what is more than
    a night may add to it.
    """
    refused = refused_evidence(context)
    for core in CORE_FILES:
        observed = _read_observations(context, core, refused)
        if observed is not None:
            yield from _decide_all(context, observed, _judge(context, observed))


def _read_observations(context: TaskContext, core: str, refused: set[str]) -> _Observations | None:
    data, note = context.read(_snippets_path(context, core)), context.read_core(core)
    if data is None or note is None or core_notes.is_long(note[1]):
        return None
    try:
        sections = parse_sections(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    texts = {headings.text_key(bullet): bullet for section in sections for bullet in section.bullets}
    settled = refused | _asked_about(context, core, texts)
    texts = {key: bullet for key, bullet in texts.items() if key not in settled and is_safe_line(bullet)}
    return _Observations(core, *note, data, texts) if texts else None


def _judge(context: TaskContext, observed: _Observations) -> dict[str, _Judgement]:
    """The judgement of each observation; what was judged beside the same note is not asked again."""
    keys = {key: observed.judgement_key(key, observed.before) for key in observed.texts}
    known = known_judgements(context, list(keys.values()), _Judgement.parse)
    judgements = {key: known[kept] for key, kept in keys.items() if kept in known}
    for found in judge_all(
        context,
        TASK,
        {keys[key]: key for key in observed.texts if key not in judgements},
        lambda batch: _ask(context, observed, batch),
        lambda key: estimate_tokens(observed.texts[key]) + 10,
        lambda key: observed.texts[key],
        input_limit=_INPUT_TOKENS,
        output_per_item=_TOKENS_PER_ANSWER,
    ):
        context.judgements.add(TASK, {keys[key]: judgement.render() for key, judgement in found.items()})
        judgements |= found
    return judgements


def _ask(context: TaskContext, observed: _Observations, batch: Sequence[str]) -> dict[str, _Judgement]:
    originals = [observed.texts[key] for key in batch]
    owner = context.settings.owner_name

    def check(value: Mapping[str, Any]) -> list[str | ItemProblem]:
        return [
            *number_problems(value, "observations", len(batch)),
            *(
                ItemProblem("observations", place, problem)
                for place, item in enumerate(value["observations"])
                if item["verdict"] == "rewrite" and item["n"] <= len(batch)
                for problem in _problems(item.get("text"), originals[item["n"] - 1], owner)
            ),
        ]

    inputs = {
        "name": observed.core,
        "note": observed.text,
        "sections": json.dumps(core_notes.section_titles(observed.text), ensure_ascii=False),
        "refused": list_refused(context),
        "observations": numbered_lines({"text": text} for text in originals),
    }
    answer = ask(context, TASK, inputs, check)
    given = answer.value["observations"]
    if len(batch) >= SUSPICIOUS and sum(item["verdict"] == "discard" for item in given) >= len(batch):
        raise CarelessAnswerError(answer.model, answer.prompt, f"it lets go of all {len(batch)} observations")
    judgements = {}
    for key, item in by_number(given, batch):
        # Without a wording that can be used, the observation is folded as it is.
        is_reworded = item["verdict"] == "rewrite" and not _problems(item.get("text"), observed.texts[key], owner)
        judgements[key] = _Judgement(
            item["verdict"],
            item.get("section") or core_notes.LEARNED,
            str(item["text"]) if is_reworded else "",
            clean_reason(item["reason"]),
            answer.model,
            answer.prompt,
        )
    return judgements


def _problems(text: str | None, original: str, owner: str) -> list[str]:
    """Return why a new wording cannot replace an observation; nothing where it says the same, as far as can be told. It
    may name the `owner`, whom an observation is about without a word.
    """
    if not text:
        return ["it has no text"]
    unsafe = "" if is_safe_line(text) else "it hides or orders something"
    return [problem for problem in (statement_problem(text), problem_of(text, [original], owner), unsafe) if problem]


def _decide_all(
    context: TaskContext, observed: _Observations, judgements: Mapping[str, _Judgement]
) -> Iterator[Decision]:
    told = [key for key in observed.texts if key in judgements and judgements[key].says != "discard"]
    is_carried_out = context.settings.janitor.policies.fold == "auto"
    more = set(told[core_notes.MAX_LINES_A_NIGHT :] if is_carried_out else ())
    first = _decide(context, observed, {key: judgements[key] for key in judgements if key not in more})
    if first is None:
        return
    yield first
    results = {edit.rel_path: edit.after for edit in first.edits}
    core, snippets = results.get(observed.core, observed.before), results[_snippets_path(context, observed.core)]
    if more and core is not None and snippets is not None:
        rest = {key: text for key, text in observed.texts.items() if key in more}
        left = replace(observed, before=core, text=core.decode("utf-8"), snippets=snippets, texts=rest)
        second = _decide(context, left, judgements)
        if second is not None:
            context.judgements.add(TASK, {_asked_key(observed.core, key): second.key for key in more})
            yield replace(second, always_asks=True)


def _asked_about(context: TaskContext, core: str, observations: Iterable[str]) -> set[str]:
    """Return those of `observations` that an open question is about."""
    keys = {_asked_key(core, observation): observation for observation in observations}
    asked = context.judgements.known(list(keys))
    waiting = {decision for decision in set(asked.values()) if context.is_asked(decision, ("fold",))}
    return {keys[key] for key, decision in asked.items() if decision in waiting}


def _asked_key(core: str, observation: str) -> str:
    return evidence_key("asked about", core, observation)


def _snippets_path(context: TaskContext, core: str) -> str:
    return context.layout.place(layout.snippets_path(core))


def _decide(context: TaskContext, observed: _Observations, judgements: Mapping[str, _Judgement]) -> Decision | None:
    core, after = observed.core, observed.text
    folded: list[str] = []
    dropped: list[str] = []
    left: list[str] = []
    for key, bullet in observed.texts.items():
        judgement = judgements.get(key)
        if judgement is None:
            continue
        if judgement.says == "discard":
            dropped.append(key)
            continue
        longer = core_notes.add_bullets(after, judgement.section, [judgement.text or bullet])
        if core_notes.is_long(longer):
            left.append(key)
        else:
            after = longer
            folded.append(key)
    gone = [*folded, *dropped]
    if not gone:
        return None
    # What found no room is judged beside the note as it is going to be: it is not asked about again.
    kept = {observed.judgement_key(key, after.encode()): judgements[key].render() for key in left}
    context.judgements.add(TASK, kept)
    key = evidence_key(TASK, core, *gone)
    remember_evidence(context, TASK, key, gone)
    rest = remove_bullets(observed.snippets.decode("utf-8"), [observed.texts[one] for one in gone])
    emptied = rest.encode() if rest.removeprefix("\ufeff").strip() else None
    edits = [Edit(core, observed.before, after.encode())] if after != observed.text else []
    if folded:
        subject = f"add {_count(folded)} to {core}" + (f", drop {len(dropped):,}" if dropped else "")
    else:
        subject = f"drop {_count(dropped)} about {core}"
    return Decision(
        task=TASK,
        kind="fold",
        key=key,
        edits=(*edits, Edit(_snippets_path(context, core), observed.snippets, emptied)),
        subject=subject,
        why=f"Observations were held against {core}: what is new and lasting goes into it, the rest is let go.",
        model=judgements[gone[0]].model,
        prompt=judgements[gone[0]].prompt,
        detail="\n".join(_line(observed.texts[one], judgements[one]) for one in gone),
    )


def _count(observations: Sequence[str]) -> str:
    return f"{len(observations):,} observation{'s' * (len(observations) != 1)}"


def _line(bullet: str, judgement: _Judgement) -> str:
    if judgement.says == "discard":
        return f"- let go: {quote(bullet, 200)}. {judgement.reason}"
    reworded = f" as {quote(judgement.text, 200)}" if judgement.text else ""
    return f"- folded: {quote(bullet, 200)}{reworded}. {judgement.reason}"
