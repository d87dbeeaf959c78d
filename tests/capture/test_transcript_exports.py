"""Exports: many conversations in one JSON list, as a file or in a ZIP archive, read one at a time whatever their size."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from datetime import UTC, datetime

import pytest
from matrices import for_each
from transcript_reading import read_transcript, said

from quaid.capture.transcripts import exports, read_conversations
from quaid.errors import BadInputError


def stream(text):
    return io.BytesIO(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))


def read_all(value):
    return list(read_conversations(stream(value if isinstance(value, str | bytes) else json.dumps(value))))


def archive(members, **options):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, **options) as writer:
        for name, value in members.items():
            writer.writestr(name, value if isinstance(value, str | bytes) else json.dumps(value))
    packed.seek(0)
    return packed


# ChatGPT


def message(role, *parts, kind="text", **more):
    content = {"content_type": kind, "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "create_time": 1784164500.5, **more}


def chat(*messages, session="g1", **more):
    mapping, parent = {"root": {"id": "root", "message": None, "parent": None}}, "root"
    for number, found in enumerate(messages):
        name = f"n{number}"
        mapping[name] = {"id": name, "message": found, "parent": parent}
        parent = name
    return {"title": "T", "create_time": 1784164500.0, "mapping": mapping, "current_node": parent,
            "conversation_id": session, **more}  # fmt: skip


def test_a_chatgpt_conversation_is_what_was_shown():
    hidden = {"is_visually_hidden_from_conversation": True}
    (conversation,) = read_all(
        [
            chat(
                message("system", "", metadata=hidden),
                {"author": {"role": "user"}, "content": {"content_type": "user_editable_context", "user_profile": "x"}},
                message("user", "hidden", metadata=hidden),
                message("user", "look", {"content_type": "image_asset_pointer"}, kind="multimodal_text"),
                message("assistant", "pondering", kind="thoughts"),
                message("assistant", "search()", recipient="web"),
                message("tool", "result"),
                message("assistant", "It is \ue200cite\ue202turn0search1\ue201a cat.", recipient="all"),
                message("assistant", "More.", channel="final"),
                message("user", {"content_type": "audio_transcription", "text": "spoken"}, {"content_type": "audio"}),
                message("assistant", ""),
            )
        ]
    )
    assert said(conversation) == [
        ("User", "look"), ("Assistant", "It is a cat."), ("Assistant", "More."), ("User", "spoken"),
    ]  # fmt: skip
    assert (conversation.session, conversation.source, conversation.project) == ("g1", "chatgpt", None)
    assert conversation.started == datetime(2026, 7, 16, 1, 15, tzinfo=UTC)
    assert conversation.turns[0].at.microsecond == 500_000
    assert conversation.skipped == {
        "system or tool": 2, "attachment": 3, "hidden": 1, "thinking": 1, "tool call": 1, "empty": 1,
    }  # fmt: skip


@pytest.mark.parametrize("current", ["n1", None, "nowhere"])
def test_branches_beside_the_current_one_are_left_out(current):
    found = chat(message("user", "one"), message("assistant", "two"), current_node=current)
    found["mapping"]["old"] = {"message": {**message("user", "old"), "create_time": 5.0}, "parent": "root"}
    (conversation,) = read_all(found)
    assert said(conversation) == [("User", "one"), ("Assistant", "two")]
    assert conversation.skipped == {"abandoned branch": 1}


def test_a_circle_of_nodes_ends():
    found = chat(message("user", "one"))
    found["mapping"]["n0"]["parent"] = "n0"
    assert said(read_all(found)[0]) == [("User", "one")]


# Claude.ai


def claude(*messages, session="c1", **more):
    return {"uuid": session, "name": "N", "created_at": "2026-08-01T10:00:00Z", "chat_messages": list(messages), **more}


def test_a_claude_ai_conversation_is_its_blocks_without_attachments():
    (conversation,) = read_all(
        [
            claude(
                {"sender": "human", "text": "look", "content": [{"type": "text", "text": "look"}],
                 "attachments": [{"extracted_content": "SECRET"}], "files": [{}], "created_at": "2026-08-01T10:00:05Z"},
                {"sender": "assistant", "text": "This block is not supported",
                 "content": [{"type": "thinking", "thinking": "x"}, {"type": "tool_use"}, {"type": "tool_result"},
                             {"type": "text", "text": "A cat."}]},
                {"sender": "human", "text": "thanks", "content": []},
                {"sender": "ghost", "text": "boo"},
                project={"uuid": "p", "name": "Garden"},
            )
        ]
    )  # fmt: skip
    assert said(conversation) == [("User", "look"), ("Assistant", "A cat."), ("User", "thanks")]
    assert (conversation.session, conversation.source, conversation.project) == ("c1", "claude-ai", "Garden")
    assert conversation.title == "N"
    assert conversation.turns[0].at == datetime(2026, 8, 1, 10, 0, 5, tzinfo=UTC)
    assert conversation.skipped == {"attachment": 2, "thinking": 1, "tool call": 1, "tool result": 1, "unknown role": 1}


def test_an_edited_message_replaces_the_old_branch():
    zero = "00000000-0000-4000-8000-000000000000"
    tree = [
        {"uuid": "a", "parent_message_uuid": zero, "sender": "human", "text": "old"},
        {"uuid": "b", "parent_message_uuid": "a", "sender": "assistant", "text": "old answer"},
        {"uuid": "c", "parent_message_uuid": zero, "sender": "human", "text": "new"},
        {"uuid": "d", "parent_message_uuid": "c", "sender": "assistant", "text": "new answer"},
    ]
    assert said(read_all(claude(*tree))[0]) == [("User", "new"), ("Assistant", "new answer")]
    assert said(read_all(claude(*tree, current_leaf_message_uuid="b"))[0])[0] == ("User", "old")
    assert read_all(claude(*tree))[0].skipped == {"abandoned branch": 2}


# Many


@pytest.mark.parametrize("indent", [None, 2])
def test_an_export_gives_its_conversations_one_by_one(indent):
    found = [chat(message("user", f"hello {n} {{[é🌱"), session=f"g{n}") for n in range(40)]
    conversations = read_all(json.dumps(found, indent=indent, ensure_ascii=False))
    assert [conversation.session for conversation in conversations] == [f"g{n}" for n in range(40)]
    assert conversations[7].turns[0].text == "hello 7 {[é🌱"


def test_a_session_is_given_to_one_conversation_alone():
    assert read_transcript(stream(json.dumps([claude(session="only")])), session="mine").session == "mine"
    both = json.dumps([claude(session="a"), claude(session="b")])
    with pytest.raises(BadInputError, match="each with a session of its own"):
        list(read_conversations(stream(both), session="mine"))


def test_what_is_broken_in_an_export_is_counted_and_the_rest_is_read():
    good = [json.dumps(claude({"sender": "human", "text": f"t{n}"}, session=f"c{n}")) for n in range(3)]
    broken = good[1].replace('"sender":', '"sender"', 1)
    first, last = read_all(f"[{good[0]}, {broken}, {{}}, 7, {good[2]}]")
    assert (first.session, last.session) == ("c0", "c2")
    assert last.skipped == {"unreadable conversation": 1}
    (first, second) = read_all(f'[{good[0]}, {{"x": 1}}, "y", {good[1]}, {good[2][:60]}')
    assert second.skipped == {"unknown entry": 2, "unreadable conversation": 1}
    deep = '{"uuid":"x","chat_messages":' + "[" * 100_000
    assert [found.session for found in read_all(f"[{good[0]},{deep},{good[2]}]")] == ["c0", "c2"]


def test_a_conversation_beyond_all_measure_is_skipped(monkeypatch):
    monkeypatch.setattr(exports, "CONVERSATION_LIMIT", 3000)
    found = [claude({"sender": "human", "text": "x" * size}, session=str(size)) for size in (10, 100_000, 20, 30)]
    text = json.dumps(found)
    pieces = (text[start : start + 500].encode() for start in range(0, len(text), 500))
    skipped = exports.Counter()
    read = exports.read_documents(pieces, exports.ClaudeAi, skipped)
    assert [value["uuid"] for value in read] == ["10", "20", "30"]
    assert skipped == {"unreadable conversation": 1}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_where_the_pieces_end_makes_no_difference(size):
    text = json.dumps([claude({"text": 'é"\\ {[,🌱'}, session=f"c{n}", n=[1.5e-7, True, None]) for n in range(5)])
    data = text.encode("utf-16") if size == 7 else text.encode()
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    skipped = exports.Counter()
    assert list(exports.read_documents(pieces, exports.ClaudeAi, skipped)) == json.loads(text)
    assert not skipped


def test_an_export_takes_the_memory_of_a_conversation(tmp_path):
    path = tmp_path / "conversations.json"
    talk = json.dumps(chat(*(message("user", "word " * 400) for _ in range(20))))
    with path.open("w") as file:
        file.write("[" + ",".join([talk] * 100) + "]")
    assert path.stat().st_size > 4_000_000
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_conversations(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 100
    assert peak < 2_500_000


# ZIP


def test_an_archive_gives_the_conversations_of_all_its_parts():
    packed = archive(
        {
            "export/conversations-001.json": [chat(session="b")],
            "export/conversations-000.json": [chat(session="a"), claude(session="c")],
            "__MACOSX/export/._conversations-000.json": "junk",
            "export/user.json": {},
            "export/conversations-002.json": [],
            "chat.html": "<html>",
        }
    )
    conversations = list(read_conversations(packed))
    assert [conversation.session for conversation in conversations] == ["a", "b"]
    assert conversations[1].skipped == {"unknown entry": 1}


def test_an_archive_that_cannot_be_wound_back_is_read_too(tmp_path):
    path = tmp_path / "data.zip"
    path.write_bytes(archive({"conversations.json": [claude(session="a")]}).getvalue())

    class Pipe(io.BytesIO):
        def seekable(self):
            return False

    assert read_transcript(path).session == "a"
    assert read_transcript(Pipe(path.read_bytes())).session == "a"


def zipped(name="conversations.json", value=None):
    return archive({name: [claude()] if value is None else value}).getvalue()


def encrypted():
    packed = bytearray(zipped())
    packed[6] |= 1
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    return bytes(packed)


@for_each(("data", "words"), [
    ("[]", "is not a transcript Quaid knows"),
    ('{"chat_messages": []}', "is not a transcript Quaid knows"),
    ('[{"uuid": 1}]', "is not a transcript Quaid knows"),
    ('{"mapping": {}}', "is not a transcript Quaid knows"),
    (json.dumps([claude()])[:-3], "holds no conversation that can be read"),
    (zipped("notes.txt", "hi"), "without conversations.json"),
    (zipped(value="[]"), "holds no conversation"),
    (zipped()[:-30], "damaged ZIP archive"),
    (b"PK\x03\x04nonsense", "damaged ZIP archive"),
    (zipped().replace(b"conversations", b"conversatioms", 1), "damaged"),
    (encrypted(), "cannot be unpacked .*password"),
])  # fmt: skip
def test_what_holds_no_conversation_is_refused_in_a_sentence(data, words):
    with pytest.raises(BadInputError, match=words):
        read_all(data)


def test_an_archive_that_unpacks_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr("quaid.capture.transcripts.exports.UNPACKED_LIMIT_BYTES", 2**21)
    with pytest.raises(BadInputError, match="unpacks to more than"):
        read_all(archive({"conversations.json": json.dumps([claude()])[:-1] + " " * 2**23}).getvalue())
