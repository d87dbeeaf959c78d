"""What is installed is whole: a wheel, or the source archive, installed elsewhere, makes a vault, remembers and recalls."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

import pytest
from vaults import wait_for

from quaid.place import process_exists

pytestmark = pytest.mark.slow
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
def archive(tmp_path_factory):
    if not (importlib.util.find_spec("hatchling") and importlib.util.find_spec("build")):
        pytest.skip("hatchling is not here: pip install '.[dev]'")
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    (made,) = folder.glob("quaid-*.tar.gz")
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
    assert {"quaid/index/sqlite/schema.sql", "quaid/py.typed", "quaid/cli/demo_conversation.jsonl"} <= data
    assert len(template) >= 8
    assert "quaid/data/prompts/rerank.md" in prompts
    assert "quaid/data/hooks/claude-code/.claude-plugin/plugin.json" in names
    assert names >= template | prompts | plugins | data | modules


def test_nothing_else_travels(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"quaid", next(n for n in names if "dist-info" in n).split("/")[0]}
    assert not [name for name in names if name.endswith((".db", ".onnx")) or "__pycache__" in name]
    assert not [name for name in names if "node_modules" in name]


def test_the_source_archive_makes_the_same_wheel(wheel, archive, tmp_path):
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {"README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "tests", "docs"} <= {
        path.name for path in source.iterdir()
    }
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", source)
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(tmp_path / "dist" / wheel.name) as theirs:
        assert sorted(theirs.namelist()) == sorted(ours.namelist())
        assert [name for name in ours.namelist() if theirs.read(name) != ours.read(name)] == []


def test_uvx_runs_the_demo_in_an_empty_environment(wheel, tmp_path):
    if shutil.which("uvx") is None:
        pytest.skip("needs uvx: pip install uv")
    passed = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_", "HTTP"))}
    cache = os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))  # its downloads, not its environments
    env = passed | {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "UV_CACHE_DIR": cache,
    }
    command = [shutil.which("uvx"), "--python", sys.executable, "--from", wheel, "quaid", "demo"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode and "failed to fetch" in done.stderr.lower():
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    assert "quaid recall" in done.stdout
    assert (tmp_path / ".config" / "quaid" / "config.toml").is_file()


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


FIND = "import sys; from pathlib import Path; from quaid.resident.finding import find_listening as find; print(find(Path(sys.argv[1])).pid)"


def upgraded(wheel, folder):
    """The same wheel under the next version."""
    old, new = wheel.name.split("-")[1], "99.0"
    made = folder / wheel.name.replace(old, new)
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith(("/METADATA", "/RECORD", "quaid/place.py")):
                data = data.replace(old.encode(), new.encode())
            target.writestr(name.replace(f"quaid-{old}", f"quaid-{new}"), data)
    return made


def test_a_process_that_answers_for_others_ends_with_an_upgrade_and_the_new_one_follows(wheel, environment, tmp_path):
    venv.create(tmp_path / "venv")
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    python, quaid = tmp_path / "venv/bin/python", tmp_path / "venv/bin/quaid"
    install = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*install, "--ignore-installed", wheel)  # beside the Quaid that these tests may be run with
    with tempfile.TemporaryDirectory(prefix="q") as state:  # a socket's name is short
        more = {"PYTHONPATH": "", "QUAID_STATE_DIR": state, "QUAID_RESIDENT": "auto", "QUAID_HOME": str(tmp_path / "v")}
        env = environment | more
        run(quaid, "init", tmp_path / "v", env=env)
        run(quaid, "remember", "Maya takes oat milk in her coffee", env=env)

        def recall():
            assert "oat milk" in run(quaid, "recall", "which milk does Maya take?", env=env)

        def find():
            done = subprocess.run([python, "-c", FIND, tmp_path / "v"], capture_output=True, check=False, env=env)
            return int(done.stdout or 0)

        recall()
        wait_for(find, "a process that listens", 60)
        first = find()
        run(*install, "--upgrade", upgraded(wheel, tmp_path))
        recall()
        wait_for(lambda: not process_exists(first), "its end", 60)
        for mark in Path(state).rglob("*.started"):
            os.utime(mark, (1, 1))  # a while ago
        recall()
        wait_for(find, "another one", 60)
        second = find()
        try:
            assert second != first
            assert "99.0" in run(quaid, "--version", env=env)
            recall()
        finally:
            os.kill(second, signal.SIGTERM)
            wait_for(lambda: not process_exists(second), "its end", 60)
