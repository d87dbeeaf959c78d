"""A vault in a language that the embedding model does not know: the answer proposes another, and so does the third memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import quaid

from quaid import Memory
from quaid.agents.prompt_context import build_prompt_context
from quaid.config import load_settings
from quaid.mcp.results import recall_result

pytestmark = pytest.mark.usefixtures("calm")
STEP = "quaid config embedding.model multilingual-e5-small"
GERMAN = (
    "Opa nimmt seine Tabletten morgens um acht nach dem Frühstück.",
    "Unsere Heizung wird jedes Jahr im Oktober gewartet.",
    "Die Kinder gehen in Leipzig zur Schule.",
    "Der Schlüssel für den Keller hängt hinter der Tür.",
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new vault with the usual embedder, whose weights are not there."""
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("QUAID_OFFLINE", "true")
    for name in ("CACHE", "CONFIG"):
        monkeypatch.setenv(f"QUAID_{name}_DIR", str(tmp_path / name))
    Memory.create(tmp_path / "vault")[0].close()
    return tmp_path / "vault"


def remember(root: Path, *facts: str) -> list[str]:
    """Remember `facts`, and return what each call remarks."""
    return [quaid("--vault", str(root), "remember", fact)[2] for fact in facts]


def test_the_answer_says_why_nothing_is_found_and_what_would_find_it(root: Path) -> None:
    remember(root, GERMAN[0])
    _, out, err = quaid("--vault", str(root), "recall", "When does grandfather take his medicine?")
    assert "Opa" not in out
    assert STEP in err
    found = json.loads(quaid("--vault", str(root), "recall", "Wann nimmt Opa Tabletten?", "--json")[1])
    assert "language" in found["degraded"]


@pytest.mark.parametrize("question", ["When does grandfather take his medicine?", "Wo ist der Schlüssel?"])
def test_mcp_proposes_it_too_and_a_hook_does_not(root: Path, question: str) -> None:
    remember(root, *GERMAN)
    with Memory.open(root) as memory:
        found = memory.recall(question)
        assert STEP in "\n".join(str(each) for each in found.trace["degraded"])
        assert STEP in str(recall_result(found))
        told = build_prompt_context(root, memory.settings, memory.recall, question, "s1")
        assert STEP not in told.text


def test_an_english_vault_is_proposed_nothing(root: Path) -> None:
    remarks = remember(root, "The boiler is serviced every October.", "Maya takes oat milk in her coffee.", GERMAN[0])
    assert STEP not in "".join(remarks)
    assert STEP not in quaid("--vault", str(root), "recall", "When is the boiler serviced?")[2]
    assert STEP in quaid("--vault", str(root), "recall", "Wann wird die Heizung gewartet?")[2]


def test_nothing_is_proposed_where_a_model_was_chosen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUAID_EMBEDDING_MODEL", "all-MiniLM-L6-v2")
    assert STEP not in "".join(remember(root, *GERMAN))
    assert STEP not in quaid("--vault", str(root), "recall", "Wo ist der Schlüssel?")[2]


def test_the_third_memory_of_another_language_proposes_it_once(root: Path) -> None:
    remarks = remember(root, "Maya takes oat milk in her coffee.", *GERMAN)
    assert [STEP in remark for remark in remarks] == [False, False, False, True, False]


def test_init_takes_the_model_for_all_languages_by_a_flag(tmp_path: Path, root: Path) -> None:
    assert quaid("init", str(tmp_path / "other"), "--yes", "--no-fetch", "--multilingual")[0] == 0
    assert load_settings(tmp_path / "other").embedding.model == "multilingual-e5-small"
    assert STEP not in "".join(remember(root, *GERMAN))


def test_init_proposes_it_for_adopted_notes_without_a_question(tmp_path: Path, root: Path) -> None:
    (tmp_path / "notes").mkdir()
    for number, text in enumerate(GERMAN):
        (tmp_path / "notes" / f"{number}.md").write_text(text)
    err = quaid("init", str(tmp_path / "notes"), "--no-fetch")[2]
    assert STEP in err, err


@pytest.mark.parametrize("question", ["Memory", "User", "Where is the memory of the user?", "Erinnerung des Benutzers"])
def test_core_notes_that_nothing_was_written_into_are_no_hits(root: Path, question: str) -> None:
    remember(root, "Maya takes oat milk in her coffee.")
    (root / "SOUL.md").write_text("# Seele\n\n## Ton\n\n%%\nKurz und freundlich?\n%%\n")
    with Memory.open(root) as memory:
        assert not [hit for hit in memory.recall(question).hits if hit.kind == "note"]
        (root / "USER.md").write_text("# User\n\nThe user likes short answers.\n")
        assert memory.recall("What answers does the user like?").hits[0].path == "USER.md"
