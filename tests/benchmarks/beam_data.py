"""BEAM as vaults: a user and an assistant who work together over months. A session is a batch, a memory a message.

Two pools: `both` keeps all messages, `user` only the user's.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from locomo_data import FOLDER, Question, Turn

from quaid import Memory

SIZE = "100K"
"""Tokens of the conversations in the folder `beam`; those of others are in `beam-500K` and so on."""
HELD_OUT = {f"beam-{n}" for n in range(15, 21)}
"""Nothing is learned from or chosen on these."""
_REFERENCES = ("answer", "ideal_answer", "ideal_summary", "ideal_response", "expected_compliance", "rubric")
_MARK = re.compile(r"\s*->->[\s\d,]*$")


def load(size: str = SIZE) -> list[dict[str, Any]]:
    """The conversations of a size, each with its `sample_id`. Ends the program with a word where the data is missing."""
    name = "beam" if size == SIZE else f"beam-{size}"
    folder = FOLDER / name
    if not folder.is_dir():
        sys.exit(f"BEAM is not at {folder}: set QUAID_DATA to the folder that holds {name}/1/chat.json")
    return [
        {
            "sample_id": f"{name}-{each.name}",
            "chat": json.loads((each / "chat.json").read_text(encoding="utf-8")),
            "questions": json.loads((each / "probing_questions.json").read_text(encoding="utf-8")),
        }
        for each in sorted(folder.iterdir(), key=lambda each: each.name.zfill(3))
        if each.is_dir()
    ]


def ingest(talk: dict[str, Any], root: Path, pool: str) -> None:
    """A vault with the messages of the conversation: with pool `user` only the user's."""
    memory, _ = Memory.create(root)
    with memory, tempfile.TemporaryDirectory() as folder:
        for number, batch in enumerate(talk["chat"], 1):
            messages = list(_messages(batch))
            kept = [message for message in messages if pool != "user" or message["role"] == "user"]
            days = [message["time_anchor"] for message in messages if message.get("time_anchor")]
            day = datetime.strptime(f"{days[-1]} +0000", "%B-%d-%Y %z").isoformat() if days else None
            lines = [{"session": f"B{number}", **({"started": day} if day else {})}]
            lines += [{"role": message["role"], "content": _text(message)} for message in kept]
            transcript = Path(folder) / f"B{number}.jsonl"
            transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            memory.extract(transcript)
        memory.sync()


def session_texts(talk: dict[str, Any]) -> list[str]:
    """Each session as a text to read, under its day."""
    found = []
    for batch in talk["chat"]:
        messages = list(_messages(batch))
        days = [message["time_anchor"] for message in messages if message.get("time_anchor")]
        said = "\n".join(f"{message['role'].capitalize()}: {_text(message)}" for message in messages)
        found.append(f"## {days[-1]}\n{said}" if days else said)
    return found


def read_answered(talk: dict[str, Any]) -> Iterator[tuple[str, str, list[str], str]]:
    """(question, category, gold messages, reference answer); those without gold are left out. A question about how to
    answer has its rubric for a reference.
    """
    references = {
        question["question"]: str(next((question[name] for name in _REFERENCES if question.get(name)), ""))
        for questions in talk["questions"].values()
        for question in questions
    }
    for text, category, gold in read_questions(talk):
        yield text, category, gold, references[text]


def read_questions(talk: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """(question, category, gold messages); those without gold are left out."""
    texts = {message["id"]: _text(message) for batch in talk["chat"] for message in _messages(batch)}
    for category, questions in talk["questions"].items():
        for question in questions:
            gold = [
                texts[number] for number in sorted(set(_numbers(question.get("source_chat_ids")))) if number in texts
            ]
            if gold:
                yield question["question"], category, gold


def list_questions(talk: dict[str, Any], pool: str) -> Iterator[Question]:
    """The questions with their gold as turns of the vault; a message that the pool does not keep is gold out of reach,
    as a turn with a negative number.
    """
    turns = {}
    for number, batch in enumerate(talk["chat"], 1):
        place = 0
        for message in _messages(batch):
            is_kept = pool != "user" or message["role"] == "user"
            place += is_kept
            turns[message["id"]] = (f"B{number}", place if is_kept else -1 - message["id"])
    for category, questions in talk["questions"].items():
        for question in questions:
            gold = frozenset(turns[number] for number in _numbers(question.get("source_chat_ids")) if number in turns)
            if gold:
                yield Question(talk["sample_id"], question["question"], category.replace("_", " "), gold)


def all_turns(talk: dict[str, Any], pool: str) -> list[Turn]:
    """The turns of the vault."""
    kept = [[each for each in _messages(batch) if pool != "user" or each["role"] == "user"] for batch in talk["chat"]]
    return [(f"B{number}", turn) for number, batch in enumerate(kept, 1) for turn in range(1, len(batch) + 1)]


def list_messages(talk: dict[str, Any]) -> list[str]:
    """The texts of all messages of a conversation."""
    return [_text(message) for batch in talk["chat"] for message in _messages(batch)]


def _messages(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for turns in batch["turns"]:
        yield from turns


def _text(message: dict[str, Any]) -> str:
    return _MARK.sub("", str(message["content"]))


def _numbers(nested: object) -> Iterator[int]:
    if isinstance(nested, dict):
        nested = list(nested.values())
    if isinstance(nested, list):
        for each in nested:
            yield from _numbers(each)
    elif isinstance(nested, int):
        yield nested
