"""A session of Claude Code whose transcript hooks find."""

from __future__ import annotations

import json

from quaid.place import state_folder

TALK = [
    {"type": "user", "message": {"role": "user", "content": "We adopted a quokka called Biscuit."}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "How lovely!"}]}},
]


def state(home):
    return state_folder(home.root)


def talk(path, session="s1", turns=TALK):
    """A session as Claude Code keeps it: in its own folder, whatever folder `path` has."""
    path = path.parent / "claude/projects/-x" / path.name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {**turn, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": session,
         "timestamp": f"2026-11-20T14:0{n}:00Z", "isSidechain": False, "cwd": "/x", "version": "2.1.329"}
        for n, turn in enumerate(turns)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)
