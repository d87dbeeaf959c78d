"""Where `quaid` begins: a hook goes its own short way, everything else is the command line."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from quaid.search_paths import leave_out_the_working_folder


def run() -> NoReturn:
    """The entry point of the `quaid` script."""
    leave_out_the_working_folder()
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not {"-h", "--help"}.intersection(arguments):
        from quaid.hooks.entry import main

        os._exit(main(arguments[1:]))  # everything is written and closed; what is left is taking the interpreter apart
    from quaid.cli.main import run as run_command

    run_command()


if __name__ == "__main__":
    run()
