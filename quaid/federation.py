"""Several vaults queried as one: each answers in its own thread, and the answers are merged."""

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from quaid import trust
from quaid.errors import BadInputError, QuaidError
from quaid.memory import Memory
from quaid.model import Recall
from quaid.recall.answers import fit_core_notes
from quaid.recall.blocks import pack
from quaid.recall.cutoff import MAX_HITS, MAX_IN_BUDGET
from quaid.recall.merging import merge, share_of
from quaid.recall.options import RecallOptions
from quaid.recall.trace import list_degraded, with_degraded
from quaid.resident.worker import Worker
from quaid.settings import RecallSettings, Settings

VaultAnswer = tuple[Recall, Settings, tuple[str, ...]]
"""The answer of one vault, its settings, and the remarks on how it was opened."""


class Federation:
    """Named vaults that are queried as one. The settings of the first one say how many hits there are and where
    relevance ends. A vault that cannot be queried is named in `degraded` and does not stop the others.
    """

    def __init__(self, workers: Mapping[str, Worker], *, is_recorded: bool = True) -> None:
        self._workers = dict(workers)
        self._is_recorded = is_recorded
        self.remarks: tuple[str, ...] = ()

    @classmethod
    def open(cls, paths: Sequence[str | os.PathLike[str]], owner: str | None = None) -> Self:
        """Return the vaults at `paths`. Whether one is missing or not trusted is reported by the first query."""
        named = name_vaults(paths)
        return cls({name: Worker(name, root, owner) for name, root in named.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._workers)

    def worker_of(self, name: str | None = None) -> Worker:
        """Return the worker of a vault, of the first one without a name. BadInputError: no vault has that name."""
        if name is None:
            return next(iter(self._workers.values()))
        self._check([name])
        return self._workers[name]

    def _check(self, names: Collection[str]) -> None:
        if unknown := sorted(set(names) - set(self._workers)):
            raise BadInputError(f"There is no vault {unknown[0][:80]!r} here. There are: {', '.join(self._workers)}")

    def recall(
        self,
        query: str,
        *,
        among: Collection[str] = (),
        as_of: str | None = None,
        session: str | None = None,
        door: str = "python",
        keep: bool = True,
        **options: Any,
    ) -> Recall:
        """Return the memories of all vaults, or of those in `among`, best first; all else is as for `Memory.recall`.

        Raises:
            BadInputError: a name in `among` is unknown.
            QuaidError, OSError: no vault could be queried; the error is that of the first.
        """
        self._check(among)
        started = time.perf_counter()
        workers = {name: worker for name, worker in self._workers.items() if not among or name in among}
        ask = partial(_ask, query=query, as_of=as_of, options=options)
        found, failed = ask(workers)
        home = next(iter(found.values()))[1].recall
        wanted = RecallOptions(**options)
        merged = _merge(found, home, wanted)
        depth = options.get("depth") or home.depth
        has_model = any(settings.models.provider not in {"", "none"} for _, settings, _ in found.values())
        if merged.doubt and depth == "auto" and has_model:
            again, _ = ask({name: workers[name] for name in found}, depth="auto")
            found |= again
            merged = _merge(found, home, wanted)
        self.remarks = tuple(f"vault {name}: {remark}" for name, (_, _, said) in found.items() for remark in said)
        problems = [f"vault {name}: {error}" for name, error in failed.items()]
        if keep and self._is_recorded and as_of is None and query.strip():
            problems += _record(workers, found, merged, wanted, door, session)
        return replace(with_degraded(merged, problems), took_ms=(time.perf_counter() - started) * 1000)

    def close(self) -> None:
        """Close all vaults."""
        wait([worker.close() for worker in self._workers.values()])


def name_vaults(paths: Iterable[str | os.PathLike[str]]) -> dict[str, Path]:
    """Return the folders of vaults by name: the name of the folder, or its path where two folders have the same name. A
    vault that is given twice is one.
    """
    roots: dict[str, Path] = {}
    for path in paths:
        root = trust.locate_vault(path)[0]
        roots.setdefault(os.path.realpath(root), root)
    counts = Counter(root.name for root in roots.values())
    return {root.name if counts[root.name] == 1 else str(root): root for root in roots.values()}


def _ask(
    workers: Mapping[str, Worker], query: str, as_of: str | None, options: Mapping[str, Any], depth: str = "fast"
) -> tuple[dict[str, VaultAnswer], dict[str, QuaidError | OSError]]:
    """Return the answer of each vault, and of the others why they could not be queried.

    Raises:
        QuaidError, OSError: none answered; the error is that of the first.
    """
    job = partial(_answer, query=query, as_of=as_of, given=options, depth=depth)
    pending = {name: worker.submit(job) for name, worker in workers.items()}
    found: dict[str, VaultAnswer] = {}
    failed: dict[str, QuaidError | OSError] = {}
    for name, future in pending.items():
        try:
            found[name] = future.result()
        except (QuaidError, OSError) as error:
            failed[name] = error
    if not found:
        raise next(iter(failed.values()))
    return found, failed


def _answer(memory: Memory, query: str, as_of: str | None, given: Mapping[str, Any], depth: str) -> VaultAnswer:
    """Return the answer of one vault in a form that can be merged: whole, with as many hits as all together may have.

    A vault that has nothing to do with the question always has low confidence, so a model is used only if all have.
    """
    settings = memory.settings.recall
    options = dict(given)
    budget = options.pop("budget", None)
    options["depth"] = options.get("depth") or settings.depth
    if options["depth"] == "auto":
        options["depth"] = depth
    most = MAX_IN_BUDGET if budget is not None else MAX_HITS
    options["limit"] = options.get("limit") or settings.limit or most
    options |= {"comparable": True, "with_neighbours": options.get("with_neighbours", False) or budget is not None}
    if not options.get("keyword_only"):
        memory.warm()
    answer = memory.recall(query, as_of=as_of, keep=False, **options)
    return answer, memory.settings, memory.remarks


def _merge(found: Mapping[str, VaultAnswer], settings: RecallSettings, wanted: RecallOptions) -> Recall:
    """Return one answer, packed if there is a budget."""
    merged = merge({name: answer for name, (answer, _, _) in found.items()}, settings, wanted)
    if wanted.budget is None:
        return merged
    context, budget = fit_core_notes(merged.context, wanted.budget)
    shown = pack(merged.hits, budget, question=merged.query, more=merged.more, with_ids=wanted.with_ids)
    return replace(merged, hits=shown.hits, text=shown.text, context=context)


def _record(
    workers: Mapping[str, Worker],
    found: Mapping[str, VaultAnswer],
    merged: Recall,
    options: RecallOptions,
    door: str,
    session: str | None,
) -> list[str]:
    """Let each vault record the hits that were given of it, and return what could not be recorded.

    A vault without a hit has not answered: its log must not show an open question that another vault did answer.
    """
    pending = {}
    for name in sorted({hit.vault for hit in merged.hits} or set(found)):
        share = share_of(merged, name, found[name][0])

        def keep(memory: Memory, share: Recall = share) -> Recall:
            return memory.answers.keep(share, options, door=door, session=session)

        pending[name] = workers[name].submit(keep)
    problems = []
    for name, future in pending.items():
        recorded, known = future.result(), found[name][0]
        new = set(list_degraded(recorded.degraded, recorded.trace)).difference(
            list_degraded(known.degraded, known.trace)
        )
        problems += [f"vault {name}: {sentence}" for sentence in sorted(new)]
    return problems
