"""Facts about how something is built: questions find them, and facts about people come first where people are meant."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from vaults import Vault

from quaid.recall.intent import Intent, classify, is_technical

pytestmark = pytest.mark.usefixtures("calm")

DATA = Path(__file__).parents[1] / "benchmarks" / "injections.tsv"
FACT = "---\nid: 01{key}\ntype: fact\nstatus: active\ncreated: 2026-11-0{day}T10:00:00Z\n{more}---\n{text}\n"


def read(kind: str) -> list[tuple[str, str, str]]:
    with DATA.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row[0] == kind]
    return [(group, key, text) for _, group, key, text in rows]


@pytest.fixture
def projects(vault: Vault) -> Vault:
    for group, key, text in read("fact"):
        is_of_project = group in {"larder", "tollgate"}
        more = f"project: {group}\n" if is_of_project else ""
        more += "technical: true\n" if is_of_project and is_technical(text) else ""
        vault.write(f"facts/{key}.md", FACT.format(key=key, day=1 + len(key) % 9, more=more, text=text))
    return vault


def test_direct_questions_find_them_by_words_alone(projects: Vault) -> None:
    asked = [(key, question) for group, key, question in read("prompt") if group == "technical"]
    with projects.memory() as memory:
        found = {key: {hit.id for hit in memory.recall(question, keep=False).hits} for key, question in asked}
    missed = [question for key, question in asked if f"01{key}" not in found[key]]
    assert len(asked) == 26
    assert missed == ["what database does larder use on the device?", "where are the rate limit counters kept?"]


def test_a_search_never_filters_by_the_flag(projects: Vault) -> None:
    with projects.memory() as memory:
        assert [hit.id for hit in memory.search("Riverpod").hits] == ["01l-state"]


def test_a_question_about_somebody_is_answered_by_what_is_about_them(vault: Vault) -> None:
    flagged = "technical: true\nproject: site\n"
    vault.write("facts/a.md", FACT.format(key="a", day=1, more=flagged, text="The picture of Maya is on the server."))
    vault.write("facts/b.md", FACT.format(key="b", day=1, more="", text="The picture of Maya is on the fridge."))
    question = "Where is the picture of Maya?"
    assert classify(question) is not Intent.PROJECT
    with vault.memory() as memory:
        hits = memory.recall(question, keep=False).hits
    assert [hit.id for hit in hits] == ["01b", "01a"]
    assert hits[1].score == pytest.approx(0.9 * hits[0].score, abs=0.01)
