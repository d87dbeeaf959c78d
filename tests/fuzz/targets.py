"""What must hold for any bytes: one function for each parser that reads bytes of somebody else.

A function raises where its parser does, or where what it returned breaks a promise. `DICTIONARY` has the tokens that
the fuzzer may put into its inputs.
"""

from __future__ import annotations

import io
import json
import re

from quaid.capture.transcripts import read_conversations
from quaid.errors import BadInputError
from quaid.llm.answers import find_answer
from quaid.vault import frontmatter, markdown
from quaid.vault.frontmatter import FrontmatterBrokenError
from quaid.vault.merging import merge_note
from quaid.vault.notes import parse_note
from quaid.web.rendering import render_markdown

FACT = "facts/2026/11/maya-takes-oat-milk-k3qdz.md"
SEPARATOR = b"\x1e"
_ACTIVE = re.compile(
    r"<(?!/?(?:p|h[2-6]|[uo]l|li|blockquote|pre|code|em|strong|del|mark|sup|div|details|summary|small|img|t(?:able|head|body|r|h|d)|a|span|[bh]r)\b)"
)
_IMAGE = re.compile(r'<img (?![^>]*?src="/file/)')
_ADDRESS = re.compile(r'<a [^>]*?href="(?!https?:|mailto:|/|#)[^"]', re.IGNORECASE)
DICTIONARY = {
    "frontmatter": (
        b"---\n", b"\n---\n", b"id: ", b"type: fact\n", b"owner: ", b"privacy: private\n", b"[a, b]", b"\n  - ", b"|\n  ", b"&x ", b"*x",
        b"? ", b"!!int ", b"\xef\xbb\xbf", b"\r\n", b"# ", b"...", b"{a: ", b"<<: ", b"2026-11-01",
    ),
    "markdown": (
        b"[[", b"]]", b"](", b"```", b"~~~", b"%%", b"<!--", b"-->", b"- [[A]] knows [[B]]\n", b"^t1", b"\n> ", b"\n    ", b"javascript:",
        b"<a href=", b"<script>", b"|-|", b"\\", b"&#x", b"**", b"==", b"\n# ", b"1. ", b"![", b"http://", b"\0",
    ),
    "transcripts": (
        b'{"type":"user","message":{"role":"user","content":', b'"role":"assistant"', b'"timestamp":"2026-11-20T14:02:00Z"', b'"sessionId":',
        b'"parentUuid":', b'"uuid":', b'"content":[', b'"text":', b'"tool_result"', b"}\n", b"\\ud800", b'"mapping":{', b'"chat_messages":[',
        b'"session_meta"', b'"payload":', b"User: ", b"Assistant: ", b"1e999", b"null", b"\x1f\x8b", b"PK\x03\x04",
    ),
    "merge": (
        SEPARATOR, b"---\n", b"id: 01kagx3m7r9q2d5w8t0v7k3qdz\n", b"type: fact\n", b"status: active\n", b"confidence: 0.9\n", b"created: ",
        b"keywords: [a, b]\n", b"confirmations: 2\n", b"- [[A]] likes [[B]]\n", b"Maya takes oat milk.", b"%%merged: x: y%%", b"\r\n",
        b"\n\n", b"# ", b"<<<<<<< a\n",
    ),
    "answers": (b'{"', b'":', b"[{", b"}]", b"```json\n", b"</think>", b"None", b"True", b"\\u", b'\\"', b"NaN", b"1e999", b", ", b"\n"),
    "requests": (
        b"POST /v/one/mcp\n", b"GET /readyz\n", b"POST /hooks/push\n", b"POST /mcp\n", b"authorization: Bearer @token\n",
        b"authorization: Bearer @forged\n", b"x-hub-signature-256: @signature\n", b"content-type: application/json\n",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"', b"memory_recall", b"memory_store", b'"arguments":{', b'"query":',
        b'"repository":{"clone_url":', b"\\u0000", b"\\ud800", b"%00", b"\xff",
    ),
}  # fmt: skip


def fuzz_frontmatter(data: bytes) -> None:
    """A head is always read, and a change of one key changes no other, nor the body."""
    parse_note(FACT, data)
    parse_note("plan.md", data)
    text = data.decode("utf-8", "surrogateescape")
    before = frontmatter.parse(text)
    try:
        joined = "".join(key.lines for key in frontmatter.split_keys(text))
        assert joined in text
    except FrontmatterBrokenError:
        pass
    for key, value in (("status", "active"), ("keywords", ["a", "x, y"]), ("new key", "# 'it' \"is\": so")):
        try:
            changed = frontmatter.set_fields(text, {key: value})
        except FrontmatterBrokenError:
            continue
        after = frontmatter.parse(changed)
        assert after.fields[key] == value
        assert {k: v for k, v in after.fields.items() if k != key} == {
            k: v for k, v in before.fields.items() if k != key
        }
        assert after.body.split() == before.body.split()  # a head turns \r\n of the body into \n
        assert _body_of(changed) == _body_of(text)
        assert frontmatter.set_fields(changed, {key: value}) == changed


def _body_of(text: str) -> str:
    return text[frontmatter.body_start(text) :].lstrip("\ufeff")


def fuzz_markdown(data: bytes) -> None:
    """Every text is read, shown without anything that acts, and a statement comes back as it was escaped."""
    text = data.decode("utf-8", "replace")
    markdown.links(text)
    markdown.edges(text, "Maya")
    markdown.citations([text])
    markdown.has_conflict_markers(text)
    markdown.text_of_note(text)
    assert all(section.text.strip() for section in markdown.sections(text))
    assert all(piece.strip() for piece in markdown.split_text(text, 20))
    line = " ".join(text.split())
    if line.isprintable():
        assert markdown.plain(markdown.escape(line)) == line
    html = str(render_markdown(text))
    assert not _ACTIVE.search(html), html
    assert not _ADDRESS.search(html), html
    assert not _IMAGE.search(html), html


def fuzz_transcripts(data: bytes) -> None:
    """A transcript is read or refused with a sentence; what is read can be written down."""
    try:
        for conversation in read_conversations(io.BytesIO(data)):
            for turn in conversation.turns:
                turn.text.encode()
            (conversation.session or "").encode()
    except BadInputError as error:
        str(error).encode()


def fuzz_merge(data: bytes) -> None:
    """Both sides of a merge write the same file, and one that changed nothing changes nothing."""
    base, ours, theirs, *_ = [*data.split(SEPARATOR), b"", b""]
    for path in (FACT, "journal/SOUL.journal.md", "MEMORY.md"):
        merged = merge_note(base, ours, theirs, path)
        assert merged == merge_note(base, theirs, ours, path)
        assert merge_note(base, ours, base, path) == ours
        if merged is not None:
            assert merge_note(base, merged, merged, path) == merged
            assert merge_note(ours, ours, merged, path) == merged


def fuzz_answers(data: bytes) -> None:
    """JSON is found in any answer or not; what is JSON already is read as it is."""
    text = data.decode("utf-8", "replace")
    found, is_cut = find_answer(text)
    json.dumps(found)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, dict) and "NaN" not in text and "Infinity" not in text and "</think" not in text.lower():
        assert found == value
        assert not is_cut


def fuzz_requests(data: bytes) -> None:
    """A server of many vaults refuses what it cannot use; it never fails."""
    from served_app import send

    status, body = send(data)
    assert status < 500, (status, body)


TARGETS = {
    "frontmatter": fuzz_frontmatter,
    "markdown": fuzz_markdown,
    "transcripts": fuzz_transcripts,
    "merge": fuzz_merge,
    "answers": fuzz_answers,
    "requests": fuzz_requests,
}
