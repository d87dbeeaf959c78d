"""Compare facts, each pair once: facts that say the same become one, contradictions are left to `resolve`.

Facts with equal words are joined automatically, look-alikes if a model says so and no certain difference separates
them. Facts are paired when they are near in meaning, else in words, or when they give one subject two objects of a
relation that has one; never those of different owners or projects. A fact is compared when it is new or says something
else than before, which the task that has compared it stores with its judgements.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

from quaid.capture.facts import render_statement, supersede
from quaid.claims import (
    Reading,
    difference,
    find_lost_detail,
    find_lost_words,
    is_about_others,
    normal_form,
    problem_of,
)
from quaid.embed import open_embedder
from quaid.errors import QuaidError
from quaid.index import fulltext, graph, vectors
from quaid.index.documents import Document, find_protected, list_living, list_replaced_by
from quaid.index.scope import Scope
from quaid.index.vectors import VectorMatrix
from quaid.janitor import fact_edits
from quaid.janitor.decision import fact_evidence
from quaid.janitor.judging import Judgement, ModelQuestion, set_aside_keys
from quaid.janitor.model_text import MAX_REASON_CHARACTERS, show_change, statement_problem, without_empty
from quaid.janitor.task_context import TaskContext
from quaid.llm.exchange import Answer, ItemProblem
from quaid.local.claimed import OTHER_PERSON
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, note_name
from quaid.recall import contradictions
from quaid.settings import EmbeddingSettings
from quaid.text.language import language
from quaid.vault import notes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from quaid.janitor.questions import Question


TASK = "compare"
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
"""A model that calls this many pairs of a batch the same, all of them, has not compared them."""
_BLOCK = 512


@dataclass(frozen=True)
class Pair:
    """Two facts, the one that was learned first in front. `likeness` is 1 for equal words."""

    a: Document
    b: Document
    likeness: float
    is_opposed: bool = False

    @classmethod
    def of(cls, one: Document, other: Document, likeness: float, *, is_opposed: bool = False) -> Pair:
        first, second = sorted((one, other), key=lambda fact: (fact.created or "", fact.id))
        return cls(first, second, likeness, is_opposed)

    def key(self, task: str) -> str:
        """Return the key of a judgement of `task` on these two."""
        return evidence_key(task, fact_evidence(self.a), fact_evidence(self.b))

    @cached_property
    def is_at_one_time(self) -> bool:
        """Return whether there may be a day on which both are true."""
        return not any(
            one.valid_until and other.valid_from and one.valid_until[:10] < other.valid_from[:10]
            for one, other in ((self.a, self.b), (self.b, self.a))
        )


def find_asked_pair(facts: Collection[Document], question: Question) -> Pair | None:
    """Return the two of `facts` that `question` asks to choose from; None when one is gone or has changed."""
    named = [fact for fact in facts if note_name(fact.path) in question.choices]
    pairs = (Pair.of(one, other, 1.0) for one, other in combinations(named, 2))
    return next((pair for pair in pairs if pair.key(question.task) == question.key), None)


class PairFinder:
    """Finds pairs among the living facts of an index, as they are when it is made."""

    def __init__(self, context: TaskContext) -> None:
        self._context = context
        self._index = context.index
        self._row = vectors.active_embedder(context.index)
        self.facts = list_living(context.index)

    def not_compared(self, task: str) -> list[Document]:
        """Return the facts that `task` has not compared as they are now, as many as one run can compare, with those
        whose edges contradict each other now: a fact may get edges after it was compared.
        """
        seen = days_compared(self._context, task, self.facts)
        pairs = {pair.key(task): pair for pair in self._all_opposed}
        judged = self._context.judgements.known(list(pairs))
        again = {fact.id for key, pair in pairs.items() if key not in judged for fact in (pair.a, pair.b)}
        new = [fact for fact in self.facts if fact.id not in seen or fact.id in again]
        return new if self._row is not None else new[:MAX_BY_WORDS]

    @cached_property
    def _all_opposed(self) -> list[Pair]:
        """The pairs that give one subject two objects of a relation that has one at a time."""
        found: list[Pair] = []
        for (owner, _), group in groupby(sorted(self.facts, key=_owner_and_project), key=_owner_and_project):
            by_document = {fact.doc_id: fact for fact in group}
            scope = Scope().narrowed("d.superseded_by IS NULL AND d.owner = :owner", owner=owner)
            opposed = contradictions.list_opposed(self._index, by_document, scope)
            pairs = (both for both in sorted(opposed) if by_document.keys() >= {*both})
            found += (Pair.of(by_document[one], by_document[other], 0.0, is_opposed=True) for one, other in pairs)
        return [pair for pair in found if pair.is_at_one_time]

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
        opposed = {frozenset((pair.a.id, pair.b.id)): pair for pair in self._all_opposed}
        found = {ids: pair for ids, pair in opposed.items() if not wanted.isdisjoint(ids)}
        for _, group in groupby(sorted(self.facts, key=_owner_and_project), key=_owner_and_project):
            facts = list(group)
            fresh = [fact for fact in facts if fact.id in wanted]
            if not fresh or len(facts) == 1:
                continue
            for one, other, likeness in self._look_alikes(fresh, facts):
                ids = frozenset((one.id, other.id))
                found[ids] = Pair.of(one, other, round(likeness, 4), is_opposed=ids in opposed)
        return sorted(found.values(), key=lambda pair: (-pair.likeness, pair.a.id, pair.b.id))

    def _look_alikes(
        self, fresh: Sequence[Document], facts: Sequence[Document]
    ) -> Iterator[tuple[Document, Document, float]]:
        """Yield each of `fresh` with its nearest neighbours: by meaning where it has a vector, else by its words."""
        by_chunk = {fact.chunk_id: fact for fact in facts if fact.is_whole}
        fresh = [fact for fact in fresh if fact.is_whole]
        held: Sequence[int] = ()
        if self._row is not None:
            self._index.vectors.prepare()
            held, matrix = VectorMatrix().vectors(self._index, self._row, list(by_chunk))
            yield from self._near([by_chunk[chunk_id] for chunk_id in held], matrix, {fact.id for fact in fresh})
        embedded = set(held)
        for fact in (fact for fact in fresh if fact.chunk_id not in embedded):
            match = fulltext.match_any(fulltext.terms(fact.text, language(fact.text))[:MAX_WORDS])
            found = dict(fulltext.search(self._index, match, NEAREST + 1, by_chunk))
            own = found.pop(fact.chunk_id, 0.0)
            for chunk_id, score in found.items():
                if own > 0 and score >= MIN_SHARED * own:
                    yield fact, by_chunk[chunk_id], min(1.0, score / own)

    def _near(
        self, facts: Sequence[Document], matrix: npt.NDArray[np.float32], wanted: Collection[str]
    ) -> Iterator[tuple[Document, Document, float]]:
        """Yield those of `facts` with the ids `wanted`, each with its nearest neighbours by their vectors, `matrix`."""
        import numpy as np

        rows = [place for place, fact in enumerate(facts) if fact.id in wanted]
        count = min(NEAREST, len(facts) - 1)
        least = self.duplicate_similarity - np.array([MARGIN, NEGATION_MARGIN])
        denies = np.array([Reading(fact.text).negations > 0 for fact in facts])
        for block in (rows[start : start + _BLOCK] for start in range(0, len(rows) if count > 0 else 0, _BLOCK)):
            cosines = matrix[block] @ matrix.T
            cosines[np.arange(len(block)), block] = -2.0
            nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
            for place, others, near in zip(block, nearest, cosines, strict=True):
                for other in others.tolist():
                    if near[other] >= least[int(denies[place] != denies[other])]:
                        yield facts[place], facts[other], min(1.0, float(near[other]))


class PairQuestion(ModelQuestion[Pair]):
    """Asks a model about pairs of facts. A task says with `find_problem` which judgements cannot be used."""

    items = "pairs"
    bare = ("different", {"verdict": "different"})
    output_tokens = 60

    def __init__(self, context: TaskContext, task: str) -> None:
        super().__init__(context)
        self.prompt = task

    def find_problem(self, pair: Pair, judgement: Judgement) -> str | None:
        """Return why a judgement cannot be used."""
        raise NotImplementedError

    def judge_pairs(self, pairs: Iterable[Pair], most: int) -> dict[Pair, Judgement]:
        """Return the judgements, the stored ones and new ones of `most` pairs, the first ones. A judgement that stays
        unusable after it was sent back is `unclear`.
        """
        keys = {pair.key(self.prompt): pair for pair in pairs}
        return {keys[key]: judgement for key, judgement in self.judge(keys, most)}

    def label(self, item: Pair) -> str:
        return f"{item.a.text} / {item.b.text}"

    def group(self, item: Pair) -> str:
        return item.a.id

    def show(self, item: Pair) -> dict[str, dict[str, str]]:
        shown = {}
        for name, fact in (("a", item.a), ("b", item.b)):
            stated = (fact.created or "")[:10]
            since = fact.valid_from if fact.valid_from != stated else None
            shown[name] = without_empty({"text": fact.text, "said": stated, "from": since, "until": fact.valid_until})
        return shown

    def inputs(self, batch: Sequence[Pair]) -> dict[str, str]:
        """A line of JSON for each fact that is the first of a pair, with the others, so that it is shown once."""
        lines: dict[str, dict[str, Any]] = {}
        for n, pair in enumerate(batch, 1):
            shown = self.show(pair)
            lines.setdefault(pair.a.id, {"a": shown["a"], "b": []})["b"].append({"n": n, **shown["b"]})
        return {"pairs": "\n".join(json.dumps(line, ensure_ascii=False) for line in lines.values())}

    def find_problems(self, item: Pair, given: Mapping[str, Any]) -> Iterator[str]:
        judgement = self._parse(given)
        if problem := self.find_problem(item, judgement):
            yield problem
        elif judgement.says == "same" or judgement.keep == "merge":
            # A merge that still loses words when it was worded again becomes a question to the owner.
            texts = (item.a.text, item.b.text)
            merged = {"merge": judgement.text, "a": item.a.text, "b": item.b.text}.get(judgement.keep)
            lost = [word for text in texts for word in find_lost_words(merged or text, text)]
            if lost:
                yield f"it leaves out {', '.join(lost)}: merge them in one sentence with these words"

    def find_carelessness(self, _: Sequence[Pair], given: Sequence[Mapping[str, Any]]) -> str:
        is_careless = len(given) >= MAX_ALIKE and {item["verdict"] for item in given} == {"same"}
        return f"all {len(given)} pairs are called the same" if is_careless else ""

    def check(self, batch: Sequence[Pair], value: Mapping[str, Any]) -> list[str | ItemProblem]:
        careless = self.find_carelessness(batch, self.given(value))
        return [*super().check(batch, value), *([careless] if careless else [])]

    def read(self, item: Pair, given: Mapping[str, Any], answer: Answer) -> Judgement:
        judgement = self._parse(given)
        if self.find_problem(item, judgement) is not None:
            return Judgement("unclear")
        # Most pairs are different: the word is all that is stored of these.
        signed = replace(judgement, model=answer.model, prompt=answer.prompt)
        return signed if judgement.keep else Judgement(judgement.says)

    def _parse(self, given: Mapping[str, Any]) -> Judgement:
        return Judgement(
            given["verdict"],
            " ".join((given.get("reason") or "").split())[:MAX_REASON_CHARACTERS],
            " ".join((given.get("merged_text") or "").split()),
            keep=(given.get("keep") or given.get("resolution") or "").removeprefix("keep_"),
            days={end: given[end] for end in ("a_from", "a_until", "b_from", "b_until") if given.get(end)},
        )


def find_merge_problem(pair: Pair, text: str) -> str | None:
    """Return why `text` cannot replace both: it is not a plain sentence, or not what both say."""
    if not text:
        return "merged_text is missing"
    if statement_problem(text, f"{pair.a.text} {pair.b.text}"):
        return "merged_text must be one plain sentence"
    found = problem_of(text, (pair.a.text, pair.b.text))
    return f"merged_text is not what both say: {found}" if found else None


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


def _owner_and_project(fact: Document) -> tuple[str, str]:
    return fact.owner, fact.project or ""


# -- comparing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeGroup:
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
    return not is_fixed and difference(pair.a.text, pair.b.text) is None


class _Comparison(PairQuestion):
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
    vetoed = {veto.key for veto in context.vetoes}
    unsettled: set[str] = set()
    conflicts: dict[Pair, Judgement] = {}
    for _ in range(_MAX_ROUNDS):
        open_pairs = (
            pair for pair in _pair_claims(claims, left) if pair.key(TASK) not in vetoed and pair.is_at_one_time
        )
        asked = [
            pair
            for pair in open_pairs
            if may_be_same(pair)
            or (
                pair.a.text_hash != pair.b.text_hash
                and (pair.is_opposed or not is_about_others(pair.a.text, pair.b.text))
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
        same = [item for item in judgements.items() if item[1].says == "same" and may_be_same(item[0])]
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
        merged.key(TASK): judgement.render()
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
        Pair.of(claims[pair.a.id].fact, claims[pair.b.id].fact, pair.likeness, is_opposed=pair.is_opposed)
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
    if any(each.is_protected for each in loser.members) or (fact.is_protected and fact != winner.members[0]):
        return None
    judgements = (*winner.judgements, *loser.judgements, judgement)
    return MergeGroup(fact, (*winner.members, *loser.members), judgements)


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
            statement = render_statement(merged, names) if claim.fact != winner else None
            edits = fact_edits.merge(known[0], known[1:], statement)
            if notes.parse_fact(winner.path, edits[0].after or b"").text_hash != claim.fact.text_hash:
                return None  # its owner has written more there than the claim
        edits = (*edits, *repointed(context, losers, winner.path))
    except fact_edits.UNSAFE:
        return None
    lost = list(dict.fromkeys(word for fact in claim.members for word in find_lost_words(merged, fact.text)))
    last = claim.judgements[-1] if claim.judgements else None
    dropped = f'"{shortened(losers[0].text)}"' if len(losers) == 1 else f"{len(losers)} facts"
    why = " ".join(dict.fromkeys(judgement.reason for judgement in claim.judgements if judgement.reason))
    why += f" It leaves out: {', '.join(lost)}." if lost else ""
    return Decision(
        task=task,
        kind="merge",
        key=evidence_key(task, *map(fact_evidence, claim.members)),
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
