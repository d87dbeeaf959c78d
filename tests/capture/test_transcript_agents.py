"""The session files of agents other than Claude Code: what was said in them, once, in order, and nothing else."""

from __future__ import annotations

import io
import json

import pytest
from matrices import for_each
from replay import needs
from transcript_reading import read_objects as read
from transcript_reading import said, utc

from quaid.capture.transcripts import read_conversations

# Codex CLI


def codex(kind, payload, at=0):
    return {"timestamp": f"2026-04-30T10:00:{at:02}.000Z", "type": kind, "payload": payload}


def meta(**more):
    return codex(
        "session_meta", {"id": "019a", "timestamp": "2026-04-30T10:00:00Z", "cwd": "/home/maya/garden", **more}
    )


def item(role, *texts, at=0):
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return codex("response_item", {"type": "message", "role": role, "content": content}, at)


def event(kind, **more):
    return codex("event_msg", {"type": kind, **more})


def asked(text, at=0):
    return [item("user", text, at=at), event("user_message", message=text, images=[])]


def answered(text, at=0):
    return [event("agent_message", message=text), item("assistant", text, at=at)]


def test_codex_says_everything_twice_and_it_is_read_once():
    conversation = read(
        meta(),
        codex("turn_context", {"cwd": "/home/maya/garden"}),
        item("developer", "You are Codex"),
        item("user", "# AGENTS.md instructions for /home/maya\n\n<INSTRUCTIONS>be nice</INSTRUCTIONS>",
             "<environment_context>\n<cwd>/x</cwd></environment_context>"),
        item("user", "<user_instructions>be nice</user_instructions>"),
        *asked("Water the garden", at=5),
        codex("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),
        *answered("I will look.", at=6),
        codex("response_item", {"type": "function_call", "name": "exec", "arguments": "{}"}),
        codex("response_item", {"type": "function_call_output", "output": "wet"}),
        codex("response_item", {"type": "custom_tool_call_output", "output": "wet"}),
        event("token_count", info=None),
        *answered("Done.", at=7),
        codex("future_record", {"safe": "ignored"}),
        *asked("Thanks", at=8),
    )  # fmt: skip
    assert said(conversation) == [
        ("User", "Water the garden"), ("Assistant", "I will look."), ("Assistant", "Done."), ("User", "Thanks"),
    ]  # fmt: skip
    assert (conversation.session, conversation.source, conversation.project) == ("019a", "codex", "garden")
    assert conversation.started == utc(2026, 4, 30, 10)
    assert [turn.at.second for turn in conversation.turns] == [5, 6, 7, 8]
    assert conversation.skipped == {
        "bookkeeping": 2, "system or tool": 1, "injected": 3, "thinking": 1, "tool call": 1, "tool result": 2,
        "unknown type": 1,
    }  # fmt: skip


def test_what_codex_kept_only_as_events_or_only_as_items_is_read():
    events = read(meta(), event("user_message", message="hi"), event("agent_message", message="yo"))
    assert said(events) == [("User", "hi"), ("Assistant", "yo")]
    mixed = read(
        meta(), event("user_message", message="hi"), item("assistant", "yo"), event("agent_message", message="yo")
    )
    assert said(mixed) == [("User", "hi"), ("Assistant", "yo")]


def test_the_first_rollouts_were_bare_items():
    conversation = read(
        {"id": "5e", "timestamp": "2025-06-01T10:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "summary": []},
        {"type": "local_shell_call", "action": {}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]},
    )
    assert said(conversation) == [("User", "hi"), ("Assistant", "yo")]
    assert (conversation.session, conversation.started) == ("5e", utc(2025, 6, 1, 10))
    assert conversation.skipped == {"unknown type": 1, "thinking": 1, "tool call": 1}


def test_what_codex_took_back_or_compacted_is_not_read_again():
    conversation = read(
        meta(),
        *asked("one"),
        *answered("first"),
        *asked("two"),
        *answered("second"),
        event("thread_rolled_back", num_turns=1),
        codex("compacted", {"message": "a summary", "replacement_history": [{"type": "message", "role": "user"}]}),
        item("user", "Another language model started to solve this problem and produced a summary"),
        *asked("three"),
    )
    assert said(conversation) == [("User", "one"), ("Assistant", "first"), ("User", "three")]
    assert conversation.skipped["abandoned branch"] == 2
    assert said(read(meta(), *asked("one"), event("thread_rolled_back", num_turns=9))) == []


def test_the_editors_surroundings_are_cut_from_what_was_asked():
    text = "# Context from my IDE setup:\n\n## Active file: x.py\n\n## My request for Codex:\nFix the gate\n"
    assert said(read(meta(), *asked(text))) == [("User", "Fix the gate")]


def test_tags_that_no_event_knows_were_not_typed_and_others_were():
    conversation = read(
        meta(), item("user", "<brand_new_context>x</brand_new_context>"), *asked("<b>why</b> is it bold?")
    )
    assert said(conversation) == [("User", "<b>why</b> is it bold?")]


def test_codex_since_0_171_names_the_source_of_each_part_and_shows_items():
    def shown(kind, text):
        return event("item_completed", item={"type": kind, "content": [{"type": "text", "text": text}]})

    def sent(role, at, **parts):
        line = item(role, *parts.values(), at=at)
        kinds = [name.replace("_", ".", 1) for name in parts]
        line["payload"]["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
        return line

    conversation = read(
        meta(),
        sent("user", 1, environments_surroundings="The shell is bash", user_text="hi"),
        shown("UserMessage", "hi"),
        codex("token_usage_record", {"usage": {}}),
        codex("response_item", {"type": "tool_search_call", "arguments": {"query": "hi"}}),
        codex("response_item", {"type": "tool_search_output", "tools": []}),
        shown("AgentMessage", "yo"),
        sent("assistant", 2, unknown="yo"),
        sent("user", 3, harness_brand_new="<brand_new>x</brand_new>"),
    )
    assert said(conversation) == [("User", "hi"), ("Assistant", "yo")]
    assert conversation.skipped == {"injected": 2, "bookkeeping": 1, "tool call": 1, "tool result": 1}
    assert said(read(meta(), shown("UserMessage", "hi"))) == [("User", "hi")]


def test_a_forked_rollout_has_its_own_id_and_a_delegated_one_no_turns():
    assert read(meta(), codex("session_meta", {"id": "parent", "cwd": "/x"}), *asked("hi")).session == "019a"
    delegated = read(meta(source={"subagent": {"thread_spawn": {"parent_thread_id": "1"}}}), *asked("do this"))
    assert (delegated.turns, delegated.skipped["sidechain"]) == ((), 1)


# Gemini CLI


HEADER = {"sessionId": "7c1f", "projectHash": "f" * 64, "startTime": "2026-09-28T10:00:00Z", "kind": "main"}


def note(number, kind, content, **more):
    return {"id": number, "timestamp": "2026-09-28T10:01:00.000Z", "type": kind, "content": content, **more}


def test_geminis_log_of_patches_becomes_what_the_terminal_shows():
    conversation = read(
        HEADER,
        {"$set": {"messages": [note("s0", "user", [{"text": "<session_context>\nGemini"}])]}},
        note("u1", "user", [{"text": "water it"}]),
        note("g1", "gemini", "", toolCalls=[{"id": "c"}]),
        note("r1", "user", [{"functionResponse": {"id": "c"}}]),
        note("g1", "gemini", [{"text": "**Plan**", "thought": True}, {"text": "Done."}], toolCalls=[{"result": "x"}]),
        {"$set": {"directories": ["/home/maya/garden"], "lastUpdated": "x"}},
        note("i1", "info", "compressed"),
        {
            "$set": {
                "messages": [note("x1", "user", "<state_snapshot>S</state_snapshot>"), note("x2", "gemini", "Got it")]
            }
        },
        note("u2", "user", "wrong"),
        note("g2", "gemini", "wrong answer"),
        {"$rewindTo": "u2"},
        {"$rewindTo": "x9"},
        note("u3", "user", "right"),
        {"something": "else"},
    )
    assert said(conversation) == [("User", "water it"), ("Assistant", "Done."), ("User", "right")]
    assert (conversation.session, conversation.source, conversation.project) == ("7c1f", "gemini", "garden")
    assert conversation.started == utc(2026, 9, 28, 10)
    assert conversation.skipped == {
        "tool result": 1, "empty": 1, "thinking": 1, "notice": 1, "abandoned branch": 2, "unknown rewind": 1,
        "unknown type": 1,
    }  # fmt: skip


def test_a_log_that_holds_only_the_models_view_is_read_from_that():
    whole = [note("u1", "user", "hi"), note("g1", "gemini", "yo")]
    assert said(read(HEADER, {"$set": {"messages": whole[:1]}}, {"$set": {"messages": whole}})) == [
        ("User", "hi"),
        ("Assistant", "yo"),
    ]
    assert said(read({**HEADER, "messages": whole})) == [("User", "hi"), ("Assistant", "yo")]


def test_files_and_hooks_beside_a_prompt_were_not_typed():
    files = [{"text": "explain @a.ts"}, {"text": "\n--- Content from referenced files ---"}, {"text": "SECRET"},
             {"text": "\n--- End of content ---"}, {"inlineData": {}}]  # fmt: skip
    hooks = [{"text": "and this"}, {"text": "<hook_context>[MEMORY] tea</hook_context>"}]
    shown = note("u3", "user", [{"text": "x SECRET"}], displayContent=[{"text": "shown"}])
    conversation = read(
        HEADER, note("u1", "user", files), note("u2", "user", hooks), shown, note("u4", "user", "/help")
    )
    assert [turn.text for turn in conversation.turns] == ["explain @a.ts", "and this", "shown"]
    assert conversation.skipped == {"attachment": 4, "injected": 1, "command": 1}


@for_each("text", [
    "<hook_context>Today is sunny.</hook_context>\n\nwhere is it?", "where is it?\n<hook_context>\nsun\n</hook_context>",
    "<session_context>\nhome\n</session_context><hook_context>&lt;quaid-memory&gt;</hook_context>\n\nwhere is it?",
    "<environment_context>x</environment_context>\nwhere is it?\n\n<user-prompt-submit-hook>y</user-prompt-submit-hook>",
])  # fmt: skip
def test_the_blocks_around_what_was_typed_go_and_what_was_typed_stays(text):
    claude = {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": text}}
    for log in ([HEADER, note("u1", "user", [{"text": text}])], [meta(), item("user", text)], [claude]):
        assert said(read(*log)) == [("User", "where is it?")]


@for_each("text", [
    "why does Gemini write <hook_context> there?", "<hook_context> is what for?", "what is in <hook_context>x</hook_context>",
    "<hook_context>x</hook_context> is how it looks", "and </hook_context>",
])  # fmt: skip
def test_who_writes_about_such_a_block_keeps_it(text):
    for log in ([HEADER, note("u1", "user", [{"text": text}])], [meta(), item("user", text)]):
        assert said(read(*log)) == [("User", text)]


def test_a_real_session_of_gemini_has_the_same_turns_with_another_programs_hook_and_without():
    found = []
    for name in ("gemini-with-other-hook.jsonl", "gemini-without-hook.jsonl"):
        (conversation,) = read_conversations(io.BytesIO(needs(f"cases/{name}").read_bytes()))
        found.append(said(conversation))
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_a_helper_of_gemini_has_no_turns():
    assert read({**HEADER, "kind": "subagent"}, note("u1", "user", "do")).turns == ()


# OpenClaw


class Claw:
    """Writes the entries of an OpenClaw session, each hanging on the one before unless told otherwise."""

    def __init__(self):
        self.lines = [
            {"type": "session", "version": 3, "id": "c1", "timestamp": "2026-02-01T10:00:00Z", "cwd": "/home/maya/claw"}
        ]
        self.last = None

    def add(self, kind, entry=None, **fields):
        entry = entry or f"e{len(self.lines)}"
        line = {"type": kind, "id": entry, "parentId": self.last, "timestamp": "2026-02-01T10:01:00Z", **fields}
        self.lines.append(line)
        self.last = entry
        return self

    def message(self, role, content, **fields):
        return self.add("message", message={"role": role, "content": content}, **fields)

    def user(self, text, **fields):
        return self.message("user", [{"type": "text", "text": text}], **fields)

    def assistant(self, *texts, **fields):
        blocks = [{"type": "thinking", "thinking": "hm"}, *({"type": "text", "text": text} for text in texts)]
        return self.message("assistant", blocks, **fields)

    def read(self):
        return read(*self.lines)


def test_an_openclaw_session_is_read_without_its_machinery():
    conversation = (
        Claw()
        .add("model_change", provider="x")
        .user("hi")
        .message("assistant", [{"type": "text", "text": "Looking."}, {"type": "toolCall", "name": "exec"}])
        .message("toolResult", [{"type": "text", "text": "output"}])
        .message("bashExecution", "ls")
        .add("custom_message", content="[MEMORY] tea", customType="quaid")
        .add("custom", data={})
        .assistant("Done.")
        .assistant("Done.")
        .add("compaction", summary="S", firstKeptEntryId="e2")
        .user("more")
        .assistant("NO_REPLY")
        .add("brand_new", data=1)
        .read()
    )
    assert said(conversation) == [("User", "hi"), ("Assistant", "Looking."), ("Assistant", "Done."), ("User", "more")]
    assert (conversation.session, conversation.source, conversation.project) == ("c1", "openclaw", "claw")
    assert conversation.started == utc(2026, 2, 1, 10)
    assert conversation.skipped == {
        "bookkeeping": 2, "tool call": 1, "system or tool": 2, "injected": 1, "thinking": 3, "summary": 1,
        "silence": 1, "unknown type": 1,
    }  # fmt: skip


def test_a_branch_that_openclaw_left_is_left_out():
    session = Claw().user("one").assistant("fork", entry="fork").user("wrong").assistant("wrong answer")
    session.last = "fork"
    session.add("branch_summary", fromId="e4", summary="tried something")
    assert [turn.text for turn in session.user("right").read().turns] == ["one", "fork", "right"]
    session = Claw().user("wrong")
    session.last = None
    assert [turn.text for turn in session.user("anew").read().turns] == ["anew"]


@pytest.mark.parametrize("kind", ["compaction", "reset"])
def test_what_was_said_before_a_compaction_or_a_reset_belongs_to_the_session(kind):
    session = Claw().user("old")
    session.last = None
    session.add(kind, summary="S")
    assert [turn.text for turn in session.user("new").read().turns] == ["old", "new"]
    session = Claw().user("old").add(kind)
    session.last = None
    assert [turn.text for turn in session.user("new").read().turns] == ["old", "new"]
    session.last = "compacted away"
    assert [turn.text for turn in session.user("newer").read().turns] == ["old", "new", "newer"]


@for_each(("written", "typed"), [
    ("[Telegram Maya Chen id:123 2026-02-01 10:00 UTC] I moved to Oslo", "I moved to Oslo"),
    ("[Sun 2026-02-01 10:00 UTC] good morning", "good morning"),
    ('Conversation info (untrusted metadata):\n```json\n{"x": 1}\n```\n\nhello\n[message_id: 5]', "hello"),
    ("[media attached: /tmp/a.png (image/png)]", None),
    ("<quaid-memory>\n[MEMORY] tea\n</quaid-memory>\nwhat now?", "what now?"),
    ("[cron:1f daily] Summarise the day", None),
    ("Read HEARTBEAT.md if it exists (workspace context). Follow it strictly.", None),
    ("[Sun 2026-02-01 10:00 UTC] Read HEARTBEAT.md if it exists.", None),
    ("[Inter-session message] sourceSession=x\nhi", None),
])  # fmt: skip
def test_what_a_gateway_puts_around_a_message_is_not_said(written, typed):
    assert [turn.text for turn in Claw().user(written).read().turns] == ([typed] if typed else [])


@for_each(("written", "left"), [
    ("[[reply_to_current]] Yes, on Monday.", "Yes, on Monday."),
    ("[[reply_to:message-7]]\n[[audio_as_voice]]\nYes.", "Yes."),
    ("Yes. [[reply_to_current]]", "Yes."),
    ("Write `[[reply_to_current]]` first.", "Write `[[reply_to_current]]` first."),
    ("See [[Maya Chen]]", "See [[Maya Chen]]"),
    ("[[reply_to_current]] NO_REPLY", None),
    ("\u26a0\ufe0f Agent failed before reply: Unknown model: x.\nLogs: openclaw logs --follow", None),
    ("[assistant turn failed before producing content]", None),
    ("\u26a0\ufe0f \U0001f6e0\ufe0f Exec: `npm test` failed: exit 1", None),
    (
        "\u26a0\ufe0f The migration failed twice, so I stopped.",
        "\u26a0\ufe0f The migration failed twice, so I stopped.",
    ),
])  # fmt: skip
def test_directives_and_failures_of_the_gateway_are_no_answer(written, left):
    assert [turn.text for turn in Claw().assistant(written).read().turns] == ([left] if left else [])


def test_an_answer_that_was_delivered_without_its_directive_is_one():
    session = Claw().user("when?").assistant("[[reply_to_current]] On Monday.").assistant("On Monday.")
    assert [turn.text for turn in session.read().turns] == ["when?", "On Monday."]


def test_an_openclaw_session_without_a_tree_is_read_in_order():
    lines = [{"type": "session", "version": 1, "id": "c0", "cwd": "/x"}]
    lines += [{"type": "message", "message": {"role": "user", "content": text}} for text in ("one", "two")]
    assert [turn.text for turn in read(*lines).turns] == ["one", "two"]


# Hermes


def atof(category, phase, session="h1", name="local", at=1, **more):
    return {"atof_version": "0.1", "kind": "scope", "category": category, "scope_category": phase, "name": name,
            "timestamp": f"2026-08-01T10:00:{at:02}Z", "metadata": {"session_id": session}, **more}  # fmt: skip


def test_hermes_repeats_the_conversation_in_every_call_and_it_is_read_once():
    def call(*messages):
        request = [{"role": "system", "content": "You are"}, *messages]
        return atof("llm", "start", data={"content": {"messages": request}})

    hi, more = ({"role": "user", "content": text} for text in ("hi", [{"type": "text", "text": "more"}]))
    yo = {"role": "assistant", "content": "yo"}
    conversation = read(
        atof("agent", "start"),
        call(hi),
        atof("llm", "end", data={"assistant_message": {"role": "assistant", "content": "Looking."}}),
        atof("tool", "start", data={"command": "ls"}),
        call(hi, {"role": "tool", "content": "output"}),
        atof("llm", "end", data={"choices": [{"message": yo}]}),
        call(hi, yo, more),
        atof("llm", "end", data={"assistant_message": "ok"}),
        {"atof_version": 2},
    )
    assert said(conversation) == [
        ("User", "hi"), ("Assistant", "Looking."), ("Assistant", "yo"), ("User", "more"), ("Assistant", "ok"),
    ]  # fmt: skip
    assert (conversation.session, conversation.source) == ("h1", "hermes")
    assert conversation.skipped == {"bookkeeping": 1, "tool call": 1, "unknown type": 1}


def test_a_stream_of_several_sessions_gives_a_conversation_for_each():
    lines = [
        atof("llm", "start", "h1", uuid="a", data={"content": "one"}),
        atof("llm", "start", "h2", data={"content": "two"}),
        {**atof("llm", "end", data={"assistant_message": "first"}), "metadata": None, "parent_uuid": "a"},
        atof("function", "start", "h2", name="hermes.turn", data={"user": "whole"}),
        atof("function", "end", "h2", name="hermes.turn", data={"assistant": "answer"}),
    ]
    stream = io.BytesIO("\n".join(json.dumps(line) for line in lines).encode())
    found = {conversation.session: said(conversation) for conversation in read_conversations(stream)}
    assert found == {
        "h1": [("User", "one"), ("Assistant", "first")],
        "h2": [("User", "whole"), ("Assistant", "answer")],
    }
