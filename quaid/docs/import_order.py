"""Tokens -> statements whose imports stand in the order of the alphabet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quaid.docs.languages import Language
from quaid.docs.tokens import CLOSING, LINE


def sorted_imports(tokens: Sequence[str], language: Language) -> list[list[str]]:
    """The statements of `tokens`, with imports that follow each other sorted.

    An import that binds no name is there for what it does: nothing changes places with it.
    """
    statements: list[list[str]] = []
    run: list[list[str]] = []
    for statement in _statements(tokens, LINE if language.breaks == "ends" else ";"):
        if statement[0] in language.imports and not _does_something(statement, language):
            run.append(_with_sorted_names(statement))
        else:
            statements += [*sorted(run), statement]
            run = []
    return statements + sorted(run)


def _statements(tokens: Sequence[str], end: str) -> Iterator[list[str]]:
    """The statements outside of all brackets, without what ends them."""
    statement: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token in CLOSING) - (token in CLOSING.values())
        if depth or token != end:
            statement.append(token)
        # An attribute of a whole file of Rust ends with its bracket.
        is_end = token == end or (token == "]" and statement[:2] == ["#", "!"])  # noqa: S105
        if is_end and depth == 0 and statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _does_something(statement: Sequence[str], language: Language) -> bool:
    is_called = language.has_expressions and statement[1:2] in (["("], ["."])
    return is_called or "=" in statement or (len(statement) == 2 and statement[1][0] in "'\"")


def _with_sorted_names(statement: list[str]) -> list[str]:
    """`import {b, a}` as `import {a, b}`, and the lines of `import (…)` sorted."""
    for opening, separator in (("{", ","), ("(", LINE)):
        if statement.count(opening) == statement.count(CLOSING[opening]) == 1:
            start, end = statement.index(opening), statement.index(CLOSING[opening])
            names: list[list[str]] = [[]]
            for token in statement[start + 1 : end]:
                if token == separator:
                    names.append([])
                else:
                    names[-1].append(token)
            return [
                *statement[:start],
                *(token for name in sorted(names) for token in (opening, *name)),
                *statement[end:],
            ]
    return statement
