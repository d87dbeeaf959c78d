"""Where `quaid` begins and ends: the one place that turns failures into sentences and exit codes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from quaid.cli.invocation import Invocation, complain
from quaid.errors import CouldNotAskError, QuaidError

EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_INTERRUPTED = 130


def run() -> NoReturn:
    """The entry point of the `quaid` script."""
    # A command makes many objects and little garbage: looking for it every 700 costs a cold recall 15 ms.
    gc.set_threshold(100_000)
    code = main(sys.argv[1:])
    _close_output()
    # Everything is closed and flushed. Taking the interpreter apart would cost a cold recall another 25 ms.
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    if list(arguments) == ["--version"]:
        from quaid import __version__

        print(f"quaid {__version__}")
        return 0
    _never_fail_to_encode()
    invocation = Invocation(as_json=_asks_for_json(arguments))
    try:
        return _invoke(list(arguments) or ["--help"], invocation)
    except QuaidError as error:
        return _fail(invocation, error.code, str(error), error.exit_code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return 0
    except Exception as error:  # noqa: BLE001 - the one boundary: whatever else comes is a bug, and is kept
        from quaid.bug import write_report

        path = write_report(error, arguments, invocation.root)
        what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        exit_code = CouldNotAskError.exit_code if invocation.is_deciding else EXIT_BUG
        return _fail(invocation, "bug", f"This is a bug in Quaid ({what}). The report is in {path}", exit_code)


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Known before anything is parsed, for the failures of parsing itself."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in own


def _invoke(arguments: list[str], invocation: Invocation) -> int:
    import typer

    from quaid.cli.app import build_group

    usage_error: Any = typer.BadParameter.__bases__[0]
    group = build_group()
    try:
        with group.make_context("quaid", arguments, obj=invocation) as context:
            code = group.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except typer.Exit as leave:
        sys.stdout.flush()
        return leave.exit_code
    except typer.Abort:
        return EXIT_INTERRUPTED
    except usage_error as error:
        return _fail_usage(invocation, error)


def _fail_usage(invocation: Invocation, error: Any) -> int:
    message = error.format_message()
    help_is_in = f"{error.ctx.command_path if error.ctx else 'quaid'} --help"
    sentence = message if message.endswith(("?", ".")) else f"{message}."
    return _fail(invocation, "usage", f"{sentence} Help is in: {help_is_in}", EXIT_USAGE)


def _fail(invocation: Invocation, code: str, message: str, exit_code: int) -> int:
    complain(message)
    if invocation.as_json:
        invocation.answer(error={"code": code, "message": message})
    return exit_code


def _never_fail_to_encode() -> None:
    """A note may hold what the terminal's encoding does not: show an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _close_output() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    """Nobody reads any more: let the interpreter's own flush at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    run()
