"""stdin and stdout for the protocol alone: claimed before anything is imported that may print."""

import fcntl
import os
import sys
from io import TextIOWrapper

from quaid.errors import UsageError
from quaid.text.invisible import whole_json


class JsonLines(TextIOWrapper):
    """Lines of JSON without half characters: a message that cannot be parsed has no id, so its sender would wait for
    the answer forever.
    """

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return whole_json(super().readline(size))


def claim_streams() -> tuple[TextIOWrapper, TextIOWrapper]:
    """Return stdin and stdout, for the protocol alone. Any other user of them (a library in C, a child process) reads
    an end of file and writes to stderr.

    Raises:
        UsageError: one of them is closed.
    """
    try:
        reading, writing = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in (0, 1))
    except OSError as error:
        raise UsageError("There is no stdin or stdout to serve. A host has to start it, or try: --http") from error
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # a host may have closed stderr
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    sys.stdout = sys.stderr
    return (
        JsonLines(os.fdopen(reading, "rb"), encoding="utf-8", errors="replace"),
        TextIOWrapper(os.fdopen(writing, "wb"), encoding="utf-8", errors="replace"),
    )
