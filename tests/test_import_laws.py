"""The house stands as designed: imports go down only, and each foreign library has its own room."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "quaid"

# Each room and the rooms it may import besides itself and those that all may.
FOR_ALL = {
    "config", "errors", "gate", "http", "model", "place", "search_paths", "settings", "sqlite", "trust", "unseen",
    "user_config",
}  # fmt: skip
BELOW = {
    "errors": set(),
    "gate": set(),
    "model": set(),
    "http": set(),
    "place": set(),
    "search_paths": set(),
    "settings": set(),
    "sqlite": set(),
    "unseen": set(),
    "user_config": {"errors", "place"},
    "trust": {"errors", "place", "sqlite", "user_config"},
    "config": {"errors", "place", "settings", "user_config"},
    "vault": set(),
    "index": set(),
    "local": set(),
    "evaluation": set(),
    "news": {"recall", "vault"},
    "hosts": set(),
    "embed": set(),
    "llm": set(),
    "sync": {"vault", "index", "embed"},
    "recall": {"index", "embed", "llm"},
    "capture": {"vault", "recall", "llm"},
    "janitor": {
        "vault",
        "index",
        "local",
        "embed",
        "llm",
        "sync",
        "recall",
        "capture",
        "projects",
        "evaluation",
        "news",
    },
    "projects": {"vault", "index", "recall", "llm", "capture"},
}
WIRING = {
    "memory",
    "writer",
    "doctor",
    "overview",
    "bookkeeping",
    "provenance",
    "answers",
    "creation",
    "lookups",
    "learning",
    "reading",
    "tidying",
    "analyzing",
    "importing",
    "export",
    "context",
    "project_context",
    "prompting",
    "question",
    "standby",
    "visible",
    "installing",
    "canary",
    "outbound",
    "attention",
    "bug",
    "documentation",
}
DOORS = {"cli", "mcp", "hooks"}
OPENS = {"cli/hook.py": {"hooks"}, "cli/mcp.py": {"mcp"}}  # commands that open another door
HOUSE = set(BELOW) - FOR_ALL
BELOW |= dict.fromkeys(WIRING, HOUSE | WIRING)
BELOW |= dict.fromkeys(DOORS, HOUSE | WIRING)
BELOW["__init__"] = {"memory"}
BELOW["__main__"] = {"cli", "hooks"}

# A foreign library -> the files or folders that may import it.
OWNERS = {
    "git": ["vault/git_process.py"],
    "frontmatter": ["vault/frontmatter.py"],
    "yaml": ["vault/frontmatter.py", "projects/significance.py"],
    "mistune": ["vault/markdown.py"],
    "watchdog": ["sync/watcher.py"],
    "sqlite_vec": ["index/"],
    "apsw": ["sqlite.py", "index/", "local/", "embed/cache.py"],
    "httpx": ["http.py"],
    "onnxruntime": ["embed/runtime.py", "embed/quantise.py"],
    "onnx": ["embed/"],
    "tokenizers": ["embed/"],
    "safetensors": ["embed/"],
    "typer": ["cli/"],
    "rich": ["cli/"],
    "tomlkit": ["config.py", "user_config.py", "hosts/tomledit.py"],
    "mcp": ["mcp/"],
    "dateutil": ["recall/windows.py"],
    "threadpoolctl": ["index/matrix.py"],
    "pypdf": ["projects/pdf.py"],
    "pathspec": ["projects/"],
    "kingfisher_sdk": ["gate/redacting.py"],
}
BANNED = {"torch", "transformers", "sentence_transformers", "sqlite3", "requests"}
MOST_LINES = 450
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
)

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def walk(node):
    """Every node but those that only a type checker sees."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not is_for_types(child):
            yield from walk(child)


def text_of(path):
    return (PACKAGE / path).read_text(encoding="utf-8")


@cache
def tree_of(path):
    return ast.parse(text_of(path))


@cache
def imported(path, *, with_types=False):
    """Dotted names a module imports, `from a import b` as `a.b` too."""
    tree = tree_of(path)
    found = set()
    for node in ast.walk(tree) if with_types else walk(tree):
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


def test_imports_go_down_the_house_only():
    for path in MODULES:
        room = room_of(path)
        assert room in BELOW, f"{room} has no place in the order yet; put it into BELOW"
        assert rooms_imported(path) <= BELOW[room] | FOR_ALL | {room} | OPENS.get(path, set()), path


def test_no_door_imports_another():
    for path in set(MODULES) - {"__main__.py"}:
        assert not rooms_imported(path) & (DOORS - {room_of(path)} - OPENS.get(path, set())), path


def test_nothing_below_the_doors_imports_the_wiring():
    for path in MODULES:
        if room_of(path) in HOUSE:
            assert not rooms_imported(path) & (WIRING | DOORS), path


def test_a_foreign_library_has_its_own_room():
    for path in MODULES:
        for name in {name.split(".")[0] for name in imported(path)} & OWNERS.keys():
            assert any(path == owner or (owner.endswith("/") and path.startswith(owner)) for owner in OWNERS[name]), (
                f"quaid/{path} imports {name}, which only {', '.join(OWNERS[name])} may"
            )


def test_no_module_imports_what_quaid_does_without():
    for path in MODULES:
        assert not {name.split(".")[0] for name in imported(path, with_types=True)} & BANNED, path


def test_a_private_name_stays_in_its_module():
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quaid"):
                names = [alias.name for alias in node.names]
                assert not [name for name in names if name.startswith("_") and not name.endswith("__")], path


def test_a_module_stays_short():
    lengths = {path: text_of(path).count("\n") for path in MODULES}
    assert {path: length for path, length in lengths.items() if length >= MOST_LINES} == {}


def test_every_module_says_what_it_is_for():
    assert [path for path in MODULES if text_of(path).strip() and not ast.get_docstring(tree_of(path))] == []


@pytest.mark.parametrize(("statement", "left_out"), [
    ("import quaid", HEAVY),
    ("import quaid.model, quaid.errors, quaid.config", HEAVY),
    ("import quaid.cli.main", ("numpy", "apsw", "onnxruntime", "git", "httpx", "mistune")),
    ("import quaid.__main__, quaid.hooks.entry, quaid.hooks.events", HEAVY),
    ("from quaid import Memory", tuple(name for name in HEAVY if name != "apsw")),
])  # fmt: skip
def test_an_import_brings_nothing_heavy_along(statement, left_out):
    code = f"import sys; {statement}; print(*[name for name in {left_out!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_the_package_says_its_version_and_its_one_name():
    import quaid

    assert quaid.__all__ == ["Memory", "__version__"]
    assert quaid.Memory.__module__ == "quaid.memory"
    with pytest.raises(AttributeError):
        quaid.nothing  # noqa: B018
