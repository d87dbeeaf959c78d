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


def find_conflicts(data: bytes, *sides: bytes) -> list[bytes]:
    """Return the conflicts in `data`, marks included. Marks that one of the merged `sides` has are text."""
    found = (region[0] for region in _REGION.finditer(data)) if b"<<<<<<<" in data else ()
    return [region for region in found if not any(region in side for side in sides)]


def choose_side(data: bytes, side: Side, *sides: bytes) -> bytes:
    """Return `data` with `side` of each conflict; of both sides that are equal, one."""
    conflicts = find_conflicts(data, *sides)

    def chosen(region: re.Match[bytes]) -> bytes:
        if region[0] not in conflicts:
            return region[0]
        if side != "both":
            return region[side]
        return region["ours"] + (region["theirs"] if region["theirs"] != region["ours"] else b"")

    return _REGION.sub(chosen, data)
