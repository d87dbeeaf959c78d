"""Recall while vectors are missing: what words alone find, and what recall finds with 0 to 100 % of the vectors.

    python tests/benchmarks/half_embedded.py
    python tests/benchmarks/half_embedded.py --only conv-26 --questions 40 --json result.json

LoCoMo twice. As conversations: a vault each, with the facts that cite its turns; a hit is right when it is a turn that
the question's evidence names or a fact that cites one. As notes: the sessions of all conversations in one vault without
anything of Quaid's, a note each; a hit is right when it is the note of a session with evidence. @k is the share of
questions with a right hit among the first k. The vectors that exist are those that are made first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from bench import describe_machine, make_parser, save
from locomo import cited_turns
from locomo_data import Question, Turn, ingest, load, read_questions, session_lines

from quaid import Memory
from quaid.index import vectors
from quaid.index.sqlite import database
from quaid.model import Hit
from quaid.place import INDEX_FILE, state_folder

SHARES = (100, 75, 50, 25, 0)
DEPTHS = (1, 5, 10)
BATCH = 256
Right = dict[str, list[list[bool]]]
"""By the row of the table: of each question, whether a right hit is among the first of each depth."""


def main() -> None:
    options = _arguments()
    conversations = load(options.only)
    asked = {each["sample_id"]: list(read_questions(each))[: options.questions] for each in conversations}
    tables: dict[str, Right] = {}
    with tempfile.TemporaryDirectory(prefix="quaid-half-") as folder:
        tables["conversations"] = defaultdict(list)
        for each in conversations:
            root = Path(folder) / each["sample_id"]
            ingest(each, root, "observation")
            for name, found in ask_all(root, asked[each["sample_id"]]).items():
                tables["conversations"][name] += found
        notes = Path(folder) / "notes"
        for each in conversations:
            write_notes(each, notes)
        Memory.create(notes)[0].close()
        tables["notes"] = ask_all(notes, [question for questions in asked.values() for question in questions])
    rows = {table: {name: _mean(found) for name, found in right.items()} for table, right in tables.items()}
    count = sum(map(len, asked.values()))
    print(f"LoCoMo, categories 1-4: {count} questions; {describe_machine()}")
    for table, scores in rows.items():
        print(f"{table:16}" + "".join(f"{f'@{depth}':>8}" for depth in DEPTHS))
        for name, row in scores.items():
            print(f"{name:16}" + "".join(f"{score:8.3f}" for score in row))
    save(options.json, {"rows": rows, "depths": DEPTHS, "questions": count})


def write_notes(conversation: Mapping[str, Any], root: Path) -> None:
    """Write each session as a note: a paragraph for each turn."""
    folder = root / conversation["sample_id"]
    folder.mkdir(parents=True)
    for session, (head, *turns) in session_lines(conversation):
        said = (json.loads(turn) for turn in turns)
        paragraphs = [f"# {json.loads(head)['started']}", *(f"{turn['speaker']}: {turn['content']}" for turn in said)]
        (folder / f"{session}.md").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


def ask_all(root: Path, asked: list[Question]) -> Right:
    """Ask all questions of one vault by words, and with each share of its vectors."""
    with Memory.open(root) as memory:
        memory.sync()
    held = read_vectors(root)
    rows: Right = {}
    for share in SHARES:
        leave_vectors(root, held, share)
        with Memory.open(root) as memory:
            cites = cited_turns(memory)

            def ask(question: Question, cites: Any = cites, memory: Memory = memory, **how: bool) -> list[bool]:
                hits = memory.recall(question.text, max(DEPTHS), depth="fast", keep=False, **how).hits
                found = [is_right(hit, question, cites) for hit in hits]
                return [any(found[:depth]) for depth in DEPTHS]

            if not rows:
                rows["search"] = [ask(question, keyword_only=True) for question in asked]
            rows[f"recall, {share} %"] = [ask(question) for question in asked]
    return rows


def is_right(hit: Hit, question: Question, cites: Mapping[str, set[Turn]]) -> bool:
    if hit.kind == "note":
        note = Path(hit.path)
        return note.parent.name == question.conversation and note.stem in {session for session, _ in question.gold}
    return not question.gold.isdisjoint(cites.get(hit.id, set()) | {(hit.session or "", hit.turn or 0)})


def read_vectors(root: Path) -> dict[int, bytes]:
    with closing(database.connect_writer(state_folder(root) / INDEX_FILE)[0]) as connection:
        [row] = vectors.list_embedders(connection)
        return connection.vectors.get(row, [found[0] for found in connection.execute(connection.vectors.held(row))])


def leave_vectors(root: Path, held: Mapping[int, bytes], share: int) -> None:
    """Leave of the vectors `held` the `share` per cent that are made first."""
    with closing(database.connect_writer(state_folder(root) / INDEX_FILE)[0]) as connection, connection.transaction():
        [row] = vectors.list_embedders(connection)
        vectors.remove(connection, list(held))
        connection.execute("UPDATE chunks SET embedded = 'pending'")
        left = len(held) * share // 100
        while batch := vectors.list_pending(connection, min(BATCH, left)):
            vectors.insert(connection, row, [(chunk_id, key, held[chunk_id]) for chunk_id, key, _ in batch])
            left -= len(batch)


def _mean(found: list[list[bool]]) -> list[float]:
    return [statistics.fmean(each) for each in zip(*found, strict=True)]


def _arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--only", action="append", help="a conversation, e.g. conv-26; repeatable")
    parser.add_argument("--questions", type=int, help="ask only so many of each conversation")
    return parser.parse_args()


if __name__ == "__main__":
    main()
