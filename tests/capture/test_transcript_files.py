"""Real transcripts, whole and spoilt, become clean conversations or are refused."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each
from transcript_reading import read_transcript, said, utc

from quaid.capture.cleaning import clean_text
from quaid.capture.transcripts import read_conversations
from quaid.errors import BadInputError

DATA = Path(os.environ.get("QUAID_DATA") or Path(__file__).parents[3] / "shared" / "data") / "transcripts"


SPOILERS = (b"", b"\n", b"\0", b'"', b"}", b"[{", b",", b"null", b"\\", b"PK\x03\x04", b"\xff\xfe", b"\xed\xa0\x80")


HERE = "generated-2.1.329/"
PLAN = [("User", "Plan the release."), ("Assistant", "I will inspect the checks.")]
PROOF = [("User", "Prove the parser claim."), ("Assistant", "The production route parsed this witness.")]
FILES = {
    f"{HERE}11111111-2222-4333-8444-555555555555.jsonl": (
        "claude-code",
        "11111111-2222-4333-8444-555555555555",
        [
            ("User", "Please WRITEFILE now"), ("Assistant", "I will write the file."),
            ("Assistant", "Stub answer 2."), ("User", "Now RECALLTOOL please"), ("Assistant", "Stub answer 4."),
            ("User", "/compact keep the decisions"), ("User", "Now SPAWN a helper"), ("Assistant", "Stub answer 9."),
            ("Assistant", "Stub answer 10."),
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
}  # fmt: skip


def shared(name):
    path = DATA / name
    if not path.exists():
        pytest.skip("the transcript collection is not here: set QUAID_DATA to the folder that holds transcripts/")
    return path


def test_every_file_of_the_collection_is_in_the_table():
    assert {str(path.relative_to(shared(""))) for path in shared("").rglob("*.json*")} == FILES.keys()


@for_each("name", FILES)
def test_real_files_become_clean_conversations_or_are_refused(name):
    path = shared(name)
    if FILES[name] is None:
        with pytest.raises(BadInputError, match="is not a transcript Quaid knows"):
            read_transcript(path)
        return
    (conversation,) = read_conversations(path)
    assert (conversation.source, conversation.session, said(conversation)) == FILES[name]


def test_a_real_session_says_what_was_left_out():
    conversation = read_transcript(shared(f"{HERE}11111111-2222-4333-8444-555555555555.jsonl"))
    assert conversation.project == "proj"
    assert conversation.started == utc(2026, 11, 20, 23, 1, 56, 731000)
    assert conversation.skipped["compact summary"] == 1
    assert conversation.skipped["notification"] == 1
    assert "unknown type" not in conversation.skipped


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_real_files_may_be_cut_and_spoilt_anywhere(name, data):
    raw = bytearray(shared(name).read_bytes()[:20_000])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = start + data.draw(st.sampled_from([0, 1, 2, 9, 200]))
        raw[start:end] = data.draw(st.sampled_from(SPOILERS) | st.binary(max_size=6))
    try:
        conversations = list(read_conversations(io.BytesIO(bytes(raw))))
    except BadInputError:
        return
    for turn in (turn for conversation in conversations for turn in conversation.turns):
        assert turn.speaker
        assert turn.text == clean_text(turn.text)
