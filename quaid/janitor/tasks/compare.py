"""Compare facts, each pair once: facts that say the same become one, contradictions are left to `resolve`.

Facts with equal words are joined automatically, look-alikes if a model says so and no certain difference separates
them. Facts are paired when they are near in meaning, else in words. Some are always paired: two that are each other's
nearest, two that give one subject two objects of a relation that has one, or one entity two values or two days, and a
fact that has a day of one that was replaced. Facts of different owners never are; those of different projects are not
merged. A fact is compared when it is new or says something else than before, which the task that has compared it stores
with its judgements.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from quaid.capture.facts import render_statement, supersede
from quaid.claims import (
    Reading,
    difference,
    find_lost_detail,
    find_lost_words,
    is_about_others,
    list_values,
    normal_form,
    problem_of,
)
from quaid.config import own_names
from quaid.embed import open_embedder
from quaid.errors import QuaidError
from quaid.index import fulltext, graph, vectors
from quaid.index.documents import Document, find_documents, find_protected, list_living, list_replaced_by
from quaid.index.scope import Scope
from quaid.index.vectors import VectorMatrix
from quaid.janitor import fact_edits
from quaid.janitor.decision import CORRECT, fact_evidence
from quaid.janitor.judging import Judgement, ModelQuestion, numbered_lines, read_judgements, set_aside_keys
from quaid.janitor.model_text import MAX_REASON_CHARACTERS, read_change, show_change, statement_problem, without_empty
from quaid.janitor.questions import Question
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer, ItemProblem
from quaid.llm.prices import estimate_tokens
from quaid.local.claimed import OTHER_PERSON
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, note_name
from quaid.recall import contradictions
from quaid.recall.hits import whose_word
from quaid.settings import EmbeddingSettings
from quaid.text.dates import find_dates
from quaid.text.language import language
from quaid.text.stop_words import STOP_WORDS
from quaid.text.zones import order_key
from quaid.vault import headings, notes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TASK = "compare"
_ENDS = ("from", "until", "a_from", "a_until", "b_from", "b_until")
CONFLICTS = frozenset({"conflict", "update"})
"""What `resolve` decides."""
MAX_ASKED = 1_000
"""Pairs that one run puts to the model, the most alike first; the others are left for the next run."""
WORD_FOR_WORD = "They say the same, word for word."
_MAX_ROUNDS = 5
"""Three facts that are one take two rounds: the first two facts, then their merge and the third."""
_SHOWN = 60
NEAREST = 3
"""The neighbours of a fact to compare it with. On conv-26 they hold all 14 pairs that a model called duplicates."""
MARGIN = 0.35
"""Look-alikes may be this much less alike than an embedder's duplicates: real ones are worded quite otherwise."""
NEGATION_MARGIN = 0.55
"""The same where only one of the two denies something: `I cannot swim` and `I swam across the lake`."""
USUAL_SIMILARITY = 0.97
MIN_SHARED = 0.35
"""Without vectors: the share of a fact's own bm25 that its look-alike has."""
MAX_WORDS = 24
MAX_BY_WORDS = 2_000
"""Facts that are compared by words in one run: a question to FTS5 each. The others wait."""
MAX_ALIKE = 10
"""A model that gives this many pairs of a batch one verdict, all of them, has not compared them."""
_BLOCK, _ROUNDING = 512, 1e-6
_SPANS = frozenset({"day", "days", "week", "weeks", "month", "months"})
MAX_OF_ENTITY = 5
"""Facts of its entities that give other values or days, with which a fact is compared."""


@dataclass(frozen=True)
class Pair:
    """Two facts, the one that was learned first in front. `likeness` is 1 for equal words."""

    a: Document
    b: Document
    likeness: float
    is_required: bool = False
    """Whether they are compared however little they have in common."""

    @classmethod
    def of(cls, one: Document, other: Document, likeness: float, *, is_required: bool = False) -> Self:
        first, second = sorted((one, other), key=lambda fact: (order_key(fact.created), fact.id))
        return cls(first, second, likeness, is_required)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset((self.a.id, self.b.id))

    def key(self, task: str) -> str:
        """Return the key of a judgement of `task` on these two."""
        return evidence_key(task, fact_evidence(self.a), fact_evidence(self.b))

    @cached_property
    def may_clash(self) -> bool:
        """Return whether both may be true on one day, or the earlier one was not over when the later one was stated."""
        stated = (self.b.created or "9")[:10]
        return not any(
            one.valid_until and other.valid_from and one.valid_until[:10] < min(other.valid_from[:10], stated)
            for one, other in ((self.a, self.b), (self.b, self.a))
        )


def find_asked_pair(facts: Collection[Document], question: Question) -> Pair | None:
    """Return the two of `facts` that `question` asks to choose from; None when one is gone or has changed."""
    named = [fact for fact in facts if note_name(fact.path) in question.choices]
    pairs = (Pair.of(one, other, 1.0) for one, other in combinations(named, 2))
    return next((pair for pair in pairs if pair.key(question.task) == question.key), None)


def find_pair_keys(facts: Collection[Document], question: Question) -> list[str]:
    """Return the key of the judgement of the two of `facts` that `question` is about; none if it is about others."""
    named = [fact for fact in facts if note_name(fact.path) in question.about]
    is_of_pair = question.kind in {"merge", "supersede", CORRECT} and len(named) == 2
    return [Pair.of(named[0], named[1], 1.0).key(question.task)] if is_of_pair else []


class PairFinder:
    """Finds pairs among the living facts of an index, as they are when it is made."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._index = context.index
        self._row = vectors.active_embedder(context.index)
        self.facts = list_living(context.index)

    def not_compared(self, task: str) -> list[Document]:
        """Return the facts that `task` has not compared as they are now, as many as one run can compare, with those
        whose edges or days contradict each other now: a fact may get edges after it was compared, and a day may move.
        What the owner has undone is compared again, for another solution.
        """
        seen = days_compared(self._context, task, self.facts)
        pairs = {pair.key(task): pair for pair in (*self._all_opposed, *self._all_moved)}
        judged = self._context.judgements.known(list(pairs))
        again = {fact.id for key, pair in pairs.items() if key not in judged for fact in (pair.a, pair.b)}
        undone = {text for veto in self._context.vetoes for text in read_change(veto.body).get("before", ())}
        again |= {fact.id for fact in self.facts if headings.one_line(fact.text) in undone}
        new = [fact for fact in self.facts if fact.id not in seen or fact.id in again]
        return new if self._row is not None else new[:MAX_BY_WORDS]

    @cached_property
    def _all_opposed(self) -> list[Pair]:
        """The pairs that give one subject two objects of a relation that has one at a time."""
        found: list[Pair] = []
        for owner, facts in self._by_owner.items():
            by_document = {fact.doc_id: fact for fact in facts}
            scope = Scope().narrowed("d.superseded_by IS NULL AND d.owner = :owner", owner=owner)
            opposed = contradictions.list_opposed(self._index, by_document, scope)
            pairs = (both for both in sorted(opposed) if by_document.keys() >= {*both})
            found += (Pair.of(by_document[one], by_document[other], 0.0, is_required=True) for one, other in pairs)
        return [pair for pair in found if pair.may_clash]

    @cached_property
    def _all_moved(self) -> list[Pair]:
        """The pairs of a fact that has replaced another one, and one with a day of that other: if the day of the move
        has moved, so may have the end of the lease. Only days that were ahead when the newer one was stated.
        """
        by_name = {note_name(fact.path): fact for fact in self.facts}
        found: list[Pair] = []
        for old in find_documents(self._index, "kind = 'fact' AND superseded_by IS NOT NULL", with_text=True):
            winner = by_name.get(note_name(old.superseded_by or ""))
            if winner is None:
                continue
            days = {day for day in _list_days(old) - _list_days(winner) if day > (winner.created or "9")[:10]}
            others = (fact for fact in self._by_owner.get(old.owner, ()) if days and fact is not winner)
            dated = (fact for fact in others if not days.isdisjoint(_list_days(fact)))
            found += (Pair.of(winner, fact, 0.0, is_required=True) for fact in dated)
        return found

    @cached_property
    def _by_owner(self) -> dict[str, list[Document]]:
        found: dict[str, list[Document]] = {}
        for fact in self.facts:
            found.setdefault(fact.owner, []).append(fact)
        return found

    @cached_property
    def duplicate_similarity(self) -> float:
        """The cosine from which two facts say the same, with the model of the stored vectors."""
        if self._row is None:
            return USUAL_SIMILARITY
        try:
            embedder = open_embedder(EmbeddingSettings.of(self._row.settings))
        except (QuaidError, TypeError):  # its weights are gone, its vectors are not
            embedder = None
        return embedder.duplicate_similarity if embedder is not None else USUAL_SIMILARITY

    def pairs(self, new: Collection[Document]) -> list[Pair]:
        """Return the pairs of a fact of `new` with any other, each once, the most alike first."""
        wanted = {fact.id for fact in new}
        required = (pair for pair in (*self._all_opposed, *self._all_moved) if not wanted.isdisjoint(pair.ids))
        found = {pair.ids: pair for pair in required}
        for facts in self._by_owner.values():
            fresh = [fact for fact in facts if fact.id in wanted]
            if not fresh or len(facts) == 1:
                continue
            for pair in (*self._of_one_entity(fresh, facts), *self._look_alikes(fresh, facts)):
                known = found.get(pair.ids, pair)
                found[pair.ids] = replace(pair, is_required=pair.is_required or known.is_required)
        return sorted(found.values(), key=lambda pair: (-pair.likeness, pair.a.id, pair.b.id))

    def _of_one_entity(self, fresh: Sequence[Document], facts: Sequence[Document]) -> Iterator[Pair]:
        """Yield each of `fresh` with the facts of its entities that give other values or days, the closest few."""
        entities: dict[int, set[str]] = {}
        about: dict[str, list[Document]] = {}
        by_document = {fact.doc_id: fact for fact in facts}
        for doc_id, key in graph.list_mentions(self._index, by_document):
            entities.setdefault(doc_id, set()).add(key)
            about.setdefault(key, []).append(by_document[doc_id])
        for fact in fresh:
            own = entities.get(fact.doc_id, set())
            others = {other.id: other for key in own for other in about[key] if other is not fact}
            topic = _list_words(fact.text) - STOP_WORDS - {part for key in own for part in key.split()}
            shared = {other.id: len(topic & _list_words(other.text)) for other in others.values()}
            rivals = (
                other for other in others.values() if _give_other_values(fact, other, has_topic=shared[other.id] > 0)
            )
            for other in sorted(rivals, key=lambda each: (-shared[each.id], each.id))[:MAX_OF_ENTITY]:
                yield Pair.of(fact, other, 0.0, is_required=True)

    def _look_alikes(self, fresh: Sequence[Document], facts: Sequence[Document]) -> Iterator[Pair]:
        """Yield each of `fresh` with its nearest neighbours: by meaning where it has a vector, else by its words."""
        by_chunk = {fact.chunk_id: fact for fact in facts if fact.is_whole}
        fresh = [fact for fact in fresh if fact.is_whole]
        held: Sequence[int] = ()
        if self._row is not None:
            held, matrix = VectorMatrix().vectors(self._index, self._row, list(by_chunk))
            yield from self._near([by_chunk[chunk_id] for chunk_id in held], matrix, {fact.id for fact in fresh})
        embedded = set(held)
        for fact in (fact for fact in fresh if fact.chunk_id not in embedded):
            match = fulltext.match_any(fulltext.terms(fact.text, language(fact.text))[:MAX_WORDS])
            found = dict(fulltext.search(self._index, match, NEAREST + 1, by_chunk))
            own = found.pop(fact.chunk_id, 0.0)
            for chunk_id, score in found.items():
                if own > 0 and score >= MIN_SHARED * own:
                    yield Pair.of(fact, by_chunk[chunk_id], round(min(1.0, score / own), 4))

    def _near(
        self, facts: Sequence[Document], matrix: "npt.NDArray[np.float32]", wanted: Collection[str]
    ) -> Iterator[Pair]:
        """Yield those of `facts` with the ids `wanted`, each with its nearest neighbours by their vectors, `matrix`.
        Whether a neighbour is near enough does not matter if it has none that is nearer.
        """
        import numpy as np

        rows = [place for place, fact in enumerate(facts) if fact.id in wanted]
        count = min(NEAREST, len(facts) - 1)
        least = self.duplicate_similarity - np.array([MARGIN, NEGATION_MARGIN])
        denies = np.array([Reading(fact.text).negations > 0 for fact in facts])
        for block in (rows[start : start + _BLOCK] for start in range(0, len(rows) if count > 0 else 0, _BLOCK)):
            cosines = matrix[block] @ matrix.T
            cosines[np.arange(len(block)), block] = -2.0
            nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            first = cosines.argmax(axis=1)
            back = matrix[first] @ matrix.T
            back[np.arange(len(block)), first] = -2.0
            is_mutual = back.max(axis=1) <= cosines.max(axis=1) + _ROUNDING
            for place, others, near, best, mutual in zip(block, nearest, cosines, first, is_mutual, strict=True):
                for other in others.tolist():
                    is_required = bool(mutual) and other == best
                    if is_required or near[other] >= least[int(denies[place] != denies[other])]:
                        likeness = round(min(1.0, float(near[other])), 4)
                        yield Pair.of(facts[place], facts[other], likeness, is_required=is_required)


class PairQuestion(ModelQuestion[Pair]):
    """Asks a model about pairs of facts. A task says with `find_problem` which judgements cannot be used."""

    items = "pairs"
    bare = ("different", {"verdict": "different"})
    output_tokens = 60

    def __init__(self, context: TaskContext, task: str) -> None:
        super().__init__(context)
        self.prompt = task
        self._uses: Counter[str] = Counter()
        self._problems: dict[frozenset[str], str] = {}
        self._owner_keys = graph.with_aliases(context.index, own_names(context.root, context.settings))

    def find_problem(self, pair: Pair, judgement: Judgement) -> str | None:
        """Return why a judgement cannot be used."""
        raise NotImplementedError

    def judge_pairs(self, pairs: Iterable[Pair], most: int) -> dict[Pair, Judgement]:
        """Return the judgements, the stored ones and new ones of `most` pairs, the first ones. A judgement that stays
        unusable after it was sent back is `unclear`.
        """
        chosen = list(pairs)
        if len(chosen) <= most:  # a fact is shown once in each batch: its pairs belong together
            chosen.sort(key=lambda pair: pair.a.id)
        keys = {judgement_key(self.context, self.prompt, pair): pair for pair in chosen}
        self._uses = Counter(fact.id for pair in keys.values() for fact in (pair.a, pair.b))
        judged = dict(self.judge(keys, most))
        # What cannot be used is asked about once more, alone: a repair would repeat the whole question.
        judged |= dict(self.judge({key: pair for key, pair in keys.items() if pair.ids in self._problems}))
        return {keys[key]: judgement for key, judgement in judged.items()}

    def label(self, item: Pair) -> str:
        return f"{item.a.text} / {item.b.text}"

    def group(self, item: Pair) -> str:
        return item.a.id

    def show(self, item: Pair) -> dict[str, dict[str, str]]:
        return {"a": self._show_fact(item.a), "b": self._show_fact(item.b)}

    def _show_fact(self, fact: Document) -> dict[str, str]:
        stated = (fact.created or "")[:10]
        since = fact.valid_from if fact.valid_from != stated else None
        word = whose_word(fact.source, fact.speaker, self._owner_keys)
        speaker = fact.speaker or word
        by = "" if word == "owner" or speaker in fact.text else speaker
        return without_empty({"text": fact.text, "said": stated, "by": by, "from": since, "until": fact.valid_until})

    def size(self, item: Pair) -> int:
        sizes = ((estimate_tokens(str(self._show_fact(fact))), self._uses[fact.id]) for fact in (item.a, item.b))
        return 8 + sum(size // max(1, uses) for size, uses in sizes)

    def inputs(self, batch: Sequence[Pair]) -> dict[str, str]:
        """A numbered line of JSON for each fact, and a line for each pair: its number and those of its facts."""
        facts = {fact.id: fact for pair in batch for fact in (pair.a, pair.b)}
        numbers = {fact: n for n, fact in enumerate(facts, 1)}
        lines = (
            f"{n}: {numbers[pair.a.id]} {numbers[pair.b.id]} {self._problems.get(pair.ids, '')}".rstrip()
            for n, pair in enumerate(batch, 1)
        )
        return {"facts": numbered_lines(map(self._show_fact, facts.values())), "pairs": "\n".join(lines)}

    def _list_problems(self, item: Pair, judgement: Judgement) -> Iterator[str]:
        if problem := self.find_problem(item, judgement):
            yield problem
        elif judgement.says == "same" or judgement.keep == "merge":
            # A merge that still loses words when it was worded again becomes a question to the owner.
            texts = (item.a.text, item.b.text)
            merged = {"merge": judgement.text, "a": item.a.text, "b": item.b.text}.get(judgement.keep)
            lost = [word for text in texts for word in find_lost_words(merged or text, text)]
            if lost:
                yield f"it leaves out {', '.join(lost)}: merge them in one sentence with these words"

    def find_carelessness(self, batch: Sequence[Pair], given: Sequence[Mapping[str, Any]]) -> str:
        if all(pair.ids in self._problems for pair in batch):
            return ""  # these are asked once more, without the others
        verdicts = {item["verdict"] for item in given}
        hasty = {"same", *(CONFLICTS if self.prompt == TASK else ())}
        is_careless = len(given) >= MAX_ALIKE and len(verdicts) == 1 and verdicts <= hasty
        return f"all {len(given)} pairs are called the same: {verdicts.pop()}" if is_careless else ""

    def check(self, batch: Sequence[Pair], value: Mapping[str, Any]) -> list[str | ItemProblem]:
        careless = self.find_carelessness(batch, self.given(value))
        return [*super().check(batch, value), *([careless] if careless else [])]

    def read(self, item: Pair, given: Mapping[str, Any], answer: Answer) -> Judgement | None:
        judgement = Judgement(
            given["verdict"],
            " ".join((given.get("reason") or "").split())[:MAX_REASON_CHARACTERS],
            " ".join((given.get("merged_text") or "").split()),
            keep=(given.get("keep") or given.get("resolution") or "").removeprefix("keep_"),
            days={end: given[end] for end in _ENDS if given.get(end)},
        )
        problem = next(self._list_problems(item, judgement), "")
        if problem and item.ids not in self._problems:
            self._problems[item.ids] = headings.one_line(problem)
            return None
        if self.find_problem(item, judgement) is not None:
            judgement = replace(judgement, days={})  # a wrong day does not make the rest wrong
        if self.find_problem(item, judgement) is not None:
            return Judgement("unclear")
        # Most pairs are different: the word is all that is stored of these.
        signed = replace(judgement, model=answer.model, prompt=answer.prompt)
        return signed if judgement.keep else Judgement(judgement.says)


def merge_key(task: str, facts: Iterable[Document]) -> str:
    """Return the key of the decision to make one fact of `facts`, in whatever words."""
    return evidence_key(task, "merge", *sorted(map(fact_evidence, facts)))


def solution_key(task: str, pair: Pair, judgement: Judgement) -> str:
    """Return the key of the decision that `judgement` leads to: undone, it vetoes this solution and no other."""
    if judgement.says == "same" or judgement.keep == "merge":
        return merge_key(task, (pair.a, pair.b))
    return evidence_key(pair.key(task), judgement.keep)


def judgement_key(context: TaskContext, task: str, pair: Pair) -> str:
    """Return the key of the judgement of `pair` that counts: another one for each solution that its owner has undone,
    so that a model is asked for a different one. One that it proposes twice is not asked for again.
    """
    key, tried = pair.key(task), set[str]()
    while context.vetoed:
        judgement = read_judgements(context, [key]).get(key)
        solution = solution_key(task, pair, judgement) if judgement is not None else ""
        if solution not in context.vetoed or solution in tried:
            break
        tried.add(solution)
        key = evidence_key(key, solution)
    return key


def find_merge_problem(pair: Pair, text: str) -> str | None:
    """Return why `text` cannot replace both: it is not a plain sentence, or not what both say."""
    if not text:
        return "merged_text is missing"
    if statement_problem(text, f"{pair.a.text} {pair.b.text}"):
        return "merged_text must be one plain sentence"
    found = problem_of(text, (pair.a.text, pair.b.text))
    return f"merged_text is not what both say: {found}" if found else None


def lost_by_update(text: str, dropped: str) -> list[str]:
    """Return the content words of `dropped` that `text` has in no form, but no numbers: these are what has changed."""
    return [word for word in find_lost_words(text, dropped) if not word[:1].isdigit()]


def days_compared(context: TaskContext, task: str, facts: Iterable[Document]) -> dict[str, str]:
    """Return the day (ISO) on which `task` compared each fact as it is now, by id, for those it has compared."""
    keys = {_compared_key(task, fact): fact.id for fact in facts}
    return {keys[key]: day for key, day in context.judgements.known(list(keys)).items()}


def mark_compared(context: TaskContext, task: str, facts: Iterable[Document]) -> None:
    """Store that `task` has nothing more to ask about these, as they are or are about to be."""
    day = context.now.date().isoformat()
    context.judgements.add(task, {_compared_key(task, fact): day for fact in facts})


def _compared_key(task: str, fact: Document) -> str:
    return evidence_key(f"{task} seen", fact_evidence(fact))


@lru_cache(maxsize=8192)  # each fact of an entity is compared with each new one
def _list_days(fact: Document) -> set[str]:
    """Return the days (ISO) that a fact gives in its head or its words, but not that of its statement."""
    stated = notes.parse_time(fact.created)
    found = {day[:10] for day in (fact.valid_from, fact.valid_until) if day}
    mentions = find_dates(fact.text, stated) if stated is not None else ()
    found |= {mention.start.isoformat() for mention in mentions if mention.start == mention.end}
    return found - {(fact.created or "")[:10]}


@lru_cache(maxsize=8192)
def _list_words(text: str) -> frozenset[str]:
    return Reading(text).words


def _give_other_values(one: Document, other: Document, *, has_topic: bool) -> bool:
    """Return whether the later of two facts of one entity gives another day, or a span, while a day of the earlier one
    was still ahead; or whether they give other numbers of one unit, where they share a topic.
    """
    earlier, later = sorted((one, other), key=lambda fact: order_key(fact.created))
    days, others = _list_days(earlier), _list_days(later)
    is_ahead = bool(days) and max(days) >= (later.created or "9")[:10]
    if is_ahead and days != others and (others or not _SPANS.isdisjoint(_list_words(later.text))):
        return True
    left, right = list_values(one.text), list_values(other.text)
    return has_topic and any(
        unit == of and number != value and (number, unit) not in right and (value, of) not in left
        for number, unit in left
        for value, of in right
    )


# -- comparing ---------------------------------------------------------------------------------------------------------


class MergeGroup(NamedTuple):
    """Facts that are one claim. `fact` is the one that stays, as it will be; `members` are all of them as they are,
    that one first.
    """

    fact: Document
    members: tuple[Document, ...]
    judgements: tuple[Judgement, ...] = ()


def plan_compare(context: TaskContext) -> Iterator[Decision]:
    """Yield merges of facts that say the same. `update` and `conflict` are judgements for `resolve`."""
    found = PairFinder(context)
    claims = {fact.id: MergeGroup(fact, (fact,)) for fact in found.facts}
    for _, group in groupby(sorted(found.facts, key=_words), key=_words):
        facts = list(group)
        best = min(facts, key=_rank)
        losers = tuple(fact for fact in facts if fact is not best and not fact.is_protected)
        if losers:
            claims |= dict.fromkeys((fact.id for fact in (best, *losers)), MergeGroup(best, (best, *losers)))
    if context.models is not None:
        _compare(context, found, claims)
    for claim in {claim.fact.id: claim for claim in claims.values() if len(claim.members) > 1}.values():
        decision = merge_decision(context, TASK, claim)
        if decision is not None:
            yield decision


def may_be_same(pair: Pair) -> bool:
    """Return whether the two can become one: no certain difference separates them, and one of them may change."""
    is_fixed = pair.a.is_protected and pair.b.is_protected
    return not is_fixed and pair.a.project == pair.b.project and difference(pair.a.text, pair.b.text) is None


class _Comparison(PairQuestion):
    output_tokens = 20  # of most pairs it is a number

    def find_problem(self, pair: Pair, judgement: Judgement) -> str | None:
        if judgement.says != "same":
            return None
        if not may_be_same(pair):
            differs = difference(pair.a.text, pair.b.text)
            return f"they are not the same: their {differs} differ" if differs else None
        if judgement.keep == "merge":
            return find_merge_problem(pair, judgement.text)
        if judgement.keep not in {"a", "b"}:
            return "what is the same needs keep: a, b or merge"
        winner, loser = (pair.a, pair.b) if judgement.keep == "a" else (pair.b, pair.a)
        lost = find_lost_detail(winner.text, loser.text)
        return f"{judgement.keep} lacks {lost!r}: merge them" if lost else None


def _compare(context: TaskContext, found: PairFinder, claims: dict[str, MergeGroup]) -> None:
    """Join what the model calls the same, until there is no more to join, and store what has been compared."""
    new = found.not_compared(TASK)
    left = found.pairs(new)
    unsettled: set[str] = set()
    conflicts: dict[Pair, Judgement] = {}
    for _ in range(_MAX_ROUNDS):
        open_pairs = (
            pair for pair in _pair_claims(claims, left) if pair.key(TASK) not in context.vetoed and pair.may_clash
        )
        asked = [
            pair
            for pair in open_pairs
            if may_be_same(pair)
            or (
                pair.a.text_hash != pair.b.text_hash
                and (pair.is_required or not is_about_others(pair.a.text, pair.b.text))
            )
        ]
        if not asked:
            break
        judgements = _Comparison(context, TASK).judge_pairs(asked, MAX_ASKED)
        # A pair that was set aside does not stop its facts from being compared with others and resolved.
        aside = set_aside_keys(context)
        unjudged = (pair for pair in asked if pair not in judgements and pair.key(TASK) not in aside)
        unsettled |= {fact.id for pair in unjudged for fact in (pair.a, pair.b)}
        conflicts |= {pair: judgement for pair, judgement in judgements.items() if judgement.says in CONFLICTS}
        same = [
            (pair, judgement)
            for pair, judgement in judgements.items()
            if judgement.says == "same"
            and may_be_same(pair)
            and merge_key(TASK, (pair.a, pair.b)) not in context.vetoed
        ]
        # The most alike are joined first. A pair is asked about again if one of its facts now says something else.
        left = []
        changed: set[str] = set()
        for pair, judgement in sorted(same, key=lambda item: -item[0].likeness):
            a, b = claims[pair.a.id], claims[pair.b.id]
            if not changed.isdisjoint((a.fact.id, b.fact.id)):
                left.append(pair)
            elif (joined := join(a, b, judgement)) is not None:
                claims |= dict.fromkeys((fact.id for fact in joined.members), joined)
                changed.add(joined.fact.id)
    unsettled |= {fact.id for pair in left for fact in (pair.a, pair.b)}
    # What contradicts a fact contradicts the claim that it has become.
    became = {
        judgement_key(context, TASK, merged): judgement.render()
        for pair, judgement in conflicts.items()
        if any(len(claims[fact.id].members) > 1 for fact in (pair.a, pair.b))
        for merged in _pair_claims(claims, [pair])
    }
    context.judgements.add(TASK, became)
    compared = {claims[fact.id].fact.id: claims[fact.id] for fact in new}
    settled = [claim.fact for claim in compared.values() if unsettled.isdisjoint(fact.id for fact in claim.members)]
    mark_compared(context, TASK, settled)


def _pair_claims(claims: dict[str, MergeGroup], pairs: Iterable[Pair]) -> list[Pair]:
    """Return `pairs` as pairs of the claims that their facts belong to by now, each once, without merged ones."""
    found = [
        Pair.of(claims[pair.a.id].fact, claims[pair.b.id].fact, pair.likeness, is_required=pair.is_required)
        for pair in pairs
    ]
    return list({(pair.a.id, pair.b.id): pair for pair in reversed(found) if pair.a.id != pair.b.id}.values())[::-1]


def _words(fact: Document) -> tuple[str, ...]:
    words = normal_form(fact.text) if fact.is_whole else fact.text_hash or ""
    return fact.owner, fact.project or "", words, fact.valid_from or "", fact.valid_until or ""


def _rank(fact: Document) -> tuple[object, ...]:
    """Return a sort key for the fact that stays: confirmed by its owner, more certain, more often stated, older."""
    return not fact.is_protected, -(fact.confidence or 0.0), -fact.confirmations, fact.created or "9999", fact.id


# -- merging, for `resolve` too ----------------------------------------------------------------------------------------


def join(a: MergeGroup, b: MergeGroup, judgement: Judgement) -> MergeGroup | None:
    """Return the two as one, as `judgement` says; None when that would change a fact that must stay as it is."""
    is_first = judgement.keep == "a" or (judgement.keep == "merge" and _rank(a.fact) <= _rank(b.fact))
    winner, loser = (a, b) if is_first else (b, a)
    fact = winner.fact
    if judgement.keep == "merge":
        fact = fact._replace(text=judgement.text, text_hash=notes.text_hash(judgement.text))
    if not fact.is_protected:
        fact = _with_newer_days(fact, a.fact, b.fact, judgement)
    if any(each.is_protected for each in loser.members) or (fact.is_protected and fact != winner.members[0]):
        return None
    judgements = (*winner.judgements, *loser.judgements, judgement)
    return MergeGroup(fact, (*winner.members, *loser.members), judgements)


def _with_newer_days(fact: Document, a: Document, b: Document, judgement: Judgement) -> Document:
    """Return `fact`, which is made of `a` and `b`, with the days of the judgement or of the newer statement. Those of
    the older one count where both say the same, and the newer one gives none but its own.
    """
    older, newer = sorted((a, b), key=lambda each: (order_key(each.created), each.id))
    found: list[str | None] = []
    for end, last, first in (
        ("from", newer.valid_from, older.valid_from),
        ("until", newer.valid_until, older.valid_until),
    ):
        own = {(newer.created or "")[:10]: last, (older.created or "")[:10]: first}
        known = next((day for stated, day in own.items() if day and day[:10] != stated), last or first)
        found.append(judgement.days.get(end) or (known if judgement.says == "same" else last))
    since, until = found
    if since and until and until[:10] < since[:10]:
        since, until = (None, until) if "until" in judgement.days else (since, None)
    return fact._replace(valid_from=since, valid_until=until)


def merge_decision(context: TaskContext, task: str, claim: MergeGroup) -> Decision | None:
    """Return the decision to make one fact of `claim`, a question if that leaves out words of one of them; None when a
    note cannot be edited safely, or has changed since it was judged.
    """
    winner, *losers = claim.members
    merged = claim.fact.text
    known = [(fact.path, data) for fact in claim.members if (data := unchanged_bytes(context, fact)) is not None]
    if len(known) < len(claim.members):
        return None
    try:
        if winner.is_protected:  # it stays as it is, and the others refer to it
            edits = tuple(supersede(path, data, winner.path, None) for path, data in known[1:])
        else:
            names = graph.entity_names(context.index)
            statement = render_statement(merged, names) if merged != winner.text else None
            edits = fact_edits.merge(known[0], known[1:], statement, fact_edits.changed_period(winner, claim.fact))
            if notes.parse_fact(winner.path, edits[0].after or b"").text_hash != claim.fact.text_hash:
                return None  # its owner has written more there than the claim
        edits = (*edits, *repointed(context, losers, winner.path))
    except fact_edits.UNSAFE:
        return None
    last = claim.judgements[-1] if claim.judgements else None
    is_update = last is not None and last.says == "update"
    find_lost = lost_by_update if is_update else find_lost_words
    # What the newer fact says of the change itself, "has been moved", need not be repeated.
    checked = sorted(claim.members, key=lambda fact: (order_key(fact.created), fact.id))[: -1 if is_update else None]
    lost = list(dict.fromkeys(word for fact in checked for word in find_lost(merged, fact.text)))
    dropped = f'"{shortened(losers[0].text)}"' if len(losers) == 1 else f"{len(losers)} facts"
    why = " ".join(dict.fromkeys(judgement.reason for judgement in claim.judgements if judgement.reason))
    why += f" It leaves out: {', '.join(lost)}." if lost else ""
    return Decision(
        task=task,
        kind="merge",
        key=merge_key(task, claim.members),
        edits=edits,
        subject=f'merge {dropped} into "{shortened(merged)}"',
        why=why or WORD_FOR_WORD,
        facts=tuple(fact.id for fact in claim.members),
        model=last.model if last else None,
        prompt=last.prompt if last else None,
        detail=show_change((fact.text for fact in claim.members), [merged]),
        always_asks=bool(lost) or len({fact.source == OTHER_PERSON for fact in claim.members}) > 1,
    )


def unchanged_bytes(context: TaskContext, fact: Document) -> bytes | None:
    """Return the note of `fact`; None when it is gone, or has changed since it was judged."""
    data = context.read(fact.path)
    note = notes.parse_fact(fact.path, data) if data is not None else None
    is_same = note is not None and (note.id, note.text_hash, note.superseded_by) == (fact.id, fact.text_hash, None)
    return data if is_same else None


def shortened(text: str) -> str:
    """Return a statement as a subject quotes it."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN].rsplit(' ', 1)[0]} …"


def repointed(context: TaskContext, losers: Sequence[Document], winner_path: str) -> tuple[Edit, ...]:
    """Return edits after which the winner also replaces the facts that `losers` had replaced: there are no chains."""
    called = [name for loser in losers for name in (note_name(loser.path), loser.path.removesuffix(".md"), loser.id)]
    replaced = list_replaced_by(context.index, called)
    others = sorted({*replaced} - find_protected(context.index, replaced) - {winner_path})
    return tuple(supersede(path, data, winner_path, None) for path in others if (data := context.read(path)))
