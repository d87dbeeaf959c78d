"""Docs about generated modules: as data that knows its sources, rendered with the names and values they have that day."""

from __future__ import annotations

import posixpath
import random
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from source_code import Module, Package
from source_words import SENTENCES, STEPS

Files = Mapping[str, object]
"""path -> Module, Doc, or the bytes of anything else"""

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Doc:
    """A guide, runbook, reference or readme of a package.

    `manner` is how it names its sources: in its frontmatter, in a comment, by links and code spans alone ("learned"), or
    not at all ("none", for it has none). A source that ends in "/" is a folder.
    """

    path: str
    package: Package
    form: str
    manner: str
    sources: tuple[str, ...]
    edits: tuple[str, ...] = ()
    """The sections that were written anew, in order."""
    text: str = ""
    """As it was written last: what it says of its sources was true then."""

    def written(self, files: Files) -> Doc:
        return replace(self, text=self._render(files))

    def reformatted(self) -> Doc:
        has_gaps = "\n\n\n" in self.text
        return replace(self, text=self.text.replace(*(("\n\n\n", "\n\n") if has_gaps else ("\n\n", "\n\n\n"))))

    def _render(self, files: Files) -> str:
        modules = [module for path in self.sources for module in modules_of(path, files)]
        say = self.package.say
        title = say(f"{{things}}: {self.package.side.name}, the {self.form}").capitalize()
        sections = [f"# {title}\n\n{self._intro()}"]
        if self.form == "guide":
            sections.append(self._limits(modules))
        if self.form == "runbook":
            sections.append(self._procedure(modules))
        shown = modules[:9]
        sections += [self._about(module) for module in shown]
        if self.form != "readme":
            prose = self._prose("practice", random.Random(self.path).randint(3, 8), modules)
            sections.append(f"## In practice\n\n{prose}\n\n## See also\n\n{self._see_also()}")
        return self._head() + "\n\n".join(sections) + "\n"

    def _head(self) -> str:
        if self.manner == "frontmatter":
            listed = "".join(f"  - {path}\n" for path in self.sources)
            return f"---\ntitle: {self.package.trade.name} {self.package.side.name}\nsources:\n{listed}---\n"
        return f"<!-- SOURCES: {', '.join(self.sources)} -->\n" if self.manner == "comment" else ""

    def _intro(self) -> str:
        package = self.package
        kind = {"readme": "This folder", "runbook": "What this page is about"}.get(self.form, "This part of the system")
        first = package.say(f"{kind} {package.side.purpose}. ")
        return _wrap(first + self._sentences("intro", 3)) + "\n\n" + self._prose("intro", 2)

    def _limits(self, modules: list[Module]) -> str:
        """The facts, with the values that the constants have now."""
        values = {constant.name: (constant, module) for module in modules for constant in module.constants}
        said = []
        for number, fact in enumerate(self.package.side.facts):
            if fact.constant in values:
                constant, module = values[fact.constant]
                told = self.package.say(fact.said, value=constant.value)
                after = self._sentences(f"limit {number}", 1)
                said.append(_wrap(f"{told} The constant is `{module.constant_name(constant)}`. {after}"))
        return "## Limits\n\n" + "\n\n".join(said)

    def _procedure(self, modules: list[Module]) -> str:
        chance = self._chance("procedure")
        call = modules[0].function_names()[0] if modules and modules[0].functions else "main"
        steps = [self.package.say(step, function=call, number=chance.randint(3, 400)) for step in STEPS]
        numbered = "\n".join(_wrap(f"{n}. {step}", "   ") for n, step in enumerate(steps, 1))
        return f"## What to do\n\n{_wrap(self.package.say(self.package.side.trouble))}\n\n{numbered}"

    def _about(self, module: Module) -> str:
        """How one source works, and where it stands."""
        where = random.Random(self.path + module.path)
        lines = [f"## {module.name.capitalize()}", "", _wrap(self._place(module, where)), ""]
        lines += [self._prose(module.path, where.randint(1, 2), [module]), ""]
        names = module.function_names()
        if self.form == "reference" or where.random() < 0.3:
            rows = [f"| `{module.constant_name(each)}` | {each.value} |" for each in module.constants]
            lines += ["| constant | value |", "| --- | --: |", *rows, ""]
        if names and self.form != "readme":
            call = f"{names[0]}({', '.join(str(where.randint(1, 99)) for _ in module.functions[0].takes)})"
            lines += [f"```{module.package.language}", call, *names[1:4], "```", ""]
        return "\n".join(lines[:-1])

    def _place(self, module: Module, where: random.Random) -> str:
        name = module.path.rpartition("/")[2]
        relative = self._relative(module.path)
        short = "/".join(module.path.split("/")[-3:])
        written = where.choice(
            (f"[`{name}`]({relative})", f"[{module.name}]({relative})", f"[`{name}`]({relative}#L{where.randint(5, 30)})",
             f"`{module.path}`", f"`{module.path}`", f"`{module.path}:{where.randint(5, 30)}`", f"`{short}`")
        )  # fmt: skip
        return self.package.say(f"What is said here of the {{things}} is done in {written}, nowhere else.")

    def _relative(self, path: str) -> str:
        return posixpath.relpath(path, self.path.rpartition("/")[0])

    def _see_also(self) -> str:
        """Nothing here is a source: other docs, a path of another machine, commands, what is not there any more."""
        trade, side = self.package.trade.name, self.package.side.name
        return (
            f"- [All guides]({self._relative('docs/README.md')})\n"
            f"- [License]({self._relative('LICENSE')}) and `make test-{trade}`\n"
            f"- on the server: `/etc/example/{trade}.toml`, `/var/log/{trade}/{side}.log`\n"
            f"- `attic/{trade}.pl`, which did this before"
        )

    def _prose(self, section: str, paragraphs: int, modules: Sequence[Module] = ()) -> str:
        return "\n\n".join(_wrap(self._sentences(section, 4, modules, n)) for n in range(1, paragraphs + 1))

    def _sentences(self, section: str, count: int, modules: Sequence[Module] = (), paragraph: int = 0) -> str:
        chance = self._chance(section, paragraph)
        names = [name for module in modules for name in module.function_names()]
        usable = [sentence for sentence in SENTENCES if names or "{function}" not in sentence]
        chosen = chance.sample(usable, count)
        return " ".join(self.package.say(each, function=chance.choice(names or ["main"])) for each in chosen)

    def _chance(self, section: str, paragraph: int = 0) -> random.Random:
        return random.Random(f"{self.path} {section} {paragraph} {self.edits.count(section)}")


def edited(doc: Doc, files: Files, chance: random.Random, renamed: Mapping[str, str]) -> Doc:
    """Written anew in one place, and about the sources that there are: their new names, without those that are gone."""
    now = []
    for source in doc.sources:
        path = source
        while path not in files and path in renamed:
            path = renamed[path]
        if source.endswith("/") or path in files:
            now.append(path)
    edits = (*doc.edits, chance.choice(("intro", *now)))
    return replace(doc, sources=tuple(dict.fromkeys(now)), edits=edits).written(files)


def modules_of(source: str, files: Files) -> Iterator[Module]:
    found = (path for path in files if path.startswith(source)) if source.endswith("/") else (source,)
    return (files[path] for path in sorted(found) if isinstance(files.get(path), Module))


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
