"""`quaid hook EVENT`, which programs call that agents live in: reads the event, prints the answer.

Whatever happens here, the agent goes on: the answer comes within a moment or not at all, and the exit code is 0.
Nothing is imported that the event at hand does not need.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid import trust
from quaid.errors import QuaidError
from quaid.history import vault_guard
from quaid.local import hook_failures, hook_log, sessions, state_files
from quaid.place import state_folder, state_home
from quaid.redaction import admit
from quaid.resident.call import NO_HOOKS, event_name, named_vaults, read_input
from quaid.text.invisible import escaped, whole_json

if TYPE_CHECKING:
    from quaid.memory import Memory

TELLING = ("session-start", "user-prompt-submit")
"""Events whose answer a program shows to the person at its terminal."""
EVENTS = ("session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end")


def main(arguments: Sequence[str], stdin: bytes | None = None) -> int:
    """Answer one event. `arguments` are its name, and `--text` for the bare text instead of JSON; `stdin`, what the
    program tells about it, is read where it is not given.
    """
    if os.environ.get(NO_HOOKS):
        return 0
    started = time.perf_counter()
    name = event_name(arguments)
    call = _Call(arguments, started)
    given: Mapping[str, object] = {}
    try:
        call.event = _read(read_input() if stdin is None else stdin) if name in EVENTS else {}
        call.root = _locate(arguments, call.event)
        vault_guard.check(call.root)
        call.is_there = True
        if name == "work":
            from quaid.hooks.queue_worker import run_worker

            run_worker(call.root)
        elif name in EVENTS:
            given = call.answer(None)
        else:
            call.problem = f"there is no event {name!r}; known are {', '.join(EVENTS)}"
    except QuaidError as error:
        call.problem = str(error)
    except Exception as error:  # noqa: BLE001 - the agent goes on, whatever is wrong with its memory
        call.problem = f"{type(error).__name__}: {error}"
    with suppress(OSError):  # nobody reads: nothing was given
        if record := call.end(given):
            state_files.append(*record)
    return 0


def respond(memory: Memory, arguments: Sequence[str], stdin: bytes) -> tuple[Path, str] | None:
    """Answer an event for the process that was called with it, from a memory that is open. What goes wrong is raised:
    that process does it alone then. Return the file and the line that it appends once it has delivered the answer.
    """
    call = _Call(arguments, time.perf_counter())
    call.event, call.root, call.is_there = _read(stdin), memory.root, True
    return call.end(call.answer(memory))


@dataclass(slots=True)
class _Call:
    """One call: what it found, said and met. `is_there` says whether the vault at `root` may be read."""

    arguments: Sequence[str]
    started: float
    event: dict[str, Any] = field(default_factory=dict)
    root: Path | None = None
    is_there: bool = False
    text: str = ""
    news: str = ""
    problem: str = ""

    @property
    def name(self) -> str:
        return event_name(self.arguments)

    def answer(self, memory: Memory | None) -> Mapping[str, object]:
        """Find the answer; return what is to be recorded of the session once it was delivered."""
        from quaid.hooks.events import answer

        self.text, self.news, self.problem, given = answer(self.name, self.root or Path(), self.event, memory)
        return given

    def end(self, given: Mapping[str, object]) -> tuple[Path, str] | None:
        """Print the answer, and with it once a session what fails; leave a line in the log. Return the file and the
        line that say what the session was `given`, None where nothing was.
        """
        self.problem = admit(self.problem).text
        with suppress(OSError):
            self.news = "\n".join(filter(None, (self.news, self._record())))
        _print(self)
        if self.problem:
            print(escaped(f"quaid: hook {self.name}: {self.problem}"), file=sys.stderr)
        with suppress(OSError):
            state = state_folder(self.root) if self.root and self.is_there else state_home()
            hook_log.write(state, self.name, (time.perf_counter() - self.started) * 1000, self.problem)
        session = self.event.get("session_id")
        if self.root is None or not (self.text and given and session):
            return None
        return sessions.plan_record(state_folder(self.root), admit(str(session)).text, given)

    def _record(self) -> str:
        """Keep whether it failed, and return what its session should be told of failures."""
        if self.name not in (*EVENTS, "work"):
            return ""
        vault = self.root or Path()
        if self.problem:
            hook_failures.failed(vault, self.name, self.problem, is_there=self.is_there)
        else:
            hook_failures.succeeded(vault, self.name)
        session = self.event.get("session_id")
        if self.name not in TELLING or not isinstance(session, str):
            return ""
        return hook_failures.tell(vault, session, is_there=self.is_there)


def _read(stdin: bytes) -> dict[str, Any]:
    """The event as the program describes it; empty where it cannot be read."""
    try:
        event = json.loads(whole_json(stdin.decode(json.detect_encoding(stdin), "replace")), strict=False)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _locate(arguments: Sequence[str], event: dict[str, Any]) -> Path:
    named = "".join(named_vaults(arguments)[-1:]) or None
    cwd = event.get("cwd")
    start = Path(cwd) if isinstance(cwd, str) and cwd.startswith("/") else None
    root, remark = trust.locate_vault(named, start=start)
    if remark:
        print(f"quaid: {remark}", file=sys.stderr)
    return root


def _print(call: _Call) -> None:
    """Print the answer as Claude Code's hooks do, or its bare text; no context that is longer than a program takes."""
    from quaid.hooks.events import MAX_ANSWER

    if len(json.dumps(call.text, ensure_ascii=False)) > MAX_ANSWER:
        call.text = ""
    text = call.text
    if "--text" in call.arguments:
        shown = text
    else:
        output: dict[str, Any] = {}
        if text:
            event = "".join(part.capitalize() for part in call.name.split("-"))
            output["hookSpecificOutput"] = {"hookEventName": event, "additionalContext": text}
        if call.news:
            output["systemMessage"] = call.news
        shown = json.dumps(output, ensure_ascii=False) if output else ""
    if shown:
        sys.stdout.buffer.write(shown.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
