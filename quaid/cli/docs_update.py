"""`quaid docs update`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quaid.cli.change_output import warn_left
from quaid.cli.invocation import Invocation, fields, print_error
from quaid.cli.terminal import coloured, count, known, print_exactly, short, styled, titled
from quaid.errors import QuaidError

if TYPE_CHECKING:
    from quaid.docs.documentation import Documentation
    from quaid.docs.updater import AppliedUpdate, ProposedUpdate


def update(
    invocation: Invocation, documentation: Documentation, references: Sequence[str], project: str | None,
    *, yes: bool, patch: bool,
) -> int:  # fmt: skip
    """Propose updates, and carry them out with `yes`; return the exit code."""
    from quaid.docs.updater import ProposedUpdate, render_patch

    shapes: list[dict[str, object]] = []
    failed = 0
    for found in documentation.propose(references, project):
        if not isinstance(found, ProposedUpdate):
            print_error(f"{found}")
            failed = 1
            continue
        shape = shape_of_proposal(found)
        if shape["still_true"] or not (yes and not patch):
            text = "" if shape["still_true"] else render_patch(found)
            shape["patch"] = text or None
            _show(invocation, found, text, patch=patch)
        else:
            try:
                done = documentation.apply(found)
            except QuaidError as error:
                shape["error"] = {"code": error.code, "message": str(error)}
                print_error(f"{error}")
                failed = 1
            else:
                shape |= {"commit": done.commit, "branch": done.branch.branch if done.branch else None}
                _tell_done(invocation, found, done)
        shapes.append(shape)
    if invocation.as_json:
        invocation.print_json(docs=shapes)
    elif not shapes and not failed:
        invocation.print("Nothing to do: no document is stale.")
    if any(not shape["still_true"] for shape in shapes) and not yes and not patch:
        invocation.notify(
            "Nothing was changed. Carry it out with: quaid docs update --yes (the model is not asked again)"
        )
    return failed


def shape_of_proposal(proposal: ProposedUpdate) -> dict[str, object]:
    """A proposal as JSON."""
    from quaid.docs.updates import StillTrue

    update = proposal.update
    edits = []
    if not isinstance(update, StillTrue):
        edits = [{"find": update.before[e.start : e.end], "replace": e.new, "reason": e.reason} for e in update.edits]
    return {
        "id": proposal.stale.doc.id,
        "still_true": isinstance(update, StillTrue),
        "summary": update.summary,
        "edits": edits,
        **fields(update, "model", "prompt"),
    }


def _show(invocation: Invocation, proposal: ProposedUpdate, text: str, *, patch: bool) -> None:
    if invocation.as_json:
        return
    if patch:  # for git, to which a control character is one of the file's
        print_exactly((text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"))
        return
    head = f"{styled(proposal.stale.doc.id, 'bold')}: {proposal.update.summary or 'true as it is'}"
    headers = ("diff --git", "index ", "--- ", "+++ ")
    invocation.print("\n".join([head, *(coloured(row) for row in text.splitlines() if not row.startswith(headers))]))


def _tell_done(invocation: Invocation, proposal: ProposedUpdate, done: AppliedUpdate) -> None:
    edits = len(proposal.update.edits) if hasattr(proposal.update, "edits") else 0
    head = f"{styled('Updated', 'green')}: {done.doc.id}, {count(edits, 'passage')}"
    branch = done.branch.branch if done.branch else None
    if not invocation.as_json:
        invocation.print(titled(head, known(("commit", short(done.commit)), ("branch", branch))))
        if branch:
            invocation.notify(f"Look at it and merge it: git -C {shlex.quote(str(done.doc.folder))} merge {branch}")
    warn_left(invocation, done.left)
