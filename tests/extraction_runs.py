"""A conversation of four turns, what a model learns from it, and what the vault looks like afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace

from replay import facts_of
from vaults import Vault, assert_verified

from quaid.cli.main import main
from quaid.place import state_folder
from quaid.vault import episodes, frontmatter

SAID = ("We adopted a quokka called Biscuit.", "Where does it sleep?", "In the laundry basket.", "That sounds warm.")
ANSWER = facts_of("Maya adopted a quokka called Biscuit.", "Biscuit sleeps in the laundry basket.") | {
    "snippets": {"USER.md": ["likes quokkas"]}, "journal": {"SOUL.md": "Maya was happy."},
}  # fmt: skip
ANSWER["facts"][0]["edges"] = [{"subject": "Maya", "relation": "has_pet", "object": "Biscuit"}]
ANSWER["facts"][1]["turns"] = ["t3"]
ID = re.compile(r"\b01[0-9a-z]{24}\b|-[0-9a-z]{5}\.md$")


def picture(vault: Vault) -> dict[str, str]:
    """Notes without what differs from run to run: ids, the time of the extraction, and when a note was taken in."""
    found = {ID.sub("ID", name): ID.sub("ID", data.decode()) for name, data in vault.notes().items()}
    now = re.compile(r"(?m)^(extracted:) .*$|(\*\*Note to self\*\*) \([^)]*\)")
    return {name: now.sub(r"\1\2 NOW", text) for name, text in found.items()}


def folders(vault: Vault) -> set[str]:
    """What there is besides what a new vault has."""
    return {name.split("/")[0] for name in vault.notes() if "/" in name and not name.endswith(".gitkeep")}


def subjects(vault: Vault) -> list[str]:
    return vault.git("log", "--reverse", "--format=%s").splitlines()[1:]


def assert_waits(vault: Vault) -> None:
    """The conversation is kept, can be recalled, and nothing was learned from it."""
    assert folders(vault) == {"episodes"}
    (text,) = (data.decode() for name, data in vault.notes().items() if name.startswith("episodes/"))
    assert "extracted" not in frontmatter.parse(text).fields
    assert [turn.text for turn in episodes.parse_turns(frontmatter.parse(text).body)] == list(SAID)
    with vault.memory() as memory:
        assert any("laundry" in hit.text for hit in memory.recall("laundry basket").hits)
        assert_verified(memory)
    assert vault.status() == ""


def put_aside(vault: Vault) -> list[SimpleNamespace]:
    return read_quarantine(state_folder(vault.root))


def read_quarantine(state) -> list[SimpleNamespace]:
    """The answers that were set aside, oldest first."""
    found = [
        json.loads(path.read_text("utf-8", "surrogatepass")) for path in sorted((state / "quarantine").glob("*.json"))
    ]
    return [SimpleNamespace(**{**one, "left_out": tuple(map(tuple, one["left_out"]))}) for one in found]


def quaid(capsys, vault, *arguments):
    code = main(["--vault", str(vault.root), *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def meanwhile(service, act: Callable[[], object]):
    """A step of the script: `act` happens while the model thinks."""

    def step():
        act()
        return json.dumps(service.value)

    return step
