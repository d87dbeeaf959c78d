"""What a command says about a change it made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, one_line, styled

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult

MOST_SHOWN = 200
"""Characters of a note that a line about it repeats."""
_SAID = {
    "created": "Remembered",
    "confirmed": "Confirmed, it was known already",
    "linked": "Linked",
    "known": "Linked already, nothing changed",
    "forgotten": "Forgotten",
    "restored": "Restored",
    "kept": "Kept",
    "unchanged": "It is there already, nothing changed",
    "set": "Set",
    "made": "Made",
    "registered": "Registered",
    "confirmed true": "Noted as true",
}


def tell_written(invocation: Invocation, written: WriteResult) -> None:
    """The outcome in words, or `WriteResult` as JSON."""
    invocation.tell(lambda: _render(written), **as_shape(written))
    if written.left:
        warn_left(invocation, written.left)
    warn_redacted(invocation, written.redacted)
    if written.hint:
        invocation.say(written.hint)


def as_shape(written: WriteResult) -> dict[str, object]:
    """The fields of `WriteResult` by name."""
    return {
        "outcome": written.outcome,
        "id": written.id,
        "path": written.path,
        "text": written.text,
        "commit": written.commit,
        "created": list(written.created),
        "left": list(written.left),
        "hint": written.hint,
        "redacted": dict(Counter(written.redacted)),
    }


def warn_left(invocation: Invocation, left: tuple[str, ...]) -> None:
    """Some paths could not be committed without the owner's own work: name them and the way out."""
    invocation.say(
        f"On disk but not committed, because your own uncommitted changes are in it: {', '.join(left)}. "
        "Commit it yourself: git add -p && git commit"
    )


def warn_redacted(invocation: Invocation, kinds: Sequence[str]) -> None:
    """Which secrets were not written."""
    if kinds:
        found = ", ".join(f"{number} {kind}" for kind, number in Counter(kinds).items())
        invocation.say(f"Secrets were replaced before anything was written: {found}.")


def _render(written: WriteResult) -> str:
    details: list[tuple[str, ...]] = [("id", written.id)] if written.id != written.path else []
    details.append(("path", written.path))
    if written.created:
        details.append(("new", ", ".join(written.created)))
    if written.commit:
        details.append(("commit", written.commit[:10]))
    body = "\n".join(f"  {line}" for line in columns(details).splitlines())
    text = shorten(one_line(written.text), MOST_SHOWN, placeholder=" …")
    return f"{styled(_SAID[written.outcome], 'green')}: {text}\n{body}"
