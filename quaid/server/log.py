"""The log: one JSON object a line on stderr, with caller, action, duration and outcome, but without any content.

The metrics are in Prometheus' text format. They contain no name of a vault, a caller or a note.
"""

import json
import logging
import sys
import threading
from bisect import bisect_left
from collections import defaultdict
from datetime import UTC, datetime
from typing import TextIO

MAX_VALUE = 400
FIELDS = frozenset({
    "server", "request", "client", "vault", "route", "method", "status", "tool", "outcome", "ms", "commit", "reason",
    "attempts", "lag_ms", "problem", "port", "failures",
})  # fmt: skip
"""The fields of a line: no other can be logged by accident."""

_mutex = threading.Lock()
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
HELP = {
    "quaid_requests_total": "HTTP requests, by route and status.",
    "quaid_request_seconds": "Seconds that a request took, by route.",
    "quaid_tool_seconds": "Seconds that a tool took, by tool and outcome.",
    "quaid_jobs_total": "Vaults brought up to date, by outcome.",
    "quaid_index_lag_seconds": "Seconds from the notification of a push to its index.",
    "quaid_polls_total": "Polls of remotes, by outcome.",
    "quaid_poll_seconds": "Seconds that a poll of a remote took.",
    "quaid_writes_total": "Writes, by outcome.",
    "quaid_write_attempts": "Pushes that a write took.",
    "quaid_vaults": "Vaults in the catalogue, by state.",
    "quaid_jobs_waiting": "Jobs in the queue.",
    "quaid_oldest_job_seconds": "Age of the oldest job that is due.",
}
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
Labels = tuple[tuple[str, str], ...]


class ContentlessHandler(logging.Handler):
    """Logs only the source and the kind of messages of libraries: their words may quote a note."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else record.levelname
        write_line("library", problem=f"{record.name}: {kind}")


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


class Metrics:
    """Counters and histograms of this process."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Labels], int] = defaultdict(int)
        self._times: dict[tuple[str, Labels], list[float]] = {}
        self._mutex = threading.Lock()

    def count(self, name: str, **labels: str) -> None:
        with self._mutex:
            self._counts[name, tuple(sorted(labels.items()))] += 1

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        with self._mutex:
            # The buckets, one for all greater values, and the sum.
            row = self._times.setdefault((name, tuple(sorted(labels.items()))), [0.0] * (len(BUCKETS_S) + 2))
            row[bisect_left(BUCKETS_S, value)] += 1
            row[-1] += value

    def render(self, gauges: dict[tuple[str, Labels], float] | None = None) -> str:
        """Return the metrics and `gauges` as text."""
        with self._mutex:
            counts = dict(self._counts)
            times = {key: list(row) for key, row in self._times.items()}
        lines: dict[str, list[str]] = defaultdict(list)
        for (name, labels), number in sorted(counts.items()):
            lines[name].append(f"{name}{_shown(labels)} {number}")
        for (name, labels), value in sorted((gauges or {}).items()):
            lines[name].append(f"{name}{_shown(labels)} {value:g}")
        for (name, labels), row in sorted(times.items()):
            total = 0.0
            for bound, found in zip((*map(str, BUCKETS_S), "+Inf"), row[:-1], strict=True):
                total += found
                lines[name].append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {total:g}")
            lines[name] += [f"{name}_sum{_shown(labels)} {row[-1]:g}", f"{name}_count{_shown(labels)} {total:g}"]
        kinds = {name: "counter" for name, _ in counts} | {name: "gauge" for name, _ in gauges or {}}
        kinds |= {name: "histogram" for name, _ in times}
        rendered = [
            "\n".join([f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kinds[name]}", *lines[name]]) for name in lines
        ]
        return "\n".join(rendered) + "\n"


def _shown(labels: Labels) -> str:
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{inner}}}" if inner else ""
