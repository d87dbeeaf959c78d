"""Several vaults asked as one: the best of all, each hit with its vault, and no vault learns of another."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import Vault, copy_vault, refused

from quaid.errors import BadInputError, UntrustedVaultError, VaultNotFoundError
from quaid.federation import Federation, name_vaults
from quaid.local import recall_trail
from quaid.model import Hit, Recall, Scale
from quaid.place import state_folder
from quaid.recall.cutoff import tokens
from quaid.recall.merging import merge
from quaid.recall.options import RecallOptions
from quaid.settings import RecallSettings
from quaid.trust import distrust

MILK = "Maya takes oat milk in her coffee."
LAUNCH = "The launch of the kiln is on the ninth of May."


@pytest.fixture
def me(calm: None, tmp_path: Path) -> Vault:
    vault = copy_vault(tmp_path / "me")
    vault.write_fact("milk", MILK)
    vault.sync()
    return vault


@pytest.fixture
def team(calm: None, tmp_path: Path) -> Vault:
    vault = copy_vault(tmp_path / "team")
    vault.write_fact("launch", LAUNCH)
    vault.write_fact("coffee", "The coffee of the office is from Kenya.")
    vault.sync()
    return vault


def ask(text: str, *vaults: Vault | Path, owner: str | None = None, keep: bool = True, **options: object) -> Recall:
    roots = [vault.root if isinstance(vault, Vault) else vault for vault in vaults]
    with closing(Federation.open(roots, owner)) as federation:
        return federation.recall(text, keep=keep, **options)


def told(found: Recall) -> list[tuple[str, str]]:
    return [(hit.vault, hit.text) for hit in found.hits]


def test_each_hit_says_its_vault_and_the_answer_comes_from_the_one_that_has_it(me: Vault, team: Vault) -> None:
    assert told(ask("When is the launch of the kiln?", me, team))[0] == ("team", LAUNCH)
    assert told(ask("What milk does Maya take?", me, team))[0] == ("me", MILK)


def test_the_best_of_a_vault_that_has_nothing_of_it_is_not_as_good_as_an_answer(me: Vault, team: Vault) -> None:
    alone = ask("What milk does Maya take in her coffee?", team)
    assert alone.hits[0].score > 0.5  # the best there is, however little it has to do with it
    assert told(ask("What milk does Maya take in her coffee?", me, team)) == [("me", MILK)]


def test_what_two_vaults_say_alike_is_shown_once_and_names_both(me: Vault, team: Vault) -> None:
    team.write_fact("milk", MILK)
    (hit,) = (hit for hit in ask("oat milk", me, team).hits if hit.text == MILK)
    assert {hit.vault, *hit.also_in} == {"me", "team"}
    assert hit.stands_for == 2


def test_the_limit_is_for_all_vaults_together(me: Vault, team: Vault) -> None:
    assert len(ask("coffee", me, team).hits) == 2
    found = ask("coffee", me, team, limit=1)
    assert len(found.hits) == 1
    assert found.more


def test_a_budget_holds_for_all_and_notes_of_one_name_stay_apart(me: Vault, team: Vault) -> None:
    for vault, colour in ((me, "blue"), (team, "green")):
        vault.write("notes/kitchen.md", f"# Kitchen\n\nThe kitchen is {colour}, says {colour} paint.\n")
    found = ask("What colour is the kitchen?", me, team, budget=120)
    assert found.text
    assert tokens(found.text) <= 120
    assert {(hit.vault, hit.path) for hit in found.hits} == {("me", "notes/kitchen.md"), ("team", "notes/kitchen.md")}
    assert "blue" in found.text
    assert "green" in found.text
    assert "vault me" in found.text
    assert "\0" not in found.text


def test_core_notes_of_all_vaults_say_whose_they_are(me: Vault, team: Vault) -> None:
    me.write("USER.md", "# User\n\nMaya is a potter.\n")
    team.write("USER.md", "# User\n\nThe team makes kilns.\n")
    assert dict(ask("coffee", me, team, context=True).context) == {
        "me/USER.md": "# User\n\nMaya is a potter.", "team/USER.md": "# User\n\nThe team makes kilns.",
    }  # fmt: skip


def test_the_newest_of_all_vaults_come_first(me: Vault, team: Vault) -> None:
    for vault, day in ((me, "2026-03-02"), (team, "2026-03-03")):
        vault.write(f"facts/{day}.md", f"---\nid: 01{day[-1]}\ntype: fact\ncreated: {day}T10:00:00Z\n---\nOn {day}.\n")
    newest = [hit.text for hit in ask("", me, team, recent=True, limit=2).hits]
    assert newest == ["On 2026-03-03.", "On 2026-03-02."]


def test_a_vault_that_cannot_be_asked_stops_no_other_and_is_named(me: Vault, calm: None, tmp_path: Path) -> None:
    stranger = copy_vault(tmp_path / "stranger")
    distrust(stranger.root)
    stranger.write_fact("milk", "Maya takes soy milk.")
    found = ask("What milk does Maya take?", tmp_path / "gone", me, stranger.root)
    assert told(found) == [("me", MILK)]
    assert {"vault gone", "vault stranger"} <= set(found.degraded)
    gone, strange = (sentence for sentence in found.trace["degraded"] if not sentence.startswith("vault me: "))
    assert gone.startswith("vault gone: No vault at")
    assert "vault that you have not trusted" in strange


def test_where_none_can_be_asked_the_first_error_is_told(calm: None, tmp_path: Path) -> None:
    stranger = copy_vault(tmp_path / "stranger")
    distrust(stranger.root)
    refused(lambda: ask("milk", stranger.root, tmp_path / "gone"), UntrustedVaultError)
    refused(lambda: ask("milk", tmp_path / "gone", stranger.root), VaultNotFoundError)


def test_only_vaults_that_were_opened_can_be_asked_by_name(me: Vault, team: Vault) -> None:
    with closing(Federation.open([me.root])) as federation:
        refused(lambda: federation.recall("milk", among=["team"]), BadInputError)
        refused(lambda: federation.recall("milk", among=[str(team.root)]), BadInputError)


def test_vaults_are_called_as_their_folders_and_by_path_where_two_are_called_alike(tmp_path: Path) -> None:
    one, two, other = tmp_path / "a" / "notes", tmp_path / "b" / "notes", tmp_path / "team"
    assert name_vaults([one, other]) == {"notes": one, "team": other}
    assert name_vaults([one, two, other]) == {str(one): one, str(two): two, "team": other}
    assert name_vaults([one, one]) == {"notes": one}


def test_only_the_vault_whose_memory_was_given_records_it(me: Vault, team: Vault) -> None:
    ask("When is the launch of the kiln?", me, team)
    recorded = recall_trail.read_last(state_folder(team.root), None)
    assert recorded
    assert [hit_id for hit_id, *_ in recorded.given] == ["01launch"]
    assert recall_trail.read_last(state_folder(me.root), None) is None
    with team.memory() as memory:
        assert [hit_id for hit_id, _ in memory.answers.records.most_used(5)] == ["01launch"]
    with me.memory() as memory:
        assert not memory.answers.records.most_used(5)


def test_a_question_that_another_vault_has_answered_is_no_gap(me: Vault, team: Vault) -> None:
    ask("When is the launch of the kiln?", me, team)
    ask("submarines", me, team)
    for vault in (me, team):
        with vault.memory() as memory:
            gaps, _ = memory.answers.records.gaps(5)
            assert len(gaps) == 1


def test_private_notes_of_others_stay_private_in_every_vault(me: Vault, team: Vault) -> None:
    team.write(
        "facts/secret.md", "---\nid: 01secret\ntype: fact\nowner: bob\nprivacy: private\n---\nBob's numbat is ill.\n"
    )
    found = ask("numbat", me, team)
    assert not found.hits
    assert "numbat" not in json.dumps(found.trace["vaults"], default=str).replace('"words": ["numbat"]', "")
    assert ask("Bob's numbat", me, team, owner="bob").hits
    scale = Vault(team.root)
    with scale.memory() as memory:
        counted = memory.recall("numbat coffee", comparable=True, keep=False).scale
    assert counted
    assert counted.matches["numbat"] == 0


SETTINGS, OPTIONS = RecallSettings(), RecallOptions(limit=20)
WORDS = ("heron", "kiln", "launch", "milk", "numbat", "quokka", "river", "teapot")


@st.composite
def answers(draw: st.DrawFn, vault: str) -> Recall:
    """What a vault may answer: hits in the order of their scores, and by what these compare."""
    scores = sorted(
        draw(st.lists(st.floats(0.3, 1.0).map(lambda x: round(x, 4)), min_size=1, max_size=6)), reverse=True
    )
    hits = tuple(
        Hit(f"{vault}-{place}", "fact", f"{draw(st.sampled_from(WORDS))} {vault} {place}", score, f"{place}.md",
            evidence={"own": score})
        for place, score in enumerate(scores)
    )  # fmt: skip
    matches = {word: draw(st.integers(0, 50)) for word in ("heron", "kiln")}
    return Recall("heron kiln", hits, scale=Scale(0.1, draw(st.floats(0.2, 0.9)), "model", 100, matches))


@given(answers("a"))
def test_merging_one_vault_is_the_identity(answer: Recall) -> None:
    merged = merge({"a": answer}, SETTINGS, OPTIONS)
    assert tuple(replace(hit, vault="") for hit in merged.hits) == answer.hits
    assert {hit.vault for hit in merged.hits} == {"a"}


@pytest.mark.slow
@given(answers("a"), answers("b"), answers("c"))
def test_the_order_of_vaults_does_not_matter(a: Recall, b: Recall, c: Recall) -> None:
    named = {"a": a, "b": b, "c": c}
    backwards = dict(reversed(named.items()))
    assert merge(named, SETTINGS, OPTIONS).hits == merge(backwards, SETTINGS, OPTIONS).hits


@pytest.mark.slow
@given(answers("a"), answers("b"))
def test_a_vault_without_relevant_notes_changes_nothing(a: Recall, b: Recall) -> None:
    nothing = replace(b, hits=())
    alone = merge({"a": a}, SETTINGS, OPTIONS)
    assert merge({"a": a, "b": nothing}, SETTINGS, OPTIONS).hits == alone.hits
    strange = Scale(0.1, 0.1, "model", 100, {"heron": 0, "kiln": 0})  # nothing like it, and none of its words
    far = replace(b, scale=strange)
    has_its_words = replace(a, scale=replace(a.scale, like=0.8, matches={"heron": 3, "kiln": 1}))
    alone = merge({"a": has_its_words}, SETTINGS, OPTIONS)
    assert merge({"a": has_its_words, "b": far}, SETTINGS, OPTIONS).hits == alone.hits


@given(answers("a"), answers("b"))
def test_each_vault_keeps_its_own_order(a: Recall, b: Recall) -> None:
    merged = merge({"a": a, "b": b}, SETTINGS, OPTIONS)
    for name, answer in (("a", a), ("b", b)):
        kept = [hit.id for hit in merged.hits if hit.vault == name]
        assert kept == [hit.id for hit in answer.hits][: len(kept)]


def test_a_vault_without_vectors_is_weighed_by_its_words() -> None:
    hit = Hit("x", "fact", "The heron is grey.", 0.9, "x.md", evidence={"own": 0.9})
    knows = Recall("heron", (hit,), scale=Scale(0, 0, "", 100, {"heron": 2, "grey": 2}))
    other = replace(hit, id="y", text="A word of it stands here.")
    likes = Recall("heron", (other,), scale=Scale(0.1, 0.6, "model", 100, {"heron": 0, "grey": 90}))
    assert merge({"knows": knows, "likes": likes}, SETTINGS, OPTIONS).hits[0].vault == "knows"


def test_the_vault_that_is_more_like_the_question_goes_first() -> None:
    hit = Hit("x", "fact", "The heron is grey.", 0.9, "x.md", evidence={"own": 0.9})
    far = Recall("heron", (hit,), scale=Scale(0.1, 0.3, "model", 100, {"heron": 1}))
    other = replace(hit, id="y", text="A word of it stands here.")
    near = Recall("heron", (other,), scale=Scale(0.1, 0.9, "model", 100, {"heron": 1}))
    assert merge({"far": far, "near": near}, SETTINGS, OPTIONS).hits[0].vault == "near"


def test_what_is_called_as_the_question_goes_first() -> None:
    entity = Hit("e", "entity", "Maya Chen", 1.0, "entities/maya.md")
    named = Recall("Maya Chen", (entity,), scale=Scale(0.1, 0.2, "model", 100, {"maya": 1}, frozenset({"e"})))
    near = Hit("n", "fact", "Chen sells maps.", 1.0, "n.md", evidence={"own": 1.0})
    like = Recall("Maya Chen", (near,), scale=Scale(0.1, 0.9, "model", 100, {"maya": 9}))
    assert [hit.id for hit in merge({"a": like, "b": named}, SETTINGS, OPTIONS).hits] == ["e", "n"]
