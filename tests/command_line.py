"""The command line in this process, and what docs/reference/commands.md says of a command."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from quaid.cli.app import build_group
from quaid.cli.main import main

DOCS = (Path(__file__).parents[1] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")


def quaid(*arguments: str) -> tuple[int, str, str]:
    """Return the exit code, stdout and stderr of one command."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def section_of(command: str) -> str:
    """Return the section of docs/reference/commands.md about a command."""
    found = re.search(rf"^### quaid {command}$(.*?)(?=^##)", DOCS + "\n##", re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/commands.md has no section for {command}"
    return found[1]


def parameters_of(name: str) -> list[Any]:
    """Return the parameters of a command and of its actions."""
    return _list_parameters(build_group().get_command(None, name))


def _list_parameters(command: Any) -> list[Any]:
    actions = getattr(command, "commands", {}).values()
    return [*command.params, *(parameter for action in actions for parameter in _list_parameters(action))]
