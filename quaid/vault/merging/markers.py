"""A text with the marks of a merge conflict in it -> one without: of each place one side, or both."""

from __future__ import annotations

import re
from typing import Literal

Side = Literal["ours", "theirs", "both"]
SIDES: tuple[Side, ...] = ("ours", "theirs", "both")
_REGION = re.compile(
    rb"^(?P<open><{7,})(?: [^\r\n]*)?\r?\n(?P<ours>.*?)"
    rb"(?:^\|{7,}(?: [^\r\n]*)?\r?\n(?P<base>.*?))?"
    rb"^={7,}\r?\n(?P<theirs>.*?)^>{7,}(?: [^\r\n]*)?\r?(?:\n|\Z)",
    re.MULTILINE | re.DOTALL,
)


def has_markers(data: bytes) -> bool:
    """Return whether there is a whole conflict in `data`."""
    return b"<<<<<<<" in data and _REGION.search(data) is not None


def choose_side(data: bytes, side: Side) -> bytes:
    """Return `data` with `side` of each conflict; of both sides that are equal, one."""

    def chosen(region: re.Match[bytes]) -> bytes:
        if side != "both":
            return region[side]
        return region["ours"] + (region["theirs"] if region["theirs"] != region["ours"] else b"")

    return _REGION.sub(chosen, data)
