"""usage/<device>.tsv: how often each memory was recalled, one file per device, written by that device alone.

A line is `id TAB accesses TAB last_access TAB strength`, sorted by id. The counters are totals since the device began
and accesses only grow (a state-based counter: Shapiro, Preguiça, Baquero & Zawirski, "A comprehensive study of
convergent and commutative replicated data types", 2011). So two devices are merged by adding, and of two versions of
one device's line the later holds all that the earlier knew: nothing is lost or counted twice, in whatever order clones
meet, and even a merge that keeps both lines (`merge=union`) reads right.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from quaid.model import Use
from quaid.vault import files
from quaid.vault.layout import DEFAULT, Layout

USAGE_DIR = "usage"
_SUFFIX = ".tsv"
# Compiled when a ledger is read: most recalls read none.
_LINE = (
    r"(?P<id>[^\t]+)\t(?P<accesses>[0-9]{1,15})\t"
    r"(?P<last_access>(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?)\t"
    r"(?P<strength>-?[0-9]{1,9}(?:\.[0-9]{1,4})?)"
)
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = {written: char for char, written in _ESCAPES.items()}


def parse_ledger(data: bytes) -> tuple[dict[str, Use], int]:
    """Return a device's counters by memory id, and the number of lines that could not be read and were left out. Of
    two lines about one memory the later state counts.
    """
    rows: dict[str, Use] = {}
    broken = 0
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if not line.strip():
            continue
        try:
            found = re.fullmatch(_LINE, line.removesuffix(b"\r").decode())
            note_id = re.sub(r"\\.?", lambda escape: _ESCAPED[escape[0]], found["id"]) if found else ""
        except (UnicodeDecodeError, KeyError):
            found = None
        if found is None:
            broken += 1
            continue
        use = Use(int(found["accesses"]), found["last_access"] or None, float(found["strength"]))
        rows[note_id] = later(rows[note_id], use) if note_id in rows else use
    return rows, broken


def render_ledger(rows: Mapping[str, Use]) -> bytes:
    """The file of `rows`: equal rows give equal bytes, and a changed counter changes one line."""
    lines = []
    for note_id, use in sorted(rows.items()):
        written = re.sub(r"[\\\t\n\r]", lambda char: _ESCAPES[char[0]], note_id)
        lines.append(f"{written}\t{use.accesses}\t{use.last_access or ''}\t{round(use.strength, 4) + 0.0:.4f}\n")
    return "".join(lines).encode()


def later(one: Use, other: Use) -> Use:
    """Return the later of two states of one counter on one device.

    A recall raises `accesses`; between two recalls strength can only have been taken away.
    """
    return max(one, other, key=lambda use: (use.accesses, use.last_access or "", -use.strength))


def merge_versions(one: Mapping[str, Use], other: Mapping[str, Use]) -> dict[str, Use]:
    """Two versions of the same device's ledger as one."""
    return {**one, **{note_id: later(one.get(note_id, use), use) for note_id, use in other.items()}}


def ledger_path(device: str, place: Layout = DEFAULT) -> str:
    """`usage/maya-laptop-7k3q.tsv`"""
    return place.place(f"{USAGE_DIR}/{device}{_SUFFIX}")


def list_ledgers(root: Path, place: Layout = DEFAULT) -> dict[str, str]:
    """Device -> a stamp that changes when its ledger does. Opens no file: this is asked on every recall."""
    stamps = {}
    try:
        with os.scandir(root / place.place(USAGE_DIR)) as found:
            for entry in found:
                if entry.name.endswith(_SUFFIX) and entry.name[0] != "." and entry.is_file(follow_symlinks=False):
                    stat = entry.stat(follow_symlinks=False)
                    stamp = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"
                    stamps[entry.name.removesuffix(_SUFFIX)] = stamp
    except FileNotFoundError:  # no device has folded yet
        return {}
    return stamps


def read_ledger(root: Path, device: str, place: Layout = DEFAULT) -> tuple[dict[str, Use], int]:
    """Return the ledger of `device` as `parse_ledger`; empty when it is gone."""
    data = files.read_note(root, ledger_path(device, place))
    return ({}, 0) if data is None else parse_ledger(data)
