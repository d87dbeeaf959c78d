"""Projects at size: how long discover, check and search take in a large repository, and whether the right docs are stale.

    python tests/benchmarks/projects.py [--files 5000] [--commits 2000] [--docs 150] [--json result.json]
    python tests/benchmarks/projects.py --repo FOLDER      # a repository of `source_repos.generate`, made where it is missing
    python tests/benchmarks/projects.py --real FOLDER      # your own: times only

Every time is that of whole `quaid` processes in a new vault, on a copy of the repository. No language model is asked. What
is right is known because the repository was made: see `DocTruth` in tests/source_repos.py.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, save

from quaid import Memory
from quaid.place import state_folder

sys.path.insert(0, str(Path(__file__).parents[1]))
from source_repos import DocTruth, Generated, SourceRepo, generate

TARGETS = {
    "discover, s": "<= 5",
    "docs check, first, s": "<= 5",
    "docs check, nothing changed, s": "<= 0.5",
    "docs check, after a commit, s": "<= 5",
    "docs search, first, s": "<= 5",
    "docs search, second, s": "<= 5",
    "docs search, median, s": "<= 5",
}
NAME = "big"
RUNS = 5
LIMIT = 20
QUESTIONS = ("How is an error reported?", "What happens at start-up?", "Which settings are there?", "How do I run it?")
"""What a repository is asked of which nothing is known."""

Checked = Mapping[str, Mapping[str, Any]]
"""path of a doc -> what `quaid docs check --json` says of it"""
Figures = dict[str, float]
Counts = dict[str, dict[str, int]]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--docs", type=int, default=150)
    parser.add_argument("--repo", type=Path, help="a generated repository, made where it is missing, and kept")
    parser.add_argument("--real", type=Path, help="a repository of your own instead: times only")
    parser.add_argument("--keep", type=Path, help="an empty folder in which vault and copy are left")
    options = parser.parse_args()
    print(describe_machine())
    folder = options.keep or Path(tempfile.mkdtemp(prefix="quaid-projects-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        result = run(options, folder)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for name, value in result["figures"].items():
        print(f"{name:<44}{value:>10.3f}   {TARGETS.get(name, '')}".rstrip())
    for title, counts in result["details"].items():
        print(f"{title}: {', '.join(f'{name} {count}' for name, count in counts.items()) or 'none'}")
    save(options.json, result)


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    if options.real:
        return measure(Bench(folder, options.real, ()), None)
    source = options.repo or folder / "made"
    is_there = (source / ".git").exists()
    started = time.perf_counter()
    truth = Generated.load(source) if is_there else generate(source, options.files, options.commits, options.docs)
    took = time.perf_counter() - started
    result = measure(Bench(folder, source, ("--pattern", "**/*.md")), truth)
    if not is_there:
        result["figures"] = {"making the repository, s": took} | result["figures"]
    result["details"] = {"commits": dict(truth.kinds.most_common()), "docs": dict(truth.verdicts)} | result["details"]
    return result


class Bench:
    """A vault, a copy of a repository, and `quaid` in a process of its own for each call."""

    def __init__(self, folder: Path, source: Path, options: Sequence[str]) -> None:
        self.vault = folder / "vault"
        self.repo = SourceRepo(source).clone(folder / "copy")
        self.options = options
        Memory.create(self.vault)[0].close()
        self._environment = os.environ | {"QUAID_HOME": str(self.vault), "QUAID_MODELS_PROVIDER": "none"}

    def time(self, *arguments: str) -> float:
        """Seconds."""
        started = time.perf_counter()
        self._run(*arguments)
        return time.perf_counter() - started

    def ask(self, *arguments: str) -> list[dict[str, Any]]:
        """The rows of the answer: docs or hits."""
        told = json.loads(self._run(*arguments, "--json"))
        return told["hits"] if "hits" in told else told["docs"]

    def _run(self, *arguments: str) -> str:
        beside = Path(sys.executable).with_name("quaid")
        command = [str(beside) if beside.exists() else "quaid", *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"quaid {' '.join(arguments)} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout


def measure(bench: Bench, truth: Generated | None) -> dict[str, Any]:
    check = ("docs", "check", "--project", NAME)
    figures: Figures = {
        "files": float(len(bench.repo.git("ls-files").splitlines())),
        "commits": float(bench.repo.git("rev-list", "--count", "HEAD")),
        "project create, s": bench.time("project", "create", NAME, "--root", str(bench.repo.path), *bench.options),
        "discover, s": bench.time("project", "discover"),
        "docs check, first, s": bench.time(*check),
        "docs check, nothing changed, s": statistics.median(bench.time(*check) for _ in range(RUNS)),
    }
    checked = {path_of(row): row for row in bench.ask(*check)}
    figures["docs"] = len(checked)
    questions = truth.questions if truth else [(question, "") for question in QUESTIONS]
    search = ("docs", "search", "--project", NAME, "--limit", str(LIMIT))
    figures["docs search, first, s"] = bench.time(*search, questions[0][0])
    figures["docs search, second, s"] = bench.time(*search, questions[1][0])
    figures["docs sync until all is embedded, s"] = bench.time("docs", "sync")
    figures["docs search, median, s"] = statistics.median(bench.time(*search, asked) for asked, _ in questions[:RUNS])
    index = state_folder(bench.vault) / "docs.db"
    if index.exists():
        index.unlink()
        figures["docs search, index made from cached vectors, s"] = bench.time(*search, questions[0][0])
    details: Counts = {"found": Counter(row["status"] for row in checked.values())}
    if truth:
        for name, asked in (("search", truth.questions), ("search in other words", truth.hard_questions)):
            found = [[path_of(row) for row in bench.ask(*search, question)] for question, _ in asked]
            figures |= score_search(name, found, [path for _, path in asked])
        scored, counts = score_staleness(checked, truth)
        figures |= scored | score_sources(checked, truth)
        details |= counts
    changed = change_a_source(bench.repo, checked)
    figures["docs check, after a commit, s"] = bench.time(*check)
    figures["docs search, after a commit, s"] = bench.time(*search, questions[0][0])
    if changed:
        again = {path_of(row): row["status"] for row in bench.ask(*check)}
        details["after a commit"] = {
            "docs of the source": len(changed),
            "of them now stale": sum(again[path] == "stale" for path in changed),
            "others that changed": sum(again[p] != row["status"] for p, row in checked.items() if p not in changed),
        }
    return {"figures": figures, "details": details}


def path_of(row: Mapping[str, Any]) -> str:
    """The doc of a row, as a path in the repository."""
    return str(row.get("doc") or row["id"]).removeprefix(f"{NAME}:")


def change_a_source(repo: SourceRepo, checked: Checked) -> set[str]:
    """Commit a line of code more in one source of a fresh doc; the docs that have it among their sources."""
    sources = (source for row in checked.values() if row["status"] == "fresh" for source in row["sources"])
    chosen = next((source for source in sources if (repo.path / source).is_file()), None)
    if chosen is None:
        return set()
    repo.save(chosen, f"{repo.read(chosen)}x = 1\n")
    return {path for path, row in checked.items() if chosen in row["sources"]}


# -- how right it is -------------------------------------------------------------------------------------------------


def score_search(name: str, found: Sequence[Sequence[str]], right: Sequence[str]) -> Figures:
    """Share of the questions whose one doc is the first that is found, and among the first five docs."""
    docs = [list(dict.fromkeys(paths)) for paths in found]
    return {
        f"{name} R@{most}": sum(path in paths[:most] for paths, path in zip(docs, right, strict=True)) / len(right)
        for most in (1, 5)
    }


def score_staleness(checked: Checked, truth: Generated) -> tuple[Figures, Counts]:
    """Precision and recall of "stale", and the docs that were called wrong: by form, by how they name their sources and by
    what happened to these. What is arguable is counted apart.
    """
    called: dict[tuple[str, bool], list[DocTruth]] = {}
    for path, doc in truth.docs.items():
        if path in checked:
            called.setdefault((doc.verdict, checked[path]["status"] == "stale"), []).append(doc)
    right, missed, wrong = (called.get(key, []) for key in (("stale", True), ("stale", False), ("current", True)))
    figures = {
        "stale, precision": len(right) / max(1, len(right) + len(wrong)),
        "stale, recall": len(right) / max(1, len(right) + len(missed)),
        "docs that are none": float(sum(path.startswith(truth.excluded) for path in checked)),
        "docs that are missing": float(len(truth.docs.keys() - checked.keys())),
    }
    arguable = {f"called {word}": len(called.get(("arguable", is_stale), ())) for word, is_stale in _WORDS.items()}
    return figures, {"stale, missed": _traits(missed), "stale, wrongly": _traits(wrong), "arguable": arguable}


def score_sources(checked: Checked, truth: Generated) -> Figures:
    """Precision and recall of the sources that are there, and how many docs were seen to be true at the right commit."""
    said: set[tuple[str, str]] = set()
    meant: set[tuple[str, str]] = set()
    right_commit = []
    for path, doc in truth.docs.items():
        if path in checked and doc.sources:
            # One that was followed to its new name is not named in the doc, so the truth does not know it.
            renamed = {change["path"] for change in checked[path]["changes"] if change["kind"] == "renamed"}
            said |= {(path, source) for source in checked[path]["sources"] if source not in renamed}
            meant |= {(path, file) for source in doc.sources for file in _files(truth.path, source)}
            right_commit.append((checked[path]["true_at"] or {}).get("id") == doc.changed_in)
    return {
        "sources, precision": len(said & meant) / max(1, len(said)),
        "sources, recall": len(said & meant) / max(1, len(meant)),
        "true at the right commit": sum(right_commit) / max(1, len(right_commit)),
    }


_WORDS = {"stale": True, "fresh": False}


def _traits(docs: Sequence[DocTruth]) -> dict[str, int]:
    traits = ((doc.form, doc.manner, *{what for _, _, what in doc.causes}) for doc in docs)
    return dict(Counter(trait for each in traits for trait in each).most_common())


def _files(repo: Path, source: str) -> list[str]:
    if source.endswith("/"):
        return [path.relative_to(repo).as_posix() for path in (repo / source).rglob("*") if path.is_file()]
    return [source] if (repo / source).is_file() else []


if __name__ == "__main__":
    main()
