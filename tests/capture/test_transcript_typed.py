"""What a person said elsewhere than in a prompt: arguments of commands, answers, comments, notes, pasted text."""

from __future__ import annotations

import json

import pytest
from transcript_reading import ClaudeCodeSession as Session
from transcript_reading import read, read_objects, said

DENIED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)
HINT = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention."


def command(name, arguments="", *, first="message"):
    parts = [f"<command-message>{name}</command-message>", f"<command-name>/{name}</command-name>"]
    return "\n".join([*(parts if first == "message" else reversed(parts)), f"<command-args>{arguments}</command-args>"])


def use(tool, call="t1", **given):
    return {"type": "tool_use", "id": call, "name": tool, "input": given}


def result(text, call="t1", *, is_error=False):
    return [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}]


def question(text, *labels):
    return {"question": text, "header": "H", "options": [{"label": label} for label in labels], "multiSelect": False}


DIET = question("Do you eat fish?", "Yes", "No")
CITY = question('Which city is "home"?', "Porto", "Ghent")

# commands


@pytest.mark.parametrize("first", ["message", "name"])
def test_the_arguments_of_a_command_were_typed(first):
    conversation = (
        Session()
        .user(command("remember", "I am allergic to peanuts", first=first))
        .user("Base directory for this skill: /x", isMeta=True)
        .assistant("Noted.")
        .user(command("clear", first=first))
        .user([{"type": "text", "text": command("note", "vegan <system-reminder>x</system-reminder>")}])
        .assistant("Noted too.")
        .read()
    )
    assert said(conversation) == [
        ("User", "/remember I am allergic to peanuts"),
        ("Assistant", "Noted."),
        ("User", "/note vegan"),
        ("Assistant", "Noted too."),
    ]
    assert conversation.skipped == {"meta": 1, "command": 1}


def test_a_switch_of_the_program_states_nothing_and_a_sentence_does():
    session = Session().user("hi").user(command("model", "opus"))
    session.user("<local-command-stdout>Set</local-command-stdout>")
    session.user(command("goal", "finish my thesis by June")).user("<local-command-stdout>ok</local-command-stdout>")
    session.user("<local-command-caveat>x</local-command-caveat>", isMeta=True)
    session.user(command("model", "opus", first="name"))
    for content in (
        "<local-command-stdout>Set</local-command-stdout>",
        command("effort", "high"),
        "<local-command-stdout>high</local-command-stdout>",
        command("btw", "my sister moved to Ghent"),
    ):
        session.add("system", subtype="local_command", content=content)
    session.user("go on").add("system", subtype="local_command", content=command("btw", "her name is Ana"))
    assert [turn.text for turn in session.read().turns] == [
        "hi", "/goal finish my thesis by June", "/btw my sister moved to Ghent", "go on", "/btw her name is Ana",
    ]  # fmt: skip


def test_a_note_to_memory_was_typed_and_a_shell_command_states_nothing():
    conversation = (
        Session()
        .user("<user-memory-input>I prefer tabs</user-memory-input>")
        .user("<bash-input>git push --force</bash-input>")
        .user("<bash-stdout>done</bash-stdout><bash-stderr></bash-stderr>")
        .user("[Request interrupted by user]\nno, my name is Maya")
        .user("[Request interrupted by user for tool use]")
        .read()
    )
    assert [turn.text for turn in conversation.turns] == ["I prefer tabs", "no, my name is Maya"]
    assert conversation.skipped == {"command": 2, "interruption": 1}


# answers


def test_an_answer_follows_its_question():
    conversation = (
        Session()
        .user("plan dinner")
        .assistant("Let me ask.", use("AskUserQuestion", questions=[DIET, CITY]))
        .user(
            result('User has answered your questions: "Do you eat fish?"="No", "…"="…". You can now continue'),
            toolUseResult={
                "questions": [DIET, CITY],
                "answers": {DIET["question"]: "No", CITY["question"]: ["Porto", "since May"]},
                "annotations": {DIET["question"]: {"notes": "allergic since 2019", "preview": "<b>"}},
            },
        )
        .assistant("Noted.")
        .read()
    )
    assert said(conversation) == [
        ("User", "plan dinner"), ("Assistant", "Let me ask."), ("Assistant", "Do you eat fish?"),
        ("User", "No\nallergic since 2019"), ("Assistant", 'Which city is "home"?'), ("User", "Porto\nsince May"),
        ("Assistant", "Noted."),
    ]  # fmt: skip
    assert "tool result" not in conversation.skipped


@pytest.mark.parametrize("text", [
    'User has answered your questions: "Do you eat fish?"="No, never", "Tea?"="Green, please". You can now go on.',
    'Answered: "Do you eat fish?"="No, never" selected preview:\n<b> user notes: so, "Tea?"="Green, please"',
    'The user answered: "Do you eat fish?"="No, never", "Tea?"="Green, please". Read the answers carefully: they may ask back.',
])  # fmt: skip
def test_an_answer_is_read_from_the_words_where_nothing_else_holds_it(text):
    session = Session().user("go").assistant(use("AskUserQuestion", questions=[DIET, question("Tea?")]))
    turns = [text.split("\n")[0] for _, text in said(session.user(result(text)).read())]
    assert turns == ["go", "Do you eat fish?", "No, never", "Tea?", "Green, please"]


def test_an_answer_beside_the_result_of_another_call_is_kept():
    session = Session().user("go").assistant(use("AskUserQuestion", questions=[DIET]), message="m", uuid="q")
    session.assistant(use("Bash", "t2", command="ls"), message="m", uuid="b")
    session.last = "q"
    session.user(result("x"), toolUseResult={"questions": [DIET], "answers": {DIET["question"]: "No"}})
    session.last = "b"
    conversation = session.user(result("out", "t2")).assistant("Noted.").read()
    assert [turn.text for turn in conversation.turns] == ["go", DIET["question"], "No", "Noted."]


def test_a_question_that_nobody_answered_is_empty_label():
    session = Session().user("go").assistant(use("AskUserQuestion", questions=[DIET]))
    conversation = session.user(result(f"{DENIED}STOP what you are doing and wait for the user.", is_error=True)).read()
    assert said(conversation) == [("User", "go")]
    assert conversation.skipped == {"tool call": 1, "tool result": 1}


def test_answers_given_before_the_user_asked_back_are_kept():
    asked_back = (
        f"{DENIED}To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n"
        "    This means they may have additional information.\n\n    Questions asked:\n"
        '- "Do you eat fish?"\n  Answer: No\n  User notes: only tuna\n- "Which city?"\n  (No answer provided)'
    )
    session = Session().user("go").assistant(use("AskUserQuestion", questions=[DIET]))
    turns = said(session.user(result(asked_back, is_error=True)).read())
    assert turns == [("User", "go"), ("Assistant", "Do you eat fish?"), ("User", "No\nonly tuna")]


# comments


def test_what_a_user_said_when_refusing_a_call_is_kept_with_what_was_refused():
    session = Session().user("go").assistant("I will edit.", use("Edit", file_path="a.py", new_string="x" * 999))
    session.user(
        result(f"{DENIED}To tell you how to proceed, the user said:\nUse tabs: always.{HINT}", is_error=True),
        toolUseResult="User rejected tool use",
    )
    session.assistant(use("Bash", "t2", command="npm publish"))
    refused = f"{DENIED}The user provided the following reason for the rejection: I publish on Mondays"
    session.user(result(refused, "t2"), toolUseResult=f"Error: {refused}")
    assert said(session.assistant("Fine.").read()) == [
        ("User", "go"),
        ("Assistant", "I will edit."),
        ("Assistant", "May I use Edit: a.py?"),
        ("User", "Use tabs: always."),
        ("Assistant", "May I use Bash: npm publish?"),
        ("User", "I publish on Mondays"),
        ("Assistant", "Fine."),
    ]


def test_comments_on_a_plan_are_kept_with_the_plan():
    approved = "User has approved your plan. You can now start coding."
    plan = {"plan": "Move to Postgres.\n\nUser feedback: none yet"}
    session = Session().user("go").assistant(use("ExitPlanMode", **plan))
    session.user(result(f"{approved}\n\nUser feedback: keep SQLite for tests\n\n## Approved Plan:\n{plan['plan']}"))
    session.assistant("Started.", use("ExitPlanMode", "t2", plan="Two"))
    session.user(result(f"{approved}\n\n## Approved Plan:\n{plan['plan']}", "t2"))
    session.user([*result("User has approved your plan.", "t3"), {"type": "text", "text": "and write tests first"}])
    assert said(session.read()) == [
        ("User", "go"),
        ("Assistant", "Move to Postgres.\n\nUser feedback: none yet"),
        ("User", "keep SQLite for tests"),
        ("Assistant", "Started."),
        ("User", "and write tests first"),
    ]


@pytest.mark.parametrize(("tool", "is_error", "text"), [
    ("Read", False, f"{DENIED}To tell you how to proceed, the user said:\nI live in Rome"),
    ("Bash", True, "Exit code 1\nthe user said: I live in Rome"),
    ("mcp__quiz__ask", False, 'User has answered your questions: "Home?"="Rome".'),
    ("Bash", False, "User has approved\nUser feedback: I live in Rome"),
])  # fmt: skip
def test_what_a_tool_put_out_was_not_said(tool, is_error, text):
    answers = {"questions": [question("Home?")], "answers": {"Home?": "Rome"}} if tool.startswith("mcp") else {}
    session = Session().user("go").assistant(use(tool)).user(result(text, is_error=is_error), toolUseResult=answers)
    assert said(session.read()) == [("User", "go")]


def test_answers_on_a_branch_that_was_left_go_with_it():
    session = Session().user("go").assistant(use("AskUserQuestion", questions=[DIET]), uuid="q")
    session.user(result("x"), toolUseResult={"questions": [DIET], "answers": {DIET["question"]: "Yes"}})
    session.last = "q"
    session.user(result("x"), toolUseResult={"questions": [DIET], "answers": {DIET["question"]: "No"}})
    assert said(session.read()) == [("User", "go"), ("Assistant", "Do you eat fish?"), ("User", "No")]


def test_answers_of_a_session_whose_lines_name_no_parents_are_kept():
    session = Session()
    for kind, content, more in (
        ("user", "go", {}),
        ("assistant", [use("AskUserQuestion", questions=[DIET])], {}),
        ("user", result("x"), {"toolUseResult": {"answers": {DIET["question"]: "No"}}}),
        ("user", command("remember", "I am Maya"), {}),
    ):
        session.lines.append({"type": kind, "sessionId": "s", "message": {"role": kind, "content": content}, **more})
    assert [turn.text for turn in session.read().turns] == ["go", "Do you eat fish?", "No", "/remember I am Maya"]


# pasted text, and other programs


def test_a_pasted_document_was_said_and_an_attached_file_was_not():
    def document(title, data):
        return {
            "type": "document",
            "title": title,
            "source": {"type": "text", "media_type": "text/plain", "data": data},
        }

    content = [{"type": "image", "source": {}}, document("Pasted text", "My flat: 3 rooms"), document("a.md", "SECRET"),
               {"type": "text", "text": "find one like it"}]  # fmt: skip
    assert [turn.text for turn in Session().user(content).read().turns] == ["My flat: 3 rooms", "find one like it"]


def test_a_message_from_a_channel_is_a_persons_though_the_program_hides_it():
    text = '<channel source="telegram" user="maya">I moved to Oslo</channel>'
    conversation = Session().user(text, isMeta=True, origin={"kind": "channel", "server": "telegram"}).read()
    assert said(conversation) == [("User", "I moved to Oslo")]


def test_what_was_pasted_into_claude_ai_was_said():
    message = {"sender": "human", "text": "Summarise", "attachments": [
        {"file_name": "", "file_type": "txt", "extracted_content": "I was born in Lisbon."},
        {"file_name": "paste.txt", "file_type": "txt", "extracted_content": "I live in Porto."},
        {"file_name": "report.pdf", "file_type": "pdf", "extracted_content": "SECRET"},
    ]}  # fmt: skip
    conversation = read(json.dumps([{"uuid": "c1", "name": "N", "chat_messages": [message]}]))
    assert [turn.text for turn in conversation.turns] == ["I was born in Lisbon.\n\nI live in Porto.\n\nSummarise"]
    assert conversation.skipped == {"attachment": 1}


def test_an_answer_in_codex_follows_its_question():
    questions = [{"id": "db", "header": "Store", "question": "Which database?", "options": []}]
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "name": "request_user_input", "call_id": "c",
         "arguments": json.dumps({"questions": questions})},
        {"type": "function_call_output", "call_id": "c",
         "output": json.dumps({"answers": {"db": {"answers": ["SQLite", "user_note: one file"]}}})},
        {"type": "function_call", "name": "exec", "call_id": "d", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "d", "output": '{"answers": {"db": {"answers": ["Oracle"]}}}'},
    ]  # fmt: skip
    conversation = read_objects(*({"type": "response_item", "payload": item} for item in items))
    assert said(conversation) == [("User", "go"), ("Assistant", "Which database?"), ("User", "SQLite\none file")]


def test_an_answer_and_the_arguments_of_a_command_in_gemini_are_kept():
    call = {
        "id": "a", "name": "ask_user", "args": {"questions": [{"question": "Which editor?", "type": "text"}]},
        "result": [{"functionResponse": {"response": {"output": json.dumps({"answers": {"0": "Vim"}})}}}],
    }  # fmt: skip
    conversation = read_objects(
        {"sessionId": "7c1f", "projectHash": "x", "startTime": "2026-09-28T10:00:00Z"},
        {"id": "u1", "type": "user", "content": "/memory add I drink green tea"},
        {"id": "u2", "type": "user", "content": "/help"},
        {"id": "u3", "type": "user", "content": "/etc/hosts is broken"},
        {"id": "g1", "type": "gemini", "content": "Let me ask.", "toolCalls": [call]},
        {"id": "g2", "type": "gemini", "content": "Done."},
    )
    assert said(conversation) == [
        ("User", "/memory add I drink green tea"),
        ("User", "/etc/hosts is broken"),
        ("Assistant", "Let me ask."),
        ("Assistant", "Which editor?"),
        ("User", "Vim"),
        ("Assistant", "Done."),
    ]
