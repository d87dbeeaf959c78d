"""The half that answers: one process of a vault and a user listens, whoever holds the lock beside the socket."""

from __future__ import annotations

import json
import math
import os
import resource
import select
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quaid.config import settings_for_reading
from quaid.errors import QuaidError
from quaid.history import vault_guard
from quaid.local.locks import try_lock
from quaid.memory import Memory
from quaid.place import folder_identity, make_private_folder
from quaid.remotes.background import leave_exchange
from quaid.resident import call as calls
from quaid.resident.call import ABOUT, ANSWER_S, EXIT, OUT, Answer, Call
from quaid.resident.opened import OpenedMemory

IDLE_S = 15 * 60.0
"""A process that only answers ends when nobody has asked for so long."""
LOOK_S = 2.0
"""The interval at which it is looked whether there still is somebody to answer for."""
IN_LINE_S = 5.0
"""The interval at which a server that is not the one tries again."""
_MAX_CALL = 2 * calls.MAX_SENT
_WARM_UP = ("recall", "--help")
"""Brings the command line into memory and prints to nobody."""

Run = Callable[[Memory, Call], Answer]
"""Answers a call with the memory it is about."""
Use = Callable[[Callable[[Memory], Answer]], Answer]
"""Lets a job use the memory, in the thread that this belongs to."""


class DeclinedError(BaseException):
    """The call is for its caller alone. Not an `Exception`: no handler of ordinary failures may catch it."""


@dataclass(frozen=True, slots=True)
class Listening:
    """The process that listens for a vault: its number, what it is, since when (ISO 8601), its memory in MB."""

    pid: int
    what: str
    since: str
    memory_mb: int


class Listener:
    """Answers for the vault at `root` as long as no other process does. `start` is all that a server needs.

    `use` lends the memory that the server has open; without it the listener opens one of its own. With `idle_s` it
    ends when nobody has asked for so long.
    """

    def __init__(self, root: Path, run: Run, what: str, *, use: Use | None = None, idle_s: float = math.inf) -> None:
        self._root = root
        self._run = run
        self._what = what
        self._own = OpenedMemory(root)
        self._use: Use = use or self._own.use
        self._is_lent = use is not None
        self._idle_s = idle_s
        self._identity = calls.identity_of(root)
        self._code = _Code()
        self._closed = threading.Event()
        self._since = datetime.now(UTC).isoformat(timespec="seconds")

    def start(self) -> None:
        """Listen in a thread, from when no other process does."""
        threading.Thread(target=self._wait_in_line, name="quaid-listener", daemon=True).start()

    def close(self) -> None:
        """Stop soon; safe from a signal handler."""
        self._closed.set()

    def listen(self) -> None:
        """Answer calls until closed, idle, or not wanted; at once where another process does, or nothing can listen."""
        try:
            path = Path(calls.socket_path(self._identity))
            make_private_folder(path.parent)
            if not calls.is_private(str(path.parent)):
                return
        except OSError:  # a path too long, a disk without room
            return
        with try_lock(lock_path(path)) as is_ours:
            if not is_ours or not self._is_wanted():
                return
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                try:
                    if not self._is_lent:
                        self._warm(self._own.open())
                    path.unlink(missing_ok=True)  # of one that was killed
                    listening.bind(str(path))
                    listening.listen(64)
                    self._answer_all(listening, path)
                except (OSError, QuaidError):  # a disk without sockets; the vault is gone
                    return
                finally:
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
                    self._own.close()

    def _wait_in_line(self) -> None:
        while self._code.is_current() and not self._closed.is_set():
            self.listen()
            self._closed.wait(IN_LINE_S)

    def _answer_all(self, listening: socket.socket, path: Path) -> None:
        place, vault = path.lstat().st_ino, folder_identity(self._root)
        asked = time.monotonic()
        listening.settimeout(min(LOOK_S, self._idle_s))
        while not self._closed.is_set() and time.monotonic() - asked < self._idle_s:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                if path.lstat().st_ino != place or folder_identity(self._root) != vault or not self._is_wanted():
                    return
                leave_exchange(self._root, settings_for_reading(self._root)[0])
                continue
            with connection:
                if not self._code.is_current() or folder_identity(self._root) != vault:
                    return
                with suppress(OSError, ValueError):
                    asked = self._answer(connection, asked)

    def _answer(self, connection: socket.socket, before: float) -> float:
        """Answer one call, or leave it to its caller; return when somebody last asked for an answer."""
        connection.settimeout(ANSWER_S)
        if not calls.is_own_peer(connection):
            return before
        identity, call = Call.unpack(str(self._root), _receive(connection))
        if identity != self._identity:
            return before
        if call.arguments == [ABOUT]:
            connection.sendall(calls.pack_answer([(OUT, self._describe()), (EXIT, b"0")]))
            return before
        if _is_gone(connection):
            return before
        try:
            answer = self._use(lambda memory: self._run_wanted(memory, call))
        except (DeclinedError, Exception):  # noqa: BLE001 - the caller finds out by itself, and reports it
            return time.monotonic()
        connection.sendall(calls.pack_answer(answer))
        return time.monotonic()

    def _run_wanted(self, memory: Memory, call: Call) -> Answer:
        if memory.settings.resident == "off":
            raise DeclinedError
        return self._run(memory, call)

    def _warm(self, memory: Memory) -> None:
        """Load what answers need: a caller that came now would wait longer than it takes alone."""
        memory.warm()
        for _ in range(2):  # from the second question on, changes are listened for
            memory.recall("memory", 1, depth="fast", keep=False)
        self._run(memory, Call(str(self._root), _WARM_UP, cwd="/"))

    def _is_wanted(self) -> bool:
        try:
            vault_guard.check(self._root)
        except (QuaidError, OSError):
            return False
        return settings_for_reading(self._root)[0].resident != "off" and self._code.is_current()

    def _describe(self) -> bytes:
        told = Listening(os.getpid(), self._what, self._since, _memory_mb())
        return json.dumps(asdict(told)).encode()


def lock_path(path: Path) -> Path:
    """Return the lock file of the process that listens at `path`."""
    return path.with_suffix(".lock")


def find_listening(root: Path) -> Listening | None:
    """Return the process that answers for the vault at `root`; None where none does, or it is busy."""
    answer = Call(str(root), [ABOUT], cwd="/").ask()
    try:
        told: dict[str, Any] = json.loads(answer[0][1]) if answer else {}
        return Listening(**told) if told else None
    except (ValueError, TypeError):
        return None


def why_nobody_can_listen(root: Path) -> str | None:
    """Return what is wrong with the place of the socket for the vault at `root`; None where nothing is."""
    try:
        folder = Path(calls.socket_path(calls.identity_of(root))).parent
    except OSError as error:
        return f"{error} is too long for the name of a socket"
    if folder.exists() and not calls.is_private(str(folder)):
        return f"others can enter {folder}"
    return None


class _Code:
    """The code that this process runs, to be compared with what is on the disk by now."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, ...]] = {}
        self.is_current()

    def is_current(self) -> bool:
        """Return whether no module of Quaid that was imported has changed since, and nothing was installed beside."""
        package = Path(__file__).parents[1]
        files = [getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name[:5] == "quaid"]
        for path in (str(package.parent), *filter(None, files)):
            try:
                about = os.stat(path)  # noqa: PTH116 - two hundred at every call
            except OSError:
                return False
            stamp = about.st_ino, about.st_mtime_ns
            if self._seen.setdefault(path, stamp) != stamp:
                return False
        return True


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the caller waits no longer."""
    events = select.poll()
    events.register(connection, 0)
    return any(event & select.POLLHUP for _, event in events.poll(0))


def _receive(connection: socket.socket) -> bytes:
    received = bytearray()
    while len(received) < _MAX_CALL and (part := connection.recv(262_144)):
        received += part
    return bytes(received)


def _memory_mb() -> int:
    """The physical memory of this process; where the system does not tell, the most it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return pages * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
