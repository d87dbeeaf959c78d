"""Plain text that is pleasant to read: colours where a terminal shows them, columns, bars, progress, durations."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import zip_longest
from math import ceil
from shutil import get_terminal_size
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO, cast

from quaid.errors import count as count  # noqa: PLC0414 - one of the forms of output
from quaid.text.invisible import escaped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_OWN = "".join(chr(0xF0000 + int.from_bytes(os.urandom(2))) for _ in range(2))
"""In place of the escape character of Quaid's own styles. No text can forge it: it is another one in each process."""
_WIDEST = 100
_EIGHTHS = " ▏▎▍▌▋▊▉█"
INDENT = "      "
"""As wide as a score."""


drawn_bars: list[ProgressBar] = []
"""The progress bars on the screen. A line that is written removes them first; they are drawn again below it."""
closed_streams: set[int] = set()
"""The standard streams that this process was started without."""


class Reader(NamedTuple):
    """Who reads the output of a call that this process answers for another one: the streams, and what shapes them."""

    out: TextIO
    err: TextIO
    environ: Mapping[str, str]
    columns: int


_reader: ContextVar[Reader | None] = ContextVar("reader", default=None)


def has_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def styled(text: str, style: str) -> str:
    """`text` in a colour or weight, on a terminal that wants it (https://no-color.org)."""
    reader = _reader.get()
    environ = reader.environ if reader else os.environ
    if not has_terminal() or environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return text
    return f"{_OWN}[{_STYLES[style]}m{text}{_OWN}[0m"


class _SafeStream:
    """A stream on which nothing acts on its reader but Quaid's own styles: what else would is shown as an escape."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        while drawn_bars:
            drawn_bars.pop().remove()
        parts = text.split(_OWN)
        self.stream.write(escaped(parts[0]) + "".join(f"\x1b{escaped(part)}" for part in parts[1:]))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def unwrapped(stream: TextIO) -> TextIO:
    """The stream itself, for who draws on the terminal."""
    return stream.stream if isinstance(stream, _SafeStream) else stream


@contextmanager
def safe_streams() -> Iterator[None]:
    """Inside, whatever is written to stdout and stderr is safe to look at."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _SafeStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _RoutedStream:
    """A stream that is a `Reader`'s in a thread which answers for that one, and its own in any other."""

    def __init__(self, own: TextIO, name: str) -> None:
        self._own = own
        self._name = name

    def __getattr__(self, name: str) -> Any:
        reader = _reader.get()
        return getattr(getattr(reader, self._name) if reader else self._own, name)


@contextmanager
def printing_to(reader: Reader) -> Iterator[None]:
    """Inside, what this thread prints goes to `reader`, safe to look at; other threads print where they did."""
    if not isinstance(sys.stdout, _RoutedStream):
        sys.stdout, sys.stderr = _RoutedStream(sys.stdout, "out"), _RoutedStream(sys.stderr, "err")
    out, err = (cast("TextIO", _SafeStream(stream)) for stream in (reader.out, reader.err))
    before = _reader.set(reader._replace(out=out, err=err))
    try:
        yield
    finally:
        _reader.reset(before)


def print_exactly(data: bytes) -> None:
    """Write bytes to stdout as they are, for a program that reads them; a terminal gets them as text."""
    sys.stdout.flush()
    if has_terminal() or not hasattr(sys.stdout, "buffer"):
        sys.stdout.write(data.decode("utf-8", "backslashreplace"))
    else:
        sys.stdout.buffer.write(data)


def columns(rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> str:
    """Rows as columns, those at `right` aligned to their ends; the last column is not padded."""
    table = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*table, fillvalue="")]
    padded = (
        [cell.rjust(widths[i]) if i in right else cell.ljust(widths[i]) for i, cell in enumerate(row)] for row in table
    )
    return "\n".join("  ".join(row).rstrip() for row in padded)


def draw_bar(number: float, most: float, width: int) -> str:
    """A bar as long as `number` is of `most`, to an eighth of a character; what is not nothing shows."""
    eighths = max(round(8 * width * number / most), min(1, ceil(number))) if most > 0 else 0
    return (_EIGHTHS[-1] * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def section(title: str, rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> str:
    """A heading with columns below it, empty when there are none."""
    return titled(styled(title, "bold"), table, right) if (table := list(rows)) else ""


def titled(head: str, rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> str:
    """A line with indented columns below it."""
    return lines(head, textwrap.indent(columns(rows, right), "  "))


def first(texts: Sequence[str], most: int | None, more: str = "and {:,} more") -> list[str]:
    """The first `most` texts, and a line that counts the others."""
    left = len(texts) - (len(texts) if most is None else most)
    return [*texts[:most], *([more.format(left)] if left > 0 else [])]


def known(*rows: tuple[str, str | None]) -> list[tuple[str, str]]:
    """The rows that have a value."""
    return [(name, value) for name, value in rows if value]


def lines(*parts: str | None) -> str:
    """The parts that are not empty, below each other."""
    return "\n".join(filter(None, parts))


def paragraphs(*parts: str | None) -> str:
    """The parts that are not empty, with a blank line between them."""
    return "\n\n".join(filter(None, parts))


def line_width() -> int:
    """The length of a line: as wide as the terminal, and no wider than reads well."""
    reader = _reader.get()
    return min(reader.columns if reader else get_terminal_size().columns, _WIDEST)


def clipped(text: str, width: int) -> str:
    """`text` as one line of at most `width` characters, marked where it was cut."""
    line = one_line(text)
    return line if len(line) <= width else f"{line[: max(0, width - 2)].rstrip()} …"


def wrapped(text: str, indent: str) -> str:
    """`text` within the terminal's width, each line after `indent`."""
    fill = partial(textwrap.fill, width=line_width(), initial_indent=indent, subsequent_indent=indent)
    return "\n".join(map(fill, text.splitlines()))


def one_line(text: str) -> str:
    """Line breaks become spaces."""
    return " ".join(text.split())


def size(number: int) -> str:
    """Bytes for people."""
    amount = float(number)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def moment(iso: str | None) -> str:
    """`2026-11-20T14:30:00Z` as `2026-11-20 14:30`."""
    return (iso or "")[:16].replace("T", " ")


def seconds(took_s: float) -> str:
    """A duration, as exact as matters."""
    return f"{took_s * 1000:.0f} ms" if took_s < 1 else f"{took_s:.1f} s"


def milliseconds(took_ms: float) -> str:
    """A short duration, to a tenth where that is something."""
    return f"{took_ms:.1f} ms" if took_ms < 10 and took_ms % 1 else seconds(took_ms / 1000)


def short(commit: str | None) -> str:
    """The first ten digits of a commit's id."""
    return (commit or "")[:10]


def coloured(line: str, indent: str = "    ") -> str:
    """A line of a diff, indented and in its colour."""
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return f"{indent}{styled(line, style) if style else line}".rstrip()


SHOWN_AFTER_S = 1.0


class ProgressBar:
    """Takes (what, done, total) and shows it. rich is imported only when there is something to show."""

    def __init__(self, *, shown: bool, after_s: float = SHOWN_AFTER_S) -> None:
        self._shown = shown
        self._after_s = after_s
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the bar from the screen until the next update."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = None
        self._tasks.clear()

    def update(self, what: str, done: int, total: int) -> None:
        """Called often, from the thread that works."""
        if not self._shown or (self._bar is None and time.monotonic() - self._started < self._after_s):
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            description = TextColumn("{task.description}", markup=False)
            columns = (description, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            # The bar is drawn past the stream that shows escapes; descriptions are made safe below.
            screen = Console(file=unwrapped(sys.stderr))
            # Otherwise rich sends everything that is printed, the answer too, to stderr.
            self._bar = Progress(*columns, console=screen, transient=True, redirect_stdout=False, redirect_stderr=False)
            self._bar.start()
            drawn_bars.append(self)
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(escaped(what), total=total)
        self._bar.update(self._tasks[what], completed=done, total=total)
