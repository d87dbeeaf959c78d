"""How well stale pages are found: against what the maintainers of real repositories changed in them.

    python tests/benchmarks/documents.py REPOSITORY… [--commits 240] [--step 30] [--sources FILE] [--json result.json]

A step is a page and the next 30 commits of the mainline. All pages are held true at the first of them, and the sources
are taken as they are at the last: what `quaid docs check` then finds stale is compared with what the maintainers
changed of the pages in these commits. Without `--sources` nothing is registered and all is guessed. FILE names the
sources that an owner would register, a line for each page: `docs/schemas.md <- llm/cli.py::schemas, llm/utils.py`; other
pages are left out of the second table. A repository may be bare; it is cloned, and nothing is written to it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from quaid.docs.catalogue import list_docs
from quaid.docs.freshness import Freshness
from quaid.docs.registry import Project
from quaid.docs.source_roots import allow
from quaid.docs.source_trees import SourceTrees
from quaid.docs.sources import is_record
from quaid.docs.staleness import StalenessCheck

PATTERNS = tuple(f"{place}*.{end}" for place in ("/", "/docs/**/", "/doc/**/") for end in ("md", "rst", "mdx", "adoc"))
GOALS = {"guessed": "P >= .55, R >= .55, flagged <= .25", "registered": "P >= .65, R >= .75"}


class Step(NamedTuple):
    """One page in one step: whether it was called stale, whether its maintainers changed it, how certain it was."""

    page: str
    is_flagged: bool
    is_changed: bool
    certainty: float


class Score(NamedTuple):
    precision: float
    recall: float
    flagged: float
    steps: int
    changed: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--commits", type=int, default=240)
    parser.add_argument("--step", type=int, default=30)
    parser.add_argument("--sources", type=Path, help="the sources that an owner would register")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    registered = read_sources(options.sources.read_text()) if options.sources else {}
    print(f"{'':34}{'precision':>16}{'recall':>16}{'flagged':>9}{'steps':>7}{'changed':>9}{'s/check':>9}")
    results: dict[str, dict[str, object]] = {}
    pooled: dict[str, list[Step]] = {}
    for repository in options.repositories:
        name = repository.name if repository.name != "repo" else repository.parent.name.rpartition("+")[2]
        for kind, sources in (("guessed", None), ("registered", registered))[: 1 + bool(registered)]:
            started = time.process_time()
            steps = [list(each) for each in walk(repository, options.commits, options.step, sources)]
            took = (time.process_time() - started) / max(1, len(steps))
            found = [step for each in steps for step in each]
            if found:
                pooled.setdefault(kind, []).extend(found)
                results[f"{name}, {kind}"] = show(f"{name}, {kind}", found, took)
    for kind, found in pooled.items():
        results[f"all, {kind}"] = show(f"all, {kind}", found, 0) | {"goal": GOALS[kind]}
        print(f"{'':34}{GOALS[kind]}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


def walk(
    repository: Path, commits: int, length: int, registered: Mapping[str, tuple[str, ...]] | None
) -> Iterator[Iterator[Step]]:
    """Yield the pages of each step."""
    with tempfile.TemporaryDirectory(prefix="quaid-documents-") as folder:
        clone, vault = Path(folder, repository.stem), Path(folder, "vault")
        git(Path(folder), "clone", "-q", "--no-checkout", "--shared", str(repository.resolve()), str(clone))
        vault.mkdir()
        os.environ |= {"QUAID_CONFIG_DIR": f"{folder}/config", "QUAID_STATE_DIR": f"{folder}/state"}
        allow([clone.resolve()])
        mainline = git(clone, "rev-list", "--first-parent", f"-n{commits + 1}", "HEAD").split()[::-1]
        for first, last in zip(mainline[::length], mainline[length::length], strict=False):
            yield check(clone, vault, first, last, registered)


def check(
    clone: Path, vault: Path, first: str, last: str, registered: Mapping[str, tuple[str, ...]] | None
) -> Iterator[Step]:
    """Check the pages of `first` against the other files of `last`."""
    project = Project("measured", "measured", (str(clone),), PATTERNS)
    git(clone, "checkout", "-q", "-f", first)
    git(clone, "clean", "-q", "-fdx")
    pages = [doc for doc in list_docs(vault, [project]).docs if not is_record(doc.rel_path)]
    paths = [doc.rel_path for doc in pages]
    before, after = read_blobs(clone, first, paths), read_blobs(clone, last, paths)
    # A commit of everything that the step changed, but for the pages.
    git(clone, "read-tree", last)
    entries = "".join(f"100644 {before[path]}\t{path}\n" for path in paths)
    git(clone, "update-index", "--index-info", stdin=entries)
    made = git(clone, "commit-tree", git(clone, "write-tree").strip(), "-p", first, "-m", "step").strip()
    git(clone, "checkout", "-q", "-f", made)
    docs = [
        replace(doc, true_at=first, sources=(registered or {}).get(doc.rel_path, ()), is_registered=True)
        for doc in pages
        if registered is None or doc.rel_path in registered
    ]
    found: Sequence[Freshness] = StalenessCheck(vault, SourceTrees(vault, [project])).check(docs)
    for doc, freshness in zip(docs, found, strict=True):
        if doc.rel_path in after:  # a page that was removed is no page to update
            is_changed = before[doc.rel_path] != after[doc.rel_path]
            yield Step(doc.rel_path, freshness.is_stale, is_changed, freshness.certainty)


def read_blobs(clone: Path, commit: str, paths: Sequence[str]) -> dict[str, str]:
    listed = git(clone, "ls-tree", "-r", "-z", commit).split("\0")
    blobs = {line.partition("\t")[2]: line.split()[2] for line in listed if line}
    return {path: blobs[path] for path in paths if path in blobs}


def read_sources(text: str) -> dict[str, tuple[str, ...]]:
    rows = (line.partition("<-") for line in text.splitlines() if "<-" in line)
    return {page.strip(): tuple(item.strip() for item in named.split(",")) for page, _, named in rows}


def show(name: str, steps: Sequence[Step], took: float) -> dict[str, object]:
    score = rate(steps)
    flagged, right = sum(s.is_flagged for s in steps), sum(s.is_flagged and s.is_changed for s in steps)
    precision, recall = interval(right, flagged), interval(right, score.changed)
    print(f"{name:34}{score.precision:6.2f} {precision}{score.recall:6.2f} {recall}{score.flagged:9.2f}{score.steps:7}"
          f"{score.changed:9}{took:9.2f}")  # fmt: skip
    return score._asdict() | {"seconds": took}


def rate(steps: Sequence[Step]) -> Score:
    flagged, changed = sum(s.is_flagged for s in steps), sum(s.is_changed for s in steps)
    right = sum(s.is_flagged and s.is_changed for s in steps)
    return Score(right / max(1, flagged), right / max(1, changed), flagged / max(1, len(steps)), len(steps), changed)


def interval(right: int, of: int) -> str:
    """The interval that holds a share with 95 % (Wilson)."""
    if not of:
        return "   –     "
    z, p = 1.96, right / of
    middle, half = (p + z * z / (2 * of)), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    return f"{(middle - half) / (1 + z * z / of):.2f}–{(middle + half) / (1 + z * z / of):.2f}"


def git(folder: Path, *args: str, stdin: str = "") -> str:
    settings = ("-c", "user.name=Quaid", "-c", "user.email=quaid@localhost", "-c", "core.autocrlf=false")
    done = subprocess.run(
        ["git", "-C", str(folder), *settings, *args],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
