"""How far one operation travels at run time: files, functions, depth, lambdas, and calls up into a higher package.

python tests/walk.py [-v | --json]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

CHECKOUT = Path(__file__).parents[1]
ROOT = str(CHECKOUT / "quaid") + os.sep
COMPREHENSIONS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>"}
TABLE = re.findall(r"^\| `(\w+)` \|", (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
LEVEL = {name: number for number, name in enumerate(TABLE)}
FACTS = (
    "Maya takes oat milk in her coffee", "Tom is learning to sail", "Maya lives in Berlin",
    "Tom takes oat milk in his coffee", "Maya works at Acme as a designer",
)  # fmt: skip


class Walk:
    """Counts the calls of Quaid's functions while it is the profiler of all threads."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.depth = self.lambdas = 0
        self.climbs: Counter[str] = Counter()

    def see(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name in COMPREHENSIONS:
            return
        path = code.co_filename[len(ROOT) :]
        self.files.add(path)
        self.functions.add((path, code.co_qualname))
        self.lambdas += code.co_name == "<lambda>"
        callers = [caller[len(ROOT) :] for caller in _files_above(frame) if caller.startswith(ROOT)]
        self.depth = max(self.depth, len(callers) + 1)
        if callers and LEVEL.get(_package(path), 0) > LEVEL.get(_package(callers[0]), 0):
            self.climbs[f"{callers[0]} -> {path}:{code.co_name}"] += 1

    def figures(self) -> dict[str, int]:
        return {
            "files": len(self.files), "functions": len(self.functions), "depth": self.depth,
            "lambdas": self.lambdas, "climbs": self.climbs.total(),
        }  # fmt: skip


def _files_above(frame: FrameType) -> Iterator[str]:
    while (frame := frame.f_back) is not None:
        yield frame.f_code.co_filename


def _package(path: str) -> str:
    return Path(path).parts[0].removesuffix(".py")


def walk_all(folder: Path) -> dict[str, Walk]:
    """Operation -> what it entered, on a small vault."""
    from quaid import Memory
    from quaid.janitor.runner import RunOptions

    walks: dict[str, Walk] = {}

    @contextmanager
    def walk(operation: str) -> Iterator[None]:
        walks[operation] = Walk()
        threading.setprofile(walks[operation].see)
        sys.setprofile(walks[operation].see)
        yield
        sys.setprofile(None)
        threading.setprofile(None)

    root = folder / "vault"
    Memory.create(root, ("Maya Chen",))[0].close()
    with Memory.open(root) as memory:
        for text in FACTS:
            memory.remember(text)
        memory.recall("what milk?")
    with Memory.open(root) as memory:
        memory.recall("warm up")
        with walk("a question, warm"):
            memory.recall("what milk does Maya take?")
        with walk("a fact remembered"):
            memory.remember("Tom lives in Hamburg near the harbour")
        note = next(root.glob("**/tom-is-learning*.md"))
        note.write_text(note.read_text(encoding="utf-8").replace("sail", "row"), encoding="utf-8")
        with walk("an edit saved, a question"):
            hits = memory.recall("what does Tom learn?").hits
        with walk("a note shown"):
            memory.get(hits[0].id)
        with walk("why"):
            memory.why(hits[0].id)
        owner = ("-c", "user.name=M", "-c", "user.email=m@x")
        subprocess.run(["git", "-C", str(root), *owner, "commit", "-qam", "own"], check=True)
        with walk("a fact forgotten"):
            memory.forget(hits[0].id)
        with walk("a run of the janitor"):
            memory.janitor.run(RunOptions())
    return walks


def main(arguments: list[str]) -> None:
    """Print the figures of each operation; -v names the calls up into a higher package."""
    sys.path.insert(0, str(CHECKOUT))
    with tempfile.TemporaryDirectory(prefix="q-") as folder:
        os.environ |= {
            "QUAID_RESIDENT": "off", "QUAID_MODELS_PROVIDER": "none", "QUAID_EMBEDDING_PROVIDER": "none",
            "QUAID_CONFIG_DIR": f"{folder}/config", "QUAID_STATE_DIR": f"{folder}/state",
        }  # fmt: skip
        walks = walk_all(Path(folder))
    if "--json" in arguments:
        print(json.dumps({operation: walk.figures() for operation, walk in walks.items()}))
        return
    for operation, walk in walks.items():
        print(f"{operation:28}" + "".join(f"{value:6} {name}" for name, value in walk.figures().items()))
        for climb, times in walk.climbs.most_common(8 if "-v" in arguments else 0):
            print(f"    {times} x {climb}")


if __name__ == "__main__":
    main(sys.argv[1:])
