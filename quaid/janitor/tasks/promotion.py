"""Promotion: lasting, important facts are proposed for the core notes, which an agent reads before every conversation.

Importance is counted, not judged: how sure a fact is by now, how often it was used and said again, whether its owner
has marked it. What of the most important belongs into which core note is for the deep model to say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quaid.index import documents
from quaid.index.documents import Candidate
from quaid.janitor import folding, judging
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import Context
from quaid.llm.exchange import Answer
from quaid.local.runs import key_of
from quaid.model import CORE_FILES, Edit, Use, name_key, note_name
from quaid.recall import scoring
from quaid.text.quoting import neutralise
from quaid.vault import core_notes, headings, markdown, notes

TASK = PROMPT = "promotion"
KIND = "promote"
LEAST_AGE_DAYS = 7.0
MOST_OFFERED = 50
"""The most important facts, those that a core note has already among them: so the list does not move on by itself."""
MOST_PROMOTED = 5
LEAST_IMPORTANCE = 1.2
"""More than being sure: a fact that nobody has used, said again or marked stays where it is."""
BONUS_PER_ACCESS, MOST_ACCESS_BONUS = 0.05, 0.5
BONUS_PER_CONFIRMATION, MOST_CONFIRMATION_BONUS = 0.1, 0.3
MOST_STRENGTH_BONUS = 0.2
MARKED_BONUS = 0.5
LONGEST_LINE = 240
LONGEST_SECTION = 60

_SECTION_MARKS = "#[]|^<>%*`\\"


@dataclass(frozen=True, slots=True)
class Important:
    """A fact that a core note may have need of; `key` is its evidence."""

    fact: Candidate
    content_hash: str
    use: Use

    @property
    def key(self) -> str:
        return key_of(TASK, self.content_hash)

    @property
    def line(self) -> dict[str, object]:
        fact = self.fact
        about = {
            "text": judging.plain_line(fact.text),
            "category": fact.type,
            "durability": fact.durability,
            "speaker": fact.doc_speaker,
            "told": (fact.created or "")[:10],
            "valid_from": fact.valid_from,
            "used": self.use.accesses,
            "said_again": fact.confirmations,
            "marked": fact.pinned or fact.verified,
        }
        return {key: value for key, value in about.items() if value}


def plan(context: Context) -> Iterator[Decision]:
    """At most five proposals, each a line in a core note with a link to its fact.

    Raises:
        ModelError: as `Models.ask`.
    """
    if context.settings.janitor.policies.promote == "off":
        return
    core = {name: text for name in CORE_FILES if (text := _room_in(context, name)) is not None}
    offered = _offered(context, core) if core and context.models is not None else []
    if not offered or context.models is None:
        return
    inputs = {
        "refused": folding.list_refused(context),
        "notes": "\n".join(_note_line(name, text) for name, text in core.items()),
        "facts": folding.numbered_lines(fact.line for fact in offered),
    }
    prompt = context.models.prompt(PROMPT)
    answer = context.models.ask(prompt, inputs, check=lambda value: _problems(value, offered, core))
    # Notes are read again for each: the one before may have changed them.
    promoted = set()
    for wanted in _usable(answer.value, offered, core):
        decision = _promote(context, offered[wanted["n"] - 1], wanted, answer)
        if decision is not None:
            promoted.add(decision.key)
            yield decision
    left = [fact.key for fact in offered if fact.key not in promoted]
    context.judgements.add(TASK, dict.fromkeys(left, "not for a core note"))


def importance(fact: Candidate, use: Use, sure: float) -> float:
    """How sure a fact is by now (0 to 1), and what its use, its confirmations and its owner's marks add."""
    used = min(MOST_ACCESS_BONUS, BONUS_PER_ACCESS * use.accesses)
    said = min(MOST_CONFIRMATION_BONUS, BONUS_PER_CONFIRMATION * fact.confirmations)
    strong = min(MOST_STRENGTH_BONUS, max(0.0, use.strength))
    return sure + used + said + strong + MARKED_BONUS * (fact.pinned or fact.verified)


def _offered(context: Context, core: Mapping[str, str]) -> list[Important]:
    """Of the most important facts those that no core note links to and nobody has judged, the most important first."""
    linked = {name_key(note_name(target)) for text in core.values() for target in markdown.links(text)}
    best = [fact for fact in _most_important(context) if name_key(note_name(fact.fact.path)) not in linked]
    settled = {*context.judgements.known([fact.key for fact in best]), *context.vetoed}
    return [fact for fact in best if fact.key not in settled and not judging.is_asked(context, fact.key, (KIND,))]


def _most_important(context: Context) -> list[Important]:
    found = {
        document.doc_id: document
        for document in documents.find_documents(
            context.index,
            "kind = 'fact' AND status = 'active' AND superseded_by IS NULL AND owner = ? AND NOT technical "
            "AND durability IN ('mutable', 'immutable') AND coalesce(source, 'user') <> 'tool'",
            (context.settings.owner,),
        )
    }
    facts = documents.fetch_candidates(context.index, documents.first_chunks(context.index, found)).values()
    today = context.now.date().isoformat()
    lasting = [fact for fact in facts if _is_lasting(fact, context, today)]
    uses = context.use_of([fact.id for fact in lasting])
    weighed = [
        (importance(fact, use, scoring.confidence(fact, use, context.now)), fact, use)
        for fact in lasting
        for use in (uses.get(fact.id, scoring.NEVER_USED),)
    ]
    weighed = [item for item in weighed if item[0] >= LEAST_IMPORTANCE]
    weighed.sort(key=lambda item: (-item[0], item[1].path))
    return [Important(fact, found[fact.doc_id].content_hash, use) for _, fact, use in weighed[:MOST_OFFERED]]


def _is_lasting(fact: Candidate, context: Context, today: str) -> bool:
    age = scoring.days_since(fact.created, context.now)
    has_end = fact.valid_until is not None and fact.durability != "immutable"
    is_true = not has_end and not scoring.is_over(fact, today) and (fact.valid_from or "")[:10] <= today
    # What orders its reader about has no place where every conversation begins.
    return age is not None and age >= LEAST_AGE_DAYS and is_true and neutralise(fact.text) == fact.text


def _room_in(context: Context, name: str) -> str | None:
    """The text of a core note that is there, may be edited, and has room."""
    found = folding.read_core(context, name)
    return None if found is None or found[0] is None or core_notes.is_long(found[1]) else found[1]


def _note_line(name: str, text: str) -> str:
    shown = {"file": name, "sections": core_notes.section_titles(text), "text": text}
    return json.dumps(shown, ensure_ascii=False)


def _problems(value: Mapping[str, Any], offered: Sequence[Important], core: Mapping[str, str]) -> list[str]:
    wanted = value["promotions"]
    found = folding.number_problems([item["n"] for item in wanted], len(offered), all_wanted=False)
    faults = ((item, _fault(item, offered, core)) for item in wanted)
    return [*found, *(f"number {item['n']}: {fault}" for item, fault in faults if fault)]


def _usable(
    value: Mapping[str, Any], offered: Sequence[Important], core: Mapping[str, str]
) -> Iterator[Mapping[str, Any]]:
    numbers = [item["n"] for item in value["promotions"]]
    for item in value["promotions"][:MOST_PROMOTED]:
        if numbers.count(item["n"]) == 1 and item["n"] <= len(offered) and not _fault(item, offered, core):
            yield item


def _fault(wanted: Mapping[str, Any], offered: Sequence[Important], core: Mapping[str, str]) -> str:
    """Why what is wanted cannot be proposed; empty when it can."""
    if wanted["n"] > len(offered):
        return ""  # said by its number
    text = core.get(wanted["file"])
    if text is None:
        return f"{wanted['file']} takes no lines now"
    line, fact = judging.one_line(wanted["line"]), offered[wanted["n"] - 1].fact
    days = [notes.format_day(day) for day in (fact.created, fact.valid_from, fact.valid_until) if day]
    added = judging.unsaid(line, [judging.plain_line(fact.text), *days, fact.doc_speaker or ""])
    fault = judging.fault_of(line)
    if fault or len(line) > LONGEST_LINE or not folding.may_stand(line):
        return f"the line cannot be used: {fault or 'it is too long, or hides or orders something'}"
    if added:
        return f"the line says {', '.join(added)}, which the fact does not"
    if headings.text_key(line) in {headings.text_key(judging.plain_line(said)) for said in text.splitlines()}:
        return f"{wanted['file']} says that already"
    section = judging.one_line(wanted["section"])
    is_heading = 0 < len(section) <= LONGEST_SECTION and not any(mark in section for mark in _SECTION_MARKS)
    return "" if is_heading and folding.may_stand(section) else "the section is no heading"


def _promote(context: Context, important: Important, wanted: Mapping[str, Any], answer: Answer) -> Decision | None:
    """None where the line would not be seen in its note, or make it too long."""
    found = folding.read_core(context, wanted["file"])
    if found is None or found[0] is None:
        return None
    fact, (before, text) = important.fact, found
    line = judging.one_line(wanted["line"]).rstrip(".")
    bullet = f"{line} ([[{note_name(fact.path)}|fact]])"
    section, after = _with_bullet(text, judging.one_line(wanted["section"]), bullet)
    body = notes.split_body(after)[1]
    shown = "\n".join(part.text for part in markdown.sections(body))
    is_seen = f"{line} (fact)" in shown and note_name(fact.path) in markdown.links(body)
    if core_notes.is_long(after) or not is_seen:
        return None
    return Decision(
        task=TASK,
        kind=KIND,
        key=important.key,
        edits=(Edit(wanted["file"], before, after.encode()),),
        subject=f"promote {judging.quote(fact.text, 28)} to {wanted['file']}",
        why=judging.reason_of(wanted["reason"], "The agent should always know it."),
        facts=(fact.id,),
        model=answer.model,
        prompt=answer.prompt,
        detail=f"Below `{section}` in {wanted['file']}:\n\n- {bullet}",
    )


def _with_bullet(text: str, section: str, bullet: str) -> tuple[str, str]:
    """(the section it went to, `text` with a bullet at the end of it).

    A section that no heading is called by is made at the end of the note; one that takes no bullets has a stand-in.
    """
    headed = {name_key(headings.one_line(stretch.title)) for stretch in headings.top_sections(text)}
    if name_key(section) not in headed:
        return section, headings.insert_block(text, len(text), f"## {section}\n\n- {bullet}")
    takes_bullets = name_key(section) in map(name_key, core_notes.section_titles(text))
    return section if takes_bullets else core_notes.LEARNED, core_notes.add_bullets(text, section, [bullet])
