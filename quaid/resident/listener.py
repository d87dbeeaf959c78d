"""The server side: one process per vault and user answers the calls of others."""

import json
import math
import os
import resource
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from quaid.config import settings_for_reading
from quaid.errors import QuaidError
from quaid.history import vault_guard
from quaid.local.locks import try_lock
from quaid.memory import Memory
from quaid.place import folder_identity, make_private_folder
from quaid.remotes.contact import schedule_exchange
from quaid.resident import call as calls
from quaid.resident.call import ABOUT, ANSWER_S, EXIT, OUT, Answer, Call, DeclinedError
from quaid.resident.finding import Listening, lock_path
from quaid.resident.worker import Worker

CHECK_S = 2.0
"""The interval at which a listener checks whether it is still wanted."""
RETRY_S = 5.0
"""The interval at which a server tries again to become the listener."""
_MAX_CALL = 2 * calls.MAX_SENT
_WARM_UP = ("recall", "--help")
"""Imports the command line and prints to nobody."""


class Listener:
    """Answers for the vault at `root` while no other process does. A subclass runs the calls.

    With `idle_s` it ends after so long without a call.
    """

    def __init__(self, root: Path, what: str, idle_s: float = math.inf) -> None:
        self._root = root
        self._what = what
        self._worker: Worker | None = None
        self._idle_s = idle_s
        self._identity = calls.identity_of(root)
        self._seen: dict[str, tuple[int, ...]] = {}
        _is_code_current(self._seen)
        self._closed = threading.Event()
        self._address = ""
        self._since = datetime.now(UTC).isoformat(timespec="seconds")

    def run(self, memory: Memory, call: Call) -> Answer:
        """Answer a call. DeclinedError: only its own process can."""
        raise NotImplementedError

    def start(self, worker: Worker | None = None) -> None:
        """Listen in a thread, as soon as no other process does; with the memory of `worker` if one is given."""
        self._worker = worker

        def wait_in_line() -> None:
            while _is_code_current(self._seen) and not self._closed.is_set():
                self.listen()
                self._closed.wait(RETRY_S)

        threading.Thread(target=wait_in_line, name="quaid-listener", daemon=True).start()

    def close(self) -> None:
        """Stop soon; safe from a signal handler."""
        self._closed.set()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waking, suppress(OSError):
            waking.setblocking(False)
            waking.connect(self._address)  # it waits for a call

    def listen(self) -> None:
        """Answer calls until closed, idle or not wanted. Return at once if another process does, or no socket works."""
        try:
            path = Path(calls.socket_path(self._identity))
            make_private_folder(path.parent)
            if not calls.is_private(str(path.parent)):
                return
        except OSError:  # a path too long, a disk without space
            return

        def warm(memory: Memory) -> None:
            # A caller that came now would wait longer than without a listener.
            memory.warm()
            for _ in range(2):  # the second query reads the vectors
                memory.recall("memory", 1, depth="fast", keep=False)
            self.run(memory, Call(str(self._root), _WARM_UP, cwd="/"))

        with try_lock(lock_path(path)) as is_ours:
            if not is_ours or not self._is_wanted():
                return
            worker = self._worker or Worker("resident", self._root)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                try:
                    if worker is not self._worker:
                        worker.submit(warm).result()
                    path.unlink(missing_ok=True)  # of a process that was killed
                    listening.bind(str(path))
                    listening.listen(64)
                    self._address = str(path)
                    self._answer_all(listening, path, worker)
                except (OSError, QuaidError):  # a disk without sockets; the vault is gone
                    return
                finally:
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
                    if worker is not self._worker:
                        worker.close().result()

    def _answer_all(self, listening: socket.socket, path: Path, worker: Worker) -> None:
        inode, vault = path.lstat().st_ino, folder_identity(self._root)
        last_call = time.monotonic()
        listening.settimeout(min(CHECK_S, self._idle_s))
        while not self._closed.is_set() and time.monotonic() - last_call < self._idle_s:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                if path.lstat().st_ino != inode or folder_identity(self._root) != vault or not self._is_wanted():
                    return
                schedule_exchange(self._root, settings_for_reading(self._root)[0])
                continue
            with connection:
                if not _is_code_current(self._seen) or folder_identity(self._root) != vault:
                    return
                with suppress(OSError, ValueError):
                    if self._answer(connection, worker):
                        last_call = time.monotonic()

    def _answer(self, connection: socket.socket, worker: Worker) -> bool:
        """Answer one connection, or leave the call to its caller; return whether it was a call."""
        connection.settimeout(ANSWER_S)
        if not calls.is_own_peer(connection):
            return False
        received = bytearray()
        while len(received) < _MAX_CALL and (part := connection.recv(262_144)):
            received += part
        identity, call = Call.unpack(str(self._root), bytes(received))
        if identity != self._identity:
            return False
        if call.arguments == [ABOUT]:
            try:
                pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
                size = pages * os.sysconf("SC_PAGE_SIZE")
            except (OSError, ValueError):  # the peak, where the system does not report the current size
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                size = peak if sys.platform == "darwin" else peak << 10
            about = Listening(os.getpid(), self._what, self._since, size >> 20)._asdict()
            connection.sendall(calls.pack_answer([(OUT, json.dumps(about).encode()), (EXIT, b"0")]))
            return False
        events = select.poll()
        events.register(connection, 0)
        if any(event & select.POLLHUP for _, event in events.poll(0)):  # the caller waits no longer
            return False

        def run(memory: Memory) -> Answer:
            if memory.settings.resident == "off":
                raise DeclinedError
            return self.run(memory, call)

        future = worker.submit(run)
        # Whatever goes wrong, the caller runs into it itself, and reports it.
        with suppress(DeclinedError, Exception):
            connection.sendall(calls.pack_answer(future.result(ANSWER_S)))
        future.cancel()  # it took too long
        return True

    def _is_wanted(self) -> bool:
        try:
            vault_guard.check(self._root)
        except (QuaidError, OSError):
            return False
        return settings_for_reading(self._root)[0].resident != "off" and _is_code_current(self._seen)


def _is_code_current(seen: dict[str, tuple[int, ...]]) -> bool:
    """Return whether no imported module of Quaid has changed on disk since it was first `seen`, and nothing was
    installed next to it.
    """
    package = Path(__file__).parents[1]
    files = [getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name[:5] == "quaid"]
    for path in (str(package.parent), *filter(None, files)):
        try:
            about = os.stat(path)  # noqa: PTH116 - two hundred at every call
        except OSError:
            return False
        stamp = about.st_ino, about.st_mtime_ns
        if seen.setdefault(path, stamp) != stamp:
            return False
    return True
