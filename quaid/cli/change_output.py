"""The outcome of a change, in words and as JSON, with remarks on what was left or redacted."""

from collections import Counter
from collections.abc import Sequence
from textwrap import shorten

from quaid.capture.writer import WriteResult
from quaid.cli.invocation import Invocation
from quaid.cli.terminal import known, one_line, short, styled, titled
from quaid.shapes import json_object
from quaid.vault.transaction import list_uncommitted

MAX_SHOWN = 200
"""Characters of a note that a line about it repeats."""
_OUTCOMES = {
    "created": "Remembered",
    "confirmed": "Already remembered",
    "linked": "Linked",
    "known": "Already linked",
    "forgotten": "Forgotten",
    "restored": "Restored",
    "edited": "Edited",
    "kept": "Kept",
    "unchanged": "Unchanged",
    "set": "Set",
    "made": "Made",
    "registered": "Registered",
    "confirmed true": "Noted as true",
}


def tell_written(invocation: Invocation, written: WriteResult) -> None:
    """Print the outcome in words, or `WriteResult` as JSON, and remark on what the owner should know."""
    rows = known(
        ("id", written.id if written.id != written.path else None),
        ("path", written.path),
        ("new", ", ".join(written.created)),
        ("commit", short(written.commit)),
    )
    text = shorten(one_line(written.text), MAX_SHOWN, placeholder=" …")
    head = f"{styled(_OUTCOMES[written.outcome], 'green')}: {text}"
    names = ("outcome", "id", "path", "text", "commit", "created", "left", "hint")
    invocation.respond(titled(head, rows), **json_object(written, *names, redacted=Counter(written.redacted)))
    refusal = warn_left(invocation, written.left)
    warn_redacted(invocation, written.redacted)
    if written.hint and written.hint != refusal:
        invocation.notify(written.hint)


def warn_left(invocation: Invocation, left: Sequence[str]) -> str:
    """Name the paths that are not committed, because git refused or for the owner's own work in them, and the way out;
    return why git refused.
    """
    waiting = list_uncommitted(invocation.root) if left and invocation.root else []
    reasons = {edit.rel_path: each.reason for each in waiting for edit in each.change.edits}
    refusal = next((reasons[path] for path in left if path in reasons), "")
    if refusal:
        invocation.notify(f"On disk, but not committed yet: {refusal} The next write of Quaid commits it.")
    if own := [path for path in left if path not in reasons]:
        invocation.notify(
            f"On disk but not committed, because your own uncommitted changes are in it: {', '.join(own)}. "
            "Commit it yourself: git add -p && git commit"
        )
    return refusal


def warn_redacted(invocation: Invocation, kinds: Sequence[str]) -> None:
    """Name the secrets that were not written."""
    if kinds:
        found = ", ".join(f"{number} {kind}" for kind, number in Counter(kinds).items())
        invocation.notify(f"Secrets were replaced before anything was written: {found}.")
