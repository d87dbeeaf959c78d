"""The entry point of `quaid`, which alone turns failures into sentences and exit codes."""

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quaid import __version__
from quaid.cli.invocation import Invocation, print_error
from quaid.cli.terminal import closed_streams, safe_streams
from quaid.errors import CouldNotAskError, QuaidError
from quaid.place import find_vault

WRITING_COMMANDS = "remember extract analyze import edit forget restore purge link note undo".split()  # noqa: SIM905
EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """Run one command line as a process does that ends with it, and return its exit code."""
    # A command makes many objects and little garbage: looking for it every 700 costs a cold recall 15 ms.
    gc.set_threshold(100_000)
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # so that no file gets its number
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            closed_streams.add(number)
    is_open = sys.stdout is not None
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor, no path
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if not is_open:
        print("quaid: Standard output is closed: nothing was done. Send it to a file or to /dev/null.", file=sys.stderr)
    return close_output(main(arguments) if is_open else 1)


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A note may hold what the terminal's encoding does not: an escape is shown instead of a failure.
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
    with safe_streams():
        invocation = Invocation()
        try:
            return invoke(arguments, invocation)
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except BrokenPipeError:
            _discard_output()
            return 0
        except Exception as error:  # noqa: BLE001 - the one boundary: anything else is a bug, and is reported
            return _fail_unforeseen(invocation, arguments, error)


def invoke(arguments: Sequence[str], invocation: Invocation) -> int:
    """Run the command that `arguments` name and return its exit code; failures that nobody foresaw are raised."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    # Set before anything is parsed, as parsing itself may fail.
    invocation.as_json = "--json" in options
    if list(arguments) == ["--version"]:
        print(f"quaid {__version__}")
        return 0
    import typer

    from quaid.cli.app import build_group

    usage_error: Any = typer.BadParameter.__bases__[0]
    group = build_group()
    try:
        with group.make_context("quaid", list(arguments) or ["--help"], obj=invocation) as context:
            code = group.invoke(context)
            if context.invoked_subcommand in WRITING_COMMANDS:
                with suppress(FileNotFoundError):  # the working folder is gone
                    around, root = find_vault(Path.cwd()), invocation.root and invocation.root.resolve()
                    if root and root != (around and around.resolve()):
                        invocation.notify(f"The vault is {root}")
        return code if isinstance(code, int) else 0
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return EXIT_INTERRUPTED
    except usage_error as error:
        message = error.format_message()
        sentence = message if message.endswith(("?", ".")) else f"{message}."
        command = error.ctx.command_path if error.ctx else "quaid"
        return _fail(invocation, "usage", f"{sentence} Help is in: {command} --help", EXIT_USAGE)
    except QuaidError as error:
        candidates = getattr(error, "candidates", ())
        more = {"candidates": [{"ref": ref, "text": text} for ref, text in candidates]} if candidates else {}
        return _fail(invocation, error.code, str(error), error.exit_code, **more)


def _explain(error: Exception, arguments: Sequence[str]) -> str | None:
    """A sentence that says what is wrong with this machine or this call; None for a bug."""
    if isinstance(error, UnicodeEncodeError):
        odd = next((word for word in arguments if any("\ud800" <= char <= "\udfff" for char in word)), None)
        return None if odd is None else f"The argument {odd!a} is not UTF-8. Give it in UTF-8."
    if type(error).__module__.partition(".")[0] == "apsw":
        return f"SQLite gave up ({error}). See that the disk works and has room, then run: quaid doctor"
    if not isinstance(error, OSError) or error.errno is None:
        return None
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"Too many files are open (the limit is {limit}). Raise the limit with ulimit -n, then try again."
    # Python does not say which file it was writing to: the output is one.
    place = error.filename or "The answer, or a file,"
    return f"{place} could not be read or written ({error.strerror}). Set that right, then try again."


def _fail_unforeseen(invocation: Invocation, arguments: Sequence[str], error: Exception) -> int:
    from quaid.report.bug_report import refusal_of, write_report

    # What the system refuses names its own file; SQLite means one of the vault's databases.
    is_of_system = isinstance(error, OSError)
    if not is_of_system and (refusal := refusal_of(error, invocation.root)) is not None:
        return _fail(invocation, refusal.code, str(refusal), refusal.exit_code)
    if (sentence := _explain(error, arguments)) is not None:
        exit_code = CouldNotAskError.exit_code if invocation.is_deciding else QuaidError.exit_code
        return _fail(invocation, "machine", sentence, exit_code)
    path = write_report(error, arguments, invocation.root)
    what = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    exit_code = CouldNotAskError.exit_code if invocation.is_deciding else EXIT_BUG
    return _fail(invocation, "bug", f"This is a bug in Quaid ({what}). The report is in {path}", exit_code)


def _fail(invocation: Invocation, code: str, message: str, exit_code: int, **more: object) -> int:
    with suppress(OSError):  # the exit code still says it
        print_error(message)
    with suppress(OSError):
        if invocation.as_json:
            invocation.print_json(error={"code": code, "message": message, **more})
    return exit_code


def close_output(code: int) -> int:
    """Write what is left of the answer, and return the exit code: `code`, unless that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        with suppress(OSError):
            print(f"quaid: The answer could not be written ({error.strerror}).", file=sys.stderr)
        return code or 1
    return code


def _discard_output() -> None:
    """Nobody reads any more: let the interpreter's own flush at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    os._exit(run(sys.argv[1:]))
