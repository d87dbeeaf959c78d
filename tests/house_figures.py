"""The shape of Quaid's code in figures: rooms, import circles, loose modules, helpers used once, lines.

python tests/house_figures.py            this checkout
python tests/house_figures.py FOLDER     the package in another one, for a comparison
"""

from __future__ import annotations

import ast
import re
import sys
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

    def helpers_used_once(self, path: Path) -> list[str]:
        """The private functions of a module that it names in one place besides their definition."""
        functions = [node for node in self.trees[path].body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        private = [node.name for node in functions if node.name.startswith("_") and not node.name.startswith("__")]
        return [name for name in private if len(re.findall(rf"\b{name}\b", self.texts[path])) == 2]

    def lines_by_room(self) -> Counter[str]:
        """Lines of each room, and of each loose module."""
        lines: Counter[str] = Counter()
        for path, text in self.texts.items():
            lines[path.parts[0].removesuffix(".py")] += text.count("\n")
        return lines

    def _name_of(self, path: Path) -> str:
        return ".".join((self.folder.name, *path.with_suffix("").parts)).removesuffix(".__init__")


def measure(package: Package) -> dict[str, str | float]:
    """The figures of a package, by name."""
    lines = sum(package.lines_by_room().values())
    once = sum(len(package.helpers_used_once(path)) for path in package.texts)
    lengths = [length for path in package.texts for length in _function_lengths(package.trees[path])]
    return {
        "lines": lines,
        "modules": len(package.texts),
        "longest module": max(text.count("\n") for text in package.texts.values()),
        "longest function": max(lengths),
        "loose modules": len(package.loose_modules()),
        "circle of imports": " ".join(package.find_circle()) or "none",
        "helpers used once per 1,000 lines": round(1000 * once / lines, 1),
    }


def walk_at_run_time(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield every node but those that only a type checker sees."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            left += ast.iter_child_nodes(node)


def _function_lengths(tree: ast.Module) -> list[int]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(node.end_lineno or 0) - node.lineno + 1 for node in functions]


def main() -> None:
    """Print the figures as a table."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "quaid"
    package = Package(folder)
    for name, value in measure(package).items():
        print(f"{name:36} {value:>8}" if not isinstance(value, str) else f"{name:36} {value}")
    print(f"\n{'lines by room':36}")
    for room, lines in package.lines_by_room().most_common():
        print(f"  {room:34} {lines:8,}")


if __name__ == "__main__":
    main()
