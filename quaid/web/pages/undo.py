"""Undo: one click takes back a commit, or a night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quaid.web.addresses import say

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory


def undo_change(memory: Memory, form: Mapping[str, str], _: Request) -> str:
    """Take back the commit or night that the form names, and return the way back, or to the commit that did it.

    Raises:
        BadInputError: it cannot be undone.
    """
    commit = form.get("commit", "")
    undone = memory.timeline.undo(commit)
    said = "undone" if undone.commit else "nothing-undone"
    return say(form.get("back") or f"/change/{undone.commit or undone.commits[0].id}", said)
