"""The entry point of `quaid`: what a process that has the memory open can answer is asked there; else a hook takes a
short path of its own, and everything else is the command line.
"""

from __future__ import annotations

import os
import sys

from quaid.resident import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""A checkout of Quaid may itself be found by a relative entry: that one stays, made absolute."""


def run() -> NoReturn:
    """The entry point of the `quaid` script."""
    remove_working_folder()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a second thread turns idly while numpy is imported
    arguments = call.put_command_first(sys.argv[1:])
    if arguments[:1] == ["merge-driver"]:
        from quaid.cli.merge_driver import main as merge

        os._exit(merge(arguments[1:]))
    if arguments[:1] == ["pre-commit"]:
        from quaid.cli.pre_commit import main as check

        os._exit(check(arguments[1:]))
    asked = call.of_this_process(arguments)
    answer = asked.ask() if asked else None
    if answer is not None:
        try:
            code = call.show(answer)
        except OSError:
            from quaid.cli.main import close_output

            code = close_output(0)
    elif arguments[:1] == ["hook"] and not {"-h", "--help"}.intersection(arguments):
        from quaid.hooks.entry import main

        code = main(arguments[1:], asked.stdin if asked else None)
    else:
        from quaid.cli.main import run as run_command

        code = run_command(arguments)
    if asked and answer is None:
        from quaid.resident.finding import start

        start(asked.root)
    os._exit(code)  # everything is written and closed; taking the interpreter apart would take another 25 ms


def remove_working_folder() -> None:
    """Take relative entries out of the search paths of this process and of all that it starts.

    An agent works in folders that strangers made: `PATH=.:/usr/bin`, or an empty entry of PYTHONPATH, would run what
    is there.
    """
    for name in _VARIABLES:
        entries = os.environ.get(name, "").split(os.pathsep)
        relative = {entry: _absolute(entry) for entry in entries if not os.path.isabs(entry)}
        absolute = [relative.get(entry, entry) for entry in entries if relative.get(entry, _OWN) == _OWN]
        if absolute:
            os.environ[name] = os.pathsep.join(absolute)
        else:  # an empty PATH is the working folder; without one it is the system's own
            os.environ.pop(name, None)
        if name == "PYTHONPATH":  # Python has made its entries absolute
            sys.path[:] = [entry for entry in sys.path if entry == _OWN or entry not in relative.values()]


def _absolute(entry: str) -> str:
    try:
        return os.path.abspath(entry)  # as Python itself does
    except FileNotFoundError:  # the working folder is gone
        return entry


if __name__ == "__main__":
    run()
