"""Remove old files from the state folder. It has nothing of the record, so nothing is decided."""

from collections.abc import Iterable
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
from quaid.sync.watcher import HEARTBEAT_FILE, read_heartbeat
from quaid.vault import layout

LOG_DAYS = 30
DAMAGED_DAYS = 30
LEFTOVER_HOURS = 24
MAX_QUARANTINED = 200
MIN_SPARE = 20_000
"""Vectors of removed texts that always stay (30 MB): an undo brings texts back."""


def clean(state: Path, now: datetime) -> list[str]:
    """Clean `state`, a vault's state folder. Return sentences about what was removed, and what could not be."""
    from quaid.local.rows import redact_rows

    logs = _older(state.glob(f"{LOG_DIR}/*"), now - timedelta(days=LOG_DAYS))
    past = sorted((state / AS_OF_DIR).glob("*.db"), key=_modified, reverse=True)[as_of.MAX_PAST_INDEXES :]
    old = [path for index in past for path in index.parent.glob(f"{index.name}*")]
    quarantined = sorted((state / quarantine.FOLDER).glob("*.json"))[:-MAX_QUARANTINED]
    # Temporary files, unfinished indexes, and the marks of processes that have ended.
    found = (path for path in state.rglob("*") if WORKTREES not in path.relative_to(state).parts)
    unfinished = (path for path in found if layout.is_temporary_name(path.name) or path.suffix == ".unfinished")
    leftovers = _older(unfinished, now - timedelta(hours=LEFTOVER_HOURS))
    beat = read_heartbeat(state)
    if beat is not None and not process_exists(beat.pid):
        leftovers.append(state / HEARTBEAT_FILE)
    # Not local.db: its contents exist nowhere else.
    damaged = [path for name in (INDEX_FILE, DOCS_FILE, CACHE_FILE) for path in state.glob(f"{name}.damaged*")]
    removed = [
        *_remove(f"logs older than {LOG_DAYS} days", logs),
        *_remove("indexes of the past beyond those asked last", old),
        *_remove("old answers from quarantine", quarantined),
        *_remove("files that killed processes left behind", leftovers),
        *_remove("damaged databases that were made again", _older(damaged, now - timedelta(days=DAMAGED_DAYS))),
    ]
    try:
        if gone := prune_cache(state):
            removed.append(f"Removed vectors of texts that are gone: {gone:,}.")
    except (database.DatabaseError, QuaidError) as error:
        removed.append(f"The cache of embeddings was left as it is: {error}")
    try:
        if gone := redact_rows(state / LOCAL_FILE):  # secrets that earlier rules did not recognise
            removed.append(f"Removed secrets from {LOCAL_FILE}: {gone:,}.")
    except QuaidError as error:
        removed.append(f"Secrets were not looked for in {LOCAL_FILE}: {error}")
    return removed


def prune_cache(state: Path, *, keeps_spare: bool = True) -> int:
    """Remove vectors of texts that no note has any more, except the latest if `keeps_spare`; return their number."""
    from quaid.embed.cache import EmbeddingCache

    if not (state / CACHE_FILE).exists():
        return 0
    keys: set[str] = set()
    fingerprints: list[str] = []
    for index in [state / INDEX_FILE, *filter(Path.exists, [state / DOCS_FILE])]:
        with closing(database.connect_reader(index)) as reader:
            keys |= vectors.list_text_keys(reader)
            fingerprints += [row.fingerprint for row in vectors.list_embedders(reader)]
    with closing(EmbeddingCache(state / CACHE_FILE)) as cache:
        return cache.prune(fingerprints, keys, max(MIN_SPARE, len(keys)) if keeps_spare else 0)


def _older(paths: Iterable[Path], limit: datetime) -> list[Path]:
    """Return the files of `paths` that were last changed before `limit`."""
    then = limit.timestamp()
    return [path for path in paths if path.is_file() and not path.is_symlink() and _modified(path) < then]


def _modified(path: Path) -> float:
    """Return when a file was last changed; one that is gone counts as new."""
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
