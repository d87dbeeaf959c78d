"""Command lines and events that are answered for other processes, and the process that does nothing else."""

import os
import signal
import sys
from io import TextIOBase
from pathlib import Path
from typing import TextIO, cast

from quaid.cli.invocation import Invocation
from quaid.cli.main import invoke
from quaid.cli.terminal import Reader, printing_to
from quaid.hooks.entry import respond
from quaid.memory import Memory
from quaid.place import make_private_folder
from quaid.resident.call import ERR, EXIT, GIVEN, OUT, RAW, Answer, Call, DeclinedError
from quaid.resident.listener import Listener


class _Written(TextIOBase):
    """A stream of the caller: what is written to it is collected, in one order for all of them."""

    def __init__(self, answer: Answer, kind: int, encoding: str, *, is_terminal: bool) -> None:
        self._answer = answer
        self._kind = kind
        self._encoding = encoding
        self._is_terminal = is_terminal
        self.buffer = self if kind == RAW else _Written(answer, RAW, encoding, is_terminal=is_terminal)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str | bytes) -> int:
        self._answer.append((self._kind, text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text))
        return len(text)


def run_call(memory: Memory, call: Call) -> Answer:
    """Return what the command or event of `call` prints, and its exit code, as its own process would answer.

    Raises:
        DeclinedError: only its own process can answer.
    """
    answer: Answer = []
    out = _Written(answer, OUT, call.encoding, is_terminal=call.has_terminal)
    err = _Written(answer, ERR, call.encoding, is_terminal=call.has_error_terminal)
    reader = Reader(cast("TextIO", out), cast("TextIO", err), call.environ, call.columns)
    memory.model_refusal = DeclinedError()  # called with the caller's keys, and for as long as the caller waits
    try:
        with printing_to(reader):
            if call.arguments[0] == "hook":
                code = 0
                if record := respond(memory, call.arguments[1:], call.stdin):
                    make_private_folder(record[0].parent)
                    answer.append((GIVEN, "\0".join(map(str, record)).encode("utf-8", "surrogateescape")))
            else:
                code = invoke(call.arguments, Invocation(cwd=call.cwd, lent=memory))
    finally:
        memory.model_refusal = None
    answer.append((EXIT, str(code).encode()))
    return answer


class CommandListener(Listener):
    """Answers command lines and events as `run_call` does."""

    def run(self, memory: Memory, call: Call) -> Answer:
        return run_call(memory, call)


def main(root: Path, idle_s: float) -> None:
    """Answer for the vault at `root` until nobody has asked for `idle_s` seconds."""
    import gc

    listener = CommandListener(root, "resident", idle_s)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: listener.close())
    gc.set_threshold(100_000)
    listener.listen()


if __name__ == "__main__":
    os.closerange(3, 1_024)  # an inherited pipe of the first caller would stay open as long as this process
    os.chdir("/")  # the folder that it was started in may be removed or unmounted
    main(Path(sys.argv[1]), float(sys.argv[2]))
