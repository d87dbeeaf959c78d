"""Observations folded into the core notes: each is held against its note, then goes into it or is let go.

A note of the owner's gets new lines and loses none. What is folded or let go leaves the snippets; both files change in
one commit, so that taking it back brings the observations back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from quaid.claims import problem_of
from quaid.errors import ModelAnswerError
from quaid.janitor.decision import Decision
from quaid.janitor.folding import (
    list_refused,
    may_stand,
    number_problems,
    numbered_lines,
    read_core,
    refused_evidence,
    remember_evidence,
)
from quaid.janitor.judging import fault_of, quote, reason_of
from quaid.janitor.task_context import Context
from quaid.llm.batches import batches
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import key_of
from quaid.local.tables import readable
from quaid.model import CORE_FILES, Edit
from quaid.vault import core_notes, headings, layout, notes
from quaid.vault.snippets import parse_sections, remove_bullets

if TYPE_CHECKING:
    from quaid.llm.prompts import Prompt

TASK = "snippets"
SUSPICIOUS = 10
"""An answer that lets go of all of so many observations is none."""
_INPUT_TOKENS = 8_000
_TOKENS_PER_ANSWER = 150


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What becomes of one observation. `text` is its new wording, if it has one that can be used."""

    word: Literal["fold", "rewrite", "discard"]
    section: str
    text: str
    reason: str
    model: str
    prompt: str


@dataclass(frozen=True, slots=True)
class _Case:
    """The observations about one core note that are not decided yet, and the note."""

    core: str
    before: bytes | None
    text: str
    snippets: bytes
    observed: Mapping[str, str]
    """Key of an observation -> what it says."""

    def verdict_key(self, observation: str, core: bytes | None) -> str:
        return key_of(TASK, self.core, notes.content_hash(core or b""), observation)


def plan(context: Context) -> Iterator[Decision]:
    """One decision for each core note that has observations waiting.

    Raises:
        ModelError: as `Models.ask`; ModelAnswerError too where an answer would let go of everything.
    """
    refused = refused_evidence(context)
    for core in CORE_FILES:
        case = _open_case(context, core, refused)
        if case is not None:
            decision = _decide(context, case, _judge(context, case))
            if decision is not None:
                yield decision


def _open_case(context: Context, core: str, refused: set[str]) -> _Case | None:
    data, note = context.read(layout.snippets_path(core)), read_core(context, core)
    if data is None or note is None or core_notes.is_long(note[1]):
        return None
    try:
        sections = parse_sections(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    observed = {headings.text_key(bullet): bullet for section in sections for bullet in section.bullets}
    observed = {key: bullet for key, bullet in observed.items() if key not in refused and may_stand(bullet)}
    return _Case(core, *note, data, observed) if observed else None


def _judge(context: Context, case: _Case) -> dict[str, _Verdict]:
    """The verdict on each observation; what was judged beside the same note is not asked again."""
    keys = {case.verdict_key(key, case.before): key for key in case.observed}
    known = context.judgements.known(keys)
    verdicts = dict(readable(lambda kept: (keys[kept[0]], _Verdict(**json.loads(kept[1]))), known.items()))
    waiting = [key for key in case.observed if key not in verdicts]
    if not waiting or context.models is None:
        return verdicts
    prompt = context.models.prompt(TASK)
    for batch in batches(
        waiting,
        tokens_of=lambda key: estimate_tokens(case.observed[key]) + 10,
        input_limit=_INPUT_TOKENS,
        output_per_item=_TOKENS_PER_ANSWER,
        output_limit=prompt.max_output_tokens,
    ):
        found = _ask(context, case, prompt, batch)
        told = {case.verdict_key(key, case.before): _render(verdict) for key, verdict in found.items()}
        context.judgements.add(TASK, told)
        verdicts |= found
    return verdicts


def _ask(context: Context, case: _Case, prompt: Prompt, batch: Sequence[str]) -> dict[str, _Verdict]:
    assert context.models is not None
    originals = [case.observed[key] for key in batch]

    def check(value: Mapping[str, Any]) -> list[str]:
        given = value["observations"]
        problems = number_problems([one["n"] for one in given], len(batch))
        for one in given:
            if one["verdict"] == "rewrite" and one["n"] <= len(batch):
                problems += [
                    f"{fault}, number {one['n']}" for fault in _faults(one.get("text"), originals[one["n"] - 1])
                ]
        return problems

    inputs = {
        "name": case.core,
        "note": case.text,
        "sections": json.dumps(core_notes.section_titles(case.text), ensure_ascii=False),
        "refused": list_refused(context),
        "observations": numbered_lines({"text": text} for text in originals),
    }
    answer = context.models.ask(prompt, inputs, check=check)
    given = answer.value["observations"]
    said = [one["n"] for one in given]
    if len(batch) >= SUSPICIOUS and sum(one["verdict"] == "discard" for one in given) >= len(batch):
        raise ModelAnswerError(answer.model, answer.prompt, f"it lets go of all {len(batch)} observations")
    return {
        batch[one["n"] - 1]: _Verdict(
            one["verdict"],
            one.get("section") or core_notes.LEARNED,
            _usable(one, originals[one["n"] - 1]),
            reason_of(one["reason"], "The model gave no reason."),
            answer.model,
            answer.prompt,
        )
        for one in given
        if one["n"] <= len(batch) and said.count(one["n"]) == 1
    }


def _usable(given: Mapping[str, Any], original: str) -> str:
    """The new wording, if there is one that can be used: else the observation is folded as it is."""
    is_reworded = given["verdict"] == "rewrite" and not _faults(given.get("text"), original)
    return str(given["text"]) if is_reworded else ""


def _faults(text: str | None, original: str) -> list[str]:
    """Why a new wording cannot take the place of an observation; without faults it says the same, as far as can be
    told.
    """
    if not text:
        return ["it has no text"]
    faults = (fault_of(text), problem_of(text, [original]), "" if may_stand(text) else "it hides or orders something")
    return [fault for fault in faults if fault]


def _decide(context: Context, case: _Case, verdicts: Mapping[str, _Verdict]) -> Decision | None:
    after, folded, dropped, left = case.text, [], [], []
    for key, bullet in case.observed.items():
        verdict = verdicts.get(key)
        if verdict is None:
            continue
        if verdict.word == "discard":
            dropped.append(key)
            continue
        longer = core_notes.add_bullets(after, verdict.section, [verdict.text or bullet])
        if core_notes.is_long(longer):
            left.append(key)
        else:
            after = longer
            folded.append(key)
    gone = [*folded, *dropped]
    if not gone:
        return None
    # What found no room is judged beside the note as it is going to be: it is not asked about again.
    told = {case.verdict_key(key, after.encode()): _render(verdicts[key]) for key in left}
    context.judgements.add(TASK, told)
    return _decision(context, case, verdicts, after, (folded, dropped))


def _decision(
    context: Context, case: _Case, verdicts: Mapping[str, _Verdict], after: str, gone: tuple[list[str], list[str]]
) -> Decision:
    folded, dropped = gone
    kept = remove_bullets(case.snippets.decode("utf-8"), [case.observed[key] for key in (*folded, *dropped)])
    edits = [Edit(layout.snippets_path(case.core), case.snippets, kept.encode() if _says_anything(kept) else None)]
    if after != case.text:
        edits.insert(0, Edit(case.core, case.before, after.encode()))
    key = key_of(TASK, case.core, *folded, *dropped)
    remember_evidence(context, TASK, key, [*folded, *dropped])
    first = verdicts[(*folded, *dropped)[0]]
    return Decision(
        task=TASK,
        kind="fold",
        key=key,
        edits=tuple(edits),
        subject=_subject(case.core, len(folded), len(dropped)),
        why=f"Observations were held against {case.core}: what is new and lasting goes into it, the rest is let go.",
        model=first.model,
        prompt=first.prompt,
        detail="\n".join(_line(case.observed[key], verdicts[key]) for key in (*folded, *dropped)),
    )


def _subject(core: str, folded: int, dropped: int) -> str:
    def count(number: int) -> str:
        return f"{number:,} observation{'s' * (number != 1)}"

    if not folded:
        return f"let go of {count(dropped)} about {core}"
    return f"fold {count(folded)} into {core}" + (f", let go of {dropped:,}" if dropped else "")


def _line(bullet: str, verdict: _Verdict) -> str:
    if verdict.word == "discard":
        return f"- let go: {quote(bullet, 200)}. {verdict.reason}"
    reworded = f" as {quote(verdict.text, 200)}" if verdict.text else ""
    return f"- folded: {quote(bullet, 200)}{reworded}. {verdict.reason}"


def _says_anything(text: str) -> bool:
    return bool(text.removeprefix("\ufeff").strip())


def _render(verdict: _Verdict) -> str:
    return json.dumps(asdict(verdict), ensure_ascii=False)
