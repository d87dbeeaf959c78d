"""docs/explanation/trust.md promises what tests hold, and shows the table that the program prints."""

from __future__ import annotations

import ast
import importlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "trust.md").read_text("utf-8")
PROMISES = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
NAMED = re.findall(r"`(tests/[\w/]+\.py(?:::\w+)+)`", PAGE)


def is_there(named: str) -> bool:
    """Is there such a test, in the class that is named?"""
    path, *names = named.split("::")
    if not (ROOT / path).is_file():
        return False
    inside = ast.parse((ROOT / path).read_text("utf-8")).body
    for name in names:
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = next((node for node in inside if isinstance(node, kinds) and node.name == name), None)
        if found is None:
            return False
        inside = found.body
    return names[-1].startswith("test_")


def test_ten_sentences_at_most_say_who_cannot_do_what() -> None:
    assert [int(number) for number, _, _ in PROMISES] == list(range(1, len(PROMISES) + 1))
    assert 5 <= len(PROMISES) <= 10
    for _, sentence, tests in PROMISES:
        assert re.fullmatch(r"Somebody [^.]+ cannot [^.]+\.", sentence), sentence
        assert NAMED
        assert re.fullmatch(r"(?:`tests/[^`]+`(?:, |$))+", tests), tests


def test_every_test_that_a_promise_names_is_there() -> None:
    assert [named for named in NAMED if not is_there(named)] == []
    assert is_there("tests/house/test_guarantees.py::test_every_test_that_a_promise_names_is_there")
    assert not is_there("tests/house/test_guarantees.py::test_that_was_renamed")
    assert not is_there("tests/house/test_guarantees.py::TestNothing::test_that_was_renamed")
    assert not is_there("tests/house/test_gone.py::test_that_was_renamed")


# -- the table -------------------------------------------------------------------------------------------------------


@pytest.fixture
def table() -> Iterator[ModuleType]:
    path = list(sys.path)
    sys.path.insert(0, str(ROOT / "tests" / "guarantees"))
    yield importlib.import_module("table")
    sys.path[:] = path


@pytest.mark.slow
def test_every_promise_is_kept_in_a_few_rounds_and_the_page_has_the_same_rows(table: ModuleType) -> None:
    found = table.measure(is_short=True)
    assert [(name, row) for name, row in table.list_promises(found) if row["broken"]] == []
    names = [line.split(" | ")[0] for line in table.render(found) if "pairs reported" not in line]
    shown = [
        line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| ") and "pairs reported" not in line
    ]
    assert [name for name in names if name not in shown and name != "|---|---|---|"] == []


@pytest.mark.slow
def test_a_broken_promise_would_be_counted(table: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same questions asked by the owner of the private notes are answered with them."""
    measures, ask = table.measures, table.measures.answers_at_doors

    def as_jon(*asked: object) -> Iterator[tuple[str, str, str]]:
        os.environ["QUAID_OWNER"] = "jon"  # the measure takes its own environment back
        return ask(*asked)

    monkeypatch.setattr(measures, "answers_at_doors", as_jon)
    found = measures.count_leaks(is_short=True)
    assert found["broken"] > found["of"] / 3
