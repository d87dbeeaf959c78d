"""What the benchmarks share: arguments, clocks, commits, made-up facts, and figures with the machine they come from."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from quaid.capture.facts import NewFact, plan_fact

QUAID = (sys.executable, "-m", "quaid")
IDENTITY = {f"GIT_{role}_{key}": "a@b" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
sys.path.insert(0, str(Path(__file__).parents[1]))  # the fixtures of the tests
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a start that compiles every module takes twice as long


def make_parser(doc: str, *, keep: bool = False) -> argparse.ArgumentParser:
    """Return a parser whose description is the first line of `doc`."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    if keep:
        parser.add_argument("--keep", help="the folder in which the vaults are kept and found again")
    return parser


def save(path: str | None, figures: Mapping[str, Any]) -> None:
    """Write the figures as JSON, with the machine."""
    if path:
        shape = {"machine": describe_machine(), **figures}
        Path(path).write_text(json.dumps(shape, indent=2), encoding="utf-8")


def print_figures(figures: Mapping[str, float], digits: int = 2) -> None:
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {value:12,.{digits}f}")


def print_row(name: str, values: Iterable[float], digits: int = 3) -> None:
    print(f"{name:24}" + "".join(f"{value:9.{digits}f}" for value in values))


@contextmanager
def kept_folder(keep: str | None) -> Iterator[Path]:
    """Yield the folder `keep`, or one that is removed afterwards."""
    if keep:
        yield Path(keep)
    else:
        with tempfile.TemporaryDirectory(prefix="quaid-bench-") as made:
            yield Path(made)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of `call` and the seconds it took."""
    started = time.perf_counter()
    result = call()
    return result, time.perf_counter() - started


def median_s(times: int, call: Callable[[], object]) -> float:
    return statistics.median(timed(call)[1] for _ in range(times))


def p95(taken: Sequence[float]) -> float:
    return statistics.quantiles(taken, n=20)[18] if len(taken) > 1 else taken[0]


def processor_s() -> float:
    """Return the processor time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def quaid(*arguments: str, **environ: str) -> str:
    """Run the command line as a process and return its stdout."""
    done = subprocess.run([*QUAID, *arguments], check=True, capture_output=True, text=True, env=os.environ | environ)
    return done.stdout


def write_fact(root: Path, text: str, now: datetime, **more: Any) -> Path:
    """Write a fact as a note, without a commit."""
    _, edit = plan_fact(NewFact(text, **more), now)
    path = root / edit.rel_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(edit.after or b"")
    return path


def commit_all(root: Path, message: str, when: datetime | None = None) -> None:
    dates = {f"GIT_{role}_DATE": when.isoformat() for role in ("AUTHOR", "COMMITTER")} if when else {}
    for command in (["add", "-A"], ["-c", "gc.auto=0", "commit", "-qm", message]):
        subprocess.run(["git", *command], cwd=root, check=True, env=os.environ | IDENTITY | dates)


def use_model(url: str = "") -> None:
    """Have this process call the stand-in of a model at `url`."""
    named = {"provider": "anthropic", "url": url, "deep": "wise", "fast": "quick"}
    os.environ.update({f"QUAID_MODELS_{name.upper()}": value for name, value in named.items() if value})
    os.environ |= {"ANTHROPIC_API_KEY": "sk-test", "QUAID_NOTIFICATIONS_CHANNELS": ""}


def describe_machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{_processor()}, {cores} cores, {memory_gb:.0f} GB, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
