"""No text makes a regular expression of Quaid's slow: twice the text takes twice the time."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from pumping import MAX_GROWTH, growth, texts

import quaid

PACKAGE = Path(quaid.__file__).parent
ANCHORED = {"match", "fullmatch"}
METHODS = {"search", "sub", "subn", "split", "findall", "finditer", *ANCHORED}
NOT_SO_USED = {
    "quaid.redaction.sentences._STATED": "matches behind a name, through a variable",
    "quaid.redaction.sentences._STATED_IN_FOREIGN_LANGUAGE": "matches behind a name, through a variable",
    "quaid.capture.transcripts.agents._CODEX_SKIPPED": "holds a word whole, through a variable",
    "quaid.capture.transcripts.exports.CONVERSATIONS": "holds the name of a file whole, through a variable",
    "quaid.capture.importers.agent_memories.MEMORIES": "holds the name of a file whole, through a variable",
    "quaid.capture.importers.agent_memories._PROJECTS": "holds the name of a file whole, through a variable",
    "quaid.docs.validation._COMMENT": "sees a text up to its last -->",
    "quaid.docs.mentions._SPAN": "sees _MAX_LINE characters",
    "quaid.vault.core_notes._OBSERVED": "holds a heading whole, through a variable, in _dated",
    "quaid.vault.core_notes._BULLET_MARKS": "matches at the beginning of a line, in _escape",
    "quaid.vault.core_notes._PARAGRAPH_MARKS": "matches at the beginning of a line, in _escape",
}
"""What would be slow if it searched in a long text, and why it never does."""


def modules() -> Iterator[tuple[str, object, ast.Module]]:
    for info in pkgutil.walk_packages([str(PACKAGE)], "quaid."):
        if info.name.startswith("quaid.index.postgres.") and importlib.util.find_spec("psycopg") is None:
            continue  # only servers have it
        module = importlib.import_module(info.name)
        yield info.name, module, ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def inside(value: object, depth: int = 3) -> Iterator[re.Pattern]:
    """The patterns in a value, in containers and dataclasses too."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from inside(item, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from inside(item, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from inside(getattr(value, field.name, None), depth - 1)


def collect() -> list[tuple[str, re.Pattern, str]]:
    """(where, pattern, how it is used): "sub" for what looks at every place of a text, else the anchored way."""
    found: dict[tuple[str | bytes, int], tuple[str, re.Pattern]] = {}
    uses: dict[str, set[str]] = defaultdict(set)
    for name, module, tree in modules():
        for variable, value in vars(module).items():
            for pattern in inside(value):
                found.setdefault((pattern.pattern, pattern.flags), (f"{name}.{variable}", pattern))
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and node.attr in METHODS):
                continue
            owner = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
            uses[f"{name}.{owner}" if owner.startswith("_") else owner].add(node.attr)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{method}" for method in METHODS}:
                given = node.args[0]
                text = getattr(module, given.id, None) if isinstance(given, ast.Name) else getattr(given, "value", None)
                if isinstance(text, str):
                    flags = sum(getattr(re, flag) for flag in re.findall(r"re\.([A-Z]+)", ast.unparse(node)))
                    where = f"{name}:{node.lineno}"
                    uses[where].add(node.func.attr)
                    pattern = re.compile(text, flags)
                    found.setdefault((pattern.pattern, pattern.flags), (where, pattern))
    used = [(where, pattern, uses[where] | uses[where.rpartition(".")[2]]) for where, pattern in found.values()]
    return [(where, pattern, min(how) if how and how <= ANCHORED else "sub") for where, pattern, how in used]


@pytest.mark.slow
def test_no_pattern_takes_longer_than_its_text():
    patterns = collect()
    assert len(patterns) > 250
    slow = {}
    for where, pattern, how in patterns:
        if where in NOT_SO_USED:
            continue
        worst = max((growth(pattern, text, how), repr(text(30))) for text in texts(pattern))
        if worst[0] > MAX_GROWTH:
            slow[where] = (pattern.pattern, how, *worst)
    assert slow == {}
    assert NOT_SO_USED.keys() <= {where for where, _pattern, _how in patterns}


@pytest.mark.slow
@pytest.mark.parametrize("source", [r"<!--.*?-->", r"(?:\s+#[^\s#]\S*)+\s*$", r"(a|a)*b", r"\s+$"])
def test_a_slow_pattern_is_found(source):
    pattern = re.compile(source, re.DOTALL)
    assert any(growth(pattern, text, "sub") > MAX_GROWTH for text in texts(pattern))
