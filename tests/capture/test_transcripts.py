"""Transcripts of every kind become the conversation that was had, and nothing else."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts import DOCUMENTS, FORMATS, read_transcript, read_transcripts
from quaid.capture.transcripts.timestamps import parse_timestamp
from quaid.errors import BadInputError

DATA = Path(os.environ.get("QUAID_DATA") or Path(__file__).parents[3] / "shared" / "data") / "transcripts"


def read(text, **options):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return read_transcript(io.BytesIO(data), **options)


def read_objects(*objects):
    return read("\n".join(json.dumps(item) for item in objects))


def said(conversation):
    return [(turn.speaker, turn.text) for turn in conversation.turns]


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


# Cleaning


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a<quaid-memory n=3>\nsecret\n\nmore</quaid-memory>b", "ab"),
        ("<quaid-memory>never closed\nstill it\n\nmine", "mine"),
        ("a <QUAID-MEMORY>x", "a"),
        ("[MEMORY] Maya likes tea\n  since 2020\n\tand on\nmine", "mine"),
        ("I read [MEMORY] somewhere", "I read [MEMORY] somewhere"),
        ("a\n<system-reminder>\nx\n</system-reminder>\nb", "a\n\nb"),
        ("a <system-reminder> is a tag", "a <system-reminder> is a tag"),
        ("my key is <private>hunter<private>2</private>3</private>.", "my key is ."),
        ("a <private>never closed", "a"),
        ("<quaid-memory>open\n\nuser\n\n<quaid-memory>x</quaid-memory> more", "user\n\n more"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\n \n  stray  \nb\t\n\n", "stray\nb"),
        ("  - a\n  - b", "  - a\n  - b"),
        ("    code", "    code"),
        ("a\0b\x07\tc\x9f", "ab\tc"),
        ("a\ud800b", "a\ufffdb"),
        ("```py\nx", "```py\nx\n```"),
        ("~~~~\nx\n~~~", "~~~~\nx\n~~~\n~~~~"),
        ("```\nx\n```", "```\nx\n```"),
        ("```inline``` code", "```inline``` code"),
        ("a\n\n\nb", "a\n\n\nb"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("see " + "iVBORw0KGgo" * 40 + "== ok", "see [data] ok"),
        ("A" * 400, "A" * 400),
        ("-" * 500, "-" * 500),
        ("<system-reminder>a</system-reminder>" * 3, ""),
    ],
)
def test_cleaning_leaves_what_was_said(written, expected):
    assert clean_text(written) == expected


FRAGMENTS = (
    "<quaid-memory>",
    "</quaid-memory>",
    "<private>",
    "</private>",
    "<system-reminder>",
    "</system-reminder>",
    "<pri",
    "vate>",
    "[MEMORY] x",
    "[MEM",
    "ORY]",
    "```",
    "~~~~",
    "\n",
    "\n\n",
    " ",
    "\t",
    "\r",
    "\0",
    "\ud800",
    "word",
    "A" * 250,
    "=",
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join) | st.text())
def test_cleaning_twice_is_cleaning_once(text):
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    cleaned.encode()
    assert set(cleaned).isdisjoint("\0\r\x07")


# Times


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-11-20T23:01:56.731Z", utc(2026, 11, 20, 23, 1, 56, 731000)),
        ("2026-11-20T23:01:56+02:00", utc(2026, 11, 20, 21, 1, 56)),
        ("2026-11-20 14:02", utc(2026, 11, 20, 14, 2)),
        ("2026-11-20", utc(2026, 11, 20)),
        ("1:56 pm on 8 May, 2023", utc(2023, 5, 8, 13, 56)),
        ("12:09 am on 13 September, 2023", utc(2023, 9, 13, 0, 9)),
        ("May 8, 2023 1:56 p.m.", utc(2023, 5, 8, 13, 56)),
        ("8 May 2023", utc(2023, 5, 8)),
        ("20/11/2026, 14:02", utc(2026, 11, 20, 14, 2)),
        ("11/20/26, 2:02\u202fPM", utc(2026, 11, 20, 14, 2)),
        ("20.11.2026 14:02", utc(2026, 11, 20, 14, 2)),
        ("Fri, 20 Nov 2026 14:02:11 +0100", utc(2026, 11, 20, 13, 2, 11)),
        (1795215715, utc(2026, 11, 20, 23, 1, 55)),
        (1795215715610, utc(2026, 11, 20, 23, 1, 55, 610000)),
        ("1795215715", utc(2026, 11, 20, 23, 1, 55)),
        (0, utc(1970, 1, 1)),
        ("3/4/2026", None),
        ("yesterday", None),
        ("14:02", None),
        ("0001-01-01T00:00:00+14:00", None),
        (float("nan"), None),
        (10**400, None),
        (True, None),
        (None, None),
        ([], None),
    ],
)
def test_times_are_read_as_utc_or_not_at_all(written, expected):
    assert parse_timestamp(written) == expected


@given(st.text() | st.floats() | st.integers())
def test_no_time_is_an_error(value):
    moment = parse_timestamp(value)
    assert moment is None or moment.tzinfo is UTC


# Generic JSONL


def test_one_line_is_one_turn_in_order():
    conversation = read_objects(
        {"session": "s1", "started": "1:56 pm on 8 May, 2023"},
        {"role": "user", "content": "hi", "speaker": "Caroline", "timestamp": "2023-05-08T13:57:00Z"},
        {"role": "assistant", "content": [{"type": "text", "text": "one"}, {"type": "tool_use"}, "two"]},
        {"role": "user", "content": "again", "timestamp": 1683554280},
    )
    assert said(conversation) == [("Caroline", "hi"), ("Assistant", "one\n\ntwo"), ("User", "again")]
    assert (conversation.session, conversation.source) == ("s1", "jsonl")
    assert conversation.started == utc(2023, 5, 8, 13, 56)
    assert conversation.turns[0].at == utc(2023, 5, 8, 13, 57)
    assert conversation.turns[2].at == utc(2023, 5, 8, 13, 58)
    assert [turn.role for turn in conversation.turns] == ["user", "assistant", "user"]
    assert conversation.skipped == {"tool call": 1}


def test_wrapped_messages_read_the_same():
    conversation = read_objects(
        {"type": "session", "id": "s9", "timestamp": "2026-01-01T00:00:00Z"},
        {"type": "message", "timestamp": "2026-01-01T00:01:00Z", "message": {"role": "user", "content": "hi"}},
        {"type": "message", "message": {"role": "toolResult", "content": "no"}},
        {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "yo"}]}},
        {"type": "compaction", "summary": "no"},
    )
    assert said(conversation) == [("User", "hi"), ("Assistant", "yo")]
    assert conversation.session == "s9"
    assert conversation.turns[0].at == utc(2026, 1, 1, 0, 1)
    assert conversation.skipped == {"system or tool": 1, "unknown type": 1}


def test_turn_numbers_stay_those_of_the_lines_that_carry_text():
    conversation = read_objects(
        {"role": "system", "content": "you are"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "<system-reminder>x</system-reminder>"},
        {"role": "tool", "content": "output"},
        {"role": "assistant", "content": "three"},
    )
    assert [turn.text for turn in conversation.turns] == ["one", "", "three"]
    assert conversation.skipped == {"system or tool": 2, "empty": 1}


def test_without_a_header_the_first_time_is_the_start():
    conversation = read_objects(
        {"role": "user", "content": "a"}, {"role": "user", "content": "b", "timestamp": "2026-01-02"}
    )
    assert conversation.started == utc(2026, 1, 2)
    assert conversation.session is None


def test_a_given_session_overrules_the_named_one():
    line = '{"session": "a", "started": 1}\n{"role": "user", "content": "x"}'
    assert read(line).session == "a"
    assert read(line, session="b").session == "b"


def test_half_written_and_odd_lines_are_counted():
    conversation = read(
        '{"role":"user","content":"a"}\n\n[1]\nnonsense\n{"role":"wizard","content":"b"}\n{"role":"user","con'
    )
    assert said(conversation) == [("User", "a")]
    assert conversation.skipped == {"unreadable line": 3, "unknown role": 1}


def test_a_file_that_begins_in_the_middle_of_a_line_is_read():
    assert said(read('ent":"x"}\n{"role":"user","content":"a"}\n{"role":"user","content":"b"}')) == [
        ("User", "a"),
        ("User", "b"),
    ]


def test_bom_crlf_nul_and_broken_bytes_are_borne():
    raw = b'\xef\xbb\xbf{"role":"user","content":"caf\xc3\xa9 \xff"}\r\n\0\0{"role":"user","content":"b\\u0000\\ud800"}\r\n\0\0\0'
    assert said(read(raw)) == [("User", "café \ufffd"), ("User", "b\ufffd")]
    assert said(read('{"role":"user","content":"hé"}\n'.encode("utf-16"))) == [("User", "hé")]


def test_speakers_are_names_on_one_line():
    (turn,) = read_objects({"role": "user", "content": "x", "speaker": " Maya\n Chen \0"}).turns
    assert turn.speaker == "Maya Chen"


# Plain text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Just a thought.\n\nAnd another.", [("User", "Just a thought.\n\nAnd another.")]),
        (
            "Note: buy milk\nhttps://example.org\n12:30 lunch",
            [("User", "Note: buy milk\nhttps://example.org\n12:30 lunch")],
        ),
        ("Maya: hi\nSam: hello", [("Maya", "hi"), ("Sam", "hello")]),
        ("\n\nMaya: hi\nSam: hello", [("Maya", "hi"), ("Sam", "hello")]),
        ("user: hi\nassistant: yo", [("user", "hi"), ("assistant", "yo")]),
        (
            "Maya: look\nNote: x\nhttps://example.org: y\n12:30 foo\n\nmore\nSam: ok",
            [("Maya", "look\nNote: x\nhttps://example.org: y\n12:30 foo\n\nmore"), ("Sam", "ok")],
        ),
        (
            "Maya: the list\nEggs: 12\nMilk: 2 litres\nSam: fine\nMaya: thanks",
            [("Maya", "the list\nEggs: 12\nMilk: 2 litres"), ("Sam", "fine"), ("Maya", "thanks")],
        ),
        (
            "Maya: see\n\n```yaml\nName: x\nSam: y\n```\n\nSam: nice",
            [("Maya", "see\n\n```yaml\nName: x\nSam: y\n```"), ("Sam", "nice")],
        ),
        (
            "Maya: one\n\nSam: two\nRemember Me: three\n\nMaya: four",
            [("Maya", "one"), ("Sam", "two\nRemember Me: three"), ("Maya", "four")],
        ),
        ("**Maya**: hi\n**Dr. Ana de Souza:** hello", [("Maya", "hi"), ("Dr. Ana de Souza", "hello")]),
        ("Maya:\nhi\n\nAssistant:\nhello\n\nMaya:\nbye", [("Maya", "hi"), ("Assistant", "hello"), ("Maya", "bye")]),
        (
            "A talk\n\nMaya: hi\nSam: yo\nMaya: bye",
            [("User", "A talk"), ("Maya", "hi"), ("Sam", "yo"), ("Maya", "bye")],
        ),
        ("One day Maya came.\nKafka: a writer\nThe end.", [("User", "One day Maya came.\nKafka: a writer\nThe end.")]),
        (
            "Maya: agenda\n12:30 Lunch: soup\n13:00 Talk: memory\nSam: fine",
            [("Maya", "agenda\n12:30 Lunch: soup\n13:00 Talk: memory"), ("Sam", "fine")],
        ),
        (
            "Maya: a\nSam: b\n\nMaya: c\n\nSam: d\nWell Then: e",
            [("Maya", "a"), ("Sam", "b"), ("Maya", "c"), ("Sam", "d\nWell Then: e")],
        ),
        ("System: you are\nUser: hi", [("User", "hi")]),
    ],
)
def test_chat_logs_are_split_where_a_reader_would(text, expected):
    assert said(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2026-11-20 14:02] Maya: hi\nSam: no turn\n[2026-11-20 14:03] Sam: yo", utc(2026, 11, 20, 14, 2)),
        ("2026-11-20T14:02:00Z Maya: hi\nSam: no turn\n2026-11-20T14:03:00Z Sam: yo", utc(2026, 11, 20, 14, 2)),
        ("20/11/2026, 14:02 - Maya: hi\nSam: no turn\n20/11/2026, 14:03 - Sam: yo", utc(2026, 11, 20, 14, 2)),
        ("[11/20/26, 2:02:00 PM] Maya: hi\nSam: no turn\n[11/20/26, 2:03:00 PM] Sam: yo", utc(2026, 11, 20, 14, 2)),
        ("Maya (2026-11-20 14:02): hi\nSam: no turn\nSam (2026-11-20 14:03): yo", utc(2026, 11, 20, 14, 2)),
        ("[14:02] <Maya>: hi\nSam: no turn\n[14:03] <Sam>: yo", None),
    ],
)
def test_in_a_log_with_times_only_they_begin_turns(text, expected):
    conversation = read(text)
    assert said(conversation) == [("Maya", "hi\nSam: no turn"), ("Sam", "yo")]
    assert conversation.turns[0].at == conversation.started == expected


def test_assistants_have_their_role():
    assert [turn.role for turn in read("User: hi\nClaude: yo").turns] == ["user", "assistant"]


# What is no transcript


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "holds no text"),
        (b"\n \n\0\0\n", "holds no text"),
        (b"\xef\xbb\xbf", "holds no text"),
        (b'{"a": 1}\n{"a": 2}\n', "is not a transcript Quaid knows; known are: Claude Code"),
        (b'{\n  "mapping": {}\n}', "is not a transcript Quaid knows"),
        (b'[{"role": "user", "content": "x"}]', "is not a transcript Quaid knows"),
        (b'{"role": "us', "is not a transcript Quaid knows"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe\xfd\xfc\x01\x02\x03" * 9, "is not a transcript Quaid knows"),
        (b"[" * 100_000, "is not a transcript Quaid knows"),
    ],
)
def test_what_is_no_transcript_is_refused_in_a_sentence(raw, words, tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_bytes(raw)
    with pytest.raises(BadInputError, match=words) as caught:
        read_transcript(path)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_opened_is_refused_in_a_sentence(tmp_path):
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(BadInputError, match="cannot be read"):
            read_transcript(path)


LINES = (
    '{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}',
    '{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":[],"content":[{"type":"text","text":7},{}]}}',
    '{"type":"user","uuid":"a","parentUuid":"a","message":"text","timestamp":{}}',
    '{"type":"user","uuid":{},"parentUuid":"c","logicalParentUuid":3,"message":{"content":null}}',
    '{"type":"system","subtype":"compact_boundary","uuid":"c","compactMetadata":{"preservedMessages":{"uuids":[1,"b"]}}}',
    '{"type":"attachment","attachment":{"type":"queued_command","prompt":["x",1]},"uuid":"q"}',
    '{"type":["user"],"uuid":"d"}',
    '{"role":"user","content":{"a":1}}',
    '{"role":"user","content":"x","speaker":4,"timestamp":[]}',
    '{"session":{},"started":{}}',
    '{"type":"message","message":{"role":"assistant","content":["a"]}}',
    '{"type":"session_meta","payload":{"id":[],"cwd":3,"source":{"subagent":1}}}',
    '{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},7]}}',
    '{"type":"response_item","payload":{"type":["message"],"role":{}}}',
    '{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":2}}',
    '{"type":"event_msg","payload":{"type":["user_message"],"message":null}}',
    '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}',
    '{"sessionId":"g","projectHash":1,"startTime":[],"directories":[4],"kind":{}}',
    '{"id":"1","type":"gemini","content":[{"text":"a"},{"functionCall":1},3]}',
    '{"id":"1","type":["user"],"content":{"text":2},"displayContent":[]}',
    '{"$set":{"messages":[{"type":"user","content":"c"},5]}}',
    '{"$set":null}',
    '{"$rewindTo":"1"}',
    '{"type":"session","version":3,"id":{},"timestamp":true,"cwd":[]}',
    '{"type":"message","id":"1","parentId":"2","message":{"role":["user"],"content":"x"}}',
    '{"type":"compaction","id":"2","parentId":null}',
    '{"type":"message","id":"2","parentId":"2","message":{"role":"user","content":[{"type":"text","text":"[cron:x] y"}]}}',
    '{"atof_version":1,"kind":"scope","category":"llm","scope_category":"start","data":{"content":{"messages":[1]}}}',
    '{"atof_version":1,"kind":"scope","category":"llm","scope_category":"end","data":{"choices":[{"message":[]}]}}',
    '{"atof_version":1,"kind":"mark","name":"hermes.turn","metadata":{"session_id":{}},"data":{"user":{"a":1}}}',
    '{"uuid":1,"chat_messages":[{"sender":[],"content":{}},{"sender":"human","text":4,"parent_message_uuid":"x"},2]}',
    '[{"uuid":"c","project":{"name":[]},"chat_messages":{"a":1},"created_at":[]},',
    '{"conversation_id":{},"current_node":["a"],"mapping":{"a":{"message":{"author":{"role":"user"},"recipient":[],"content":{"parts":[1,{"text":2}]}},"parent":{}},"b":4}}',
    '{"mapping":{"a":{"message":{"author":{"role":"user"},"content":[]}}},"create_time":null}]',
    "Maya: hi",
    "[2026-01-01 10:00] Sam: yo",
    "```",
    "\ufeff",
    "[[[",
    "\r",
    "",
)


SPOILERS = (b"", b"\n", b"\0", b'"', b"}", b"[{", b",", b"null", b"\\", b"PK\x03\x04", b"\xff\xfe", b"\xed\xa0\x80")


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from(LINES), max_size=12).map(lambda lines: "\n".join(lines).encode())
    | st.tuples(st.sampled_from([*LINES, "PK\3\4"]), st.sampled_from(["", "[", ",\n"]), st.text(max_size=40)).map(
        lambda parts: "".join(parts).encode("utf-8", "replace")
    )
)
def test_any_bytes_are_read_or_refused(raw):
    try:
        conversations = list(read_transcripts(io.BytesIO(raw)))
    except BadInputError:
        return
    for turn in (turn for conversation in conversations for turn in conversation.turns):
        assert turn.speaker
        assert turn.text == clean_text(turn.text)


@settings(deadline=None)
@given(st.sampled_from(LINES), st.integers(0, 200), st.sampled_from(["7", "[]", "{}", "null", '"x"', "[[1]]"]))
def test_a_value_of_any_other_kind_is_borne(line, place, value):
    begin, colon, rest = line[:place].rpartition(":")
    spoilt = f"{begin}{colon}{value}{line[place:]}" if colon else value + rest
    skipped = Counter()
    for form in FORMATS:
        list(form.read(iter([line, spoilt, line]), skipped))
    try:
        found = json.loads(spoilt)
    except ValueError:
        return
    for form in DOCUMENTS:
        form.read_document(found if isinstance(found, dict) else {}, skipped)


def test_each_format_has_what_the_table_asks_for():
    for form in FORMATS:
        assert form.NAME
        assert not form.recognises(['{"no": "format"}'])
    for form in DOCUMENTS:
        assert form.NAME
        assert not form.recognises_document({"no"})


# Claude Code


class Session:
    """Writes the lines of a Claude Code session, each hanging on the one before unless told otherwise."""

    def __init__(self):
        self.lines = []
        self.last = None

    def add(self, kind, uuid=None, **fields):
        uuid = uuid or f"u{len(self.lines)}"
        line = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": self.last,
            "sessionId": "s",
            "cwd": "/home/maya/garden",
            **fields,
        }
        self.lines.append(line)
        self.last = uuid
        return self

    def user(self, content, **fields):
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def assistant(self, *texts, message=None, **fields):
        blocks = [{"type": "text", "text": text} if isinstance(text, str) else text for text in texts]
        return self.add(
            "assistant",
            message={"role": "assistant", "id": message or f"m{len(self.lines)}", "content": blocks},
            **fields,
        )

    def read(self):
        return read_objects(*self.lines)


TOOL_USE = {"type": "tool_use", "id": "t", "name": "Write", "input": {}}
TOOL_RESULT = [{"type": "tool_result", "tool_use_id": "t", "content": "out"}]


def test_an_answer_around_tool_calls_is_one_turn():
    conversation = (
        Session()
        .user("go", timestamp="2026-11-20T10:00:00Z")
        .assistant({"type": "thinking", "thinking": "hm"}, message="m1", timestamp="2026-11-20T10:00:01Z")
        .assistant("First.", message="m1", timestamp="2026-11-20T10:00:02Z")
        .assistant(TOOL_USE, message="m1")
        .user(TOOL_RESULT)
        .assistant("Then.", message="m2")
        .user("thanks")
        .read()
    )
    assert said(conversation) == [("User", "go"), ("Assistant", "First.\n\nThen."), ("User", "thanks")]
    assert conversation.turns[1].at == utc(2026, 11, 20, 10, 0, 2)
    assert (conversation.session, conversation.project, conversation.started) == ("s", "garden", utc(2026, 11, 20, 10))
    assert conversation.skipped == {"thinking": 1, "tool call": 1, "tool result": 1}


def test_what_no_person_said_is_left_out():
    conversation = (
        Session()
        .user("<local-command-caveat>x</local-command-caveat>", isMeta=True)
        .user("<command-name>/compact</command-name>")
        .user("<command-message>x</command-message>\n<command-name>/x</command-name>")
        .user("<local-command-stdout>done</local-command-stdout>")
        .user("Caveat: The messages below were generated by the user while running local commands. Do not")
        .user("<task-notification>\n<task-id>1</task-id></task-notification>")
        .user("anything", origin={"kind": "task-notification"})
        .user([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
        .user("This session is being continued", isCompactSummary=True)
        .user("sub task", isSidechain=True)
        .add("attachment", attachment={"type": "hook_additional_context", "content": ["[MEMORY] tea"]})
        .add("progress")
        .add("brand-new-type")
        .assistant("API Error: 500", isApiErrorMessage=True)
        .user("<system-reminder>be nice</system-reminder>\nreal words", origin={"kind": "human"})
        .user("<system-reminder>only this</system-reminder>")
        .user([{"type": "image", "source": {}}, {"type": "text", "text": "look"}])
        .read()
    )
    assert said(conversation) == [("User", "real words"), ("User", "look")]
    assert conversation.skipped == {
        "meta": 1,
        "command": 4,
        "notification": 2,
        "interruption": 1,
        "compact summary": 1,
        "sidechain": 1,
        "attachment": 2,
        "bookkeeping": 1,
        "unknown type": 1,
        "error message": 1,
        "empty": 1,
    }


def test_what_machines_put_in_a_persons_name_is_left_out():
    conversation = (
        Session()
        .user("This session is being continued from a previous conversation that ran out of context. It was")
        .user("<teammate-message teammate_id='x'>done</teammate-message>")
        .user("do it", origin={"kind": "coordinator"})
        .user([{"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"},
               {"type": "text", "text": "why?"}])
        .user('<channel source="telegram" user="maya">I moved to Oslo</channel>', origin={"kind": "channel"})
        .assistant("No response requested.")
        .read()
    )  # fmt: skip
    assert [turn.text for turn in conversation.turns] == ["why?", "I moved to Oslo", "No response requested."]
    assert conversation.skipped == {"compact summary": 1, "notification": 2, "empty": 1}


@pytest.mark.parametrize("content", ["{0}:\n[x.py]: a secret", "{0}:\nno\n\nOriginal prompt: my key is 1234"])
@pytest.mark.parametrize("has_attachment", [True, False])
def test_a_prompt_that_a_hook_refused_is_left_out(content, has_attachment):
    session = Session().user("hi").assistant("yo").user("my key is 1234")
    if has_attachment:
        session.add("attachment", attachment={"type": "hook_blocking_error"})
    session.add("system", content=content.format("UserPromptSubmit operation blocked by hook"))
    conversation = session.user("my cat is grey").read()
    assert [turn.text for turn in conversation.turns] == ["hi", "yo", "my cat is grey"]
    assert conversation.skipped["blocked prompt"] == 1


def test_a_refused_prompt_that_was_not_written_down_takes_no_other_with_it():
    session = Session().user("hi")
    session.add("system", content="UserPromptSubmit operation blocked by hook:\nno\n\nOriginal prompt: my key")
    assert [turn.text for turn in session.read().turns] == ["hi"]


def test_what_a_compaction_preserves_and_writes_anew_keeps_its_branch():
    session = Session().user("start").assistant("ready", uuid="fork").user("first try").assistant("first answer")
    session.last = "fork"
    session.user("second try").assistant("second answer", uuid="kept").user("go on", uuid="asked")
    session.last = None
    preserved = {"preservedMessages": {"anchorUuid": "summary", "uuids": ["kept", "asked", "late"]}}
    session.add("system", subtype="compact_boundary", logicalParentUuid="late", compactMetadata=preserved)
    session.user("This session is", isCompactSummary=True, uuid="summary").assistant("went on", uuid="late")
    conversation = session.user("after").read()
    assert [turn.text for turn in conversation.turns] == [
        "start", "ready", "second try", "second answer", "go on", "went on", "after",
    ]  # fmt: skip
    assert conversation.skipped == {"abandoned branch": 2, "bookkeeping": 1, "compact summary": 1}


def test_the_last_line_may_be_half_written():
    session = Session().user("one").assistant("two").user("three")
    text = "\n".join(json.dumps(line) for line in session.lines)
    assert [turn.text for turn in read(text[:-20]).turns] == ["one", "two"]


def test_a_first_line_of_any_length_is_recognised():
    session = Session().user("word " * 140_000).assistant("two")
    assert [len(turn.text) for turn in session.read().turns] == [699_999, 3]


def test_a_branch_that_was_rewound_is_left_out():
    session = Session().user("one").assistant("answer one", uuid="fork").user("wrong").assistant("wrong answer")
    session.last = "fork"
    conversation = session.user("right").assistant("right answer").read()
    assert [turn.text for turn in conversation.turns] == ["one", "answer one", "right", "right answer"]
    assert conversation.skipped == {"abandoned branch": 2}


def test_a_session_rewound_to_its_beginning_begins_anew():
    session = Session().user("wrong").assistant("wrong answer")
    session.last = None
    assert [turn.text for turn in session.user("right").read().turns] == ["right"]


@pytest.mark.parametrize("link", ["logical", "preserved", "neither"])
def test_what_was_said_before_a_compaction_is_kept(link):
    session = Session().user("old").assistant("old answer", uuid="tail")
    session.last = None
    fields = {
        "logical": {"logicalParentUuid": "tail"},
        "preserved": {"compactMetadata": {"preservedMessages": {"anchorUuid": "x", "uuids": ["tail"]}}},
        "neither": {},
    }[link]
    session.add("system", subtype="compact_boundary", **fields).user("This session is", isCompactSummary=True)
    assert [turn.text for turn in session.user("new").read().turns] == ["old", "old answer", "new"]


def test_an_old_compaction_without_boundary_is_bridged():
    session = Session().user("old").assistant("old answer")
    session.last = None
    conversation = session.user("This session is", isCompactSummary=True).user("new").read()
    assert [turn.text for turn in conversation.turns] == ["old", "old answer", "new"]


def test_a_lost_parent_does_not_cut_the_conversation():
    session = Session().user("one").assistant("two")
    session.last = "on-a-lost-line"
    assert [turn.text for turn in session.user("three").read().turns] == ["one", "two", "three"]


def test_blocks_of_an_answer_beside_the_path_are_kept():
    session = (
        Session().user("go").assistant(TOOL_USE, message="m1", uuid="call").assistant("Both at once.", message="m1")
    )
    session.last = "call"
    conversation = session.user(TOOL_RESULT).assistant("Done.").read()
    assert said(conversation) == [("User", "go"), ("Assistant", "Both at once.\n\nDone.")]


def test_a_streamed_or_repeated_line_counts_once():
    session = Session().user("go").assistant("Hello.", message="m1").assistant("Hello.", message="m1")
    session.lines.append(session.lines[0])
    conversation = session.read()
    assert said(conversation) == [("User", "go"), ("Assistant", "Hello.")]
    assert conversation.skipped == {"repeated line": 1}


def test_what_the_user_typed_while_the_agent_worked_is_kept():
    session = Session().user("go").assistant("Working.", uuid="a")
    session.add("attachment", attachment={"type": "queued_command", "commandMode": "prompt", "prompt": "and water it"})
    note = {"type": "queued_command", "commandMode": "task-notification", "prompt": "<task-notification>x"}
    conversation = session.add("attachment", attachment=note).assistant("Both done.").read()
    assert said(conversation) == [
        ("User", "go"),
        ("Assistant", "Working."),
        ("User", "and water it"),
        ("Assistant", "Both done."),
    ]


def test_a_queued_prompt_without_an_id_follows_the_line_before_it():
    session = Session().user("go").assistant("Working.")
    session.lines.append({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and water it"}})
    conversation = session.assistant("Both done.").read()
    assert [turn.text for turn in conversation.turns] == ["go", "Working.", "and water it", "Both done."]


def test_a_chain_through_lines_of_any_type_holds():
    session = Session().user("one").add("attachment", attachment={}).add("novelty").add("system", subtype="x")
    assert [turn.text for turn in session.user("two").read().turns] == ["one", "two"]


def test_a_session_in_which_nobody_spoke_has_no_turns():
    conversation = Session().add("system", subtype="x").read()
    assert conversation.turns == ()
    assert conversation.source == "claude-code"


def test_a_circle_of_parents_ends():
    session = Session()
    session.last = "u1"
    assert [turn.text for turn in session.user("one").user("two").read().turns] == ["one", "two"]


# Real files

HERE = "generated-2.1.329/"
PLAN = [("User", "Plan the release."), ("Assistant", "I will inspect the checks.")]
PROOF = [("User", "Prove the parser claim."), ("Assistant", "The production route parsed this witness.")]
FILES = {
    f"{HERE}11111111-2222-4333-8444-555555555555.jsonl": (
        "claude-code",
        "11111111-2222-4333-8444-555555555555",
        [
            ("User", "Please WRITEFILE now"),
            ("Assistant", "I will write the file.\n\nStub answer 2."),
            ("User", "Now RECALLTOOL please"),
            ("Assistant", "Stub answer 4."),
            ("User", "Now SPAWN a helper"),
            ("Assistant", "Stub answer 9.\n\nStub answer 10."),
        ],
    ),
    f"{HERE}hook_inputs.jsonl": None,
    f"{HERE}subagents/agent-adfd0f63e4db10bf9.jsonl": ("claude-code", None, []),
    "polylogue/chatgpt_native-conversation-v1.json": (
        "chatgpt",
        "chatgpt-fixture-conversation",
        [
            ("User", "Analyze the attached fixture and create an artifact."),
            ("Assistant", "Final answer. [Download artifact](sandbox:/mnt/data/fixture-result.zip)"),
        ],
    ),
    "polylogue/claude-code_normalization-agent.jsonl": (
        "claude-code",
        "claude-lineage-parent",
        [
            ("User", "Inspect the normalization shard and report only evidence."),
            ("Assistant", "The shard is coherent."),
        ],
    ),
    "polylogue/claude-code_normalization-lineage-acompact.jsonl": ("claude-code", "claude-lineage-parent", PLAN),
    "polylogue/claude-code_normalization-lineage-parent.jsonl": ("claude-code", "claude-lineage-parent", PLAN),
    "polylogue/origin-capability_chatgpt-export.json": ("chatgpt", "origin-matrix-chatgpt", PROOF[:1]),
    "polylogue/origin-capability_claude-ai-export.json": ("claude-ai", "origin-matrix-claude-ai", PROOF[:1]),
    "polylogue/origin-capability_claude-code-session.jsonl": ("claude-code", "origin-matrix-claude-code", PROOF),
    "polylogue/origin-capability_codex-session.jsonl": ("codex", "origin-matrix-codex", PROOF),
    "polylogue/origin-capability_gemini-cli-session.json": ("gemini", "origin-matrix-gemini-cli", PROOF),
    "polylogue/origin-capability_hermes-session.jsonl": ("hermes", "origin-matrix-hermes", PROOF),
    "simonw/sample_session.jsonl": (
        "claude-code",
        "test-session-id",
        [
            ("User", "Create a hello world function"),
            ("Assistant", "I'll create that function for you."),
            ("User", "Now add a goodbye function"),
            ("Assistant", "Done! The hello function is ready."),
        ],
    ),
}


def shared(name):
    path = DATA / name
    if not path.exists():
        pytest.skip("the transcript collection is not here: set QUAID_DATA to the folder that holds transcripts/")
    return path


def test_every_file_of_the_collection_is_in_the_table():
    assert {str(path.relative_to(shared(""))) for path in shared("").rglob("*.json*")} == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_real_files_become_clean_conversations_or_are_refused(name):
    path = shared(name)
    if FILES[name] is None:
        with pytest.raises(BadInputError, match="is not a transcript Quaid knows"):
            read_transcript(path)
        return
    (conversation,) = read_transcripts(path)
    assert (conversation.source, conversation.session, said(conversation)) == FILES[name]


def test_a_real_session_says_what_was_left_out():
    conversation = read_transcript(shared(f"{HERE}11111111-2222-4333-8444-555555555555.jsonl"))
    assert conversation.project == "proj"
    assert conversation.started == utc(2026, 11, 20, 23, 1, 56, 731000)
    assert conversation.skipped["compact summary"] == 1
    assert conversation.skipped["notification"] == 1
    assert "unknown type" not in conversation.skipped


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_real_files_may_be_cut_and_spoilt_anywhere(name, data):
    raw = bytearray(shared(name).read_bytes()[:20_000])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = start + data.draw(st.sampled_from([0, 1, 2, 9, 200]))
        raw[start:end] = data.draw(st.sampled_from(SPOILERS) | st.binary(max_size=6))
    try:
        conversations = list(read_transcripts(io.BytesIO(bytes(raw))))
    except BadInputError:
        return
    for turn in (turn for conversation in conversations for turn in conversation.turns):
        assert turn.speaker
        assert turn.text == clean_text(turn.text)


# Size


def test_a_line_beyond_all_measure_is_skipped(monkeypatch):
    monkeypatch.setattr("quaid.capture.transcripts.lines.LINE_LIMIT_BYTES", 100)
    conversation = read_objects(*({"role": "user", "content": text} for text in ("a", "b" * 5000, "c")))
    assert said(conversation) == [("User", "a"), ("User", "c")]
    assert conversation.skipped == {"overlong line": 1}


def test_memory_is_bounded_by_what_is_kept(tmp_path):
    path = tmp_path / "large.jsonl"
    output = "x y " * 5000
    with path.open("w") as stream:
        parent = None
        for number in range(1000):
            kind = "user" if number % 2 else "assistant"
            block = (
                {"type": "tool_result", "content": output} if number % 2 else {"type": "text", "text": f"step {number}"}
            )
            line = {"type": kind, "uuid": f"{number:036}", "parentUuid": parent, "message": {"content": [block]}}
            parent = line["uuid"]
            stream.write(json.dumps(line) + "\n" + json.dumps({"type": "progress", "data": output}) + "\n")
    assert path.stat().st_size > 20_000_000
    tracemalloc.start()
    try:
        conversation = read_transcript(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert conversation.turns[0].text.endswith("step 998")
    assert peak < 3_000_000
