"""What SECURITY.md promises to stay: no name of 0.2 is gone. tests/house/promised.json has them; --snapshot-update adds new ones."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest
from command_line import parameters_of
from mcp_host import talk

from quaid import Memory, errors
from quaid.cli.app import COMMANDS
from quaid.config import list_settings
from quaid.settings import Settings

ROOT = Path(__file__).parents[2]
PROMISED = Path(__file__).with_name("promised.json")


def read(name):
    return (ROOT / "docs" / "reference" / name).read_text("utf-8")


def list_errors():
    classes = [
        found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, errors.QuaidError)
    ]
    return sorted({f"{found.code} {found.exit_code}" for found in classes})


def list_tools(root):
    found = {}

    async def ask(client):
        for tool in (await client.list_tools()).tools:
            found[tool.name] = sorted(tool.input_schema.get("properties", {}))

    talk(root, ask)
    return found


def list_fields_of_json():
    """Command -> the fields in its examples."""
    sections = re.split(r"^### quaid (.+)$", read("commands.md"), flags=re.MULTILINE)
    return {
        command: sorted(
            {
                name
                for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
                for name in re.findall(r'"(\w+)":', block)
            }
        )
        for command, text in zip(sections[1::2], sections[2::2], strict=True)
    }


def list_properties():
    """The properties of notes: those in the examples of the file format, and those that it names one by one."""
    text = read("file-format.md")
    examples = {
        name
        for block in re.findall(r"```markdown\n---\n(.*?)\n---", text, re.DOTALL)
        for name in re.findall(r"^(\w+):", block, re.MULTILINE)
    }
    (others,) = re.findall(r"^Other keys: (.*?)\. A\nline", text, re.MULTILINE | re.DOTALL)
    return sorted(examples | set(re.findall(r"`(\w+)`", others)))


def list_names(root):
    options = {name: sorted({option for each in parameters_of(name) for option in (*each.opts, *each.secondary_opts) if option.startswith("-")})
               for name in COMMANDS}  # fmt: skip
    shown = {
        name
        for path in (ROOT / "README.md", *(ROOT / "docs" / "integrations").glob("*.md"))
        for name in re.findall(r"\b[Mm]emory\.(\w+)\(", path.read_text("utf-8"))
    }
    methods = {
        name: sorted(set(inspect.signature(getattr(Memory, name)).parameters) - {"self"})
        for name in shown & set(dir(Memory))
    }
    return {
        "options": options,
        "settings": {key: [] for key, _ in list_settings(Settings())},
        "errors and exit codes": {name: [] for name in list_errors()},
        "MCP tools": list_tools(root),
        "fields of --json": list_fields_of_json(),
        "properties of notes": {name: [] for name in list_properties()},
        "trailers of commits": {name: [] for name in re.findall(r"`(Quaid-[A-Z]\w+)`", read("file-format.md"))},
        "quaid.Memory": methods,
    }


@pytest.mark.usefixtures("calm")
def test_no_name_is_gone_that_was_promised(vault, request):
    with vault.memory():
        pass
    names = list_names(vault.root)
    if request.config.getoption("--snapshot-update"):
        old = json.loads(PROMISED.read_text("utf-8")) if PROMISED.exists() else {}
        for kind, found in names.items():
            for name, parts in old.get(kind, {}).items():
                found[name] = sorted({*found.get(name, []), *parts.split()})
        lines = {kind: {name: " ".join(parts) for name, parts in found.items()} for kind, found in names.items()}
        PROMISED.write_text(json.dumps(lines, indent=1, sort_keys=True) + "\n", "utf-8")
    promised = json.loads(PROMISED.read_text("utf-8"))
    gone = [f"{kind}: {name}" for kind, found in promised.items() for name in found if name not in names[kind]]
    gone += [f"{kind}: {name} {part}" for kind, found in promised.items() for name, parts in found.items()
             for part in parts.split() if name in names[kind] and part not in names[kind][name]]  # fmt: skip
    assert gone == [], "SECURITY.md promises that these stay"
