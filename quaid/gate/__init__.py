"""The gate before disk: what goes into a note or a commit comes through here, and no secret does.

A secret is replaced by a placeholder that names its kind, `[redacted: github-pat]`. What secrets look like is known
elsewhere, and costs a twentieth of a second to load: most of what is said needs but a glance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from quaid.gate.private import without_private

_HINTS = (
    *("pass", "pw", "kennwort", "contrase", "pin", "psk", "sig", "secret", "token", "key", "phrase", "mnemonic"),
    *("cred", "login", "user", "://", "authorization", "bearer", "x-a", " -p", " -u", "identified"),
)
"""Without one of these words, or a run that could be a key, nothing is a secret."""
_LONG_RUN = re.compile(r"[\w~.:/+=-]{20}|-----")


@dataclass(frozen=True, slots=True)
class Admitted:
    """A text as it may be written, and the kind of each secret that was taken out, in order of appearance."""

    text: str
    redacted: tuple[str, ...]


def admit(text: str, *, keep_lines: bool = False) -> Admitted:
    """`text` without `<private>` spans and secrets; all else stays as it is, with `keep_lines` also the number of each
    line: what is taken out leaves its newlines. Pure, idempotent, raises nothing.
    """
    text = without_private(text, keep_lines=keep_lines)
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS) and not _LONG_RUN.search(text):
        return Admitted(text, ())
    from quaid.gate.redacting import redact

    return Admitted(*redact(text, keep_lines=keep_lines))


def admit_all(value: Any) -> tuple[Any, tuple[str, ...]]:
    """`value`, of JSON's types, with every string in it admitted, and the kinds of what was taken out."""
    kinds: list[str] = []

    def admitted(part: Any) -> Any:
        if isinstance(part, str):
            found = admit(part)
            kinds.extend(found.redacted)
            return found.text
        if isinstance(part, dict):
            return {admitted(key): admitted(inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [admitted(inner) for inner in part]
        return part

    return admitted(value), tuple(kinds)
