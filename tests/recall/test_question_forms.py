"""Questions that name who speaks, want a list or want a summary: what they are looked for by, and what counts then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedding_service import EmbeddingService, serve
from vaults import Vault

from quaid.model import Hit
from quaid.recall.options import Profile

VECTORS_ALONE = Profile({"own": 1.0, "speaker": 0.5}, 1.0, cut_share=0.0)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingService]:
    """The cosine of two texts is how many words they share."""
    yield from serve(tmp_path / "cache", monkeypatch, "words")


def tell(vault: Vault, name: str, *said: str, head: str = "") -> None:
    turns = "\n\n".join(f"{line} ^t{number}" for number, line in enumerate(said, 1))
    vault.write(f"episodes/{name}.md", f"---\nid: {name}\ntype: episode\nsession: {name}\n{head}---\n{turns}\n")


def ask(vault: Vault, question: str, **options: object) -> tuple[Hit, ...]:
    with vault.memory() as memory:
        memory.sync()
        return tuple(memory.recall(question, kinds={"turn"}, depth="fast", keep=False, **options).hits)


def first_turn(vault: Vault, question: str, **options: object) -> int | None:
    return ask(vault, question, **options)[0].turn


@pytest.mark.parametrize("question", ["What broke, Maya?", "Did Maya's thing, what broke?", "maya: what broke"])
def test_a_speaker_is_found_by_what_they_say_not_by_who_calls_them(vault, service, question):
    tell(vault, "s", "**Maya Chen**: boiler broke in spring", "**Jon**: Maya, what, Maya? Maya!")
    assert first_turn(vault, question, profile=VECTORS_ALONE) == 1


def test_a_name_stays_in_a_question_where_nobody_of_that_name_speaks(vault, service):
    tell(vault, "s", "**Jon**: boiler broke in spring", "**Jon**: Maya, what, Maya? Maya!")
    assert first_turn(vault, "What broke, Maya?", profile=VECTORS_ALONE) == 2


def test_a_name_stays_in_a_question_that_is_not_english(vault, service):
    tell(vault, "s", "**Maya**: die Heizung ging im langen kalten Mai in der Nacht", "**Jon**: Maya, Maya, Maya!")
    assert first_turn(vault, "Was ging kaputt, Maya, und wann war das?", profile=VECTORS_ALONE) == 2


def test_who_speaks_only_where_the_asker_may_not_look_changes_nothing(vault, service):
    tell(vault, "s", "**Jon**: boiler broke in spring", "**Jon**: Maya, what, Maya? Maya!", head="owner: jon\n")
    tell(vault, "t", "**Maya**: no word", head="owner: zoe\nprivacy: private\n")
    assert first_turn(vault, "What broke, Maya?", owners={"jon"}, profile=VECTORS_ALONE) == 2


def test_a_summary_is_made_of_what_both_said(vault):
    tell(vault, "s", "**User**: The boiler project begins", "**Assistant**: The boiler project has three parts")
    asked = {hit.turn: hit.evidence for hit in ask(vault, "What did I do on the boiler project?")}
    summed = {hit.turn: hit.evidence for hit in ask(vault, "Summarise my boiler project")}
    assert "speaker" in asked[1]
    assert all("speaker" not in evidence for evidence in summed.values())


def test_a_summary_of_what_somebody_did_is_still_of_theirs(vault):
    tell(vault, "s", "**Maya**: The boiler project begins", "**Jon**: The boiler project, really?")
    assert "speaker" in {hit.turn: hit.evidence for hit in ask(vault, "Summarise Maya's boiler project")}[1]


def test_a_list_takes_sessions_apart_twice_as_far(vault):
    tell(vault, "s", "**Maya**: A boiler leaks in the attic", "**Jon**: A boiler leaks in the cellar")
    _, second = ask(vault, "boiler leaks")
    _, second_of_list = ask(vault, "which boiler leaks")
    assert second.score - second_of_list.score == pytest.approx(0.02)
