"""Eight processes at one vault: nothing lost, nothing locked, nothing said on stderr.

`QUAID_STRESS_S=30 pytest tests/sync/test_processes.py` runs longer.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from vaults import Vault, assert_verified

from quaid.place import state_folder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("calm")]

STRESS_S = float(os.environ.get("QUAID_STRESS_S", "6"))
WORKER = """
import json, random, sys, time
from quaid import Memory
from quaid.errors import LockedError, NoteChangedError
from quaid.model import Turn

role, number, root, until = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
dice = random.Random(f"{role} {number}")
talk = []

def tell(**told):
    print(json.dumps(told), flush=True)

def patiently(call):
    while True:
        try:
            return call()
        except (LockedError, NoteChangedError):
            tell(busy=True)

def write(memory, turn):
    word = f"q{number}x{turn}y"
    kinds = ["remember", "extract", "link", "again", "remember"]
    kind = dice.choice(kinds) if turn else kinds[number]  # on a busy machine a writer may come to no second turn
    if kind == "remember":
        made = patiently(lambda: memory.remember(f"Maya said {word} to everybody"))
        tell(fact=made.id, text=word)
        answer = memory.recall(word, keyword_only=True)
        # By its path: an editor that saves the note in place empties it for a moment, and then it has no id.
        if not any(hit.path == made.path for hit in answer.hits):
            tell(unseen=word, degraded=answer.degraded, trace=str(answer.trace))
    elif kind == "again":
        tell(fact=patiently(lambda: memory.remember(f"Everybody knows story number {turn % 5} well")).id, shared=turn % 5)
    elif kind == "link":
        written = patiently(lambda: memory.link(f"Person {turn % 3}", "knows", f"Zoe {word}"))
        tell(edge=[f"Person {turn % 3}", f"Zoe {word}"])
    else:
        talk.extend([Turn("Maya", f"I heard {word}."), Turn("Assistant", f"From whom did you hear {word}?", "assistant")])
        kept = patiently(lambda: memory.extract(list(talk), session=f"session{number}"))
        tell(episode=kept.path, turns=len(talk), word=word)

def read(memory, turn):
    answer = memory.recall(dice.choice(["Maya said everybody", "Zoe", "story number", "Person 1 knows", "heard"]))
    tell(hits=len(answer.hits))

with Memory.open(root) as memory:
    turn = 0
    while turn == 0 or time.time() < until:
        (write if role == "writer" else read)(memory, turn)
        turn += 1
"""


class Editor:
    """The owner at an editor that saves by renaming or in place, in own notes and in facts."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.dice = random.Random(1)
        self.own: dict[str, bytes] = {}
        self.marks: dict[Path, list[str]] = {}
        self.saves = 0

    def save_something(self) -> None:
        self.saves += 1
        if self.saves % 2:
            name = f"Garden {self.dice.randrange(5)}.md"
            self.own[name] = f"# Garden\n\nSave number e{self.saves}z of the roses.\n".encode()
            self._save(self.vault.root / name, self.own[name])
            return
        facts = sorted((self.vault.root / "facts").rglob("maya-said-*.md"))
        persons = sorted((self.vault.root / "entities").glob("Person ?.md"))  # which the writers link all the time
        if facts and persons:
            path = self.dice.choice(self.dice.choice([facts, persons]))
            mark = f"e{self.saves}z"
            data = path.read_bytes()
            self._save(path, data.rstrip(b"\n") + f"\n\nMarked {mark}.\n".encode())
            self.marks.setdefault(path, []).append(mark)

    def _save(self, path: Path, data: bytes) -> None:
        if self.dice.random() < 0.3:
            with path.open("wb") as file:
                time.sleep(0.05)
                file.write(data)
            return
        draft = path.with_name(f".{path.name}.draft")
        draft.write_bytes(data)
        draft.replace(path)


def test_eight_processes_lose_nothing_and_disturb_nobody(vault: Vault, tmp_path: Path) -> None:
    until = time.time() + STRESS_S
    workers = [
        _start(tmp_path, vault, role, n, until) for role, count in (("writer", 4), ("reader", 2)) for n in range(count)
    ]
    watch = _start_watch(tmp_path, vault)
    editor = Editor(vault)
    try:
        while time.time() < until:
            editor.save_something()
            time.sleep(0.02)
        told = [line for name, process in workers for line in _finish(tmp_path, name, process)]
    finally:
        for process in (watch, *(process for _, process in workers)):
            process.send_signal(signal.SIGTERM)
    assert watch.wait(20) == 0
    assert (tmp_path / "watch.err").read_text() == ""

    _assert_nothing_lost(vault, editor, told)
    vault.assert_sound()
    dirty = {line[3:].strip('"') for line in vault.run("status", "--porcelain", "-uall").stdout.decode().splitlines()}
    edited = {path.relative_to(vault.root).as_posix() for path in editor.marks} | set(editor.own)
    assert dirty <= edited
    assert vault.run("diff", "--cached", "--quiet", check=False).returncode == 0
    counts = Counter(key for line in told for key in line if key in {"fact", "edge", "episode", "hits", "busy"})
    print(
        f"\n{STRESS_S:g} s: {dict(counts)}, {editor.saves} saves, {len(vault.git('log', '--format=%h').split())} commits"
    )
    assert min(counts[key] for key in ("fact", "edge", "episode", "hits")) >= 1


def _assert_nothing_lost(vault: Vault, editor: Editor, told: list[dict[str, object]]) -> None:
    notes = {name: data.decode() for name, data in vault.notes().items()}
    everything = "\n".join(notes.values())
    assert [line for line in told if "unseen" in line and "stale" not in line["degraded"]] == []  # type: ignore[operator]
    for line in told:
        if "fact" in line:
            assert re.search(rf"^id: {line['fact']}$", everything, re.MULTILINE), line
        if "edge" in line:
            subject, target = line["edge"]  # type: ignore[misc]
            note = f"entities/{subject}.md"
            assert f"knows [[{target}]]" in notes[note] + vault.git("show", f"HEAD:{note}"), line
            assert f"entities/{target}.md" in notes, line
        if "episode" in line:
            assert str(line["word"]) in notes[str(line["episode"])], line
    shared = [line["shared"] for line in told if "shared" in line]
    for number in set(shared):
        assert sum(f"Everybody knows story number {number} well" in text for text in notes.values()) == 1
    for name, data in editor.own.items():
        assert (vault.root / name).read_bytes() == data
    for path, marks in editor.marks.items():
        text = path.read_text()
        assert [mark for mark in marks if mark not in text] == [], path
    for name, text in notes.items():
        if name.startswith("episodes/"):
            numbers = [int(number) for number in re.findall(r"\^t(\d+)$", text, re.MULTILINE)]
            assert numbers == list(range(1, len(numbers) + 1)), name


def _start(tmp_path: Path, vault: Vault, role: str, number: int, until: float) -> tuple[str, subprocess.Popen[bytes]]:
    name = f"{role}{number}"
    command = [sys.executable, "-c", WORKER, role, str(number), str(vault.root), str(until)]
    with (tmp_path / f"{name}.out").open("wb") as out, (tmp_path / f"{name}.err").open("wb") as err:
        return name, subprocess.Popen(command, stdout=out, stderr=err)


def _start_watch(tmp_path: Path, vault: Vault) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "quaid.cli.main", "--vault", str(vault.root), "-q", "watch"]
    with (tmp_path / "watch.err").open("wb") as err:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)


def _finish(tmp_path: Path, name: str, process: subprocess.Popen[bytes]) -> list[dict[str, object]]:
    code = process.wait(60)
    assert (tmp_path / f"{name}.err").read_text() == "", name
    assert code == 0, name
    return [json.loads(line) for line in (tmp_path / f"{name}.out").read_text().splitlines()]


def test_two_processes_that_begin_an_index_at_once_agree(vault: Vault) -> None:
    script = (
        "import sys; from quaid import Memory\nwith Memory.open(sys.argv[1]) as m: print(len(m.recall('soul').hits))"
    )
    for number in range(60):
        vault.write_fact(f"n{number}", f"Maya said word{number} once.")
    for _ in range(2):
        for suffix in ("", "-wal", "-shm"):
            Path(f"{state_folder(vault.root)}/index.db{suffix}").unlink(missing_ok=True)
        started = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(vault.root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for _ in range(5)
        ]
        for process in started:
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err) == (0, b"")
    with vault.memory() as memory:
        assert_verified(memory)
