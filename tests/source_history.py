"""Years of work on a generated repository, as a stream for `git fast-import`, and what of it made which doc stale."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from source_code import (
    SYNTAX,
    Constant,
    Module,
    Package,
    change_comment,
    change_docstring,
    change_format,
    change_logic,
    make_module,
    rename,
)
from source_docs import Doc, edited, modules_of
from source_words import OBJECTS, SIDES, TRADES

KINDS = {
    "logic": 34, "comment": 11, "docstring": 5, "format": 11, "new": 7, "rename": 3, "delete": 2, "code and docs": 12,
    "docs": 8, "docs format": 1, "build": 3, "revert": 2, "side": 2,
}  # fmt: skip
"""How often each kind of commit is made; "side" begins a branch of two to four commits and merges it."""
SIGNIFICANT = frozenset({"logic", "rename", "delete", "new"})
TRIVIAL = {"comment": change_comment, "docstring": change_docstring, "format": change_format}
VENDORED = ("node_modules/", "web/dist/", "vendor/")


@dataclass(slots=True)
class Commit:
    """What a commit did to each of its files. `branch` is 0 on main, else the number of the side branch."""

    kind: str
    what: dict[str, str]
    branch: int
    id: str = ""


@dataclass(slots=True)
class Branch:
    number: int
    files: dict[str, object]
    tip: int
    begun: int = 0
    """The commit of main that it left."""
    merged: int = 0
    packages: list[Package] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)
    left: int = 0


@dataclass(frozen=True, slots=True)
class Base:
    """A doc as it was last written: in which commit, and what its sources said then."""

    commit: int
    meanings: dict[str, str]


class History:
    """`commits` commits that end with about `files` files, among them `docs` guides beside the readmes."""

    def __init__(self, files: int, commits: int, docs: int, seed: int, author: str, start: datetime) -> None:
        self.chance = random.Random(seed)
        self.commits: list[Commit] = []
        self.bases: dict[str, Base] = {}
        self.renamed: dict[str, str] = {}
        self.stream: list[bytes] = []
        self._author, self._now = author, start
        self._main = Branch(0, {}, 0)
        self._side: Branch | None = None
        self._branches = [self._main]
        self._undo: tuple[dict[str, object], dict[str, object], dict[str, str]] | None = None
        self._names: dict[Package, Iterator[str]] = {}
        self._write(files, commits, docs)

    @property
    def files(self) -> dict[str, object]:
        return self._main.files

    def came_after(self, base: int) -> Iterator[Commit]:
        """The commits that the commit number `base` did not know of."""
        branch = self._branches[self.commits[base].branch]
        known = branch.begun if branch.number else base
        for number, commit in enumerate(self.commits):
            own = self._branches[commit.branch]
            seen = base if own is branch else known
            if (own.merged if own.number and own is not branch else number) > seen:
                yield commit

    def _write(self, files: int, commits: int, docs: int) -> None:
        vendored = max(6, files // 25)
        count = min(len(TRADES) * len(SIDES), commits // 4, max(3, files // 45))
        packages = self._plan_packages(count)
        each = (files - vendored - docs - 2 * count) // count
        self._commit(self._main, "new", "The repository", self._skeleton(vendored))
        begun = 0
        while len(self.commits) < commits:
            if len(self.commits) * count * 3 >= begun * commits and begun < count:
                others = ("runbook", "reference") if begun % 2 else ("reference", "runbook")
                forms = ("guide", *others)[: (docs + count - 1 - begun) // count]
                self._begin_package(packages[begun], each, forms)
                begun += 1
            else:
                self._work(commits - len(self.commits))

    def _plan_packages(self, count: int) -> list[Package]:
        pairs = [(trade, side) for side in SIDES for trade in TRADES]
        self.chance.shuffle(pairs)
        languages = sorted(SYNTAX)
        return [Package(trade, side, languages[n % 5]) for n, (trade, side) in enumerate(pairs[:count])]

    def _skeleton(self, vendored: int) -> dict[str, object]:
        files = {
            "README.md": "# Example\n\nOne repository for everything; see [the guides](docs/README.md).\n",
            "LICENSE": "Do with it what you like.\n",
            ".gitignore": "*.log\ntarget/\n__pycache__/\n",
            "Makefile": "test-%:\n\t./run tests $*\n",
            "docs/README.md": "# Guides\n\nOne folder for each trade; how they are written is up to you.\n",
        }
        for number in range(vendored // 3):
            folder = f"{VENDORED[number % 3]}lib{number}"
            files[f"{folder}/README.md"] = f"# lib{number}\n\nUse `{folder}/index.js`, and [read it](index.js).\n"
            files[f"{folder}/index.js"] = f"module.exports={{version:{number}}};\n"
            files[f"{folder}/package.json"] = f'{{"name": "lib{number}"}}\n'
        return {path: text.encode() for path, text in files.items()}

    def _begin_package(self, package: Package, count: int, forms: tuple[str, ...]) -> None:
        names = [package.say(f"{o} {v}") for o in OBJECTS for v in package.side.verbs]
        self.chance.shuffle(names)
        self._names[package] = iter(names + [f"{name} again" for name in names])
        facts = [Constant(f.constant, self.chance.randint(f.least, f.most), "") for f in package.side.facts]
        modules = [self._module(package, (fact,)) for fact in facts]
        modules += [self._module(package) for _ in range(count - len(facts))]
        manifest, text = package.manifest
        added: dict[str, object] = {module.path: module for module in modules} | {manifest: text.encode()}
        for form in (*forms, "readme"):
            doc = self._new_doc(package, form, modules)
            added[doc.path] = doc.written(self.files | added)
        self._main.packages.append(package)
        self._commit(self._main, "new", f"{package.folder}: a beginning", added)

    def _module(self, package: Package, facts: tuple[Constant, ...] = ()) -> Module:
        return make_module(package, next(self._names[package]), self.chance, facts)

    def _new_doc(self, package: Package, form: str, modules: list[Module]) -> Doc:
        chance = self.chance
        holders, others = modules[:3], modules[3:]
        few = chance.sample(others, min(len(others), chance.randint(1, 4)))
        if form != "readme" and self._main.packages and chance.random() < 0.25:
            few += chance.sample(list(modules_of(f"{chance.choice(self._main.packages).folder}/", self.files)), 1)
        chosen = {"guide": holders + few, "readme": [*holders[:1], *few[:2]]}.get(form, few or holders)
        sources = tuple(module.path for module in chosen)
        manner = chance.choices(("learned", "frontmatter", "comment", "none"), (60, 20, 15, 5))[0]
        if form == "readme":
            manner = "learned"
        elif manner == "none" and form == "runbook":
            sources = ()
        elif manner == "none":
            manner = "learned"
        elif manner != "learned" and chance.random() < 0.3:
            sources = (f"{package.folder}/",)
        path = f"docs/{package.trade.name}/{package.side.name}-{form}.md"
        if form == "readme":
            path = f"{package.folder.removesuffix('/src')}/README.md"
        return Doc(path, package, form, manner, sources)

    def _work(self, left: int) -> None:
        """One commit, on main or on the side branch."""
        side = self._side
        if side and (side.left == 0 or left <= 1):
            self._merge(side)
            return
        if side and (left <= side.left + 1 or self.chance.random() < 0.4):
            side.left -= 1
            self._change(side, self._kind(exclude={"side", "build", "revert"}))
            return
        kind = self._kind(exclude={"side"} if side or left < 8 or len(self._main.packages) < 2 else set())
        if kind == "side":
            package = self.chance.choice(self._main.packages)
            self._main.packages.remove(package)
            left = self.chance.randint(2, 4)
            tip = self._main.tip
            self._side = Branch(len(self._branches), dict(self.files), tip, tip, packages=[package], left=left)
            self._branches.append(self._side)
            self._work(left)
        else:
            self._change(self._main, kind)

    def _kind(self, exclude: set[str]) -> str:
        kinds = {kind: often for kind, often in KINDS.items() if kind not in exclude}
        return self.chance.choices(list(kinds), list(kinds.values()))[0]

    def _merge(self, side: Branch) -> None:
        self._side = None
        self._main.packages += side.packages
        what = {path: side.files.get(path) for path in sorted(side.changed)}
        side.merged = len(self.commits)
        # The docs were true in the commit of the branch that wrote them, not in this one.
        self._commit(self._main, "merge", f"Merge branch 'work-{side.number}'", what, merged=side)

    def _change(self, branch: Branch, kind: str) -> None:
        """A commit of this kind, or of another one where there is nothing to do it to."""
        chance, files = self.chance, branch.files
        package = branch.packages[int(len(branch.packages) * chance.random() ** 1.5)]
        modules = list(modules_of(f"{package.folder}/", files))
        few = chance.sample(modules, min(len(modules), chance.choice((1, 1, 1, 2, 2, 3, 4, 6, 8))))
        after: dict[str, object] = {}
        what: dict[str, str] = {}

        def put(module: Module, how: str) -> None:
            change = TRIVIAL.get(how, change_logic)
            after[module.path], what[module.path] = change(module, chance), how

        if kind == "revert" and self._undo and all(files.get(path) is new for path, new in self._undo[1].items()):
            after, _, what = self._undo
        elif kind in TRIVIAL:
            for module in few:
                put(module, kind)
        elif kind == "new":
            for module in [self._module(package) for _ in few[:3]]:
                after[module.path] = module
        elif kind in {"rename", "delete"} and (spare := self._spare(modules, few)):
            for module in spare[:2] if kind == "rename" else spare[:1]:
                after[module.path], what[module.path] = None, kind
                if kind == "rename":
                    moved = rename(module, next(self._names[package]))
                    after[moved.path], what[moved.path] = moved, kind
                    self.renamed[module.path] = moved.path
            if chance.random() < 0.5:
                after |= self._update_docs(branch, set(what), after)
        elif kind == "code and docs" and (doc := self._a_doc(branch, package)):
            sources = [module for source in doc.sources for module in modules_of(source, files)]
            own = [module for module in sources if module.package is package]
            kind = kind if own else "docs"
            for module in chance.sample(own, min(len(own), chance.randint(1, 4))):
                put(module, "logic")
            after[doc.path] = edited(doc, files | after, chance, self.renamed)
        elif kind == "docs" and (doc := self._a_doc(branch, package)):
            after[doc.path] = edited(doc, files, chance, self.renamed)
        elif kind == "docs format" and (doc := self._a_doc(branch, package)):
            after[doc.path] = doc.reformatted()
            what[doc.path] = "docs format"
        elif kind == "build":
            number = chance.randrange(1 << 30)
            after = {f"{folder}main.js": f"export const build={number};\n".encode() for folder in VENDORED[:2]}
        else:
            kind = "logic"
            for number, module in enumerate(few):
                put(module, chance.choice(("logic", "logic", *TRIVIAL)) if number else "logic")
        if kind == "logic" and branch is self._main:
            self._undo = ({path: files[path] for path in after}, after, what)
        self._commit(branch, kind, f"{package.trade.name} {package.side.name}: {kind}", after, what)

    def _spare(self, modules: list[Module], few: list[Module]) -> list[Module]:
        """Those of `few` that may go: the ones that hold a fact stay, as a package without them would be none."""
        facts = {fact.constant for fact in modules[0].package.side.facts}
        return [module for module in few if not facts & {constant.name for constant in module.constants}]

    def _a_doc(self, branch: Branch, package: Package) -> Doc | None:
        found = [doc for doc in branch.files.values() if isinstance(doc, Doc) and doc.package is package]
        return self.chance.choice(found) if found else None

    def _update_docs(self, branch: Branch, gone: set[str], after: dict[str, object]) -> dict[str, object]:
        """Every doc that names a path that is gone."""
        now = {path: entry for path, entry in (branch.files | after).items() if entry is not None}
        return {
            path: edited(doc, now, self.chance, self.renamed)
            for path, doc in branch.files.items()
            if isinstance(doc, Doc) and gone & set(doc.sources) and doc.package in branch.packages
        }

    def _commit(
        self,
        branch: Branch,
        kind: str,
        subject: str,
        after: dict[str, object],
        what: dict[str, str] | None = None,
        merged: Branch | None = None,
    ) -> None:
        """Each entry of `after` is a Module, a Doc, bytes, or None for what is removed."""
        number = len(self.commits)
        labels = (
            dict.fromkeys(after, "merge") if merged else {path: self._label(entry) for path, entry in after.items()}
        )
        self.commits.append(Commit(kind, labels | (what or {}), branch.number))
        parents = [branch.tip] if number else []
        parents += [merged.tip] if merged else []
        for path, entry in after.items():
            branch.changed.add(path)
            if entry is None:
                branch.files.pop(path, None)
            else:
                branch.files[path] = entry
        branch.tip = number
        self._now += timedelta(minutes=self.chance.randint(20, 480))
        texts = {path: self._bytes(entry) for path, entry in after.items() if entry is not None}
        self._emit(f"refs/heads/{f'work-{branch.number}' if branch.number else 'main'}", subject, parents, after, texts)
        for path, entry in after.items():
            if isinstance(entry, Doc) and not merged and self.commits[number].what[path] != "docs format":
                self.bases[path] = Base(number, meanings(entry, branch.files))

    @staticmethod
    def _label(entry: object) -> str:
        return "docs" if isinstance(entry, Doc) else "new" if isinstance(entry, Module) else "other"

    @staticmethod
    def _bytes(entry: object) -> bytes:
        if isinstance(entry, Doc):
            return entry.text.encode()
        return entry.render().encode() if isinstance(entry, Module) else entry

    def _emit(
        self, ref: str, subject: str, parents: list[int], after: dict[str, object], texts: dict[str, bytes]
    ) -> None:
        add = self.stream.append
        who = f"{self._author} {int(self._now.timestamp())} +0000"
        add(f"commit {ref}\nmark :{len(self.commits)}\ncommitter {who}\n".encode())
        add(b"data %d\n%s\n" % (len(subject.encode()), subject.encode()))
        for word, parent in zip(("from", "merge"), parents, strict=False):
            add(f"{word} :{parent + 1}\n".encode())
        for path in after:
            if path in texts:
                add(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(texts[path]), texts[path]))
            else:
                add(b"D %s\n" % path.encode())
        add(b"\n")


def meanings(doc: Doc, files: dict[str, object]) -> dict[str, str]:
    return {module.path: module.meaning for source in doc.sources for module in modules_of(source, files)}
