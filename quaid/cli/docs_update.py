"""`quaid docs update`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quaid.cli.invocation import Invocation, complain
from quaid.cli.terminal import coloured, count, print_exactly, styled
from quaid.cli.write_output import warn_left
from quaid.errors import QuaidError

if TYPE_CHECKING:
    from quaid.docs.documentation import Documentation
    from quaid.docs.updater import AppliedUpdate, ProposedUpdate


def update(
    invocation: Invocation, documentation: Documentation, references: Sequence[str], project: str | None,
    *, yes: bool, patch: bool,
) -> int:  # fmt: skip
    """Propose updates, and carry them out where that is wanted."""
    from quaid.docs.updater import ProposedUpdate, render_patch

    shapes: list[dict[str, object]] = []
    failed = 0
    for found in documentation.propose(references, project):
        if not isinstance(found, ProposedUpdate):
            complain(f"{found}")
            failed = 1
            continue
        shape = shape_of_proposal(found)
        if shape["still_true"] or not (yes and not patch):
            text = "" if shape["still_true"] else render_patch(found)
            shape["patch"] = text or None
            if not invocation.as_json:
                _print(invocation, text if patch else _render(found, text), exactly=patch)
        else:
            try:
                done = documentation.apply(found)
            except QuaidError as error:
                shape["error"] = {"code": error.code, "message": str(error)}
                complain(f"{error}")
                failed = 1
            else:
                shape |= {"commit": done.commit, "branch": done.branch.branch if done.branch else None}
                _tell_done(invocation, found, done)
        shapes.append(shape)
    if invocation.as_json:
        invocation.answer(docs=shapes)
    elif not shapes and not failed:
        invocation.print("Nothing to do: no document is stale.")
    if any(not shape["still_true"] for shape in shapes) and not yes and not patch:
        invocation.say("Nothing was changed. Carry it out with: quaid docs update --yes (the model is not asked again)")
    return failed


def _print(invocation: Invocation, text: str, *, exactly: bool) -> None:
    if exactly:  # for git, to which a control character is one of the file's
        print_exactly((text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
    else:
        invocation.print(text)


def shape_of_proposal(proposal: ProposedUpdate) -> dict[str, object]:
    """A proposal as JSON."""
    from quaid.docs.updates import StillTrue

    update = proposal.update
    edits = (
        []
        if isinstance(update, StillTrue)
        else [{"find": update.before[e.start : e.end], "replace": e.new, "reason": e.reason} for e in update.edits]
    )
    return {
        "id": proposal.stale.doc.id,
        "still_true": isinstance(update, StillTrue),
        "summary": update.summary,
        "edits": edits,
        "model": update.model,
        "prompt": update.prompt,
    }


def _render(proposal: ProposedUpdate, patch: str) -> str:
    head = f"{styled(proposal.stale.doc.id, 'bold')}: {proposal.update.summary or 'true as it is'}"
    lines = [
        coloured(line) for line in patch.splitlines() if not line.startswith(("diff --git", "index ", "--- ", "+++ "))
    ]
    return "\n".join([head, *lines])


def _tell_done(invocation: Invocation, proposal: ProposedUpdate, done: AppliedUpdate) -> None:
    edits = len(proposal.update.edits) if hasattr(proposal.update, "edits") else 0
    what = f"{styled('Updated', 'green')}: {done.doc.id}, {count(edits, 'passage')}"
    if not invocation.as_json:
        invocation.print(f"{what}\n  commit  {done.commit[:10]}" if done.commit else what)
        if done.branch is not None:
            invocation.print(f"  branch  {done.branch.branch}")
            invocation.say(f"Look at it and merge it: git -C {done.doc.folder} merge {done.branch.branch}")
    if done.left:
        warn_left(invocation, done.left)
