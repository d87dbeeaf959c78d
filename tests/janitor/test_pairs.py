"""Which facts are compared, what tells them apart for certain, and conversation 26 judged by a real model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from janitor_context import Known, Scripted, carry_out, context_of
from janitor_facts import COMPATIBLE, CONFLICT, DIFFERENT, head_of, keep, saying, write_fact
from replay import needs
from vaults import need_weights

from quaid.janitor.tasks import compare, resolve
from quaid.janitor.tasks.compare import PairFinder


def texts_of(found):
    return {frozenset((pair.a.text, pair.b.text)) for pair in found}


def seen_by(memory, **options):
    memory.sync()
    context = context_of(memory, **options)
    look = PairFinder(context)
    return look.pairs(look.facts)


def test_words_propose_where_there_are_no_vectors(vault):
    write_fact(vault, "one", "Maya takes oat milk in her coffee.")
    write_fact(vault, "two", "Maya likes her coffee with oat milk.")
    write_fact(vault, "three", "Tom repairs bicycles in Leeds.")
    with vault.memory() as memory:
        (pair,) = seen_by(memory)
    assert (pair.a.id, pair.b.id) == ("01one", "01two")
    assert 0 < pair.likeness <= 1


def test_vectors_propose_what_has_no_word_in_common(vault, monkeypatch):
    need_weights(monkeypatch)
    write_fact(vault, "one", "Maya finds making pottery calming.")
    write_fact(vault, "two", "Maya is relaxed by ceramics.")
    write_fact(vault, "three", "Tom repairs bicycles in Leeds.")
    with vault.memory() as memory:
        (pair,) = seen_by(memory)
    assert {pair.a.id, pair.b.id} == {"01one", "01two"}


def test_what_one_denies_is_compared_though_it_is_less_alike(vault, monkeypatch):
    need_weights(monkeypatch)
    monkeypatch.setenv("QUAID_EMBEDDING_PRECISION", "fp32")  # the second pair is just near enough
    write_fact(vault, "one", "Maya cannot swim.")
    write_fact(vault, "two", "Maya swam across the lake in July.")
    write_fact(vault, "three", "Tom has no pets.")
    write_fact(vault, "four", "Tom's dog Otto likes the sea.")
    write_fact(vault, "five", "Ana repairs bicycles in Leeds.")
    with vault.memory() as memory:
        found = {frozenset((pair.a.id, pair.b.id)) for pair in seen_by(memory)}
    assert found == {frozenset(("01one", "01two")), frozenset(("01three", "01four"))}


def test_two_objects_of_a_relation_that_has_one_are_opposed(vault):
    write_fact(vault, "one", "Maya is a designer with Acme.", "- [[Maya]] works_at [[Acme]]")
    write_fact(vault, "two", "Beta pays a salary since autumn.", "- [[maya]] works_at [[Beta]]")
    write_fact(vault, "three", "Friends of hers swim.", "- [[Maya]] friend_of [[Tom]]")
    write_fact(vault, "four", "Other friends dance.", "- [[Maya]] friend_of [[Ana]]")
    with vault.memory() as memory:
        found = [pair for pair in seen_by(memory) if pair.is_required]
    assert [(pair.a.id, pair.b.id) for pair in found] == [("01one", "01two")]


@pytest.mark.parametrize("apart", [{"owner": "tom"}, {"superseded_by": "[[one]]"}, {"id": "01one"}])
def test_facts_that_never_meet(vault, apart):
    write_fact(vault, "one", "Maya takes oat milk in her coffee.", "- [[Maya]] lives_in [[Oslo]]")
    write_fact(vault, "two", "Maya likes her coffee with oat milk.", "- [[Maya]] lives_in [[Leeds]]", **apart)
    with vault.memory() as memory:
        assert seen_by(memory) == []


def test_only_pairs_with_a_new_fact_are_looked_at(vault):
    for name in ("one", "two", "three"):
        write_fact(vault, name, f"Maya takes oat milk in her {name} coffee.")
    with vault.memory() as memory:
        memory.sync()
        context = context_of(memory, judged=Known())
        look = PairFinder(context)
        assert len(look.not_compared("compare")) == 3
        compare.mark_compared(context, "compare", [fact for fact in look.facts if fact.id != "01two"])
        (new,) = look.not_compared("compare")
        assert new.id == "01two"
        assert all("01two" in (pair.a.id, pair.b.id) for pair in look.pairs([new]))
        assert compare.days_compared(context, "compare", look.facts) == {"01one": "2026-11-20", "01three": "2026-11-20"}
        assert len(look.not_compared("resolve")) == 3


def test_a_fact_is_new_again_when_it_says_or_holds_otherwise(vault):
    path = vault.root / write_fact(vault, "one", "Maya takes oat milk in her coffee.")
    known = Known()
    with vault.memory() as memory:

        def is_new():
            memory.sync()
            return bool(PairFinder(context_of(memory, judged=known)).not_compared("compare"))

        context = context_of(memory, judged=known)
        compare.mark_compared(context, "compare", PairFinder(context).facts)
        assert not is_new()
        path.write_text(path.read_text().replace("status: active", "status: approved\nconfirmations: 3"))
        assert not is_new()
        path.write_text(path.read_text().replace("---\nMaya", "valid_until: 2026-12-01\n---\nMaya"))
        assert is_new()


# Conversation 26, as a real model has judged it


def gold(name):
    return json.loads((needs("extraction/conv-26") / "janitor" / f"{name}.json").read_text("utf-8"))


def write_judged(vault, cases):
    """The facts of `cases`, learned on the days of their sessions; what each says -> its path."""
    folder = needs("extraction/conv-26")
    wanted = {(side["file"], side["index"]) for case in cases for side in (case["a"], case["b"])}
    written = {}
    for file, index in sorted(wanted, key=lambda item: (int(item[0].split("_")[1].removesuffix(".json")), item[1])):
        fact = json.loads((folder / file).read_text("utf-8"))["facts"][index]
        session = int(file.split("_")[1].removesuffix(".json"))
        written[fact["text"]] = write_fact(
            vault, f"s{session}-{index}", fact["text"], type=fact["category"], confidence=fact["confidence"],
            valid_from=fact["valid_from"], valid_until=fact["valid_until"], durability=fact["durability"],
            created=f"2023-{4 + session // 3:02}-{1 + session % 3 * 9:02}T10:00:00Z",
        )  # fmt: skip
    return written


MERGED = {
    "Melanie has a dog and a cat.": "Melanie has a dog, a cat and another cat named Bailey.",
    "Caroline's friends and family have helped her through her transition with love, guidance and acceptance.": (
        "Caroline's friends and family have helped her through her transition with love, guidance and acceptance, but a "
        "few close friends could not handle it."
    ),
    "Melanie and her children painted a sunset with a palm tree on the weekend of 8-9 July 2023.": (
        "Melanie and her children painted a sunset with a palm tree on the weekend of 8-9 July 2023, and she went camping "
        "with her family two weekends before 17 July 2023 (8-9 July)."
    ),
}
"""What the model's judgements to merge leave open."""


def test_duplicates_of_a_real_model_are_merged_as_it_says(vault, monkeypatch):
    need_weights(monkeypatch)
    cases = gold("dedup")
    write_judged(vault, cases)
    table = {
        (case["a"]["text"], case["b"]["text"]): keep(case["keep"], case["reason"], case["merged_text"])
        for case in cases
        if case["verdict"] == "duplicate"
    }
    service, known = Scripted(compare=saying(table, DIFFERENT)), Known()
    try:
        with vault.memory() as memory:
            memory.sync()
            context = context_of(memory, models=service.models("anthropic"), judged=known)
            decided = list(compare.plan_compare(context))
            assert len(decided) == len(table) == 14
            assert len(service.asked) == 2  # some merges left out words and are worded once more
            carry_out(memory, decided)
            assert list(compare.plan_compare(replace(context, index=memory.index()))) == []
    finally:
        service.close()


def test_conflicts_of_a_real_model_are_resolved_as_it_says(vault):
    cases = gold("contradictions")
    paths = write_judged(vault, cases)
    found = {
        (case["a"]["text"], case["b"]["text"]): {
            "verdict": case["verdict"], "resolution": case["resolution"], "reason": case["reason"],
            "merged_text": MERGED[case["a"]["text"]] if case["resolution"] == "merge" else None,
        }
        for case in cases
    }  # fmt: skip
    service = Scripted(compare=saying(dict.fromkeys(found, CONFLICT), DIFFERENT), resolve=saying(found, COMPATIBLE))
    # Two of the conflicts are of dates alone, which no likeness proposes: all pairs are put to the model here.
    try:
        with vault.memory() as memory, pytest.MonkeyPatch.context() as patch:
            patch.setattr(compare, "NEAREST", 30)
            patch.setattr(compare, "MIN_SHARED", 0.0)
            memory.sync()
            context = context_of(memory, models=service.models("anthropic"), judged=Known())
            assert list(compare.plan_compare(context)) == []
            decided = list(resolve.plan_resolve(context))
    finally:
        service.close()
    told = {frozenset(decision.facts): decision for decision in decided}
    ids = {text: head_of(vault, path)["id"] for text, path in paths.items()}
    kinds = {"keep_a": "correct", "keep_b": "correct", "merge": "merge", "keep_both": "conflict"}
    for case in cases:
        decision = told.pop(frozenset(ids[case[side]["text"]] for side in "ab"), None)
        if case["verdict"] == "compatible":
            assert decision is None
            continue
        if decision is None:  # one of the two is in another decision of this night
            assert case["resolution"] == "keep_both"
            continue
        assert decision.kind == kinds[case["resolution"]]
        if decision.kind == "correct":
            loser = case["b" if case["resolution"] == "keep_a" else "a"]["text"]
            assert decision.paths == (paths[loser],)
        assert case["reason"][:40] in decision.why
    assert told == {}
