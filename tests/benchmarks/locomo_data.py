"""LoCoMo as vaults: conversations taken in as `quaid extract` does, facts as notes that cite the turns they rest on."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from quaid import Memory
from quaid.capture.facts import NewFact, plan_fact
from quaid.vault import files

FOLDER = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[3] / "shared" / "data"))
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}

Turn = tuple[str, int]


@dataclass(frozen=True)
class Question:
    conversation: str
    text: str
    category: int | str
    gold: frozenset[Turn]
    asked_at: datetime | None = None


def category_of(question: Question) -> str:
    """What its category is called."""
    category = question.category
    return CATEGORIES[category] if isinstance(category, int) else category


def load(only: list[str] | None = None) -> list[dict[str, Any]]:
    """The conversations, or those that are named. Ends the program with a word where the data is missing."""
    path = FOLDER / "locomo" / "locomo10.json"
    if not path.exists():
        sys.exit(f"LoCoMo is not at {path}: set QUAID_DATA to the folder that holds locomo/locomo10.json")
    conversations = json.loads(path.read_text(encoding="utf-8"))
    return [conversation for conversation in conversations if not only or conversation["sample_id"] in only]


def load_realtalk(only: list[str] | None = None) -> list[dict[str, Any]]:
    """REALTALK's chats of real people in the shape of LoCoMo's conversations, or those that are named (realtalk-1).

    A `dia_id` there is neither the session nor the place of a turn, so the evidence is renumbered; `D12:3-D12:5` is all
    turns from the one to the other.
    """
    paths = {f"realtalk-{path.name.split('_')[1]}": path for path in (FOLDER / "realtalk").glob("Chat_*.json")}
    if not paths:
        sys.exit(
            f"REALTALK is not at {FOLDER / 'realtalk'}: set QUAID_DATA to the folder that holds realtalk/Chat_*.json"
        )
    return [
        _read_realtalk(name, json.loads(paths[name].read_text(encoding="utf-8")))
        for name in sorted(paths, key=lambda name: int(name.split("-")[1]))
        if not only or name in only
    ]


def _read_realtalk(name: str, chat: dict[str, Any]) -> dict[str, Any]:
    numbers = _session_numbers(chat)
    talk = {"speaker_a": chat["name"]["speaker_1"], "speaker_b": chat["name"]["speaker_2"]}
    turns = {number: chat[f"session_{number}"] for number in numbers}
    for number in numbers:
        day, month, year, time = re.split(r"[.,] ?", chat[f"session_{number}_date_time"])
        talk[f"session_{number}_date_time"] = f"{year}-{month}-{day}T{time}"
        talk[f"session_{number}"] = [{**turn, "text": turn["clean_text"]} for turn in turns[number]]
    cited = {turn["dia_id"]: f"D{n}:{place}" for n in numbers for place, turn in enumerate(turns[n], 1)}
    questions = [{**row, "evidence": [cited.get(each, "") for each in _expand(row["evidence"])]} for row in chat["qa"]]
    return {"sample_id": name, "conversation": talk, "qa": questions, "observation": {}}


def _expand(evidence: list[str]) -> list[str]:
    """The ids that are cited, with those inside ranges."""
    text = " ".join(evidence)
    ranges = re.findall(r"D(\d+):(\d+)-D\1:(\d+)", text)
    inside = [f"D{session}:{turn}" for session, first, last in ranges for turn in range(int(first), int(last) + 1)]
    return [*inside, *(f"{session}:{turn}" for session, turn in read_turns(text))]


def read_questions(conversation: dict[str, Any]) -> Iterable[Question]:
    """Categories 1 to 4 with at least one piece of evidence that exists."""
    pool = set(all_turns(conversation))
    for row in conversation["qa"]:
        gold = frozenset(read_turns(row.get("evidence", []))) & pool
        if gold and row["category"] in CATEGORIES:
            yield Question(conversation["sample_id"], row["question"], row["category"], frozenset(gold))


def read_turns(cited: object) -> list[Turn]:
    """`D1:3` and its misspellings, anywhere in what an annotator or a model wrote."""
    text = " ".join(map(str, cited)) if isinstance(cited, list) else str(cited)
    return [(f"D{session}", int(turn)) for session, turn in re.findall(r"D:?(\d+):0*(\d+)", text)]


def session_lines(conversation: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each session as generic JSONL. The annotators' image `query` is left out, as the protocol wants."""
    talk = conversation["conversation"]
    for number in _session_numbers(talk):
        lines = [json.dumps({"session": f"D{number}", "started": talk[f"session_{number}_date_time"]})]
        for turn in talk[f"session_{number}"]:
            photo = f" [shares a photo of {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            role = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            lines.append(json.dumps({"role": role, "speaker": turn["speaker"], "content": turn["text"] + photo}))
        yield f"D{number}", lines


def all_turns(conversation: dict[str, Any]) -> list[Turn]:
    return [(session, n) for session, lines in session_lines(conversation) for n in range(1, len(lines))]


def ingest(conversation: dict[str, Any], root: Path, facts: str) -> None:
    """A vault with the conversation's sessions, and with facts of one kind (`none`, `observation`, `extraction`).

    Extracted facts come the whole way: `quaid extract` asks a service that replays what a model has answered.
    """
    memory, _ = Memory.create(root)
    with memory, tempfile.TemporaryDirectory() as folder, _model(conversation, memory, facts):
        for session, lines in session_lines(conversation):
            transcript = Path(folder) / f"{session}.jsonl"
            transcript.write_text("\n".join(lines) + "\n", encoding="utf-8")
            memory.extract(transcript)
        notes = {d[1]: d[0] for d in memory.index().execute("SELECT path, session FROM documents WHERE kind='episode'")}
        for statement, session, details in _read_facts(conversation, facts):
            turns = tuple(
                f"[[{Path(notes[cited]).stem}#^t{number}]]" for cited, number in details.pop("cites") if cited in notes
            )
            moment = _when(conversation, session)
            _, edit = plan_fact(NewFact(statement, session=session, turns=turns, **details), moment)
            files.write_note(root, edit.rel_path, edit.before, edit.after)
        memory.sync()


@contextmanager
def _model(conversation: dict[str, Any], memory: Memory, facts: str) -> Iterator[None]:
    if facts != "extraction":
        yield
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from replay import Replay

    numbers = _session_numbers(conversation["conversation"])
    answers = {f"D{n}": json.loads(_answer_of(conversation, n).read_text("utf-8")) for n in numbers}
    service = Replay(answers)
    models = replace(memory.settings.models, provider="ollama", url=service.url, deep="wise", fast="quick")
    memory.settings = replace(memory.settings, models=models)
    try:
        yield
    finally:
        service.close()


def has_facts(conversation: dict[str, Any], facts: str) -> bool:
    return facts != "extraction" or _extraction_folder(conversation).is_dir()


def _read_facts(conversation: dict[str, Any], facts: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(statement, session, details) of what annotators observed."""
    if facts == "observation":
        for key, by_speaker in conversation["observation"].items():
            session = f"D{re.findall(r'[0-9]+', key)[0]}"
            for speaker, observed in by_speaker.items():
                for text, cited in observed:
                    yield text, session, {"speaker": speaker, "cites": read_turns(cited)}


def _answer_of(conversation: dict[str, Any], number: int) -> Path:
    return _extraction_folder(conversation) / f"session_{number}.json"


def _extraction_folder(conversation: dict[str, Any]) -> Path:
    return FOLDER / "extraction" / str(conversation["sample_id"])


def _session_numbers(talk: dict[str, Any]) -> list[int]:
    return sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))


def _when(conversation: dict[str, Any], session: str) -> datetime:
    said = conversation["conversation"][f"session_{session[1:]}_date_time"]
    return datetime.strptime(f"{said} +0000", "%I:%M %p on %d %B, %Y %z")
