"""The filter: whether a change of a source file can matter to its documentation, without asking a model.

Python and data are compared as their parsers read them, prose by its paragraphs, everything else by its lines. In doubt
a change is significant: a model or a person may still find it trivial, and a change that was dropped is seen by nobody.
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

VERSION = f"5-{sys.version_info.major}.{sys.version_info.minor}"
"""Changes when a comparison could: raised by hand, and of Python, whose grammar reads Python."""

_MAX_READ = 1_000_000
"""Characters; a longer text is compared by its lines."""
_MAX_LINE = 2_000
"""Characters of a line of TOML: what Python reads it with takes the square of a key's length."""
_MAX_BRACKETS = 500
"""The maximum depth of YAML: reading it takes the square of the depth."""
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt")
_NOT_PROSE = frozenset({"cmakelists.txt", "requirements.txt", "constraints.txt", "requirements-dev.txt", "robots.txt"})
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_BEGINS_BLOCK = re.compile(r"[ \t]*(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[|>]|\.\.[ \t])")
_YAML = (".yml", ".yaml")
_BLANKS = re.compile(r"(?<![\\\s])\s+(?=\n|\Z)")
"""Ends of lines and empty lines, but for those that follow a backslash."""
_FOR_TOOLS = re.compile(
    r"^# /// \w+$(?:\n#.*)*|^#(?:!|cloud-config).*|^[^#\n]*#(?::|.*coding[:=]|.*\{[{%]).*", re.MULTILINE
)
"""Comments that an interpreter, an installer, a template or Sphinx reads."""
# What these pin or squeeze stands in a file beside them, which is compared itself.
_LOCKS = frozenset(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock poetry.lock
    pipfile.lock uv.lock pdm.lock conda-lock.yml cargo.lock go.sum go.work.sum composer.lock gemfile.lock mix.lock
    pubspec.lock podfile.lock flake.lock packages.lock.json gradle.lockfile package.resolved
    .terraform.lock.hcl""".split()  # noqa: SIM905
)
_SQUEEZED = (".min.js", ".min.mjs", ".min.cjs", ".min.css", ".js.map", ".mjs.map", ".cjs.map", ".css.map")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`why` in a few words, for a person: "only white space", "content", "added"."""

    is_trivial: bool
    why: str


def compare(path: str, before: bytes | None, after: bytes | None) -> Comparison:
    """Compare two states of the file `path`; None where it was not there. Pure, and raises nothing."""
    if before == after:
        return Comparison(True, "the same")
    try:
        compared = _compare(PurePosixPath(path).name.lower(), before or b"", after or b"")
    except Exception:  # noqa: BLE001 - parsers fail in many ways; their text differs, somebody else judges it
        compared = Comparison(False, "content")
    if before is not None and after is not None:
        return compared
    word = "added" if before is None else "deleted"
    return Comparison(True, f"{word}, without code") if compared.is_trivial else Comparison(False, word)


def _compare(name: str, before: bytes, after: bytes) -> Comparison:
    if before and after and (name in _LOCKS or name.endswith(_SQUEEZED)):
        return Comparison(True, "a lock file" if name in _LOCKS else "made from another file")
    if b"\0" in before + after:
        return Comparison(False, "binary")
    # Bytes that are not UTF-8 stay what they are: they are only compared.
    texts = (content.decode("utf-8-sig", "surrogateescape") for content in (before, after))
    old, new = (text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)
    if _without_blanks(name, old) == _without_blanks(name, new):
        return Comparison(True, "only white space")
    if max(len(old), len(new)) <= _MAX_READ and _FOR_TOOLS.findall(old) == _FOR_TOOLS.findall(new):
        read = _parse(name, old)
        if read is not None and read == _parse(name, new):
            return Comparison(True, "only comments or formatting")
    return Comparison(False, "content")


def _without_blanks(name: str, text: str) -> list[str] | str:
    if name.endswith(_PROSE) and name not in _NOT_PROSE:
        return _blocks_of(text, name)
    # Of YAML the parser knows better which white space counts.
    return text if name.endswith(_YAML) else _BLANKS.sub("", f"\n{text}")


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


def _parse(name: str, text: str) -> str | None:
    """Return what the parser of a format makes of a text; None for another format, or if it would take long.

    Raises whatever that parser raises, where the text is not valid.
    """
    match PurePosixPath(name).suffix:
        case ".py" | ".pyi" | ".pyw":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.dump(ast.parse(text))
        case ".json":
            return repr(json.loads(text))
        case ".toml" if max(map(len, text.split("\n"))) <= _MAX_LINE:
            return repr(tomllib.loads(text))
        case ".yml" | ".yaml" if text.count("[") + text.count("{") <= _MAX_BRACKETS:
            import yaml

            return repr(list(yaml.parse(text, yaml.CLoader)))  # its events: nothing is expanded or constructed
    return None
