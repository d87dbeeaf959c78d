"""Watches a process for the network, by the kernel, so that nothing in native code can get round it.

`run_without_network` ends a program at its first attempt to make a socket. `run_alone` lets it talk to a network that is
this machine alone, and says how many bytes it would have sent. Neither needs to be root.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

# (audit architecture, {call: number}) as the kernel's headers have them.
_MACHINES = {
    "x86_64": (0xC000003E, {"socket": 41, "connect": 42, "sendto": 44, "sendmsg": 46, "sendmmsg": 307, "io_uring_setup": 425}),
    "aarch64": (0xC00000B7, {"socket": 198, "connect": 203, "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "io_uring_setup": 425}),
}  # fmt: skip
_LOAD, _IS, _END = 0x20, 0x15, 0x06  # BPF: load a word, jump if equal, return
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _WITH_FILTER = 38, 22, 2
_ALONE = (
    "ip link set lo up && ip route add local default dev lo && "
    "{ ip -6 route add local ::/0 dev lo 2>/dev/null || true; } && "
    'sent=$1 && shift && { "$@"; code=$?; sed -n "s/^ *lo: *//p" /proc/net/dev >"$sent"; exit $code; }'
)
"""A network of its own, without a way out: whatever address is asked, it is this machine, and the kernel counts."""
_PLACE_OF_SENT_BYTES = 8


def forbid_sockets() -> None:
    """Have the kernel end this process, its threads and its children when they ask for a socket. For good."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its end is no crash to keep
    architecture, calls = _MACHINES[platform.machine()]
    steps = [
        (_LOAD, 0, 0, 4), (_IS, 1, 0, architecture), (_END, 0, 0, _KILL),
        (_LOAD, 0, 0, 0), *((_IS, len(calls) - place, 0, number) for place, number in enumerate(calls.values())),
        (_END, 0, 0, _ALLOW), (_END, 0, 0, _KILL),
    ]  # fmt: skip
    program = b"".join(struct.pack("HBBI", *step) for step in steps)
    held = ctypes.create_string_buffer(program)
    described = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(held)))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in (
        (_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        (_SET_SECCOMP, _WITH_FILTER, ctypes.c_void_p(ctypes.addressof(described)), 0, 0),
    ):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def run_without_network(code: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run Python `code` in a process that may not make a socket; it can import Quaid and the modules of tests/.

    `reached_out` says whether it tried. A child that it starts is ended as well when it tries, and its end is the
    child's: `code` has to look at that.
    """
    first = [sys.executable, str(Path(__file__)), code, *arguments]
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    return subprocess.run(
        first, capture_output=True, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths, **environ},
    )  # fmt: skip


def reached_out(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == -signal.SIGSYS


@cache
def _can_forbid() -> bool:
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    return run_without_network("print(1)").stdout == "1\n"


def need_watch() -> None:
    """Skip the test where the kernel takes no filter."""
    import pytest  # not above: a watched process needs none of it

    if not _can_forbid():
        pytest.skip(
            "needs Linux on x86_64 or aarch64, and a kernel that lets a process filter its system calls (seccomp)"
        )


def run_alone(*command: str, **environ: str) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run `command` in a network of its own; return its end, and the bytes that were sent to whatever address.

    Packets of this machine to itself count as well, with their headers and with what the kernel answers: 0 is silence.
    """
    with tempfile.NamedTemporaryFile("r", prefix="sent-") as sent:
        line = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", _ALONE, "sh", sent.name, *command]
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, timeout=600, env={**os.environ, **environ}
        )
        counts = sent.read().split()
    return done, int(counts[_PLACE_OF_SENT_BYTES]) if counts else 0


def need_namespaces() -> None:
    """Skip the test where nobody may have a network of their own."""
    import pytest

    if not (shutil.which("unshare") and shutil.which("ip") and run_alone("true")[0].returncode == 0):
        pytest.skip("needs unshare, ip and a kernel that gives everybody a network namespace")


if __name__ == "__main__":
    forbid_sockets()
    code, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    exec(compile(code, "<watched>", "exec"), {"__name__": "__main__"})
