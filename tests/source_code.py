"""Modules of source code in five languages, as data: rendered, and changed in ways that mean something or do not."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

from source_words import OBJECTS, REASONS, REMARKS, TAKEN, Side, Trade

_A = re.compile(r"\b([Aa])(?= [aeio])")
WRAPPED, ROOMY, OTHER_QUOTES, OTHER_INDENT = 1, 2, 4, 8
"""How a module may be formatted: parameters one to a line, empty lines, the other quotes or brace, another indent."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """A language, as templates of its lines; `{{` … `}}` are its own braces."""

    suffix: str
    head: str
    remark: str
    constant: str
    record: tuple[str, str, str]
    function: str
    takes: tuple[str, str]
    close: str
    guard: tuple[str, str, str]
    let: str
    each: tuple[str, str, str]
    log: str
    done: str
    cases: tuple[Callable[[str], str], Callable[[str], str]]
    """How it writes functions and constants."""
    indent: str = "    "
    inside: int = 0
    """How deep functions stand: in Java they are in a class."""
    foot: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement: guard (a, op, b, reason), let (x, a, op, b), each (factor,) or log (text, a)."""

    kind: str
    words: tuple[str, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    takes: tuple[str, ...]
    about: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    value: int
    remark: str


@dataclass(frozen=True, slots=True)
class Package:
    """One side of one trade, in one language, in a folder."""

    trade: Trade
    side: Side
    language: str

    @property
    def folder(self) -> str:
        trade, side = self.trade.name, self.side.name
        return {
            "python": f"services/{trade}_{side}",
            "typescript": f"web/packages/{trade}-{side}/src",
            "go": f"go/{trade}/{side}",
            "rust": f"crates/{trade}-{side}/src",
            "java": f"java/src/main/java/org/example/{trade}/{side}",
        }[self.language]

    @property
    def manifest(self) -> tuple[str, str]:
        """(path, text) of what its build tool reads"""
        name = f"{self.trade.name}-{self.side.name}"
        root = self.folder.removesuffix("/src")
        return {
            "python": (f"{root}/pyproject.toml", f'[project]\nname = "{name}"\nversion = "1.0.0"\n'),
            "typescript": (f"{root}/package.json", f'{{\n  "name": "@example/{name}",\n  "version": "1.0.0"\n}}\n'),
            "go": (f"{root}/BUILD.bazel", f'go_library(name = "{name}", srcs = glob(["*.go"]))\n'),
            "rust": (f"{root}/Cargo.toml", f'[package]\nname = "{name}"\nversion = "1.0.0"\n'),
            "java": (f"{root}/BUILD.bazel", f'java_library(name = "{name}", srcs = glob(["*.java"]))\n'),
        }[self.language]

    def say(self, template: str, **more: object) -> str:
        words = {**self.trade._asdict(), "slug": f"{self.trade.name}-{self.side.name}", **more}
        return _A.sub(r"\1n", template.format(**words))

    def path_of(self, name: str) -> str:
        case = {"java": pascal, "typescript": camel}.get(self.language, snake)
        return f"{self.folder}/{case(name)}.{SYNTAX[self.language].suffix}"


@dataclass(frozen=True, slots=True)
class Module:
    package: Package
    name: str
    about: str
    constants: tuple[Constant, ...]
    functions: tuple[Function, ...]
    fields: tuple[str, ...]
    style: int = 0

    @property
    def path(self) -> str:
        return self.package.path_of(self.name)

    def render(self) -> str:
        return _render(self, self.style, with_remarks=True)

    @property
    def meaning(self) -> str:
        """Its code without name, comments and formatting: where it differs, a doc about it may have become wrong."""
        return _render(replace(self, name="one"), 0, with_remarks=False)

    def function_names(self) -> list[str]:
        return [SYNTAX[self.package.language].cases[0](function.name) for function in self.functions]

    def constant_name(self, constant: Constant) -> str:
        return SYNTAX[self.package.language].cases[1](constant.name)


@cache
def snake(words: str) -> str:
    return words.replace(" ", "_")


@cache
def upper(words: str) -> str:
    return snake(words).upper()


@cache
def pascal(words: str) -> str:
    return "".join(word.capitalize() for word in words.split())


@cache
def camel(words: str) -> str:
    first, *rest = words.split()
    return first + pascal(" ".join(rest))


SYNTAX = {
    "python": Syntax(
        suffix="py",
        head='"""{about}"""\n\nfrom __future__ import annotations\n\nimport logging\nfrom dataclasses import dataclass\n\n'
        "LOG = logging.getLogger(__name__)",
        remark="# {}",
        constant="{name} = {value}",
        record=("@dataclass(frozen=True)\nclass {name}:", "    {field}: int = 0", ""),
        function="def {name}({takes}) -> int:",
        takes=("{}: int", "{}: list[int]"),
        close="",
        guard=("if {0} {1} {2}:", "    raise ValueError({3})", ""),
        let="{0} = {1} {2} {3}",
        each=("for each in parts:", "    total += each * {0}", ""),
        log="LOG.info({0}, {1})",
        done="return {0}",
        cases=(snake, upper),
    ),
    "typescript": Syntax(
        suffix="ts",
        head='/** {about} */\nimport {{ log }} from "@example/log";',
        remark="// {}",
        constant="export const {name} = {value};",
        record=("export interface {name} {{", "  {field}: number;", "}}"),
        function="export function {name}({takes}): number {{",
        takes=("{}: number", "{}: number[]"),
        close="}",
        guard=("if ({0} {1} {2}) {{", "  throw new RangeError({3});", "}}"),
        let="const {0} = {1} {2} {3};",
        each=("for (const each of parts) {{", "  total += each * {0};", "}}"),
        log="log.info({0}, {1});",
        done="return {0};",
        cases=(camel, upper),
        indent="  ",
    ),
    "go": Syntax(
        suffix="go",
        head='// Package {folder}: {about}\npackage {folder}\n\nimport (\n\t"fmt"\n\t"log/slog"\n)',
        remark="// {}",
        constant="const {name} = {value}",
        record=("type {name} struct {{", "\t{field} int", "}}"),
        function="func {name}({takes}) (int, error) {{",
        takes=("{} int", "{} []int"),
        close="}",
        guard=("if {0} {1} {2} {{", "\treturn 0, fmt.Errorf({3})", "}}"),
        let="{0} := {1} {2} {3}",
        each=("for _, each := range parts {{", "\ttotal += each * {0}", "}}"),
        log='slog.Info({0}, "value", {1})',
        done="return {0}, nil",
        cases=(pascal, pascal),
        indent="\t",
    ),
    "rust": Syntax(
        suffix="rs",
        head="//! {about}\n\nuse crate::errors::Refused;\nuse tracing::info;",
        remark="// {}",
        constant="pub const {name}: i64 = {value};",
        record=("#[derive(Clone, Debug)]\npub struct {name} {{", "    pub {field}: i64,", "}}"),
        function="pub fn {name}({takes}) -> Result<i64, Refused> {{",
        takes=("{}: i64", "{}: &[i64]"),
        close="}",
        guard=("if {0} {1} {2} {{", "    return Err(Refused::new({3}));", "}}"),
        let="let {0} = {1} {2} {3};",
        each=("for each in parts {{", "    total += each * {0};", "}}"),
        log="info!(value = {1}, {0});",
        done="Ok({0})",
        cases=(snake, upper),
    ),
    "java": Syntax(
        suffix="java",
        head="package org.example.{trade}.{folder};\n\nimport java.util.List;\nimport org.example.Log;\n\n"
        "/** {about} */\npublic final class {name} {{",
        remark="// {}",
        constant="    public static final int {name} = {value};",
        record=("    public static final class {name} {{", "        int {field};", "    }}"),
        function="public static int {name}({takes}) {{",
        takes=("int {}", "List<Integer> {}"),
        close="}",
        guard=("if ({0} {1} {2}) {{", "    throw new IllegalStateException({3});", "}}"),
        let="int {0} = {1} {2} {3};",
        each=("for (int each : parts) {{", "    total += each * {0};", "}}"),
        log="Log.info({0}, {1});",
        done="return {0};",
        cases=(camel, upper),
        inside=1,
        foot="}",
    ),
}
_TOTAL = {"python": "total = 0", "typescript": "let total = 0;", "go": "total := 0", "rust": "let mut total = 0;",
          "java": "int total = 0;"}  # fmt: skip


def _render(module: Module, style: int, *, with_remarks: bool) -> str:
    language = module.package.language
    syntax = SYNTAX[language]
    folder = module.package.folder.removesuffix("/src").rpartition("/")[2]
    about = module.about if with_remarks else ""
    lines = [
        syntax.head.format(about=about, folder=folder, trade=module.package.trade.name, name=pascal(module.name)),
        "",
    ]
    for constant in module.constants:
        written = syntax.constant.format(name=syntax.cases[1](constant.name), value=constant.value)
        is_noted = with_remarks and constant.remark
        lines.append(f"{written}  {syntax.remark.format(constant.remark)}" if is_noted else written)
    gap = [""] * (2 if language == "python" else 1)
    opening, field, closing = syntax.record
    lines += [*gap, opening.format(name=pascal(f"{module.name} record"))]
    lines += [field.format(field=syntax.cases[0](name)) for name in module.fields]
    lines += [closing.format()] if closing else []
    for function in module.functions:
        lines += [*gap, *_function(function, language, style, with_remarks=with_remarks)]
    lines += [syntax.foot] if syntax.foot else []
    text = "\n".join(lines) + "\n"
    if style & OTHER_QUOTES and language in {"python", "typescript"}:
        return text.replace('("', "('").replace('", ', "', ").replace('")', "')")
    if style & OTHER_QUOTES:  # the brace on a line of its own
        return text.replace(") {\n", ")\n{\n") if language == "java" else text.replace("\n\n", "\n\n\n")
    return text


def _function(function: Function, language: str, style: int, *, with_remarks: bool) -> list[str]:
    syntax = SYNTAX[language]
    indent = syntax.indent
    if style & OTHER_INDENT:
        indent = {"python": "  ", "typescript": "    ", "go": "    ", "rust": "  ", "java": "  "}[language]
    outer = syntax.indent * syntax.inside
    takes = [syntax.takes[0].format(name) for name in function.takes] + [syntax.takes[1].format("parts")]
    if style & WRAPPED:
        comma = "" if language == "java" else ","
        joined = f"\n{outer}{indent}" + f",\n{outer}{indent}".join(takes) + f"{comma}\n{outer}"
    else:
        joined = ", ".join(takes)
    head = outer + syntax.function.format(name=syntax.cases[0](function.name), takes=joined)
    lines = []
    if with_remarks and language == "python":
        lines += [head, f'{indent}"""{function.about}"""']
    elif with_remarks:
        mark = {"typescript": "/** {} */", "java": "/** {} */", "rust": "/// {}"}.get(language, "// {}")
        lines += [outer + mark.format(function.about), head]
    else:
        lines.append(head)
    body = outer + indent
    lines.append(body + _TOTAL[language])
    for step in function.steps:
        if with_remarks and step.remark:
            lines.append(body + syntax.remark.format(step.remark))
        words = [f'"{word[1:]}"' if word[0] == '"' else _operand(word, syntax) for word in step.words]
        template = getattr(syntax, step.kind)
        rows = [template] if isinstance(template, str) else [row for row in template if row]
        for row in rows:
            text = row.format(*words)
            inner = text.lstrip()
            lines.append(body + (indent if len(inner) < len(text) else "") + inner)
        if style & ROOMY and len(rows) > 1:
            lines.append("")
    last = next(step.words[0] for step in reversed(function.steps) if step.kind == "let")
    lines.append(body + syntax.done.format(f"{last} + total"))
    return [*lines, outer + syntax.close] if syntax.close else lines


def _operand(word: str, syntax: Syntax) -> str:
    return syntax.cases[1](word[1:]) if word[0] == "$" else word


def make_module(package: Package, name: str, chance: random.Random, facts: tuple[Constant, ...] = ()) -> Module:
    """30 to 200 lines; `facts` are constants it has to have."""
    kinds = ("limit", "step", "factor", "reserve", "bound")
    more = chance.sample(kinds, chance.randint(1, 4))
    constants = facts + tuple(Constant(f"{name} {kind}", chance.randint(2, 900), "") for kind in more)
    verbs = chance.sample([(v, o) for v in package.side.verbs for o in OBJECTS], chance.choice((1, 2, 3, 4, 5, 6, 9)))
    functions = tuple(_make_function(package, package.say(f"{verb} {at}"), constants, chance) for verb, at in verbs)
    fields = tuple(chance.sample(("number", "place", "since", *TAKEN), chance.randint(3, 6)))
    return Module(package, name, _remark(package, chance), constants, functions, fields)


def _make_function(package: Package, name: str, constants: tuple[Constant, ...], chance: random.Random) -> Function:
    takes = tuple(chance.sample(TAKEN, chance.randint(2, 4)))
    steps: list[Step] = []
    for _ in range(chance.randint(1, 2)):
        limit = f"${chance.choice(constants).name}"
        reason = '"' + package.say(chance.choice(REASONS))
        steps.append(Step("guard", (chance.choice(takes), chance.choice(("<", ">")), limit, reason)))
    known = list(takes)
    for local in ("base", "fair", "left")[: chance.randint(1, 3)]:
        right = chance.choice([*known, str(chance.randint(2, 60))])
        steps.append(Step("let", (local, chance.choice(known), chance.choice("+-*"), right)))
        known.append(local)
    steps.insert(chance.randrange(len(steps)), Step("each", (str(chance.randint(2, 40)),)))
    if chance.random() < 0.5:
        steps.append(Step("log", (f'"{name}', known[-1])))
    steps = [replace(step, remark=_remark(package, chance) if chance.random() < 0.4 else "") for step in steps]
    return Function(name, takes, _remark(package, chance), tuple(steps))


def _remark(package: Package, chance: random.Random) -> str:
    return f"{package.say(chance.choice(REMARKS))} Ticket {chance.randint(100, 9999)}."


def rename(module: Module, name: str) -> Module:
    return replace(module, name=name)


def change_logic(module: Module, chance: random.Random) -> Module:
    """A constant, a condition, a calculation, or a function more or less."""
    what = chance.choice(("constant", "constant", "condition", "calculation", "new", "gone"))
    if what == "constant":
        return change_constant(module, chance.randrange(len(module.constants)), chance)
    if what == "new" or (what == "gone" and len(module.functions) < 3):
        taken = {function.name for function in module.functions}
        names = (module.package.say(f"{v} {o}") for v in module.package.side.verbs for o in OBJECTS)
        name = chance.choice([name for name in names if name not in taken])
        added = _make_function(module.package, name, module.constants, chance)
        return replace(module, functions=(*module.functions, added))
    place = chance.randrange(len(module.functions))
    function = module.functions[place]
    if what == "gone":
        return replace(module, functions=module.functions[:place] + module.functions[place + 1 :])
    kind = "guard" if what == "condition" else "each"
    at = next(n for n, step in enumerate(function.steps) if step.kind == kind)
    words = function.steps[at].words
    if kind == "guard":
        words = (words[0], {"<": "<=", ">": ">=", "<=": "<", ">=": ">"}[words[1]], *words[2:])
    else:
        words = (str(int(words[0]) + chance.randint(1, 9)),)
    return _with_step(module, place, at, replace(function.steps[at], words=words))


def change_constant(module: Module, at: int, chance: random.Random) -> Module:
    constant = module.constants[at]
    changed = replace(constant, value=constant.value + chance.randint(1, 9))
    return replace(module, constants=(*module.constants[:at], changed, *module.constants[at + 1 :]))


def change_comment(module: Module, chance: random.Random) -> Module:
    place = chance.randrange(len(module.functions))
    at = chance.randrange(len(module.functions[place].steps))
    step = module.functions[place].steps[at]
    return _with_step(module, place, at, replace(step, remark=_remark(module.package, chance)))


def change_docstring(module: Module, chance: random.Random) -> Module:
    place = chance.randrange(len(module.functions))
    function = replace(module.functions[place], about=_remark(module.package, chance))
    return replace(module, functions=(*module.functions[:place], function, *module.functions[place + 1 :]))


def change_format(module: Module, chance: random.Random) -> Module:
    return replace(module, style=module.style ^ chance.choice((WRAPPED, ROOMY, OTHER_QUOTES, OTHER_INDENT)))


def _with_step(module: Module, place: int, at: int, step: Step) -> Module:
    function = module.functions[place]
    changed = replace(function, steps=(*islice(function.steps, at), step, *function.steps[at + 1 :]))
    return replace(module, functions=(*module.functions[:place], changed, *module.functions[place + 1 :]))
