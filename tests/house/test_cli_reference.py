"""docs/reference/cli.md is the help of every command. Write it again with --snapshot-update."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from command_line import quaid

from quaid.cli.app import SECTIONS, build_group

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
HEAD = """# The help of every command
<!-- SOURCES: quaid/cli -->

This page is generated from `quaid COMMAND --help`. [commands.md](commands.md) has exit codes,
references and the shapes of JSON. Every command also takes these options, before or after its name:

| option | meaning |
|---|---|
| `--vault PATH` | the vault to use; `recall`, `search` and `mcp` take several |
| `--json` | answer in JSON, one object on one line |
| `-q`, `--quiet` | print errors only |
| `-h`, `--help` | print this help |
"""


def list_actions(name: str, command: Any) -> list[str]:
    """The name of a command, then those of its actions."""
    actions = getattr(command, "commands", {})
    return [name, *(each for action in actions for each in list_actions(f"{name} {action}", actions[action]))]


def render_reference() -> str:
    parts = [HEAD]
    for title, commands in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for name in commands:
            for words in list_actions(name, build_group().get_command(None, name)):
                code, text, _ = quaid(*words.split(), "--help")
                assert code == 0
                text = re.sub(r"\n  --json .*?\n  -h, --help[^\n]*", "", text, flags=re.DOTALL)  # of every command
                text = re.sub(r"\nOptions:\n(?=\n|$)", "", text)
                parts.append(f"\n### quaid {words}\n\n```text\n{text.rstrip()}\n```\n")
    return "".join(parts)


def test_the_reference_is_the_help_of_every_command(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    text = render_reference()
    if request.config.getoption("--snapshot-update"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
