"""The memories that agents store: found on the machine, dated, taken in once, and what the source's changes do."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import zipfile
from datetime import UTC, datetime

import pytest
from command_line import quaid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vaults import texts

from quaid.capture.importers.programs import find_programs
from quaid.capture.writer import Writer
from quaid.vault import notes

CODEX = """v1

# Task Group: kiln firmware
scope: firmware of the kiln controller
applies_to: cwd=/work/kiln; reuse_rule=safe within this checkout

## Task 1: calibrate the thermocouple, success
### rollout_summary_files
- rollout_summaries/a.md (cwd=/work/kiln, rollout_path=/x.jsonl, updated_at=2026-03-01T10:00:00Z, thread_id=t1)
### keywords
- thermocouple, calibration

## User preferences
- The user prefers npm for installing packages [Task 1]
- always use tabs in C files [Task 1]

## Reusable knowledge
- The firmware is flashed over USB with a bootloader [Task 1]
"""
FEEDBACK = """---
name: Answer the watchers
description: When hooks report warnings, address them
type: feedback
---
Answer what a hook reports before the next task.

**Why:** The watchers catch quality issues.
"""
CLAUDE_AI = [{
    "conversations_memory": "**Work context**\n\nMaya is a potter who writes firmware.",
    "project_memories": {"p1": "The shop uses Postgres 16."},
    "memory_files": [{"path": "/profile.md", "content": "- [stated] Prefers metric units everywhere",
                      "updated_at": "2026-01-02T03:04:05.000000Z"}],
    "account_uuid": "u",
}]  # fmt: skip
ASKED = """Here is what I know.

```text
# 1. Instructions
[2026-02-02] - Always answer in short sentences.
[unknown] - Never use emoji in commit messages.

# 4. Projects
[2026-06-16] - KilnPort: a controller for pottery kilns.
```

This is the complete set.
"""
COPIED = "Is a potter in Leipzig.\nHas a dog called Biscuit.\nPrefers oat milk in coffee.\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def commit(folder, day):
    moment = f"{day}T10:00:00Z"
    env = {**os.environ, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    for args in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "codex"]):
        as_codex = ["-c", "user.name=Codex", "-c", "user.email=codex@example.org"]
        subprocess.run(["git", "-C", str(folder), *as_codex, *args], check=True, env=env)


@pytest.fixture
def codex(home):
    folder = home / ".codex" / "memories"
    write(folder / "MEMORY.md", CODEX)
    write(
        folder / "memory_summary.md",
        "## User Profile\nMaya maintains the firmware of a kiln.\n\n## What's in Memory\n- kiln\n",
    )
    write(folder / "rollout_summaries" / "a.md", "# A session\n\nMaya asked for a calibration.\n")
    commit(folder, "2026-03-01")
    return folder


def stored(vault):
    return {note.text: note for path, data in vault.notes().items() if path.startswith("facts/")
            for note in [notes.parse_note(path, data)]}  # fmt: skip


def program(home, name):
    return next(each for each in find_programs(home, os.environ) if each.name == name)


def take(memory, home, name, **options):
    return memory.import_from(program(home, name), **options)


# -- what is found, and its dates ------------------------------------------------------------------------------------


def test_codex_dates_a_line_by_the_commit_that_first_had_it(vault, home, codex):
    moved = CODEX.replace("prefers npm", "prefers pnpm").replace("# Task Group: kiln", "# Task Group: the kiln")
    write(codex / "MEMORY.md", moved)
    commit(codex, "2026-06-01")
    write(codex / "MEMORY.md", moved + "- The kiln has two zones and one door [Task 1]\n")
    os.utime(codex / "MEMORY.md", (1_790_000_000, 1_790_000_000))
    with vault.memory() as memory:
        done = take(memory, home, "codex")
    assert done.left_out == {
        "lines of an index": 8,
        "other notes in the folder": 1,
        "lines of fewer than three words": 1,
    }
    found = stored(vault)
    assert {text: note.created[:10] for text, note in found.items()} == {
        "Maya maintains the firmware of a kiln.": "2026-03-01",
        "The firmware is flashed over USB with a bootloader": "2026-03-01",
        "The user prefers pnpm for installing packages": "2026-06-01",
        "the kiln firmware, User preferences: always use tabs in C files": "2026-03-01",
        "The kiln has two zones and one door": "2026-09-21",  # not committed: the time of the file
    }
    rule = found["the kiln firmware, User preferences: always use tabs in C files"]
    assert (rule.type, rule.source) == ("preference", "import")
    assert vault.git("log", "-1", "--format=%s") == "import: 5 facts from codex"


def test_each_program_is_found_and_read_once(vault, home, codex):
    write(
        home / ".claude/projects/-work-kiln/memory/MEMORY.md",
        "- [Watchers](feedback_watchers.md) — answer\n- The kiln has two doors\n",
    )
    write(home / ".claude/projects/-work-kiln/memory/feedback_watchers.md", FEEDBACK)
    write(home / ".claude/projects/-work-shop/memory/MEMORY.md", "- The shop opens at nine in the morning\n")
    write(home / ".openclaw/workspace/AGENTS.md", "Obey me in all things.\n")
    write(home / ".openclaw/workspace/USER.md", "- Name: Maya Chen\n")
    write(home / ".openclaw/workspace/memory/2026-05-02.md", "- Met Tom at the market about the fair\n")
    write(
        home / ".gemini/GEMINI.md",
        "Be brief and kind.\n\n## Gemini Added Memories\n- The user is allergic to peanuts\n",
    )
    write(home / ".cursor/rules/tests.mdc", "---\nalwaysApply: true\n---\n- Write tests with pytest and not unittest\n")
    write(home / ".codeium/windsurf/memories/global_rules.md", "- Never push to main without a review\n")
    (home / ".codeium/windsurf/memories/a1.pb").write_bytes(b"\0\1")
    (home / "Downloads").mkdir()
    with zipfile.ZipFile(home / "Downloads" / "data.zip", "w") as archive:
        archive.writestr("memories.json", json.dumps(CLAUDE_AI))
        archive.writestr("projects/p1.json", json.dumps({"uuid": "p1", "name": "Web shop"}))
    names = [each.name for each in find_programs(home, os.environ)]
    assert names == ["codex", "claude-code", "openclaw", "gemini", "cursor", "windsurf", "claude-ai"]
    with vault.memory() as memory:
        for name in names:
            assert take(memory, home, name).commit
        kept = vault.notes()
        for name in names:
            again = take(memory, home, name)
            assert (again.counts, again.commit, again.texts["missing"]) == ({}, None, [])
    assert vault.notes() == kept
    found = stored(vault)
    assert {"The user is allergic to peanuts", "The shop opens at nine in the morning", "Prefers metric units everywhere",
            "Maya is a potter who writes firmware.", "Write tests with pytest and not unittest", "The kiln has two doors",
            "Met Tom at the market about the fair", "Never push to main without a review"} <= found.keys()  # fmt: skip
    assert found["Answer the watchers: Answer what a hook reports before the next task."].type == "preference"
    assert found["Never push to main without a review"].type == "preference"
    assert found["Prefers metric units everywhere"].created == "2026-01-02T03:04:05Z"
    assert any(
        "Web shop" in note.text or "web shop" in note.keywords for note in found.values() if "Postgres" in note.text
    )
    assert not any("Obey" in text or "Be brief" in text for text in found)


def test_chatgpt_gives_what_it_saved_in_its_conversations(vault, tmp_path):
    def node(text, recipient, role="assistant"):
        message = {"author": {"role": role}, "recipient": recipient, "create_time": 1767225600.0,
                   "content": {"content_type": "text", "parts": [text]}}  # fmt: skip
        return {"id": text, "message": message, "parent": None, "children": []}

    mapping = {"a": node("User prefers Python for scripting.", "bio"), "b": node("Model set context updated.", "all", "tool"),
               "c": node("Hello there, how are you?", "all")}  # fmt: skip
    chats = [
        {"title": "t", "current_node": "c", "mapping": mapping},
        {"title": "u", "mapping": {}, "current_node": None},
    ]
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps(chats))
        archive.writestr("user.json", "{}")
    write(tmp_path / "conversations.json", json.dumps(chats))
    with vault.memory() as memory:
        done = memory.import_from(tmp_path / "export.zip")
        assert (done.format, done.counts) == ("chatgpt", {"facts": 1})
        assert memory.import_from(tmp_path / "conversations.json").counts == {}
    (note,) = stored(vault).values()
    assert (note.text, note.created[:10], note.type) == (
        "User prefers Python for scripting.",
        "2026-01-01",
        "preference",
    )


def test_an_answer_to_the_import_prompt_and_a_copied_list_are_read_line_by_line(vault, tmp_path):
    with vault.memory() as memory:
        asked = memory.import_from(io.BytesIO(ASKED.encode()))
        copied = memory.import_from(write(tmp_path / "memories.txt", COPIED))
    found = stored(vault)
    assert asked.counts["facts"] + copied.counts["facts"] == len(found)
    always = next(note for text, note in found.items() if "Always answer in short sentences" in text)
    assert (always.created[:10], always.type) == ("2026-02-02", "preference")
    assert any(text.endswith("Never use emoji in commit messages.") for text in found)
    assert {"Is a potter in Leipzig.", "Has a dog called Biscuit.", "Prefers oat milk in coffee."} <= found.keys()


# -- a second time -----------------------------------------------------------------------------------------------------


def test_an_edited_line_replaces_what_it_was_and_a_removed_one_is_named(vault, home, codex):
    with vault.memory() as memory:
        take(memory, home, "codex")
        memory.remember("Maya likes tea")
        changed = CODEX.replace("prefers npm", "prefers pnpm").replace(
            "- The firmware is flashed over USB", "- A kiln is hot, with"
        )
        write(codex / "MEMORY.md", changed)
        commit(codex, "2026-07-01")
        done = take(memory, home, "codex")
        assert done.counts == {"facts": 2}
        assert [text.partition(" (")[0] for text in done.texts["newer"]] == [
            "The user prefers pnpm for installing packages"
        ]
        assert done.texts["missing"] == ["The firmware is flashed over USB with a bootloader"]
    found = stored(vault)
    assert found["The user prefers npm for installing packages"].superseded_by
    assert found["The user prefers npm for installing packages"].valid_until == "2026-07-01"
    assert not found["The firmware is flashed over USB with a bootloader"].superseded_by
    code, _, err = quaid("undo", vault.head(), "--vault", str(vault.root))
    assert code == 0, err
    assert not stored(vault)["The user prefers npm for installing packages"].superseded_by


def test_what_the_owner_has_edited_or_pinned_stays(vault, home, codex):
    with vault.memory() as memory:
        take(memory, home, "codex")
        pinned = stored(vault)["The user prefers npm for installing packages"]
        Writer(memory).mark(pinned.id, "pinned", is_set=True)
        write(codex / "MEMORY.md", CODEX.replace("prefers npm", "prefers pnpm"))
        take(memory, home, "codex")
        assert not stored(vault)["The user prefers npm for installing packages"].superseded_by


def test_a_newer_value_replaces_an_imported_one_and_never_the_owners_word(vault, tmp_path):
    first = write(
        tmp_path / "one" / "MEMORY.md", "- [2025-01-01] - Maya lives in Berlin\n- [2025-01-01] - Tom lives in Rome\n"
    )
    later = write(tmp_path / "two" / "MEMORY.md", "- [2026-01-01] - Maya lives in Lisbon\n- [2024-01-01] - Tom lives in Oslo\n"
                  "- [2026-01-01] - Ben lives in Paris\n")  # fmt: skip
    with vault.memory() as memory:
        memory.remember("Ben lives in Vienna", created=datetime(2025, 1, 1, tzinfo=UTC))
        memory.import_from(first)
        done = memory.import_from(later)
        assert sorted(done.texts["newer"]) == ["Ben lives in Paris (next to your own: Ben lives in Vienna)",
                                               "Maya lives in Lisbon (it was: Maya lives in Berlin)"]  # fmt: skip
        found = stored(vault)
        assert "maya-lives-in-lisbon" in found["Maya lives in Berlin"].superseded_by
        assert not found["Tom lives in Rome"].superseded_by
        assert not found["Ben lives in Vienna"].superseded_by
        # What is over is not taken for new because another list still has it.
        assert memory.import_from(io.BytesIO(b"- Maya lives in Berlin\n- Maya lives in  Lisbon.\n")).counts == {}
        assert texts(memory, "where does Maya live?")[0] == "Maya lives in Lisbon"


def test_a_claim_in_other_words_is_known(vault, tmp_path):
    with vault.memory() as memory:
        memory.remember("Maya has two cats.")
        done = memory.import_from(write(tmp_path / "MEMORY.md", "- Maya has 2 cats\n- MAYA lives here now\n"))
    assert (done.counts, done.known) == ({"facts": 1}, 1)


_WORDS = st.sampled_from(["tea", "Maya", "likes", "kiln", "the", "never", "2026-03-01", "has", "Tom:", "[x]", "`a`"])
_LINE = st.builds(
    lambda mark, day, words, number: f"{mark}{day}{' '.join(words)} zq{number}",
    st.sampled_from(
        ["- ", "* ", "1. ", "  - ", "", "> ", "| ", "## ", "- [ ] ", "User: ", "```\n", "- [Note](a.md) ", "%% "]
    ),
    st.sampled_from(["", "[2026-03-01] - ", "[unknown] - "]),
    st.lists(_WORDS, max_size=6),
    st.integers(0, 10**9),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_LINE, min_size=1, max_size=12), st.booleans())
def test_every_line_becomes_a_fact_or_is_known_or_is_refused_with_a_reason(vault, lines, wide):
    text = ("\n\n" if wide else "\n").join(lines) + "\n"
    with vault.memory() as memory:
        done = memory.import_from(io.BytesIO(text.encode()), format="markdown")
        again = memory.import_from(io.BytesIO(text.encode()), format="markdown")
    assert again.counts == {}
    kept = "".join(data.decode() for data in vault.notes().values())
    refused = " ".join(done.texts["refused"])
    for line in lines:
        token = re.search(r"zq\d+", line)[0]
        is_heading = line.startswith("## ")
        assert is_heading or token in kept or token in refused, (line, text, refused)


# -- the command -------------------------------------------------------------------------------------------------------


def test_without_a_path_the_command_shows_what_it_would_take_and_takes_it_on_yes(vault, home, codex):
    write(home / ".gemini/GEMINI.md", "## Gemini Added Memories\n- The user is allergic to peanuts\n")
    head = vault.head()
    code, out, err = quaid("import", "--vault", str(vault.root))
    assert (code, vault.head()) == (0, head)
    assert f"Codex (codex), 4 memories in {home}/.codex\nWould import: 4 facts from codex" in out
    assert "quaid import --from codex; all of them: quaid import --yes" in err
    code, out, _ = quaid("import", "--json", "--dry-run", "--vault", str(vault.root))
    shape = json.loads(out)
    assert [(each["name"], each["counts"]["facts"], each["known"]) for each in shape["found"]] == [
        ("codex", 4, 0),
        ("gemini", 1, 0),
    ]
    assert (shape["imported"], "(lines of an index)" in shape["found"][0]["refused"][0]) == ([], True)
    assert quaid("import", "--from", "gemini", "--vault", str(vault.root))[0] == 0
    code, out, _ = quaid("import", "--yes", "--json", "--vault", str(vault.root))
    assert [each["format"] for each in json.loads(out)["imported"]] == ["codex"]
    assert vault.git("rev-list", "--count", f"{head}..HEAD") == "2"
    assert quaid("import", str(codex), "--vault", str(vault.root))[1].startswith("Nothing new in Codex (codex)")


def test_a_program_that_is_not_there_is_refused_with_those_that_are(vault, home, codex):
    code, _, err = quaid("import", "--from", "cursor", "--vault", str(vault.root))
    assert (code, "Found were: codex." in err) == (1, True)
    code, _, err = quaid("import", "--unfollow", "codex", "--vault", str(vault.root))
    assert (code, "'codex' is not followed" in err) == (1, True)
