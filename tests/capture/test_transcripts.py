"""Transcripts of every kind become the conversation that was had, and nothing else."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections import Counter
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each
from transcript_reading import read, read_objects, read_transcript, said, utc

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts import DOCUMENTS, FORMATS, read_conversations
from quaid.errors import BadInputError

LOCAL = datetime(2026, 11, 20, 14, 2)  # noqa: DTZ001 - no zone is given

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
    assert conversation.started == datetime(2023, 5, 8, 13, 56)  # noqa: DTZ001 - no zone is given
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
    assert conversation.started == datetime(2026, 1, 2)  # noqa: DTZ001 - no zone is given
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


@for_each(("text", "expected"), [
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
])  # fmt: skip
def test_chat_logs_are_split_where_a_reader_would(text, expected):
    assert said(read(text)) == expected


@pytest.mark.parametrize(("text", "expected"), [
    ("[2026-11-20 14:02] Maya: hi\nSam: no turn\n[2026-11-20 14:03] Sam: yo", LOCAL),
    ("2026-11-20T14:02:00Z Maya: hi\nSam: no turn\n2026-11-20T14:03:00Z Sam: yo", utc(2026, 11, 20, 14, 2)),
    ("20/11/2026, 14:02 - Maya: hi\nSam: no turn\n20/11/2026, 14:03 - Sam: yo", LOCAL),
    ("[11/20/26, 2:02:00 PM] Maya: hi\nSam: no turn\n[11/20/26, 2:03:00 PM] Sam: yo", LOCAL),
    ("Maya (2026-11-20 14:02): hi\nSam: no turn\nSam (2026-11-20 14:03): yo", LOCAL),
    ("[14:02] <Maya>: hi\nSam: no turn\n[14:03] <Sam>: yo", None),
])  # fmt: skip
def test_in_a_log_with_times_only_they_begin_turns(text, expected):
    conversation = read(text)
    assert said(conversation) == [("Maya", "hi\nSam: no turn"), ("Sam", "yo")]
    assert conversation.turns[0].at == conversation.started == expected


def test_assistants_have_their_role():
    assert [turn.role for turn in read("User: hi\nClaude: yo").turns] == ["user", "assistant"]


# What is no transcript


@pytest.mark.parametrize(("raw", "words"), [
    (b"", "holds no text"),
    (b"\n \n\0\0\n", "holds no text"),
    (b"\xef\xbb\xbf", "holds no text"),
    (b'{"a": 1}\n{"a": 2}\n', "is not a transcript Quaid knows; known are: Claude Code"),
    (b'{\n  "mapping": {}\n}', "is not a transcript Quaid knows"),
    (b'[{"role": "user", "content": "x"}]', "is not a transcript Quaid knows"),
    (b'{"role": "us', "is not a transcript Quaid knows"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe\xfd\xfc\x01\x02\x03" * 9, "is not a transcript Quaid knows"),
    (b"[" * 100_000, "is not a transcript Quaid knows"),
])  # fmt: skip
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


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from(LINES), max_size=12).map(lambda lines: "\n".join(lines).encode())
    | st.tuples(st.sampled_from([*LINES, "PK\3\4"]), st.sampled_from(["", "[", ",\n"]), st.text(max_size=40)).map(
        lambda parts: "".join(parts).encode("utf-8", "replace")
    )
)
def test_any_bytes_are_read_or_refused(raw):
    try:
        conversations = list(read_conversations(io.BytesIO(raw)))
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
        list(form(skipped).read(iter([line, spoilt, line])))
    try:
        found = json.loads(spoilt)
    except ValueError:
        return
    for form in DOCUMENTS:
        form(skipped).read_document(found if isinstance(found, dict) else {})


# Size


def test_a_line_beyond_all_measure_is_skipped(monkeypatch):
    monkeypatch.setattr("quaid.capture.transcripts.parsing.LINE_LIMIT_BYTES", 100)
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
    assert conversation.turns[-1].text == "step 998"
    assert peak < 3_000_000


@pytest.mark.parametrize(("text", "turns"), [
    ("小明：我对花生过敏\n小红：好的\n小明：谢谢", [("小明", "我对花生过敏"), ("小红", "好的"), ("小明", "谢谢")]),
    ("राम: मैं शाकाहारी हूँ\nसीता: ठीक है", [("राम", "मैं शाकाहारी हूँ"), ("सीता", "ठीक है")]),
    ("Иван: Я люблю чай\nМария: Хорошо", [("Иван", "Я люблю чай"), ("Мария", "Хорошо")]),
    ("时间：明天\n地址：上海", [("User", "时间：明天\n地址：上海")]),
])  # fmt: skip
def test_speakers_of_any_script_are_told_from_what_they_say(text, turns):
    assert said(read(text)) == turns
