"""The log: one JSON object a line on stderr, with caller, action, duration and outcome, but without any content."""

import json
import logging
import sys
import threading
from datetime import UTC, datetime
from typing import TextIO

MAX_VALUE = 400
FIELDS = frozenset({
    "server", "request", "client", "vault", "route", "method", "status", "tool", "outcome", "ms", "commit", "reason",
    "attempts", "lag_ms", "problem", "port", "failures",
})  # fmt: skip
"""The fields of a line: no other can be logged by accident."""

_mutex = threading.Lock()


class ContentlessHandler(logging.Handler):
    """Logs only the source and the kind of messages of libraries: their words may quote a note."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else record.levelname
        write_line("library", problem=f"{record.name}: {kind}")


def silence_libraries() -> None:
    """Log warnings and errors of libraries by `ContentlessHandler`."""
    logging.basicConfig(handlers=[ContentlessHandler()], level=logging.WARNING, force=True)


def write_line(event: str, *, to: TextIO | None = None, **fields: str | float | None) -> None:
    """Write one line, without fields that are None. ValueError: a field is not one of `FIELDS`."""
    if unknown := fields.keys() - FIELDS:
        raise ValueError(f"{sorted(unknown)} are not fields of the log")
    shown = {
        key: value[:MAX_VALUE] if isinstance(value, str) else value
        for key, value in fields.items()
        if value is not None
    }
    line = json.dumps({"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "event": event, **shown})
    with _mutex:
        print(line, file=to or sys.stderr, flush=True)
