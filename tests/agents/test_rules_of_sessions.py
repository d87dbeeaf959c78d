"""Standing instructions of conversations are rules at the start of each session."""

import json
from datetime import UTC, datetime

from quaid import Memory
from quaid.agents.session_context import build_session_context
from quaid.vault.layout import Layout

LINES = [
    {"session": "one", "started": "2026-03-01T10:00:00+00:00"},
    {"role": "user", "content": "Always give prices with tax when I ask about costs."},
    {"role": "assistant", "content": "Always happy to do that."},
    {"role": "user", "content": "I always pay in cash."},
]


def test_a_rule_comes_before_the_preferences_until_a_fact_repeats_it(tmp_path):
    memory, _ = Memory.create(tmp_path / "vault")
    with memory:
        transcript = tmp_path / "one.jsonl"
        transcript.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
        memory.extract(transcript)
        (episode,) = (tmp_path / "vault" / "episodes").rglob("*.md")

        def read() -> str:
            now = datetime(2026, 3, 2, tzinfo=UTC)
            return build_session_context(memory.root, memory.index(), memory.owners, 800, place=Layout(), now=now)

        shown = read()
        assert "Always give prices with tax when I ask about costs." in shown
        assert "cash" not in shown
        assert "happy" not in shown
        fact = f"---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: preference\n---\nPrices with tax. [[{episode.stem}#^t1]]\n"
        facts = tmp_path / "vault" / "facts"
        facts.mkdir(exist_ok=True)
        (facts / "f1.md").write_text(fact)
        memory.sync()
        assert "when I ask about costs" not in read()
