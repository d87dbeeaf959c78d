"""`why`: where a memory comes from, over real repositories."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import Vault

from quaid import Memory
from quaid.cli.main import main
from quaid.history.vault_history import History
from quaid.model import Edit, Kind, Message, Turn
from quaid.recall.provenance import NoteChange, Provenance
from quaid.settings import GitSettings
from quaid.vault.differences import describe

ID = "01kagx3m7r9q2d5w8t0v7k3qd"
HEAD = (
    "---\nid: {id}\ntype: fact\nstatus: {status}\nowner: default\nconfidence: {confidence}\nsource: user\n{more}---\n"
)
MORNING = ("move", "2026-03-01T10:00:00", ["We moved to Lisbon.", "How is the dog?", "Biscuit hid under the sofa."])
EVENING = ("dinner", "2026-03-02T19:30:00", ["Lisbon is lovely.", "Still?"])


def fact(text: str, note_id: str = ID, status: str = "pending", confidence: float = 0.9, more: str = "") -> str:
    return HEAD.format(id=note_id, status=status, confidence=confidence, more=more) + text + "\n"


def keep(memory: Memory, talk: tuple[str, str, list[str]]) -> None:
    """Maya and the assistant in turn."""
    session, started, said = talk
    at = datetime.fromisoformat(f"{started}+00:00")
    turns = [
        Turn("Assistant", text, "assistant", at) if i % 2 else Turn("Maya", text, "user", at)
        for i, text in enumerate(said)
    ]
    memory.extract(turns, session=session)


def changes(found: Provenance) -> list[tuple[str, ...]]:
    return [step.changes for step in found.edits]


def subject(step: NoteChange | None) -> str | None:
    return step.commit.subject if step and step.commit else None


def why(vault: Vault, reference: str = ID) -> Provenance:
    with vault.memory() as memory:
        return memory.why(reference)


def test_a_fact_of_two_conversations_shows_both_and_what_was_said_around(vault):
    with vault.memory() as memory:
        keep(memory, MORNING)
        keep(memory, EVENING)
        cites = 'turns: ["[[01-1000-move#^t3]]", "[[02-1930-6e16f4#^t1]]"]\n'
        evening = next(vault.root.glob("episodes/2026/03/02-1930-*.md")).stem
        vault.write("facts/home.md", fact("Biscuit lives in Lisbon.", more=cites.replace("02-1930-6e16f4", evening)))
        vault.write("facts/other.md", fact("They moved.", "01b", more='turns: ["[[01-1000-move#^t1]]"]\n'))
        vault.write("facts/named.md", fact("The dog hides.", "01c", more="session: move\n"))
        vault.save()
        found = memory.why(ID)
    assert [turn.cited.id for turn in found.turns] == ["01-1000-move#t3", f"{evening}#t1"]
    first, second = found.turns
    assert (first.cited.speaker, first.cited.said_at, first.cited.text) == (
        "Maya", "2026-03-01T10:00:00Z", MORNING[2][2],
    )  # fmt: skip
    assert first.before is not None
    assert (first.before.speaker, first.before.text, first.after) == ("Assistant", "How is the dog?", None)
    assert (second.before, second.after and second.after.text) == (None, "Still?")
    assert [(one.session, one.started, one.turns) for one in found.sessions] == [
        ("move", "2026-03-01T10:00:00Z", 3),
        ("dinner", "2026-03-02T19:30:00Z", 2),
    ]
    assert [[one.id for one in session.facts] for session in found.sessions] == [["01c", "01b"], []]
    assert (found.source, found.remarks) == ("owner", [])


def test_a_turn_says_which_facts_rest_on_it_and_when_it_came_and_changed(vault):
    with vault.memory() as memory:
        keep(memory, (MORNING[0], MORNING[1], MORNING[2][:2]))
        keep(memory, MORNING)
        for number in (1, 3):
            cites = f'turns: ["[[01-1000-move#^t{number}]]"]\n'
            vault.write(f"facts/{number}.md", fact(f"Fact {number} is that.", f"01{number}", more=cites))
        vault.save()
        memory.forget("01-1000-move#t2")
        found = memory.why("01-1000-move#t3")
        assert (subject(found.created), found.edits) == ("keep: 1 turn of session move", [])
        assert [one.id for one in found.facts] == ["013"]
        assert [one.id for one in found.sessions[0].facts] == ["011"]
        memory.restore("01-1000-move#t2")
        found = memory.why("01-1000-move#t2")
    assert subject(found.created) == "keep: 2 turns of session move"
    assert changes(found) == [("turn 2 forgotten",), ("turn 2 restored",)]
    assert found.source is None


def test_an_episode_says_what_came_from_it(vault):
    with vault.memory() as memory:
        keep(memory, (MORNING[0], MORNING[1], MORNING[2][:1]))
        keep(memory, MORNING)
        vault.write("facts/a.md", fact("They moved.", more='turns: ["[[01-1000-move#^t1]]"]\n'))
        found = memory.why("move")
    assert [one.id for one in found.facts] == [ID]
    assert "turns 2 to 3 added" in changes(found)[0]
    assert [session.facts for session in found.sessions] == [()]


def test_a_turn_that_is_gone_is_named(vault):
    with vault.memory() as memory:
        keep(memory, MORNING)
        vault.write("facts/a.md", fact("They moved.", more='turns: ["[[01-1000-move#^t1]]", "[[01-0900-gone#^t4]]"]\n'))
        memory.forget("01-1000-move#t1")
        found = memory.why(ID)
    assert found.turns == []
    assert [remark.split(",")[0] for remark in found.remarks[:2]] == [
        "It cites 01-0900-gone#t4", "It cites 01-1000-move#t1",
    ]  # fmt: skip


def test_a_fact_that_cites_nothing_says_where_it_is_from(vault):
    with vault.memory() as memory:
        stated = memory.remember("Maya takes oat milk in her coffee")
        assert memory.why(stated.id).remarks == ["Stated directly with quaid remember; it cites no turn."]
        vault.write("facts/a.md", fact("Maya has a bicycle."))
        by_hand, uncommitted = memory.why(ID).remarks
    assert by_hand == "Written by hand; it cites no turn."
    assert "in no commit yet" in uncommitted


def test_every_edit_says_who_and_what(vault):
    with vault.memory() as memory:
        stated = memory.remember("Maya takes oat milk in her coffee", confidence=0.8)
        memory.remember("Maya takes oat milk in her coffee.")
        path = vault.root / stated.path
        path.write_text(path.read_text().replace("status: active", "status: approved").replace("coffee", "tea"))
        vault.save("tea, not coffee")
        path.write_text(path.read_text() + "\n- [[Maya]] prefers [[Oat milk]]\n")
        vault.save("an edge")
        found = memory.why(stated.id)
    assert found.created is not None
    assert (found.created.by, subject(found.created)) == ("Quaid", "remember: Maya takes oat milk in her coffee")
    assert [step.by for step in found.edits] == ["Quaid", "human", "human"]
    confirmed, edited, edge = changes(found)
    assert "confidence 0.8 → 0.82" in confirmed
    assert "confirmations set to 1" in confirmed
    assert "“Maya takes oat milk in her coffee” → “Maya takes oat milk in her tea”" in edited
    assert edge == ("edge added: Maya prefers Oat milk",)


def test_the_janitor_and_its_model_are_named(vault):
    vault.write("facts/a.md", fact("Maya has a bicycle."))
    vault.save()
    before = fact("Maya has a bicycle.").encode()
    after = fact("Maya has a bicycle.", confidence=0.5).encode()
    vault.write("facts/a.md", after)
    trailers = (("Quaid-Task", "decay"), ("Quaid-Run", "n1"), ("Quaid-Model", "m-1"), ("Quaid-Prompt", "decay@12ab"))
    message = Message("janitor(decay): less sure", "Nobody has asked for long.", trailers)
    History(vault.root, GitSettings()).commit(
        [Edit("facts/a.md", before, after)], message, author=("Quaid Janitor", "janitor@localhost")
    )
    (step,) = why(vault).edits
    assert (step.by, step.changes) == ("Quaid Janitor", ("confidence 0.9 → 0.5",))
    assert [step.trailer(name) for name in ("Task", "Model", "Prompt", "Decision")] == [
        "decay", "m-1", "decay@12ab", None,
    ]  # fmt: skip


def test_a_note_is_followed_by_its_id_past_renames(vault):
    vault.write("facts/a.md", fact("Maya has a bicycle."))
    vault.save("made")
    vault.run("mv", "facts/a.md", "facts/b.md")
    vault.save("renamed")
    (vault.root / "facts/b.md").unlink()
    vault.write("facts/2026/a.md", fact("Nothing here is as it was, " * 20, status="active"))
    vault.write("facts/2026/bait.md", fact("Maya has a bicycle.", "01bait"))
    vault.save("rewritten and renamed")
    vault.run("mv", "facts/2026/a.md", "facts/a.md")
    vault.save("back")
    found = why(vault)
    assert subject(found.created) == "made"
    assert [step[0] for step in changes(found)] == [
        "renamed from facts/a.md", "renamed from facts/b.md", "renamed from facts/2026/a.md",
    ]  # fmt: skip
    assert "status pending → active" in changes(found)[1]
    with vault.memory() as memory:
        assert [commit.subject for commit in memory.history(ID)] == ["back", "rewritten and renamed", "renamed", "made"]


def test_a_note_that_looks_much_the_same_is_not_its_past(vault):
    vault.write("facts/a.md", fact("Maya takes oat milk in her coffee.", "01a"))
    vault.save("another")
    vault.write("facts/b.md", fact("Maya takes oat milk in her tea."))
    vault.save("this one")
    assert (subject(why(vault).created), why(vault).edits) == ("this one", [])
    (vault.root / "facts/a.md").unlink()
    vault.write("facts/a.md", fact("Maya takes oat milk in her soup.", "01c"))
    (vault.root / "facts/b.md").unlink()
    vault.write("facts/d.md", fact("Maya takes oat milk in her porridge.", "01d"))
    vault.save("one goes, one comes")
    assert (subject(why(vault, "facts/d.md").created), why(vault, "facts/d.md").edits) == ("one goes, one comes", [])


def test_a_note_of_the_owners_own_is_followed_by_git(vault):
    vault.write("Garden.md", "# Garden\n\nThe roses are red and want water every other day.\n")
    vault.save("made")
    vault.run("mv", "Garden.md", "Roses.md")
    vault.save("renamed")
    vault.write("Roses.md", "# Garden\n\nThe roses are red and want water every other day.\nSo do the lilies.\n")
    found = why(vault, "Roses.md")
    assert (subject(found.created), found.source) == ("made", "owner")
    assert changes(found) == [("renamed from Garden.md",), ("1 line added: “So do the lilies.”",)]


def test_what_was_forgotten_and_restored_says_so(vault):
    with vault.memory() as memory:
        stated = memory.remember("Maya takes oat milk in her coffee")
        memory.forget(stated.id)
        memory.restore(stated.id)
        found = memory.why(stated.id)
    assert subject(found.created) == "remember: Maya takes oat milk in her coffee"
    assert changes(found) == [("taken out of the vault",), ("brought back",)]


def test_an_editors_save_by_rename_is_seen_before_it_is_committed(vault):
    path = vault.write("facts/a.md", fact("Maya has a bicycle."))
    vault.save()
    with vault.memory() as memory:
        memory.why(ID)
        fresh = path.with_name("a.md~tmp")
        fresh.write_text(fact("Maya has a tandem."))
        fresh.replace(path)
        found = memory.why(ID)
        assert found.note.text == "Maya has a tandem."
        assert [(step.by, step.commit, step.changes) for step in found.edits] == [
            ("human", None, ("“Maya has a bicycle.” → “Maya has a tandem.”",))
        ]
        path.write_bytes(fact("Maya has a bicycle.").replace("\n", "\r\n").encode())
        assert memory.why(ID).edits == []
        path.write_text(fact("Maya has a bicycle.").replace("type: fact", "type: 'fact'"))
        assert changes(memory.why(ID)) == [("only how it is written",)]


def test_a_merge_tells_only_what_no_side_had(vault):
    vault.write("facts/a.md", fact("Maya has a bicycle."))
    vault.save("made")
    vault.run("checkout", "-q", "-b", "night")
    vault.write("facts/a.md", fact("Maya has a bicycle.", more="verified: true\n"))
    vault.save("night")
    vault.run("checkout", "-q", "main")
    vault.write("facts/a.md", fact("Maya has a bicycle.", status="active"))
    vault.save("day")
    vault.run("merge", "-q", "--no-ff", "-m", "merged", "night")
    found = why(vault)
    assert {(subject(step), step.changes) for step in found.edits} == {
        ("night", ("verified set to true",)), ("day", ("status pending → active",)),
    }  # fmt: skip
    vault.run("checkout", "-q", "-b", "red")
    vault.write("facts/a.md", fact("Maya has a red bicycle.", status="active", more="verified: true\n"))
    vault.save("red")
    vault.run("checkout", "-q", "main")
    vault.write("facts/a.md", fact("Maya has a blue bicycle.", status="active", more="verified: true\n"))
    vault.save("blue")
    vault.run("-c", "merge.quaid.driver=false", "merge", "-q", "red", check=False)  # left to the owner
    vault.write("facts/a.md", fact("Maya has two bicycles.", status="active", more="verified: true\n"))
    vault.save("both are right")
    resolved = why(vault).edits[-1]
    assert subject(resolved) == "both are right"
    assert resolved.changes == ("“Maya has a blue bicycle.” → “Maya has two bicycles.”",)


def test_a_shallow_clone_says_that_more_is_elsewhere(vault, tmp_path):
    vault.write("facts/a.md", fact("Maya has a bicycle."))
    vault.save("made")
    vault.write("facts/a.md", fact("Maya has a bicycle.", status="active"))
    vault.save("sure")
    clone = Vault(tmp_path / "clone")
    vault.run("clone", "-q", "--depth", "1", f"file://{vault.root}", str(clone.root))
    found = why(clone)
    assert (found.created, found.edits) == (None, [])
    assert "git fetch --unshallow" in found.remarks[-1]
    clone.write("facts/a.md", fact("Maya has a bicycle.", status="approved"))
    clone.write("facts/b.md", fact("Tom owns a boat.", "01new"))
    clone.save("here")
    assert changes(why(clone)) == [("status active → approved",)]
    assert subject(why(clone, "01new").created) == "here"


def test_without_a_repository_the_rest_is_told(vault, capsys):
    vault.write("facts/a.md", fact("Maya has a bicycle."))
    with vault.memory() as memory:  # which notes where the vault is: without its history that has to tell it
        memory.sync()
    shutil.rmtree(vault.root / ".git")
    assert main(["--vault", str(vault.root), "why", ID]) == 0
    shown = capsys.readouterr().out
    assert "Maya has a bicycle." in shown
    assert "The history could not be read" in shown


def test_supersession_is_told_in_both_directions_and_to_its_end(vault):
    vault.write("facts/tslint.md", fact("It is TSLint.", "01v0", more="superseded_by: 01v1\n"))
    vault.write("facts/eslint.md", fact("It is ESLint.", "01v1", more='superseded_by: "[[biome]]"\n'))
    vault.write("facts/biome.md", fact("It is Biome.", "01v2"))
    vault.save()
    assert [one.id for one in why(vault, "01v0").replaced_by] == ["01v1", "01v2"]
    middle = why(vault, "facts/eslint.md")
    assert [one.id for one in middle.replaces] == ["01v0"]
    assert [(one.id, one.replaced) for one in middle.replaced_by] == [("01v2", False)]
    assert [(one.id, one.replaced) for one in why(vault, "01v2").replaces] == [("01v1", True), ("01v0", True)]


def test_facts_that_replace_each_other_do_not_go_round_for_ever(vault):
    vault.write("facts/a.md", fact("It is this.", "01aa", more="superseded_by: 01bb\n"))
    vault.write("facts/b.md", fact("It is that.", "01bb", more="superseded_by: 01aa\n"))
    found = why(vault, "facts/a.md")
    assert [one.id for one in found.replaced_by] == ["01bb"]
    assert [one.id for one in found.replaces] == ["01bb"]


def test_an_entity_names_the_facts_that_mention_it_and_the_notes_that_link_to_it(vault):
    vault.write("entities/Maya Chen.md", "---\nid: 01maya\ntype: person\naliases: [Maya]\n---\n- works_at [[Acme]]\n")
    vault.write("facts/a.md", fact("[[Maya Chen]] has a bicycle."))
    vault.write("facts/b.md", fact("Somebody has a boat.\n\n- [[Tom]] knows [[Maya]]", "01b"))
    vault.write("Friends.md", "I met [[Maya Chen|her]] in Lisbon.\n")
    vault.save()
    with vault.memory() as memory:
        memory.link("Maya Chen", "lives_in", "Lisbon")
        found = memory.why("Maya")
    assert [one.id for one in found.facts] == [ID, "01b"]
    assert [one.path for one in found.linked_from] == ["Friends.md"]
    assert changes(found) == [("edge added: lives_in Lisbon",)]


def test_the_tree_fits_80_columns_and_json_has_the_documented_fields(vault, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with vault.memory() as memory:
        keep(memory, ("long", MORNING[1], ["So it went on and on. " * 40, "Yes. " * 90, "No. " * 90]))
    vault.write("facts/a.md", fact("A long statement about it. " * 30, more='turns: ["[[01-1000-long#^t2]]"]\n'))
    vault.save("a subject that is rather long, as people who commit by hand do write them now and then, all day")
    assert main(["--vault", str(vault.root), "why", ID]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 40
    assert main(["--vault", str(vault.root), "why", ID, "--json"]) == 0
    shape = json.loads(capsys.readouterr().out)
    documented = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    documented = documented[documented.index("### quaid why") :].split("\n### ")[0]
    shapes = [shape, shape["created"], shape["turns"][0], shape["sessions"][0]]
    assert [key for one in shapes for key in one if f'"{key}"' not in documented] == []


@pytest.mark.parametrize(("before", "after", "told"), [
    ("---\na: 1\n---\n", "---\na: 1\nb: [x, y]\n---\n", ["b set to x, y"]),
    ("---\na: 1\nb: 2\n---\n", "---\na: 1\n---\n", ["b removed, was 2"]),
    ("---\na: 1\n---\nx", "---\n# why\na: '1'\n---\nx\n\n", []), ("one", "**one**", []),
    ("one", "", ["statement removed"]), ("x\n- [[A]] knows [[B]]\n", "x\n", ["edge removed: A knows B"]),
])  # fmt: skip
def test_differences_in_words(before, after, told):
    assert describe(Kind.FACT, [before.encode()], after.encode()) == told


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode), st.binary(max_size=200))
def test_any_two_versions_can_be_told_apart_and_equal_ones_say_nothing(before, after):
    for path in ("facts/a.md", "entities/a.md", "episodes/a.md", "a.md"):
        describe(path, [before], after)
        assert describe(path, [before, after], before) == []
        assert describe(path, [after], after) == []
