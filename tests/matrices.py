"""Matrices of cases: a seeded tenth of each runs by default, all of it with `pytest -m ''` or `pytest -m slow`."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import Signature, signature
from typing import Any
from zlib import crc32

import pytest

_WHOLE = "QUAID_TESTS_WHOLE_MATRICES"
_SEED = 32

Test = Callable[..., Any]


def choose_extent(config: pytest.Config) -> None:
    """Run matrices whole where slow tests were asked for."""
    os.environ[_WHOLE] = "" if config.option.markexpr == "not slow" else "1"


def tenth(cases: Iterable[object], at_least: int = 1) -> list:
    """The cases of a loop inside a test: a seeded tenth of them, in order; all where slow tests were asked for."""
    found = list(cases)
    if os.environ.get(_WHOLE):
        return found
    chosen = random.Random(_SEED).sample(range(len(found)), min(len(found), max(at_least, len(found) // 10)))
    return [found[number] for number in sorted(chosen)]


def examples(count: int) -> int:
    """How many examples Hypothesis tries: a tenth of `count`, all where slow tests were asked for."""
    return count if os.environ.get(_WHOLE) else max(5, count // 10)


def for_each(names: str | Sequence[str], cases: Iterable[object]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize` in one test: for hundreds of small cases without fixtures, of which each as a test
    of its own would cost more than it takes.
    """
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    all_cases = [case if len(split) > 1 else (case,) for case in cases]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(*self: object, **given: object) -> None:
            for case in all_cases:
                try:
                    test(*self, **given, **dict(zip(split, case, strict=True)))
                except Exception as error:
                    error.add_note(f"the case: {', '.join(split)} = {case!r}")
                    raise

        parameters = signature(test).parameters.values()
        run.__signature__ = Signature([each for each in parameters if each.name not in split])
        return run

    return decorate


def thin_out(items: list[pytest.Item]) -> None:
    """Mark as slow what needs a browser or a program of others, and of each matrix all but a seeded tenth."""
    matrices: dict[str, list[pytest.Item]] = {}
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()) or item.path.parent.name in {"e2e", "fuzz"}:
            item.add_marker("slow")
        if item.get_closest_marker("matrix"):
            matrices.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in matrices.values():
        cases.sort(key=lambda item: crc32(item.nodeid.encode(), _SEED))
        for item in cases[max(1, len(cases) // 10) :]:
            item.add_marker("slow")
