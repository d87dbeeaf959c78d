"""`quaid stats --recall`, `--gaps`, `--models` and `--health`: what they show on a terminal of 80 columns, and to programs."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing, redirect_stdout
from datetime import UTC, datetime, timedelta

import pytest
from vaults import Vault

from quaid.cli.main import main
from quaid.janitor.janitor import take_snapshot
from quaid.local.model_usage import ModelRecords
from quaid.local.recall_log import question_key
from quaid.local.runs import HealthLog, Run, Runs, Snapshot
from quaid.model import Hit, ModelUsage, PlannedCall, Recall
from quaid.place import state_folder
from quaid.recall.records import RecallRecords

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def asked(vault: Vault, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault of which twenty questions were asked, on four days; the parameter is `recall.log`."""
    monkeypatch.setenv("QUAID_RECALL_LOG", getattr(request, "param", "text"))
    vault.write_fact("oatmilk", "Maya takes oat milk in her coffee.")
    found = (Hit("01oatmilk", "fact", "oat", 1.0, "f.md"), Hit("forgotten", "fact", "gone", 0.9, "g.md"))
    with vault.memory() as memory, closing(RecallRecords(vault.root, memory.settings)) as books:
        for number in range(20):
            books.after_recall(
                Recall(
                    f"question {number}", () if number % 5 == 4 else found, ("vectors",) if number == 3 else (),
                    4.0 * (number + 1), {"took_ms": {"keyword": 1.0 + number, "graph": 0.25}},
                ),
                door="mcp" if number % 2 else "cli", depth="quick", now=NOON - timedelta(days=number % 4),
            )  # fmt: skip
    return vault


def stats(vault: Vault, *options: str) -> str:
    screen = io.StringIO()
    with redirect_stdout(screen):
        assert main(["stats", *options, "--vault", str(vault.root)]) == 0
    return screen.getvalue()


def test_recall_is_drawn_in_eighty_columns(asked):
    page = stats(asked, "--recall")
    assert max(map(len, page.splitlines())) <= 80
    for line in (
        "recalls   20 from 2026-11-17 12:00 to 2026-11-20 12:00",
        "answered  16 (80%), 4 without a hit (see quaid stats --gaps)",
        "degraded  1 (5%): vectors 1",
        "asked by  mcp 10, cli 10",
        "  all            40 ms       76 ms",
        "  graph         0.2 ms      0.2 ms",
        "  up to 5 ms    1  ████",
        "  2026-11-20  5  80%  36 ms  ████████████████████████████████",
        "  16x  Maya takes oat milk in her coffee.",
        "  16x  forgotten (no longer there)",
    ):
        assert line in page.splitlines(), line


def test_what_another_has_made_private_since_is_not_listed(asked):
    assert "oat milk" in stats(asked, "--recall")
    text = (asked.root / "facts/oatmilk.md").read_text().replace("---\n", "---\nprivacy: private\n", 1)
    asked.write("facts/oatmilk.md", text.replace("owner: default", "owner: bob"))
    assert "oatmilk" not in stats(asked, "--recall", "--json")


def test_recall_for_programs(asked):
    shape = json.loads(stats(asked, "--recall", "--json"))
    assert list(shape)[:4] == ["v", "vault", "log", "recalls"]
    assert (shape["v"], shape["log"], shape["recalls"], shape["answered"], shape["unanswered"]) == (
        1,
        "text",
        20,
        16,
        4,
    )
    assert shape["latency"] == {"count": 20, "p50_ms": 40.0, "p95_ms": 76.0}
    assert shape["histogram"][0] == {"up_to_ms": 5.0, "count": 1}
    assert shape["days"][0] == {
        "date": "2026-11-17", "recalls": 5, "answered": 4, "degraded": 1, "p50_ms": 48.0, "p95_ms": 80.0,
    }  # fmt: skip
    assert shape["most_recalled"][0] == {
        "id": "01oatmilk", "title": "Maya takes oat milk in her coffee.", "accesses": 16,
        "last_access": "2026-11-20T12:00:00Z", "strength": 0.8,
    }  # fmt: skip
    assert shape["most_recalled"][1]["title"] is None


IN_LOG = " The recall log stores the words of all questions; to store none: quaid config recall.log hashes"


def test_gaps_are_listed_newest_first_with_the_words_that_the_log_has(asked, monkeypatch):
    lines = stats(asked, "--gaps").splitlines()
    assert lines[0] == "4 questions found nothing"
    asked_last = [f"question {number}" for number in (4, 9, 14, 19)]  # 0, 1, 2 and 3 days ago
    assert [re.split(r"  +", line.strip())[2] for line in lines[1:5]] == asked_last
    more = "This list stores only hashes. Store the words from now on with: quaid config recall.gaps text"
    assert lines[-1] == f"{more}.{IN_LOG}"
    assert json.loads(stats(asked, "--gaps", "--json"))["gaps"][0]["text"] == "question 4"
    monkeypatch.setenv("QUAID_RECALL_GAPS", "off")
    assert stats(asked, "--gaps").endswith(f"New questions are not listed. {more.partition('. ')[2]}.{IN_LOG}\n")


@pytest.mark.parametrize("asked", ["hashes"], indirect=True)
def test_gaps_are_hashes_where_nothing_stores_the_words(asked):
    lines = stats(asked, "--gaps").splitlines()
    keys = [question_key(f"question {number}")[:12] for number in (4, 9, 14, 19)]
    assert [re.split(r"  +", line.strip())[2] for line in lines[1:5]] == keys
    more = "This list stores only hashes. Store the words from now on with: quaid config recall.gaps text."
    assert lines[-1] == more
    shape = json.loads(stats(asked, "--gaps", "--json"))
    assert (shape["v"], shape["kept"], shape["total"]) == (1, "hashes", 4)
    assert shape["gaps"][0] == {
        "key": question_key("question 4"), "asked": 1, "first_asked": "2026-11-20T12:00:00Z",
        "last_asked": "2026-11-20T12:00:00Z", "text": None,
    }  # fmt: skip


def test_gaps_say_what_was_asked_where_the_owner_wants_it(vault, monkeypatch):
    monkeypatch.setenv("QUAID_RECALL_GAPS", "text")
    with vault.memory() as memory, closing(RecallRecords(vault.root, memory.settings)) as books:
        for _ in range(2):
            books.after_recall(Recall("What is Maya's number?", ()), door="cli", depth="quick", now=NOON)
    assert stats(vault, "--gaps") == "1 question found nothing\n  2026-11-20 12:00  2x  What is Maya's number?\n"


@pytest.fixture
def spent(vault: Vault) -> Vault:
    """A vault whose models were asked on two days: of one the price is unknown, one call was never settled."""
    records = ModelRecords(state_folder(vault.root) / "local.db")
    today, yesterday = (datetime.now(UTC).date() - timedelta(days=days) for days in (0, 1))
    for day, prompt, model, usage in (
        (yesterday, "rank@1", "mine", ModelUsage(900, 100, cost_usd=None, calls=1)),
        (today, "rank@1", "quick", ModelUsage(1_500, 500, 200, 100, 0.25, 1)),
        (today, "rank@1", "quick", ModelUsage(500, 0, cost_usd=0.05, calls=1)),
        (today, "extract@2", "wise", ModelUsage(30_000, 4_000, cost_usd=1.5, calls=1)),
    ):
        call = PlannedCall("fast", "openai", model, prompt, ModelUsage(9_999_999, 1, calls=1))
        records.settle(records.reserve(call, day.isoformat()), usage)
    call = PlannedCall("deep", "openai", "wise", "extract@2", ModelUsage(1_000, 2_000, cost_usd=0.1, calls=1))
    records.reserve(call, today.isoformat())
    return vault


def test_what_models_took_is_shown_by_day_and_prompt(spent):
    page = stats(spent, "--models")
    assert max(map(len, page.splitlines())) <= 80
    today, yesterday = (datetime.now(UTC).date() - timedelta(days=days) for days in (0, 1))
    for line in (
        "today    4 calls, 39,500 tokens of 5,000,000, $1.90 of $5.00",
        "unended  1 call, counted at the most that could be taken",
        f"  {yesterday}  1x     900    100  unknown  ▍",
        f"  {today}  4x  33,000  6,500    $1.90  ████████████████",
        "  extract  wise   2x  31,000  6,000    $1.60",
        "  rank     quick  2x   2,000    500  $0.3000",
        "  rank     mine   1x     900    100  unknown",
    ):
        assert line in page.splitlines(), page


def test_what_models_took_for_programs(spent):
    shape = json.loads(stats(spent, "--models", "--json"))
    assert (shape["v"], shape["max_tokens_per_day"], shape["max_usd_per_day"]) == (1, 5_000_000, 5.0)
    assert shape["today"].items() <= shape["days"][1].items()
    assert (shape["today"]["input_tokens"], shape["today"]["calls"]) == (33_000, 4)
    assert [(day["calls"], day["unsettled"], day["cost_usd"]) for day in shape["days"]] == [
        (1, 0, None), (4, 1, pytest.approx(1.9))
    ]  # fmt: skip
    assert shape["prompts"][1] == {
        "prompt": "rank@1", "provider": "openai", "model": "quick", "input_tokens": 2_000, "output_tokens": 500,
        "cached_tokens": 200, "written_tokens": 100, "cost_usd": pytest.approx(0.3), "calls": 2,
    }  # fmt: skip


def test_where_no_model_was_asked_that_is_said(vault):
    assert stats(vault, "--models") == "No model was asked here in 90 days. See which one would be: quaid doctor\n"
    assert json.loads(stats(vault, "--models", "--json"))["days"] == []


@pytest.fixture
def tidied(vault: Vault) -> Vault:
    """A vault that the janitor has tidied on each but four of 58 days, of which one is of the future."""
    path = state_folder(vault.root) / "local.db"
    health, now = HealthLog(path), datetime.now(UTC)
    for age in (-1, *range(57)):
        if age not in {10, 11, 12, 13}:
            moment = (now - timedelta(days=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
            health.add(
                Snapshot(
                    moment, {"fact": 1_000 - age, "entity": 50}, {"pending": age % 3}, 2, 60, 70, 1_100, 1_045,
                    4_000_000, 8_000_000 - 10_000 * age, 9.5 if age else None, 1, 2, 0.05 if age else None,
                )
            )  # fmt: skip
    Runs(path).add(Run("01run", (now - timedelta(hours=3)).isoformat(), "done"))
    return vault


def test_health_is_charted_in_eighty_columns(tidied):
    page = stats(tidied, "--health")
    assert max(map(len, page.splitlines())) <= 80
    rows = {line.split()[0]: line for line in page.splitlines() if line.startswith("  ")}
    today = datetime.now(UTC).date()
    assert page.splitlines()[:2] == [
        f"runs  on 53 days from {today - timedelta(days=56)} to {today}",
        "cost  $2.60 and more, of unknown price",
    ]
    for name, value, change in (
        ("notes", "1,050", "+56"), ("facts", "1,000", "+56"), ("pending", "0", "-2"), ("embedded", "95%", ""),
        ("index", "4.0 MB", ""), ("repository", "8.0 MB", "+560.0 kB"), ("recall", "9.5 ms", ""), ("questions", "2", ""),
        ("cost", "$0.0500", ""),
    ):  # fmt: skip
        shown = re.split(r"  +", rows[name].strip())
        assert shown[1:3] == [value, change] if change else shown[1] == value, rows[name]
    bars = rows["notes"][rows["notes"].index("▁") :]
    assert (len(bars), bars[0], bars[-1]) == (29, "▁", "█")
    assert bars.count(" ") == 2


def test_health_for_programs(tidied):
    shape = json.loads(stats(tidied, "--health", "--json"))
    assert (shape["v"], shape["warning"], len(shape["days"])) == (1, None, 53)
    assert shape["last_success"] < shape["until"] + "T24"
    assert shape["days"][-1]["kinds"] == {"fact": 1_000, "entity": 50}
    assert shape["days"][-1]["recall_p50_ms"] is None


def test_where_the_janitor_has_not_run_that_is_said(vault):
    assert stats(vault, "--health") == "The janitor has not run here in 60 days. Begin with: quaid janitor run\n"
    assert json.loads(stats(vault, "--health", "--json"))["days"] == []
    Runs(state_folder(vault.root) / "local.db").add(Run("01run", "2026-01-01T03:30:00Z", "failed", problem="No key."))
    assert "No key." in stats(vault, "--health")


def test_a_snapshot_says_how_the_memory_is(asked, monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    asked.write_fact("tea", "Maya takes tea.").write_text(
        "---\nid: 01tea\ntype: fact\nstatus: pending\nsuperseded_by: '[[oatmilk]]'\n---\n[[Maya]] takes tea.\n\n- [[Maya]] drinks [[Tea]]\n"
    )
    with asked.memory() as memory:
        seen = take_snapshot(asked.root, memory.index(), NOON + timedelta(hours=1), waiting=3, cost_usd=0.2)
    assert (seen.at, seen.kinds["fact"], seen.pending, seen.superseded) == ("2026-11-20T13:00:00Z", 2, 1, 1)
    assert (seen.entities, seen.edges, seen.gaps, seen.waiting, seen.cost_usd) == (2, 1, 4, 3, 0.2)
    assert (seen.chunks >= 2, seen.embedded, seen.recall_p50_ms) == (True, 0, 36.0)
    assert seen.index_bytes > 10_000
    assert seen.repository_bytes > 1_000


def test_one_page_at_a_time(vault, capsys):
    assert main(["stats", "--gaps", "--models", "--vault", str(vault.root)]) == 2
    assert "Ask for one of them" in capsys.readouterr().err


def test_looking_back_changes_no_file_of_the_vault(asked):
    before = asked.notes()
    for page in ("--recall", "--gaps", "--models", "--health"):
        stats(asked, page)
    assert asked.notes() == before
