"""A vault with two facts, an entity, a conversation and a project, made once and copied for each test."""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from replay import write_talk
from vaults import copy_vault

from quaid.docs.registry import Project

MILK, HOME = "Maya takes oat milk in her coffee", "Maya lives in Lisbon with Tom"


@cache
def furnished() -> Path:
    folder = Path(mkdtemp(prefix="quaid-undo-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    vault = copy_vault(folder / "vault")
    with vault.memory() as memory:
        memory.remember(MILK)
        memory.remember(HOME)
        memory.link("Maya", "works_at", "Acme")
        memory.extract(write_talk(folder / "t.jsonl", "I sold the van.", "When?", "Last week.", session="s9"))
        memory.documentation.create(Project("boat"))
        memory.remember("Tom sails at night")
    vault.write("projects/boat/GUIDE.md", "# Guide\n\nThe boat has a red sail.\n")
    vault.save("mine")
    return vault.root
