"""What everything that writes is given; a module of its own, as whoever passes it on need not load the writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.settings import Settings

if TYPE_CHECKING:
    from quaid.history.vault_history import History
    from quaid.index.matrix import VectorMatrix
    from quaid.index.port import IndexConnection
    from quaid.sync.embedding import Embedding


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The vault, the git history, the index and its vectors in memory that a writer works with.

    `fresh_index` is all of the index, brought up to date: a plan must not repeat what is there. `visible_index` is the
    index as it is and as its owner may see it, `fresh_visible_index` the same brought up to date first. `trailers` are
    those of each commit, beside its own.
    """

    root: Path
    settings: Settings
    embedding: Embedding
    matrix: VectorMatrix
    history: Callable[[], History]
    fresh_index: Callable[[], IndexConnection]
    fresh_visible_index: Callable[[], IndexConnection]
    visible_index: Callable[[], IndexConnection]
    owners: Callable[[], frozenset[str]]
    say: Callable[[str], None]
    trailers: tuple[tuple[str, str], ...] = ()
