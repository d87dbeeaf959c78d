"""Edges: relations stated by facts that were written without a model, so that `compare` and recall can use them.

Facts of a conversation have their edges from the extraction, and `remember` reads those that the form of an English
sentence states. The fast model reads the others once, before they are compared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from quaid.capture import relations
from quaid.capture.note_finder import show_known_names
from quaid.capture.stated_relations import SOLE_RELATIVES, UNNAMED_OWNER
from quaid.errors import BadInputError
from quaid.index import graph
from quaid.index.documents import Document, list_living
from quaid.janitor import fact_edits, model_text
from quaid.janitor.decision import fact_evidence
from quaid.janitor.judging import Judgement, ModelQuestion, numbered_lines
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edge, Note, is_owner_label, name_key
from quaid.recall.intent import is_technical
from quaid.settings import Settings
from quaid.text.dates import find_dates
from quaid.text.words import is_whole_word
from quaid.vault import markdown, notes

TASK = "edges"
_REVIEWED = frozenset({"active", "approved"})
_STATED_BY = frozenset({"user", "assistant"})


class _StatedFact(NamedTuple):
    """A fact without edges: its note on disk, and the name of the person who says `I` in it."""

    fact: Document
    note: Note
    data: bytes
    speaker: str

    @property
    def key(self) -> str:
        return evidence_key(TASK, fact_evidence(self.fact), self.speaker)


class _EdgesQuestion(ModelQuestion[_StatedFact]):
    prompt = TASK
    items = "facts"
    bare = ("none", {"edges": ()})
    input_tokens = 4_000
    output_tokens = 40

    def __init__(self, context: TaskContext) -> None:
        super().__init__(context)
        self._names = graph.entity_names(context.index)

    def show(self, item: _StatedFact) -> dict[str, str]:
        return {"I": item.speaker, "text": item.fact.text}

    def inputs(self, batch: Sequence[_StatedFact]) -> dict[str, str]:
        texts = "\n".join(f"{stated.speaker}. {stated.fact.text}" for stated in batch)
        return {"known": show_known_names(self.context.index, texts), "facts": numbered_lines(map(self.show, batch))}

    def read(self, item: _StatedFact, given: Mapping[str, Any], answer: Answer) -> Judgement:
        """Return the edges whose ends the fact names, in their normal form."""
        found: dict[tuple[str, str, str], None] = {}
        for part in given["edges"]:
            with suppress(BadInputError):
                edge = relations.normalise_edge(Edge(part["subject"], part["relation"], part["object"]))
                ends = [_resolve_name(end, item, self._names) for end in (edge.subject, edge.object)]
                if ends[0] and ends[1] and ends[0] != ends[1]:
                    found[ends[0], edge.relation, ends[1]] = None
        return Judgement(edges=list(found), model=answer.model, prompt=answer.prompt)


def plan_edges(context: TaskContext) -> Iterator[Decision]:
    """Yield a decision for each fact that was stated without a model, has no edges and states some."""
    stated = {fact.key: fact for fact in _list_stated(context)} if context.models is not None else {}
    for key, judgement in _EdgesQuestion(context).judge(stated) if stated else ():
        fact, note, data = stated[key].fact, stated[key].note, stated[key].data
        edges = [Edge(*edge) for edge in judgement.edges]
        if not edges or markdown.has_conflict_markers(data.decode("utf-8", errors="replace")):
            continue
        try:
            edit = fact_edits.add_edges(fact.path, data, edges)
        except fact_edits.UNSAFE:
            continue
        if notes.parse_fact(fact.path, edit.after or b"").text == note.text:
            listed = ", ".join(f"{edge.subject} {edge.relation} {edge.object}" for edge in edges)
            subject = f"link {model_text.quote(fact.text)}"
            why = f"It says: {model_text.clean_reason(listed)}."
            by = judgement.model, judgement.prompt
            yield Decision(TASK, "link", key, (edit,), subject, why, (fact.id,), *by, is_minor=True)


def _list_stated(context: TaskContext) -> Iterator[_StatedFact]:
    """Yield the facts that were stated outside of a conversation, that a review has passed and that may be edited.

    A fact that cites turns comes from a conversation: a model has looked for its edges already.
    """
    settled = {row[0] for row in context.index.execute("SELECT doc_id FROM citations UNION SELECT doc_id FROM edges")}
    for fact in list_living(context.index):
        is_stated = fact.source in _STATED_BY and fact.status in _REVIEWED and fact.doc_id not in settled
        may_have_edges = is_stated and not fact.is_protected and not is_technical(fact.text)
        data = context.read(fact.path) if may_have_edges else None
        if data is None:
            continue
        note = notes.parse_fact(fact.path, data)
        if note.edges or note.citations or note.technical or note.problems:
            continue
        stated = _StatedFact(fact, note, data, find_speaker(note, context.settings))
        if stated.key not in context.vetoed and not context.is_asked(stated.key, ("link",)):
            yield stated


def find_speaker(fact: Note, settings: Settings) -> str:
    """Return the name of the person who says `I` in a fact."""
    if fact.speaker and not is_owner_label(fact.speaker):
        return fact.speaker
    return (settings.owner_name or UNNAMED_OWNER) if fact.owner == "default" else fact.owner


def _resolve_name(end: str, stated: _StatedFact, names: Sequence[tuple[str, str]]) -> str | None:
    """Return the name of an edge's end: that of the only note with this name, else as it is; None if the fact does not
    name it.
    """
    of, _, relative = end.replace("\u2019", "'").rpartition("'s ")
    if of and relative.lower() in SOLE_RELATIVES:
        whose = _resolve_name(of, stated, names)
        return f"{whose}'s {relative.lower()}" if whose else None
    if is_owner_label(end) or name_key(end) == name_key(stated.speaker):
        return stated.speaker
    text = stated.fact.text
    called = {note for name, note in names if name_key(name) == name_key(end)}
    in_full = {end, *(name for name, note in names if note in called)}
    if not any(_is_named(name, text) for name in in_full):
        first = [(name.split()[0], note) for name, note in names]
        first_in_full = {name_key(name.split(maxsplit=1)[0]) for name in in_full}
        alike = {note for name, note in first if name_key(name) in first_in_full and _is_named(name, text)}
        if not called or alike != called:
            moment = notes.parse_time(stated.fact.created)
            dates = find_dates(text, moment) if moment is not None else ()
            days = (date.start for date in dates if date.start == date.end and str(date.start.year) in text)
            return end if end in [day.isoformat() for day in days] else None
    return next(iter(called)) if len(called) == 1 else end


def _is_named(name: str, text: str) -> bool:
    """Return whether `text` has `name`, or its genitive: `Annas` of Anna."""
    key, words = name_key(name), name_key(text)
    return any(
        is_whole_word(words, *found.span())
        for form in (key, f"{key}s")
        for found in re.finditer(re.escape(form), words)
    )
