"""A session that is read while it goes on gives the episode that it gives when it is read once, at its end."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples
from transcript_reading import ClaudeCodeSession

from quaid.capture.episode_note import StoredEpisode, candidate_sessions, plan_episode
from quaid.capture.transcripts import read_conversations
from quaid.capture.transcripts.parsing import CITABLE_CHARS
from quaid.errors import BadInputError
from quaid.model import Conversation, Turn

DATA = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[3] / "shared" / "data")) / "transcripts"
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
REPORT = "\n\n".join(f"Paragraph {number}: {'the cache is keyed by the lock file. ' * 12}end" for number in range(26))
FENCED = "Look:\n\n```python\n" + "x = 1\n\n" * 400 + "```\n\nThat is all."


def feed(kept: dict[str, StoredEpisode], lines: list[str]) -> dict[str, StoredEpisode]:
    """The episodes after these lines of a transcript were read."""
    try:
        found = [each for each in read_conversations(io.BytesIO("".join(lines).encode())) if each.turns]
    except BadInputError:  # its first lines do not tell yet what it is
        return kept
    for conversation in found:
        session = conversation.session or next(candidate_sessions(conversation))
        path, edit, _ = plan_episode(session, conversation, kept.get(session), NOW)
        kept = {**kept, session: StoredEpisode(path, edit.after)} if edit else kept
    return kept


def notes(kept: dict[str, StoredEpisode]) -> dict[str, str]:
    return {episode.rel_path: episode.data.decode() for episode in kept.values()}


def check_growth(lines: list[str], *cuts: int) -> dict[str, StoredEpisode]:
    once = feed({}, lines)
    grown: dict[str, StoredEpisode] = {}
    for cut in (*cuts, len(lines)):
        grown = feed(grown, lines[:cut])
    assert notes(grown) == notes(once)
    return once


def real_sessions() -> list[str]:
    return sorted(str(path.relative_to(DATA)) for path in DATA.rglob("*.jsonl")) if DATA.exists() else []


@pytest.mark.parametrize("name", real_sessions())
def test_a_real_session_read_by_thirds_and_at_every_line_is_one_episode(name):
    lines = (DATA / name).read_text(encoding="utf-8").splitlines(keepends=True)
    check_growth(lines, len(lines) // 3, 2 * len(lines) // 3)
    for cut in range(1, len(lines)):
        check_growth(lines, cut)


# every format, from one script


def claude_code(script):
    session = ClaudeCodeSession()
    for number, (kind, text) in enumerate(script):
        session.time = f"2026-11-20T10:{number:02}:00Z"
        ACTS[kind](session, text, number)
    return session.lines


def at(session):
    return {"timestamp": session.time}


def add_calls(session, text, number):
    """Two calls at once: the answer to a question, and a command whose result the next message hangs on."""
    asked = {"question": f"Which one, {number}?", "options": []}
    message = {"message": f"m{number}"}
    session.assistant(text, {"type": "tool_use", "id": f"q{number}", "name": "AskUserQuestion",
                             "input": {"questions": [asked]}}, uuid=f"q{number}", **message, **at(session))  # fmt: skip
    session.assistant({"type": "tool_use", "id": f"b{number}", "name": "Bash", "input": {}}, uuid=f"b{number}",
                      **message, **at(session))  # fmt: skip
    for call, result in (("q", {"answers": {asked["question"]: text}}), ("b", {"stdout": "ok"})):
        session.last = f"{call}{number}"
        content = [{"type": "tool_result", "tool_use_id": f"{call}{number}", "content": "ok"}]
        session.user(content, toolUseResult=result, **at(session))


def add_queued(session, text, number):
    """In the middle of a turn."""
    session.lines.append({"type": "queue-operation", "operation": "remove", "reason": "absorbed_mid_turn",
                          "content": text, "sessionId": "s", **at(session)})  # fmt: skip
    if number % 2:
        session.add("attachment", attachment={"type": "queued_command", "prompt": text}, **at(session))


def add_switch(session, text, number):
    session.user("<command-name>/model</command-name><command-args>opus</command-args>", **at(session))
    session.user("<local-command-stdout>Set</local-command-stdout>", **at(session))


def add_skill(session, text, number):
    session.user(f"<command-name>/deploy</command-name><command-args>{text}</command-args>", **at(session))
    session.user("Base directory for this skill: /x", isMeta=True, **at(session))


def add_compaction(session, text, number):
    before, session.last = session.last, None
    session.add("system", subtype="compact_boundary", logicalParentUuid=before)
    session.user("This session is being continued", isCompactSummary=True)


ACTS = {
    "user": lambda session, text, _: session.user(text, **at(session)),
    "agent": lambda session, text, _: session.assistant(text, **at(session)),
    "streamed twice": lambda session, text, number: [
        session.assistant(text, message=f"m{number}", **at(session)) for _ in range(2)
    ],
    "calls": add_calls,
    "queued": add_queued,
    "switch": add_switch,
    "skill": add_skill,
    "compaction": add_compaction,
}


def codex(script):
    yield {"type": "session_meta", "payload": {"id": "019a", "timestamp": "2026-11-20T10:00:00Z", "cwd": "/x"}}
    for number, (kind, text) in enumerate(script):
        role = "user" if kind == "user" else "assistant"
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        item = {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}
        event = {"type": "event_msg", "payload": {"type": f"{'user' if role == 'user' else 'agent'}_message",
                                                  "message": text}}  # fmt: skip
        for line in (item, event) if role == "user" else (event, item):
            yield {"timestamp": f"2026-11-20T10:{number:02}:00Z", **line}


def gemini(script):
    yield {"sessionId": "7c1f", "projectHash": "x", "startTime": "2026-11-20T10:00:00Z"}
    for number, (kind, text) in enumerate(script):
        line = {"id": f"g{number}", "timestamp": f"2026-11-20T10:{number:02}:00Z", "content": text}
        yield {**line, "type": "user" if kind == "user" else "gemini"}
        if kind != "user":
            yield {**line, "type": "gemini", "toolCalls": [{"id": "c"}]}


def openclaw(script):
    yield {"type": "session", "version": 3, "id": "c1", "timestamp": "2026-11-20T10:00:00Z", "cwd": "/x"}
    for number, (kind, text) in enumerate(script):
        role = "user" if kind == "user" else "assistant"
        yield {"type": "message", "id": f"e{number}", "parentId": f"e{number - 1}" if number else None,
               "timestamp": f"2026-11-20T10:{number:02}:00Z",
               "message": {"role": role, "content": [{"type": "text", "text": text}]}}  # fmt: skip


def hermes(script):
    for number, (kind, text) in enumerate(script):
        is_user = kind == "user"
        yield {"atof_version": "0.1", "kind": "scope", "category": "function", "name": "hermes.turn",
               "scope_category": "start" if is_user else "end", "metadata": {"session_id": "h1"},
               "timestamp": f"2026-11-20T10:{number:02}:00Z",
               "data": {"user" if is_user else "assistant": text}}  # fmt: skip


TEXTS = st.sampled_from(["hi", "I moved to Oslo.", "Done.", "- a\n- b", "**Tom**: no ^t1", REPORT, FENCED])
TALKS = st.lists(st.tuples(st.sampled_from(["user", "agent", "agent"]), TEXTS), min_size=1, max_size=8)


def draw_cuts(data, lines):
    return sorted(data.draw(st.lists(st.integers(1, len(lines)), max_size=3)))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(ACTS)), TEXTS), min_size=1, max_size=8), st.data())
def test_whatever_happens_in_a_session_of_claude_code_it_grows_into_the_same_episode(script, data):
    lines = [f"{json.dumps(line)}\n" for line in claude_code([("user", "go"), *script])]
    check_growth(lines, *draw_cuts(data, lines))


@pytest.mark.matrix
@pytest.mark.parametrize("write", [codex, gemini, openclaw, hermes])
@settings(max_examples=examples(60), deadline=None)
@given(script=TALKS, data=st.data())
def test_a_session_of_any_agent_grows_into_the_same_episode(write, script, data):
    lines = [f"{json.dumps(line)}\n" for line in write(script)]
    check_growth(lines, *draw_cuts(data, lines))


# what grows


def test_an_agent_at_work_adds_turns_and_changes_none():
    script = [
        ("user", "go"), ("agent", "I look."), ("calls", "Porto"), ("agent", "Now the report."), ("agent", "Done."),
    ]  # fmt: skip
    lines = [f"{json.dumps(line)}\n" for line in claude_code(script)]
    (episode,) = check_growth(lines, 2, 4, 5).values()
    assert [turn.text for turn in episode.turns] == [
        "go", "I look.", "Porto", "Which one, 2?", "Porto", "Now the report.", "Done.",
    ]  # fmt: skip
    assert episode.head.fields["ended"] == "2026-11-20T10:04:00Z"


@pytest.mark.parametrize("text", [REPORT, FENCED])
def test_a_long_message_is_several_turns_cut_at_its_paragraphs(text):
    lines = [f"{json.dumps(line)}\n" for line in claude_code([("user", "go"), ("agent", text)])]
    (episode,) = feed({}, lines).values()
    parts = [turn.text for turn in episode.turns[1:]]
    assert "\n\n".join(parts) == text.strip()
    assert len(parts) == (7 if text == REPORT else 3)
    assert all(len(part) <= CITABLE_CHARS for part in parts if "```" not in part)
    assert all(part.count("```") in (0, 2) for part in parts)


def test_what_a_person_typed_is_one_turn_however_long():
    (episode,) = feed({}, [f"{json.dumps(line)}\n" for line in claude_code([("user", REPORT)])]).values()
    assert [turn.text for turn in episode.turns] == [REPORT.strip()]


# episodes of earlier versions, in which all that an agent said between two prompts was one turn


def conversation(*said: tuple[str, str]) -> Conversation:
    started = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
    turns = [
        Turn("User" if role == "user" else "Assistant", text, role, started + timedelta(minutes=number))
        for number, (role, text) in enumerate(said)
    ]
    return Conversation(tuple(turns), "s", started=started)


def test_an_episode_whose_answers_are_one_turn_each_gets_only_what_is_new():
    merged = conversation(("user", "go"), ("assistant", "I look.\n\nTwo files.\n\nDone."), ("user", "thanks"))
    path, edit, _ = plan_episode("s", merged, None, NOW)
    kept = StoredEpisode(path, edit.after)
    apart = [("user", "go"), ("assistant", "I look."), ("assistant", "Two files."), ("assistant", "Done."),
             ("user", "thanks")]  # fmt: skip
    assert plan_episode("s", conversation(*apart), kept, NOW)[1:] == (None, 0)
    more = conversation(*apart, ("assistant", "Gladly."), ("assistant", "Done."))
    path, edit, new_turns = plan_episode("s", more, kept, NOW)
    assert new_turns == 2
    kept = StoredEpisode(path, edit.after)
    numbers = [(turn.number, turn.text) for turn in kept.turns]
    assert numbers[1:] == [(2, "I look.\n\nTwo files.\n\nDone."), (3, "thanks"), (4, "Gladly."), (5, "Done.")]
    assert all(before < after for (before, _), (after, _) in pairwise(numbers))
