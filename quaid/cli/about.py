"""`quaid version` and `quaid help`."""

from __future__ import annotations

import platform
from typing import Annotated

from quaid import __version__
from quaid.cli.invocation import Invocation
from quaid.cli.main import invoke
from quaid.cli.options import argument


def run_version(invocation: Invocation) -> None:
    """Print the version of Quaid.

    Examples:
      quaid version
      quaid version --json
    """
    python, system = platform.python_version(), platform.platform()
    invocation.respond(f"quaid {__version__}", version=__version__, python=python, system=system)


def run_help(
    invocation: Invocation,
    command: Annotated[list[str] | None, argument("COMMAND", "The command to explain.")] = None,
) -> int:
    """Explain a command, or list all of them.

    Examples:
      quaid help
      quaid help recall
    """
    # A command takes its actions as arguments, so its name alone is what has a help.
    return invoke([*(command or [])[:1], "--help"], invocation)
