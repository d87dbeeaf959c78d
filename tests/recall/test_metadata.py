"""What gateways put before a message is taken off; what a person typed stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.recall.query import strip_metadata

ASKED = "What do I drink?"
CONVERSATION = """Conversation info (untrusted metadata):
```json
{
  "message_id": "4542",
  "sender": "Maya",
  "timestamp": "Sat 2026-03-28 16:12 PDT"
}
```

Sender (untrusted metadata):
```json
{"label": "Maya (500)", "username": "maya"}
```

"""


@for_each("message", [
    f"[Telegram Maya (@maya) id:123456 2026-02-12 14:30 UTC] {ASKED}",
    f"[Telegram Maya id:123456 +5m 2026-02-12T14:30Z] {ASKED}", f"[WhatsApp +4917012345 2026-02-12 14:30] {ASKED}",
    f"[Discord Guild #general channel id:99 2026-02-12 14:30 UTC] {ASKED}", f"[Signal Maya 14:30] {ASKED}",
    f"[Sat 2026-02-14 18:49 GMT-3] {ASKED}", f"[Rocket Maya 2026-02-12 14:30 UTC] {ASKED}",
    f"[2026-02-12 14:30:05 UTC] {ASKED}",
    f"[cron:9f2c daily digest] {ASKED}\nCurrent time: Sunday, April 5th, 2026 — 8:25 PM (Pacific/Auckland)",
    f"{ASKED}\n[message_id: 123]", f"[message_id: om_x100]\n{ASKED}", f"{CONVERSATION}{ASKED}",
    f"{CONVERSATION}[Sat 2026-02-14 18:49 GMT-3] {ASKED}\n[message_id: 1]",
    f'Conversation info: ⟦openclaw:ctx⟧\n```json\n{{"a": 1}}\n```\n\n{ASKED}',
    f"Context: ⟦openclaw:ctx⟧\nsome lines\nof context\n\n{ASKED}",
    f"System: [2026-02-12 14:30:00 UTC] Node connected\nSystem: [2026-02-12 14:31] again\n\n{ASKED}",
    f"<channel>telegram</channel>\n{ASKED}",
    f'<channel source="plugin:telegram" chat_id="1" ts="2026-02-12T14:30Z">\n{ASKED}\n</channel>',
    f"<command-name>/ask</command-name>\n<command-args>{ASKED}</command-args>",
    f"[MEMORY] Maya takes oat milk\n  since 2020\n[MEMORY] and tea\n{ASKED}",
    f"<quaid-memory>\n[MEMORY] Maya\n</quaid-memory>\n{ASKED}", f"<quaid-memory>\ncut off here\n\n{ASKED}",
    f"<system-reminder>\nToday's date is 2026-11-20.\n</system-reminder>\n{ASKED}",
    f"<SYSTEM-REMINDER>a<system-reminder>b</system-reminder></SYSTEM-REMINDER>{ASKED}",
    f"[media attached: /tmp/a.png (image/png) | /tmp/a.png]\n{ASKED}",
    f"[media attached 1/2: /tmp/a.png (image/png)]\n[Image: source: /tmp/a.png]\n{ASKED}",
    f"{ASKED}\n\n[Replying to Maya id:77]\nI like tea\nand [this]\n[/Replying]",
    f"[Replying to Maya id:77]\nI like tea\n[/Replying]\n{ASKED}",
    f"[Chat messages since your last reply - for context]\nSam: hi\n\n[Current message - respond to this]\n{ASKED}",
    f"[Forwarded from Sam at 2026-02-12 14:30] {ASKED}",
    f"<system-<system-reminder>x</system-reminder>reminder>y</system-reminder>{ASKED}",
])  # fmt: skip
def test_only_the_question_is_left(message):
    assert strip_metadata(message) == ASKED


@for_each("message", [
    "what is [[Maya Chen]]'s job [the new one]?", "[the new one] what is it", "[Signal processing] what did we say?",
    "[Discord] what did we say?", "[Telegram bot] why did it fail", "[meeting 2026-02-14 10:00] what was decided?",
    "[2026-02-12 14:30] what did I do then?", "[WIP] deploy", "what does <system-reminder> mean",
    "the <channel> tag and a </channel-list>", "I read [MEMORY] somewhere", "System: what does it say?",
    "Replying to Maya: yes", "which arrays use a[0] < b[1]?", "  What do I drink?  ", "current time: 2026?", "", "   ",
    "[",
])  # fmt: skip
def test_what_a_person_typed_stays_as_it_is(message):
    assert strip_metadata(message) == message


@pytest.mark.parametrize(
    "message", ["[MEMORY] Maya", "<quaid-memory>x</quaid-memory>", f"{CONVERSATION}", "[message_id: 1]"]
)
def test_a_message_of_nothing_else_is_the_question(message):
    assert strip_metadata(message) == message


PIECES = (
    "<system-reminder>", "</system-reminder>", "<quaid-memory>", "</quaid-memory>", "<channel>", '<channel source="x">',
    "</channel>", "<system-", "reminder>", "[MEMORY] a", "[message_id: 1]",
    "[Telegram Maya id:1 2026-02-12 14:30 UTC] ", "[Sat 2026-02-14 18:49] ", "[Replying to Maya]", "[/Replying]",
    "Sender (untrusted metadata):", "```json", "```", "Context: ⟦openclaw:ctx⟧", "System: [2026-02-12 14:30] x",
    "[Current message - respond to this]", "\n", "\n\n", " ", "word", "[", "]",
)  # fmt: skip
messages = st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text()


@given(messages)
def test_stripping_twice_is_stripping_once_and_never_leaves_nothing(message):
    stripped = strip_metadata(message)
    assert strip_metadata(stripped) == stripped
    assert bool(stripped) == bool(message)


@given(messages, st.sampled_from(["what do I drink", "where does Maya live?"]))
def test_a_question_on_a_paragraph_of_its_own_survives_any_prefix_that_is_closed(prefix, question):
    closed = f"<system-reminder>{prefix.replace('<', '')}</system-reminder>"
    assert question in strip_metadata(f"{closed}\n\n{question}")


@for_each("piece", [
    *PIECES, "[Replying to x]\n", "a (untrusted b):\n```json\n{\n", "<quaid-memory>\n\n",
    "[Sat 2026-02-14 18:49] [Current message - respond to this]\n",
])  # fmt: skip
def test_a_hundred_thousand_characters_take_no_time(piece):
    text = piece * (100_000 // len(piece))
    started = time.thread_time()
    strip_metadata(text)
    assert time.thread_time() - started < 10.0
