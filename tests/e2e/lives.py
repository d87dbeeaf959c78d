"""A vault that knows Maya, what she tells her agent, and what of it is in the vault afterwards."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from replay import facts_of
from vaults import Vault, copy_vault

from quaid.vault import frontmatter

NEWS = "By the way, yesterday I adopted a quokka called Biscuit."
LEARNED = "Maya Chen adopted a quokka called Biscuit."


def furnish(root: Path) -> Vault:
    """A vault that knows Maya."""
    vault = copy_vault(root)
    vault.write("USER.md", "# User\n\nMaya Chen is a potter in Berlin.\n")
    vault.write("studio.md", "# Studio\n\nThe kiln of Maya cools down for nine hours.\n")
    vault.save("Maya introduces herself")
    with vault.memory() as memory:
        memory.remember("Maya Chen takes oat milk in her coffee")
        memory.remember("Ines, the sister of Maya Chen, lives in Porto")
    return vault


def read_of(prompt: str) -> str:
    """What a model is to learn from, without what came before it."""
    return prompt.rpartition("<conversation>")[2]


def learn_the_news(question: str) -> dict:
    """What a model learns from a conversation: the news, once they are in what it is shown."""
    told = re.search(r"\b(t\d+)\b[^\n]*\n?[^\n]*quokka", read_of(question))
    answer = facts_of(LEARNED if told else "")
    answer["facts"] = [{**fact, "turns": [told[1]]} for fact in answer["facts"] if told]
    return answer


def episodes(vault: Vault) -> list[str]:
    return [data.decode() for name, data in vault.notes().items() if name.startswith("episodes/")]


def facts(vault: Vault, text: str) -> list[dict]:
    """The heads of the facts that say `text`."""
    found = [data.decode() for name, data in vault.notes().items() if name.startswith("facts/")]
    return [dict(frontmatter.parse(note).fields) for note in found if text in note]


def workers(vault: Vault) -> list[int]:
    """Processes that run for this vault."""
    marker, found = f"QUAID_HOME={vault.root}".encode(), []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if marker in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
    return found


LIMIT_S = 300.0
"""No prompt, server or hook takes longer on the busiest machine; usual are some seconds."""
PROGRAMS = {
    name: shutil.which(os.environ.get(variable) or name)
    for name, variable in {"codex": "QUAID_CODEX_BIN", "gemini": "QUAID_GEMINI_BIN"}.items()
}
"""Looked for once: a calm test has no QUAID_… any more."""


def find_program(name: str) -> Path:
    found = PROGRAMS[name]
    if found is None:
        pytest.skip(f"needs the real program: put `{name}` on PATH, or name it in QUAID_{name.upper()}_BIN")
    return Path(found).absolute()
