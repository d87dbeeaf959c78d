"""A progress bar on stderr for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from quaid.cli.terminal import drawn_bars, unwrapped
from quaid.text.invisible import escaped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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

    @property
    def is_drawn(self) -> bool:
        return self._bar is not None

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
