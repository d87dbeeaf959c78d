"""Facts that say the same -> one claim -> the decision that leaves one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quaid.capture.fact_note import link_names
from quaid.index import graph
from quaid.index.facts import LivingFact, list_replaced_by
from quaid.janitor import verbs
from quaid.janitor.decision import Decision
from quaid.janitor.pairs import evidence
from quaid.janitor.task_context import Context
from quaid.janitor.verdicts import Verdict
from quaid.local.runs import key_of
from quaid.model import Edit, note_name
from quaid.vault import notes
from quaid.vault.frontmatter import FrontmatterBrokenError

WORD_FOR_WORD = "They say the same, word for word."
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Claim:
    """Facts that are one claim. `fact` is the one that stays, as it will be; `members` are all of them as they are,
    that one first. `statement` is its new wording, if it gets one.
    """

    fact: LivingFact
    members: tuple[LivingFact, ...]
    statement: str | None = None
    verdicts: tuple[Verdict, ...] = ()

    @classmethod
    def of(cls, fact: LivingFact) -> Claim:
        return cls(fact, (fact,))


def same_words(facts: Sequence[LivingFact]) -> Claim | None:
    """The claim of facts that are equal to the letter; None when all but one of them are to stay as they are."""
    best = min(facts, key=_rank)
    losers = tuple(fact for fact in facts if fact is not best and not fact.is_protected)
    return Claim(best, (best, *losers)) if losers else None


def join(a: Claim, b: Claim, verdict: Verdict) -> Claim | None:
    """The two as one, as `verdict` says; None when that would touch a fact that is to stay as it is."""
    if verdict.keep == "merge":
        winner, loser = (a, b) if _rank(a.fact) <= _rank(b.fact) else (b, a)
    else:
        winner, loser = (a, b) if verdict.keep == "a" else (b, a)
    statement = verdict.text if verdict.keep == "merge" else winner.statement
    if any(fact.is_protected for fact in loser.members) or (statement and winner.fact.is_protected):
        return None
    fact = winner.fact
    if statement:
        fact = fact._replace(text=statement, text_hash=notes.text_hash(statement))
    verdicts = (*winner.verdicts, *loser.verdicts, verdict)
    return Claim(fact, (*winner.members, *loser.members), statement, verdicts)


def merge_decision(context: Context, task: str, claim: Claim) -> Decision | None:
    """What makes one fact of `claim`. None when a note cannot be edited safely, or is not what the index says."""
    winner, *losers = claim.members
    last = claim.verdicts[-1] if claim.verdicts else None
    try:
        edits = _edits(context, claim)
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return None
    if edits is None:
        return None
    dropped = f'"{shortened(losers[0].text)}"' if len(losers) == 1 else f"{len(losers)} facts"
    why = " ".join(dict.fromkeys(verdict.reason for verdict in claim.verdicts if verdict.reason))
    detail = [f"- kept: {winner.text}", *(f"- merged into it: {loser.text}" for loser in losers)]
    detail += [f"- now reads: {claim.statement}"] if claim.statement else []
    return Decision(
        task=task,
        kind="merge",
        key=key_of(task, *map(evidence, claim.members)),
        edits=edits,
        subject=f'merge {dropped} into "{shortened(claim.fact.text)}"',
        why=why or WORD_FOR_WORD,
        facts=tuple(fact.id for fact in claim.members),
        model=last.model if last else None,
        prompt=last.prompt if last else None,
        detail="\n".join(detail),
    )


def unchanged_bytes(context: Context, fact: LivingFact) -> bytes | None:
    """The note of `fact`; None when it is gone, or says something else than when it was judged."""
    data = context.read(fact.path)
    note = notes.parse_note(fact.path, data) if data is not None else None
    is_same = note is not None and (note.id, note.text_hash, note.superseded_by) == (fact.id, fact.text_hash, None)
    return data if is_same else None


def shortened(text: str) -> str:
    """A statement as a subject quotes it."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN].rsplit(' ', 1)[0]} …"


def _edits(context: Context, claim: Claim) -> tuple[Edit, ...] | None:
    found = [(fact, unchanged_bytes(context, fact)) for fact in claim.members]
    known = [(fact.path, data) for fact, data in found if data is not None]
    if len(known) < len(found):
        return None
    path = claim.fact.path
    if claim.fact.is_protected:  # it stays as it is, and the others point to it
        edits = tuple(verbs.supersede(loser, data, path, None) for loser, data in known[1:])
    else:
        names = graph.entity_names(context.index)
        statement = link_names(claim.statement, names) if claim.statement else None
        edits = verbs.merge(known[0], known[1:], statement)
        if notes.parse_note(path, edits[0].after or b"").text_hash != claim.fact.text_hash:
            return None  # its owner has written more there than the claim
    return (*edits, *repointed(context, claim.members[1:], path))


def repointed(context: Context, losers: Sequence[LivingFact], winner_path: str) -> tuple[Edit, ...]:
    """What was replaced by one of `losers` is now replaced by the winner: nobody is sent from one to the next."""
    edits = []
    called = [name for loser in losers for name in (note_name(loser.path), loser.path.removesuffix(".md"), loser.id)]
    for path in list_replaced_by(context.index, called):
        data = context.read(path)
        if data is None or path == winner_path:
            continue
        note = notes.parse_note(path, data)
        if not (note.pinned or note.verified):
            edits.append(verbs.supersede(path, data, winner_path, None))
    return tuple(edits)


def _rank(fact: LivingFact) -> tuple[object, ...]:
    """Which of several is kept: what its owner has confirmed, then what is more certain, said more often, older."""
    return not fact.is_protected, -(fact.confidence or 0.0), -fact.confirmations, fact.created or "9999", fact.id
