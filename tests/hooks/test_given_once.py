"""What a session was given already is not given again, and nothing worse in its place; a compaction takes it away."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from hook_sessions import state
from hooks.test_hooks import hook
from residents import listening

from quaid.agents.prompt_context import GIVEN_BEFORE
from quaid.cli.resident import run_call
from quaid.local import recall_trail, sessions
from quaid.resident.call import Call

FACT = "---\nid: 01{0}\ntype: fact\nstatus: active\ncreated: 2026-11-2{1}T10:00:00Z\n---\n{2}\n"


@pytest.fixture
def home(vault, monkeypatch, tmp_path):
    facts = {
        "boss": "Maya's boss at Acme is Priya Raman.",
        "desk": "Maya's boss has a desk by the window.",
        "phone": "Priya Raman has the phone number 0664 12345.",
        "kiln": "The kiln in the studio reaches 1280 degrees.",
    }
    for number, (name, text) in enumerate(facts.items()):
        vault.write(f"facts/{name}.md", FACT.format(name, number, text))
    vault.save()
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("QUAID_OWNER_NAME", "Maya")
    with vault.memory() as memory:
        memory.sync()
    return vault


@pytest.fixture
def ask(monkeypatch, capsys, home):
    def ask(prompt, session="s1", **given):
        told = hook(monkeypatch, capsys, "user-prompt-submit", prompt=prompt, session_id=session, **given)
        return json.loads(told)["hookSpecificOutput"]["additionalContext"] if told else ""

    return ask


@pytest.fixture
def begin(monkeypatch, capsys, home):
    return lambda source, session="s1": hook(
        monkeypatch, capsys, "session-start", source=source, session_id=session, cwd="/"
    )


def test_what_the_start_gave_is_not_given_again(ask, begin):
    assert "1280 degrees" in begin("startup")
    assert ask("How hot does the kiln in the studio get?") == ""
    assert "1280 degrees" in ask("How hot does the kiln in the studio get?", session="s2")  # it was not begun


def test_a_core_note_is_known_as_it_is_shown(ask, begin, home):
    home.write("USER.md", "# User\n\nMaya is a **potter**.\n\n## Likes\n\n- oat milk in [[Coffee]]\n- `Tuesdays`\n")
    assert "oat milk in" in ask("What does Maya like: oat milk or Tuesdays?", session="s2")
    assert "oat milk" in begin("startup")
    assert "oat milk" not in ask("What does Maya like: oat milk or Tuesdays?")


def test_a_part_of_a_line_is_not_that_line(home):
    sessions.record(state(home), "s1", {"text": "- (2026-11-20) Maya has a dog allergy"})
    given = sessions.read(state(home), "s1")
    assert not given.has("01dog", "Maya has a dog")
    assert given.has("01allergy", "Maya has a  dog allergy")


def test_the_same_question_does_not_bring_what_is_left(ask, monkeypatch):
    monkeypatch.setenv("QUAID_HOOKS_RECALL_TOKENS", "50")  # one fact fits
    first = ask("Who is the boss of Maya?")
    assert first.count("\n* ") == 1
    assert ask("Who is the boss of Maya?") == ""
    assert ask("who's Maya's boss again?") == ""


def test_another_question_brings_what_is_new(ask):
    assert "Priya Raman" in ask("Who is my boss?")
    told = ask("What is the phone number of Priya Raman?")
    assert "0664" in told
    assert "boss at Acme" not in told


@pytest.mark.parametrize("source", ["compact", "clear"])
def test_what_was_given_before_a_compaction_counts_as_not_given(ask, begin, source):
    begin("startup")
    assert "1280" not in ask("How hot does the kiln in the studio get?")
    assert "1280" in begin(source)  # and is given with the new start
    assert "1280" not in ask("How hot does the kiln in the studio get?")


def test_after_a_compaction_the_same_memories_go_before_a_prompt(ask, begin, monkeypatch):
    monkeypatch.setenv("QUAID_HOOKS_CONTEXT", "false")
    begin("startup")
    assert "Priya" in ask("Who is my boss?")
    assert ask("Who is my boss?") == ""
    begin("compact")
    assert "Priya" in ask("Who is my boss?")


def test_a_session_that_goes_on_keeps_what_it_was_given(ask, begin):
    begin("startup")
    begin("resume")
    assert ask("How hot does the kiln in the studio get?") == ""


def test_a_program_that_keeps_nothing_is_given_it_again(ask, begin):
    begin("startup")
    for _ in range(2):
        assert "1280" in ask("How hot does the kiln in the studio get?", host="openclaw")


def test_what_contradicts_what_was_given_is_told(ask, home):
    def lives_in(city, day):
        home.write(f"facts/{city}.md", FACT.format(city, day, f"Jon lives in {city}.\n\n- [[Jon]] lives_in [[{city}]]"))

    lives_in("Oslo", 1)
    assert "Oslo" in ask("Where does Jon live?")
    lives_in("Bergen", 4)
    assert "Bergen" in ask("Where does Jon live?")


def test_why_is_kept_for_each_hit(ask, home):
    ask("Who is my boss?")
    last = recall_trail.read_last(state(home), "s1")
    assert last is not None
    assert last.weighed == dict.fromkeys(("01boss", "01desk"), "1.00 (words 1.00)")
    ask("Who is my boss?")
    again = recall_trail.read_last(state(home), "s1")
    assert again is not None
    assert again.given == ()
    assert ("01boss", GIVEN_BEFORE) in [(hit_id, why) for hit_id, _, why in again.left_out]
    ask("Write a function that sorts the degrees of a list of angles")
    unrelated = recall_trail.read_last(state(home), "s1")
    assert unrelated is not None
    (why,) = [why for hit_id, _, why in unrelated.left_out if hit_id == "01kiln"]
    assert why.startswith("little to do with the prompt")
    assert why.endswith("under 0.5")


def test_what_nobody_read_was_not_given(home):
    """A program that ended before it read, or a hook that was killed while it wrote."""
    command = [sys.executable, "-m", "quaid", "hook", "user-prompt-submit"]
    asked = {"input": json.dumps({"session_id": "s1", "prompt": "Who is my boss?"}), "text": True}
    with Path("/dev/full").open("w") as full:
        subprocess.run(command, stdout=full, stderr=subprocess.DEVNULL, check=True, **asked)
    assert not sessions.read(state(home), "s1").ids
    assert "Priya Raman" in subprocess.run(command, stdout=subprocess.PIPE, check=True, **asked).stdout
    assert sessions.read(state(home), "s1").ids


@pytest.mark.parametrize("event", ["user-prompt-submit", "session-start"])
def test_what_was_answered_too_late_was_not_given(home, ask, begin, event, monkeypatch):
    may_answer, has_answered = Event(), Event()

    def answer_late(memory, call):
        answer = run_call(memory, call)
        if call.arguments[0] == "hook":
            may_answer.wait(60)
            has_answered.set()
        return answer

    monkeypatch.setattr("residents.run_call", answer_late)
    monkeypatch.setattr("quaid.resident.call.ANSWER_S", 0.2)
    with listening(home.root, monkeypatch):
        stdin = json.dumps({"session_id": "s1", "prompt": "Who is my boss?", "source": "startup"}).encode()
        assert Call(str(home.root), ["hook", event], stdin).ask() is None
        assert sessions.read(state(home), "s1") == sessions.Given()
        may_answer.set()
        assert has_answered.wait(60)
        assert sessions.read(state(home), "s1") == sessions.Given()
        assert "Priya Raman" in ask("Who is my boss?")  # as the hook does that goes on alone
        assert ask("Who is my boss?") == ""


def test_a_process_that_was_answered_by_another_records_what_it_printed(home, monkeypatch):
    answered = []
    monkeypatch.setattr("residents.run_call", lambda memory, call: answered.append(call) or run_call(memory, call))
    monkeypatch.setattr("quaid.resident.call.ANSWER_S", 20.0)
    patient = "from quaid.resident import call; call.ANSWER_S = 20.0; from quaid.__main__ import run; run()"
    command = [sys.executable, "-c", patient, "--vault", str(home.root), "hook", "user-prompt-submit"]
    stdin = json.dumps({"session_id": "s1", "prompt": "Who is my boss?"})
    with listening(home.root, monkeypatch):
        del answered[:]
        told = [subprocess.run(command, input=stdin, stdout=subprocess.PIPE, text=True, check=True).stdout
                for _ in range(2)]  # fmt: skip
    assert len(answered) == 2
    assert "Priya Raman" in told[0]
    assert told[1] == ""


def test_half_a_character_in_a_prompt_is_answered(home, monkeypatch, capsys):
    for number, odd in enumerate((b"\\ud83d", b"\\u0000", b"\xed\xa0\xbd", b"\xff", b"\0")):
        raw = b'{"session_id": "%d%s", "prompt": "Who is my boss %s?"}' % (number, odd, odd)
        assert "Priya Raman" in hook(monkeypatch, capsys, "user-prompt-submit", raw=raw)
        assert hook(monkeypatch, capsys, "user-prompt-submit", raw=raw) == ""
