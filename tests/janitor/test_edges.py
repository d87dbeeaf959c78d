"""Facts that were told without a model get their edges at night, so that what contradicts them is found."""

from __future__ import annotations

import json

import pytest
from janitor_context import Scripted
from janitor_facts import body_of, head_of, judging, write_fact
from vaults import assert_verified

from quaid.janitor.runner import RunOptions

OWNER = 'owner_name = "Maya Chen"\n'
TOLD = {"source": "user"}


def facts_in(question):
    return [json.loads(line) for line in question.splitlines() if line.startswith('{"n"')]


def stating(table):
    """An answer with the edges that `table` has of each text: lists of (subject, relation, object)."""
    asked = []

    def answer(question):
        asked[:] = facts_in(question) or asked
        found = {line["n"]: table.get(line["text"]) for line in asked}
        items = [
            {"n": n, "edges": [dict(zip(("subject", "relation", "object"), edge, strict=True)) for edge in edges]}
            for n, edges in found.items()
            if edges
        ]
        return {"none": [n for n, edges in found.items() if not edges], "facts": items}

    return answer


@pytest.fixture
def telling(vault, monkeypatch):
    """A vault of Maya Chen's with a model; `night()` runs the janitor and gives its report."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    path = vault.root / "quaid.toml"
    path.write_text(OWNER + (path.read_text() if path.exists() else ""))
    service = Scripted()
    for name, value in {"provider": "anthropic", "url": service.url, "deep": "wise", "fast": "quick"}.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name.upper()}", value)

    def night(**options):
        vault.save()
        with vault.memory() as memory:
            report = memory.janitor.run(RunOptions(**options))
            assert_verified(memory)
        return report

    vault.night, vault.service = night, service
    yield vault
    service.close()


def asked_about(vault, prompt="You read facts"):
    return [body for body in vault.service.asked if prompt in json.dumps(body)]


@pytest.mark.slow
def test_what_no_pattern_reads_meets_its_contradiction_after_one_night(telling):
    telling.service.answers |= {
        "edges": stating(
            {
                "I've relocated to Ghent.": [("I", "lives_in", "Ghent")],
                "Lives in Porto.": [("Maya Chen", "lives_in", "Porto")],
            }
        ),
        "compare": judging(lambda a, b: {"verdict": "update", "reason": "Maya has moved to Ghent."}),
        "resolve": judging(lambda a, b: {"verdict": "update", "resolution": "keep_b", "reason": "She moved to Ghent."}),
    }
    write_fact(telling, "porto", "Lives in Porto.", **TOLD)
    write_fact(telling, "ghent", "I've relocated to Ghent.", **TOLD)
    report = telling.night()
    assert body_of(telling, "facts/ghent.md") == "I've relocated to Ghent.\n\n- [[Maya Chen]] lives_in [[Ghent]]"
    assert body_of(telling, "facts/porto.md") == "Lives in Porto.\n\n- [[Maya Chen]] lives_in [[Porto]]"
    assert [decision.kind for decision in report.done if decision.task == "resolve"] == ["correct"]
    assert "janitor(edges): linked 2 facts" in telling.git("log", "--format=%s")
    with telling.memory() as memory:
        hits = memory.recall("Where do I live?").hits
    assert hits[0].text == "I've relocated to Ghent."
    assert "Lives in Porto." not in {hit.text for hit in hits}
    telling.night()
    assert len(asked_about(telling)) == 1, "a fact is read once"


@pytest.mark.slow
def test_an_edge_that_its_owner_writes_later_is_compared_too(telling):
    telling.service.answers |= {
        "compare": judging(lambda a, b: {"verdict": "conflict", "reason": "Two homes."}),
        "resolve": judging(
            lambda a, b: {"verdict": "contradiction", "resolution": "keep_both", "reason": "Two homes."}
        ),
    }
    write_fact(telling, "porto", "Ben hails from Porto.", "- [[Ben]] lives_in [[Porto]]", **TOLD)
    write_fact(telling, "tea", "My oldest cup is in a box in Ghent.", **TOLD)
    assert telling.night().asked == []
    path = telling.root / "facts/tea.md"
    path.write_text(path.read_text() + "\n- [[Ben]] lives_in [[Ghent]]\n")
    assert [decision.kind for decision in telling.night().asked] == ["conflict"]
    count = len(telling.service.asked)
    telling.night()
    assert len(telling.service.asked) == count, "and once"


NAMED = {
    "I've relocated to Ghent.": (("the user", "lives_in", "Ghent"), "[[Maya Chen]] lives_in [[Ghent]]"),
    "Ich wohne jetzt in Köln.": (("Maya Chen", "resides in", "Köln"), "[[Maya Chen]] lives_in [[Köln]]"),
    "Annas Hund heißt Otto.": (("Anna", "has_pet", "Otto"), "[[Anna]] has_pet [[Otto]]"),
    "Ich habe mich in Köln niedergelassen.": (("Ich", "lives_in", "Köln"), "[[Maya Chen]] lives_in [[Köln]]"),
    "我现在住在上海。": (("Maya Chen", "lives_in", "上海"), "[[Maya Chen]] lives_in [[上海]]"),
    "My mum settled in Ghent.": (("my mother", "lives_in", "Ghent"), None),
    "My mum settled in Gent.": (("Maya Chen's mother", "lives_in", "Gent"), "[[Maya Chen's mother]] lives_in [[Gent]]"),
    "Ben hails from Oslo.": (("Oslo", "birthplace_of", "Ben"), "[[Ben]] born_in [[Oslo]]"),
    "Ben came to us on 4 May 1990.": (("Ben", "born_on", "1990-05-04"), "[[Ben]] born_on [[1990-05-04]]"),
    "Ben came to us on 4 May.": (("Ben", "born_on", "2026-05-04"), None),
    "Ben hails from Bergen.": (("Ben", "lives_in", "Norway"), None),
    "Ben hails from Narvik.": (("Benedict", "lives_in", "Narvik"), None),
    "Ben hails from Tromsø.": (("Ben", "!!", "Tromsø"), None),
    "Ben hails from Bodø.": (("Ben", "knows", "Ben"), None),
    "Kim Lee hails from Oslo.": (("Kim", "born_in", "Oslo"), "[[Kim]] born_in [[Oslo]]"),
}


def test_only_what_the_fact_names_is_kept(telling):
    telling.service.answers["edges"] = stating({text: [edge] for text, (edge, _) in NAMED.items()})
    for number, text in enumerate(NAMED):
        write_fact(telling, f"fact{number}", text, **TOLD)
    telling.night(tasks=("edges",))
    for number, (text, (_, kept)) in enumerate(NAMED.items()):
        assert body_of(telling, f"facts/fact{number}.md") == (f"{text}\n\n- {kept}" if kept else text)


def test_a_first_name_means_the_one_who_is_called_so_and_nobody_where_two_are(telling):
    telling.write("entities/Anna Kowalski.md", "---\nid: 01ak\ntype: person\ncreated: 2026-01-01\n---\n")
    write_fact(telling, "one", "Anna settled in Ghent.", **TOLD)
    edges = {
        "Anna settled in Ghent.": [("Anna Kowalski", "lives_in", "Ghent")],
        "Anna took a job at Acme.": [("Anna Kowalski", "works_at", "Acme")],
    }
    telling.service.answers["edges"] = stating(edges)
    telling.night()
    assert body_of(telling, "facts/one.md").endswith("- [[Anna Kowalski]] lives_in [[Ghent]]")
    assert "Anna Kowalski (person)" in json.dumps(asked_about(telling))
    telling.write("entities/Anna Chen.md", "---\nid: 01ac\ntype: person\ncreated: 2026-01-01\n---\n")
    write_fact(telling, "two", "Anna took a job at Acme.", **TOLD)
    telling.night()
    assert body_of(telling, "facts/two.md") == "Anna took a job at Acme."


def test_what_is_not_told_by_itself_is_not_asked_about(telling):
    write_fact(telling, "technical", "The billing service moved to Postgres.", **TOLD)
    write_fact(telling, "linked", "Ben settled in Oslo.", "- [[Ben]] lives_in [[Oslo]]", **TOLD)
    heads = [
        {**TOLD, "pinned": True}, {**TOLD, "technical": True}, {**TOLD, "turns": ["[[08-1356-s1#^t1]]"]}, {"source": "import"}, {},
    ]  # fmt: skip
    for number, head in enumerate(heads):
        write_fact(telling, f"fact{number}", f"Ben settled in town number {number}.", **head)
    telling.night(tasks=("edges",))
    assert not asked_about(telling)


def test_who_says_I_is_the_speaker(telling):
    write_fact(telling, "one", "I settled in Ghent.", speaker="Tom Reed", **TOLD)
    telling.service.answers["edges"] = stating({"I settled in Ghent.": [("Tom Reed", "lives_in", "Ghent")]})
    telling.night()
    assert body_of(telling, "facts/one.md").endswith("- [[Tom Reed]] lives_in [[Ghent]]")


@pytest.mark.slow
def test_what_is_undone_is_not_written_again(telling):
    write_fact(telling, "one", "Ben settled in Oslo.", **TOLD)
    telling.service.answers["edges"] = stating({"Ben settled in Oslo.": [("Ben", "lives_in", "Oslo")]})
    report = telling.night()
    with telling.memory() as memory:
        memory.timeline.undo(report.run)
    assert body_of(telling, "facts/one.md") == "Ben settled in Oslo."
    telling.night()
    assert body_of(telling, "facts/one.md") == "Ben settled in Oslo."
    assert len(asked_about(telling)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        '```json\n{"facts": [{"n": 1, "edges": [{"subject": "Ben", "relation": "lives_in", "object": "Oslo", "sure": 1}]}]}\n```',
        {"none": [2], "facts": [{"n": 1, "edges": [{"subject": "Ben", "relation": "livesIn", "object": "Oslo"}]}]},
        {"none": [1], "facts": [{"n": 1, "edges": [{"subject": "Ben", "relation": "lives_in", "object": "Oslo"}]}]},
        {"none": [], "facts": [{"n": 7, "edges": []}]},
    ],
)
def test_a_sloppy_answer_breaks_nothing(telling, answer):
    write_fact(telling, "one", "Ben settled in Oslo.", **TOLD)
    telling.service.answers["edges"] = answer
    report = telling.night()
    assert body_of(telling, "facts/one.md").split("\n\n- ")[1:] in ([], ["[[Ben]] lives_in [[Oslo]]"])
    assert report.failed == {}
    assert head_of(telling, "facts/one.md")["status"] == "active"
