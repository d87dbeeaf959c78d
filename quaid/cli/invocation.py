"""One call of `quaid`: the options that all commands share, and where answers and remarks go."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.cli.terminal import ProgressBar
from quaid.errors import QuaidError, UsageError
from quaid.resident.call import DeclinedError
from quaid.shapes import json_value
from quaid.text.invisible import escaped_json

if TYPE_CHECKING:
    from quaid.memory import Memory

JSON_VERSION = 1
"""`v` of every JSON answer; grows when a shape loses or renames a field."""


@dataclass(slots=True)
class Invocation:
    """The shared options. Answers go to stdout (`respond`, `print`, `print_json`), remarks to stderr (`notify`)."""

    as_json: bool = False
    quiet: bool = False
    vaults: Sequence[Path] = ()
    """The vaults that were named; most commands use one."""
    root: Path | None = None
    """The vault that was opened; a failure's report goes into it."""
    is_deciding: bool = False
    """The exit code is the answer: a failure, even a bug, must not look like one."""
    cwd: str | None = None
    """The working folder, where it is not this process's."""
    lent: Memory | None = None
    """The memory, where it is open already: this process answers for another one."""

    @property
    def vault(self) -> Path | None:
        """The vault that was named; None where none was.

        Raises:
            UsageError: several were named.
        """
        if len(self.vaults) > 1:
            raise UsageError(
                f"This command uses one vault, and --vault names {len(self.vaults)}. Leave all but one of them out; "
                "several are asked by: quaid recall, quaid search"
            )
        return self.vaults[0] if self.vaults else None

    def open(self, *, owner: str | None = None) -> AbstractContextManager[Memory]:
        """Open the named or default vault, as its owner or as `owner` sees it.

        Raises:
            VaultNotFoundError, UntrustedVaultError, ConfigError
            DeclinedError: it is not the vault that was lent, and the caller opens it itself.
        """
        if self.lent is None:
            from quaid.memory import Memory

            memory = Memory.open(self.vault, owner=owner)
        else:
            memory = self.lent
            named = Path(self.cwd or "", Path(self.vault).expanduser()) if self.vault else memory.root
            if os.path.realpath(named) != os.path.realpath(memory.root) or owner not in {None, memory.settings.owner}:
                raise DeclinedError
            memory.embedding.resume()
        self.adopt(memory)
        for remark in memory.remarks:
            self.notify(remark)
        if owner is None:
            memory.carry_out_ticks()
        return memory if self.lent is None else nullcontext(memory)

    def adopt(self, memory: Memory) -> Memory:
        """Let `memory` report its waits to this call."""
        self.root = memory.root
        memory.report_to(None, self.notify)
        return memory

    def progress(self, memory: Memory) -> ProgressBar:
        """A bar on a terminal's stderr for what `memory` does inside the `with`, once that takes long."""
        if self.lent is not None:
            raise DeclinedError  # what takes long is shown to the caller while it lasts
        bar = ProgressBar(shown=sys.stderr.isatty() and not self.quiet)
        memory.report_to(bar.update, self.notify)
        return bar

    def notify(self, text: str) -> None:
        """Print a remark for the person at the terminal; never part of the answer."""
        if not self.quiet:
            print(_redact(text), file=sys.stderr)

    def print(self, text: str = "") -> None:
        """Print a line of the answer, without secrets: only `get` and `export` give the notes as they are."""
        print(_redact(text))

    def print_json(self, **shape: object) -> None:
        """Print one JSON object in one line, version first, without secrets. Records in it become objects."""
        print(render_json(_redact(json_value(shape))))

    def respond(self, text: str, /, **shape: object) -> None:
        """Print the answer: `shape` as JSON for programs, `text` for people."""
        if self.as_json:
            self.print_json(**shape)
        elif text:
            self.print(text)


def print_error(text: str) -> None:
    """Print what went wrong to stderr, --quiet or not; without secrets, as it may repeat what was typed."""
    print(f"quaid: {_redact(text)}", file=sys.stderr)


def _redact(value: Any) -> Any:
    """Return a text, or a JSON value, without secrets."""
    from quaid.redaction import admit_all  # a start that prints nothing does not wait for it

    return admit_all(value)[0]


def render_json(shape: Mapping[str, object]) -> str:
    """Return `shape` with its version in front, as one line."""
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    return escaped_json(json.dumps({"v": JSON_VERSION, **json_value(shape)}, ensure_ascii=ascii_only))


def error_shape(error: QuaidError) -> dict[str, str]:
    """Return an error as JSON."""
    return {"code": error.code, "message": str(error)}
