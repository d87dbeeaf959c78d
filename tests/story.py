"""A year of somebody's memory, for pictures and for tests of pages: talks, facts, people, changes of mind, two nights.

What a model would answer is written down here; all else is done by Quaid itself, each thing at its day.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from janitor_context import Scripted
from janitor_facts import DIFFERENT, answer_pairs, pairs_in
from vaults import Vault, trust_vault

from quaid import Memory
from quaid.docs.registry import Project
from quaid.janitor.runner import RunOptions
from quaid.local.runs import Runs
from quaid.place import LOCAL_FILE, state_folder

Fact = dict[str, Any]


def fact(text: str, turns: str, *edges: str, kind: str = "fact", **fields: Any) -> Fact:
    """A fact as a model gives it; `edges` are `subject > relation > object`."""
    split = [dict(zip(("subject", "relation", "object"), edge.split(" > "), strict=True)) for edge in edges]
    return {
        "text": text, "turns": turns.split(), "category": kind, "confidence": 0.92, "source": "user",
        "durability": "immutable" if kind in {"event", "experience"} else "mutable", "edges": split, **fields,
    }  # fmt: skip


NAMES = {
    "person": ["Maya Chen", "Tom Okafor", "Ines Chen", "Dr. Ruiz", "Nadia Haddad", "Ben Sorensen"],
    "pet": ["Biscuit"],
    "place": ["Lisbon", "Porto", "Alfama", "Sesimbra"],
    "organization": ["Acme Maps", "Tidewater Labs", "Clube Naval"],
    "project": ["Harbour", "Kestrel"],
}
TALKS: dict[str, tuple[str, list[str], list[Fact]]] = {
    "new-flat": ("2025-11-14T19:10:00Z", [
        "We got the keys! The flat is in Alfama, tiny kitchen, but a window to the garden.",
        "Congratulations, Maya. Is Tom moving in at the same time?",
        "Yes, both of us, on the first of December. Ines lends us her van.",
        "Shall I note the date for the internet contract?",
        "Please. And remember that I take soy milk in my coffee, I have told every barista in Lisbon.",
    ], [
        fact("Maya Chen and Tom Okafor live in a flat in Alfama since 1 December 2025", "t1 t3", "Maya Chen > lives_in > Alfama",
             "Tom Okafor > lives_in > Alfama", "Maya Chen > partner_of > Tom Okafor", valid_from="2025-12-01"),
        fact("Ines Chen lends Maya Chen her van for the move on 1 December 2025", "t3", "Ines Chen > sibling_of > Maya Chen", kind="event", valid_from="2025-12-01"),
        fact("Maya Chen takes soy milk in her coffee", "t5", kind="preference"),
        fact("Alfama is a part of Lisbon", "t1", "Alfama > part_of > Lisbon"),
    ]),
    "dog": ("2026-01-09T18:20:00Z", [
        "We adopted a dog. He is called Biscuit, a beagle, two years old.",
        "How is he settling in?",
        "He sleeps in the hall and is afraid of the tram. Dr. Ruiz says he is overweight and should get 180 grams a day.",
        "Does he need anything soon?",
        "His second vaccination is due on the third of February. Tom walks him in the mornings, I do the evenings.",
    ], [
        fact("Maya Chen and Tom Okafor adopted Biscuit, a two-year-old beagle, in January 2026", "t1", "Maya Chen > has_pet > Biscuit", "Tom Okafor > has_pet > Biscuit", kind="event", valid_from="2026-01-05"),
        fact("Biscuit is afraid of the tram", "t3"),
        fact("Dr. Ruiz is Biscuit's vet", "t3", "Biscuit > patient_of > Dr. Ruiz"),
        fact("Biscuit gets 180 grams of food a day", "t3"),
        fact("Biscuit's second vaccination is due on 3 February 2026", "t5", kind="event", valid_from="2026-02-03"),
        fact("Tom Okafor walks Biscuit in the mornings, Maya Chen in the evenings", "t5"),
    ]),
    "harbour": ("2026-02-17T09:05:00Z", [
        "For Harbour we decided against Kafka: one Postgres, a queue table, SKIP LOCKED.",
        "What made the difference?",
        "Nadia ran both for a week. We have forty ships, not forty thousand. And nobody at Acme Maps wants to be on call for Kafka.",
        "Who keeps the charts service now?",
        "Ben, since Monday. He asked that pull requests stay under 300 lines.",
    ], [
        fact("Harbour uses one Postgres with a queue table and SKIP LOCKED instead of Kafka", "t1", "Harbour > uses > Postgres", kind="decision", project="harbour"),
        fact("Nadia Haddad compared Kafka and Postgres for Harbour for a week", "t3", "Nadia Haddad > works_on > Harbour", kind="event", project="harbour", valid_from="2026-02-09"),
        fact("Maya Chen works at Acme Maps", "t3", "Maya Chen > works_at > Acme Maps", valid_from="2024-05-01"),
        fact("Ben Sorensen keeps the charts service of Harbour since 16 February 2026", "t5", "Ben Sorensen > maintains > Harbour", "Ben Sorensen > works_at > Acme Maps", project="harbour", valid_from="2026-02-16"),
        fact("Pull requests for Harbour stay under 300 lines", "t5", kind="preference", project="harbour"),
        fact("Harbour is a project of Acme Maps", "t3", "Harbour > part_of > Acme Maps", "Nadia Haddad > works_at > Acme Maps", project="harbour"),
    ]),
    "sailing": ("2026-04-26T20:40:00Z", [
        "Tom started his sailing course at the Clube Naval, Sundays at nine.",
        "Is it the one in Sesimbra?",
        "Yes. I come along for the swimming. By the way, the oat milk experiment worked: no more soy for me.",
        "Noted: oat milk from now on.",
        "And Biscuit is down to eleven kilos. He gets 150 grams now.",
    ], [
        fact("Tom Okafor takes a sailing course at the Clube Naval in Sesimbra, Sundays at nine", "t1 t3", "Tom Okafor > member_of > Clube Naval", "Clube Naval > located_in > Sesimbra", valid_from="2026-04-19"),
        fact("Maya Chen takes oat milk in her coffee", "t3", kind="preference", valid_from="2026-04-26"),
        fact("Biscuit gets 150 grams of food a day since April 2026", "t5", valid_from="2026-04-26"),
        fact("Biscuit weighed eleven kilos in April 2026", "t5", kind="event", valid_from="2026-04-26"),
    ]),
    "new-job": ("2026-06-30T17:30:00Z", [
        "I signed. From the first of August I lead the tides team at Tidewater Labs, in Porto three days a month.",
        "What happens to Harbour?",
        "Nadia takes over. She knows it better than I do anyway.",
        "Who will you work with?",
        "A new project, Kestrel: tide forecasts from cheap sensors. Ben may follow me in autumn, don't tell anybody.",
    ], [
        fact("Maya Chen leads the tides team at Tidewater Labs since 1 August 2026", "t1", "Maya Chen > works_at > Tidewater Labs", valid_from="2026-08-01"),
        fact("Maya Chen is in Porto three days a month for Tidewater Labs", "t1", "Tidewater Labs > located_in > Porto", valid_from="2026-08-01"),
        fact("Nadia Haddad leads Harbour since August 2026", "t3", "Nadia Haddad > leads > Harbour", valid_from="2026-08-01", project="harbour"),
        fact("Kestrel makes tide forecasts from cheap sensors", "t5", "Kestrel > part_of > Tidewater Labs", "Maya Chen > works_on > Kestrel", project="kestrel"),
        fact("Ben Sorensen may follow Maya Chen to Tidewater Labs in autumn 2026", "t5", kind="belief", confidence=0.6),
    ]),
    "birthday": ("2026-09-20T21:15:00Z", [
        "Ines turns forty on the fourth of October. I want to give her the blue kayak from the shop in Sesimbra.",
        "Does she have a place to keep it?",
        "The Clube Naval rents racks, Tom asked. Twelve euros a month.",
        "Shall I remind you to order it?",
        "A week before, please. She is allergic to walnuts, mind the cake. And her birthday is on the fourth, not the fifth, I always mix it up.",
    ], [
        fact("Ines Chen's birthday is on 4 October", "t1 t5", "Ines Chen > sibling_of > Maya Chen"),
        fact("Maya Chen wants to give Ines Chen the blue kayak from the shop in Sesimbra for her fortieth birthday", "t1", kind="decision"),
        fact("The Clube Naval rents kayak racks for twelve euros a month", "t3"),
        fact("Ines Chen is allergic to walnuts", "t5"),
        fact("Maya Chen wants to be reminded a week before a date", "t5", kind="preference"),
    ]),
    "kestrel": ("2026-10-22T10:00:00Z", [
        "Kestrel's sensors drift by two centimetres a week. We calibrate against the harbour gauge every Sunday night.",
        "Is that automatic?",
        "Since this week: a cron job on the gateway. Ben wrote it, he started on Monday.",
        "So Ben works at Tidewater Labs now?",
        "Since 19 October. And I drink my coffee black in Porto, their oat milk is terrible.",
    ], [
        fact("Kestrel's sensors drift by two centimetres a week", "t1", project="kestrel"),
        fact("Kestrel's sensors are calibrated against the harbour gauge every Sunday night", "t1 t3", kind="decision", project="kestrel"),
        fact("Ben Sorensen works at Tidewater Labs since 19 October 2026", "t3 t5", "Ben Sorensen > works_at > Tidewater Labs", "Ben Sorensen > works_on > Kestrel", valid_from="2026-10-19"),
        fact("Maya Chen drinks her coffee black in Porto", "t5", kind="preference", valid_from="2026-10-22"),
        fact("Maya Chen's sister Ines has her birthday on 5 October", "t5", confidence=0.6),
    ]),
}  # fmt: skip
SAME = {frozenset(("Maya Chen takes soy milk in her coffee", "Maya Chen takes oat milk in her coffee")): "update",
        frozenset(("Biscuit gets 180 grams of food a day", "Biscuit gets 150 grams of food a day since April 2026")): "update",
        frozenset(("Ines Chen's birthday is on 4 October", "Maya Chen's sister Ines has her birthday on 5 October")): "conflict",
        frozenset(("Maya Chen works at Acme Maps", "Maya Chen leads the tides team at Tidewater Labs since 1 August 2026")): "update"}  # fmt: skip
REASONS = {
    "update": "The later one says that this has changed since, in Maya's own words.",
    "conflict": "Both say on which day Ines was born, and she was born on one of them.",
}
REWRITES = {
    "Kestrel's sensors drift by two centimetres a week": "The sensors of Kestrel drift by two centimetres a week (October 2026)"
}
NIGHTS = {
    "sailing": "2026-04-27T03:30:00+00:00",
    "new-job": "2026-07-01T03:30:00+00:00",
    "kestrel": "2026-10-25T03:30:00+00:00",
}
REJECTED = "Alfama is a part of Lisbon"


CODE = """\
def is_due(now):
    \"\"\"Sunday night.\"\"\"
    return now.weekday() == 6


def calibrate(sensor, gauge, readings=1):
    return sensor.level - sum(gauge.read() for _ in range(readings)) / readings
"""
PAGE = """\
# Calibration

`calibrate` takes 1 reading of the harbour gauge and returns the drift of a sensor. `is_due` is true on Sunday nights.
See [the code](../calibrate.py).
"""


class Model(Scripted):
    """Learns from the talks, and judges what it learned, as written above."""

    def __init__(self) -> None:
        names = [{"name": name, "kind": kind} for kind, those in NAMES.items() for name in those]
        learned = {name: {"v": 1, "names": names, "facts": facts} for name, (_, _, facts) in TALKS.items()}
        super().__init__(review=_review, compare=_compare, resolve=_resolve)
        self.learned = learned

    def answer_to(self, body: dict) -> dict:
        said = json.dumps(body)
        for name, answer in self.learned.items():
            if f"id: {name}\\n" in said or f"id: {name}\\\\n" in said:
                return answer
        return super().answer_to(body)


def _review(question: str) -> dict:
    approved, verdicts = [], []
    for line in (json.loads(line) for line in question.splitlines() if line.startswith('{"n"')):
        if line["text"] == REJECTED:
            verdicts.append(
                {
                    "n": line["n"],
                    "verdict": "reject",
                    "rewrite": None,
                    "reason": "Everybody knows that; it says nothing about Maya.",
                }
            )
        elif line["text"] in REWRITES:
            verdicts.append(
                {
                    "n": line["n"],
                    "verdict": "rewrite",
                    "rewrite": REWRITES[line["text"]],
                    "reason": "It says of what, and since when.",
                }
            )
        else:
            approved.append(line["n"])
    return {"approve": approved, "verdicts": verdicts}


def _judge(a: str, b: str) -> dict:
    verdict = SAME.get(frozenset((a, b)))
    return {"verdict": verdict, "reason": REASONS[verdict]} if verdict else DIFFERENT


def _compare(question: str) -> dict:
    return answer_pairs([{"n": n, **_judge(a, b)} for n, a, b in pairs_in(question)])


def _resolve(question: str) -> dict:
    answers = {"update": ("update", "keep_b"), "conflict": ("contradiction", "keep_both")}
    pairs = []
    for n, a, b in pairs_in(question):
        how = SAME[frozenset((a, b))]
        verdict, resolution = answers[how]
        pairs.append({"n": n, "verdict": verdict, "resolution": resolution, "reason": REASONS[how]})
    return {"pairs": pairs}


def tell_story(root: Path, patch: pytest.MonkeyPatch) -> Vault:
    """The vault at `root`, with all of it. `patch` changes the environment until its owner takes that back."""
    model = Model()
    for name, value in {
        "QUAID_MODELS_PROVIDER": "anthropic", "QUAID_MODELS_URL": model.url, "QUAID_MODELS_DEEP": "wise",
        "QUAID_MODELS_FAST": "quick", "ANTHROPIC_API_KEY": "sk-story",
    }.items():  # fmt: skip
        patch.setenv(name, value)
    Memory.create(root, ("Maya Chen", "Maya"))[0].close()
    trust_vault(root)
    days = {_head(root): "2025-11-10T08:00:00Z"}

    def on(day: str, do: Callable[[Memory], object]) -> None:
        with Memory.open(root) as memory:
            do(memory)
        days[_head(root)] = day

    def sleep(night: str) -> None:
        on(night, lambda memory: memory.janitor.run(RunOptions(), datetime.fromisoformat(night)))

    for name, (started, said, _) in TALKS.items():
        path = _write_talk(root.parent / f"{name}.jsonl", name, started, said)
        on(started, lambda memory, path=path: memory.extract(path))
        if name == "new-job":
            on("2026-06-30T22:00:00Z", _accept_what_changed)
        if name in NIGHTS:
            sleep(NIGHTS[name])
    sources = _write_sources(root.parent / "kestrel")
    on(
        "2026-11-02T09:00:00Z",
        lambda memory: memory.documentation.create(Project("kestrel", source_roots=(str(sources),))),
    )
    model.close()
    patch.setenv("QUAID_MODELS_PROVIDER", "none")
    _date_commits(root, days)
    return Vault(root)


PROMPTS = {
    "When is Biscuit at Dr. Ruiz, and how much food does he get?": "He gets 150 grams a day, and Dr. Ruiz sees him this week.",
    "How does Harbour queue its jobs?": "In one Postgres with a queue table and SKIP LOCKED.",
    "What should I bring Ines for her birthday?": "You wanted to give her a book about tides, I think.",
}
"""What Maya asks Claude Code this morning, and its answers."""


def tell_yesterday(vault: Vault, patch: pytest.MonkeyPatch) -> str:
    """What happened yesterday and today: a talk, a night, a session of Claude Code, and an edit that is not committed.
    Return the name of the session.
    """
    now = datetime.now(UTC)
    evening, week = now.replace(hour=20, minute=40) - timedelta(days=1), now + timedelta(days=4)
    soon, plan = f"{now + timedelta(days=2):%-d %B %Y}", f"{week:%-d %B %Y}"
    said = [
        f"Biscuit is at Dr. Ruiz again on {soon}, for his teeth. Tom takes him there.",
        "Shall I remind you the day before?",
        f"Please. And Nadia and I present Kestrel at the port authority on {plan}, at ten.",
        "Good luck with it. Anything to prepare?",
        "The drift of the sensors. Ben has measured it again: it is one centimetre a week now.",
    ]
    model = Model()
    model.learned["teeth"] = {"v": 1, "names": [], "facts": [
        fact(f"Biscuit is at Dr. Ruiz on {soon} for his teeth", "t1", "Biscuit > patient_of > Dr. Ruiz", kind="event", valid_from=f"{now + timedelta(days=2):%Y-%m-%d}"),
        fact("Tom Okafor takes Biscuit to Dr. Ruiz", "t1", "Tom Okafor > has_pet > Biscuit"),
        fact(f"Maya Chen and Nadia Haddad present Kestrel at the port authority on {plan} at ten", "t3", "Nadia Haddad > works_on > Kestrel", kind="event", project="kestrel", valid_from=f"{week:%Y-%m-%d}"),
        fact("Kestrel's sensors drift by one centimetre a week", "t5", project="kestrel"),
    ]}  # fmt: skip
    for name, value in {
        "QUAID_MODELS_PROVIDER": "anthropic", "QUAID_MODELS_URL": model.url, "QUAID_MODELS_DEEP": "wise",
        "QUAID_MODELS_FAST": "quick", "QUAID_HOME": str(vault.root),
    }.items():  # fmt: skip
        patch.setenv(name, value)
    with vault.memory() as memory:
        memory.extract(_write_talk(vault.root.parent / "teeth.jsonl", "teeth", evening.isoformat(), said))
        memory.janitor.run(RunOptions(), min(now, now.replace(hour=3, minute=30)))
    session = "5f0c7c52-2b1e-4a55-9f0e-6f6a4d0f7a11"
    lines: list[dict] = []
    _call_hook("session-start", session_id=session, source="startup")
    for prompt, answer in PROMPTS.items():
        _call_hook("user-prompt-submit", session_id=session, prompt=prompt)
        lines.append({"type": "user", "message": {"role": "user", "content": prompt}})
        lines.append(
            {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": answer}]}}
        )
    transcript = vault.root.parent / "claude.jsonl"
    with transcript.open("w", encoding="utf-8") as file:
        for n, line in enumerate(lines):
            about = {"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": session}
            at = datetime.now(UTC).isoformat()
            file.write(f"{json.dumps({**line, **about, 'timestamp': at, 'isSidechain': False, 'cwd': '/x'})}\n")
    patch.setenv("QUAID_MODELS_PROVIDER", "none")
    with vault.memory() as memory:
        memory.extract(transcript)
        memory.recall("Who leads Harbour?", door="mcp", session="cursor-vscode")
    model.close()
    note = next((vault.root / "entities").glob("Biscuit.md"))
    note.write_text(f"{note.read_text(encoding='utf-8').rstrip()}\n\nHe likes carrots.\n", encoding="utf-8")
    return session


def _call_hook(event: str, **fields: str) -> None:
    fields |= {"cwd": "/", "transcript_path": str(Path.home() / ".claude" / "projects" / "x" / "none.jsonl")}
    command = [sys.executable, "-m", "quaid", "hook", event]
    subprocess.run(command, input=json.dumps(fields).encode(), capture_output=True, check=True)


def _write_sources(folder: Path) -> Path:
    """The repository of Kestrel: the page on calibration is true, until the code says something else."""
    (folder / "docs").mkdir(parents=True)
    (folder / "calibrate.py").write_text(CODE, encoding="utf-8")
    (folder / "docs" / "calibration.md").write_text(PAGE, encoding="utf-8")
    (folder / "docs" / "sensors.md").write_text("# Sensors\n\nWe buy them in Porto, ten at a time.\n", encoding="utf-8")
    _git(folder, "init", "-q", "-b", "main")
    for subject in ("calibration against the harbour gauge", "calibrate: every night, and three readings in the mean"):
        _git(folder, "add", "-A")
        _git(folder, "-c", "user.name=Ben Sorensen", "-c", "user.email=ben@tidewater.example", "commit", "-qm", subject)
        later = CODE.replace("weekday() == 6", "hour == 2").replace("readings=1", "readings=3")
        (folder / "calibrate.py").write_text(later, encoding="utf-8")
    return folder


def _accept_what_changed(memory: Memory) -> None:
    for question in memory.janitor.open_questions():
        if question.kind == "supersede":
            memory.janitor.answer(question.rel_path, "yes")


def _write_talk(path: Path, session: str, started: str, said: list[str]) -> Path:
    begun = datetime.fromisoformat(started)
    lines: list[dict] = [{"session": session, "started": started}]
    for number, text in enumerate(said):
        role, speaker = (("user", "Maya"), ("assistant", "Assistant"))[number % 2]
        at = (begun + timedelta(minutes=number)).isoformat()
        lines.append({"role": role, "speaker": speaker, "content": text, "timestamp": at})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def _git(root: Path, *args: str, given: bytes = b"") -> str:
    return (
        subprocess.run(["git", *args], cwd=root, input=given, capture_output=True, check=True).stdout.decode().strip()
    )


def _head(root: Path) -> str:
    return _git(root, "rev-parse", "HEAD")


def _date_commits(root: Path, days: dict[str, str]) -> None:
    """Give each commit the day of the step that ended with it or came after it: Quaid has no way to commit in the past."""
    renewed: dict[str, str] = {}
    for last, day in days.items():
        seconds = int(datetime.fromisoformat(day).timestamp())
        known = [f"^{old}" for old in renewed]
        for commit in _git(root, "rev-list", "--topo-order", "--reverse", last, *known).split():
            written = _git(root, "cat-file", "commit", commit) + "\n"
            head, _, rest = written.partition("\n\n")
            head = re.sub(r"(?m)^((?:author|committer) .*> )\d+ ", rf"\g<1>{seconds} ", head)
            head = re.sub(r"(?m)^parent (\w+)$", lambda match: f"parent {renewed[match[1]]}", head)
            renewed[commit] = _git(
                root, "hash-object", "-t", "commit", "-w", "--stdin", given=f"{head}\n\n{rest}".encode()
            )
    _git(root, "update-ref", "HEAD", renewed[_head(root)])
    runs = Runs(state_folder(root) / LOCAL_FILE)
    for run in runs.list(100):
        ended = (datetime.fromisoformat(run.started) + timedelta(seconds=41)).isoformat()
        runs.finish(run._replace(ended=ended, commit=renewed[run.commit] if run.commit else None))
