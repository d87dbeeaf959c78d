"""LoCoMo's conversations, worked through in as many processes as the machine has cores, each conversation in one."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from locomo_data import has_facts, ingest

Result = TypeVar("Result")
Work = Callable[[dict[str, Any], str, Path], Result]
"""(conversation, facts, vault) -> what was found."""
Ingest = Callable[[dict[str, Any], Path, str], None]
"""(conversation, vault, facts): makes the vault."""


@contextmanager
def vault_folder(keep: str | None) -> Iterator[Path]:
    """`keep`, or a folder that is gone afterwards."""
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="quaid-locomo-") as made:
        yield Path(made)


def over_conversations(
    work: Work[Result],
    conversations: Sequence[dict[str, Any]],
    facts: Sequence[str],
    folder: Path,
    make: Ingest = ingest,
) -> dict[tuple[str, str], Result]:
    """What `work` finds in each conversation with each kind of facts, by (facts, conversation). `work` is a module's own
    function: it goes to other processes, as `make` does, which makes the vaults.
    """
    jobs = [(kind, talk) for talk in conversations for kind in facts if has_facts(talk, kind)]
    with ProcessPoolExecutor(
        os.cpu_count(), mp_context=multiprocessing.get_context("spawn"), initializer=_one_core
    ) as processes:
        waiting = {
            (kind, talk["sample_id"]): processes.submit(_work, work, make, talk, kind, str(folder))
            for kind, talk in jobs
        }
        for _ in track(as_completed(waiting.values()), len(waiting), "conversations"):
            pass
        return {job: result.result() for job, result in waiting.items()}


def track(work: Iterable[Result], count: int, what: str) -> Iterator[Result]:
    """`work` as it is done, with a bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        yield from progress.track(work, total=count, description=what)


def vault_of(conversation: dict[str, Any], facts: str, folder: Path, make: Ingest = ingest) -> Path:
    """The conversation's vault in `folder`, made if it is not there yet. The names are those of locomo.py."""
    root = folder / f"quaid-locomo-{facts}-{conversation['sample_id']}"
    if not root.exists():
        unfinished = folder / f"unfinished-{root.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        make(conversation, unfinished, facts)
        unfinished.rename(root)
    return root


def _one_core() -> None:
    """The processes share the cores: each model has one."""
    os.environ["QUAID_EMBEDDING_THREADS"] = "1"


def _work(work: Work[Result], make: Ingest, conversation: dict[str, Any], facts: str, folder: str) -> Result:
    return work(conversation, facts, vault_of(conversation, facts, Path(folder), make))
