"""Facts that say the same -> one claim -> the decision that leaves one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quaid.capture.facts import render_statement, supersede
from quaid.claims import find_lost_words
from quaid.index import graph
from quaid.index.documents import Document, find_protected, list_replaced_by
from quaid.janitor import fact_edits
from quaid.janitor.decision import fact_evidence
from quaid.janitor.judging import Judgement
from quaid.janitor.model_text import show_change
from quaid.janitor.task_context import TaskContext
from quaid.local.claimed import OTHER_PERSON
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, note_name
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

WORD_FOR_WORD = "They say the same, word for word."
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Facts that are one claim. `fact` is the one that stays, as it will be; `members` are all of them as they are,
    that one first. `statement` is its new wording, if there is one.
    """

    fact: Document
    members: tuple[Document, ...]
    statement: str | None = None
    judgements: tuple[Judgement, ...] = ()

    @classmethod
    def of(cls, fact: Document) -> MergeGroup:
        return cls(fact, (fact,))


def join_equal(facts: Sequence[Document]) -> MergeGroup | None:
    """Return the claim of facts with equal words; None when all but one of them must stay as they are."""
    best = min(facts, key=_rank)
    losers = tuple(fact for fact in facts if fact is not best and not fact.is_protected)
    return MergeGroup(best, (best, *losers)) if losers else None


def join(a: MergeGroup, b: MergeGroup, judgement: Judgement) -> MergeGroup | None:
    """Return the two as one, as `judgement` says; None when that would change a fact that must stay as it is."""
    if judgement.keep == "merge":
        winner, loser = (a, b) if _rank(a.fact) <= _rank(b.fact) else (b, a)
    else:
        winner, loser = (a, b) if judgement.keep == "a" else (b, a)
    statement = judgement.text if judgement.keep == "merge" else winner.statement
    if any(fact.is_protected for fact in loser.members) or (statement and winner.fact.is_protected):
        return None
    fact = winner.fact
    if statement:
        fact = fact._replace(text=statement, text_hash=notes.text_hash(statement))
    judgements = (*winner.judgements, *loser.judgements, judgement)
    return MergeGroup(fact, (*winner.members, *loser.members), statement, judgements)


def merge_decision(context: TaskContext, task: str, claim: MergeGroup) -> Decision | None:
    """Return the decision to make one fact of `claim`, a question if that leaves out words of one of them; None when a
    note cannot be edited safely, or has changed since it was judged.
    """
    winner, *losers = claim.members
    known = [(fact.path, data) for fact in claim.members if (data := unchanged_bytes(context, fact)) is not None]
    if len(known) < len(claim.members):
        return None
    try:
        if winner.is_protected:  # it stays as it is, and the others refer to it
            edits = tuple(supersede(path, data, winner.path, None) for path, data in known[1:])
        else:
            names = graph.entity_names(context.index)
            statement = render_statement(claim.statement, names) if claim.statement else None
            edits = fact_edits.merge(known[0], known[1:], statement)
            if notes.parse_fact(winner.path, edits[0].after or b"").text_hash != claim.fact.text_hash:
                return None  # its owner has written more there than the claim
        edits = (*edits, *repointed(context, losers, winner.path))
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    merged = claim.statement or winner.text
    lost = list(dict.fromkeys(word for fact in claim.members for word in find_lost_words(merged, fact.text)))
    last = claim.judgements[-1] if claim.judgements else None
    dropped = f'"{shortened(losers[0].text)}"' if len(losers) == 1 else f"{len(losers)} facts"
    why = " ".join(dict.fromkeys(judgement.reason for judgement in claim.judgements if judgement.reason))
    why += f" It leaves out: {', '.join(lost)}." if lost else ""
    detail = show_change((fact.text for fact in claim.members), [merged])
    return Decision(
        task=task,
        kind="merge",
        key=evidence_key(task, *map(fact_evidence, claim.members)),
        edits=edits,
        subject=f'merge {dropped} into "{shortened(claim.fact.text)}"',
        why=why or WORD_FOR_WORD,
        facts=tuple(fact.id for fact in claim.members),
        model=last.model if last else None,
        prompt=last.prompt if last else None,
        detail=detail,
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


def _rank(fact: Document) -> tuple[object, ...]:
    """Return a sort key for the fact that stays: confirmed by its owner, more certain, more often stated, older."""
    return not fact.is_protected, -(fact.confidence or 0.0), -fact.confirmations, fact.created or "9999", fact.id
