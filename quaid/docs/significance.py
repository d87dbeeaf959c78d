"""The filter: whether a change of a source file can matter to its documentation, without asking a model.

What is left of both states is compared when comments, docstrings and white space are taken away. In doubt a change is
significant: a model or a person may still find it trivial, and a change that was dropped is seen by nobody.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import PurePosixPath

from quaid.docs.lexers import hash_comments_for_tools, lines_of, read_code

VERSION = f"4-{sys.version_info.major}.{sys.version_info.minor}"
"""Changes when a comparison could: raised by hand, and of Python, whose grammar reads Python."""

_MAX_READ = 1_000_000
"""Characters; of a longer text only the lines are compared."""
_MAX_LINE = 2_000
"""Characters of a line of TOML: what Python reads it with takes the square of a key's length."""
_MAX_BRACKETS = 500
"""The maximum depth of YAML: reading it takes the square of the depth."""
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt")
_NOT_PROSE = frozenset({"cmakelists.txt", "requirements.txt", "constraints.txt", "requirements-dev.txt", "robots.txt"})
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BEGINS_BLOCK = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[|>]|\.\.[ \t])")
_YAML = (".yml", ".yaml")
# What these pin or squeeze stands in a file beside them, which is compared itself.
_LOCKS = frozenset(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock poetry.lock
    pipfile.lock uv.lock pdm.lock conda-lock.yml cargo.lock go.sum go.work.sum composer.lock gemfile.lock mix.lock
    pubspec.lock podfile.lock flake.lock packages.lock.json gradle.lockfile package.resolved
    .terraform.lock.hcl""".split()  # noqa: SIM905
)
_COMMENTS = "only comments or formatting"
_SQUEEZED = (".min.js", ".min.mjs", ".min.cjs", ".min.css", ".js.map", ".mjs.map", ".cjs.map", ".css.map")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`why` in a few words, for a person: "only comments", "code", "added"."""

    is_trivial: bool
    why: str


def compare(path: str, before: bytes | None, after: bytes | None) -> Comparison:
    """Compare two states of the file `path`; None where it was not there. Pure, and raises nothing."""
    if before == after:
        return Comparison(True, "the same")
    try:
        compared = _compare(PurePosixPath(path).name.lower(), before or b"", after or b"")
    except Exception:  # noqa: BLE001 - what cannot be compared is for somebody else to judge
        compared = Comparison(False, "not comparable")
    if before is not None and after is not None:
        return compared
    word = "added" if before is None else "deleted"
    return Comparison(True, f"{word}, without code") if compared.is_trivial else Comparison(False, word)


def _compare(name: str, before: bytes, after: bytes) -> Comparison:
    if before and after and (name in _LOCKS or name.endswith(_SQUEEZED)):
        return Comparison(True, "a lock file" if name in _LOCKS else "made from another file")
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return Comparison(False, "binary")
    if name.endswith(_PROSE) and name not in _NOT_PROSE:
        is_same = _blocks_of(old, name) == _blocks_of(new, name)
        return Comparison(True, "only white space") if is_same else Comparison(False, "text")
    # Of YAML the parser knows better which white space counts.
    if old == new or (not name.endswith(_YAML) and lines_of(old) == lines_of(new)):
        return Comparison(True, "only white space")
    if max(len(old), len(new)) > _MAX_READ or _interpreter(old) != _interpreter(new):
        return Comparison(False, "text")
    return _compare_python(name, old, new) or _compare_values(name, old, new) or _compare_code(name, old, new)


def _text(content: bytes) -> str | None:
    """The text of a file; None if it is not text."""
    try:
        is_wide = content[:2] in {b"\xff\xfe", b"\xfe\xff"}
        # Bytes that are not UTF-8 stay what they are: they are only compared.
        text = content.decode("utf-16") if is_wide else content.decode("utf-8-sig", "surrogateescape")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def _interpreter(text: str) -> str:
    return text.partition("\n")[0].strip() if text.startswith("#!") and not text.startswith("#![") else ""


def _blocks_of(text: str, name: str) -> list[str]:
    """Paragraphs, items, headings and rows of tables with single blanks, lines of code and of a head as they stand."""
    verbatim = re.compile(r" |\t" if name.endswith(".rst") else r" {4}|\t")  # code, after an empty line
    blocks = [""]
    fence = "---" if text.startswith("---\n") else ""
    is_open = False
    for number, line in enumerate(text.split("\n")):
        marker = _FENCE.match(line)
        is_code = bool(fence or marker or (not is_open and line.strip() and verbatim.match(line)))
        if is_code:
            blocks.append(line.rstrip())
        elif is_open and line.strip() and not _BEGINS_BLOCK.match(line):
            blocks[-1] += " " + " ".join(line.split())
        elif line.strip():
            blocks.append(" ".join([line[: len(line) - len(line.lstrip())], *line.split()]))
        if fence:
            is_end = number and line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if is_end else fence
        elif marker:
            fence = marker[1]
        is_open = not is_code and bool(line.strip())
    return blocks


def _compare_python(name: str, old: str, new: str) -> Comparison | None:
    """None when one of them is not Python, or a comment for a tool has changed."""
    before, after = (_read_python(text) if name.endswith((".py", ".pyi", ".pyw")) else None for text in (old, new))
    if before is None or after is None or hash_comments_for_tools(old) != hash_comments_for_tools(new):
        return None
    if before[0] != after[0]:
        return Comparison(False, "code")
    return Comparison(True, _COMMENTS if before[1] == after[1] else "only docstrings")


def _compare_values(name: str, old: str, new: str) -> Comparison | None:
    """None when there is not JSON, TOML or YAML in both."""
    before, after = _values(name, old), _values(name, new)
    if before is None or after is None:
        return None
    return Comparison(True, "the same values") if before == after else Comparison(False, "values")


def _compare_code(name: str, old: str, new: str) -> Comparison:
    before, after = read_code(name, old), read_code(name, new)
    if before is None or after is None:
        return Comparison(False, "text")
    return Comparison(True, _COMMENTS) if before == after else Comparison(False, "code")


def _read_python(text: str) -> tuple[str, list[str]] | None:
    """(the syntax tree, its docstrings), which are code where a module reads its own.

    None when it is not Python of the version that runs, or nested too deep to be compared.
    """
    docstrings: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        for node in ast.walk(tree) if "__doc__" not in text else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                match node.body:
                    case [ast.Expr(value=ast.Constant(value=str(docstring))), *rest]:
                        docstrings.append(docstring)
                        node.body = rest
        return ast.dump(tree), docstrings
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _values(name: str, text: str) -> object:
    """Return the values of JSON, TOML or YAML, comparable; None if the text is not valid or would take long to read."""
    try:
        if name.endswith(".json"):
            return json.dumps(json.loads(text), sort_keys=True)
        if name.endswith(".toml") and max(map(len, text.split("\n"))) <= _MAX_LINE:
            return json.dumps(tomllib.loads(text), sort_keys=True, default=repr)
    except (ValueError, RecursionError):
        return None
    return _yaml_events(text) if name.endswith(_YAML) else None


def _yaml_events(text: str) -> list[object] | None:
    """Return the events of YAML in their order, with the comments for tools; nothing is expanded or constructed."""
    import yaml

    if not yaml.__with_libyaml__ or text.count("[") + text.count("{") > _MAX_BRACKETS:
        return None
    try:
        return [
            hash_comments_for_tools(text),
            *(
                [type(event), *(getattr(event, name, None) for name in ("anchor", "tag", "implicit", "value"))]
                for event in yaml.parse(text, yaml.CLoader)
            ),
        ]
    except (yaml.YAMLError, UnicodeError):
        return None
