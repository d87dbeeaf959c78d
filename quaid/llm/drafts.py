"""The usable part of a model's answer so far, and the request for the rest.

The items of an answer's lists (facts, verdicts, pairs) are checked and repaired one by one: one that does not fit does
not spoil the others. A repair shows the model the unusable items with their problems and asks for these alone; missing
ones are named, and an answer that was cut off is continued. The whole answer is only asked for again where it cannot be
used as a whole.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quaid.llm.answers import find_answer
from quaid.llm.exchange import AnswerItem, Check, ItemProblem, Reply, Request, Role
from quaid.llm.schema import as_list, coerce, item_lists, read_names, violations

MAX_PROBLEMS = 20
"""Problems that one repair names."""
CUT_OFF = "it was cut off"
_NUMBER = "n"
"""The property that identifies the answers to numbered questions."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer so far: `items` are its lists of items, by name, with the problems of each; `rest` its other
    properties. With `broken`, it cannot be used as a whole. `missing` are the problems of items that are not there,
    `problems` those that the caller's check finds in the whole.
    """

    rest: Mapping[str, Any]
    items: Mapping[str, tuple[AnswerItem, ...]]
    broken: tuple[str, ...] = ()
    missing: tuple[ItemProblem, ...] = ()
    problems: tuple[str, ...] = ()
    is_cut: bool = False

    @property
    def value(self) -> dict[str, Any] | None:
        """The answer without the items that do not fit the schema; None where it cannot be used, as where none does."""
        fitting = {name: [item.value for item in items if item.fits] for name, items in self.items.items()}
        is_hollow = (self.is_cut or any(self.items.values())) and not any(fitting.values())
        return None if self.broken or is_hollow else {**self.rest, **fitting}

    @property
    def failed(self) -> tuple[AnswerItem, ...]:
        """The items that `value` does not have."""
        return tuple(item for items in self.items.values() for item in items if not item.fits)

    @property
    def complaints(self) -> tuple[str, ...]:
        """The problems of `value`, a sentence each; where there is none, why."""
        is_usable = self.value is not None
        wrong = [
            f"{name}[{place}] {problem}"
            for name, items in self.items.items()
            for place, item in enumerate(item for item in items if item.fits == is_usable)
            for problem in item.problems
        ]
        return (*self.broken, *self.problems, *wrong, *map(str, self.missing), *((CUT_OFF,) * self.is_cut))

    @property
    def is_lost(self) -> bool:
        """Whether no item can be retained while others are repaired."""
        return self.value is None or (bool(self.problems) and not self.is_cut)


def fit(found: object, schema: Mapping[str, Any]) -> Draft:
    """Return `found`, an object or a list of the items of the only list, in the form of `schema`."""
    lists = item_lists(schema)
    if isinstance(found, list) and len(lists) == 1:
        found = {next(iter(lists)): found}
    if not isinstance(found, dict):
        return Draft({}, {}, ("it holds no JSON object",))
    named = read_names(found, schema)
    items: dict[str, tuple[AnswerItem, ...]] = {}
    for name, part in lists.items():
        given = as_list(named.get(name), part) if name in named else None
        if isinstance(given, list):
            present = [value for value in given if value not in (None, {}, "")]
            listed = []
            for value in present[: schema["properties"][name].get("maxItems")]:
                read = coerce(value, part)
                wrong = tuple(violations(read, part, "it"))
                listed.append(AnswerItem(name, value if wrong else read, wrong, fits=not wrong))
            items[name], named[name] = tuple(listed), []
    rest = {name: value for name, value in coerce(named, schema).items() if name not in items}
    # How many items a list must have is for the caller's check: one that is missing can be asked for.
    properties = {name: part for name, part in schema["properties"].items() if name not in items}
    required = [name for name in schema["required"] if name not in items]
    problems = violations(rest, {**schema, "properties": properties, "required": required})
    return Draft(rest, items, tuple(problems))


def read_reply(reply: Reply, schema: Mapping[str, Any], check: Check | None) -> Draft:
    """Return the usable part of `reply`, and the problems of the rest."""
    value, is_cut = find_answer(reply.text)
    return _check(replace(fit(value, schema), is_cut=is_cut or reply.stop == "length"), check)


def read_value(value: object, schema: Mapping[str, Any], check: Check | None) -> Draft:
    """Return the usable part of an answer that a program gives as JSON."""
    return _check(fit(value, schema), check)


def _check(draft: Draft, check: Check | None) -> Draft:
    """Return `draft` with the problems that `check` finds in its value."""
    value = draft.value
    if value is None or check is None:
        return draft
    found = check(value)
    of_items: dict[tuple[str, int | None], tuple[str, ...]] = {}
    for problem in found:
        if isinstance(problem, ItemProblem):
            place = (problem.items, problem.place)
            of_items[place] = (*of_items.get(place, ()), problem.sentence)
    items: dict[str, tuple[AnswerItem, ...]] = {}
    for name, given in draft.items.items():
        fitting = iter(range(len(given)))
        items[name] = tuple(
            replace(item, problems=of_items.get((name, next(fitting)), ())) if item.fits else item for item in given
        )
    missing = tuple(problem for problem in found if isinstance(problem, ItemProblem) and problem.place is None)
    whole = tuple(problem for problem in found if not isinstance(problem, ItemProblem))
    return replace(draft, items=items, missing=missing, problems=whole)


def plan_repair(draft: Draft, request: Request, reply: Reply) -> Request | None:
    """Return the request that asks for what `draft` lacks; None where there is nothing to repair."""
    if draft.is_lost:
        shown, wrong = reply.text, draft.complaints
        order = "Answer again, with the whole JSON object and nothing else."
    elif draft.is_cut:
        shown, wrong = _render(draft.items), (CUT_OFF,)
        order = "Go on: answer with one JSON object of the same form that has what is missing, and no item twice."
    else:
        unusable = {name: [item for item in given if item.problems] for name, given in draft.items.items()}
        unusable = {name: given for name, given in unusable.items() if given}
        wrong = (
            *(
                f"{name}[{place}] {'; '.join(item.problems)}"
                for name, given in unusable.items()
                for place, item in enumerate(given)
            ),
            *map(str, draft.missing),
        )
        if not wrong:
            return None
        lists = dict.fromkeys([*unusable, *(problem.items for problem in draft.missing)])
        shown = _render({name: unusable.get(name, ()) for name in lists})
        order = "Answer with one JSON object of the same form that has these items alone: the others are kept."
    problems = "; ".join(wrong[:MAX_PROBLEMS])
    later: tuple[tuple[Role, str], ...] = (
        ("assistant", shown or "(nothing)"),
        ("user", f"That does not fit: {problems}. {order}"),
    )
    return replace(request, turns=(*request.turns, *later))


def _render(items: Mapping[str, Sequence[AnswerItem]]) -> str:
    return json.dumps({name: [item.value for item in given] for name, given in items.items()}, ensure_ascii=False)


def take_repair(draft: Draft, reply: Reply, schema: Mapping[str, Any], check: Check | None) -> Draft:
    """Return `draft` with the answer to its repair; the answer to a repair of the whole replaces it."""
    repair = read_reply(reply, schema, None)
    if draft.is_lost:
        # What can be used as it was is not given up for what cannot.
        return _check(repair, check) if repair.value is not None or draft.value is None else draft
    items = dict(draft.items)
    for name, given in repair.items.items():
        items[name] = _join(items.get(name, ()), given, is_cut=draft.is_cut)
    rest = {**repair.rest, **draft.rest}
    for name, given in repair.rest.items():
        if isinstance(given, list):  # of plain values, such as numbers
            rest[name] = [*rest[name], *(value for value in given if value not in rest[name])]
    return _check(Draft(rest, items, draft.broken, is_cut=draft.is_cut and repair.is_cut), check)


def _join(old: Sequence[AnswerItem], given: Sequence[AnswerItem], *, is_cut: bool) -> tuple[AnswerItem, ...]:
    """Return `old` with the items of a repair: each in the place of the one with its number, else of the next that
    needed one. A model that gives all items again changes none of the sound ones.
    """
    sound = [item.value for item in old if not item.problems]
    if any(_number_of(item.value) is not None for item in given):
        settled = {_number_of(value) for value in sound}
        new = [item for item in given if _number_of(item.value) not in settled]
        answered = {_number_of(item.value) for item in new} - {None}
        return (*(item for item in old if _number_of(item.value) not in answered), *new)
    new = [item for item in given if item.value not in sound]
    if is_cut:
        return (*old, *new)
    mended = iter(new)
    return tuple(next(mended, item) if item.problems else item for item in old)


def _number_of(value: Any) -> int | None:
    number = value.get(_NUMBER) if isinstance(value, dict) else None
    return number if isinstance(number, int) else None
