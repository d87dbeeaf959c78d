"""The house stands as designed: imports go down only, and each foreign library has its own room."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from house_figures import Package, walk_at_run_time

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "quaid"

CODE = Package(PACKAGE)
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DOORS = {"cli", "mcp", "hooks", "web"}
OPENS = {
    "cli/context.py": {"hooks"},
    "cli/mcp.py": {"mcp"},
    "cli/resident.py": {"hooks"},
    "cli/serve.py": {"mcp"},
    "cli/editing.py": {"web"},
}  # commands that open another door


def read_table():
    """Room -> the rooms it may import, as the table of docs/architecture.md says."""
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", ARCHITECTURE, re.MULTILINE)
    names = [room for room, _ in rows]
    base = set(names[: names.index("claims") + 1])
    allowed = {}
    for room, cell in rows:
        allowed[room] = {room, *re.findall(r"`(\w+)`", cell)} | (base if "the base" in cell else set())
        for other in re.findall(r"what `(\w+)` may", cell):
            allowed[room] |= allowed[other] - {other}
    return allowed


ALLOWED = read_table() | {"__init__": {"memory", "place", "resident"}, "__main__": {"cli", "hooks", "resident"}}

# A foreign library -> the files or folders that may import it.
OWNERS = {
    "frontmatter": ["vault/frontmatter.py"],
    "yaml": ["vault/frontmatter.py"],
    "mistune": ["web/rendering.py"],
    "nh3": ["web/rendering.py"],
    "jinja2": ["web/templating.py"],
    "starlette": ["web/", "mcp/"],
    "uvicorn": ["web/server.py", "mcp/transports.py", "mcp/serving.py", "resident/loopback.py"],
    "psycopg": ["server/", "index/postgres/"],
    "psycopg_pool": ["server/", "index/postgres/", "cli/serve.py"],
    "jwt": ["server/oauth.py"],
    "watchdog": ["sync/watcher.py"],
    "sqlite_vec": ["index/sqlite/"],
    "apsw": ["sqlite.py", "index/sqlite/", "local/", "embed/cache.py"],
    "httpx": ["http.py", "mcp/batches.py"],  # batches call our own application, and open no socket
    "onnxruntime": ["embed/local.py", "embed/quantise.py"],
    "onnx": ["embed/"],
    "tokenizers": ["embed/"],
    "safetensors": ["embed/"],
    "typer": ["cli/"],
    "rich": ["cli/"],
    "tomlkit": ["config.py", "user_config.py", "agents/config_text.py"],
    "mcp": ["mcp/"],
    "dateutil": ["text/date_patterns.py", "capture/transcripts/parsing.py"],
    "threadpoolctl": ["index/vectors.py"],
    "pypdf": ["capture/files/source_file.py"],
    "pathspec": ["docs/"],
    "kingfisher_sdk": ["redaction/detector.py"],
    "jsonschema": ["llm/schema.py"],
    "anthropic": ["integrations/"],
    "langgraph": ["integrations/"],
    "agents": ["integrations/"],
}
BANNED = {"torch", "transformers", "sentence_transformers", "sqlite3", "requests"}
HEAVY = (
    "numpy",
    "dateutil",
    "threadpoolctl",
    "apsw",
    "onnxruntime",
    "onnx",
    "tokenizers",
    "git",
    "httpx",
    "mistune",
    "yaml",
    "typer",
    "rich",
    "watchdog",
    "tomlkit",
    "pypdf",
    "pathspec",
    "kingfisher_sdk",
    "jsonschema",
    "anthropic",
    "langgraph",
    "agents",
    "starlette",
    "jinja2",
    "uvicorn",
    "nh3",
    "psycopg",
    "psycopg_pool",
    "jwt",
)

MODULES = sorted(path.as_posix() for path in CODE.texts)


def text_of(path):
    return CODE.texts[Path(path)]


def tree_of(path):
    return CODE.trees[Path(path)]


@cache
def imported(path, *, with_types=False):
    """Dotted names a module imports, `from a import b` as `a.b` too."""
    tree = tree_of(path)
    found = set()
    for node in ast.walk(tree) if with_types else walk_at_run_time(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively; write quaid.… in full"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def room_of(path):
    return path.split("/")[0].removesuffix(".py")


def rooms_imported(path):
    names = {name.split(".")[1] for name in imported(path, with_types=True) if name.startswith("quaid.")}
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()}


def test_every_room_is_in_the_table():
    assert {room_of(path) for path in MODULES} == set(ALLOWED)


@pytest.mark.slow
def test_a_room_imports_what_the_table_allows():
    for path in MODULES:
        assert rooms_imported(path) <= ALLOWED[room_of(path)] | OPENS.get(path, set()), path


def test_rooms_do_not_import_each_other_in_a_circle():
    for room, below in ALLOWED.items():
        for other in below - {room}:
            assert room not in ALLOWED[other], f"{room} and {other}"


@pytest.mark.slow
def test_modules_do_not_import_each_other_in_a_circle():
    assert CODE.find_circle() == []


def test_few_modules_stand_beside_the_rooms():
    assert len(CODE.loose_modules()) <= 14


def test_every_room_says_what_it_holds_what_it_may_touch_and_where_its_story_begins():
    for room in ALLOWED:
        init = PACKAGE / room / "__init__.py"
        if init.is_file():
            lines = [
                line
                for line in (ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or "").splitlines()
                if line
            ]
            assert len(lines) == 3, room
            assert lines[1].startswith("May import "), room
            assert lines[2].startswith("Begin with "), room


@pytest.mark.slow
def test_a_foreign_library_has_its_own_room():
    for path in MODULES:
        for name in {name.split(".")[0] for name in imported(path)} & OWNERS.keys():
            assert any(path == owner or (owner.endswith("/") and path.startswith(owner)) for owner in OWNERS[name]), (
                f"quaid/{path} imports {name}, which only {', '.join(OWNERS[name])} may"
            )


def test_no_module_imports_what_quaid_does_without():
    for path in MODULES:
        assert not {name.split(".")[0] for name in imported(path, with_types=True)} & BANNED, path


@pytest.mark.slow
def test_a_private_name_stays_in_its_module():
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quaid"):
                names = [alias.name for alias in node.names]
                assert not [name for name in names if name.startswith("_") and not name.endswith("__")], path


def test_every_module_says_what_it_is_for():
    assert [path for path in MODULES if text_of(path).strip() and not ast.get_docstring(tree_of(path))] == []


@pytest.mark.parametrize(("statement", "left_out"), [
    ("import quaid", HEAVY),
    ("import quaid.model, quaid.errors, quaid.config", HEAVY),
    ("import quaid.cli.main", ("numpy", "apsw", "onnxruntime", "git", "httpx", "mistune", "starlette", "jinja2")),
    ("import quaid.cli.editing", ("starlette", "jinja2", "uvicorn", "nh3")),
    ("import quaid.__main__, quaid.hooks.entry", HEAVY),
    ("from quaid import Memory", tuple(name for name in HEAVY if name != "apsw")),
])  # fmt: skip
def test_an_import_brings_nothing_heavy_along(statement, left_out):
    code = f"import sys; {statement}; print(*[name for name in {left_out!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_the_package_says_its_version_and_its_names():
    import quaid

    assert quaid.__all__ == ["AsyncMemory", "Memory", "__version__"]
    assert quaid.Memory.__module__ == "quaid.memory"
    with pytest.raises(AttributeError):
        quaid.nothing  # noqa: B018


NAMED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_each_behaviour_is_where_the_page_says():
    rows = re.findall(r"^\| (.+?) \| `([\w/]+\.py)` \| `([\w.]+)` \|$", ARCHITECTURE, re.MULTILINE)
    assert len(rows) >= 30
    for behaviour, path, name in rows:
        assert path in MODULES, f"{behaviour}: quaid/{path} does not exist"
        body = tree_of(path).body
        for part in name.split("."):
            found = [node for node in body if isinstance(node, NAMED) and node.name == part]
            assert found, f"{behaviour}: quaid/{path} does not define {name}"
            body = found[0].body
