"""Python source -> what it says, compared by its syntax tree."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Meaning:
    """A module without its docstrings, if it does not use them itself; `dump` is equal where the syntax is."""

    tree: ast.Module
    docstrings: tuple[str, ...]
    dump: str

    def without_order(self) -> str:
        """The dump with imports and functions sorted where their order says nothing. Raises RecursionError."""
        for node in _with_bodies(self.tree):
            node.body = list(_sorted(node.body))
        return ast.dump(self.tree)


def read_python(text: str) -> Meaning | None:
    """What `text` says; None when it is no Python of the version that runs, or nested too deep to be compared."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        docstrings = () if "__doc__" in text else tuple(_take_docstrings(tree))
        return Meaning(tree, docstrings, ast.dump(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _with_bodies(tree: ast.Module) -> Iterator[ast.Module | ast.ClassDef | _Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | _Function):
            yield node


def _take_docstrings(tree: ast.Module) -> Iterator[str]:
    for node in _with_bodies(tree):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str(docstring))), *rest]:
                node.body = rest
                yield docstring


def _sorted(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for kind, group in groupby(body, _kind):
        run = list(group)
        if kind == "import":
            yield from _sorted_imports(run)
        elif kind == "function":
            yield from _sorted_functions(run)
        else:
            yield from run


def _kind(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Import):
        return "import"
    if isinstance(statement, ast.ImportFrom):
        is_plain = statement.module != "__future__" and all(alias.name != "*" for alias in statement.names)
        return "import" if is_plain else ""
    return "function" if isinstance(statement, _Function) and not statement.decorator_list else ""


def _sorted_imports(run: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    """One statement for each name; as they were when a name is bound twice, as the last one wins."""
    single: list[ast.Import | ast.ImportFrom] = []
    for statement in run:
        if isinstance(statement, ast.ImportFrom):
            single += (ast.ImportFrom(statement.module, [alias], statement.level) for alias in statement.names)
        elif isinstance(statement, ast.Import):
            single += (ast.Import([alias]) for alias in statement.names)
    bound = [statement.names[0].asname or statement.names[0].name for statement in single]
    return sorted(single, key=ast.dump) if len(set(bound)) == len(bound) else run


def _sorted_functions(run: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    """As they were when what is evaluated with a definition may need another one, or one replaces another."""
    functions = [statement for statement in run if isinstance(statement, _Function)]
    names = {function.name for function in functions}
    if len(names) < len(functions) or any(_needs(function, names) for function in functions):
        return run
    return sorted(functions, key=lambda function: function.name)


def _needs(function: _Function, names: set[str]) -> bool:
    """Whether its definition calls something, or evaluates one of `names`."""
    evaluated = [*ast.walk(function.args), *(ast.walk(function.returns) if function.returns else ())]
    return any(isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in names) for node in evaluated)
