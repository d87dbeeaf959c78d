"""Real transcripts become clean episodes."""

from __future__ import annotations

import pytest
from replay import needs

from quaid import Memory
from quaid.errors import BadInputError


@pytest.fixture(autouse=True)
def _without_model(monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")


def test_every_claude_code_session_becomes_a_clean_episode(tmp_path):
    memory, _ = Memory.create(tmp_path / "vault")
    kept = 0
    with memory:
        for path in sorted(needs("transcripts").rglob("*.jsonl")):
            try:
                extracted = memory.extract(path)
            except BadInputError:  # another program's format, or nothing that anybody said
                continue
            kept += 1
            text = (memory.root / extracted.path).read_text(encoding="utf-8")
            assert "type: episode" in text
            assert not any(mark in text for mark in ("tool_use", "[MEMORY]", "<system-reminder>", "<command-name>"))
            again = memory.extract(path)
            assert (again.path, again.new_turns, again.commit) == (extracted.path, 0, None)
    assert kept >= 4
