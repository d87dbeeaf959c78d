"""What a source file defines, and what changed between two versions of it. Pure.

Python is read with `ast`: functions, classes, fields, constants, and what frameworks make of them: commands and options
of Click, Typer and argparse, environment variables, endpoints, tables, entries of a constant list. Of a definition its
signature (arguments, defaults, decorators, the value of a constant), its help (the docstring) and its body are compared
apart, because a page describes the first two and rarely the third.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple

VERSION = 4
"""Part of the key of stored definitions: raise it when a file may be read differently."""
Part = Literal["added", "removed", "signature", "help", "body"]
MAX_PARSED = 1_000_000
"""Bytes of a file that is parsed."""
_MAX_VALUE = 40
"""Nodes of a constant that is compared as a signature; a larger one is a body with entries."""
_COMMAND_ENDING = re.compile(r"[_-](?:command|cmd|group|grp)$")
_OPTION = re.compile(r"(?:option|argument)[^.]*$")
_ROUTERS = frozenset(
    {"get", "post", "put", "delete", "patch", "route", "websocket", "api_route", "add_route", "add_api_route", "path"}
)
_PATTERN = re.compile(r"\(\?P<(\w+)>[^()]*(?:\([^()]*\)[^()]*)*\)|[\^$\\]|\.\*")
_TABLE = re.compile(
    r"create\s+(?:virtual\s+|temp(?:orary)?\s+)?table\s+(?:if\s+not\s+exists\s+)?[\[`\"]?(\w+)", re.IGNORECASE
)


_MADE = re.compile(
    r"(?:package-lock\.json|npm-shrinkwrap\.json|packages\.lock\.json|conda-lock\.yml|pnpm-lock\.yaml|go(?:\.work)?\.sum"
    r"|package\.resolved|bun\.lockb|gradle\.lockfile|.+\.lock(?:\.hcl)?|.+\.min\.(?:[cm]?js|css)|.+\.(?:[cm]?js|css)\.map)"
)
"""Names of lock files, minified files and source maps."""


class Definition(NamedTuple):
    """A thing that a file defines. `name` is unique in its file, such as `Schema.load` or `logs_list --limit`, and
    `names` are what a page may call it. `scope` is the name of what holds it. `lines` are its first and last line.
    `signature`, `help` and `body` are hashes.
    """

    name: str
    kind: str
    names: Sequence[str]
    scope: str
    lines: Sequence[int]
    signature: str
    help: str = ""
    body: str = ""

    @property
    def is_public(self) -> bool:
        return not self.name.startswith("_") and "._" not in self.name


class SymbolChange(NamedTuple):
    """What happened to one definition of the file `path`."""

    path: str
    part: Part
    before: Definition | None
    after: Definition | None

    @property
    def definition(self) -> Definition:
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def name(self) -> str:
        return self.definition.name


Definitions = Mapping[str, Definition]
"""The definitions of one file by name, in their order."""


def compare(path: str, before: Definitions, after: Definitions) -> list[SymbolChange]:
    """Return the definitions that differ, each with the part that matters most."""
    found = []
    for name in dict.fromkeys((*after, *before)):
        old, new = before.get(name), after.get(name)
        if (part := compare_one(old, new)) is not None:
            found.append(SymbolChange(path, part, old, new))
    return found


def join_moved(changes: Sequence[SymbolChange]) -> list[SymbolChange]:
    """Return `changes`, and what was removed from one file and added to another as one change at its new place."""
    removed = {(change.definition.kind, change.name): change for change in changes if change.part == "removed"}
    joined: list[SymbolChange] = []
    moved: set[int] = set()
    for change in changes:
        old = removed.pop((change.definition.kind, change.name), None) if change.part == "added" else None
        if old is None:
            joined.append(change)
        else:
            moved.add(id(old))
            part = compare_one(old.before, change.after) or "body"
            joined.append(change._replace(part=part, before=old.before))
    return [change for change in joined if id(change) not in moved]


def lose_file(path: str, now: str) -> SymbolChange:
    """Return the change of a file that a page names and that is not there under this name."""
    gone = Definition(path, "file", (path, path.rpartition("/")[2]), "", (1, 1), "")
    return SymbolChange(now, "removed", gone, None if now == path else gone._replace(name=path))


def compare_one(old: Definition | None, new: Definition | None) -> Part | None:
    """Return the part of a definition that changed, the one that matters most; None if nothing did."""
    if old is None or new is None:
        return None if old is new else "added" if old is None else "removed"
    parts: tuple[Part, ...] = ("signature", "help", "body")
    return next((part for part in parts if getattr(old, part) != getattr(new, part)), None)


def define(path: str, data: bytes) -> Definitions:
    """Return what a file defines: of Python its symbols, of another file itself."""
    found = define_python(path, data) if is_python(path) else None
    return define_file(path, data) if found is None else found


def is_python(path: str) -> bool:
    """Return whether a file holds Python."""
    return path.endswith((".py", ".pyi", ".pyw"))


def define_file(path: str, data: bytes) -> dict[str, Definition]:
    """Return the one definition that a file without a known grammar has: itself. White space at the ends of lines does
    not count; what is pinned or made from another file defines nothing.
    """
    name = path.rpartition("/")[2]
    if _MADE.fullmatch(name.lower()):
        return {}
    text = b"\n".join(line.rstrip() for line in data.splitlines() if line.strip()).decode("utf-8", "replace")
    return {path: Definition(path, "file", (path, name), "", (1, data.count(b"\n") + 1), digest(text))}


def define_python(path: str, data: bytes) -> dict[str, Definition] | None:
    """Return what a file of Python defines, by name; None if it cannot be parsed."""
    if len(data) > MAX_PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    reader = _PythonReader(path)
    reader.read(tree.body, "")
    return reader.found


class _PythonReader:
    """Collects the definitions of one module."""

    def __init__(self, path: str) -> None:
        parts = re.sub(r"\.pyi?w?$", "", path).split("/")
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        self._module = ".".join(parts[1:] if parts[:1] == ["src"] else parts)
        self._groups: dict[str, str] = {}
        """Function -> the words of the command group that it is."""
        self.found: dict[str, Definition] = {}

    def read(self, body: Iterable[ast.stmt], scope: str, *, is_class: bool = False) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.read_function(node, scope, is_class)
                case ast.ClassDef():
                    rest, doc = _split_docstring(node.body)
                    name = _join(scope, node.name)
                    head = _unparse(*node.decorator_list, *node.bases, *node.keywords)
                    self._add(node, "class", name, self._names(name), scope, f"class {node.name}({head})", doc)
                    self.read(rest, name, is_class=True)
                case ast.Assign() | ast.AnnAssign():
                    self.read_values(node, scope, is_class)
                case ast.If() | ast.Try() | ast.With():
                    handled = [each for handler in getattr(node, "handlers", ()) for each in handler.body]
                    for part in (node.body, getattr(node, "orelse", ()), getattr(node, "finalbody", ()), handled):
                        self.read(part, scope, is_class=is_class)
                case _:
                    self.read_calls(node, scope)

    def read_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: str, is_method: bool) -> None:
        name = _join(scope, node.name)
        rest, doc = _split_docstring(node.body)
        command = self.find_command(node)
        options = [each for each in node.decorator_list if _strings(each) and _OPTION.search(_name_of(each))]
        decorators = _unparse(*(each for each in node.decorator_list if each not in options))
        arguments = {each: each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        for argument in arguments:
            argument.annotation = None  # `Optional[str]` that becomes `str | None` is no other signature
        types = [each for each in (node.returns, *arguments.values()) if each is not None]
        # The arguments of a command are its options, which are compared one by one.
        shown = "" if command is not None else f"({ast.unparse(node.args)})"
        signature = f"{decorators} {node.name}{shown}".strip()
        names = [*self._names(name), *([node.name] if is_method else []), *([command] if command else [])]
        kind = "command" if command is not None else "method" if is_method else "function"
        self._add(node, kind, name, names, scope, signature, doc, _digest_nodes([*types, *rest]))
        for option in options:
            self.read_option(option, name)
        positional = [*node.args.posonlyargs, *node.args.args]
        last = zip(reversed(positional), reversed(node.args.defaults), strict=False)
        named = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        defaults = {argument: value for argument, value in (*last, *named) if value is not None}
        for argument, annotation in arguments.items():
            self.read_parameter(argument, annotation, defaults.get(argument), name)
        self.read_calls(ast.Module([ast.Expr(each) for each in node.decorator_list] + rest, []), name)
        inner = (ast.FunctionDef, ast.AsyncFunctionDef)  # such as commands that are registered in a function
        self.read([each for each in rest if isinstance(each, inner) and each.decorator_list], name)

    def find_command(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
        """Return the words of the command that a function is, empty for the program itself; None if it is none."""
        for decorator in node.decorator_list:
            owner, _, last = _name_of(decorator).rpartition(".")
            if last not in {"command", "group", "callback"} or not owner:
                continue
            given = _strings(decorator)[:1] or [_COMMAND_ENDING.sub("", node.name).replace("_", "-")]
            words = _join(self._groups.get(owner, ""), "" if last == "callback" else given[0], " ")
            if last == "group":
                self._groups[node.name] = words if owner in self._groups else ""
            return words
        return None

    def read_option(self, node: ast.expr, scope: str, name: str = "", *more: ast.AST) -> None:
        """Read an option with its `envvar`; `name` is what it is called without a spelling, `more` is also of its
        signature.
        """
        spellings = [part.strip() for text in _strings(node) for part in text.split("/")]
        options = [text for text in spellings if text.startswith("-")] or ([name] if name else [])
        if label := max(options, key=len, default=spellings[0] if spellings else ""):
            long = [text for text in options if len(text) > 2]
            self._add(node, "option", f"{scope} {label}", long, scope, _unparse(node, *more))
        keywords = node.keywords if isinstance(node, ast.Call) else []
        for value in (keyword.value for keyword in keywords if keyword.arg == "envvar"):
            for variable in (str(each.value) for each in ast.walk(value) if isinstance(each, ast.Constant)):
                self.add_named(value, "variable", variable, scope, variable)

    def read_parameter(
        self, argument: ast.arg, annotation: ast.expr | None, default: ast.expr | None, scope: str
    ) -> None:
        """Read an option that Typer takes from a parameter: its default, or a part of its annotation."""
        given = [default] if default is not None else []
        for call in (each for part in (annotation, *given) if part is not None for each in ast.walk(part)):
            if isinstance(call, ast.Call) and _name_of(call).rpartition(".")[2] == "Option":
                self.read_option(call, scope, f"--{argument.arg.replace('_', '-')}", argument, *given)

    def read_values(self, node: ast.Assign | ast.AnnAssign, scope: str, is_class: bool) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = [node.value] if node.value is not None else []
        type_ = [node.annotation] if isinstance(node, ast.AnnAssign) else []
        size = sum(1 for each in value for _ in ast.walk(each))
        for target in targets:
            if not isinstance(target, ast.Name):
                continue
            name = _join(scope, target.id)
            names = [*self._names(name), *([target.id] if is_class else [])]
            kind = "field" if is_class else "constant"
            if size <= _MAX_VALUE:
                self._add(node, kind, name, names, scope, _unparse(target, *value), body=_digest_nodes(type_))
                continue
            self._add(node, kind, name, names, scope, target.id, body=_digest_nodes(value))
            for entry, part in (pair for each in value for pair in _list_entries(each)):
                self._add(part, "entry", f"{name} {entry}", [entry], name, _unparse(part))
        self.read_calls(node, scope)

    def read_calls(self, node: ast.AST, scope: str) -> None:
        """Read what expressions define: the commands and options of argparse, variables, endpoints, tables."""
        commands: dict[str, str] = {}  # the variable of a parser -> its command
        for each in sorted(ast.walk(node), key=lambda each: getattr(each, "lineno", 0)):
            if isinstance(each, ast.Assign) and _name_of(each.value).endswith("add_parser"):
                words = "".join(_strings(each.value)[:1])
                commands |= {target.id: words for target in each.targets if isinstance(target, ast.Name)}
            elif isinstance(each, ast.Call):
                self.read_call(each, scope, commands)
            elif isinstance(each, ast.Subscript) and _name_of(each.value).endswith("environ"):
                if isinstance(each.slice, ast.Constant) and isinstance(each.slice.value, str):
                    self.add_named(each, "variable", each.slice.value, scope, each.slice.value)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                for found in _TABLE.finditer(each.value):
                    text = " ".join(each.value[found.start() :].partition(";")[0].split())
                    self.add_named(each, "table", found[1], scope, text)

    def read_call(self, node: ast.Call, scope: str, commands: Mapping[str, str]) -> None:
        texts = _strings(node)
        owner, _, last = _name_of(node).rpartition(".")
        if not texts:
            return
        if last == "add_parser":
            self.add_named(node, "command", texts[0], scope, ast.unparse(node))
        elif last == "add_argument":
            self.read_option(node, _join(scope, commands.get(owner, ""), " "))
        elif last == "getenv" or (last == "get" and owner.endswith("environ")):
            self.add_named(node, "variable", texts[0], scope, _unparse(*node.args))
        elif last in _ROUTERS and (path := next((text for text in texts if re.match(r"\^?/", text)), None)):
            plain = _PATTERN.sub(lambda found: f"{{{found[1]}}}" if found[1] else "", path)
            self.add_named(node, "endpoint", plain, scope, ast.unparse(node))

    def add_named(self, node: ast.AST, kind: str, name: str, scope: str, signature: str) -> None:
        """Add what pages call by one name, wherever it is."""
        self._add(node, kind, f"{scope} {name}", [name], scope, signature)

    def _names(self, name: str) -> list[str]:
        return [name, f"{self._module}.{name}"]

    def _add(
        self, node: ast.AST, kind: str, name: str, names: Iterable[str], scope: str, signature: str, doc: str = "",
        body: str = "",
    ) -> None:  # fmt: skip
        unique, number = name.strip(), 2
        while unique in self.found:
            unique, number = f"{name.strip()} ({number})", number + 1
        lines = (getattr(node, "lineno", 1), getattr(node, "end_lineno", 1))
        if decorators := getattr(node, "decorator_list", None):
            lines = (decorators[0].lineno, lines[1])
        known = tuple(dict.fromkeys(each for each in names if each))
        self.found[unique] = Definition(unique, kind, known, scope, lines, digest(signature), digest(doc), body)


def _join(scope: str, name: str, by: str = ".") -> str:
    return by.join(part for part in (scope, name) if part)


def _split_docstring(body: list[ast.stmt]) -> tuple[list[ast.stmt], str]:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return body[1:], " ".join(first.value.split())
    return body, ""


def _name_of(node: ast.AST) -> str:
    """Return the dotted name of what is called or read: `app.command` of `@app.command("x")`."""
    node = node.func if isinstance(node, ast.Call) else node
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ".".join(reversed(parts))


def _strings(node: ast.AST) -> list[str]:
    """Return the strings that are positional arguments of a call."""
    given = node.args if isinstance(node, ast.Call) else []
    return [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _list_entries(value: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """Yield the named entries of a list or a mapping: `Setting("max_rows", …)`, `"max_rows": …`."""
    if isinstance(value, ast.Dict):
        for key, each in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, each
    for each in value.elts if isinstance(value, (ast.Tuple, ast.List, ast.Set)) else ():
        if texts := _strings(each):
            yield texts[0], each
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value, each


def _unparse(*nodes: ast.AST) -> str:
    return ", ".join(ast.unparse(node) for node in nodes)


def _digest_nodes(nodes: Iterable[ast.AST]) -> str:
    return digest("".join(ast.dump(node) for node in nodes))


def digest(text: str) -> str:
    """Return a short hash: what a file holds may be a secret, so only hashes of it are stored."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
