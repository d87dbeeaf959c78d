"""The examples of the documentation: Python runs, JSON, YAML and TOML are well-formed. Sessions are typed in tests/cli."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCKS = [
    pytest.param(language, text, id=f"{path.relative_to(ROOT)}:{number}")
    for path in PAGES
    for number, (language, text) in enumerate(re.findall(r"(?m)^```(\w+)\n((?:.*\n)*?)```$", path.read_text("utf-8")))
    if language in {"python", "json", "yaml", "toml"}
]
LEFT_OUT = "…"


def parse(language, text):
    if language == "toml":
        return tomllib.loads(text)
    if language == "yaml":
        return yaml.safe_load(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:  # lines of JSON, each with what it continues
        return [json.loads(part) for part in re.split(r"\n(?=\{)", text.strip())]


@pytest.mark.parametrize(("language", "text"), [block for block in BLOCKS if block.values[0] != "python"])
def test_an_example_is_well_formed(language, text):
    if LEFT_OUT not in text:
        assert parse(language, text) is not None


@pytest.mark.slow
@pytest.mark.parametrize(("language", "text"), [block for block in BLOCKS if block.values[0] == "python"])
def test_an_example_in_python_runs(language, text, tmp_path):
    tree = ast.parse(text)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in imported} - {"quaid"} - sys.stdlib_module_names
    if foreign:
        pytest.skip(f"it needs {', '.join(sorted(foreign))}: tests/integrations run it")
    environ = os.environ | {"HOME": str(tmp_path), "QUAID_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT)}
    for command in ([sys.executable, "-m", "quaid", "init", str(tmp_path / "quaid")], [sys.executable, "-c", text]):
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout
