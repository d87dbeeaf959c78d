"""The log says who did what, and a night is one line."""

from __future__ import annotations

import json

import pytest
from janitor_nights import approve, decide, remember, rewriting, tidying
from matrices import for_each
from timelines import HOME, MILK
from vaults import assert_verified, refused

from quaid.cli.main import main
from quaid.errors import BadInputError
from quaid.history.authorship import Authors
from quaid.model import Commit
from quaid.place import INDEX_FILE, state_folder
from quaid.recall.visibility import SEVERAL_OWNERS
from quaid.timeline import log
from quaid.vault import files


def told(vault, **which):
    with vault.memory() as memory:
        return [(entry.who, entry.what) for entry in memory.timeline.log(30, **which)]


@pytest.mark.slow
def test_each_kind_of_change_is_told_in_words(vault):
    with vault.memory() as memory:
        start = len(memory.timeline.log(30))
        memory.remember(MILK)
        porto = memory.remember("Maya lives in Porto with Tom", replaces=HOME)
        memory.restore(porto.replaced)
        memory.forget(porto.id)
        memory.restore(porto.id)
        memory.forget("s9#t3")
        memory.link("Maya", "knows", "Ana")
        memory.configure("recall.depth", "fast")
        memory.timeline.undo()
        entries = memory.timeline.log(30)
    vault.write("USER.md", "# Maya\n\nShe likes tea.\n")
    vault.write("notes/sea.md", "The sea.\n")
    vault.save("tea and the sea")
    new = [(entry.who, entry.what) for entry in entries[: len(entries) - start]]
    assert new == [
        ("owner", 'took back: config: recall.depth = "fast"'),
        ("owner", 'set recall.depth = "fast"'),
        ("agent", "linked Ana knows Maya"),
        ("agent", "forgot turn 3 of session s9"),
        ("agent", "restored “Maya lives in Porto with Tom”"),
        ("agent", "forgot “Maya lives in Porto with Tom”"),
        ("agent", f"restored “{HOME}”"),
        ("agent", f"replaced “{HOME}” with “Maya lives in Porto with Tom”"),
        ("agent", f"confirmed “{MILK}”"),
    ]
    assert told(vault)[0] == ("owner", "added sea.md, edited USER.md (tea and the sea)")


def test_many_facts_are_counted(vault):
    remember(vault, "Ana sails at night", "Ben paints old boats", "Cleo grows red tulips")
    assert told(vault)[0] == ("agent", "learned 3 facts")


def test_a_night_is_one_line_with_what_it_did_and_its_decisions_are_found_by_their_facts(vault, monkeypatch):
    paths = remember(vault, "Ana sails at night", "Ben paints old boats")
    plans = [
        lambda context: [decide(context, path, approve, kind="approve", is_minor=True) for path in paths],
        rewriting(paths[0], "Ana sails at dawn", task="task1"),
    ]
    before = len(told(vault))
    tidying(vault, monkeypatch)(*plans)
    new = told(vault)
    assert len(new) == before + 1
    assert new[0] == ("janitor", "night: approved 2 facts, reworded 1")
    with vault.memory() as memory:
        decided = memory.timeline.log(30, author="Janitor")
        assert len(memory.timeline.log(2)) == 2  # though the night alone has four commits
    assert len(decided) == 3
    assert vault.git("log", "-1", "--format=%P").count(" ") == 1


def test_a_night_that_a_rebase_has_flattened_is_still_one_line():
    run = {"Quaid-Run": ("01a",), "Quaid-Task": ("compare",)}
    commits = [
        Commit(f"{n}", "", "Quaid Janitor", "janitor@localhost", f"janitor(compare): merge {n}", "", run) for n in "abc"
    ]
    mine = Commit("x", "", "Maya", "m@x", "mine", "")
    night, other = log.group_by_run([*commits[:2], mine, commits[2]])
    assert (night, other) == (commits, [mine])
    assert log.describe(night, [], "janitor") == "night: merge a and 2 more"


@for_each(
    ("email", "owner", "trailers", "subject", "who"),
    [
        ("m@x", "m@x", {}, "tea", "owner"),
        ("m@x", None, {}, "tea", "owner"),
        ("tom@x", "m@x", {}, "tea", "other"),
        ("q@x", "m@x", {"Quaid-Fact": ("01a",)}, "remember: tea", "agent"),
        ("q@x", "m@x", {"Quaid-Task": ("import",)}, "import: 3 facts from mem0", "import"),
        ("q@x", "m@x", {}, "import: 3 facts from mem0", "import"),
        ("q@x", "m@x", {"Quaid-Task": ("undo",)}, "undo: tea", "owner"),
        ("q@x", "m@x", {"Quaid-Task": ("review",)}, "review: yes to 1 question", "owner"),
        ("janitor@localhost", "m@x", {}, "janitor: asks 1", "janitor"),
        ("m@x", "m@x", {"Quaid-Task": ("undo",), "Quaid-Host": ("claude-code",)}, "undo: tea", "agent"),
        ("tom@x", "m@x", {"Quaid-Host": ("claude-code",)}, "tea", "other"),
        ("janitor@localhost", None, {"Quaid-Task": ("dispute",)}, "janitor(dispute): asks 1", "janitor"),
    ],
)
def test_who_made_a_commit(email, owner, trailers, subject, who):
    commit = Commit("a", "", "Somebody", email, subject, "", trailers)
    assert log.name_author(commit, Authors("q@x", [owner] if owner else [])) == who


def test_what_another_owner_keeps_private_is_not_told(vault):
    vault.write(
        "facts/secret.md", "---\nid: 01secret\ntype: fact\nstatus: active\nowner: tom\n---\nTom has a wooden leg.\n"
    )
    vault.write("notes/sea.md", "The sea.\n")
    both = vault.save("of both")
    assert told(vault)[0] == ("owner", f"added sea.md ({SEVERAL_OWNERS})")
    with vault.memory() as memory:
        assert "leg" not in str(memory.timeline.diff(f"{both}^..{both}"))
        vault.git("rm", "-q", "facts/secret.md")
        gone = vault.save("no more of it")
        assert memory.timeline.tell(gone)[0].what == "what another owner keeps private"
        refused(lambda: memory.timeline.undo(gone, anybodys=True), BadInputError)


def test_of_a_commit_of_several_owners_only_what_may_be_seen_is_told(vault):
    vault.write("facts/leg.md", "---\nid: 01leg\ntype: fact\nowner: tom\nprivacy: private\n---\nTom has a wooden leg\n")
    vault.write("facts/tea.md", "---\nid: 01tea\ntype: fact\nprivacy: shared\n---\nMaya drinks green tea\n")
    vault.save("Tom has a wooden leg, and Maya drinks tea\n\nA wooden leg.")
    with vault.memory() as memory:
        (entry,) = memory.timeline.log(1)
        assert entry.what.startswith("learned “Maya drinks green tea”")
        for commit in (entry.commit, *memory.history("01tea"), *memory.answers.log(9)):
            assert "wooden" not in f"{commit.subject}{commit.body}{commit.files}"
    with vault.memory(owner="tom") as memory:
        assert "wooden leg" in memory.timeline.log(1)[0].commit.subject


def test_the_log_looks_at_the_files_that_it_names_and_at_no_others(vault, monkeypatch):
    vault.write("notes/leg.md", "A wooden leg.\n")
    vault.save("a leg")
    assert told(vault)[0] == ("owner", "added leg.md (a leg)")
    told(vault)  # by now all that was written a moment before it was read is known to be old
    swept = []
    list_notes = files.list_notes
    monkeypatch.setattr(files, "list_notes", lambda root, *rest: swept.append(root) or list_notes(root, *rest))
    told(vault)
    assert not swept
    vault.write("notes/leg.md", "---\nowner: tom\nprivacy: private\n---\nA wooden leg.\n")
    assert "leg" not in str(told(vault)[0])
    assert not swept
    (state_folder(vault.root) / INDEX_FILE).unlink()
    told(vault)
    assert swept
    with vault.memory() as memory:
        assert_verified(memory)


def test_a_large_commit_is_told_by_its_subject(vault, monkeypatch):
    monkeypatch.setattr(log, "MAX_READ", 2)
    remember(vault, "Ana sails at night", "Ben paints old boats")
    assert told(vault)[0][1] != "remember: facts"
    remember(vault, "Ana sails by day", "Ben paints new boats", "Cleo grows red tulips")
    assert told(vault)[0] == ("agent", "remember: facts")


def test_the_shape_has_the_commit_and_its_words(vault, capsys):
    assert main(["--vault", str(vault.root), "log", "-n", "2", "--json", "--since", "yesterday"]) == 0
    shape = json.loads(capsys.readouterr().out)
    assert [(one["who"], one["what"]) for one in shape["commits"]] == [
        ("owner", "added GUIDE.md (mine)"),
        ("agent", "learned “Tom sails at night”"),
    ]
    assert shape["commits"][1]["subject"] == "remember: Tom sails at night"
