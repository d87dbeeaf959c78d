"""The question alone, without what gateways and chat hosts put around it.

A message that reaches an agent carries who sent it where and when, quoted replies, notes about attachments, reminders
of the host and the memories that Quaid itself showed. None of that is asked, and its names and dates would be searched.

Only shapes that no person types are taken: tags of known names, fenced blocks under known headings, and brackets that
hold both words and a machine's time, id or address. Claude Code puts the message itself inside `<channel source=…>` and
`<command-args>`; these lose their tags only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SIGNS = ("[", "<", "(untrusted", "⟦", "Current time:")

# Compiled at the first message that has a sign; `re` keeps what it has compiled.
_SPANS = (
    "quaid-memory|system-reminder|active_memory_plugin|relevant-memories|environment_context|user_instructions"
    "|task-notification|local-command-stdout|local-command-caveat|command-name|command-message|ide_opened_file"
    "|ide_selection"
)
_TAG = rf"(?i)<(?P<closes>/?)(?P<name>{_SPANS}|channel|command-args)(?![\w-])(?P<attributes>[^<>]*)>"
_CHANNELS = (
    "BlueBubbles|Channel|Discord|Email|Feishu|Gmail|Google ?Chat|IRC|LINE|Matrix|Mattermost|MS ?Teams|Nextcloud"
    "|Nostr|Signal|Slack|SMS|Teams|Telegram|Tlon|Twitch|WebChat|WeChat|WhatsApp|Zalo|iMessage"
)
_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
_ZONE = r"(?:Z| ?(?:[A-Z]{2,5}(?:[+-][0-9:]{1,5})?|[+-][0-9]{2}:?[0-9]{2}))"
_OF_A_MACHINE = rf"(?:\bid:|\(@| \+[0-9]|\b[0-9]{{1,2}}:[0-9]{{2}}\b|{_STAMP})"
_ENVELOPE = (
    r"\A(?:\s*\[(?:"
    rf"(?:{_CHANNELS}) [^\[\]\n]{{0,300}}?{_OF_A_MACHINE}[^\[\]\n]{{0,200}}"
    rf"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}} {_STAMP}{_ZONE}?"
    rf"|[^\W\d_][^\[\]\n]{{0,200}} {_STAMP}{_ZONE}"
    rf"|{_STAMP}{_ZONE}"
    r"|cron:[^\[\]\n]{0,300}"
    r"|Forwarded from [^\[\]\n]{0,300}"
    r")\][ \t]*)+"
)
_BLOCKS = (
    r"(?m)^[ \t]*\[MEMORY\].*(?:\n[ \t]+\S.*)*\n?",
    r"(?m)^[ \t]*\[Replying to [^\]\n]*\]\n(?:(?!^[ \t]*\[Replying to ).*\n)*?[ \t]*\[/Replying\][ \t]*\n?",
    r"(?m)^[^\n]{1,80}(?:\(untrusted[^()\n]*\):|⟦openclaw:ctx⟧)[ \t]*\n```\w*\n(?:(?!```).*\n)*?```[ \t]*\n?",
    r"(?m)^[^\n]{1,80}⟦openclaw:ctx⟧[ \t]*\n(?!```)(?:[^\n]+\n)*",
    r"(?mi)^[ \t]*\[(?:message_id:|media attached\b|Image: source:)[^\n]*\][ \t]*\n?",
    rf"(?m)^[ \t]*System:[ ]\[{_STAMP}[^\]\n]{{0,20}}\][^\n]*\n?",
    r"(?m)^To send an image back, prefer the message tool[^\n]*\n?",
    r"(?m)^Current time: \w+day, [^\n]{0,80}[0-9]{4}[^\n]*\n?",
)
_CURRENT_MESSAGE = r"(?m)^(?:\[Current message - respond to this\][ \t]*)+\n?"
_MAX_PASSES = 8


def strip_metadata(text: str) -> str:
    """Return `text` as it was typed; all of it where it has no metadata or nothing else. Idempotent."""
    if not any(sign in text for sign in _SIGNS):
        return text
    stripped = text
    for _ in range(_MAX_PASSES):  # taking one out can uncover another
        before = stripped
        if "<" in stripped:
            stripped = _without_tags(stripped)
        for block in _BLOCKS:
            stripped = re.sub(block, "", stripped)
        stripped = re.split(_CURRENT_MESSAGE, stripped)[-1]
        stripped = re.sub(_ENVELOPE, "", stripped)
        if stripped != before:
            stripped = stripped.strip()
        if stripped == before:
            return stripped if stripped.strip() else text
    return text  # no host nests so deep: somebody plays


def _without_tags(text: str) -> str:
    kept: list[str] = []
    position = 0
    for start, end in sorted(_tag_spans(text)):
        kept.append(text[position : max(position, start)])
        position = max(position, end)
    return "".join([*kept, text[position:]])


def _tag_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield what is left out with tags: all between a pair, but of a pair that wraps the message only the tags."""
    opened: dict[str, list[re.Match[str]]] = {}
    for tag in re.finditer(_TAG, text):
        name = tag["name"].lower()
        if not tag["closes"]:
            opened.setdefault(name, []).append(tag)
        elif opened.get(name):
            opening = opened[name].pop()
            if name == "command-args" or (name == "channel" and opening["attributes"].strip()):
                yield opening.span()
                yield tag.span()
            else:
                yield opening.start(), tag.end()
    end = 0
    for opening in opened.get("quaid-memory", []):
        # Cut off by its host's limit: the rest of the paragraph is memory, as capture has it.
        if opening.start() >= end:
            end = text.find("\n\n", opening.end())
            end = len(text) if end < 0 else end
            yield opening.start(), end
