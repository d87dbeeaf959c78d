"""Whether a change of a source file can matter to its documentation, as far as that can be told without a model.

What is left of both states is compared when comments, docstrings, white space and formatting are taken away. In doubt a
change is significant: a model or a person may still find it trivial, and a change that was dropped is seen by nobody.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import PurePosixPath

from quaid.docs.import_order import sorted_imports
from quaid.docs.languages import PLAIN, PYTHON, Language, language_of
from quaid.docs.lexing import MARK, Source, is_doubtful, read_source
from quaid.docs.prose import blocks_of
from quaid.docs.python_source import read_python
from quaid.docs.tokens import spell, tokens_of

VERSION = f"3-{sys.version_info.major}.{sys.version_info.minor}"
"""Changes when a verdict could: raised by hand, and of Python, whose grammar reads Python."""

_MOST_READ = 1_000_000
"""Characters; of a longer text only the lines are compared."""
_LONGEST_LINE = 2_000
"""Characters of a line of TOML: what Python reads it with takes the square of a key's length."""
_PROSE = (".md", ".markdown", ".mdx", ".rst", ".txt")
_NO_PROSE = frozenset({"cmakelists.txt", "requirements.txt", "constraints.txt", "requirements-dev.txt", "robots.txt"})
# What these pin or squeeze is said by a file beside them, which is judged itself.
_LOCKS = frozenset(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock poetry.lock
    pipfile.lock uv.lock pdm.lock conda-lock.yml cargo.lock go.sum go.work.sum composer.lock gemfile.lock mix.lock
    pubspec.lock podfile.lock flake.lock packages.lock.json gradle.lockfile package.resolved
    .terraform.lock.hcl""".split()  # noqa: SIM905
)
_SQUEEZED = (".min.js", ".min.mjs", ".min.cjs", ".min.css", ".js.map", ".mjs.map", ".cjs.map", ".css.map")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Judged:
    """`why` in a few words, for a person: "only comments", "code", "added"."""

    is_trivial: bool
    why: str


def judge(path: str, before: bytes | None, after: bytes | None) -> Judged:
    """The change of the file `path` from `before` to `after`; None where it was not there. Pure, and raises nothing."""
    if before == after:
        return Judged(True, "the same")
    try:
        judged = _judge(PurePosixPath(path).name.lower(), before or b"", after or b"")
    except Exception:  # noqa: BLE001 - what cannot be compared is for somebody else to judge
        judged = Judged(False, "not comparable")
    if before is not None and after is not None:
        return judged
    word = "added" if before is None else "deleted"
    return Judged(True, f"{word}, without code") if judged.is_trivial else Judged(False, word)


def _judge(name: str, before: bytes, after: bytes) -> Judged:
    if before and after and (name in _LOCKS or name.endswith(_SQUEEZED)):
        return Judged(True, "a lock file" if name in _LOCKS else "made from another file")
    old, new = _text(before), _text(after)
    if old is None or new is None:
        return Judged(False, "binary")
    if max(len(old), len(new)) > _MOST_READ:
        return _judged(_tidy(old) == _tidy(new), "only white space", "text")
    if _interpreter(old) != _interpreter(new):
        return Judged(False, "code")
    return _judge_values(name, old, new) or _judge_prose(name, old, new) or _judge_code(old, new, language_of(name))


def _judged(is_trivial: bool, why: str, why_not: str) -> Judged:
    return Judged(is_trivial, why if is_trivial else why_not)


def _judge_values(name: str, old: str, new: str) -> Judged | None:
    """None when there is no JSON or TOML in both."""
    before, after = _values(name, old), _values(name, new)
    if before is None or after is None:
        return None
    return _judged(before == after, "the same values", "values")


def _judge_prose(name: str, old: str, new: str) -> Judged | None:
    """None for what is no prose by its name."""
    if not name.endswith(_PROSE) or name in _NO_PROSE:
        return None
    code_indent = 1 if name.endswith(".rst") else 4
    return _judged(blocks_of(old, code_indent) == blocks_of(new, code_indent), "wrapped anew", "text")


def _text(content: bytes) -> str | None:
    """None for what is no text."""
    try:
        is_wide = content[:2] in {b"\xff\xfe", b"\xfe\xff"}
        # Bytes that are no UTF-8 stay what they are: they are only compared.
        text = content.decode("utf-16") if is_wide else content.decode("utf-8-sig", "surrogateescape")
    except UnicodeDecodeError:
        return None
    return None if MARK in text else text.replace("\r\n", "\n").replace("\r", "\n")


def _interpreter(text: str) -> str:
    return text.partition("\n")[0].strip() if text.startswith("#!") and not text.startswith("#![") else ""


def _values(name: str, text: str) -> str | None:
    """The values of JSON or TOML, with their keys in order; None when it is neither, or would take long to read."""
    is_toml = name.endswith(".toml")
    if not name.endswith((".json", ".toml")) or (is_toml and max(map(len, text.split("\n"))) > _LONGEST_LINE):
        return None
    try:
        value = tomllib.loads(text) if is_toml else json.loads(text)
        return json.dumps(value, sort_keys=True, default=repr)
    except (ValueError, RecursionError):
        return None


def _judge_code(old: str, new: str, language: Language) -> Judged:
    if is_doubtful(old, language) or is_doubtful(new, language):
        language = PLAIN
    before, after = read_source(old, language), read_source(new, language)
    if before.literals == after.literals and _tidy(before.code) == _tidy(after.code):
        return Judged(True, "only white space" if _tidy(old) == _tidy(new) else "only comments")
    # No formatter adds a word or takes one away, but who sorts imports of Python repeats some; most changes of code do.
    words = set if language is PYTHON else sorted
    if language is PLAIN or words(_WORD.findall(before.code)) != words(_WORD.findall(after.code)):
        return Judged(False, "text" if language is PLAIN else "code")
    # The syntax tree has no comments, and some of them are code.
    python = _judge_python(old, new) if language is PYTHON and _kept(before) == _kept(after) else None
    return python or _judge_tokens(before, after, language)


def _judge_python(old: str, new: str) -> Judged | None:
    """None when one of them is no Python."""
    before, after = read_python(old), read_python(new)
    if before is None or after is None:
        return None
    if before.dump == after.dump:
        return Judged(True, "only formatting" if before.docstrings == after.docstrings else "only docstrings")
    return _judged(before.without_order() == after.without_order(), "another order", "code")


def _judge_tokens(before: Source, after: Source, language: Language) -> Judged:
    if _spelled(before, language) != _spelled(after, language):
        return Judged(False, "strings")
    old, new = tokens_of(before, language), tokens_of(after, language)
    if old == new:
        return Judged(True, "only formatting")
    is_sorted = bool(language.imports) and sorted_imports(old, language) == sorted_imports(new, language)
    return _judged(is_sorted, "imports in another order", "code")


def _kept(source: Source) -> list[str]:
    return [literal for literal in source.literals if literal.startswith("#")]


def _spelled(source: Source, language: Language) -> list[str]:
    return sorted(spell(literal, language) for literal in source.literals)


def _tidy(text: str) -> list[str]:
    """The lines without blanks at their ends, and without empty ones, but for what a backslash in front of it meets."""
    lines: list[str] = []
    for line in text.split("\n"):
        stripped = line.rstrip()
        if stripped or (lines and lines[-1].endswith("\\")):
            lines.append(f"{stripped} " if stripped.endswith("\\") and stripped != line else stripped)
    return lines
