"""Several vaults asked as one: each answers in a thread of its own, and their answers are merged."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from quaid import trust
from quaid.errors import BadInputError, QuaidError
from quaid.memory import Memory
from quaid.model import Recall
from quaid.recall.answers import fit_core_notes
from quaid.recall.cutoff import MAX_IN_BUDGET
from quaid.recall.merging import merge, share_of
from quaid.recall.options import RecallOptions
from quaid.recall.trace import list_degraded, with_degraded
from quaid.resident.worker import Worker
from quaid.settings import RecallSettings


class Question(NamedTuple):
    """A question to several vaults: `options` are the fields of `RecallOptions`, all else is as for `Memory.recall`."""

    text: str
    options: Mapping[str, Any]
    as_of: str | None = None
    session: str | None = None
    door: str = "python"
    keep: bool = True


class _Answered(NamedTuple):
    """The answer of one vault, with the settings of its recall, and what its user should know of how it was opened."""

    answer: Recall
    settings: RecallSettings
    asks_model: bool
    remarks: tuple[str, ...]


class Federation:
    """Vaults that are asked as one, by their names. The settings of the first one say how many hits there are and where
    relevance ends. One that could not be asked is named in `degraded` and stops no other.
    """

    def __init__(self, workers: Mapping[str, Worker]) -> None:
        self._workers = dict(workers)
        self.remarks: tuple[str, ...] = ()

    @classmethod
    def open(cls, paths: Sequence[str | os.PathLike[str]], owner: str | None = None) -> Self:
        """Return the vaults at `paths`. That one is missing or not trusted is told when it is asked."""
        named = name_vaults(paths)
        return cls({name: Worker(name, root, owner) for name, root in named.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._workers)

    def worker_of(self, name: str | None = None) -> Worker:
        """Return the worker of the vault that is called so, of the first one without a name. BadInputError: none is."""
        if name is None:
            return next(iter(self._workers.values()))
        self._check([name])
        return self._workers[name]

    def _check(self, names: Collection[str]) -> None:
        if unknown := sorted(set(names) - set(self._workers)):
            raise BadInputError(f"There is no vault {unknown[0][:80]!r} here. There are: {', '.join(self._workers)}")

    def recall(self, question: Question, among: Collection[str] = ()) -> Recall:
        """Return the memories of all vaults, or of those in `among`, that answer, best first.

        Raises:
            BadInputError: a name in `among` is not one of theirs.
            QuaidError, OSError: none of them could be asked; the error is that of the first.
        """
        self._check(among)
        started = time.perf_counter()
        asked = {name: worker for name, worker in self._workers.items() if not among or name in among}
        found, failed = _ask(asked, question)
        home = next(iter(found.values())).settings
        wanted = RecallOptions(**question.options)
        merged = _merge(found, home, wanted)
        depth = question.options.get("depth") or home.depth
        if merged.doubt and depth == "auto" and any(each.asks_model for each in found.values()):
            again, _ = _ask({name: asked[name] for name in found}, question, depth="auto")
            found |= again
            merged = _merge(found, home, wanted)
        self.remarks = tuple(f"vault {name}: {said}" for name, each in found.items() for said in each.remarks)
        merged = with_degraded(merged, [f"vault {name}: {error}" for name, error in failed.items()])
        if question.keep and question.as_of is None and question.text.strip():
            merged = with_degraded(merged, _keep(asked, found, merged, question))
        return replace(merged, took_ms=(time.perf_counter() - started) * 1000)

    def close(self) -> None:
        """Close all vaults."""
        wait([worker.close() for worker in self._workers.values()])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def name_vaults(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return the folders of vaults by what they are called: the name of the folder, its path where two have the same.
    A vault that is named twice is one.
    """
    roots: dict[str, Path] = {}
    for path in paths:
        root = trust.locate_vault(path)[0]
        roots.setdefault(os.path.realpath(root), root)
    counts = Counter(root.name for root in roots.values())
    return {root.name if counts[root.name] == 1 else str(root): root for root in roots.values()}


def _ask(
    asked: Mapping[str, Worker], question: Question, depth: str | None = None
) -> tuple[dict[str, _Answered], dict[str, QuaidError | OSError]]:
    """Return what each vault answers, and of the others why they could not be asked.

    Raises:
        QuaidError, OSError: none answered; the error is that of the first.
    """

    def ask(memory: Memory) -> _Answered:
        return _answer(memory, question, depth)

    waiting: dict[str, Future[_Answered]] = {name: worker.submit(ask) for name, worker in asked.items()}
    found: dict[str, _Answered] = {}
    failed: dict[str, QuaidError | OSError] = {}
    for name, future in waiting.items():
        try:
            found[name] = future.result()
        except (QuaidError, OSError) as error:
            failed[name] = error
    if not found:
        raise next(iter(failed.values()))
    return found, failed


def _answer(memory: Memory, question: Question, depth: str | None) -> _Answered:
    """Return the answer of one vault as it can be merged: whole, with as many hits as all together may have.

    A vault that has nothing to do with the question is always in doubt, so no model is asked before all are.
    """
    settings = memory.settings.recall
    options = dict(question.options)
    budget = options.pop("budget", None)
    options["depth"] = options.get("depth") or settings.depth
    if options["depth"] == "auto":
        options["depth"] = depth or "fast"
    most = MAX_IN_BUDGET if budget is not None else settings.k_most
    options["limit"] = options.get("limit") or settings.limit or most
    options |= {"comparable": True, "beside": options.get("beside", False) or budget is not None}
    if not options.get("keyword_only"):
        memory.warm()
    answer = memory.recall(question.text, as_of=question.as_of, keep=False, **options)
    asks_model = memory.settings.models.provider not in {"", "none"}
    return _Answered(answer, settings, asks_model, memory.remarks)


def _merge(found: Mapping[str, _Answered], settings: RecallSettings, wanted: RecallOptions) -> Recall:
    """Return one answer, packed where there is a budget."""
    merged = merge({name: each.answer for name, each in found.items()}, settings, wanted)
    if wanted.budget is None:
        return merged
    from quaid.recall.blocks import pack  # not above: most questions have no budget

    context, room = fit_core_notes(merged.context, wanted.budget)
    told = pack(merged.hits, room, question=merged.query, more=merged.more, with_ids=wanted.with_ids)
    return replace(merged, hits=told.hits, text=told.text, context=context)


def _keep(asked: Mapping[str, Worker], found: Mapping[str, _Answered], merged: Recall, question: Question) -> list[str]:
    """Let each vault record what was given of it, and return what could not be. One of which nothing was given has not
    answered, and is not left with a question that another did answer.
    """
    options = RecallOptions(**question.options)
    given = {hit.vault for hit in merged.hits} or set(found)
    waiting: dict[str, Future[Recall]] = {}
    for name in sorted(given):
        answer = share_of(merged, name, found[name].answer)

        def keep(memory: Memory, answer: Recall = answer) -> Recall:
            return memory.answers.keep(answer, options, door=question.door, session=question.session)

        waiting[name] = asked[name].submit(keep)
    problems = []
    for name, future in waiting.items():
        kept, known = future.result(), found[name].answer
        said = set(list_degraded(kept.degraded, kept.trace)).difference(list_degraded(known.degraded, known.trace))
        problems += [f"vault {name}: {sentence}" for sentence in sorted(said)]
    return problems
