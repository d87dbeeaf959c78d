"""The short form of tests/torture/nights.py: some nights whose owner does what owners do."""

from __future__ import annotations

import random
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_nights_lose_nothing_and_do_nothing_twice(vault):
    spec = spec_from_file_location("torture_nights", Path(__file__).parents[1] / "torture" / "nights.py")
    assert spec is not None
    nights = module_from_spec(spec)
    spec.loader.exec_module(nights)
    year = nights.Year(vault, random.Random(3))
    year.live(5)
    assert year.broken == []
    assert year.counts["decided"] + year.counts["vetoed"] > 3
