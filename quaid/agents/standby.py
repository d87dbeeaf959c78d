"""The standby: a process that has the memory open, `quaid mcp`, answers for hooks, which have no time to open it.

Each listens on a socket of its own in a folder that only this user can enter, so several stand by without knowing of
each other, and one that was killed leaves a name that nobody answers to. A hook without an answer goes on alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

CONNECT_S = 0.05
ANSWER_S = 1.0
MAX_LINE = 200_000

Respond = Callable[[dict[str, Any]], Mapping[str, Any]]


class Standby:
    """Listens until it is closed. `respond` is called in a thread of its own, with one question at a time."""

    def __init__(self, root: Path, respond: Respond) -> None:
        self._respond = respond
        self._path = _folder(root) / f"{os.getpid()}.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        import threading

        self._thread = threading.Thread(target=self._listen, name="standby", daemon=True)

    def start(self) -> bool:
        """Begin to listen. Return whether that worked; where it did not, hooks do without."""
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(self._path.parent):
                return False
            self._path.unlink(missing_ok=True)
            self._socket.bind(str(self._path))
            self._socket.listen(8)
        except OSError:
            return False
        self._thread.start()
        return True

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with suppress(OSError):
            self._path.unlink()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            with connection, suppress(Exception):  # the hook gets no answer and goes on alone
                connection.settimeout(ANSWER_S)
                question = json.loads(_read_line(connection))
                connection.sendall(json.dumps(self._respond(question)).encode() + b"\n")


def ask(root: Path, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer of a process that stands by for the vault at `root`; None where none answers in time."""
    folder = _folder(root)
    try:
        if not _is_private(folder):
            return None
        names = sorted(folder.glob("*.sock"), key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return None
    for path in names:
        try:
            return _ask(path, question)
        except ConnectionRefusedError:  # its process was killed
            with suppress(OSError):
                path.unlink()
        except (OSError, ValueError):
            return None  # it is busy, and to ask another would take longer than to go on alone
    return None


def _ask(path: Path, question: Mapping[str, Any]) -> dict[str, Any] | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_S)
        connection.connect(str(path))
        connection.settimeout(ANSWER_S)
        connection.sendall(json.dumps(dict(question)).encode() + b"\n")
        answer = json.loads(_read_line(connection))
    return answer if isinstance(answer, dict) else None


def _read_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < MAX_LINE:
        received = connection.recv(65_536)
        if not received:
            break
        line += received
    return line


def _folder(root: Path) -> Path:
    """The folder of a vault's sockets. Its name is short, as a socket's may have a hundred bytes. It is outside of
    the vault, which may lie on a disk without sockets. Each owner has another: they must not answer for each other.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - nobody else can enter
    whose = os.fsencode(root.resolve()) + b"\0" + os.fsencode(os.environ.get("QUAID_OWNER", ""))
    return Path(base) / f"quaid-{os.getuid()}-{hashlib.sha256(whose).hexdigest()[:12]}"


def _is_private(folder: Path) -> bool:
    """Return whether nobody else can have put anything into the folder."""
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077
