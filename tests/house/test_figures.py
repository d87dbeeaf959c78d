"""Figures of the code, each with a ceiling that only goes down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from house_figures import Package, measure

ROOT = Path(__file__).parents[2]
CEILINGS = {
    "lines": 81_450,
    "record classes": 386,
    "record fields": 2_126,
    "lambdas without arguments": 26,
    "functions that take a Callable": 60,
    "private functions used once per 1,000 lines": 11.2,
    "own imports inside functions per 1,000 lines": 2.5,
    "dialect words per 1,000 lines": 2.5,
}
"""Lower one whenever the code allows it: `python tests/house_figures.py` prints the figures."""

WALK_CEILINGS = {
    "a question, warm": {"files": 58, "functions": 265, "depth": 19, "lambdas": 40, "climbs": 2},
    "a fact remembered": {"files": 44, "functions": 250, "depth": 18, "lambdas": 2, "climbs": 5},
    "an edit saved, a question": {"files": 62, "functions": 375, "depth": 26, "lambdas": 32, "climbs": 8},
    "a note shown": {"files": 13, "functions": 36, "depth": 14, "lambdas": 2, "climbs": 2},
    "why": {"files": 34, "functions": 165, "depth": 20, "lambdas": 2, "climbs": 2},
    "a fact forgotten": {"files": 30, "functions": 185, "depth": 18, "lambdas": 3, "climbs": 6},
    "a run of the janitor": {"files": 122, "functions": 720, "depth": 23, "lambdas": 30, "climbs": 15},
}
"""Operation -> files and functions entered, depth of calls, lambdas called, and calls from a lower package up into a higher one.
`python tests/walk.py -v` prints them."""


def test_no_figure_of_the_code_is_above_its_ceiling():
    figures = measure(Package(ROOT / "quaid"))
    assert figures.keys() == CEILINGS.keys()
    assert {name: value for name, value in figures.items() if value > CEILINGS[name]} == {}


def test_no_operation_travels_further_than_its_ceiling():
    command = [sys.executable, str(ROOT / "tests" / "walk.py"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found.keys() == WALK_CEILINGS.keys()
    for operation, ceilings in WALK_CEILINGS.items():
        over = {name: found[operation][name] for name, most in ceilings.items() if found[operation][name] > most}
        assert over == {}, operation
