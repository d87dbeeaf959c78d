"""Review: the deep model reads what was learned lately and approves, rewords or rejects each fact.

A rewording is carried out where all that can be checked in it was said before. Where it says or leaves out a number or
a name, or turns a claim around, it is a question to the owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from quaid.capture.fact_note import render_statement
from quaid.claims import difference
from quaid.errors import ModelAnswerError
from quaid.index import documents, graph
from quaid.index.documents import Candidate, Document
from quaid.janitor import fact_edits, model_text
from quaid.janitor.decision import Decision
from quaid.janitor.judgements import JsonJudgement, known_judgements
from quaid.janitor.model_questions import ask, by_number, judge_all, list_refused, number_problems, numbered_lines
from quaid.janitor.pending_facts import PendingFact, estimate_size, show_turns, without_dated_ages
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import ItemProblem
from quaid.local.runs import evidence_key
from quaid.model import Edit, name_key
from quaid.vault import headings, markdown, notes
from quaid.vault.frontmatter import FrontmatterBrokenError

TASK = PROMPT = "review"
INPUT_TOKENS = 12_000
"""The size of one question: a model that reads more at once reads less carefully."""
TOKENS_PER_ANSWER = 150
MAX_TIMES_LONGER = 3
"""The maximum length of a rewording, in lengths of the fact."""
SHORT_CHARACTERS = 120
"""Such a sentence is never too long: what leans on its turns can be very short."""
SUSPICIOUS = 10
"""An answer that rejects all of this many facts is refused."""
_KINDS = ("approve", "rewrite", "reject")
_MAX_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class ReviewJudgement(JsonJudgement):
    """A model's judgement of a fact: `says` is `approve`, `rewrite` or `reject`; `rewrite` is the statement in its
    words, empty where it has none; `reject_edges` are numbers, from 1, of edges that were not said.
    """

    says: str
    reason: str
    rewrite: str
    model: str
    prompt: str
    reject_edges: Sequence[int] = ()


def plan(context: TaskContext) -> Iterator[Decision]:
    """Decisions about the facts that wait: first what was judged before and not carried out, then the oldest first."""
    waiting = list_waiting(context) if context.models is not None else []
    if not waiting:
        return
    names = graph.entity_names(context.index)
    owner = context.settings.owner_name or context.settings.owner
    kept = known_judgements(context, [fact.key(TASK) for fact in waiting], ReviewJudgement.parse)
    refused = {fact.key(TASK) for fact in waiting if fact.key(TASK) in context.vetoed}
    for fact in waiting:
        key = fact.key(TASK)
        if key in refused:
            yield from _keep(fact, kept.get(key))
        elif key in kept:
            yield from _decide(fact, kept[key], names, owner)
    new = {fact.key(TASK): fact for fact in waiting if fact.key(TASK) not in {*kept, *refused}}
    size = estimate_size(list(new.values()))
    for judged in judge_all(
        context,
        PROMPT,
        new,
        lambda batch: _judge(context, batch, owner),
        lambda fact: size[fact.document.doc_id],
        lambda fact: fact.statement,
        input_limit=INPUT_TOKENS,
        output_per_item=TOKENS_PER_ANSWER,
    ):
        context.judgements.add(TASK, {fact.key(TASK): judgement.render() for fact, judgement in judged})
        for fact, judgement in judged:
            yield from _decide(fact, judgement, names, owner)


def list_waiting(context: TaskContext) -> list[PendingFact]:
    """The pending facts that their owner is not asked about, in the order they were learned.

    Those that cannot be edited safely are left out; `quaid doctor` names them.
    """
    found = documents.find_documents(
        context.index,
        "kind = 'fact' AND status = 'pending' AND superseded_by IS NULL AND NOT pinned AND NOT verified",
    )
    cited = graph.cited_turns(context.index, [document.doc_id for document in found])
    said = documents.fetch_candidates(context.index, {chunk_id for _, chunk_id in cited})
    turns: dict[int, list[Candidate]] = {}
    for doc_id, chunk_id in sorted(set(cited)):
        if chunk_id in said:
            turns.setdefault(doc_id, []).append(said[chunk_id])
    waiting: list[tuple[tuple[str, str, int, str], PendingFact]] = []
    for document in found:
        fact = _read(context, document, tuple(turns.get(document.doc_id, ())))
        key = fact.key(TASK) if fact is not None else ""
        if fact is not None and not context.is_asked(key, _KINDS):
            first = fact.turns[0].turn if fact.turns else None
            learned = (document.created or "", document.session or "", first or 0, document.path)
            waiting.append((learned, fact))
    return [fact for _, fact in sorted(waiting, key=lambda item: item[0])]


def _read(context: TaskContext, document: Document, turns: tuple[Candidate, ...]) -> PendingFact | None:
    """None for a note that cannot be edited safely."""
    data = context.read(document.path)
    if data is None:
        return None
    # A note changes once a night: where nobody is asked about it, a fact that is good as it is becomes active at once.
    status = "active" if context.settings.janitor.policies.graduate == "auto" else "approved"
    try:
        approval = fact_edits.set_status(document.path, data, status)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    text = data.decode("utf-8")
    body = notes.split_body(text)[1]
    statement = model_text.plain_line(body[slice(*fact_edits.statement_span(body))])
    if markdown.has_conflict_markers(text) or not statement:
        return None
    return PendingFact(document, notes.parse_fact(document.path, data), data, statement, turns, approval)


def _judge(context: TaskContext, batch: Sequence[PendingFact], owner: str) -> list[tuple[PendingFact, ReviewJudgement]]:
    """The model's judgement of each fact that it has judged once.

    Raises:
        ModelAnswerError: it is not a review: no fact has one judgement, or it rejects all of many.
    """

    def check(value: Mapping[str, Any]) -> list[str | ItemProblem]:
        problems = number_problems(value, "verdicts", len(batch), bare="approve")
        for place, item in enumerate(value["verdicts"]):
            if item["n"] > len(batch):
                continue
            edges = len(batch[item["n"] - 1].note.edges)
            if any(number > edges for number in item.get("reject_edges") or ()):
                problems.append(ItemProblem("verdicts", place, f"rejects an edge that is not there: it has {edges}"))
            if item["verdict"] != "rewrite":
                continue
            fact, statement = batch[item["n"] - 1], headings.one_line(item.get("rewrite") or "")
            problem = _rewrite_problem(statement, fact)
            invented = model_text.find_unsupported(statement, [*fact.sources, owner])
            if problem:
                problems.append(ItemProblem("verdicts", place, f"has a rewrite that cannot be used: {problem}"))
            elif invented:
                said = f"has a rewrite that says {', '.join(invented)}, which neither the fact nor its turns say"
                problems.append(ItemProblem("verdicts", place, said))
        return problems[:_MAX_PROBLEMS]

    turns, numbers = show_turns(batch)
    inputs = {
        "refused": list_refused(context),
        "turns": "\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns),
        "facts": numbered_lines(fact.shown(numbers) for fact in batch),
    }
    answer = ask(context, PROMPT, inputs, check)
    items = [*answer.value["verdicts"], *({"n": n, "verdict": "approve"} for n in answer.value["approve"])]
    judged = [
        (
            fact,
            ReviewJudgement(
                item["verdict"],
                item.get("reason") or "",
                headings.one_line(item.get("rewrite") or ""),
                answer.model,
                answer.prompt,
                [number for number in item.get("reject_edges") or () if number <= len(fact.note.edges)],
            ),
        )
        for fact, item in by_number(sorted(items, key=itemgetter("n")), batch)
    ]
    raw = json.dumps(answer.value, ensure_ascii=False)
    if not judged:
        raise ModelAnswerError(answer.model, answer.prompt, "no fact has one judgement", raw)
    if len(batch) >= SUSPICIOUS and all(judgement.says == "reject" for _, judgement in judged):
        raise model_text.CarelessAnswerError(answer.model, answer.prompt, f"it rejects all of {len(batch)} facts", raw)
    return judged


def _rewrite_problem(statement: str, fact: PendingFact) -> str:
    if len(statement) > max(SHORT_CHARACTERS, MAX_TIMES_LONGER * len(fact.statement)):
        return f"it is more than {MAX_TIMES_LONGER} times as long as the fact"
    return model_text.statement_problem(statement, fact.statement)


def _keep(fact: PendingFact, judgement: ReviewJudgement | None) -> Iterator[Decision]:
    """Yield the approval of a fact that its owner wants as it is: they refused or took back a change of it."""
    if judgement is not None and judgement.says in {"rewrite", "reject"}:
        yield Decision(
            task=TASK,
            kind="approve",
            key=evidence_key(TASK, "kept", fact.key(TASK)),
            edits=(fact.approval,),
            subject=f"approve {model_text.quote(fact.statement)}",
            why=f"You did not want to {judgement.says} it.",
            facts=(fact.document.id,),
            is_minor=True,
        )


def _decide(
    fact: PendingFact, judgement: ReviewJudgement, names: Sequence[tuple[str, str]], owner: str
) -> Iterator[Decision]:
    """Yield the decision; none for a rewording that cannot be written: the fact stays and waits for its owner."""
    is_same = name_key(judgement.rewrite) == name_key(fact.statement)
    kind = "approve" if judgement.says == "rewrite" and is_same else judgement.says
    reasons = {
        "approve": "True to what was said, and worth keeping.",
        "reject": "Not worth keeping.",
        "rewrite": "It says the same in words that stand alone.",
    }
    decision = Decision(
        task=TASK,
        kind=kind,
        key=fact.key(TASK),
        edits=(fact.approval,),
        subject=f"{kind} {model_text.quote(fact.statement)}",
        why=model_text.clean_reason(judgement.reason, reasons[kind]),
        facts=(fact.document.id,),
        model=judgement.model,
        prompt=judgement.prompt,
        is_minor=kind == "approve",
    )
    dropped = [fact.note.edges[number - 1] for number in sorted(set(judgement.reject_edges))]
    if kind == "approve" and dropped:
        edit = fact_edits.remove_edges(fact.document.path, fact.approval.after or b"", dropped)
        told = [f"{edge.subject} {edge.relation} {edge.object}" for edge in dropped]
        yield replace(
            decision,
            edits=(Edit(edit.rel_path, fact.data, edit.after),),
            subject=f"{decision.subject} without {', '.join(told)}",
            why=model_text.clean_reason(judgement.reason, "That was not said."),
            is_minor=False,
            detail="\n".join([fact.statement, *fact.quoted_turns]),
        )
    elif kind == "approve":
        yield decision
    elif kind == "reject":
        removal = Edit(fact.document.path, fact.data, None)
        yield replace(decision, edits=(removal,), detail="\n".join([fact.statement, *fact.quoted_turns]))
    elif not _rewrite_problem(judgement.rewrite, fact):
        reworded = _reword(fact, judgement.rewrite, names)
        if reworded is None:
            return
        removed = fact_edits.remove_edges(reworded.rel_path, reworded.after or b"", dropped)
        edit = Edit(removed.rel_path, fact.data, removed.after)
        doubt = _doubt(judgement.rewrite, fact, owner)
        yield replace(
            decision,
            edits=(edit,),
            why=f"{decision.why} {doubt}".strip(),
            always_asks=bool(doubt),
            detail="\n".join([model_text.show_change([fact.statement], [judgement.rewrite]), *fact.quoted_turns]),
        )


def _doubt(statement: str, fact: PendingFact, owner: str) -> str:
    """The doubt about a rewording that only the owner can settle; empty where there is none."""
    added = model_text.find_unsupported(statement, [*fact.sources, owner])
    if added:
        return f"Nobody said {', '.join(added)}."
    missing = model_text.find_missing(statement, without_dated_ages(fact, statement))
    if missing is not None:
        return f"It leaves out {missing}."
    differs = difference(statement, fact.statement)
    return {"negation": "It denies what was said.", "dates": "It changes a date."}.get(differs or "", "")


def _reword(fact: PendingFact, statement: str, names: Sequence[tuple[str, str]]) -> Edit | None:
    """The edit, with the links that the old wording had and others that its names suggest; None if it does not read
    back as it should.
    """
    linked = {name_key(target) for target in fact.note.links}
    own = [pair for pair in names if name_key(pair[1]) in linked]
    taken = {name for name, _ in own}
    text = render_statement(statement, [*own, *(pair for pair in names if pair[0] not in taken)])
    status = notes.parse_fact(fact.document.path, fact.approval.after or b"").status
    edit = fact_edits.rewrite(fact.document.path, fact.data, text, {"status": status})
    after = notes.parse_fact(fact.document.path, edit.after or b"")
    said = after.text == fact.note.text.replace(fact.statement, statement, 1) or after.text.startswith(statement)
    return edit if said and after.edges == fact.note.edges and after.id == fact.note.id else None
