"""Two clones of a vault change it, each on its own, and git puts them together: merge, pull and rebase."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import quaid
from vaults import Vault, copy_vault

from quaid.history import merge_driver, merges
from quaid.janitor.settling import settle_merges
from quaid.trust import trust
from quaid.vault import frontmatter

TIME = "01kagx3m7r"
EPISODES, FACTS, ENTITIES, QUESTIONS = (13, 8, 6, 5) if os.environ.get("QUAID_STRESS_S") else (2, 2, 2, 2)
"""What two machines do in a day; with QUAID_STRESS_S as much as two clones once did in 100 rounds."""
ENTITY = "---\nid: {id}\ntype: person\ncreated: {created}\n{more}---\n{body}"
FACT = "---\nid: {id}\ntype: fact\nstatus: active\nowner: default\nconfidence: 0.9\ncreated: 2026-11-20T14:30:00Z\n{more}---\n{text}\n"


def note_id(name: str) -> str:
    return (TIME + name.encode().hex() + "0" * 16)[:26]


def fact(name: str, text: str, more: str = "") -> str:
    return FACT.format(id=note_id(name), text=text, more=more)


class Machines:
    """Two clones: `here` made the vault, `there` cloned it."""

    def __init__(self, tmp_path: Path) -> None:
        self.here = copy_vault(tmp_path / "here")
        self.there = Vault(tmp_path / "there")

    def part(self) -> None:
        """Commit what is here, and clone it."""
        self.here.save("before")
        subprocess.run(["git", "clone", "-q", str(self.here.root), str(self.there.root)], check=True)
        trust(self.there.root)
        for machine in (self.here, self.there):
            merge_driver.set_up(machine.root)

    def meet(self, *how: str, check: bool = True) -> str:
        """Commit on both sides and pull here what is there."""
        for machine in (self.here, self.there):
            machine.save("since")
        done = self.here.run("pull", "-q", "--no-edit", *(how or ("--no-rebase",)), str(self.there.root), "main", check=False)  # fmt: skip
        assert not check or done.returncode == 0, (done.stdout + done.stderr).decode()
        return (done.stdout + done.stderr).decode()

    def settle(self) -> None:
        with self.here.memory() as memory:
            self.settled = settle_merges(memory)


@pytest.fixture
def machines(calm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return Machines(tmp_path)


def read(vault: Vault, path: str) -> str:
    return (vault.root / path).read_text("utf-8")


def fields(vault: Vault, path: str) -> dict[str, object]:
    return dict(frontmatter.parse(read(vault, path)).fields)


@pytest.mark.slow
def test_what_two_clones_do_in_a_day_is_no_conflict(machines: Machines) -> None:
    here, there = machines.here, machines.there
    for number in range(FACTS):
        here.write(f"facts/2026/11/fact-{number}.md", fact(f"f{number}", f"Maya owns {number} boats."))
    here.write("snippets/SOUL.snippets.md", "## Reset - 2026-02-12 14:30\n\n- Works in blocks\n")
    machines.part()
    for place, machine in enumerate((here, there)):
        turns = "\n".join(f"**Maya** (14:0{n}): Said {n}. ^t{n}\n" for n in range(1, 4 + place))
        for number in range(EPISODES):
            head = f"type: episode\nsession: s{number}\nstarted: 2026-11-20T14:02:00Z\nturn_count: {3 + place}\n"
            extracted = "extracted: 2026-11-21T00:00:00Z\n" if place == number % 2 else ""
            machine.write(f"episodes/2026/11/20-1402-{number:06}.md", f"---\n{head}{extracted}---\n{turns}")
        for number in range(FACTS):
            more = f"confirmations: {number + place + 1}\n"
            machine.write(f"facts/2026/11/fact-{number}.md", fact(f"f{number}", f"Maya owns {number} boats.", more))
        for number in range(ENTITIES):
            created = f"2026-11-2{place}T14:30:00Z"
            body = f"- knows [[{'Ada' if place else 'Bo'}]]\n"
            text = ENTITY.format(id=note_id(f"{place}e{number}"), created=created, more="", body=body)
            machine.write(f"entities/Person {number}.md", text)
        for number in range(QUESTIONS):
            head = f"type: review\ntask: compare\nkind: merge\nkey: {number:016}\ncreated: 2026-11-2{place}T03:30:00Z\n"
            machine.write(f"review/merge-{number:08}.md", f"---\n{head}---\n# merge?\n\n- [ ] Yes, do it\n")
        machine.write("snippets/SOUL.snippets.md", f"## Reset - 2026-02-12 14:30\n\n- Works in blocks\n- Of {place}\n")
    machines.meet()
    assert here.status() == ""
    for number in range(EPISODES):
        episode = read(here, f"episodes/2026/11/20-1402-{number:06}.md")
        assert episode.count("^t") == 4
        assert "turn_count: 4" in episode
        assert "extracted: " in episode
    assert [fields(here, f"facts/2026/11/fact-{n}.md")["confirmations"] for n in range(FACTS)] == [str(2 * n + 3) for n in range(FACTS)]  # fmt: skip
    for number in range(ENTITIES):
        assert fields(here, f"entities/Person {number}.md")["id"] == note_id(f"0e{number}")
        assert "- knows [[Ada]]\n- knows [[Bo]]\n" in read(here, f"entities/Person {number}.md")
    assert all(fields(here, f"review/merge-{n:08}.md")["created"] == "2026-11-20T03:30:00Z" for n in range(QUESTIONS))
    assert read(here, "snippets/SOUL.snippets.md").endswith("- Works in blocks\n- Of 0\n- Of 1\n")
    here.assert_sound()


def test_a_rebase_merges_the_same_way(machines: Machines) -> None:
    here, there = machines.here, machines.there
    here.write("facts/2026/11/boats.md", fact("boats", "Maya owns boats."))
    machines.part()
    here.write("facts/2026/11/boats.md", fact("boats", "Maya owns boats.", "confirmations: 2\n"))
    there.write("facts/2026/11/boats.md", fact("boats", "Maya owns boats.", "confirmations: 3\nkeywords: [sea]\n"))
    machines.meet("--rebase")
    assert fields(here, "facts/2026/11/boats.md")["confirmations"] == "5"
    assert here.git("rev-list", "--count", "--merges", "HEAD") == "0"


def test_without_quaid_git_merges_the_text_and_what_collides_is_marked(machines: Machines) -> None:
    here, there = machines.here, machines.there
    here.write("facts/2026/11/boats.md", fact("boats", "Maya owns boats."))
    machines.part()
    here.run(
        "config", merge_driver.KEY, here.git("config", merge_driver.KEY).replace("quaid merge", "no-such-program merge")
    )
    here.write("facts/2026/11/boats.md", fact("boats", "Maya owns two boats."))
    there.write("facts/2026/11/boats.md", fact("boats", "Maya owns three boats."))
    machines.meet(check=False)
    text = read(here, "facts/2026/11/boats.md")
    assert "<<<<<<<" in text
    assert "two boats" in text
    assert "three boats" in text
    assert [one.path for one in merges.list_unmerged(here.root)] == ["facts/2026/11/boats.md"]


def test_what_cannot_be_solved_is_listed_and_settled(machines: Machines) -> None:
    here, there = machines.here, machines.there
    here.write("Garden.md", "# Garden\n\nRoses.\n\nShed.\n")
    here.write("Old.md", "An old note.\n")
    machines.part()
    here.write("Garden.md", "# Garden\n\nRed roses.\n\nShed.\n")
    there.write("Garden.md", "# Garden\n\nWhite roses.\n\nA shed.\n")
    (here.root / "Old.md").unlink()
    there.write("Old.md", "An old note, changed.\n")
    machines.meet(check=False)
    asked = ("--vault", str(here.root))
    code, out, err = quaid("conflicts", "--json", *asked)
    assert code == 1
    assert [(one["path"], one["what"]) for one in json.loads(out)["conflicts"]] == [
        ("Garden.md", "changed on both sides"), ("Old.md", "removed here, changed there"),
    ]  # fmt: skip
    with here.memory() as memory:
        assert {hit.path for hit in memory.recall("red white roses").hits} >= {"Garden.md"}
    assert quaid("conflicts", "--settle", "both", "Garden.md", *asked)[0] == 1
    assert read(here, "Garden.md").count("roses") == 2
    assert "<<<" not in read(here, "Garden.md")
    code, out, err = quaid("conflicts", "--settle", "ours", "all", *asked)
    assert code == 0
    assert "git merge --continue" in err
    assert not (here.root / "Old.md").exists()
    here.run("-c", "core.editor=true", "merge", "--continue")
    assert here.status() == ""
    assert quaid("conflicts", *asked)[:2] == (0, "No note is in conflict.\n")


@pytest.mark.slow
def test_marks_that_a_pull_committed_are_settled_by_a_commit(machines: Machines) -> None:
    vault, other = machines.here, machines.there
    shown = "\n```\n<<<<<<< mine\na\n=======\nb\n>>>>>>> yours\n```\n"
    vault.write("Garden.md", f"Roses.\n{shown}")
    machines.part()
    vault.write("Garden.md", f"Red roses.\n{shown}")
    other.write("Garden.md", f"White roses.\n{shown}")
    vault.save()
    other.save()
    asked = ("--vault", str(vault.root))
    assert quaid("remote", "add", str(other.root), "--name", "other", *asked)[0] == 0
    code, out, err = quaid("pull", "other", *asked)
    assert "Garden.md holds both sides, marked" in err, (code, out, err)
    with vault.memory() as memory:
        assert "conflict" in memory.recall("roses").degraded
    assert [each.path for each in merges.list_conflicts(vault.root)] == ["Garden.md"]
    assert quaid("conflicts", "--settle", "both", "Garden", *asked)[0] == 0
    assert read(vault, "Garden.md") == f"Red roses.\nWhite roses.\n{shown}"
    assert vault.status() == ""
    assert quaid("conflicts", *asked)[:2] == (0, "No note is in conflict.\n")
    with vault.memory() as memory:
        assert "conflict" not in memory.recall("roses").degraded


def test_two_notes_of_one_entity_become_one_and_links_lead_there(machines: Machines) -> None:
    here, there = machines.here, machines.there
    machines.part()
    created = "2026-11-20T14:30:00Z"
    here.write("entities/Maya Chen.md", ENTITY.format(id=note_id("a"), created=created, more="aliases: [Maya]\n", body="- works_at [[Acme]]\n"))  # fmt: skip
    there.write("entities/Maya.md", ENTITY.format(id=note_id("b"), created="2026-11-21T14:30:00Z", more="", body="- lives_in [[Rome]]\n"))  # fmt: skip
    there.write("facts/2026/11/tea.md", fact("tea", "[[Maya]] takes tea.\n\n- [[Maya]] likes [[Tea]]"))
    there.write(
        "entities/Maya's cat.md", ENTITY.format(id=note_id("c"), created=created, more="aliases: [Tom]\n", body="")
    )
    here.write(
        "entities/Tom.md", ENTITY.format(id=note_id("d"), created=created, more="", body="").replace("person", "pet")
    )
    machines.meet()
    machines.settle()
    assert machines.settled[0] == [("entities/Maya Chen.md", "entities/Maya.md")]
    assert read(here, "entities/Maya Chen.md").endswith("- lives_in [[Rome]]\n- works_at [[Acme]]\n")
    assert "[[Maya Chen|Maya]] takes tea.\n\n- [[Maya Chen|Maya]] likes [[Tea]]" in read(here, "facts/2026/11/tea.md")
    assert (here.root / "entities/Tom.md").exists()  # a pet is not the cat's alias of a person
    assert here.status() == ""
    here.assert_sound()
    head = here.head()
    machines.settle()
    assert here.head() == head


def test_one_conversation_taken_in_on_both_becomes_one_and_citations_lead_there(machines: Machines) -> None:
    here, there = machines.here, machines.there
    machines.part()
    head = "---\ntype: episode\nsession: 2f1c9a\nstarted: 2026-11-20T14:02:00Z\nturn_count: 1\n---\n"
    here.write("episodes/2026/11/20-1402-2f1c9a.md", f"{head}**Maya**: I sail. ^t1\n")
    there.write("episodes/2026/11/20-1402-the-boat-2f1c9a.md", f"{head}**Maya**: I sail. ^t1\n")
    there.write("facts/2026/11/sail.md", fact("sail", "Maya sails.", 'turns: ["[[20-1402-the-boat-2f1c9a#^t1]]"]\n'))
    machines.meet()
    machines.settle()
    assert [path.name for path in here.root.glob("episodes/*/*/*.md")] == ["20-1402-2f1c9a.md"]
    assert fields(here, "facts/2026/11/sail.md")["turns"] == ["[[20-1402-2f1c9a#^t1]]"]


def test_contradictory_statements_of_one_fact_become_two_and_a_question(machines: Machines) -> None:
    here, there = machines.here, machines.there
    here.write("facts/2026/11/born.md", fact("born", "Maya was born in April.", "confirmations: 2\n"))
    machines.part()
    here.write("facts/2026/11/born.md", fact("born", "Maya was born on 4 April.", "confirmations: 2\n"))
    there.write("facts/2026/11/born.md", fact("born", "Maya was born on 14 April.", "confirmations: 2\n"))
    machines.meet()
    machines.settle()
    (question,) = machines.settled[1]
    assert "Maya was born on 4 April." in read(here, question)
    assert "Maya was born on 14 April." in read(here, question)
    facts = sorted(path.read_text().split("---\n")[2] for path in here.root.glob("facts/*/*/*.md"))
    assert facts == ["Maya was born on 14 April.\n", "Maya was born on 4 April.\n"]
    assert "disputed" not in read(here, "facts/2026/11/born.md")
    here.assert_sound()


def test_a_clone_is_set_up_by_the_first_write_and_only_once(machines: Machines) -> None:
    vault = machines.here
    vault.run("config", "--remove-section", "merge.quaid")
    assert not merge_driver.is_set_up(vault.root)
    with vault.memory() as memory:
        memory.remember("Maya takes oat milk in her coffee.")
    assert merge_driver.is_set_up(vault.root)
    assert not merge_driver.set_up(vault.root)
    vault.run("config", merge_driver.KEY, "/gone/bin/quaid merge-driver %O %A %B %L %P")
    assert not merge_driver.is_set_up(vault.root)
    assert not merge_driver.set_up(vault.root)  # the owner may have meant it
    vault.accept()
    assert merge_driver.set_up(vault.root)


def test_a_path_with_quotes_and_blanks_reaches_the_driver_whole(machines: Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # fmt: skip
    odd = tmp_path / "it's a $HOME"
    odd.mkdir()
    (odd / "quaid").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m quaid "$@"\n')
    (odd / "quaid").chmod(0o755)
    (odd / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(odd / "python"))
    monkeypatch.setattr("shutil.which", lambda name, *_: name if name.startswith("/") else None)
    here, there = machines.here, machines.there
    here.write("facts/2026/11/it's `here`.md", fact("boats", "Maya owns boats."))
    here.run("config", "--remove-section", "merge.quaid")
    machines.part()
    assert "it'" in here.git("config", merge_driver.KEY)
    here.write("facts/2026/11/it's `here`.md", fact("boats", "Maya owns boats.", "confirmations: 2\n"))
    there.write("facts/2026/11/it's `here`.md", fact("boats", "Maya owns boats.", "confirmations: 3\n"))
    machines.meet()
    assert fields(here, "facts/2026/11/it's `here`.md")["confirmations"] == "5"


def test_doctor_sets_merging_up_again(machines: Machines) -> None:
    machines.here.run("config", "--remove-section", "merge.quaid")
    quaid("doctor", "--vault", str(machines.here.root))
    assert merge_driver.is_set_up(machines.here.root)
