"""The entry point of `quaid`: a hook takes a short path of its own, everything else is the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_OWN = str(Path(__file__).parents[1])
"""A checkout of Quaid may itself be found by a relative entry: that one stays, made absolute."""


def run() -> NoReturn:
    """The entry point of the `quaid` script."""
    remove_working_folder()
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not {"-h", "--help"}.intersection(arguments):
        from quaid.hooks.entry import main

        os._exit(main(arguments[1:]))  # everything is written and closed; what is left is taking the interpreter apart
    from quaid.cli.main import run as run_command

    run_command()


def remove_working_folder() -> None:
    """Take relative entries out of the search paths of this process and of all that it starts.

    An agent works in folders that strangers made: `PATH=.:/usr/bin`, or an empty entry of PYTHONPATH, would run what
    lies there.
    """
    for name in _VARIABLES:
        entries = os.environ.get(name, "").split(os.pathsep)
        relative = {entry: _absolute(entry) for entry in entries if not Path(entry).is_absolute()}
        kept = [relative.get(entry, entry) for entry in entries if relative.get(entry, _OWN) == _OWN]
        if kept:
            os.environ[name] = os.pathsep.join(kept)
        else:  # an empty PATH is the working folder; without one it is the system's own
            os.environ.pop(name, None)
        if name == "PYTHONPATH":  # Python has made its entries absolute
            sys.path[:] = [entry for entry in sys.path if entry == _OWN or entry not in relative.values()]


def _absolute(entry: str) -> str:
    try:
        return os.path.abspath(entry)  # noqa: PTH100 - as Python itself does
    except FileNotFoundError:  # the working folder is gone
        return entry


if __name__ == "__main__":
    run()
