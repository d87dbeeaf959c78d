"""Processes and threads that have a memory open and answer calls of other processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from vaults import wait_for

from quaid.cli.resident import run_call
from quaid.resident.call import ERR, EXIT, OUT, RAW, Call
from quaid.resident.finding import find_listening
from quaid.resident.listener import Listener


class PatchableListener(Listener):
    """Looks the function up at each call, so that a test can replace it."""

    def run(self, memory, call):
        return run_call(memory, call)


@contextmanager
def listening(root: Path, monkeypatch: pytest.MonkeyPatch, **options: object) -> Iterator[Listener]:
    """A listener in a thread of this process, as a server has it."""
    monkeypatch.setenv("QUAID_RESIDENT", "auto")
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # it is routed from then on
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    listener = PatchableListener(root, "test", **options)
    thread = threading.Thread(target=listener.listen, daemon=True)
    thread.start()
    wait_for(lambda: find_listening(root) or not thread.is_alive(), "a listener")
    listener.thread = thread
    try:
        yield listener
    finally:
        listener.close()
        thread.join(10)
        assert not thread.is_alive()


def printed(root: Path, arguments: Sequence[str], stdin: bytes = b"") -> tuple[str, str, int]:
    """What the listener makes of a call: stdout, stderr, exit code."""
    answer = Call(str(root), arguments, stdin).ask()
    assert answer is not None, arguments
    out = b"".join(part for kind, part in answer if kind in {OUT, RAW})
    err = b"".join(part for kind, part in answer if kind == ERR)
    return out.decode(), err.decode(), int(dict(answer)[EXIT])


@contextmanager
def no_process_left(root: Path) -> Iterator[None]:
    """Afterwards none that was started for the vault runs."""
    try:
        yield
    finally:
        if (found := find_listening(root)) is not None:
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGTERM)
            wait_for(lambda: find_listening(root) is None, "its end")
