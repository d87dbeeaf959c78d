"""The answer to an action: the address to go to and what is said there, or a page about what cannot be done."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

Context = Mapping[str, Any]
Form = Mapping[str, str]

SAID, COMMIT = "said", "commit"
"""The parts of an address that say what was just done, and by which commit."""
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OWN = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path on this host: browsers take a backslash for a slash, and two of them for a host."""


class Shown(NamedTuple):
    """A page in place of the one that was asked for, or of an action that cannot be done as it is: what was posted is
    on it and not lost; or, with the status 200, what the action has come to.
    """

    template: str
    context: Context
    status: int = 409


def go_to(address: str, said: str, commit: str | None = None) -> str:
    """Return an address of ours with what is said there, a key of `MESSAGES`, and the commit that can be undone."""
    place, _, part = address.partition("#")
    path, _, query = place.partition("?")
    kept = without_said(query)
    told = urlencode([*kept, (SAID, said), *([(COMMIT, commit)] if commit else [])])
    return f"{path}?{told}{f'#{part}' if part else ''}"


def without_said(query: str) -> list[tuple[str, str]]:
    """Return the names and values of a query but for what was just done."""
    return [pair for pair in parse_qsl(query) if pair[0] not in {SAID, COMMIT}]


def own_address(given: str) -> str | None:
    """Return an address that a form named, without its fragment; None where it may lead to another host."""
    if not _OWN.fullmatch(given):
        return None
    parts = urlsplit(given)
    return None if parts.netloc else f"{parts.path}{f'?{parts.query}' if parts.query else ''}"


def commit_id(given: str) -> str:
    """Return `given` where it is the whole id of a commit, else nothing."""
    return given if _COMMIT_ID.fullmatch(given) else ""
