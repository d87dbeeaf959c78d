"""What was stated is recalled, by every door and every reader, as it was stated."""

from __future__ import annotations

import html
import io
import json
import re

import pytest
from command_line import quaid
from hooks.test_hooks import hook
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matrices import examples
from mcp_host import call, talk
from replay import Replay, facts_of, write_talk
from vaults import assert_verified
from web.conftest import let_in

from quaid.capture.facts import clean_statement
from quaid.capture.importer import ImportOptions, import_from
from quaid.cli.notes import render_note
from quaid.errors import FactTooShortError
from quaid.text.invisible import whole

STATED = (
    "3. Mai: Zahnarzt um neun", "4. Mai: Zahnarzt um neun", "- 18 degrees is right for the freezer",
    "+ 18 degrees is right for the freezer", "18 degrees is right for the freezer", "> 30 users may log in",
    "30 users may log in", "__name__ is reserved in templates", "name is reserved in templates",
    "1. FC Union plays on Sunday", "# is the root prompt here", "the value is in x[[0]]", "the value is in [x](0)",
    "the value is in `x`, and `y`", "the mark at the end is ^abc", "the %%time%% of a cell is measured",
    "the <!-- hidden --> part is shown", "the <b>bold</b> part &amp; the rest", "2*3*4 is not 2**3**4",
    "C:\\_old_\\* is where the files are", "~~~ begins a block of code", "[14:30]: standup with Tom",
    "[^1]: the first of the footnotes", "- [[Ana]] knows [[Ben]]", "Ana learns Polish in the evening",
    "Ana learns polish in the evening", "x² is the area in m²", "x2 is the area in m2", "the team 👩‍💻 ships ❤️‍🔥 now",
    "$x$ costs more than $y$", "- [ ] the box is not ticked", "<<<<<<< is where a conflict begins",
    "--- is what a head begins with", "| a | b | is a row",
)  # fmt: skip

APART = [
    text
    for text in STATED
    if not text.startswith(
        ("4. ", "+", "18", "30", "name", "Ana learns polish", "x2", "the value is in [", "the value is in x")
    )
]
"""Those whose words no other one has: an answer shows one of several near copies."""


@pytest.fixture
def home(vault, monkeypatch):
    monkeypatch.setenv("QUAID_HOME", str(vault.root))
    return vault


def remember_all(vault):
    with vault.memory() as memory:
        return [memory.remember(text) for text in STATED]


def remember_apart(vault):
    facts = zip(STATED, remember_all(vault), strict=True)
    return [(text, fact) for text, fact in facts if text in APART]


def stored(vault):
    with vault.memory() as memory:
        facts = memory.export(["fact"])
        found = sorted(row["text"] for row in facts)
        assert_verified(memory)
    return found


class TestDoors:
    @pytest.mark.slow
    def test_command_line(self, home):
        for text in STATED:
            code, out, err = quaid("remember", "--", text)
            assert (code, out.splitlines()[0]) == (0, f"Remembered: {text}"), err
        assert stored(home) == sorted(STATED)

    @pytest.mark.slow
    def test_mcp(self, vault):
        async def body(client):
            for text in STATED:
                assert (await call(client, "memory_store", text=text))["outcome"] == "created"

        talk(vault.root, body)
        assert stored(vault) == sorted(STATED)

    def test_extraction_by_a_model(self, vault, monkeypatch, tmp_path):
        service = Replay({"s1": facts_of(*STATED)})
        try:
            for name, value in service.environ().items():
                monkeypatch.setenv(name, value)
            with vault.memory() as memory:
                found = memory.extract(write_talk(tmp_path / "s1.jsonl", *(f"It is so: {text}" for text in STATED)))
                assert [fact.text for fact in found.facts] == list(STATED)
        finally:
            service.close()
        assert stored(vault) == sorted(STATED)

    def test_import_of_memories(self, vault):
        data = json.dumps([{"id": f"m{n}", "memory": text} for n, text in enumerate(STATED)]).encode()
        with vault.memory() as memory:
            import_from(memory, io.BytesIO(data), ImportOptions())
        assert stored(vault) == sorted(STATED)


class TestReaders:
    @pytest.mark.slow
    def test_command_line(self, home):
        for text, fact in remember_apart(home):
            for command in ("recall", "search"):
                assert f") {text} |ID:" in quaid(command, "-n", "40", "--", text)[1]
                hits = json.loads(quaid(command, "--json", "-n", "40", "--", text)[1])["hits"]
                assert text in [hit["text"] for hit in hits]
            assert json.loads(quaid("get", "--json", fact.id)[1])["text"] == text
            with home.memory() as memory:
                assert f"\n{text}" in render_note(memory.get(fact.id))
        listed = json.loads(quaid("list", "--json", "--limit", "100")[1])
        assert {note["text"] for note in listed["notes"]} >= set(STATED)

    @pytest.mark.slow
    def test_mcp(self, vault):
        facts = remember_apart(vault)

        async def body(client):
            for text, fact in facts:
                for tool in ("memory_recall", "memory_search"):
                    found = await call(client, tool, query=text)
                    assert text in [hit["text"] for hit in found["memories"]]
                assert (await call(client, "memory_get", ref=fact.id))["text"].endswith(text)

        talk(vault.root, body)

    @pytest.mark.slow
    def test_hooks(self, home, monkeypatch, capsys):
        remember_all(home)
        given = ""
        for text in STATED:
            given += hook(
                monkeypatch, capsys, "user-prompt-submit", prompt=f"What do I know of: {text}?", session_id="s"
            )
        shown = "\n".join(json.loads(line)["hookSpecificOutput"]["additionalContext"] for line in given.splitlines())
        assert [text for text in APART if text not in shown] == []

    @pytest.mark.slow
    def test_page(self, vault):
        facts = remember_all(vault)
        with let_in(vault) as client:
            for text, fact in zip(STATED, facts, strict=True):
                page = client.get(f"/memory/{fact.id}").text
                note = re.search(r"<article.*?</article>", page, re.DOTALL)
                assert text in html.unescape(re.sub(r"<[^>]*>", "", note[0] if note else page))


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(min_size=5, max_size=60), min_size=4, max_size=4, unique=True))
def test_any_lines_are_recalled_as_they_were_stated(vault, texts):
    wanted = set()
    with vault.memory() as memory:
        for text in map(whole, texts):
            try:
                wanted.add(clean_statement(text))
            except FactTooShortError:
                continue
            fact = memory.remember(text)
            assert memory.get(fact.id).text == clean_statement(text) or fact.outcome == "confirmed"
