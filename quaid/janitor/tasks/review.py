"""Review: the deep model reads what was learned lately and approves, rewords or rejects each fact.

A rewording is carried out where all that can be checked in it was said before. Where it says or leaves out a number or
a name, or turns a claim around, it is a question to the owner.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from quaid.capture.extraction import with_dates
from quaid.capture.fact_note import link_names
from quaid.claims import difference
from quaid.errors import ModelAnswerError
from quaid.index import documents, graph
from quaid.index.documents import Candidate, Document
from quaid.janitor import folding, judging, verbs
from quaid.janitor.decision import Decision
from quaid.janitor.task_context import Context
from quaid.llm.batches import batches
from quaid.llm.exchange import Answer
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import key_of
from quaid.model import Edit, Note, name_key
from quaid.vault import markdown, notes
from quaid.vault.frontmatter import FrontmatterBrokenError

if TYPE_CHECKING:
    from quaid.llm import Models

TASK = PROMPT = "review"
INPUT_TOKENS = 12_000
"""Of facts in one question: a model that reads more at once reads less carefully."""
TOKENS_PER_VERDICT = 150
MOST_LONGER = 3
"""So many times as long as a fact its rewording may be."""
SHORT_CHARACTERS = 120
"""Such a sentence is never too long: what leans on its turns can be very short."""
SUSPICIOUS = 10
"""An answer that rejects all of so many facts is no review."""
_KINDS = ("approve", "rewrite", "reject")
_MOST_TURNS = 4
_MOST_CHARACTERS = 400
_MOST_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Learned:
    """A fact that waits for its review: its note on disk, what its statement says, and the turns it rests on."""

    document: Document
    note: Note
    data: bytes
    statement: str
    turns: tuple[Candidate, ...]
    approval: Edit

    @property
    def key(self) -> str:
        return key_of(TASK, self.note.content_hash, *(turn.text for turn in self.turns))

    @property
    def sources(self) -> list[str]:
        """All that a rewording of it may take names and numbers from."""
        told = [turn.said_at or self.note.created for turn in self.turns] or [self.note.created]
        days = [f"{moment:%A}, {moment.day} {moment:%B %Y}" for day in told if (moment := notes.parse_time(day))]
        said = [with_dates(turn.text, notes.parse_time(turn.said_at)) for turn in self.turns]
        speakers = [turn.speaker or "" for turn in self.turns]
        ends = [name for edge in self.note.edges for name in (edge.subject, edge.object)]
        held = [notes.format_day(day) for day in (self.note.valid_from, self.note.valid_until) if day]
        return [self.note.text, *days, *said, *speakers, *ends, *held, *self.note.keywords, self.note.speaker or ""]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a model said of a fact: `says` is `approve`, `rewrite` or `reject`; `rewrite` is the statement in its
    words, empty where it has none.
    """

    says: str
    reason: str
    rewrite: str
    model: str
    prompt: str

    def render(self) -> str:
        """As JSON, which `parse_judged` reads."""
        return json.dumps(asdict(self), ensure_ascii=False)


def parse_judged(kept: str) -> Judged | None:
    """What `render` made; None where that cannot be read any more, so that it is asked again."""
    try:
        return Judged(**json.loads(kept))
    except (ValueError, TypeError):
        return None


def plan(context: Context) -> Iterator[Decision]:
    """Decisions about the facts that wait: first what was judged before and not carried out, then the oldest first.

    Raises:
        ModelError: a batch could not be judged; what came before it stands.
    """
    waiting = _waiting(context) if context.models is not None else []
    if context.models is None or not waiting:
        return
    names = graph.entity_names(context.index)
    owner = context.settings.owner_name or context.settings.owner
    told = context.judgements.known([fact.key for fact in waiting])
    kept = {key: judged for key, said in told.items() if (judged := parse_judged(said)) is not None}
    for fact in waiting:
        if fact.key in kept:
            yield from _decide(fact, kept[fact.key], names, owner)
    for fact, judged in _judge(context, context.models, [fact for fact in waiting if fact.key not in kept], owner):
        yield from _decide(fact, judged, names, owner)


def _judge(
    context: Context, models: Models, waiting: Sequence[Learned], owner: str
) -> Iterator[tuple[Learned, Judged]]:
    """What the model says of each, batch by batch, kept so that it is asked once. A fact without one verdict is left
    out.
    """
    prompt = models.prompt(PROMPT)
    done = 0
    for batch in batches(
        waiting,
        tokens_of=lambda fact: estimate_tokens(_line(1, fact)),
        input_limit=INPUT_TOKENS,
        output_per_item=TOKENS_PER_VERDICT,
        output_limit=prompt.max_output_tokens,
    ):
        if context.progress:
            context.progress(TASK, done, len(waiting))
        asked = dict(enumerate(batch, 1))
        inputs = {
            "refused": folding.list_refused(context),
            "facts": "\n".join(_line(number, fact) for number, fact in asked.items()),
        }
        answer = models.ask(
            prompt,
            inputs,
            check=lambda value, asked=asked: _problems(value, asked, owner),  # type: ignore[misc]
        )
        judged = [(asked[number], _judged(said, answer)) for number, said in sorted(_verdicts(answer, asked).items())]
        context.judgements.add(TASK, {fact.key: said.render() for fact, said in judged})
        yield from judged
        done += len(batch)


def _waiting(context: Context) -> list[Learned]:
    """The pending facts that their owner has not refused and is not asked about, in the order they were learned."""
    found = documents.find_documents(
        context.index,
        "kind = 'fact' AND status = 'pending' AND superseded_by IS NULL AND NOT pinned AND NOT verified",
    )
    turns = _turns(context, [document.doc_id for document in found])
    readable = [
        fact for document in found if (fact := _read(context, document, turns.get(document.doc_id, ()))) is not None
    ]
    new = [
        fact for fact in readable if fact.key not in context.vetoed and not judging.is_asked(context, fact.key, _KINDS)
    ]
    return sorted(new, key=_order)


def _turns(context: Context, doc_ids: Collection[int]) -> dict[int, list[Candidate]]:
    cited = graph.cited_turns(context.index, doc_ids)
    said = documents.fetch_candidates(context.index, {chunk_id for _, chunk_id in cited})
    turns: dict[int, list[Candidate]] = {}
    for doc_id, chunk_id in sorted(set(cited)):
        if chunk_id in said:
            turns.setdefault(doc_id, []).append(said[chunk_id])
    return turns


def _read(context: Context, document: Document, turns: Sequence[Candidate]) -> Learned | None:
    """None for a note that cannot be edited safely; `quaid doctor` names it."""
    data = context.read(document.path)
    if data is None:
        return None
    try:
        approval = verbs.approve(document.path, data)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    text = data.decode("utf-8")
    body = notes.split_body(text)[1]
    statement = judging.plain_line(body[slice(*verbs.statement_span(body))])
    if markdown.has_conflict_markers(text) or not statement:
        return None
    return Learned(document, notes.parse_note(document.path, data), data, statement, tuple(turns), approval)


def _order(fact: Learned) -> tuple[str, str, int, str]:
    first = fact.turns[0].turn if fact.turns else None
    return (fact.document.created or "", fact.document.session or "", first or 0, fact.document.path)


def _line(number: int, fact: Learned) -> str:
    """One line of JSON: no text can end its own line and begin a fact that is none."""
    note = fact.note
    said = [
        {"speaker": turn.speaker, "day": (turn.said_at or "")[:10], "text": turn.text[:_MOST_CHARACTERS]}
        for turn in fact.turns[:_MOST_TURNS]
    ]
    about = {
        "n": number,
        "text": fact.statement,
        "category": note.type,
        "confidence": note.confidence,
        "speaker": note.speaker,
        "source": note.source,
        "told": (note.created or "")[:10],
        "valid_from": note.valid_from,
        "valid_until": note.valid_until,
        "said": said,
    }
    return json.dumps({key: value for key, value in about.items() if value}, ensure_ascii=False)


def _problems(value: Mapping[str, Any], asked: Mapping[int, Learned], owner: str) -> list[str]:
    """What the model could mend: numbers nobody gave, facts left out, rewordings that cannot be used."""
    found = folding.number_problems([verdict["n"] for verdict in value["verdicts"]], len(asked))
    for verdict in value["verdicts"]:
        fact = asked.get(verdict["n"])
        if fact is None or verdict["verdict"] != "rewrite":
            continue
        statement = judging.one_line(verdict.get("rewrite"))
        fault = _fault(statement, fact)
        invented = judging.unsaid(statement, [*fact.sources, owner])
        if fault:
            found.append(f"the rewrite of fact {verdict['n']} cannot be used: {fault}")
        elif invented:
            said = ", ".join(invented)
            found.append(f"the rewrite of fact {verdict['n']} says {said}, which neither the fact nor its turns say")
    return found[:_MOST_PROBLEMS]


def _fault(statement: str, fact: Learned) -> str:
    if len(statement) > max(SHORT_CHARACTERS, MOST_LONGER * len(fact.statement)):
        return f"it is more than {MOST_LONGER} times as long as the fact"
    return judging.fault_of(statement)


def _verdicts(answer: Answer, asked: Mapping[int, Learned]) -> dict[int, Mapping[str, Any]]:
    """The one verdict of each fact that has one.

    Raises:
        ModelAnswerError: that is no review: no fact has a verdict, or none of many may stand.
    """
    given = [verdict for verdict in answer.value["verdicts"] if verdict["n"] in asked]
    numbers = [verdict["n"] for verdict in given]
    verdicts = {verdict["n"]: verdict for verdict in given if numbers.count(verdict["n"]) == 1}
    raw = json.dumps(answer.value, ensure_ascii=False)
    if not verdicts:
        raise ModelAnswerError(answer.model, answer.prompt, "no fact has one verdict", raw)
    if len(asked) >= SUSPICIOUS and all(verdict["verdict"] == "reject" for verdict in verdicts.values()):
        raise ModelAnswerError(answer.model, answer.prompt, f"it rejects all of {len(asked)} facts", raw)
    return verdicts


def _judged(verdict: Mapping[str, Any], answer: Answer) -> Judged:
    rewrite = judging.one_line(verdict.get("rewrite"))
    return Judged(verdict["verdict"], verdict["reason"], rewrite, answer.model, answer.prompt)


def _decide(fact: Learned, judged: Judged, names: Sequence[tuple[str, str]], owner: str) -> Iterator[Decision]:
    """Nothing for a rewording that cannot be written: the fact stays as it is and waits for its owner."""
    if judged.says == "reject":
        yield _reject(fact, judged)
    elif judged.says == "approve" or name_key(judged.rewrite) == name_key(fact.statement):
        yield _approve(fact, judged)
    elif not _fault(judged.rewrite, fact):
        edit = _reworded(fact, judged.rewrite, names)
        if edit is not None:
            yield _rewrite(fact, judged, edit, owner)


def _approve(fact: Learned, judged: Judged) -> Decision:
    return Decision(
        task=TASK,
        kind="approve",
        key=fact.key,
        edits=(fact.approval,),
        subject=f"approve {judging.quote(fact.statement)}",
        why=judging.reason_of(judged.reason, "True to what was said, and worth keeping."),
        facts=(fact.document.id,),
        model=judged.model,
        prompt=judged.prompt,
        is_minor=True,
    )


def _reject(fact: Learned, judged: Judged) -> Decision:
    return Decision(
        task=TASK,
        kind="reject",
        key=fact.key,
        edits=(Edit(fact.document.path, fact.data, None),),
        subject=f"reject {judging.quote(fact.statement)}",
        why=judging.reason_of(judged.reason, "Not worth keeping."),
        facts=(fact.document.id,),
        model=judged.model,
        prompt=judged.prompt,
        detail="\n".join([fact.statement, *_rests_on(fact)]),
    )


def _rewrite(fact: Learned, judged: Judged, edit: Edit, owner: str) -> Decision:
    doubt = _doubt(judged.rewrite, fact, owner)
    why = judging.reason_of(judged.reason, "It says the same in words that stand alone.")
    return Decision(
        task=TASK,
        kind="rewrite",
        key=fact.key,
        edits=(edit,),
        subject=f"rewrite {judging.quote(fact.statement)}",
        why=f"{why} {doubt}".strip(),
        facts=(fact.document.id,),
        model=judged.model,
        prompt=judged.prompt,
        always_asks=bool(doubt),
        detail="\n".join([f"Before: {fact.statement}", "", f"After: {judged.rewrite}", *_rests_on(fact)]),
    )


def _doubt(statement: str, fact: Learned, owner: str) -> str:
    """What only the owner can know to be right about a rewording; empty where nothing is in doubt."""
    added = judging.unsaid(statement, [*fact.sources, owner])
    lost = judging.lost(statement, fact.statement)
    if added:
        return f"Nobody said {', '.join(added)}."
    if lost is not None:
        return f"It leaves out {lost}."
    differs = difference(statement, fact.statement)
    return {"negation": "It denies what was said.", "dates": "It changes a date."}.get(differs or "", "")


def _reworded(fact: Learned, statement: str, names: Sequence[tuple[str, str]]) -> Edit | None:
    """The edit, with the links that the old wording had and others that its names suggest; None if it does not read
    back as it should.
    """
    linked = {name_key(target) for target in fact.note.links}
    own = [pair for pair in names if name_key(pair[1]) in linked]
    taken = {name for name, _ in own}
    text = link_names(statement, [*own, *(pair for pair in names if pair[0] not in taken)])
    edit = verbs.rewrite(fact.document.path, fact.data, text, {"status": "approved"})
    after = notes.parse_note(fact.document.path, edit.after or b"")
    said = after.text == fact.note.text.replace(fact.statement, statement, 1) or after.text.startswith(statement)
    return edit if said and after.edges == fact.note.edges and after.id == fact.note.id else None


def _rests_on(fact: Learned) -> list[str]:
    said = [f"> {turn.speaker or 'Somebody'}: {judging.one_line(turn.text)[:_MOST_CHARACTERS]}" for turn in fact.turns]
    return ["", *said[:_MOST_TURNS]] if said else []
