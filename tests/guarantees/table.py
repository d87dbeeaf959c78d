"""The guarantees in figures: how often each promise was put to the test, and how often it was broken.

python tests/guarantees/table.py            # some minutes; prints a table in markdown and the figures as one line of JSON
python tests/guarantees/table.py --short    # some rounds of each
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import measures

HERE_PAIRS = measures.TESTS / "base" / "claim_pairs.tsv"
OTHER_PAIRS = (
    Path(os.environ.get("QUAID_DATA", measures.TESTS.parents[1] / "shared" / "data")) / "cases/claim_pairs.tsv"
)
ROADS = {
    "tool output": "what a tool returned was learned as the owner's word, by a model that obeys all it reads",
    "assistant": "what the assistant repeated of a page was learned as the owner's word, by the same",
    "pulled": "a teammate's fact that says it is verified and the owner's was recalled as the owner's word",
    "shown": "shown to an agent outside the frame of memories, or with a mark in it that acts on its reader",
    "pasted": "not promised: what the owner pasted into a prompt was learned as their word, by a model that obeys",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    is_short = parser.parse_args().short
    started = time.monotonic()
    found = measure(is_short=is_short)
    print("\n".join(render(found)))
    print(f"\n{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {time.monotonic() - started:.0f} s")
    print(json.dumps(found))
    sys.exit(any(row["broken"] for _, row in list_promises(found)))


def measure(*, is_short: bool) -> dict[str, Any]:
    """By promise: `of`, `broken` and more."""
    sets = {"made by changing a word or two": measures.make_pairs(), "of the tests": measures.list_pairs(HERE_PAIRS)}
    if OTHER_PAIRS.exists():
        sets["reported by users"] = measures.list_pairs(OTHER_PAIRS)
    merges = {name: measures.count_wrong_merges(pairs, is_short=is_short) for name, pairs in sets.items()}
    return {
        "merges": merges,
        "private": measures.count_leaks(is_short=is_short),
        "stale": measures.count_stale_answers(2 if is_short else 40),
        "purge": measures.count_residue(),
        "writes": measures.count_lost_writes(4 if is_short else 100),
        "poison": measures.count_poison(is_short=is_short),
        "outside": measures.count_bytes_out(),
    }


def list_promises(found: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """What must be 0, by name. What the owner pastes is none of it: a model that obeys takes it for theirs."""
    others = [(name, row) for name, row in found.items() if name not in {"poison", "merges"}]
    roads = [(road, {"broken": found["poison"][road]["got through"]}) for road in ROADS if road != "pasted"]
    return [*found["merges"].items(), *others, *roads]


def render(found: dict[str, Any]) -> list[str]:
    """Lines of a table in markdown."""
    rows = []
    for said, row in found["merges"].items():
        how = "two statements that differ, told one after the other, became one fact"
        if row["equal pairs"]:
            how += f"; of {row['equal pairs']} pairs that say the same, {row['equal ones kept apart']} stayed two"
        rows.append(
            (f"wrong merges, pairs {said}", f"{row['broken']} of {row['of']} ({row['per 1,000']:g} per 1,000)", how)
        )
    row = found["private"]
    rows.append(("answers that tell of a private note", f"{row['broken']} of {row['of']:,}",
                 f"{row['private notes']} private notes of one owner, another one asks: {_list(row['doors'])}"))  # fmt: skip
    row = found["stale"]
    rows.append(("answers that were out of date", f"{row['broken']} of {row['of']}",
                 f"a note was saved by an editor and asked about at once: {_list(row['doors'])}"))  # fmt: skip
    row = found["purge"]
    rows.append(("places that keep a purged text", f"{row['broken']} of {row['of']}",
                 "planted in files, names, history, stashes, state and logs; looked for by another search than purge's own"))  # fmt: skip
    row = found["writes"]
    rows.append(("acknowledged writes that were lost", f"{row['broken']} of {row['of']:,}",
                 f"{row['kills']} writers killed at any moment, alone or with their git"))  # fmt: skip
    for road, said in ROADS.items():
        row = found["poison"][road]
        how = f"{said}; {row['held out']} of them held out"
        rows.append((f"poisoned memories, {road}", f"{row['got through']} of {row['payloads']}", how))
    row = found["poison"]["harmless"]
    broken = f"{row['refused']} not learned, {row['changed when stored']} stored otherwise, {row['changed when shown']} shown with a mark"
    rows.append(
        (
            "harmless texts",
            f"{broken}, of {row['texts']}",
            "wishes, standing orders, recipes, notes on security, in 12 languages",
        )
    )
    row = found["outside"]
    control = sum(row["control"].values()) if "control" in row else 0
    rows.append(("connections, datagrams and bytes that left", "not measured" if row["broken"] is None else f"{row['broken']} in {row['of']} commands",
                 f"the kernel's counters in a network of its own; they count {control} for one connection and one datagram"))  # fmt: skip
    return ["| promise | broken | how |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{door} {count}" for door, count in counts.items())


if __name__ == "__main__":
    main()
