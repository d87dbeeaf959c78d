"""What a conversation replaces: the owner's later words win at once, other people's are left to a question."""

from __future__ import annotations

import re

import pytest
from extraction_runs import quaid
from replay import Replay, facts_of, write_talk
from vaults import assert_verified

from quaid.vault import frontmatter

pytestmark = pytest.mark.usefixtures("calm", "quick")

BUDGET = "Maya's budget for the bike is 580 euros."


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setenv("QUAID_OWNER_NAME", "Maya")
    replay = Replay({})
    for name, value in replay.environ().items():
        monkeypatch.setenv(name, value)
    yield replay
    replay.close()


@pytest.fixture
def learn(vault, service, tmp_path):
    """Extract one turn, or turns, of a session on a day, with the facts that a model finds."""

    def extract(day, said, *facts, speaker="Maya", **how):
        turns = [said] if isinstance(said, str) else said
        session = f"s{day}"
        service.answers[session] = how.get("answer") or {"facts": list(facts)}
        path = write_talk(tmp_path / f"{session}.jsonl", *turns, session=session, started=f"2026-11-{day:02}T14:00:00Z")
        if speaker != "Maya":
            path.write_text(path.read_text().replace('"Maya"', f'"{speaker}"'))
        with vault.memory() as memory:
            return memory.extract(path)

    return extract


def fact(text, turn="t1", **fields):
    return {"text": text, "turns": [turn], **fields}


def number_of(text):
    """A fact that `replaces` or `confirms` the related one that contains `text`, which is found in the prompt."""

    def find(prompt):
        return next(n for n, line in re.findall(r"(?m)^(\d+)\. (.*)$", prompt) if text in line)

    return find


def head(vault, words):
    (found,) = [data.decode() for name, data in vault.notes().items()
                if name.startswith("facts/") and words in frontmatter.parse(data.decode()).body]  # fmt: skip
    return dict(frontmatter.parse(found).fields)


def answering(mark, of, **new):
    """An answer whose only fact names the related fact `of`."""

    def answer(prompt):
        return {"facts": [{**fact(**new), mark: int(number_of(of)(prompt.split("<related>")[1]))}]}

    return answer


def test_the_prompt_shows_what_a_conversation_may_be_replacing(vault, service, learn):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET), fact("Maya takes oat milk in her coffee."))
    learn(12, "About the bike: make it 620.")
    related = service.prompts[-1].split("<related>")[1].split("</related>")[0]
    assert "1. Maya's budget for the bike is 580 euros. (said 2026-11-10 by Maya)" in related


def test_a_correction_of_the_owner_wins_at_once(vault, service, learn):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    new = "Maya's budget for the bike is 620 euros."
    done = learn(12, "Make it 620 for the bike.", answer=answering("replaces", "580", text=new))
    assert [(found.outcome, found.text) for found in done.facts] == [("created", new), ("replaced", BUDGET)]
    old, now = head(vault, "580"), head(vault, "620")
    assert old["superseded_by"].startswith("[[mayas-budget-for-the-bike-is-620-euros")
    assert (old["valid_until"], now["valid_from"], now.get("superseded_by")) == ("2026-11-12", "2026-11-12", None)
    assert not (vault.root / "review").exists()
    with vault.memory() as memory:
        texts = [hit.text for hit in memory.recall("budget for the bike").hits if hit.kind == "fact"]
        assert texts[0] == new
        assert_verified(memory)


def test_undo_takes_a_replacement_back(vault, service, learn, capsys):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    learn(12, "Make it 620 for the bike.",
          answer=answering("replaces", "580", text="Maya's budget for the bike is 620 euros."))  # fmt: skip
    assert quaid(capsys, vault, "undo", vault.head())[0] == 0
    assert "superseded_by" not in head(vault, "580")


@pytest.mark.parametrize(("said", "fields", "speaker"), [
    (["What may the bike cost?", "Your budget is 620 euros."], {"turn": "t2"}, "Maya"),
    ("Maya's budget for the bike is 620 now.", {}, "Tom"),
])  # fmt: skip
def test_what_others_say_of_the_owner_replaces_nothing(vault, service, learn, said, fields, speaker):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    new = "Maya's budget for the bike is 620 euros."
    learn(12, said, answer=answering("replaces", "580", text=new, **fields), speaker=speaker)
    assert "superseded_by" not in head(vault, "580")
    assert head(vault, "620")["status"] == "pending"


def test_the_owner_has_their_other_names_too(vault, service, learn, monkeypatch):
    monkeypatch.setenv("QUAID_OWNER_NAME", "Maya Chen")
    vault.write("entities/Maya Chen.md", "---\nid: 01m\ntype: person\naliases: [Maya, Mimi]\n---\n")
    vault.save("Maya")
    learn(10, "The bike may cost 580 euros.", fact(BUDGET), speaker="User")
    new = "Maya's budget for the bike is 620 euros."
    learn(12, "Make it 620 for the bike.", answer=answering("replaces", "580", text=new), speaker="Mimi")
    assert "superseded_by" in head(vault, "580")


def test_a_short_answer_is_compared_with_the_question_of_the_assistant(vault, service, learn):
    others = [
        f"Maya's {thing} is very old." for thing in ("car", "house", "boat", "coat", "table", "piano", "oven", "hat")
    ]
    learn(10, "Things.", fact("The wedding of Maya and Tom takes place on 11 September."), *map(fact, others))
    learn(12, ["Hello!", "Is the wedding still on 11 September?", "No, a week later."])
    related = service.prompts[-1].split("<related>")[1].split("</related>")[0]
    assert "1. The wedding of Maya and Tom" in related


def test_what_is_pinned_is_not_replaced_without_a_question(vault, service, learn):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    (path,) = vault.root.glob("facts/**/*580*.md")
    path.write_text(path.read_text().replace("status: pending", "status: pending\npinned: true"))
    vault.save("pinned")
    learn(12, "Make it 620.", answer=answering("replaces", "580", text="Maya's budget for the bike is 620 euros."))
    assert "superseded_by" not in head(vault, "580")


@pytest.mark.parametrize("marks", [
    {"replaces": 9}, {"replaces": 0}, {"replaces": "x"}, {"replaces": -1}, {"replaces": None}, {"replaces": "f7"},
    {"replaces": 1, "confirms": 1}, {"replaces": "f1"},
])  # fmt: skip
def test_a_number_that_names_no_fact_replaces_none(vault, service, learn, marks):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    learn(12, "Make it 620.", fact("Maya's budget for the bike is 620 euros.", **marks))
    assert "superseded_by" not in head(vault, "580")
    assert "superseded_by" not in head(vault, "620")


def test_an_older_statement_replaces_no_later_one(vault, service, learn):
    learn(20, "The bike may cost 580 euros.", fact(BUDGET))
    learn(12, "620 for the bike.", answer=answering("replaces", "580", text="Maya's budget for the bike is 620 euros."))
    assert "superseded_by" not in head(vault, "580")


def test_a_correction_within_a_session_leaves_the_last_word(vault, service, learn):
    said = ["The exam is on 12 December.", "Noted.", "No wait, on the 19th.", "Ok.", "Sorry, the 20th."]
    days = (12, 19, 20)
    texts = [f"Maya's exam is on {day} December 2026." for day in days]
    marks = [{}, {"replaces": "f1"}, {"replaces": "f2"}]
    turns = ["t1", "t3", "t5"]
    learn(10, said, *(fact(text, turn, **mark) for text, turn, mark in zip(texts, turns, marks, strict=True)))
    heads = [head(vault, f"{day} December") for day in days]
    assert [("superseded_by" in one) for one in heads] == [True, True, False]
    assert "19-december" in heads[0]["superseded_by"]
    assert "20-december" in heads[1]["superseded_by"]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_facts_that_replace_the_same_one_the_later_holds(vault, service, learn, order):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    texts = [f"Maya's budget for the bike is {euros} euros." for euros in (600, 620)]
    said = ["Make it 600 for the bike.", "Sure.", "No, 620."]
    found = [fact(text, turn, replaces=1) for text, turn in zip(texts, ("t1", "t3"), strict=True)]
    learn(12, said, *found[::order])
    assert "600" in head(vault, "580")["superseded_by"]
    assert "620" in head(vault, "600 euros")["superseded_by"]
    assert "superseded_by" not in head(vault, "620")


def test_what_was_said_earlier_corrects_nothing_that_was_said_later(vault, service, learn):
    said = ["The exam is on 12 December.", "Noted.", "No wait, on the 19th."]
    texts = [f"Maya's exam is on {day} December 2026." for day in (12, 19)]
    learn(10, said, fact(texts[1], "t3"), fact(texts[0], "t1", replaces="f1"))
    assert not any("superseded_by" in head(vault, f"{day} December") for day in (12, 19))


def test_a_state_that_begins_later_only_ends_the_one_before(vault, service, learn):
    learn(10, "I live in Porto.", fact("Maya lives in Porto."))
    learn(12, "In March I move to Berlin.", answer=answering(
        "replaces", "Porto", text="Maya lives in Berlin from March 2027.", valid_from="2027-03-01"))  # fmt: skip
    old = head(vault, "Porto")
    assert ("superseded_by" in old, old["valid_until"]) == (False, "2027-03-01")


@pytest.mark.parametrize(("old", "new", "speakers", "is_replaced"), [
    ("Tom works at Acme.", "Tom works at Bosch.", ("Tom", "Tom"), True),
    ("Tom works at Acme.", "Tom works at Bosch.", ("Maya", "Tom"), True),
    ("Tom works at Acme.", "Tom works at Bosch.", ("Tom", "Maya"), True),
    ("The dinner begins at 7 pm.", "The dinner begins at 8 pm.", ("Tom", "Julia"), True),
    ("The dinner begins at 7 pm.", "The dinner begins at 8 pm.", ("Maya", "Julia"), False),
    ("Maya works at Acme.", "Maya works at Bosch.", ("Tom", "Julia"), False),
    ("Tom works at Acme.", "Julia works at Bosch.", ("Maya", "Maya"), False),
])  # fmt: skip
def test_who_may_replace_what(vault, service, learn, old, new, speakers, is_replaced):
    learn(10, old, fact(old), speaker=speakers[0])
    learn(12, new, fact(new, replaces=1), speaker=speakers[1])
    assert ("superseded_by" in head(vault, old)) == is_replaced


def test_a_repetition_in_other_words_confirms_what_is_known(vault, service, learn):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    done = learn(12, "As I said, 580 euros for the bike.",
                 answer=answering("confirms", "580", text="The budget of Maya for the bike is 580 euros."))  # fmt: skip
    assert [found.outcome for found in done.facts] == ["confirmed"]
    assert head(vault, "580")["confirmations"] == "1"


def test_what_says_more_than_the_fact_that_it_confirms_is_stored(vault, service, learn):
    learn(10, "The bike may cost 580 euros.", fact(BUDGET))
    done = learn(12, "580 euros for the bike, with the lock.",
                 answer=answering("confirms", "580", text="Maya's budget for the bike with a lock is 580 euros."))  # fmt: skip
    assert [found.outcome for found in done.facts] == ["created"]


def test_what_is_not_meant_literally_is_no_fact(vault, service, learn):
    done = learn(10, "I eat a whole horse each morning.", fact("Maya eats a horse each morning.", non_literal=True))
    assert (done.facts, done.left_out, done.quarantined) == ((), (), None)


def test_a_fact_that_denies_its_turn_goes_back(vault, service, learn):
    wrong, right = fact("Maya likes mushrooms."), fact("Maya does not like mushrooms.")
    service.script = ['{"facts": [{"text": "Maya likes mushrooms.", "turns": ["t1"]}]}']
    done = learn(10, "I don't like mushrooms.", right)
    assert [found.text for found in done.facts] == [right["text"]]
    assert len(service.prompts) == 2
    done = learn(11, "I do not like mushrooms at all.", wrong)
    assert float(head(vault, "Maya likes mushrooms")["confidence"]) == 0.5


def test_an_answer_of_today_in_whole_objects_is_read(vault, service, learn):
    answer = facts_of("Maya adopted a quokka called Biscuit.") | {
        "names": [{"name": "Biscuit", "kind": "pet", "aliases": ["Bisc"]}],
        "snippets": {"USER.md": ["likes quokkas"]}, "journal": {"SOUL.md": "Maya was happy."},
    }  # fmt: skip
    answer["facts"][0]["edges"] = [{"subject": "Maya", "relation": "has_pet", "object": "Biscuit"}]
    done = learn(10, "I adopted a quokka called Biscuit, or Bisc.", answer=answer)
    assert (done.edges, done.snippets, done.journal) == (1, {"USER.md": 1}, ("SOUL.md",))
    assert "type: pet" in (vault.root / "entities/Biscuit.md").read_text()


def test_a_plan_that_is_given_up_replaces_all_that_was_arranged_for_it(vault, service, learn):
    texts = [
        "Maya moves into the flat in Palermo soon.",
        "Maya pays a deposit of 800 euros for the flat in Palermo.",
        "Maya likes the bakery in Palermo.",
    ]
    learn(10, "\n".join(texts), *map(fact, texts))

    def answer(prompt):
        numbers = [number_of(words)(prompt.split("<related>")[1]) for words in ("moves into", "deposit")]
        return {"facts": [fact("Maya lost the flat in Palermo.", replaces=[*numbers, "99"])]}

    learn(12, "The flat in Palermo is gone, so no deposit and no bakery.", answer=answer)
    gone = [words for words in ("moves into", "deposit", "bakery") if "superseded_by" in head(vault, words)]
    assert gone == ["moves into", "deposit"]
