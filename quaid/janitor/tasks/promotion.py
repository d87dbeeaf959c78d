"""Promotion: lasting, important facts are proposed for the core notes, which an agent reads before every conversation.

Importance is counted, not judged: how sure a fact is by now, how often it was used and said again, whether its owner
has marked it. The deep model says which of the most important facts belong in which core note.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quaid.index import documents
from quaid.index.documents import Candidate
from quaid.janitor import model_text
from quaid.janitor.decision import Decision
from quaid.janitor.model_questions import ask, by_number, judge_all, list_refused, number_problems, numbered_lines
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer, ItemProblem
from quaid.local.runs import evidence_key
from quaid.model import CORE_FILES, Edit, Use, name_key, note_name
from quaid.recall import scoring
from quaid.text import endings
from quaid.text.quoting import neutralise
from quaid.vault import core_notes, headings, markdown, notes

TASK = PROMPT = "promotion"
KIND = "promote"
MIN_AGE_DAYS = 7.0
MAX_OFFERED = 50
"""The most important facts, those that a core note has already among them: so the list does not move on by itself."""
MAX_PROMOTED = 5
MIN_IMPORTANCE = 1.2
"""More than being sure: a fact that nobody has used, said again or marked stays where it is."""
BONUS_PER_ACCESS, MAX_ACCESS_BONUS = 0.05, 0.5
BONUS_PER_CONFIRMATION, MAX_CONFIRMATION_BONUS = 0.1, 0.3
MAX_STRENGTH_BONUS = 0.2
MARKED_BONUS = 0.5
MAX_LINE_CHARACTERS = 240
MAX_SECTION_CHARACTERS = 60

_SECTION_MARKS = "#[]|^<>%*`\\"


@dataclass(frozen=True, slots=True)
class ImportantFact:
    """A fact that a core note may have need of; `key` is its evidence."""

    fact: Candidate
    content_hash: str
    use: Use

    @property
    def key(self) -> str:
        return evidence_key(TASK, self.content_hash)

    @property
    def shown(self) -> dict[str, object]:
        """The fields that a model is shown."""
        fact = self.fact
        return model_text.without_empty(
            {
                "text": headings.one_line(fact.text),
                "category": fact.type,
                "durability": fact.durability,
                "speaker": fact.doc_speaker,
                "told": (fact.created or "")[:10],
                "valid_from": fact.valid_from,
                "used": self.use.accesses,
                "said_again": fact.confirmations,
                "marked": fact.pinned or fact.verified,
            }
        )


def plan(context: TaskContext) -> Iterator[Decision]:
    """At most five proposals, each a line in a core note with a link to its fact."""
    if context.settings.janitor.policies.promote == "off" or context.models is None:
        return
    core: dict[str, str] = {}
    for name in CORE_FILES:
        data, text = context.read_core(name) or (None, "")
        if data is not None and not core_notes.is_long(text):
            core[name] = text
    offered = _list_offered(context, core) if core else []
    if not offered:
        return
    shown_notes = ({"file": n, "sections": core_notes.section_titles(text), "text": text} for n, text in core.items())
    inputs = {
        "refused": list_refused(context),
        "notes": "\n".join(json.dumps(note, ensure_ascii=False) for note in shown_notes),
    }

    def judge(batch: list[ImportantFact]) -> tuple[list[ImportantFact], Answer]:
        def check(value: Mapping[str, Any]) -> list[str | ItemProblem]:
            known = [(place, item) for place, item in enumerate(value["promotions"]) if item["n"] <= len(batch)]
            found = ((place, _problem(item, batch[item["n"] - 1].fact, core)) for place, item in known)
            problems = number_problems(value, "promotions", len(batch), all_wanted=False)
            return [*problems, *(ItemProblem("promotions", place, problem) for place, problem in found if problem)]

        return batch, ask(context, PROMPT, {**inputs, "facts": numbered_lines(fact.shown for fact in batch)}, check)

    # Notes are read again for each: the one before may have changed them.
    promoted: set[str] = set()
    for batch, answer in judge_all(
        context,
        PROMPT,
        {fact.key: fact for fact in offered},
        judge,
        lambda _: 1,
        lambda fact: fact.fact.text,
        input_limit=MAX_OFFERED,
    ):
        for fact, wanted in by_number(answer.value["promotions"], batch)[: MAX_PROMOTED - len(promoted)]:
            decision = _promote(context, fact, wanted, answer) if not _problem(wanted, fact.fact, core) else None
            if decision is not None:
                promoted.add(decision.key)
                yield decision
        left = [fact.key for fact in batch if fact.key not in promoted]
        context.judgements.add(TASK, dict.fromkeys(left, "not for a core note"))


def importance(fact: Candidate, use: Use, sure: float) -> float:
    """Return how sure a fact is by now (0 to 1) plus what its use, its confirmations and its owner's marks add."""
    used = min(MAX_ACCESS_BONUS, BONUS_PER_ACCESS * use.accesses)
    said = min(MAX_CONFIRMATION_BONUS, BONUS_PER_CONFIRMATION * fact.confirmations)
    strong = min(MAX_STRENGTH_BONUS, max(0.0, use.strength))
    return sure + used + said + strong + MARKED_BONUS * (fact.pinned or fact.verified)


def _list_offered(context: TaskContext, core: Mapping[str, str]) -> list[ImportantFact]:
    """Return the most important facts that no core note links to and nobody has judged, the most important first."""
    linked = {name_key(note_name(target)) for text in core.values() for target in markdown.links(text)}
    best = [fact for fact in _list_important(context) if name_key(note_name(fact.fact.path)) not in linked]
    settled = {*context.judgements.known([fact.key for fact in best]), *context.vetoed}
    return [fact for fact in best if fact.key not in settled and not context.is_asked(fact.key, (KIND,))]


def _list_important(context: TaskContext) -> list[ImportantFact]:
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
    lasting = [fact for fact in facts if _is_lasting(fact, context)]
    uses = context.use_of([fact.id for fact in lasting])
    scored = []
    for fact in lasting:
        use = uses.get(fact.id, scoring.NEVER_USED)
        score = importance(fact, use, scoring.confidence(fact, use, context.now))
        if score >= MIN_IMPORTANCE:
            scored.append((score, ImportantFact(fact, found[fact.doc_id].content_hash, use)))
    scored.sort(key=lambda item: (-item[0], item[1].fact.path))
    return [fact for _, fact in scored[:MAX_OFFERED]]


def _is_lasting(fact: Candidate, context: TaskContext) -> bool:
    today = context.now.date().isoformat()
    age = scoring.days_since(fact.created, context.now)
    has_end = endings.find_last_day(fact) is not None
    is_true = not has_end and fact.superseded_by is None and (fact.valid_from or "")[:10] <= today
    # What orders its reader about has no place where every conversation begins.
    return age is not None and age >= MIN_AGE_DAYS and is_true and neutralise(fact.text) == fact.text


def _problem(wanted: Mapping[str, Any], fact: Candidate, core: Mapping[str, str]) -> str:
    """Return why what is wanted cannot be proposed; empty when it can."""
    text = core.get(wanted["file"])
    if text is None:
        return f"{wanted['file']} takes no lines now"
    line = headings.one_line(wanted["line"])
    problem = model_text.statement_problem(line)
    if problem or len(line) > MAX_LINE_CHARACTERS or not model_text.is_safe_line(line):
        return f"the line cannot be used: {problem or 'it is too long, or hides or orders something'}"
    days = [notes.format_day(day) for day in (fact.created, fact.valid_from, fact.valid_until) if day]
    sources = [fact.text, *days, fact.doc_speaker or ""]
    added = model_text.find_unsupported(line, sources)
    if added:
        return f"the line says {', '.join(added)}, which the fact does not"
    if headings.text_key(line) in {headings.text_key(model_text.plain_line(said)) for said in text.splitlines()}:
        return f"{wanted['file']} says that already"
    section = headings.one_line(wanted["section"])
    is_short = 0 < len(section) <= MAX_SECTION_CHARACTERS
    is_heading = is_short and not any(mark in section for mark in _SECTION_MARKS) and model_text.is_safe_line(section)
    return "" if is_heading else "the section is not a heading"


def _promote(
    context: TaskContext, important: ImportantFact, wanted: Mapping[str, Any], answer: Answer
) -> Decision | None:
    """None where the line would not be seen in its note, or make it too long."""
    fact, (before, text) = important.fact, context.read_core(wanted["file"]) or (None, "")
    if before is None:
        return None
    line, section = headings.one_line(wanted["line"]).rstrip("."), headings.one_line(wanted["section"])
    bullet = f"{line} ([[{note_name(fact.path)}|fact]])"
    if name_key(section) not in {name_key(headings.one_line(part.title)) for part in headings.top_sections(text)}:
        after = headings.insert_block(text, len(text), f"## {section}\n\n- {bullet}")
    else:
        after = core_notes.add_bullets(text, section, [bullet])
        if name_key(section) not in map(name_key, core_notes.section_titles(text)):
            section = core_notes.LEARNED  # that one takes no bullets
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
        subject=f"add {model_text.quote(fact.text, 28)} to {wanted['file']}",
        why=model_text.clean_reason(wanted["reason"], "The agent should always know it."),
        facts=(fact.id,),
        model=answer.model,
        prompt=answer.prompt,
        detail=f"Below `{section}` in {wanted['file']}:\n\n- {bullet}",
    )
