"""The blocks that hosts and their hooks put before and after what a person types."""

import re

_NAMES = (
    "hook_context|session_context|state_snapshot|environment_context|user_instructions|turn_aborted|user_shell_command"
    "|subagent_notification|codex_internal_context|recommended_plugins|collaboration_mode|model_switch"
    "|personality_spec|task-notification|teammate-message|local-command-stdout|local-command-caveat"
    "|user-prompt-submit-hook|system-reminder"
)
# Compiled by the first text that has a tag; `re` keeps what it has compiled.
_OPENING = rf"\s*<({_NAMES})\b[^<>]*>"
_CLOSING = rf"</({_NAMES})>\Z"
_LONGEST_NAME = 40


def without_host_blocks(text: str) -> str:
    """Return `text` without the blocks before and after what was typed, which have lines of their own. Idempotent.

    What a person writes about such a block shares a line with it, and stays.
    """
    while "<" in text and (opening := re.match(_OPENING, text)):
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        typed = text[end + len(closing) :].lstrip(" \t")
        if end < 0 or typed[:1] not in {"", "\r", "\n", "<"}:
            break
        text = typed.lstrip("\r\n")
    while (closed := text.rstrip()).endswith(">"):
        found = re.search(_CLOSING, closed[-_LONGEST_NAME:])
        start = closed.rfind(f"<{found[1]}", 0, -len(found[0])) if found else -1
        line = closed[closed.rfind("\n", 0, max(start, 0)) + 1 : max(start, 0)]
        if start < 0 or line.strip():
            break
        text = closed[:start].rstrip()
    return text
