"""Review: the deep model reads new facts and approves, rewords or rejects each; then approved facts become active.

A rewording is carried out if everything in it that can be checked was stated before. If it adds or drops a number or a
name, or turns a claim around, it becomes a question to the owner.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from quaid.capture.facts import render_statement
from quaid.claims import Reading, difference
from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.janitor import fact_edits, model_text
from quaid.janitor.judging import Judgement, ModelQuestion, numbered_lines, read_judgements, set_aside_keys
from quaid.janitor.model_text import without_empty
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer
from quaid.llm.prices import estimate_tokens
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, Note, name_key
from quaid.recall.scoring import days_since
from quaid.text.quoting import neutralise
from quaid.text.relative_dates import with_dates
from quaid.text.stop_words import STOP_WORDS
from quaid.vault import headings, markdown, notes

TASK = "review"
MAX_TIMES_LONGER = 3
"""The maximum length of a rewording, in lengths of the fact."""
SHORT_CHARACTERS = 120
"""A rewording of this length is never too long: a fact that leans on its turns can be very short."""
SUSPICIOUS = 10
"""An answer that rejects all of this many facts is refused."""
MIN_CONFIDENCE = 0.7
"""What the owner stated needs no review from this confidence on."""
MIN_WAIT_DAYS, MAX_WAIT_DAYS = 1.0, 30.0
"""A fact that no model reviews waits this long at least, and needs no other reason after the second."""
_KINDS = ("approve", "rewrite", "reject")
SURE = 0.9
"""From this confidence on, a fact that stands alone and has only what its turns say needs no review."""
_REASONS = {
    "approve": "True to what was said, and worth keeping.",
    "reject": "Not worth keeping.",
    "rewrite": "It says the same in words that stand alone.",
}
MAX_TURNS = 4
PASSAGE = 500
"""Characters of a turn that are shown: of a longer one, the sentences that the facts are about."""
MAX_QUOTED = 400
_LEANING = re.compile(
    r"(?i)^(?:he|she|it|they|there)\b|"
    r"\b(?:that|this|these|those|just|here|now|today|currently|recently|still|again|the best)\b"
)
"""Words by which a fact leans on what was said around it, or on its moment."""
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?\n]+|$)")
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AGE = re.compile(r"(?i)\b(?:turn(?:ed|s|ing)?|aged?|am|i'm|is|he's|she's|was) (\d{1,2})\b")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_SMALL_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3})(?![\d.,]?\d)(?:[ -][^\W\d]+)?")
_UNITS = {"day": 1, "week": 7}
_OLDEST = 130
Turn = tuple[int, int | None]
"""The document and number of a turn."""


class PendingFact(NamedTuple):
    """A fact without a review: its note on disk, its statement, the turns it cites, and the edit that approves it."""

    document: Document
    note: Note
    data: bytes
    statement: str
    turns: tuple[Document, ...]
    approval: Edit

    def key(self, task: str) -> str:
        """Return the key of a judgement of it by `task`."""
        return evidence_key(task, self.note.content_hash, *(turn.text for turn in self.turns))

    @property
    def learned(self) -> tuple[str, str, int, str]:
        """A sort key: facts in the order in which they were learned."""
        first = self.turns[0].turn if self.turns else None
        return self.document.created or "", self.document.session or "", first or 0, self.document.path

    @property
    def sources(self) -> list[str]:
        """The texts that a rewording may take names and numbers from: the turns, and what follows from them."""
        note = self.note
        stated = [turn.said_at or note.created for turn in self.turns] or [note.created]
        moments = [moment for day in stated if (moment := notes.parse_time(day))]
        days = [f"{moment:%A}, {_format_date(moment)}" for moment in moments]
        turns = [with_dates(turn.text, notes.parse_time(turn.said_at)) for turn in self.turns]
        texts = [note.text, *(turn.text for turn in self.turns)]
        days += [day for moment in moments for text in texts for day in _compute_days(text, moment)]
        speakers = [turn.turn_speaker or "" for turn in self.turns]
        ends = [name for edge in note.edges for name in (edge.subject, edge.object)]
        period = [notes.format_day(day) for day in (note.valid_from, note.valid_until) if day]
        return [note.text, *days, *turns, *speakers, *ends, *period, *note.keywords, note.speaker or ""]

    def is_doubtful(self, owner: str) -> bool:
        """Return whether a model reviews it: it is uncertain, passing, no person's word, gives orders, leans on what
        is around it, or has a number or name that neither its turns nor its `owner` have.
        """
        document = self.document
        is_sure = self.note.source == "user" and (document.confidence or 0.0) >= SURE and bool(self.turns)
        return (
            not is_sure
            or document.durability == "contextual"
            or _LEANING.search(self.statement) is not None
            or neutralise(self.statement) != self.statement
            or bool(model_text.find_unsupported(self.statement, [*self.sources, owner][1:]))
        )

    @property
    def quoted_turns(self) -> list[str]:
        """Lines that show its owner the turns it cites."""
        turns = [(turn.turn_speaker or "Somebody", headings.one_line(turn.text)) for turn in self.turns[:MAX_TURNS]]
        return ["", *(f"> {speaker}: {text[:MAX_QUOTED]}" for speaker, text in turns)] if turns else []

    @property
    def whole_turns(self) -> dict[Turn, Document]:
        """The first turns that it cites, each whole, though the index may have it in pieces."""
        found: dict[Turn, Document] = {}
        for piece in self.turns:
            turn = (piece.doc_id, piece.turn)
            found[turn] = found[turn]._replace(text=f"{found[turn].text} {piece.text}") if turn in found else piece
        return dict(list(found.items())[:MAX_TURNS])

    def show(self, numbers: Mapping[Turn, int]) -> dict[str, Any]:
        """Return the fields that a model sees; `numbers` are those of the turns."""
        note = self.note
        return without_empty(
            {
                "text": self.statement,
                "category": note.type,
                "confidence": note.confidence,
                "source": note.source if note.source != "user" else None,
                "told": (note.created or "")[:10] if not self.turns else None,
                "speaker": note.speaker if not self.turns else None,
                "from": note.valid_from,
                "until": note.valid_until,
                "edges": [f"{edge.subject} {edge.relation} {edge.object}" for edge in note.edges],
                "said": [numbers[turn] for turn in self.whole_turns],
            }
        )


def show_turns(facts: Sequence[PendingFact]) -> tuple[list[dict[str, Any]], dict[Turn, int]]:
    """Return the turns that `facts` cite, each once and cut to what they say, and their numbers."""
    cited: dict[Turn, Document] = {}
    words: dict[Turn, set[str]] = {}
    for fact in facts:
        for turn, candidate in fact.whole_turns.items():
            cited[turn] = candidate
            words.setdefault(turn, set()).update(Reading(fact.statement).words - STOP_WORDS)
    numbers = {turn: number for number, turn in enumerate(cited, 1)}
    shown = []
    for turn, number in numbers.items():
        text = _passage(cited[turn].text, words[turn])
        moment = notes.parse_time(cited[turn].said_at)
        day = f"{moment:%a %Y-%m-%d}" if moment else ""
        shown.append(without_empty({"t": number, "speaker": cited[turn].turn_speaker, "day": day, "text": text}))
    return shown, numbers


def estimate_sizes(facts: Sequence[PendingFact]) -> dict[int, int]:
    """Return the tokens that each fact takes, by document, with its share of the turns that others cite too."""
    cited = Counter(turn for fact in facts for turn in fact.whole_turns)
    return {
        fact.document.doc_id: estimate_tokens(str(fact.show(cited)))
        + sum((estimate_tokens(text.text[:PASSAGE]) + 20) // cited[turn] for turn, text in fact.whole_turns.items())
        for fact in facts
    }


def _passage(text: str, wanted: set[str]) -> str:
    """Return `text`; of a longer one the sentences that have most of the words, in their order, with … for gaps."""
    if len(text) <= PASSAGE:
        return text
    sentences = [found[0][:PASSAGE] for found in _SENTENCE.finditer(text) if found[0].strip()]
    by_words = sorted(enumerate(sentences), key=lambda item: -len(wanted & Reading(item[1]).words))
    chosen: set[int] = set()
    for place, sentence in by_words:
        if sum(len(sentences[other]) for other in chosen) + len(sentence) <= PASSAGE:
            chosen.add(place)
    parts = [
        ("… " if place and place - 1 not in chosen else "") + sentence.strip()
        for place, sentence in enumerate(sentences)
        if place in chosen
    ]
    return " ".join(parts) + (" …" if len(sentences) - 1 not in chosen else "")


def _compute_days(text: str, stated: datetime) -> Iterator[str]:
    """Yield days and years that follow from `text` and its day: `in ten days`, `for seven years`, `I am 34`."""
    reading = Reading(text)
    for number, unit in reading.numbers:
        if not number.isdecimal() or not 0 < int(number) <= _OLDEST:
            continue
        count = int(number)
        for sign in (-1, 1) if unit in _UNITS else ():
            yield _format_date(stated + timedelta(days=sign * count * _UNITS[unit]))
        if unit == "month":
            months = (stated.year * 12 + stated.month - 1 + sign * count for sign in (-1, 1))
            yield from (f"{datetime(month // 12, month % 12 + 1, 1):%B %Y}" for month in months)  # noqa: DTZ001
        if unit == "year":
            yield str(stated.year + count)
        if unit not in {*_UNITS, "month"}:  # in other languages the words around an age are not known
            yield f"{stated.year - count} {stated.year - count - 1}"
    for age in map(int, _AGE.findall(text)):
        yield f"{stated.year - age} {stated.year - age - 1}"  # before the birthday the year before
    for weekday in reading.words.intersection(_WEEKDAYS):
        ahead = (_WEEKDAYS.index(weekday) - stated.weekday()) % 7
        yield from (_format_date(stated + timedelta(days=ahead + shift)) for shift in (-14, -7, 0, 7, 14))


def without_dated_ages(fact: PendingFact, statement: str) -> str:
    """Return the statement of `fact` without the ages and spans of years whose first year `statement` has."""
    stated = [fact.note.created, *(turn.said_at for turn in fact.turns)]
    years = {moment.year for day in stated if (moment := notes.parse_time(day))}
    named = set(map(int, _YEAR.findall(statement)))

    def is_dated(number: re.Match[str]) -> bool:
        return not named.isdisjoint(year - int(number[1]) - before for year in years for before in (0, 1))

    return _SMALL_NUMBER.sub(lambda number: "" if is_dated(number) else number[0], fact.statement)


def _format_date(day: datetime) -> str:
    return f"{day.day} {day:%B %Y} {day:%Y-%m-%d}"


# -- reviewing ---------------------------------------------------------------------------------------------------------


class _Review(ModelQuestion[PendingFact]):
    prompt = TASK
    bare = ("approve", {"verdict": "approve"})
    input_tokens = 12_000
    output_tokens = 150
    needs_any = True

    def __init__(self, context: TaskContext, facts: Sequence[PendingFact]) -> None:
        super().__init__(context)
        self._sizes = estimate_sizes(facts)

    def label(self, item: PendingFact) -> str:
        return item.statement

    def size(self, item: PendingFact) -> int:
        return self._sizes[item.document.doc_id]

    def inputs(self, batch: Sequence[PendingFact]) -> dict[str, str]:
        turns, numbers = show_turns(batch)
        return {
            "turns": "\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns),
            "facts": numbered_lines(fact.show(numbers) for fact in batch),
        }

    def find_problems(self, item: PendingFact, given: Mapping[str, Any]) -> Iterator[str]:
        edges = len(item.note.edges)
        if any(number > edges for number in given.get("reject_edges") or ()):
            yield f"rejects an edge that is not there: it has {edges}"
        if given["verdict"] != "rewrite":
            return
        statement = headings.one_line(given.get("rewrite") or "")
        if problem := _find_rewrite_problem(statement, item):
            yield f"has a rewrite that cannot be used: {problem}"
        elif invented := model_text.find_unsupported(statement, [*item.sources, _owner(self.context)]):
            yield f"has a rewrite that says {', '.join(invented)}, which neither the fact nor its turns say"

    def find_carelessness(self, batch: Sequence[PendingFact], given: Sequence[Mapping[str, Any]]) -> str:
        rejects_all = len(given) >= SUSPICIOUS and all(item["verdict"] == "reject" for item in given)
        return f"it rejects all of {len(batch)} facts" if rejects_all else ""

    def read(self, item: PendingFact, given: Mapping[str, Any], answer: Answer) -> Judgement:
        return Judgement(
            given["verdict"],
            given.get("reason") or "",
            headings.one_line(given.get("rewrite") or ""),
            reject_edges=[number for number in given.get("reject_edges") or () if number <= len(item.note.edges)],
            model=answer.model,
            prompt=answer.prompt,
        )


def plan_review(context: TaskContext) -> Iterator[Decision]:
    """Yield decisions on the pending facts: first the stored judgements that were not carried out, then new ones,
    oldest fact first.
    """
    pending = list_pending(context) if context.models is not None else []
    if not pending:
        return
    names = graph.entity_names(context.index)
    facts = {fact.key(TASK): fact for fact in pending}
    refused = facts.keys() & context.vetoed
    stored = read_judgements(context, refused)
    for key in [key for key in facts if key in refused]:
        fact, judgement = facts.pop(key), stored.get(key)
        # Its owner refused or undid a change of it: they want it as it is.
        if judgement is not None and judgement.says in {"rewrite", "reject"}:
            kept_key, about = evidence_key(TASK, "kept", key), (fact.document.id,)
            subject, why = f"approve {model_text.quote(fact.statement)}", f"You did not want to {judgement.says} it."
            yield Decision(TASK, "approve", kept_key, (fact.approval,), subject, why, about, is_minor=True)
    stored = read_judgements(context, facts)
    clear = {key for key, fact in facts.items() if key not in stored and not fact.is_doubtful(_owner(context))}
    asked = {key: fact for key, fact in facts.items() if key not in clear}
    judged = _Review(context, list(asked.values())).judge(asked)
    for key, judgement in (*((key, Judgement("approve")) for key in facts if key in clear), *judged):
        decision = _decide(context, facts[key], judgement, names)
        if decision is not None:
            yield decision


def plan_graduate(context: TaskContext) -> Iterator[Decision]:
    """Yield a decision to make active each fact that is approved, or good enough without a review: none stays pending
    forever.
    """
    aside = set_aside_keys(context) if context.models is not None else set()
    unreviewed = {fact.document.id for fact in list_pending(context) if fact.key(TASK) in aside} if aside else set()
    statuses = ["approved", "pending"] if context.models is None or unreviewed else ["approved"]
    for document in documents.find_documents(
        context.index,
        "kind = 'fact' AND status IN (SELECT value FROM json_each(?)) AND superseded_by IS NULL AND NOT pinned "
        "AND NOT verified",
        (json.dumps(statuses),),
    ):
        data, text = context.read(document.path), documents.text_of(context.index, document.doc_id)
        why = _find_graduation_reason(document, text, context.now)
        is_left_to_review = document.status == "pending" and context.models is not None
        if data is None or not why or (is_left_to_review and document.id not in unreviewed):
            continue
        try:
            edit = fact_edits.set_fields(document.path, data, {"status": "active"})
        except fact_edits.UNSAFE:
            continue  # `quaid doctor` names it
        key, subject = evidence_key("graduate", document.content_hash), f"activate {model_text.quote(text)}"
        doubt = context.doubts.get(document.path, "")
        decision = Decision("graduate", "graduate", key, (edit,), subject, why, (document.id,), detail=doubt)
        yield replace(decision, is_minor=True, always_asks=document.path in context.doubts)


def _find_graduation_reason(fact: Document, text: str, now: datetime) -> str:
    """Return why a fact becomes active; empty where it has to wait."""
    if fact.status == "approved":
        return "A review has approved it."
    age = days_since(fact.created, now)
    # A text that gives orders to its reader waits for a person.
    if age is None or age < MIN_WAIT_DAYS or neutralise(text) != text:
        return ""
    if fact.confirmations:
        return "It was said more than once, and no model reviews it."
    if fact.source == "user" and (fact.confidence or 0.0) >= MIN_CONFIDENCE:
        return "Its owner said it, and no model reviews it."
    return f"It has waited {age:.0f} days, and no model reviews it." if age >= MAX_WAIT_DAYS else ""


def list_pending(context: TaskContext) -> list[PendingFact]:
    """Return the pending facts that their owner is not asked about, in the order they were learned.

    Facts that cannot be edited safely are left out; `quaid doctor` names them.
    """
    found = context.find_facts("status = 'pending' AND NOT pinned AND NOT verified")
    cited = graph.cited_turns(context.index, [document.doc_id for document in found])
    chunks = documents.fetch_candidates(context.index, {chunk_id for _, chunk_id in cited})
    turns: dict[int, list[Document]] = {}
    for doc_id, chunk_id in sorted(set(cited)):
        if chunk_id in chunks:
            turns.setdefault(doc_id, []).append(chunks[chunk_id])
    pending: list[PendingFact] = []
    for document in found:
        data = context.read(document.path)
        if data is None:
            continue
        # A note changes once per run: a fact that is good as it is becomes active at once.
        try:
            approval = fact_edits.set_fields(document.path, data, {"status": "active"})
        except fact_edits.UNSAFE:
            continue
        text = data.decode("utf-8")
        body = notes.split_body(text)[1]
        statement = model_text.plain_line(body[slice(*fact_edits.statement_span(body))])
        if statement and not markdown.has_conflict_markers(text):
            note, own = notes.parse_fact(document.path, data), tuple(turns.get(document.doc_id, ()))
            pending.append(PendingFact(document, note, data, statement, own, approval))
    left = (fact for fact in pending if not context.is_asked(fact.key(TASK), _KINDS))
    return sorted(left, key=lambda fact: fact.learned)


def _owner(context: TaskContext) -> str:
    return context.settings.owner_name or context.settings.owner


def _find_rewrite_problem(statement: str, fact: PendingFact) -> str:
    if len(statement) > max(SHORT_CHARACTERS, MAX_TIMES_LONGER * len(fact.statement)):
        return f"it is more than {MAX_TIMES_LONGER} times as long as the fact"
    return model_text.statement_problem(statement, fact.statement)


def _decide(
    context: TaskContext, fact: PendingFact, judgement: Judgement, names: Sequence[tuple[str, str]]
) -> Decision | None:
    """Return the decision; None for a rewording that cannot be written: the fact stays pending for its owner."""
    is_same = name_key(judgement.text) == name_key(fact.statement)
    kind = "approve" if judgement.says == "rewrite" and is_same else judgement.says
    path, detail = fact.document.path, "\n".join([fact.statement, *fact.quoted_turns])
    subject = f"{kind} {model_text.quote(fact.statement)}"
    why = model_text.clean_reason(judgement.reason, _REASONS[kind])
    by = judgement.model, judgement.prompt
    decision = Decision(TASK, kind, fact.key(TASK), (fact.approval,), subject, why, (fact.document.id,), *by)
    dropped = [fact.note.edges[number - 1] for number in sorted(set(judgement.reject_edges))]
    if kind == "approve":
        if not dropped:
            return replace(decision, is_minor=True)
        edit = fact_edits.remove_edges(path, fact.approval.after or b"", dropped)
        named = [f"{edge.subject} {edge.relation} {edge.object}" for edge in dropped]
        return replace(
            decision,
            edits=(Edit(path, fact.data, edit.after),),
            subject=f"{decision.subject} without {', '.join(named)}",
            why=model_text.clean_reason(judgement.reason, "That was not said."),
            detail=detail,
        )
    if kind == "reject":
        return replace(decision, edits=(Edit(path, fact.data, None),), detail=detail)
    reworded = None if _find_rewrite_problem(judgement.text, fact) else _reword(fact, judgement.text, names)
    if reworded is None:
        return None
    edit = fact_edits.remove_edges(path, reworded.after or b"", dropped)
    doubt = _find_doubt(judgement.text, fact, _owner(context))
    return replace(
        decision,
        edits=(Edit(path, fact.data, edit.after),),
        why=f"{decision.why} {doubt}".strip(),
        always_asks=bool(doubt),
        detail="\n".join([model_text.show_change([fact.statement], [judgement.text]), *fact.quoted_turns]),
    )


def _find_doubt(statement: str, fact: PendingFact, owner: str) -> str:
    """Return the doubt about a rewording that only the owner can settle; empty where there is none."""
    if added := model_text.find_unsupported(statement, [*fact.sources, owner]):
        return f"Nobody said {', '.join(added)}."
    missing = model_text.find_missing(statement, without_dated_ages(fact, statement))
    if missing is not None:
        return f"It leaves out {missing}."
    differs = difference(statement, fact.statement)
    return {"negation": "It denies what was said.", "dates": "It changes a date."}.get(differs or "", "")


def _reword(fact: PendingFact, statement: str, names: Sequence[tuple[str, str]]) -> Edit | None:
    """Return the edit, with the links of the old wording and those that the new names suggest; None if it does not read
    back as it should.
    """
    linked = {name_key(target) for target in fact.note.links}
    own = [pair for pair in names if name_key(pair[1]) in linked]
    taken = {name for name, _ in own}
    text = render_statement(statement, [*own, *(pair for pair in names if pair[0] not in taken)])
    status = notes.parse_fact(fact.document.path, fact.approval.after or b"").status
    edit = fact_edits.rewrite(fact.document.path, fact.data, text, {"status": status})
    after = notes.parse_fact(fact.document.path, edit.after or b"")
    is_as_meant = after.text == fact.note.text.replace(fact.statement, statement, 1) or after.text.startswith(statement)
    return edit if is_as_meant and after.edges == fact.note.edges and after.id == fact.note.id else None
