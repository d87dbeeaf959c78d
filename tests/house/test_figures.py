"""Figures of the code, each with a ceiling that only goes down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from house_figures import Package, measure

ROOT = Path(__file__).parents[2]
CEILINGS = {
    "lines": 79_661,
    "record classes": 302,
    "record fields": 1_780,
    "lambdas without arguments": 1,
    "functions that take a Callable": 21,
    "private functions used once per 1,000 lines": 6.0,
    "own imports inside functions per 1,000 lines": 1.6,
    "dialect words per 1,000 lines": 2.3,
}
"""Lower one whenever the code allows it: `python tests/house_figures.py` prints the figures."""

WALK_CEILINGS = {
    "a question, warm": {"files": 55, "functions": 251, "depth": 15, "lambdas": 28, "climbs": 1},
    "a fact remembered": {"files": 46, "functions": 236, "depth": 18, "lambdas": 1, "climbs": 5},
    "an edit saved, a question": {"files": 62, "functions": 356, "depth": 19, "lambdas": 17, "climbs": 2},
    "a note shown": {"files": 13, "functions": 36, "depth": 10, "lambdas": 1, "climbs": 0},
    "why": {"files": 31, "functions": 144, "depth": 16, "lambdas": 2, "climbs": 0},
    "a fact forgotten": {"files": 31, "functions": 166, "depth": 18, "lambdas": 2, "climbs": 5},
    "a run of the janitor": {"files": 120, "functions": 660, "depth": 21, "lambdas": 21, "climbs": 13},
}
"""Operation -> files and functions entered, depth of calls, lambdas called, and calls from a lower package up into a higher one.
`python tests/walk.py -v` prints them. Some more than are entered: what a background thread does in time differs."""


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
