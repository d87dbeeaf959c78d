"""Editors that save in every way there is, and Quaid's processes that write the same notes: are all saves there?

`aimed`: Quaid writes the note in the pause of a save. `crowd`: four writers and four editors at once.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path

from editors import SAVES
from ground import arguments, git, new_vault, show

PAUSES_S = (0.3, 1.0, 2.0)
EDITORS = WRITERS = 4


def main() -> None:
    options = arguments(__doc__ or "", "--no-leases")
    if options.no_leases:
        from quaid.vault import files

        files.is_written = lambda _: None
    rows: dict[str, dict[str, object]] = {}
    with new_vault() as root:
        make_people(root)
        for name in SAVES:
            rows[f"aimed {name}"] = aim(root, name, PAUSES_S)
    with new_vault() as root:
        make_people(root)
        rows["crowd"] = crowd(root, options.seconds, options.seed)
    rows["all"] = {key: sum(int(str(row[key])) for row in rows.values()) for key in rows["crowd"]}
    show("crowd", rows)
    sys.exit(1 if rows["all"]["saves lost"] or rows["all"]["writes lost"] else 0)


def make_people(root: Path) -> None:
    """The notes that everybody writes."""
    from quaid import Memory

    with Memory.open(root) as memory:
        for number in range(EDITORS):
            memory.link(f"Person {number}", "knows", "Maya")


def person(root: Path, number: int) -> Path:
    return root / "entities" / f"Person {number}.md"


def aim(root: Path, name: str, pauses_s: tuple[float, ...]) -> dict[str, object]:
    """Link a person in the pause of an editor's save, once for each pause, with a text before that git does not have."""
    from quaid import Memory
    from quaid.errors import QuaidError

    path, lines, refused = person(root, 0), [], 0
    with Memory.open(root) as memory:
        memory.link("Person 0", "knows", f"Zoe before {name}")
        for number, pause_s in enumerate(pauses_s):
            earlier, line = (f"{word} {name} {number} e.\n".encode() for word in ("Earlier", "Saved"))
            path.write_bytes(path.read_bytes() + earlier)
            editor = threading.Thread(target=SAVES[name], args=(path, line, pause_s))
            editor.start()
            time.sleep(0.05)
            try:
                memory.link("Person 0", "knows", f"Zoe {name} {number}")
            except QuaidError:
                refused += 1
            editor.join()
            lines += [line, earlier]
    set_aside, lost = look_for(root, [(path, line) for line in lines])
    figures = {"saves": len(pauses_s), "saves set aside": set_aside, "saves lost": lost}
    return {**figures, "writes": len(pauses_s), "refused": refused, "writes lost": 0}


def look_for(root: Path, marks: list[tuple[Path, bytes]]) -> tuple[int, int]:
    """How many of `marks` are not in their note: those that Quaid has set aside and named, and those that are lost."""
    from quaid import Memory
    from quaid.place import state_folder

    time.sleep(0.5)
    with Memory.open(root) as memory:
        memory.link("Somebody", "knows", f"Zoe {time.time_ns()}")
    kept = b"".join(path.read_bytes() for path in (state_folder(root) / "unfinished").rglob("*.md"))
    missing = [mark for path, mark in marks if mark.strip() not in path.read_bytes()]
    set_aside = sum(mark.strip() in kept for mark in missing)
    return set_aside, len(missing) - set_aside


def crowd(root: Path, seconds: float, seed: int) -> dict[str, object]:
    """Everybody at once for a while: each editor has a person's note to itself, each writer takes any."""
    until = time.time() + seconds
    told = root.parent / "told"
    told.mkdir()
    writers = [
        _fork_writer(root, told / str(number), until, random.Random(f"{seed} {number}")) for number in range(WRITERS)
    ]
    marks: list[list[bytes]] = [[] for _ in range(EDITORS)]
    editors = [
        threading.Thread(target=_edit, args=(person(root, number), until, random.Random(seed + number), marks[number]))
        for number in range(EDITORS)
    ]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join()
    for writer in writers:
        os.waitpid(writer, 0)
    set_aside, lost = look_for(
        root, [(person(root, number), mark) for number in range(EDITORS) for mark in marks[number]]
    )
    lines = [line for file in told.iterdir() for line in file.read_text().splitlines()]
    said = git(root, "log", "-p", "--format=").stdout + git(root, "diff").stdout
    done = [line.removeprefix("done ") for line in lines if line.startswith("done ")]
    return {
        "saves": sum(map(len, marks)),
        "saves set aside": set_aside,
        "saves lost": lost,
        "writes": len(lines),
        "refused": len(lines) - len(done),
        "writes lost": sum(word not in said for word in done),
    }


def _edit(path: Path, until: float, dice: random.Random, marks: list[bytes]) -> None:
    while time.time() < until:
        mark = f"e{len(marks)}z".encode()
        SAVES[dice.choice(list(SAVES))](path, b"Marked " + mark + b" here.\n", dice.choice((0.0, 0.02, 0.1, 0.3, 0.6)))
        marks.append(b"Marked " + mark + b" here.")
        time.sleep(dice.random() * 0.2)


def _fork_writer(root: Path, told: Path, until: float, dice: random.Random) -> int:
    if child := os.fork():
        return child
    from quaid import Memory
    from quaid.errors import QuaidError

    try:
        with told.open("w", buffering=1) as file, Memory.open(root) as memory:
            number = 0
            while time.time() < until:
                number += 1
                word = f"q{told.name}x{number}y"
                try:
                    if dice.random() < 0.8:
                        memory.link(f"Person {dice.randrange(EDITORS)}", "knows", f"Zoe {word}")
                    else:
                        memory.remember(f"Maya said {word} to everybody")
                except QuaidError as error:
                    print("refused", error.code, file=file)
                else:
                    print("done", word, file=file)
        os._exit(0)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
