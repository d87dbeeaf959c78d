"""Variables of the environment that keep every request from being made: each is named, and nothing is lost with them."""

from __future__ import annotations

import time

import pytest
from replay import write_talk
from vaults import assert_verified

from quaid.errors import EmbeddingError, ModelUnavailableError
from quaid.http import ClientError, UnreachableError, Wire
from quaid.llm import Models
from quaid.settings import ModelSettings

FAR = "https://models.example.invalid"
BROKEN = [
    ("ALL_PROXY", "gopher://user:hunter2@127.0.0.1:9"),
    ("all_proxy", "gopher://user:hunter2@127.0.0.1:9"),
    ("HTTPS_PROXY", "ftp://127.0.0.1:9"),
    ("HTTPS_PROXY", "http://[::1"),
    ("SSL_CERT_FILE", "/nowhere/hunter2.pem"),
    ("SSL_CERT_FILE", __file__),
]
variables = pytest.mark.parametrize(("variable", "value"), BROKEN)
SAID = ("I adopted a quokka, Biscuit.", "How lovely!")


@pytest.fixture(autouse=True)
def _bare(monkeypatch):
    for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr("quaid.http.FIRST_WAIT_S", 0.02)


@variables
def test_the_variable_is_named_and_its_value_is_not_shown(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ClientError) as caught:
        Wire(FAR).get("/", 5.0)
    assert variable in str(caught.value)
    assert "hunter2" not in str(caught.value)


@variables
def test_a_model_behind_it_is_unavailable_in_one_sentence(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    models = Models(ModelSettings(provider="openai", url=FAR), environ={"OPENAI_API_KEY": "sk-secret"})
    with pytest.raises(ModelUnavailableError, match=variable) as caught:
        models.ask(models.prompt("edges"), {"today": "today", "known": "", "facts": ""}, deadline_s=20.0)
    assert "Correct that variable" in str(caught.value)


def test_a_socks_proxy_is_spoken_to_and_named_when_it_is_not_there(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(UnreachableError, match="ALL_PROXY") as caught:
        Wire(FAR).post("/", {}, {}, time.monotonic() + 20.0)
    assert "SOCKS" not in str(caught.value)


@variables
def test_a_service_on_this_machine_needs_no_proxy_and_no_certificates(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(UnreachableError) as caught:
        Wire("http://127.0.0.1:9").get("/", 1.0)
    assert variable not in str(caught.value)


@variables
def test_words_still_answer_and_a_conversation_is_stored(vault, monkeypatch, tmp_path, variable, value):
    vault.write_fact("active", "Maya takes oat milk in her coffee.")
    vault.save()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for room, fields in {
        "models": {"provider": "openai"},
        "embedding": {"provider": "openai", "dimensions": "8"},
    }.items():
        for name, word in {"url": FAR, **fields}.items():
            monkeypatch.setenv(f"QUAID_{room.upper()}_{name.upper()}", word)
    monkeypatch.setenv(variable, value)
    with vault.memory() as memory:
        found = memory.recall("oat milk")
        assert [hit.text for hit in found.hits] == ["Maya takes oat milk in her coffee."]
        assert found.degraded
        done = memory.extract(write_talk(tmp_path / "t.jsonl", *SAID))
        assert variable in str(done.problem)
        assert done.commit
        assert_verified(memory)
    assert vault.status() == ""


@pytest.mark.parametrize(
    "broken", [RuntimeError("a client of its own mind"), ImportError("socksio"), EmbeddingError("x")]
)
@pytest.mark.parametrize("provider", ["auto", "openai"])
def test_a_conversation_is_stored_whatever_opening_a_model_does(vault, monkeypatch, tmp_path, broken, provider):
    def fail(*args, **kwargs):
        raise broken

    monkeypatch.setenv("QUAID_MODELS_PROVIDER", provider)
    monkeypatch.setattr("quaid.llm.discovery.Discovery.choose", fail)
    monkeypatch.setattr("quaid.llm.discovery.Discovery.describe", fail)
    with vault.memory() as memory, pytest.raises(type(broken)):
        memory.extract(write_talk(tmp_path / "t.jsonl", *SAID))
    with vault.memory() as memory:
        assert memory.list_waiting() != ()
        assert_verified(memory)
    assert vault.status() == ""
    assert "quokka" in vault.git("show", "HEAD")
