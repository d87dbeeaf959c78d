"""Edges: the relations that a fact states which was told without a model, so that `compare` and recall can use them.

What is told in a conversation has its edges from the extraction, and `remember` reads those that the form of an English
sentence states. The fast model reads the others, once, before they are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quaid.capture import relations
from quaid.capture.known_names import show_known_names
from quaid.capture.stated_relations import SOLE_RELATIVES, UNNAMED_OWNER
from quaid.errors import BadInputError
from quaid.index import graph
from quaid.index.facts import LivingFact, list_living
from quaid.janitor import fact_edits, model_text
from quaid.janitor.decision import Decision
from quaid.janitor.evidence import fact_evidence
from quaid.janitor.judgements import JsonJudgement, known_judgements
from quaid.janitor.model_questions import ask, by_number, judge_all, number_problems, numbered_lines
from quaid.janitor.task_context import TaskContext
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import evidence_key
from quaid.model import Edge, Note, is_owner_label, name_key
from quaid.recall.intent import is_technical
from quaid.text.dates import find_dates
from quaid.text.words import stands_alone
from quaid.vault import markdown, notes
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = PROMPT = "edges"
INPUT_TOKENS = 4_000
TOKENS_PER_ANSWER = 40
_REVIEWED = frozenset({"active", "approved"})
_SPOKEN = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class EdgesJudgement(JsonJudgement):
    """The edges (subject, relation, object) that a model has read in a fact, as far as they can be kept."""

    edges: Sequence[Sequence[str]]
    model: str
    prompt: str


@dataclass(frozen=True, slots=True)
class _ToldFact:
    """A fact without edges: its note on disk, and the name of whoever says `I` in it."""

    fact: LivingFact
    note: Note
    data: bytes
    speaker: str

    @property
    def key(self) -> str:
        return evidence_key(TASK, fact_evidence(self.fact), self.speaker)


def plan(context: TaskContext) -> Iterator[Decision]:
    """Yield a decision for each fact that was stated without a model, has no edges and states some."""
    told = list(_list_told(context)) if context.models is not None else []
    if not told:
        return
    names = graph.entity_names(context.index)
    known = known_judgements(context, [each.key for each in told], EdgesJudgement.parse)
    for each in told:
        if each.key in known:
            yield from _decide(each, known[each.key])
    for judged in judge_all(
        context,
        PROMPT,
        {each.key: each for each in told if each.key not in known},
        lambda batch: _read_edges(context, batch, names),
        lambda each: estimate_tokens(numbered_lines([_shown(each)])),
        lambda each: each.fact.text,
        input_limit=INPUT_TOKENS,
        output_per_item=TOKENS_PER_ANSWER,
    ):
        context.judgements.add(TASK, {each.key: judgement.render() for each, judgement in judged})
        for each, judgement in judged:
            yield from _decide(each, judgement)


def _list_told(context: TaskContext) -> Iterator[_ToldFact]:
    """The facts that somebody has told outside of a conversation, that a review has passed and that may be edited.

    The turns that a conversation's fact rests on say that a model has looked for its edges already.
    """
    owner = context.settings.owner_name or UNNAMED_OWNER
    for fact in list_living(context.index):
        is_told = fact.source in _SPOKEN and fact.status in _REVIEWED
        may_have_edges = is_told and not fact.is_protected and not is_technical(fact.text)
        data = context.read(fact.path) if may_have_edges else None
        if data is None:
            continue
        note = notes.parse_fact(fact.path, data)
        if note.edges or note.citations or note.technical or note.problems:
            continue
        own = owner if fact.owner == "default" else fact.owner
        speaker = own if not note.speaker or is_owner_label(note.speaker) else note.speaker
        told = _ToldFact(fact, note, data, speaker)
        if told.key not in context.vetoed and not context.is_asked(told.key, ("link",)):
            yield told


def _shown(told: _ToldFact) -> dict[str, str]:
    return {"I": told.speaker, "text": told.fact.text}


def _read_edges(
    context: TaskContext, batch: Sequence[_ToldFact], names: Sequence[tuple[str, str]]
) -> list[tuple[_ToldFact, EdgesJudgement]]:
    """What the model has read in each fact that it has answered about once."""
    inputs = {
        "known": show_known_names(context.index, "\n".join(f"{each.speaker}. {each.fact.text}" for each in batch)),
        "facts": numbered_lines(map(_shown, batch)),
    }
    answer = ask(context, PROMPT, inputs, lambda value: number_problems(value, "facts", len(batch), bare="none"))
    given = [*answer.value["facts"], *({"n": n, "edges": []} for n in answer.value["none"])]
    return [
        (each, EdgesJudgement(_sound_edges(each, item["edges"], names), answer.model, answer.prompt))
        for each, item in by_number(given, batch)
    ]


def _sound_edges(
    told: _ToldFact, given: Sequence[dict[str, str]], names: Sequence[tuple[str, str]]
) -> list[tuple[str, str, str]]:
    """Those of the edges whose ends the fact names, in their normal form; the others are left out."""
    found: dict[tuple[str, str, str], None] = {}
    for item in given:
        try:
            edge = relations.normalise_edge(Edge(item["subject"], item["relation"], item["object"]))
        except BadInputError:
            continue
        ends = [_meant(end, told, names) for end in (edge.subject, edge.object)]
        if ends[0] and ends[1] and ends[0] != ends[1]:
            found[ends[0], edge.relation, ends[1]] = None
    return list(found)


def _meant(end: str, told: _ToldFact, names: Sequence[tuple[str, str]]) -> str | None:
    """The name that an end is kept under: that of the note it means, if only one is called so. None for what the fact
    does not name.
    """
    of, _, relative = end.replace("\u2019", "'").rpartition("'s ")
    if of and relative.lower() in SOLE_RELATIVES:
        whose = _meant(of, told, names)
        return f"{whose}'s {relative.lower()}" if whose else None
    if is_owner_label(end) or name_key(end) == name_key(told.speaker):
        return told.speaker
    text = told.fact.text
    called = {note for name, note in names if name_key(name) == name_key(end)}
    in_full = {end, *(name for name, note in names if note in called)}
    if not any(_is_named(name, text) for name in in_full):
        first = [(name.split()[0], note) for name, note in names]
        first_in_full = {name_key(name.split(maxsplit=1)[0]) for name in in_full}
        alike = {note for name, note in first if name_key(name) in first_in_full and _is_named(name, text)}
        if not called or alike != called:
            return end if end in _list_days(told) else None
    return next(iter(called)) if len(called) == 1 else end


def _is_named(name: str, text: str) -> bool:
    """Return whether `text` has `name`, or its genitive: `Annas` of Anna."""
    key, words = name_key(name), name_key(text)
    place = words.find(key)
    while place >= 0:
        if any(
            stands_alone(words, place, place + len(key + more))
            for more in ("", "s")
            if words.startswith(key + more, place)
        ):
            return True
        place = words.find(key, place + 1)
    return False


def _list_days(told: _ToldFact) -> set[str]:
    """The days (ISO 8601) that the fact tells with their year."""
    moment = notes.parse_time(told.fact.created)
    mentions = find_dates(told.fact.text, moment) if moment is not None else ()
    days = (mention.start for mention in mentions if mention.start == mention.end)
    return {day.isoformat() for day in days if str(day.year) in told.fact.text}


def _decide(told: _ToldFact, judgement: EdgesJudgement) -> Iterator[Decision]:
    """Yield the decision; none for a fact without edges, or whose note cannot be edited safely."""
    edges = [Edge(*edge) for edge in judgement.edges]
    if not edges or markdown.has_conflict_markers(told.data.decode("utf-8", errors="replace")):
        return
    try:
        edit = fact_edits.add_edges(told.fact.path, told.data, edges)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return
    stated = ", ".join(f"{edge.subject} {edge.relation} {edge.object}" for edge in edges)
    if notes.parse_fact(told.fact.path, edit.after or b"").text != told.note.text:
        return
    yield Decision(
        task=TASK,
        kind="link",
        key=told.key,
        edits=(edit,),
        subject=f"link {model_text.quote(told.fact.text)}",
        why=f"It says: {model_text.clean_reason(stated)}.",
        facts=(told.fact.id,),
        model=judgement.model,
        prompt=judgement.prompt,
        is_minor=True,
    )
