"""What of a model's answer can be used so far, and how the model is asked for the rest.

The items of an answer's lists (facts, verdicts, pairs) are kept and repaired one by one. A repair shows the model the
items that cannot be used, says what is wrong with each, and asks for these alone; those that are missing are named, and
an answer that was cut off is continued. Only where an answer cannot be used as a whole is all of it asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quaid.llm.answers import find_answer
from quaid.llm.exchange import ChatMessage, Check, FailedItem, ItemProblem, Reply, Request
from quaid.llm.fitting import Fitted, ReadItem, fit

MAX_PROBLEMS = 20
"""Problems that one repair names."""
CUT_OFF = "it was cut off"
_NUMBER = "n"
"""The property by which the answers to numbered questions are told apart."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as far as it has come: `fitted`, with what the caller's check found wrong with each item; `missing` are
    its problems of items that are not there, `problems` those of the whole.
    """

    fitted: Fitted
    missing: tuple[ItemProblem, ...] = ()
    problems: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def value(self) -> dict[str, Any] | None:
        """The answer without the items that do not fit the schema; None where it cannot be used, as where none does."""
        kept = {name: [item.value for item in items if item.fits] for name, items in self.fitted.items.items()}
        is_hollow = (self.is_cut or any(self.fitted.items.values())) and not any(kept.values())
        return None if self.fitted.problems or is_hollow else {**self.fitted.rest, **kept}

    @property
    def failed(self) -> tuple[FailedItem, ...]:
        """The items that `value` does not have."""
        return tuple(
            FailedItem(name, item.value, item.problems)
            for name, items in self.fitted.items.items()
            for item in items
            if not item.fits
        )

    @property
    def complaints(self) -> tuple[str, ...]:
        """What is wrong with `value`, a sentence each; where there is none, why."""
        is_usable = self.value is not None
        wrong = [
            f"{name}[{place}] {problem}"
            for name, items in self.fitted.items.items()
            for place, item in enumerate(item for item in items if item.fits == is_usable)
            for problem in item.problems
        ]
        return (*self.fitted.problems, *self.problems, *wrong, *map(str, self.missing), *((CUT_OFF,) * self.is_cut))


def read_reply(reply: Reply, schema: Mapping[str, Any], check: Check | None) -> Draft:
    """Return what of `reply` can be used, and what is wrong with the rest."""
    found = find_answer(reply.text)
    return check_draft(Draft(fit(found.value, schema), is_cut=found.is_cut or reply.stop == "length"), check)


def read_value(value: object, schema: Mapping[str, Any], check: Check | None) -> Draft:
    """Return what can be used of an answer that a program gives as JSON."""
    return check_draft(Draft(fit(value, schema)), check)


def check_draft(draft: Draft, check: Check | None) -> Draft:
    """Return `draft` with what `check` finds wrong with its value."""
    value = draft.value
    if value is None or check is None:
        return draft
    found = check(value)
    of_items: dict[tuple[str, int | None], tuple[str, ...]] = {}
    for problem in found:
        if isinstance(problem, ItemProblem):
            place = (problem.items, problem.place)
            of_items[place] = (*of_items.get(place, ()), problem.sentence)
    items: dict[str, tuple[ReadItem, ...]] = {}
    for name, given in draft.fitted.items.items():
        fitting = iter(range(len(given)))
        items[name] = tuple(
            replace(item, problems=of_items.get((name, next(fitting)), ())) if item.fits else item for item in given
        )
    missing = tuple(problem for problem in found if isinstance(problem, ItemProblem) and problem.place is None)
    whole = tuple(problem for problem in found if not isinstance(problem, ItemProblem))
    return replace(draft, fitted=replace(draft.fitted, items=items), missing=missing, problems=whole)


def plan_repair(draft: Draft, request: Request, reply: Reply) -> Request | None:
    """Return the request that asks for what `draft` lacks; None where there is nothing to mend."""
    items = draft.fitted.items
    if _is_lost(draft):
        return _repaired(
            request, reply.text, draft.complaints, "Answer again, with the whole JSON object and nothing else."
        )
    if draft.is_cut:
        shown = {name: [item.value for item in given] for name, given in items.items()}
        order = "Go on: answer with one JSON object of the same form that has what is missing, and no item twice."
        return _repaired(request, _shown(shown), [CUT_OFF], order)
    asked = {name: _to_mend(given) for name, given in items.items() if _to_mend(given)}
    wrong = [
        f"{name}[{place}] {'; '.join(item.problems)}"
        for name, given in asked.items()
        for place, item in enumerate(given)
    ]
    wrong += map(str, draft.missing)
    if not wrong:
        return None
    lists = dict.fromkeys([*asked, *(problem.items for problem in draft.missing)])
    shown = {name: [item.value for item in asked.get(name, ())] for name in lists}
    order = "Answer with one JSON object of the same form that has these items alone: the others are kept."
    return _repaired(request, _shown(shown), wrong, order)


def take_repair(draft: Draft, reply: Reply, schema: Mapping[str, Any], check: Check | None) -> Draft:
    """Return `draft` with what the answer to its repair brings; the answer to a repair of the whole takes its place."""
    repair = read_reply(reply, schema, None)
    if _is_lost(draft):
        # What can be used as it was is not given up for what cannot.
        return check_draft(repair, check) if repair.value is not None or draft.value is None else draft
    items = dict(draft.fitted.items)
    for name, given in repair.fitted.items.items():
        items[name] = _joined(items.get(name, ()), given, is_cut=draft.is_cut)
    rest = {**repair.fitted.rest, **draft.fitted.rest}
    for name, given in repair.fitted.rest.items():
        if isinstance(given, list):  # of plain values, such as numbers
            rest[name] = [*rest[name], *(value for value in given if value not in rest[name])]
    joined = Draft(replace(draft.fitted, items=items, rest=rest), is_cut=draft.is_cut and repair.is_cut)
    return check_draft(joined, check)


def _is_lost(draft: Draft) -> bool:
    """Return True where no item can be kept while others are mended."""
    return draft.value is None or (bool(draft.problems) and not draft.is_cut)


def _to_mend(items: Sequence[ReadItem]) -> list[ReadItem]:
    return [item for item in items if item.problems]


def _joined(kept: Sequence[ReadItem], given: Sequence[ReadItem], *, is_cut: bool) -> tuple[ReadItem, ...]:
    """`kept` with the items of a repair: each in the place of the one with its number, else of the next that needed
    one. A model that gives all items again changes none of those that were kept.
    """
    sound = [item.value for item in kept if not item.problems]
    if any(_number_of(item.value) is not None for item in given):
        settled = {_number_of(value) for value in sound}
        new = [item for item in given if _number_of(item.value) not in settled]
        answered = {_number_of(item.value) for item in new} - {None}
        return (*(item for item in kept if _number_of(item.value) not in answered), *new)
    new = [item for item in given if item.value not in sound]
    if is_cut:
        return (*kept, *new)
    mended = iter(new)
    return tuple(next(mended, item) if item.problems else item for item in kept)


def _number_of(value: Any) -> int | None:
    number = value.get(_NUMBER) if isinstance(value, dict) else None
    return number if isinstance(number, int) else None


def _repaired(request: Request, shown: str, problems: Sequence[str], order: str) -> Request:
    turns = (
        *request.turns,
        ChatMessage("assistant", shown or "(nothing)"),
        ChatMessage("user", f"That does not fit: {'; '.join(problems[:MAX_PROBLEMS])}. {order}"),
    )
    return replace(request, turns=turns)


def _shown(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
