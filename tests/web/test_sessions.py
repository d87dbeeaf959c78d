"""Sessions: what an agent was given before which prompt, whether it used it, and a click that marks what was irrelevant."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from janitor_pages import reading

from quaid.cli.main import main as quaid
from quaid.hooks.entry import main as hook
from quaid.local import recall_trail
from quaid.place import state_folder

ASKED = "What milk does Maya take in her coffee?"
FACT = "---\nid: 01{0}\ntype: fact\nstatus: active\ncreated: 2026-11-20T10:00:00Z\n{2}---\n{1}\n"


def write(vault, name: str, text: str, head: str = "") -> None:
    vault.write(f"facts/{name}.md", FACT.format(name, text, head))


@pytest.fixture
def home(vault, monkeypatch):
    """A vault that a session of Claude Code has asked once."""
    write(vault, "kiln", "The kiln in the studio reaches 1280 degrees")
    vault.save()
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    with vault.memory() as memory:
        memory.sync()
    transcript = Path.home() / ".claude/projects/-x/s1.jsonl"
    begin = {"session_id": "s1", "cwd": "/", "transcript_path": str(transcript)}
    hook(["session-start"], json.dumps({**begin, "source": "clear"}).encode())
    write(vault, "milk", "Maya takes oat milk in her coffee, never sugar")
    vault.save()
    hook(["user-prompt-submit"], json.dumps({**begin, "prompt": ASKED}).encode())
    return vault


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def store_talk(vault, answer: str) -> None:
    """The conversation of the session, as capture stores it."""
    now = datetime.now(UTC)
    vault.write(
        "episodes/2026/11/talk.md",
        f"---\nid: talk\ntype: episode\nsession: s1\nsource: claude-code\nturn_count: 2\nstarted: {now:%Y-%m-%dT%H:%MZ}\n"
        f"---\n**Maya** ({now:%H:%M}): {ASKED} ^t1\n\n**Assistant** ({now:%H:%M}): {answer} ^t2\n",
    )
    vault.save()


def test_a_page_without_a_session_says_how_to_connect_an_agent(client):
    assert "quaid install claude-code" in client.get("/sessions").text


def test_a_session_shows_its_prompt_the_memories_the_evidence_and_the_tokens(home):
    with reading(home) as reader:
        listed = words(reader.get("/sessions"))
        assert "Claude Code" in listed
        assert "1 prompt · 1 memory given" in listed
        page = reader.get("/sessions/s1")
    shown = words(page)
    assert f"{ASKED} " in shown
    assert 'href="/memory/01milk"' in page
    assert re.search(r"evidence \d\.\d\d \(words", shown)
    assert re.search(r"\d+ tokens", shown)
    assert "not stored yet" in shown
    assert "Use not known" in shown


@pytest.mark.parametrize(("answer", "told"), [
    ("She takes oat milk, and never sugar.", "Used : the answer repeats oat"),
    ("I do not know.", "No sign of it in the answer"),
])  # fmt: skip
def test_a_memory_was_used_if_the_answer_repeats_what_the_prompt_did_not_say(home, answer, told):
    store_talk(home, answer)
    with reading(home) as reader:
        assert told in words(reader.get("/sessions/s1"))


def test_a_session_and_its_conversation_lead_to_each_other(home):
    store_talk(home, "Oat milk.")
    with reading(home) as reader:
        talk = re.search(r'href="(/session/[^"]+)"', reader.get("/sessions/s1"))[1]
        assert 'href="/sessions/s1"' in reader.get(talk)


def test_not_relevant_becomes_an_example_for_eval_that_an_undo_takes_back(home, capsys):
    with reading(home) as reader:
        at = re.search(r'name="at" value="([^"]+)"', reader.get("/sessions/s1"))[1]
        before = home.git("rev-parse", "HEAD")
        there = reader.post("/sessions/irrelevant", session="s1", at=at, memory="01milk")
        assert home.git("rev-parse", "HEAD~1") == before
        (example,) = (home.root / "eval/not-relevant").glob("*.jsonl")
        assert json.loads(example.read_text()) == {
            "question": ASKED, "expect": ["not 01milk"], "group": "Not relevant",
        }  # fmt: skip
        page = reader.get(there.partition("#")[0])
        assert "You marked this as not relevant here" in page
        assert (home.root / "facts/milk.md").read_text() == FACT.format(
            "milk", "Maya takes oat milk in her coffee, never sugar", ""
        )
        assert "unchanged" in reader.post("/sessions/irrelevant", session="s1", at=at, memory="01milk")
        capsys.readouterr()
        assert quaid(["--vault", str(home.root), "eval", str(example)]) == 1  # it is found all the same
        assert "0 of 1 expected answer" in capsys.readouterr().out
        commit = re.search(r"commit=(\w+)", there)[1]
        reader.post("/undo", commit=commit, back="/sessions/s1")
        assert not example.exists()
        assert "This was not relevant" in reader.get("/sessions/s1")


def test_only_what_was_given_can_be_marked(home):
    with reading(home) as reader:
        reader.post("/sessions/irrelevant", 400, session="s1", at="2026-01-01", memory="01milk")
        at = re.search(r'name="at" value="([^"]+)"', reader.get("/sessions/s1"))[1]
        reader.post("/sessions/irrelevant", 400, session="s1", at=at, memory="01other")
    assert not (home.root / "eval").exists()


def test_without_the_words_of_prompts_the_reader_writes_what_was_asked(vault, monkeypatch):
    monkeypatch.setenv("QUAID_RECALL_LOG", "hashes")
    write(vault, "milk", "Maya takes oat milk in her coffee")
    vault.save()
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    hook(["user-prompt-submit"], json.dumps({"session_id": "s2", "cwd": "/", "prompt": ASKED}).encode())
    with reading(vault) as reader:
        page = reader.get("/sessions/s2")
        assert ASKED not in page
        at = re.search(r'name="at" value="([^"]+)"', page)[1]
        reader.post("/sessions/irrelevant", 400, session="s2", at=at, memory="01milk")
        reader.post("/sessions/irrelevant", session="s2", at=at, memory="01milk", question="her milk?")
    (example,) = (vault.root / "eval/not-relevant").glob("*.jsonl")
    assert json.loads(example.read_text())["question"] == "her milk?"


def test_a_client_of_mcp_is_listed_by_its_name(vault):
    write(vault, "milk", "Maya takes oat milk in her coffee")
    vault.save()
    with vault.memory() as memory:
        memory.recall("oat milk", door="mcp", session="cursor-vscode")
        memory.recall("oat milk", door="cli")
    with reading(vault) as reader:
        page = reader.get("/sessions")
        ((address, host),) = re.findall(r'<h2><a href="([^"]+)">([^<]+)', page)
        assert host == "Cursor"
        shown = words(reader.get(address))
        assert "oat milk" in shown
        assert "Quaid does not see" in shown


def test_what_became_private_since_is_on_no_page_of_a_session_nor_in_its_counts(home):
    write(home, "milk", "Maya takes oat milk in her coffee, never sugar", "owner: bob\nprivacy: private\n")
    home.save()
    with reading(home) as reader:
        for path in ("/sessions", "/sessions/s1"):
            shown = words(reader.get(path))
            assert "sugar" not in shown
            assert "0 memories given" in shown


def test_what_another_owner_asked_is_not_listed(home):
    path = state_folder(home.root) / "log" / recall_trail.LOG_FILE
    path.write_text(path.read_text().replace('"asker": "default"', '"asker": "bob"'))
    for file in (state_folder(home.root) / "sessions").iterdir():
        file.write_text(file.read_text().replace('"asker": "default"', '"asker": "bob"'))
    with reading(home) as reader:
        assert "Claude Code" not in reader.get("/sessions").replace("for example Claude Code", "")
        reader.get("/sessions/s1", 404)


def test_a_recall_before_a_prompt_that_gave_nothing_is_shown_with_what_was_left_out(home):
    hook(
        ["user-prompt-submit"],
        json.dumps({"session_id": "s1", "cwd": "/", "prompt": "Is coffee good with milk?"}).encode(),
    )
    with reading(home) as reader:
        shown = words(reader.get("/sessions/s1"))
    assert "Nothing was given." in shown
    assert "given to this session before" in shown


def test_damaged_records_are_left_out(home):
    now = datetime.now(UTC) + timedelta(seconds=1)
    for file in (state_folder(home.root) / "sessions").iterdir():
        file.write_text(
            file.read_text() + '{"ids": 7}\n[]\nnonsense\n' + json.dumps({"at": f"{now:%c}", "ids": [None]})
        )
    with reading(home) as reader:
        assert "1 prompt" in words(reader.get("/sessions"))
        reader.get("/sessions/s1")
