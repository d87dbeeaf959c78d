"""Removal of what piles up in the state folder. Nothing of the record is there, so nothing is decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from quaid.errors import QuaidError
from quaid.index import database, documents, vectors
from quaid.local import quarantine
from quaid.place import AS_OF_DIR, CACHE_FILE, DOCS_FILE, INDEX_FILE, LOCAL_FILE, LOG_DIR, process_exists
from quaid.sync import as_of
from quaid.sync.follow import HEARTBEAT_FILE, read_heartbeat
from quaid.vault import layout

LOG_DAYS = 30
DAMAGED_DAYS = 30
LEFTOVER_HOURS = 24
MOST_QUARANTINED = 200
LEAST_SPARE = 20_000
"""So many vectors of texts that no note has any more are kept in any case (30 MB): undoing things brings texts back."""
_WORKTREES = "worktrees"


def clean(state: Path, now: datetime) -> list[str]:
    """Tidy `state`, a vault's state folder. What was done, and what could not be, in sentences; none if it was tidy.

    Raises nothing: what cannot be removed stays and is said.
    """
    return [
        *_remove(f"logs older than {LOG_DAYS} days", _older(state.glob(f"{LOG_DIR}/*"), now, days=LOG_DAYS)),
        *_remove("indexes of the past beyond those asked last", _list_past(state)),
        *_remove("old answers from quarantine", _list_quarantined(state)),
        *_remove("files that killed processes left behind", _list_leftovers(state, now)),
        *_remove("damaged databases that were made again", _older(_list_damaged(state), now, days=DAMAGED_DAYS)),
        *_prune_cache(state),
        *_scrub(state),
    ]


def update_check() -> str:
    """Whether there is a newer Quaid: not asked, because nothing leaves the machine by itself."""
    from quaid.model import VERSION

    return f"This is Quaid {VERSION}. Whether there is a newer one was not asked: that would need the network."


def _list_damaged(state: Path) -> list[Path]:
    """Not local.db: what it held is nowhere else."""
    names = INDEX_FILE, DOCS_FILE, CACHE_FILE
    return [path for name in names for path in state.glob(f"{name}.damaged*")]


def _list_past(state: Path) -> list[Path]:
    folder = state / AS_OF_DIR
    newest_first = sorted(folder.glob("*.db"), key=_modified, reverse=True)
    gone = newest_first[as_of.MAX_KEPT :]
    return [path for database_file in gone for path in folder.glob(f"{database_file.name}*")]


def _list_quarantined(state: Path) -> list[Path]:
    return sorted((state / quarantine.FOLDER).glob("*.json"))[:-MOST_QUARANTINED]


def _list_leftovers(state: Path, now: datetime) -> Iterator[Path]:
    """Temporary files, unfinished indexes, and the marks of processes that are no more."""
    found = [path for path in state.rglob("*") if _WORKTREES not in path.relative_to(state).parts]
    unfinished = [path for path in found if layout.is_temporary_name(path.name) or path.suffix == ".unfinished"]
    yield from _older(unfinished, now, hours=LEFTOVER_HOURS)
    beat = read_heartbeat(state)
    if beat is not None and not process_exists(beat.pid):
        yield state / HEARTBEAT_FILE


def _prune_cache(state: Path) -> list[str]:
    """Vectors of texts that no note has any more, the oldest first, beyond as many as are in use."""
    from quaid.embed.cache import EmbeddingCache

    if not (state / CACHE_FILE).exists():
        return []
    try:
        keys: set[str] = set()
        fingerprints: list[str] = []
        for index in _indexes(state):
            reader = database.connect_reader(index)
            try:
                keys |= documents.list_text_keys(reader)
                fingerprints += [row.fingerprint for row in vectors.list_embedders(reader)]
            finally:
                reader.close()
        with EmbeddingCache(state / CACHE_FILE) as cache:
            gone = cache.prune(fingerprints, keys, max(LEAST_SPARE, len(keys)))
    except (database.DatabaseError, QuaidError) as error:
        return [f"The cache of embeddings was left as it is: {error}"]
    return [f"Removed vectors of texts that are gone: {gone:,}."] if gone else []


def _scrub(state: Path) -> list[str]:
    """Secrets that an earlier gate did not know."""
    from quaid.local.scrubbing import scrub

    try:
        gone = scrub(state / LOCAL_FILE)
    except QuaidError as error:
        return [f"Secrets were not looked for in {LOCAL_FILE}: {error}"]
    return [f"Removed secrets from {LOCAL_FILE}: {gone:,}."] if gone else []


def _indexes(state: Path) -> Iterator[Path]:
    """The index of the vault, and that of the docs where there is one."""
    yield state / INDEX_FILE
    if (state / DOCS_FILE).exists():
        yield state / DOCS_FILE


def _older(paths: Iterable[Path], now: datetime, *, days: int = 0, hours: int = 0) -> list[Path]:
    limit = (now - timedelta(days=days, hours=hours)).timestamp()
    return [path for path in paths if path.is_file() and not path.is_symlink() and _modified(path) < limit]


def _modified(path: Path) -> float:
    """When a file was changed last; one that is gone by now counts as new."""
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")


def _remove(what: str, paths: Iterable[Path]) -> list[str]:
    removed = size = 0
    problems: list[str] = []
    for path in sorted(set(paths)):
        try:
            size += path.stat().st_size
            path.unlink()
            removed += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{path.name} could not be removed ({error.strerror}).")
    done = [f"Removed {what}: {removed:,} ({size / 1e6:.1f} MB)."] if removed else []
    return [*done, *problems[:3]]
