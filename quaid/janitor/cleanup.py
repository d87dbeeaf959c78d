"""Removal of what piles up in the state folder. Nothing of the record is there, so nothing is decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from quaid.errors import QuaidError
from quaid.index import vectors
from quaid.index.sqlite import database
from quaid.janitor.worktree import WORKTREES
from quaid.local import quarantine
from quaid.place import AS_OF_DIR, CACHE_FILE, DOCS_FILE, INDEX_FILE, LOCAL_FILE, LOG_DIR, process_exists
from quaid.sync import as_of
from quaid.sync.follow import HEARTBEAT_FILE, read_heartbeat
from quaid.vault import layout

LOG_DAYS = 30
DAMAGED_DAYS = 30
LEFTOVER_HOURS = 24
MAX_QUARANTINED = 200
MIN_SPARE = 20_000
"""The vectors of removed texts that are kept in any case (30 MB): undoing things brings texts back."""


def clean(state: Path, now: datetime) -> list[str]:
    """Tidy `state`, a vault's state folder. What was done, and what could not be, in sentences; none if it was tidy.

    Raises nothing: what cannot be removed stays and is named.
    """
    logs = _older(state.glob(f"{LOG_DIR}/*"), now - timedelta(days=LOG_DAYS))
    past = sorted((state / AS_OF_DIR).glob("*.db"), key=_modified, reverse=True)[as_of.MAX_KEPT :]
    old = [path for index in past for path in index.parent.glob(f"{index.name}*")]
    quarantined = sorted((state / quarantine.FOLDER).glob("*.json"))[:-MAX_QUARANTINED]
    # Not local.db: what it held is nowhere else.
    damaged = [path for name in (INDEX_FILE, DOCS_FILE, CACHE_FILE) for path in state.glob(f"{name}.damaged*")]
    return [
        *_remove(f"logs older than {LOG_DAYS} days", logs),
        *_remove("indexes of the past beyond those asked last", old),
        *_remove("old answers from quarantine", quarantined),
        *_remove("files that killed processes left behind", _list_leftovers(state, now)),
        *_remove("damaged databases that were made again", _older(damaged, now - timedelta(days=DAMAGED_DAYS))),
        *_prune_cache(state),
        *_scrub(state),
    ]


def update_check() -> str:
    """A sentence that names this version. Nothing leaves the machine by itself, so no newer one is looked for."""
    from quaid.place import VERSION

    return f"This is Quaid {VERSION}. Whether there is a newer one was not asked: that would need the network."


def _list_leftovers(state: Path, now: datetime) -> Iterator[Path]:
    """Temporary files, unfinished indexes, and the marks of processes that have ended."""
    found = [path for path in state.rglob("*") if WORKTREES not in path.relative_to(state).parts]
    unfinished = [path for path in found if layout.is_temporary_name(path.name) or path.suffix == ".unfinished"]
    yield from _older(unfinished, now - timedelta(hours=LEFTOVER_HOURS))
    beat = read_heartbeat(state)
    if beat is not None and not process_exists(beat.pid):
        yield state / HEARTBEAT_FILE


def prune_cache(state: Path, *, keeps_spare: bool = True) -> int:
    """Remove vectors of texts that no note has any more, except the newest if `keeps_spare`; return their number."""
    from quaid.embed.cache import EmbeddingCache

    if not (state / CACHE_FILE).exists():
        return 0
    keys: set[str] = set()
    fingerprints: list[str] = []
    for index in [state / INDEX_FILE, *filter(Path.exists, [state / DOCS_FILE])]:
        with closing(database.connect_reader(index)) as reader:
            keys |= vectors.list_text_keys(reader)
            fingerprints += [row.fingerprint for row in vectors.list_embedders(reader)]
    with EmbeddingCache(state / CACHE_FILE) as cache:
        return cache.prune(fingerprints, keys, max(MIN_SPARE, len(keys)) if keeps_spare else 0)


def _prune_cache(state: Path) -> list[str]:
    try:
        gone = prune_cache(state)
    except (database.DatabaseError, QuaidError) as error:
        return [f"The cache of embeddings was left as it is: {error}"]
    return [f"Removed vectors of texts that are gone: {gone:,}."] if gone else []


def _scrub(state: Path) -> list[str]:
    """Remove secrets that an earlier gate did not know."""
    from quaid.local.scrubbing import scrub

    try:
        gone = scrub(state / LOCAL_FILE)
    except QuaidError as error:
        return [f"Secrets were not looked for in {LOCAL_FILE}: {error}"]
    return [f"Removed secrets from {LOCAL_FILE}: {gone:,}."] if gone else []


def _older(paths: Iterable[Path], limit: datetime) -> list[Path]:
    """The files of `paths` that were changed last before `limit`."""
    then = limit.timestamp()
    return [path for path in paths if path.is_file() and not path.is_symlink() and _modified(path) < then]


def _modified(path: Path) -> float:
    """Return when a file was changed last; one that is gone by now counts as new."""
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
