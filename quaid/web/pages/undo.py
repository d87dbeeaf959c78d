"""Undo: one click takes back a commit, whoever made it, or a night."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quaid.web.answer import Form, go_to, own_address

if TYPE_CHECKING:
    from starlette.requests import Request

    from quaid.memory import Memory


def undo(memory: Memory, form: Form, _: Request) -> str:
    """Take back the commit or night that the form names, but for what was changed since; return the way back, or to the
    commit that did it.

    Raises:
        BadInputError: there is no such commit, or nothing of it can be taken back.
    """
    reference = form.get("commit", "")
    done = memory.timeline.undo(reference, anybodys=True)
    said = "nothing_undone" if done.commit is None else "undone_partly" if done.kept else "undone"
    if back := own_address(form.get("back", "")):
        return go_to(back, said, done.commit)
    return go_to(f"/change/{done.commit or done.commits[0].id}", said)
