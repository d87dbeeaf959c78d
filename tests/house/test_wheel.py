"""What is installed is whole: a wheel, unpacked elsewhere, makes a vault, remembers and recalls."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SESSION = """
import json, sys
import quaid
from quaid import Memory

memory, created = Memory.create(sys.argv[1])
with memory:
    written = memory.remember("Maya takes oat milk in her coffee")
    hits = memory.recall("which milk does Maya take?").hits
    print(json.dumps({
        "from": quaid.__file__, "files": sorted(created.files), "outcome": written.outcome,
        "found": [hit.text for hit in hits], "verified": memory.verify().ok,
    }))
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    if importlib.util.find_spec("hatchling") and importlib.util.find_spec("build"):
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    else:
        command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(folder), str(ROOT))
        if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:
            pytest.skip("hatchling is neither here nor to be had: pip install '.[dev]'")
    (made,) = folder.glob("quaid-*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-compile",
        "--target",
        folder,
        wheel,
    )
    return folder


@pytest.fixture
def environment(installed, tmp_path):
    """The installed package first, this interpreter's dependencies behind it, and nobody's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("QUAID_", "GIT_", "PYTHON"))}
    return kept | {
        "PYTHONPATH": str(installed), "HOME": str(tmp_path / "home"), "QUAID_EMBEDDING_PROVIDER": "none",
        "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip


def test_everything_that_is_no_module_travels_too(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    template = {f"quaid/data/vault-template/{path.name}" for path in (ROOT / "vault-template").iterdir()}
    prompts = {f"quaid/data/prompts/{path.name}" for path in (ROOT / "prompts").iterdir()}
    tracked = run("git", "ls-files", "hooks", cwd=ROOT).splitlines() if (ROOT / ".git").exists() else []
    plugins = {f"quaid/data/{name}" for name in tracked}
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "quaid").rglob("*")
            if path.is_file() and path.suffix not in {".py", ".pyc"}}  # fmt: skip
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "quaid").rglob("*.py")}
    assert {"quaid/index/schema.sql", "quaid/py.typed", "quaid/cli/demo_conversation.jsonl"} <= data
    assert len(template) >= 8
    assert "quaid/data/prompts/rerank.md" in prompts
    assert "quaid/data/hooks/claude-code/.claude-plugin/plugin.json" in names
    assert names >= template | prompts | plugins | data | modules


def test_nothing_else_travels(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"quaid", next(n for n in names if "dist-info" in n).split("/")[0]}
    assert not [name for name in names if name.endswith((".db", ".onnx")) or "__pycache__" in name]
    assert not [name for name in names if "node_modules" in name]


def test_an_installed_quaid_makes_a_vault_remembers_and_recalls(installed, environment, tmp_path):
    said = json.loads(run(sys.executable, "-c", SESSION, tmp_path / "vault", env=environment, cwd=tmp_path))
    assert Path(said["from"]).is_relative_to(installed)
    assert {"quaid.toml", "SOUL.md", "Facts.base", ".gitignore", ".gitattributes"} <= set(said["files"])
    assert said["outcome"] == "created"
    assert said["found"][0] == "Maya takes oat milk in her coffee"
    assert said["verified"] is True


def test_the_installed_command_runs(installed, environment, tmp_path):
    script = installed / "bin" / "quaid"
    version = run(sys.executable, script, "--version", env=environment, cwd=tmp_path)
    assert version.startswith("quaid ")
    assert "recall" in run(sys.executable, script, "--help", env=environment, cwd=tmp_path)
