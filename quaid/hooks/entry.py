"""`quaid hook EVENT`, which programs call that agents live in: reads the event, prints the answer.

Whatever happens here, the agent goes on: the answer comes within a moment or not at all, and the exit code is 0.
Nothing is imported that the event at hand does not need.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid import trust
from quaid.errors import QuaidError
from quaid.local import hook_log
from quaid.place import state_folder
from quaid.redaction import admit
from quaid.resident.call import NO_HOOKS, event_name, read_input
from quaid.text.invisible import escaped

if TYPE_CHECKING:
    from quaid.agents.prompt_context import HookAnswer
    from quaid.memory import Memory

EVENTS = ("session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end")


def main(arguments: Sequence[str], stdin: bytes | None = None) -> int:
    """Answer one event. `arguments` are its name, and `--text` for the bare text instead of JSON; `stdin`, what the
    program tells about it, is read where it is not given.
    """
    if os.environ.get(NO_HOOKS):
        return 0
    started = time.perf_counter()
    name = event_name(arguments)
    root, problem = None, ""
    try:
        event = _read(read_input() if stdin is None else stdin) if name in EVENTS else {}
        root = _find_vault(arguments, event)
        if name == "work":
            from quaid.hooks.queue_worker import run_worker

            run_worker(root)
        elif name not in EVENTS:
            problem = f"there is no event {name!r}; known are {', '.join(EVENTS)}"
        else:
            problem = _respond(name, root, event, arguments, None)
    except QuaidError as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - the agent goes on, whatever is wrong with its memory
        problem = f"{type(error).__name__}: {error}"
    _end(root, name, started, problem)
    return 0


def respond(memory: Memory, arguments: Sequence[str], stdin: bytes) -> int:
    """Answer an event for the process that was called with it, from a memory that is open. What goes wrong is raised:
    that process does it alone then.
    """
    started = time.perf_counter()
    name = event_name(arguments)
    problem = _respond(name, memory.root, _read(stdin), arguments, memory)
    _end(memory.root, name, started, problem)
    return 0


def _respond(name: str, root: Path, event: dict[str, Any], arguments: Sequence[str], memory: Memory | None) -> str:
    from quaid.hooks.events import MAX_ANSWER, answer

    answered = answer(name, root, event, memory)
    _print(answered, name, MAX_ANSWER, as_text="--text" in arguments)
    return answered.problem


def _end(root: Path | None, name: str, started: float, problem: str) -> None:
    if problem:
        problem = admit(problem).text
        print(escaped(f"quaid: hook {name}: {problem}"), file=sys.stderr)
    if root is not None:
        with suppress(OSError):
            hook_log.write(state_folder(root), name, (time.perf_counter() - started) * 1000, problem)


def _read(stdin: bytes) -> dict[str, Any]:
    """The event as the program describes it; empty where it cannot be read."""
    try:
        event = json.loads(stdin)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _find_vault(arguments: Sequence[str], event: dict[str, Any]) -> Path:
    named = arguments[arguments.index("--vault") + 1] if "--vault" in arguments[:-1] else None
    cwd = event.get("cwd")
    start = Path(cwd) if isinstance(cwd, str) and cwd.startswith("/") else None
    root, remark = trust.locate_vault(named, start=start)
    if remark:
        print(f"quaid: {remark}", file=sys.stderr)
    trust.check(root)
    return root


def _print(answer: HookAnswer, name: str, limit: int, *, as_text: bool) -> None:
    """Print the answer as Claude Code's hooks do, or its bare text; nothing where that is longer than `limit`."""
    if as_text:
        shown = answer.text
    else:
        output: dict[str, Any] = {}
        if answer.text:
            event = "".join(part.capitalize() for part in name.split("-"))
            output["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": answer.text}
        if answer.news:
            output["systemMessage"] = answer.news
        shown = json.dumps(output, ensure_ascii=False) if output else ""
    if shown and len(shown) <= limit:
        sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
