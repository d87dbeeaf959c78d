"""Items that a model refuses, at the wire: each costs itself, and the night is as it would be without them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from janitor_context import Scripted
from janitor_facts import head_of, judging, write_fact
from vaults import assert_verified

from quaid.janitor.runner import RunOptions
from quaid.local.runs import Runs
from quaid.place import LOCAL_FILE, state_folder
from quaid.report.checks import check_set_aside

CRIME = "Tom read a crime novel in which the butler uses cyanide."
OTHERS = ("Maya takes oat milk in her coffee.", "Ben settled in Oslo.", "Ana plays the cello.", "Lee keeps four bees.")


def approving(question):
    numbers = [json.loads(line)["n"] for line in question.splitlines() if line.startswith('{"n"')]
    return {"approve": numbers, "verdicts": [], "none": numbers, "facts": []}


class Squeamish(Scripted):
    """Refuses whatever contains `word` as `how` says: the text of its answer, and why it ended."""

    def __init__(self, how, word="cyanide"):
        super().__init__(
            review=approving,
            edges=lambda question: {"none": approving(question)["none"], "facts": []},
            compare=judging(lambda a, b: {"verdict": "different"}),
        )
        self.how, self.word = how, word

    def wrap(self, path, body, text, stop=None):
        text, stop = self.how if self.word in json.dumps(body) else (text, stop)
        return super().wrap(path, body, text, stop)


REFUSALS = {"flagged": ("I cannot help.", "content_filter"), "in prose": ("I'm sorry, I can't help with that.", None)}


@pytest.fixture
def night(request, vault, monkeypatch):
    """`night()` runs the janitor with a model that refuses cyanide; `night.service` has its requests."""
    service = Squeamish(REFUSALS[getattr(request, "param", "flagged")])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for name, value in {"provider": "openai", "url": f"{service.url}/v1", "deep": "wise", "fast": "quick"}.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name.upper()}", value)

    def run(**options):
        vault.git("add", "-A")
        vault.git("commit", "-q", "--allow-empty", "-m", "learned", "--author", "Quaid <quaid@localhost>")
        service.requests.clear()
        with vault.memory() as memory:
            report = memory.janitor.run(RunOptions(**options))
            assert_verified(memory)
        return report

    run.service, run.vault = service, vault
    yield run
    service.close()


def fill(vault, texts=(CRIME, *OTHERS), **head):
    """Facts that wait for their review, learned today by their owner."""
    for number, text in enumerate(texts):
        usual = {"status": "pending", "source": "user", "created": datetime.now(UTC).isoformat()}
        write_fact(vault, f"fact{number}", text, **{**usual, **head})


def refused_requests(night):
    return [body for body in night.service.asked if "cyanide" in json.dumps(body)]


def set_aside(vault):
    with vault.memory() as memory:
        return [line for item in check_set_aside(memory) for line in item.paths]


@pytest.mark.parametrize("night", REFUSALS, indirect=True)
def test_a_fact_that_is_refused_costs_that_fact_for_forty_nights(night, vault):
    fill(vault)
    report = night()
    assert report.failed == {}
    assert [head_of(vault, f"facts/fact{n}.md")["status"] for n in range(1, 5)] == ["active"] * 4
    (named,) = [(one.subject, why) for one, why in report.held_back if one.task == "review"]
    assert "cyanide" in named[0]
    assert "refused" in named[1] or "cannot be used" in named[1]
    assert Runs(state_folder(vault.root) / LOCAL_FILE).list(1)[0].outcome == "done"
    assert any("cyanide" in line for line in set_aside(vault))
    report = night()
    assert report.failed == {}
    assert refused_requests(night) == [], "it is not asked about again"
    assert any("cyanide" in one.subject for one, _ in report.held_back)
    night(tasks=("gaps",))
    assert any("cyanide" in line for line in set_aside(vault)), "other tasks leave it there"


@pytest.mark.slow
def test_another_wording_another_model_and_forgetting_end_it(night, vault, monkeypatch):
    fill(vault)
    night()
    path = vault.root / "facts" / "fact0.md"
    kept = path.read_text()
    path.write_text(kept.replace("cyanide", "poison"))
    report = night()
    assert not [one for one, _ in report.held_back if one.kind == "set_aside"]
    assert set_aside(vault) == []
    assert head_of(vault, "facts/fact0.md")["status"] == "active"
    path.write_text(kept)
    monkeypatch.setenv("QUAID_MODELS_DEEP", "bolder")
    night.service.word = "nothing of the kind"
    night()
    assert head_of(vault, "facts/fact0.md")["status"] == "active"


def test_a_fact_that_no_model_reviews_does_not_wait_for_ever(night, vault):
    fill(vault, created=(datetime.now(UTC) - timedelta(days=3)).isoformat())
    report = night()
    assert head_of(vault, "facts/fact0.md")["status"] == "active"
    (decision,) = [one for one in report.done if one.kind == "graduate"]
    assert "no model reviews it" in decision.why


@pytest.mark.matrix
@pytest.mark.parametrize("count", [1, 2, 31])
def test_however_many_there_are(night, vault, count):
    fill(
        vault, [f"{name} bakes bread number {n} on Sundays." for n, name in enumerate(["Ida"] * (count - 1))] + [CRIME]
    )
    report = night()
    assert report.failed == {}
    assert [one.subject for one, _ in report.held_back if one.task == "review"] == [f'judge "{CRIME}"']
    assert len(refused_requests(night)) < 30


@pytest.mark.parametrize("night", REFUSALS, indirect=True)
@pytest.mark.slow
def test_pairs_and_edges_with_it_leave_the_others_judged(night, vault):
    write_fact(vault, "one", "Tom read a crime novel in which the butler uses cyanide.", source="user")
    write_fact(vault, "two", "Tom read a crime novel in which the butler uses cyanide twice.", source="user")
    write_fact(vault, "ben", "Ben settled in Oslo in spring.", source="user")
    write_fact(vault, "oslo", "Ben settled in Oslo in the spring.", source="user")
    report = night()
    assert report.failed == {}
    assert {one.task for one, _ in report.held_back} >= {"edges", "compare"}
    assert any("Ben settled" in json.dumps(body) for body in night.service.asked)
    night()
    assert refused_requests(night) == []


@pytest.mark.slow
def test_a_model_that_answers_nothing_usable_sets_nothing_aside(night, vault):
    night.service.word, night.service.how = "{", ("What a lovely day.", None)
    fill(vault, [f"Ida bakes bread number {n} on Sundays." for n in range(40)])
    report = night()
    assert set(report.failed) >= {"review"}
    assert not [one for one, _ in report.held_back if one.kind == "set_aside"]
    assert len(night.service.asked) < 150
    night.service.word = "cyanide"
    assert night().failed == {}
    assert head_of(vault, "facts/fact7.md")["status"] == "active"


def test_a_limit_stops_what_would_exceed_it_and_nothing_else(night, vault, monkeypatch):
    monkeypatch.setenv("QUAID_MODELS_MAX_TOKENS_PER_DAY", "12000")
    long = " ".join(f"and then to the place number {n}" for n in range(2_000))
    fill(vault, [f"Ida walked home {long}.", *OTHERS])
    report = night()
    assert "max_tokens" in report.failed["review"]
    assert [head_of(vault, f"facts/fact{n}.md")["status"] for n in range(1, 5)] == ["active"] * 4
    assert {one.task for one in report.done} >= {"review"}


def test_a_night_that_costs_a_tenth_of_its_maximum_is_not_stopped_by_it(night, vault, monkeypatch):
    monkeypatch.setenv("QUAID_MODELS_DEEP", "claude-opus-5-5")
    monkeypatch.setenv("QUAID_MODELS_MAX_USD_PER_RUN", "0.15")  # the most that one review may take is 0.35
    fill(vault, OTHERS)
    report = night()
    assert report.failed == {}
    assert report.usage.cost_usd < 0.015
    assert head_of(vault, "facts/fact0.md")["status"] == "active"
