"""LangGraph's store over a vault does what LangGraph's own store in memory does."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from vaults import Vault

pytest.importorskip("langgraph.store.base", reason="the real package of LangGraph is in the dev extra")
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from quaid.integrations.langgraph_store import QuaidStore

sys.path.insert(0, str(Path(__file__).parents[2]))
from examples import langgraph_store as example

SPACES = st.sampled_from([("a",), ("a", "b"), ("a", "c", "d"), ("Maya Chen", "ü 日"), ("a/b",), ("claude",)])
KEYS = st.sampled_from(["k", "K", "../x", "agents", "a b", "x" * 300, "😀", ""])
VALUES = st.fixed_dictionaries(
    {"n": st.integers(0, 3)},
    optional={
        "text": st.text(st.sampled_from("ab \n-`#é")) | st.just("---\na: 1\n---\nx\n\n```json\n{}\n```\n"),
        "list": st.lists(st.floats(allow_nan=False) | st.none() | st.booleans(), max_size=2),
        "content": st.sampled_from([None, "x", {"deep": ["y"]}]),
    },
)
FILTERS = st.sampled_from([None, {"n": 1}, {"n": {"$gt": 0}}, {"n": {"$ne": 2, "$lte": 3}}, {"content": "x"}])
OPS = st.one_of(
    st.tuples(SPACES, KEYS, VALUES | st.none()).map(lambda op: PutOp(*op)),
    st.tuples(SPACES, KEYS, VALUES).map(lambda op: PutOp(*op)),
    st.tuples(SPACES, KEYS).map(lambda op: GetOp(*op)),
    st.tuples(st.sampled_from([(), ("a",), ("a", "b"), ("none",)]), FILTERS, st.integers(0, 3), st.integers(0, 2)).map(
        lambda op: SearchOp(*op)
    ),
    st.tuples(
        st.sampled_from([None, (MatchCondition("prefix", ("a", "*")),), (MatchCondition("suffix", ("b",)),)]),
        st.sampled_from([None, 1, 2]),
        st.just(10),
        st.integers(0, 1),
    ).map(lambda op: ListNamespacesOp(*op)),
)


def plain(result: Any) -> Any:
    if isinstance(result, list):
        listed = [plain(each) for each in result]
        return sorted(listed, key=repr)
    return (result.namespace, result.key, result.value) if hasattr(result, "value") else result


@settings(
    max_examples=5, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.lists(OPS, min_size=1, max_size=4), min_size=2, max_size=5))
def test_any_sequence_of_operations_gives_the_same_results(vault: Vault, batches: list[list[Any]]) -> None:
    store, model = QuaidStore(vault.root), InMemoryStore()
    with vault.memory() as memory:
        if memory.notes.list("store"):
            memory.notes.delete("store")
    for ops in batches:
        for empty in [namespace for namespace, items in model._data.items() if not items]:
            del model._data[empty]  # it would list them, though nothing is in them
        paged = [op for op in ops if not (isinstance(op, SearchOp) and (op.offset or op.limit < 3))]
        assert list(map(plain, store.batch(paged))) == list(map(plain, model.batch(paged)))
        found = store.batch([op for op in ops if isinstance(op, SearchOp)])
        assert list(map(len, found)) == list(map(len, model.batch([op for op in ops if isinstance(op, SearchOp)])))
    store.memory.close()
    assert vault.status() == ""


def test_an_item_is_a_note_that_a_person_reads_and_changes(vault: Vault) -> None:
    store = QuaidStore(vault.root)
    store.put(("maya", "memories"), "coffee", {"text": "Maya takes oat milk", "topic": "food"})
    note = vault.root / "store/maya/memories/coffee.md"
    assert note.read_text().startswith("---\nwritten_by: agent\n---\nMaya takes oat milk\n\n```json\n")
    note.write_text(note.read_text().replace("oat milk", "soy milk"))
    first = store.get(("maya", "memories"), "coffee")
    assert first.value == {"text": "Maya takes soy milk", "topic": "food"}
    store.put(("maya", "memories"), "coffee", {"text": "Maya takes rice milk"})
    second = store.get(("maya", "memories"), "coffee")
    assert (second.created_at, second.value) == (first.created_at, {"text": "Maya takes rice milk"})
    assert second.updated_at > first.updated_at
    note.write_text("broken")
    with pytest.warns(UserWarning, match="not as the store wrote it"):
        assert store.get(("maya", "memories"), "coffee") is None
    store.memory.close()


def test_a_question_orders_what_is_found_and_secrets_stay_out(vault: Vault) -> None:
    store = QuaidStore(vault.root)
    for key, text in {"a": "The bicycle is blue", "b": "Maya takes oat milk", "c": "key AKIAIOSFODNN7EXAMPLE"}.items():
        store.put(("m",), key, {"text": text, "password": "hunter2secret"})
    first, *others = store.search(("m",), query="Which milk does Maya take?")
    assert (first.key, first.score > 0, {item.key for item in others}) == ("b", True, {"a", "c"})
    log = vault.git("log", "-p", "--", "store")
    assert "AKIAIOSFODNN7EXAMPLE" not in log
    assert "hunter2secret" not in log
    with pytest.raises(NotImplementedError):
        store.put(("m",), "x", {}, ttl=5)
    with pytest.raises(NotImplementedError, match="do not expire"):
        store.batch([PutOp(("m",), "x", {}, ttl=5)])
    store.memory.close()


def test_the_example_runs_and_can_be_awaited(vault: Vault, capsys: pytest.CaptureFixture[str]) -> None:
    example.main(str(vault.root))
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith("coffee {")
    assert said.splitlines()[-1] == "[('maya', 'memories')]"

    async def work() -> None:
        store = QuaidStore(vault.root)
        await asyncio.gather(*(store.aput(("n",), str(number), {"n": number}) for number in range(3)))
        assert len(await store.asearch(("n",), filter={"n": {"$gte": 1}})) == 2
        await store.adelete(("n",), "1")
        assert await store.aget(("n",), "1") is None
        store.memory.close()

    asyncio.run(work())
