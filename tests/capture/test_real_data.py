"""Real input: facts that a real model extracted, kept as notes and edited by hand under a watcher; real transcripts."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quaid import Memory
from quaid.capture import relations
from quaid.capture.entities import plan_entity
from quaid.capture.facts import NewFact, plan_fact
from quaid.errors import BadInputError
from quaid.model import Edge, name_key
from quaid.sync.verify import verify
from quaid.sync.watcher import Follower
from quaid.vault import layout

DATA = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[3] / "shared" / "data"))
NOW = datetime(2023, 10, 22, tzinfo=UTC)
DEADLINE_S = 10.0


def needs(folder: str) -> Path:
    path = DATA / folder
    if not path.exists():
        pytest.skip(f"{folder} is not there: set QUAID_DATA to the folder that holds it")
    return path


@pytest.fixture(autouse=True)
def _without_model(monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")


@pytest.fixture
def conversation_vault(tmp_path):
    """The facts of conversation 26 as notes, with an entity note for each end of their edges."""
    memory, _ = Memory.create(tmp_path / "vault")
    write_facts(memory.root, needs("extraction/conv-26"))
    with memory:
        yield memory


@pytest.mark.slow
def test_extracted_facts_become_notes_that_recall_finds(conversation_vault):
    memory = conversation_vault
    report = memory.sync()
    assert report.total > 400
    found = memory.recall("When did Caroline go to the LGBTQ support group?", limit=5)
    assert any("support group" in hit.text and "7 May 2023" in hit.text for hit in found.hits)
    assert found.hits[0].edges
    checked = verify(memory.indexer, memory.index())
    assert checked.ok, checked.differences


@pytest.mark.slow
def test_an_entity_leads_to_what_is_said_about_it(conversation_vault):
    memory = conversation_vault
    memory.sync()
    hits = memory.recall("Melanie", limit=10).hits
    assert hits[0].path == "entities/Melanie.md"
    assert all("graph" in hit.channels for hit in hits[:5])


@pytest.mark.slow
def test_edits_by_hand_are_indexed_while_a_watcher_runs(conversation_vault):
    memory = conversation_vault
    memory.sync()
    follower = Follower(memory.indexer, memory.settings.sync, lambda _: None, lambda _: None)
    thread = threading.Thread(target=follower.run)
    thread.start()
    try:
        notes = sorted((memory.root / "facts").rglob("*.md"))
        fact = next(note for note in notes if "support group" in note.read_text(encoding="utf-8"))
        save(fact, fact.read_text(encoding="utf-8").replace("support group", "zebra circle"))
        wait_for(lambda: indexed(memory, "zebra"))
        entity = memory.root / "entities" / "Caroline.md"
        save(entity, entity.read_text(encoding="utf-8") + "- mentors [[Quillon]]\n")
        wait_for(lambda: indexed(memory, "quillon"))
        assert memory.get("Caroline").edges
        fact.rename(fact.with_name("renamed-by-hand.md"))
        wait_for(lambda: any(hit.path.endswith("renamed-by-hand.md") for hit in memory.search("zebra").hits))
    finally:
        follower.stop()
        thread.join(timeout=10)
    checked = verify(memory.indexer, memory.index())
    assert checked.ok, checked.differences


def test_every_claude_code_session_becomes_a_clean_episode(tmp_path):
    memory, _ = Memory.create(tmp_path / "vault")
    kept = 0
    with memory:
        for path in sorted(needs("transcripts").rglob("*.jsonl")):
            try:
                extracted = memory.extract(path)
            except BadInputError:  # another program's format, or nothing that anybody said
                continue
            kept += 1
            text = (memory.root / extracted.path).read_text(encoding="utf-8")
            assert "type: episode" in text
            assert not any(mark in text for mark in ("tool_use", "[MEMORY]", "<system-reminder>", "<command-name>"))
            again = memory.extract(path)
            assert (again.path, again.new_turns, again.commit) == (extracted.path, 0, None)
    assert kept >= 4


def write_facts(root: Path, folder: Path) -> None:
    names: dict[str, str] = {}
    for session in sorted(folder.glob("session_*.json")):
        for fact in json.loads(session.read_text(encoding="utf-8"))["facts"]:
            own = [Edge(edge["subject"], edge["relation"], edge["object"]) for edge in fact["edges"]]
            own = [relations.normalise_edge(edge) for edge in own if name_key(edge.subject) != name_key(edge.object)]
            for edge in own:
                for name in (edge.subject, edge.object):
                    names.setdefault(name_key(name), name)
            new = NewFact(
                fact["text"],
                type=fact["category"], speaker=fact["speaker"], source=fact["source"], confidence=fact["confidence"],
                durability=fact["durability"], keywords=tuple(fact["keywords"]), valid_from=fact["valid_from"],
                valid_until=fact["valid_until"], edges=tuple(own), session=session.stem,
            )  # fmt: skip
            write(root, *edit_of(plan_fact(new, NOW)[1]))
    for name in names.values():
        if not (root / layout.entity_path(name)).exists():
            write(root, *edit_of(plan_entity(name, "person" if " " not in name else "concept", NOW)))


def edit_of(edit):
    return edit.rel_path, edit.after


def write(root: Path, rel_path: str, data: bytes) -> None:
    path = root / rel_path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def save(path: Path, text: str) -> None:
    """As editors save: a new file, renamed over the old one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def indexed(memory: Memory, word: str) -> bool:
    """Looked up as the watcher left it: without the freshness check of a recall."""
    import apsw

    index = apsw.Connection(str(memory.indexer.path), flags=apsw.SQLITE_OPEN_READONLY)
    index.set_busy_timeout(5_000)
    try:
        return index.execute("SELECT 1 FROM fulltext WHERE fulltext MATCH ?", (word,)).fetchone() is not None
    finally:
        index.close()


def wait_for(condition) -> None:
    until = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
