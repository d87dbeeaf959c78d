"""Tiers, budgets, kept answers, deadlines, and which provider is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from matrices import for_each
from model_service import RED, colour
from vaults import PATIENCE_S, wait_for

from quaid.errors import BudgetExceededError, ModelTimeoutError, ModelUnavailableError, PromptError
from quaid.llm import Models
from quaid.llm.models import TIMEOUT_S
from quaid.llm.prices import estimate_tokens, price_of, with_cost
from quaid.local.model_usage import ModelRecords
from quaid.model import ModelUsage, PlannedCall, SpendingCap
from quaid.place import state_folder
from quaid.settings import ModelSettings

TODAY = "2026-11-20"


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(today=date.fromisoformat(TODAY))
    monkeypatch.setattr("quaid.llm.models.utc_today", lambda: clock.today)
    return clock


def ask(models, text="a red door", tier="fast", **options):
    return models.ask(colour(tier), {"text": text}, **options)


# What calls take


def test_what_a_call_takes_is_counted_here_and_for_the_day(service, records, clock):
    models = service.models("anthropic", fast="claude-haiku-5-5", usage=records)
    usage = ask(models).usage
    # 100 fresh, 10 into the cache, 40 out of it, 20 written
    assert usage.cost_usd == pytest.approx((100 * 0.1 + 10 * 0.125 + 40 * 0.01 + 20 * 0.5) / 1e6)
    assert models.spent == records.spent(TODAY) == usage
    assert records.spent("2026-11-19") == ModelUsage()


def test_a_run_has_a_count_of_its_own_and_many_threads_may_ask(service, records, clock):
    models = service.models("openai", usage=records, answers=records)
    ask(models)
    run = models.start_run()
    assert run.spent == ModelUsage()
    threads = [threading.Thread(target=lambda i=i: ask(run, f"door {i}")) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (run.spent.calls, models.spent.calls, records.spent(TODAY).calls) == (8, 1, 9)


@pytest.mark.parametrize(("settings", "named"), [
    ({"max_tokens_per_day": 500}, "models.max_tokens_per_day"),
    ({"max_usd_per_run": 0.00001}, "models.max_usd_per_run"),
    ({"max_usd_per_day": 0.00001}, "models.max_usd_per_day"),
])  # fmt: skip
def test_a_cap_holds_before_the_call(service, records, settings, named):
    run = service.models("anthropic", fast="claude-haiku-5-5", usage=records, **settings).start_run()
    with pytest.raises(BudgetExceededError, match=named) as caught:
        ask(run)
    assert f"quaid config {named}" in str(caught.value)
    assert service.requests == []
    assert run.spent == ModelUsage()
    if named.endswith("_run"):
        assert ask(service.models("anthropic", fast="claude-haiku-5-5", **settings)).value == RED, "it is of runs alone"


def test_a_cap_of_a_day_is_new_on_the_next(service, records, clock):
    models = service.models("openai", usage=records, max_tokens_per_day=3_500)
    for _ in range(3):
        ask(models)
    with pytest.raises(BudgetExceededError):
        for _ in range(99):
            ask(models)
    assert records.spent(TODAY).tokens <= 3_500
    clock.today += timedelta(days=1)
    assert ask(models).value == RED


def test_a_cap_below_the_maximum_lets_through_what_is_usual(service, records):
    models = service.models("ollama", usage=records, max_tokens_per_day=1_500)
    assert [ask(models, f"door {n}").value for n in range(3)] == [RED] * 3
    told = [body["options"]["num_predict"] for body in service.asked]
    assert max(told) < 1_000, "the model has no more room than the cap leaves"
    assert records.spent(datetime.now(UTC).date().isoformat()).tokens == 3 * 170


def test_an_answer_that_the_cap_has_cut_off_is_the_caps_fault(service):
    service.script = [service.stopped('{"colour": "re', "length")]
    with pytest.raises(BudgetExceededError):
        ask(service.models("ollama", max_tokens_per_day=1_500))
    assert len(service.asked) == 1


def test_no_cap_is_no_cap(service):
    caps = ("max_tokens_per_day", "max_usd_per_run", "max_usd_per_day")
    assert ask(service.models("anthropic", **dict.fromkeys(caps, 0)).start_run()).value == RED


def test_a_repair_is_a_call_too(service):
    service.script = ["no json"]
    models = service.models("openai", max_tokens_per_day=800)
    with pytest.raises(BudgetExceededError):
        ask(models)
    assert len(service.asked) == 1
    assert models.spent.calls == 1


def test_what_was_not_taken_is_not_charged_and_what_may_have_been_is(service, records, clock):
    service.script = [(401, {"error": "no"}, {})]
    models = service.models("openai", usage=records)
    with pytest.raises(ModelUnavailableError):
        ask(models)
    assert records.spent(TODAY).tokens == 0
    service.delay_s = 0.6
    with pytest.raises(ModelTimeoutError):
        ask(models, deadline_s=0.2)
    assert records.spent(TODAY).tokens > 2_000


def test_two_processes_do_not_both_spend_the_last(records):
    call = PlannedCall("fast", "openai", "quick", "p@1", ModelUsage(60, 40, cost_usd=0.1, calls=1))

    cap = SpendingCap("day", 500, 0)
    refusals = []

    def spend():
        for _ in range(5):
            try:
                ModelRecords(records.path).reserve(call, TODAY, cap)
            except BudgetExceededError as error:
                refusals.append(error)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert records.spent(TODAY).tokens == 500
    assert len(refusals) == 15


def test_what_was_taken_is_told_by_day_and_by_prompt(records):
    assert (records.by_day(), records.by_prompt()) == ([], [])
    assert (records.spent(TODAY), records.get("key", TODAY)) == (ModelUsage(), None)
    assert not records.path.exists()
    for day, prompt, usage in (
        (TODAY, "p@1", ModelUsage(10, 5, 2, 1, 0.5, 1)),
        (TODAY, "p@2", ModelUsage(100, 5, calls=1, cost_usd=None)),
        ("2026-11-19", "p@1", ModelUsage(10, 5, cost_usd=0.25, calls=1)),
    ):
        call = PlannedCall("fast", "openai", "quick", prompt, ModelUsage(1000, 1000, calls=1))
        records.settle(records.reserve(call, day), usage)
    records.reserve(PlannedCall("deep", "openai", "wise", "q@1", ModelUsage(1, 2, cost_usd=1.0, calls=1)), TODAY)
    assert [(day, usage.tokens, usage.cost_usd, unsettled) for day, usage, unsettled in records.by_day()] == [
        ("2026-11-19", 15, 0.25, 0), (TODAY, 123, 1.5, 1),
    ]  # fmt: skip
    assert [(one.prompt, one.model, one.usage.tokens, one.usage.cost_usd) for one in records.by_prompt()] == [
        ("p@2", "quick", 105, None), ("p@1", "quick", 30, 0.75), ("q@1", "wise", 3, 1.0),
    ]  # fmt: skip


def test_old_calls_are_forgotten(records):
    call = PlannedCall("fast", "openai", "quick", "p@1", ModelUsage(1, 1, calls=1))
    records.reserve(call, "2026-01-01")
    records.reserve(call, TODAY)
    assert records.spent("2026-01-01").calls == 0


def test_where_nothing_can_be_counted_nothing_is_asked(service, tmp_path):
    state_folder(tmp_path).write_text("a file in the folder's place")
    models = service.models("openai", usage=ModelRecords(state_folder(tmp_path) / "local.db"))
    with pytest.raises(ModelUnavailableError, match="could not be counted"):
        ask(models)
    assert service.requests == []


def test_a_damaged_file_is_set_aside(service, records):
    records.path.parent.mkdir()
    records.path.write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    models = service.models("openai", usage=records, answers=records)
    assert ask(models).value == RED
    assert records.path.with_name("local.db.damaged").exists()


@for_each(("model", "expected"), [
    ("claude-haiku-5-5", 0.1), ("claude-haiku-4-5-20251001", 1.0), ("anthropic/claude-opus-5-5", 4.0), ("opus", 4.0),
    ("gpt-5.4-mini", 0.75), ("gpt-5.4", 2.5), ("gpt-5.4-2026-03-01", 2.5), ("gpt-5.4-huge", None), ("mine", None), ("", None),
])  # fmt: skip
def test_a_known_model_has_a_price(model, expected):
    price = price_of(model, "fast", ModelSettings())
    assert (price and price.input) == expected


def test_the_owners_price_goes_first_and_unknown_costs_add_up():
    settings = ModelSettings(deep_price="4 / 20.5", fast_price="cheap")
    price = price_of("gpt-5.4", "deep", settings)
    assert with_cost(ModelUsage(1_000_000, 100_000), price).cost_usd == pytest.approx(4 + 2.05)
    with pytest.raises(ModelUnavailableError, match=r"models\.fast_price is 'cheap'"):
        price_of("gpt-5.4", "fast", settings)
    assert with_cost(ModelUsage(1, 1), None).cost_usd is None
    price = price_of("claude-haiku-5-5", "fast", ModelSettings())  # a long question costs more
    assert with_cost(ModelUsage(100_000, 0), price).cost_usd == pytest.approx(0.01)
    assert with_cost(ModelUsage(200_000, 0), price).cost_usd == pytest.approx(0.1)
    known, unknown = ModelUsage(1, 2, 3, 4, 0.5, 1), ModelUsage(1, 1, 1, 1, None, 1)
    assert known + unknown == ModelUsage(2, 3, 4, 5, 0.5, 2)
    assert (unknown + unknown).cost_usd is None


def test_an_estimate_is_rather_too_high():
    assert estimate_tokens("") == 1
    assert estimate_tokens("The quick brown fox jumps over the lazy dog.") >= 10
    assert estimate_tokens("今日は天気がいいから散歩しましょう") >= 16


# Kept answers


def test_the_same_question_is_asked_once(service, records, clock):
    models = service.models("openai", usage=records, answers=records)
    first = ask(models)
    again = ask(service.models("openai", usage=records, answers=records))
    assert (again.value, again.model, again.provider) == (first.value, first.model, first.provider)
    assert again.usage == ModelUsage()
    assert len(service.requests) == 1
    assert records.spent(TODAY).calls == 1


def test_another_question_prompt_model_or_month_is_asked(service, records, clock):
    models = service.models("openai", answers=records)
    ask(models)
    ask(models, "a blue door")
    ask(models, tier="deep")
    ask(service.models("openai", answers=records, fast="other"))
    assert len(service.requests) == 4
    clock.today += timedelta(days=31)
    ask(models)
    assert len(service.requests) == 5
    rows = apsw.Connection(str(records.path)).execute("SELECT count(*), min(day) FROM model_answers").fetchone()
    assert rows == (1, "2026-12-21")


def test_no_answer_is_kept_where_the_owner_wants_none(service, records):
    models = service.models("openai", answers=records, cache_days=0)
    ask(models)
    ask(models)
    assert len(service.requests) == 2


def test_the_question_itself_is_not_kept(service, records):
    ask(service.models("openai", usage=records, answers=records), "a very secret door")
    assert b"secret door" not in records.path.read_bytes()


@pytest.mark.parametrize("kept", ["", "null", "[]", "{", '{"value": {}, "provider": "x", "model": "y"}'])
def test_a_kept_answer_that_is_none_is_asked_for_again(service, kept):
    class Odd:
        def get(self, key, oldest_day):
            return kept

        def put(self, key, answer, day, oldest_day):
            assert json.loads(answer)["value"] == RED

    assert ask(service.models("openai", answers=Odd())).usage.calls == 1


# Deadlines


def test_a_deadline_holds_whatever_happens_below(service, monkeypatch):
    monkeypatch.setattr("quaid.llm.discovery.Discovery.choose", lambda self: time.sleep(300))
    began = time.monotonic()
    with pytest.raises(ModelTimeoutError, match=r"0\.3 s"):
        ask(service.models("openai"), deadline_s=0.3)
    assert time.monotonic() - began < PATIENCE_S


def test_an_answer_that_only_its_bookkeeping_makes_late_is_kept(service, records, monkeypatch):
    slow = ModelRecords.settle
    monkeypatch.setattr(ModelRecords, "settle", lambda *args: (time.sleep(0.5), slow(*args)))
    models = service.models("openai", usage=records, answers=records)
    with pytest.raises(ModelTimeoutError):
        ask(models, deadline_s=0.3)
    monkeypatch.undo()
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)
    wait_for(lambda: ask(models).usage == ModelUsage(), "the late answer")


def test_the_tiers_timeout_is_the_deadline(service, monkeypatch):
    monkeypatch.setitem(TIMEOUT_S, "fast", 0.2)
    service.delay_s = 1.0
    with pytest.raises(ModelTimeoutError):
        ask(service.models("openai"))


def test_a_wrong_slot_is_said_before_anything_is_asked(service):
    with pytest.raises(PromptError):
        service.models("openai").ask(colour(), {"word": "x"})
    assert service.requests == []


# Which provider


def found(environ, **settings):
    return Models(ModelSettings(**{"provider": "auto", **settings}), environ=environ).describe()


@pytest.fixture
def claude(tmp_path):
    script = tmp_path / "claude"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return tmp_path


def test_a_key_goes_before_ollama_and_ollama_before_claude(service, claude):
    environ = {
        "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "OLLAMA_HOST": service.url, "PATH": str(claude),
    }  # fmt: skip
    expected = [
        ("anthropic", "claude-opus-5-5", "claude-haiku-5-5", "ANTHROPIC_API_KEY is set"),
        ("openai", "gpt-5.4", "gpt-5.4-mini", "OPENAI_API_KEY is set"),
        ("ollama", "qwen2.5:7b", "qwen2.5:7b", f"Ollama answers at {service.url}"),
        ("claude-code", "opus", "haiku", f"{claude}/claude was found"),
    ]
    for row, gone in zip(expected, ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST", "PATH"), strict=True):
        was = found(environ)
        assert (was.provider, was.deep, was.fast, was.why) == row
        environ[gone] = "127.0.0.1:9" if gone == "OLLAMA_HOST" else ""
    nothing = found(environ)
    assert nothing.provider is None
    for word in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "Ollama does not answer at http://127.0.0.1:9", "claude"):
        assert word in nothing.why
    assert "quaid config models.provider none" in nothing.next_step


def test_an_openai_address_in_the_environment_counts(service):
    was = found({"OPENAI_BASE_URL": f"{service.url}/v1", "OPENAI_API_KEY": "k"})
    assert (was.provider, was.why) == ("openai", "OPENAI_BASE_URL is set")
    keyless = Models(
        ModelSettings(provider="auto"), environ={"OPENAI_BASE_URL": f"{service.url}/v1", "OLLAMA_HOST": "127.0.0.1:9"}
    )
    assert ask(keyless).value == RED
    assert "authorization" not in service.requests[0][2]


def test_an_ollama_without_the_model_is_passed_over_and_named(service):
    environ = {"OLLAMA_HOST": service.url, "PATH": ""}
    service.names = ["other:latest"]
    assert "Ollama has no model qwen2.5:7b" in found(environ).why
    assert found(environ, deep="other", fast="other").provider == "ollama"
    assert "ollama pull mine" in found(environ, provider="ollama", deep="mine", fast="mine").next_step
    assert found(environ, provider="ollama", deep="other", fast="other").why == "models.provider is ollama"


def test_an_ollama_that_does_not_answer_costs_a_fifth_of_a_second():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert found({"OLLAMA_HOST": f"127.0.0.1:{silent.getsockname()[1]}", "PATH": ""}).provider is None
        assert time.monotonic() - began < PATIENCE_S


def test_what_was_found_is_not_looked_for_again(service):
    models = Models(ModelSettings(provider="auto"), environ={"OLLAMA_HOST": service.url, "PATH": ""})
    for _ in range(3):
        assert models.describe().provider == "ollama"
    assert [path for path, _, _ in service.requests] == ["/api/version", "/api/tags"]


def test_a_configured_provider_is_taken_at_its_word(service):
    environ = {"ANTHROPIC_API_KEY": "a"}
    assert found(environ, provider="none").provider is None
    assert found(environ, provider="none").why == "models.provider is none: no model is ever asked"
    assert found(environ, provider="openai").why == "OPENAI_API_KEY is not set"
    assert found(environ, provider="openai", api_key_env="MINE").why == "MINE is not set"
    assert found({"MINE": "k"}, provider="openai", api_key_env="MINE").provider == "openai"
    assert found(environ, provider="anthropic", fast="mine").fast == "mine"


@pytest.mark.parametrize(("key", "value"), [("url", "http://x"), ("api_key_env", "MINE")])
def test_auto_does_not_guess_for_whom_an_address_or_a_key_is(key, value):
    was = found({"ANTHROPIC_API_KEY": "a"}, **{key: value})
    assert was.provider is None
    assert f"models.{key} is set" in was.why


def test_offline_means_this_machine_only(service):
    environ = {"ANTHROPIC_API_KEY": "a", "PATH": ""}
    assert "offline is set" in found(environ | {"OLLAMA_HOST": "127.0.0.1:9"}, offline=True).why
    assert found(environ | {"OLLAMA_HOST": service.url}, offline=True).provider == "ollama"


def test_nothing_is_asked_or_looked_for_before_the_user_has_agreed(service):
    was = Models(ModelSettings(), environ={"ANTHROPIC_API_KEY": "a", "OLLAMA_HOST": service.url}).describe()
    assert was.provider is None
    assert "quaid config models.provider auto" in was.next_step
    assert service.requests == []


def test_an_unknown_provider_is_refused_with_the_settings(tmp_path):
    from quaid.config import load_settings
    from quaid.errors import ConfigError

    with pytest.raises(ConfigError, match=r"models\.provider"):
        load_settings(tmp_path, {"QUAID_MODELS_PROVIDER": "gemini"})


def test_making_models_asks_and_loads_nothing(service, tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom quaid.settings import ModelSettings\nfrom quaid.llm import Models\n"
        "from quaid.local.model_usage import ModelRecords\nimport quaid.recall.rerank\n"
        f"records = ModelRecords(Path({str(tmp_path)!r}) / 'local.db')\n"
        "Models(ModelSettings(), usage=records, answers=records)\n"
        "print(*[name for name in ('httpx', 'apsw', 'hashlib', 'subprocess', 'socket') if name in sys.modules])"
    )
    environ = {**os.environ, "OLLAMA_HOST": service.url, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == []
    assert service.requests == []
    assert list(tmp_path.iterdir()) == []
