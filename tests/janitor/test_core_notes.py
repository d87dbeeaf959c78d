"""Core notes take back what is not true any more, and hold what a session shows."""

from __future__ import annotations

import pytest
from janitor_context import Known, carry_out, context_of

from quaid.janitor.tasks.core_notes import adds_outdated, list_replaced, plan_snippets, plan_workspace
from quaid.model import Edit, Use
from quaid.recall.visibility import list_cut

FACT = "---\nid: 01{name}\nstatus: active\nowner: default\nconfidence: 0.9\ncreated: 2026-10-01T10:00:00Z\n{more}---\n{text}\n"
USER = "# User\n\n## Learned\n\n- Wants bullet points\n- Lives at Lindenweg 4 in Kiel\n- Likes tea\n"
SEEN = "## Reset - 2026-11-19 09:00\n\n"


def fact(vault, name, text, more=""):
    vault.write(f"facts/{name}.md", FACT.format(name=name, text=text, more=more))


def save(vault, *, by_janitor=True):
    vault.save()
    if by_janitor:
        vault.git("commit", "-q", "--amend", "--no-edit", "--author=Quaid Janitor <janitor@localhost>")


def plan(memory, service, task=plan_snippets, **options):
    models = service.models("anthropic") if service else None
    return list(task(context_of(memory, models=models, is_committed=True, **options)))


def answer(*given):
    return {"observations": [{"n": n, "reason": "It is so.", **one} for n, one in enumerate(given, 1)]}


def question(service):
    content = service.asked[-1]["messages"][0]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def number(service, line):
    return next(int(each.split("\t")[0]) for each in question(service).splitlines() if each.endswith(f"\t{line}"))


@pytest.mark.parametrize("by_janitor", [True, False])
def test_an_observation_takes_the_place_of_the_line_it_takes_back(vault, service, by_janitor):
    vault.write("USER.md", USER)
    save(vault, by_janitor=by_janitor)
    vault.write("snippets/USER.snippets.md", f"{SEEN}- Wants no bullet points\n- Rows at dawn\n")
    service.answers = {"snippets": answer({"verdict": "fold", "replaces": [5]}, {"verdict": "fold"})}
    with vault.memory() as memory:
        decisions = plan(memory, service)
        assert number(service, "- Wants bullet points") == 5
        assert len(decisions) == (1 if by_janitor else 2), (
            "a line of the owner's is another decision: it is asked about"
        )
        assert all(decision.kind == "fold" for decision in decisions)
        carry_out(memory, decisions[:1] if by_janitor else [])
    if by_janitor:
        after = USER.replace("Wants bullet points", "Wants no bullet points") + "- Rows at dawn\n"
        assert (vault.root / "USER.md").read_text() == after
        assert '- before: "Wants bullet points"\n- after: "Wants no bullet points". It is so.' in decisions[0].detail
        assert decisions[0].subject == "update USER.md: change 1, add 1"
        assert not (vault.root / "snippets/USER.snippets.md").exists()


def test_a_line_that_is_replaced_must_be_a_list_item_of_the_same_note(vault, service):
    vault.write("USER.md", USER)
    save(vault)
    vault.write("snippets/USER.snippets.md", f"{SEEN}- Wants no bullet points\n")
    service.answers = {"snippets": answer({"verdict": "fold", "replaces": [1]})}
    with vault.memory() as memory:
        (fold,) = plan(memory, service)
    assert fold.edits[0].after.decode() == f"{USER}- Wants no bullet points\n"
    assert len(service.asked) == 2


def test_all_core_notes_are_one_question(vault, service):
    vault.write("snippets/USER.snippets.md", f"{SEEN}- Rows at dawn\n")
    vault.write("snippets/MEMORY.snippets.md", f"{SEEN}- The boat is blue\n")
    service.answers = {"snippets": answer({"verdict": "fold"}, {"verdict": "fold"})}
    with vault.memory() as memory:
        assert sorted(decision.subject for decision in plan(memory, service)) == [
            "update MEMORY.md: add 1",
            "update USER.md: add 1",
        ]
    assert len(service.asked) == 1


def test_a_line_whose_fact_was_replaced_says_what_is_true_now(vault, service):
    fact(vault, "kiel", "Lives at Lindenweg 4 in Kiel.", "superseded_by: husum\n")
    fact(vault, "husum", "Lives at Am Markt 7 in Husum.")
    vault.write("USER.md", USER)
    save(vault)
    with vault.memory() as memory:
        (fold,) = plan(memory, service)
        assert service.asked == [], "the line says what the fact said: no model is needed"
        assert fold.edits[0].after.decode() == USER.replace("Lindenweg 4 in Kiel", "Am Markt 7 in Husum")
        assert "before" in fold.detail
        carry_out(memory, [fold])
        assert plan(memory, service) == []


@pytest.mark.parametrize(("verdict", "after"), [
    ({"verdict": "rewrite", "text": "Lives in Husum by the market"}, "- Lives in Husum by the market ([[husum|fact]])\n"),
    ({"verdict": "discard"}, ""),
    ({"verdict": "fold"}, "- At home in Kiel, at the Lindenweg ([[kiel|fact]])\n"),
    ({"verdict": "rewrite", "text": "Lives in Porto by the sea"}, "- At home in Kiel, at the Lindenweg ([[kiel|fact]])\n"),
])  # fmt: skip
def test_a_line_in_other_words_is_judged_once(vault, service, verdict, after):
    fact(vault, "kiel", "Maya lives at Lindenweg 4 in Kiel.", "superseded_by: husum\n")
    fact(vault, "husum", "Maya lives at the market, Am Markt 7, in Husum.")
    text = "# User\n\n- Likes tea\n- At home in Kiel, at the Lindenweg ([[kiel|fact]])\n"
    vault.write("USER.md", text)
    save(vault)
    service.answers = {"snippets": answer(verdict)}
    judged = Known()
    with vault.memory() as memory:
        decisions = plan(memory, service, judged=judged)
        assert '"now":"Maya lives at the market, Am Markt 7, in Husum."' in question(service)
        carry_out(memory, decisions)
        assert (vault.root / "USER.md").read_text() == f"# User\n\n- Likes tea\n{after}"
        asked = len(service.asked)
        assert plan(memory, service, judged=judged) == []
        assert len(service.asked) == asked


def test_what_a_session_shows_is_what_matters_and_not_what_is_new(vault, service):
    old = [f"- Collects stamp number {n} of the series from {1900 + n}, as was mentioned over lunch" for n in range(60)]
    mine = "- Wrote this one herself, long ago, and it stays where it is"
    vault.write("USER.md", f"# User\n\n{mine}\n")
    save(vault, by_janitor=False)
    fact(vault, "become", "Maya wants to become a pilot before she is fifty.")
    text = "\n".join(["# User", "", mine, "- Wants to become a pilot before she is fifty", *old, ""])
    vault.write("USER.md", text)
    save(vault)
    with vault.memory() as memory:
        (fold,) = plan(memory, service, use={"01become": Use(accesses=10, last_access="2026-11-19T10:00:00Z")})
        assert plan(memory, service, plan_workspace) == [], "only the owner's own lines are asked about"
        carry_out(memory, [fold])
        after = (vault.root / "USER.md").read_text()
        assert mine in after
        assert "become a pilot" in after
        assert after.index(old[0]) < after.index(old[5]), "of what matters as little, what was first stays"
        assert old[-1] not in after
        assert list_cut([("USER.md", after)], memory.settings.hooks) == []
        assert list_cut([("USER.md", f"{after}{old[-1]}\n")], memory.settings.hooks) != []
        assert plan(memory, service) == []
    assert fold.subject.startswith("update USER.md: shorten by ")
    assert not fold.always_asks
    assert service.asked == []


def test_a_line_that_would_be_out_of_date_is_recognised(vault):
    fact(vault, "kiel", "Maya lives at Lindenweg 4 in Kiel.", "superseded_by: husum\n")
    fact(vault, "husum", "Maya lives at Am Markt 7 in Husum.")
    with vault.memory() as memory:
        replaced = list_replaced(memory.index(), "2026-11-20")
    for new, is_outdated in (
        ("Lives at Lindenweg 4 in Kiel", True),
        ("Lives at Am Markt 7 in Husum", False),
        ("Likes tea", False),
    ):
        assert adds_outdated(Edit("USER.md", b"# User\n", f"# User\n{new}\n".encode()), replaced) == is_outdated
    same = b"# User\n- Lives in Kiel, Lindenweg 4\n"
    assert not adds_outdated(Edit("USER.md", same, same + b"- Likes tea\n"), replaced)
