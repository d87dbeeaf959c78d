"""A million notes, indexed and asked once: how long each step takes, and the most memory that a process needs for it.

    python tests/benchmarks/million.py --keep /tmp/vaults
    python tests/benchmarks/million.py --notes 200000 --vectors made

A note is two sentences that people said or wrote in LoCoMo or BEAM, put together by chance: their words are as frequent
as in a memory. The files are not known to git. `--vectors made` gives a note the sum of the model's vectors of its two
sentences, with some noise, in the place of the model's own: only *first embedding* changes by that. `--rows` writes the
rows that a first sync writes, without parsing each note. The questions are LoCoMo's. Each step is a process of its own and tells how far it is. What a kept folder has is not made again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import beam_data
import locomo_data
import numpy as np
from bench import describe_machine

from quaid import Memory
from quaid.capture.facts import NewFact, plan_fact
from quaid.config import load_settings
from quaid.embed import open_embedder
from quaid.index import contents, documents, fulltext, vectors
from quaid.index.sqlite import database
from quaid.index.sqlite.connection import SqliteIndex
from quaid.place import INDEX_FILE, state_folder
from quaid.settings import MAX_NOTE_BYTES, EmbeddingSettings
from quaid.sqlite import transaction
from quaid.sync.derived_index import SyncOptions
from quaid.text.instructions import is_instruction
from quaid.vault import files
from quaid.vault.layout import Layout
from quaid.vault.notes import content_hash, parse_note

QUESTIONS = 50
BATCH = 4_096
NOISE = 0.5
"""The length of what is added to the vector of a note, whose own length is 1."""
_SENTENCE = re.compile(r"[A-Z][\w',;:()\- ]{20,240}[.!?](?=\s|$)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=1_000_000)
    parser.add_argument("--vectors", choices=("model", "made"), default="model")
    parser.add_argument("--rows", action="store_true", help="write the rows of the index instead of a first sync")
    parser.add_argument("--keep", help="the folder in which the vault is kept and found again")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](Path(options.keep), options.notes)))
        return
    print(describe_machine())
    folder = Path(options.keep or tempfile.mkdtemp(prefix="quaid-million-"))
    root = folder / f"quaid-million-{options.notes}"
    embed = "embed" if options.vectors == "model" else "made"
    for step in ("write", "rows" if options.rows else "index", embed, "reopen", "ask"):
        command = [sys.executable, __file__, "--step", step, "--notes", str(options.notes), "--keep", str(root)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for name, value in json.loads(told).items():
            print(f"{step + ': ' + name:44}{value:14,.1f}", flush=True)
    if not options.keep:
        shutil.rmtree(folder)


def write(root: Path, count: int) -> dict[str, float]:
    if root.exists():
        return {}
    started, began = time.monotonic(), datetime(2000, 1, 1, tzinfo=UTC)
    Memory.create(root)[0].close()
    for number, text in enumerate(list_texts(list_sentences(), count)):
        _, edit = plan_fact(NewFact(" ".join(text)), began + timedelta(minutes=13 * number))
        path = root / edit.rel_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(edit.after or b"")
        show("Writing notes", number, count)
    return {"s": time.monotonic() - started}


def list_sentences() -> list[str]:
    """Return the sentences of LoCoMo and BEAM, each once."""
    said = [
        turn["text"]
        for each in locomo_data.load()
        for name, session in each["conversation"].items()
        if isinstance(session, list)
        for turn in session
    ]
    said += [message for each in beam_data.load() for message in beam_data.list_messages(each)]
    return list(dict.fromkeys(found for text in said for found in _SENTENCE.findall(text)))


def list_texts(sentences: Sequence[str], count: int) -> Iterator[tuple[str, str]]:
    """Yield the two sentences of each note."""
    chance = random.Random(11)
    for _ in range(count):
        yield chance.choice(sentences), chance.choice(sentences)


def index(root: Path, _: int) -> dict[str, float]:
    """Words and graph, without vectors."""
    with Memory.open(root) as memory:
        memory.report_to(show, print)
        report = memory.sync(SyncOptions(embed_budget_s=0.0, fetch_weights=False))
    return {"s": report.took_s, "notes/s": len(report.added) / report.took_s} | spent()


def rows(root: Path, _: int) -> dict[str, float]:
    """The rows that `index` writes, without parsing more than one note: in a tenth of the time."""
    place, started = Layout.of(load_settings(root).vault), time.monotonic()
    listed = {path: found for path, found in files.list_notes(root).notes.items() if path.startswith("facts/")}
    first, *others = sorted(listed)
    data = (root / first).read_bytes()
    writer, _ = database.connect_writer(state_folder(root) / INDEX_FILE)
    with closing(writer):
        writer.execute("PRAGMA cache_size = -600000")
        with transaction(writer):
            contents.set_meta(writer, "made_with", repr(place))
            known = documents.KnownFile(*listed[first], time.time_ns(), content_hash(data))
            documents.add_document(writer, parse_note(first, data, MAX_NOTE_BYTES, place), known)
        row = writer.execute("SELECT * FROM documents")
        like = dict(zip([name for name, _ in row.get_description()], row.fetchone(), strict=True))
        for at in range(0, len(others), BATCH):
            with transaction(writer):
                write_rows(writer, root, {path: listed[path] for path in others[at : at + BATCH]}, like)
            show("Writing rows", at, len(others))
    return {"s": time.monotonic() - started} | spent()


def write_rows(writer: SqliteIndex, root: Path, listed: Mapping[str, files.FileStat], like: Mapping[str, Any]) -> None:
    number = 1 + int(writer.execute("SELECT max(chunk_id) FROM chunks").get)
    notes, chunks, names, words = [], [], [], []
    for chunk_id, (path, found) in enumerate(listed.items(), number):
        data = (root / path).read_bytes()
        head, text = data.decode().split("---\n", 2)[1:]
        text, name, key = text.strip(), Path(path).stem, vectors.text_key(text.strip())
        own = dict(line.split(": ", 1) for line in head.splitlines())
        times = found._asdict() | {"read_ns": time.time_ns(), "content_hash": content_hash(data)}
        of_note = {"doc_id": chunk_id, "path": path, "title": name, "text_hash": key}
        notes.append([*(like | times | of_note | {each: own[each] for each in ("id", "created")}).values()])
        days, instructs = documents.list_days(text, own["created"]), is_instruction(text)
        chunks.append((chunk_id, chunk_id, 0, text, "", "", days, instructs, key))
        names.append((name, chunk_id, 0, name))
        words.append((chunk_id, text, "", ""))
    writer.executemany(f"INSERT INTO documents VALUES ({','.join('?' * len(like))})", notes)
    columns = "chunk_id, doc_id, ordinal, text, context, keywords, days, instructs, text_key"
    writer.executemany(f"INSERT INTO chunks ({columns}) VALUES (?,?,?,?,?,?,?,?,?)", chunks)
    writer.executemany("INSERT INTO names VALUES (?,?,?,?)", names)
    fulltext.insert(writer, words)


def embed(root: Path, _: int) -> dict[str, float]:
    with Memory.open(root) as memory:
        memory.report_to(show, print)
        report = memory.sync()
    return {"s": report.took_s, "facts/s": report.embedded / report.took_s} | spent()


def made(root: Path, count: int) -> dict[str, float]:
    embedder, numbers = open_embedder(EmbeddingSettings(model="all-MiniLM-L6-v2")), np.random.default_rng(3)
    sentences = list_sentences()
    of_sentence = {text: place for place, text in enumerate(sentences)}
    halves = {" ".join(text): text for text in list_texts(sentences, count)}
    embedded = np.concatenate([embedder.embed(sentences[at : at + BATCH]) for at in range(0, len(sentences), BATCH)])
    writer, _ = database.connect_writer(state_folder(root) / INDEX_FILE)
    started, done = time.monotonic(), 0
    with closing(writer):
        with transaction(writer):
            row = vectors.use_embedder(writer, embedder.fingerprint, embedder.dimension, {"model": "all-MiniLM-L6-v2"})
        total = vectors.count_pending(writer)
        while batch := vectors.list_pending(writer, BATCH):
            pairs = [halves.get(text, (sentences[0], sentences[1])) for _, _, text in batch]
            floats = sum(unit(embedded[[of_sentence[pair[half]] for pair in pairs]]) for half in (0, 1))
            noise = numbers.standard_normal((len(batch), row.dimension), dtype=np.float32)
            floats = unit(unit(floats) + NOISE * unit(noise)).astype("<f4")
            with transaction(writer):
                items = ((i, key, each.tobytes()) for (i, key, _), each in zip(batch, floats, strict=True))
                vectors.insert(writer, row, items)
            done += len(batch)
            show("Storing vectors", done, total)
    return {"s": time.monotonic() - started} | spent()


def unit(floats: np.ndarray) -> np.ndarray:
    return floats / np.linalg.norm(floats, axis=1, keepdims=True)


def reopen(root: Path, _: int) -> dict[str, float]:
    """What a new process does first: the sweep, which finds nothing new."""
    with Memory.open(root) as memory:
        return {"sync without changes, s": memory.sync().took_s} | spent()


def ask(root: Path, _: int) -> dict[str, float]:
    with Memory.open(root) as memory:
        memory.freshness.listen()  # as each process that stays does
        recall = partial(memory.recall, depth="fast")
        first, second = (time_of(recall, "Who repaired a violin?") for _ in range(2))
        ways = {"hybrid, new words": recall, "hybrid": recall, "words": memory.search}
        taken = {way: [time_of(asked, question) for question in list_questions()] for way, asked in ways.items()}
        taken["vectors"] = list_nearest(memory)
    found = {"first question, wall ms": first[0], "second question (reads the vectors), wall ms": second[0]}
    for way, times in taken.items():
        for kind, of_kind in zip(("wall", "processor"), zip(*times, strict=True), strict=True):
            found[f"{way}, p50, {kind} ms"] = statistics.median(of_kind)
            found[f"{way}, p95, {kind} ms"] = statistics.quantiles(of_kind, n=20)[18]
    return found | spent()


def list_nearest(memory: Memory) -> list[tuple[float, float]]:
    """Return how long the nearest vectors of each question took, without embedding the question."""
    embedder, matrix = memory.embedding.embedder(), memory.matrix
    assert embedder is not None
    with closing(database.connect_reader(memory.indexer.path)) as reader:
        search = partial(matrix.search, reader, vectors.active_embedder(reader), limit=400)
        return [time_of(search, embedder.embed_query(question)) for question in list_questions()]


def list_questions() -> list[str]:
    questions = [each["question"] for talk in locomo_data.load() for each in talk["qa"]]
    return random.Random(5).sample(questions, QUESTIONS)


def time_of(call: Callable[[Any], object], asked: object) -> tuple[float, float]:
    """Return the wall time and the processor time of a call, in ms."""
    wall, processor = time.perf_counter(), time.process_time()
    call(asked)
    return (time.perf_counter() - wall) * 1000, (time.process_time() - processor) * 1000


def spent() -> dict[str, float]:
    own, others = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    peak = own.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return {"processor, s": sum(used.ru_utime + used.ru_stime for used in (own, others)), "peak memory, MB": peak}


def show(what: str, done: int, total: int) -> None:
    if done == total or done % max(1, total // 20) == 0:
        print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)


STEPS = {"write": write, "index": index, "rows": rows, "embed": embed, "made": made, "reopen": reopen, "ask": ask}


if __name__ == "__main__":
    main()
