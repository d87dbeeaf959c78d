"""The shape of Quaid's code in figures: lines, records, indirection, helpers used once, words of a private dialect.

python tests/house_figures.py            this checkout
python tests/house_figures.py FOLDER     the package in another one, for a comparison
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


class Package:
    """The modules below a folder `quaid`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.texts = {path.relative_to(folder): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
        self._modules = {self._name_of(path): path for path in self.texts}

    @cached_property
    def trees(self) -> dict[Path, ast.Module]:
        """Each module parsed, which takes seconds: not before somebody looks at them."""
        return {path: ast.parse(text) for path, text in self.texts.items()}

    def imports(self, path: Path) -> set[Path]:
        """The modules of the package that a module imports, also inside functions; not those for types alone."""
        found = set()
        for node in walk_at_run_time(self.trees[path]):
            if isinstance(node, ast.Import):
                found |= {self._modules.get(alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found.add(self._modules.get(f"{node.module}.{alias.name}") or self._modules.get(node.module))
        return {target for target in found if target is not None} - {path}

    def find_circle(self) -> list[str]:
        """One circle of imports, empty where there is none."""
        try:
            TopologicalSorter({path: self.imports(path) for path in self.texts}).prepare()
        except CycleError as error:
            return [str(path) for path in error.args[1]]
        return []

    def loose_modules(self) -> list[str]:
        """The modules beside the rooms."""
        return sorted(path.stem for path in self.texts if len(path.parts) == 1 and not path.stem.startswith("__"))

    def lines_by_room(self) -> Counter[str]:
        """Lines of each room, and of each loose module."""
        lines: Counter[str] = Counter()
        for path, text in self.texts.items():
            lines[path.parts[0].removesuffix(".py")] += text.count("\n")
        return lines

    def _name_of(self, path: Path) -> str:
        return ".".join((self.folder.name, *path.with_suffix("").parts)).removesuffix(".__init__")


DIALECT = re.compile(r"(?<![a-z])(said|told|kept|beside|whoever|hears?|stands?|lies|meant)(?![a-z])", re.IGNORECASE)
"""Common words with a meaning of our own, which a reader would have to learn."""
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def measure(package: Package) -> dict[str, float]:
    """The figures of a package, by name; less is better for each."""
    count: Counter[str] = Counter()
    for path, text in package.texts.items():
        nodes = list(ast.walk(package.trees[path]))
        count["lines"] += text.count("\n")
        if DIALECT.search(text):
            count["dialect words"] += sum(len(DIALECT.findall(part)) for part in _prose(text, nodes))
        words = Counter(re.findall(r"\w+", text))
        if not re.search(rf"(?m)^\s+from {package.folder.name}\b", text):
            words["import"] = 0  # none inside a function: nothing to search for
        for node in nodes:
            if isinstance(node, ast.ClassDef | ast.Lambda | FUNCTION):
                count.update(_figures_of(node, words, package.folder.name))
    names = ("lines", "record classes", "record fields", "lambdas without arguments", "functions that take a Callable")
    figures: dict[str, float] = {name: count[name] for name in names}
    for name in ("private functions used once", "own imports inside functions", "dialect words"):
        figures[f"{name} per 1,000 lines"] = round(1000 * count[name] / count["lines"], 1)
    return figures


def _figures_of(node: ast.AST, words: Counter[str], package: str) -> dict[str, int]:
    if isinstance(node, ast.ClassDef):
        made = " ".join(ast.unparse(part) for part in (*node.decorator_list, *node.bases))
        if re.search("dataclass|NamedTuple|TypedDict", made):
            return {"record classes": 1, "record fields": sum(isinstance(part, ast.AnnAssign) for part in node.body)}
    elif isinstance(node, FUNCTION):
        is_private = node.name.startswith("_") and not node.name.startswith("__")
        own = [part for part in ast.walk(node) if isinstance(part, ast.ImportFrom)] if words["import"] else []
        return {
            "functions that take a Callable": words["Callable"] and "Callable" in ast.unparse(node.args),
            "private functions used once": is_private and words[node.name] == 2,
            "own imports inside functions": sum((part.module or "").split(".")[0] == package for part in own),
        }
    elif isinstance(node, ast.Lambda):
        return {"lambdas without arguments": not (node.args.args or node.args.kwonlyargs or node.args.vararg)}
    return {}


def _prose(text: str, nodes: list[ast.AST]) -> Iterator[str]:
    """Names, comments and docstrings; not other strings, which are messages to users."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in {tokenize.NAME, tokenize.COMMENT}:
            yield token.string
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def walk_at_run_time(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every node but those that only a type checker sees."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            left += ast.iter_child_nodes(node)


def main() -> None:
    """Print the figures as a table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "quaid"
    package = Package(folder)
    for name, value in measure(package).items():
        print(f"{name:45} {value:>8,}")
    print(f"\n{'lines by room':36}")
    for room, lines in package.lines_by_room().most_common():
        print(f"  {room:34} {lines:8,}")


if __name__ == "__main__":
    main()
