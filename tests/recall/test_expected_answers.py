"""Is the expected memory among the hits, and at which commit was it lost?"""

from __future__ import annotations

import sys

import pytest
from matrices import for_each
from vaults import refused

from quaid.errors import CouldNotAskError, LockedError, NoteNotFoundError, UsageError
from quaid.model import Hit, Recall
from quaid.recall.evaluation import check_decidable, deciding, find_expected, list_targets, parse_reference

HITS = (
    Hit("01kagx3m7r9q2d5w8t0v7k3qd", "fact", "Oat milk.", 1.2, "facts/2026/11/maya-prefers-oat-milk-7k3qd.md"),
    Hit("20-1402-2f1c9a#t3", "turn", "I take oat milk.", 1.0, "episodes/2026/11/20-1402-2f1c9a.md", "2f1c9a", 3, "Maya"),
    Hit("20-1402-2f1c9a#t7", "turn", "No milk.", 0.9, "episodes/2026/11/20-1402-2f1c9a.md", "2f1c9a", 7, "Maya"),
    Hit("entities/Maya Chen.md", "entity", "Maya Chen", 0.8, "entities/Maya Chen.md"),
)  # fmt: skip


@for_each(("reference", "rank"), [
    ("01kagx3m7r9q2d5w8t0v7k3qd", 1), ("7k3qd", 1), ("7K3QD", 1), ("01ka", 1),
    ("facts/2026/11/maya-prefers-oat-milk-7k3qd.md", 1), ("maya-prefers-oat-milk-7k3qd", 1),
    ("[[maya-prefers-oat-milk-7k3qd]]", 1), ("[[maya-prefers-oat-milk-7k3qd|her milk]]", 1), ("20-1402-2f1c9a#t3", 2),
    ("[[20-1402-2f1c9a#^t7]]", 3), ("20-1402-2f1c9a", 2), ("2f1c9a", 2), ("2f1c9a#t7", 3), ("20-1402-2f1c9a#t4", None),
    ("maya chen", 4), ("Maya Chen.md", 4), ("3qd", None),  # too short for a part of an id
    ("entities/", None),  # a path is no id: no part of it counts
    ("Maya", None), ("7k3qd#t1", None), ("", None), ("[[]]", None),
])  # fmt: skip
def test_a_reference_names_a_hit_as_quaid_get_would(reference, rank):
    assert find_expected(HITS, reference) == rank


def test_what_the_index_makes_of_a_reference_counts_too():
    assert find_expected(HITS, "Mai") is None
    assert find_expected(HITS, "Mai", {"entities/Maya Chen.md"}) == 4
    assert find_expected(HITS, "talk#t7", {"episodes/2026/11/20-1402-2f1c9a.md"}) == 3
    assert find_expected((), "Mai", {"entities/Maya Chen.md"}) is None


def test_the_index_knows_aliases_and_does_not_mind_what_it_does_not_know(vault):
    vault.write("entities/Maya Chen.md", "---\ntype: person\naliases: [Mai]\n---\n- likes [[Tea]]\n")
    vault.write_fact("milk", "Maya takes oat milk.")
    with vault.memory() as memory:
        index = memory.index()
        assert list_targets(index, "Mai") == {"entities/Maya Chen.md"}
        assert list_targets(index, "01milk") == list_targets(index, "[[milk]]") == {"facts/milk.md"}
        assert list_targets(index, "never-was") == list_targets(index, "") == list_targets(index, "\udcff") == set()
        hits = memory.recall("what does Mai like?").hits
        assert hits[find_expected(hits, "Mai", list_targets(index, "Mai")) - 1].path == "entities/Maya Chen.md"


def test_a_link_and_a_plain_reference_mean_the_same():
    assert parse_reference(" [[a#^t3|b]] ") == parse_reference("a#t3") == ("a", 3)
    assert parse_reference("[[Notes#Heading]]") == ("Notes#Heading", None)


def test_what_keeps_the_question_from_being_put_is_no_answer():
    for error in (NoteNotFoundError("x"), LockedError("Another Quaid is at work")):
        with pytest.raises(CouldNotAskError, match=str(error)[:20]) as caught, deciding():
            raise error
        assert caught.value.exit_code == 125
    with pytest.raises(UsageError), deciding():
        raise UsageError("no such kind")
    refused(lambda: check_decidable(Recall("q", (), ("vectors", "stale"))), CouldNotAskError)
    check_decidable(Recall("q", (), ("vectors", "pending")))


def test_git_bisect_runs_the_command_itself(vault):
    commits = []
    vault.write_fact("milk-7k3qd", "Maya takes oat milk in her coffee.")
    for number in range(9):
        vault.write("quaid.toml", "not toml" if number == 4 else "")
        vault.write_fact(f"fact-{number}", f"Jon keeps violin number {number} in the harbour.")
        if number == 6:
            (vault.root / "facts" / "milk-7k3qd.md").unlink()
        commits.append(vault.save(f"commit {number}"))
    vault.write("mine.md", "Uncommitted, and it stays.\n")
    vault.run("bisect", "start", commits[-1], commits[0])
    ask = [sys.executable, "-m", "quaid.cli.main", "recall", "what milk does Maya take?", "--expect", "7k3qd"]
    done = vault.run("bisect", "run", *ask)
    assert f"{commits[6]} is the first bad commit" in done.stdout.decode()
    assert "7k3qd has rank 1 of" in done.stderr.decode()
    assert "7k3qd is not in the answer of 0 hits" in done.stderr.decode()
    skipped = vault.git("for-each-ref", "--format=%(objectname)", "refs/bisect/skip-*").split()
    assert skipped == [commits[4]]
    assert vault.status() == "?? mine.md"
