"""What an agent does about memories that hold no longer: replace, bring back, see the newest, forget."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mcp_host import call, refusal, talk
from vaults import Vault

from quaid.agents.prompt_context import build_prompt_context
from quaid.local import sessions
from quaid.place import state_folder
from quaid.recall.blocks import pack

OLD, NEW = "01olderolderolderolderolder", "01newernewernewernewernewer"
LINEAR, JIRA = "The studio tracks its orders in Linear", "The studio tracks its orders in Jira"
EPISODE = """---
id: {0}
type: episode
session: s1
created: 2026-11-20T14:02:00Z
---
**Maya** (14:02): I live in Hamburg. ^t1

**Assistant** (14:03): Good to know. ^t2
"""


class TestReplacing:
    @pytest.mark.matrix
    @pytest.mark.parametrize("by", ["id", "end of the id", "words", "words as they are spoken"])
    def test_the_old_fact_holds_no_longer_from_the_same_commit_on(self, vault: Vault, by: str) -> None:
        async def body(client):
            old = await call(client, "memory_store", text=LINEAR, valid_from="2025-01-01")
            meant = {"id": old["id"], "end of the id": old["id"][-6:], "words": LINEAR,
                     "words as they are spoken": f"  {LINEAR.lower()}. "}[by]  # fmt: skip
            new = await call(client, "memory_store", text=JIRA, replaces=meant)
            assert (new["outcome"], new["replaced"]) == ("created", old["id"])
            assert LINEAR in new["hint"]
            (memory,) = (await call(client, "memory_recall", query="Where does the studio track orders?"))["memories"]
            assert memory["text"] == JIRA
            past = await call(client, "memory_recall", query="Where are orders tracked?", superseded=True)
            assert {m["text"] for m in past["memories"]} == {JIRA, f"[superseded] {LINEAR}"}
            note = await call(client, "memory_get", ref=old["id"])
            assert note["valid_until"] == note["date"]
            assert note["superseded_by"] in new["path"]

        talk(vault.root, body)
        assert vault.status() == ""
        assert vault.git("log", "-1", "--format=%s%n%b").splitlines()[0] == f"remember: {JIRA}"
        assert f"Replaces: {LINEAR}" in vault.git("log", "-1", "--format=%b")

    def test_it_can_be_taken_back(self, vault: Vault) -> None:
        async def body(client):
            old = await call(client, "memory_store", text=LINEAR)
            new = await call(client, "memory_store", text=JIRA, replaces=old["id"])
            await call(client, "memory_store", text=LINEAR.replace("Linear", "Notion"), replaces=new["id"])
            assert (await call(client, "memory_restore", ref=old["id"]))["outcome"] == "restored"
            note = await call(client, "memory_get", ref=old["id"])
            assert not {"superseded_by", "valid_until"} & note.keys()
            assert (await call(client, "memory_restore", ref=old["id"]))["outcome"] == "unchanged"

        talk(vault.root, body)
        assert vault.status() == ""

    def test_a_revert_takes_back_both(self, vault: Vault) -> None:
        with vault.memory() as memory:
            old = memory.remember(LINEAR)
            memory.remember(JIRA, replaces=LINEAR)
            vault.git("revert", "--no-edit", "HEAD")
            assert [hit.id for hit in memory.recall("orders of the studio").hits] == [old.id]

    def test_what_is_known_already_is_confirmed_and_the_old_one_still_goes(self, vault: Vault) -> None:
        with vault.memory() as memory:
            old, new = memory.remember(LINEAR), memory.remember(JIRA)
            done = memory.remember(JIRA, replaces=old.id)
            assert (done.outcome, done.id, done.replaced) == ("confirmed", new.id, old.id)
            assert memory.get(old.id).document.superseded_by

    def test_nothing_is_stored_where_what_it_replaces_is_not_known(self, vault: Vault) -> None:
        async def body(client):
            old = await call(client, "memory_store", text=LINEAR)
            said = await refusal(client, "memory_store", text=JIRA, replaces="orders in Linear")
            assert f"{old['id']}: {LINEAR}" in said
            assert "No fact that still holds" in await refusal(client, "memory_store", text=JIRA, replaces="submarines")
            await call(client, "memory_create_edge", subject="Maya Chen", relation="works_at", object="Acme")
            assert "No fact" in await refusal(client, "memory_store", text=JIRA, replaces="Maya Chen")
            assert "replace itself" in await refusal(client, "memory_store", text=LINEAR, replaces=old["id"])
            await call(client, "memory_store", text=JIRA, replaces=old["id"])
            again = LINEAR.replace("Linear", "Notion")
            assert "still holds" in await refusal(client, "memory_store", text=again, replaces=old["id"])

        talk(vault.root, body)
        assert "Notion" not in str(vault.notes())

    def test_what_begins_before_the_old_one_gives_it_no_end(self, vault: Vault) -> None:
        with vault.memory() as memory:
            old = memory.remember(LINEAR, valid_from="2026-05-01")
            memory.remember(JIRA, replaces=old.id, valid_from="2026-01-01")
            assert memory.get(old.id).document.valid_until is None


class TestMarks:
    """The older of two statements never passes for the newer one, wherever both are shown, or it alone."""

    def furnish(self, vault: Vault) -> None:
        fact = (
            "---\nid: {}\ntype: fact\ncreated: {}\n{}---\nMaya Chen lives in {}.\n\n- [[Maya Chen]] lives_in [[{}]]\n"
        )
        for note_id, day, place in ((OLD, "2025-03-01", "Hamburg"), (NEW, "2026-03-01", "Lisbon")):
            vault.write(f"facts/{place}.md", fact.format(note_id, day, "", place, place))

    def test_in_the_answer_of_a_tool(self, vault: Vault) -> None:
        self.furnish(vault)

        async def body(client):
            result = await client.call_tool("memory_recall", {"query": "Where does Maya Chen live?"})
            new, old = result.structured_content["memories"][:2]
            assert (new["id"], new["later_than"], old["earlier_than"]) == (NEW, [OLD], [NEW])
            text = result.content[0].text
            assert text.index("Lisbon") < text.index("Hamburg. (earlier than")
            listed = (await call(client, "memory_recall"))["memories"]
            assert [(memory["id"], memory.get("earlier_than")) for memory in listed] == [(NEW, None), (OLD, [NEW])]

        talk(vault.root, body)

    def test_before_a_prompt_even_where_the_newer_was_given_before(self, vault: Vault) -> None:
        self.furnish(vault)
        with vault.memory() as memory:
            settings = replace(memory.settings, hooks=replace(memory.settings.hooks, recall="on"))
            asked = (vault.root, settings, memory.recall, "Where does Maya Chen live?")
            both = build_prompt_context(*asked, "s1").text
            sessions.record(state_folder(vault.root), "s2", {"ids": [NEW]})
            alone = build_prompt_context(*asked, "s2").text
        assert both.index("Lisbon") < both.index("Hamburg. (earlier than 2026-03-01 “Maya Chen lives in Lisbon.”)")
        assert "Maya Chen lives in Hamburg. (earlier than 2026-03-01 “Maya Chen lives in Lisbon.”)" in alone

    def test_a_stale_turn_comes_behind_the_fact_that_replaced_what_was_learned_from_it(self, vault: Vault) -> None:
        vault.write("episodes/2026/11/20-1402-2f1c9a.md", EPISODE.format("01episode"))
        vault.write("facts/old.md", f"---\nid: {OLD}\ntype: fact\nturns: ['[[20-1402-2f1c9a#^t1]]']\n---\nMaya lives "
                    "in Hamburg.\n")  # fmt: skip
        with vault.memory() as memory:
            asked = {"kinds": {"turn"}, "with_neighbours": True}
            (before, *_) = memory.recall("Who lives in Hamburg?", **asked).hits
            new = memory.remember("Maya lives in Lisbon by the river", replaces=OLD)
            (first, after, *_) = memory.recall("Who lives in Hamburg?", **asked).hits
            settings = replace(memory.settings, hooks=replace(memory.settings.hooks, recall="on"))
            prompt = build_prompt_context(vault.root, settings, memory.recall, "Who lives in Hamburg?", "s1").text
        assert (before.id, before.earlier_than) == ("20-1402-2f1c9a#t1", ())
        assert (after.id, after.earlier_than) == (before.id, (new.id,))
        assert (first.id, first.later_than) == (new.id, (before.id,))
        text = pack([first, after], 200).text
        assert text.index("by the river") < text.index("I live in Hamburg. (replaced by ")
        assert "“Maya lives in Lisbon by the river”" in text
        before, found, _ = prompt.partition("by the river")
        assert found
        assert "Hamburg" not in before


class TestNewest:
    def test_without_a_question_the_newest_come_first(self, vault: Vault) -> None:
        fact = "---\nid: {0}\ntype: fact\ncreated: 2026-{1}-01T10:00:00Z\n{2}---\n{0} was said\n"
        for name, month, more in (("may", "05", ""), ("july", "07", ""), ("june", "06", "superseded_by: '[[july]]'\n")):
            vault.write(f"facts/{name}.md", fact.format(name, month, more))
        vault.write("episodes/2026/11/20-1402-2f1c9a.md", EPISODE.format("01episode"))

        async def body(client):
            async def newest(**asked):
                found = await call(client, "memory_recall", **asked)
                assert "warning" not in found
                assert not any("score" in memory for memory in found["memories"])
                return [memory["text"] for memory in found["memories"]]

            assert await newest() == ["july was said", "may was said"]
            assert await newest(query=" ", recent=True, limit=1) == ["july was said"]
            assert await newest(superseded=True, date_to="2026-06-30") == ["[superseded] june was said", "may was said"]
            assert await newest(kinds=["turn"]) == ["Good to know.", "I live in Hamburg."]
            asked = (await call(client, "memory_recall", query="said", recent=True))["memories"]
            assert [memory["id"] for memory in asked] == ["july", "may"]
            assert all(memory["score"] > 0 for memory in asked)
            assert "yet" in (await call(client, "memory_recall", kinds=["journal"]))["warning"]
            words = await call(client, "memory_recall", query='"july was said"', kinds=["fact"])
            assert words["memories"][0]["id"] == "july"

        talk(vault.root, body)
        with vault.memory() as memory:
            used = {each for each, _ in memory.answers.records.most_used(5)}
        assert used == {"july", "may"}  # only by the question: what is listed was not looked for


class TestForgetting:
    def test_a_whole_person_is_forgotten_by_its_id_alone(self, vault: Vault) -> None:
        async def body(client):
            await call(client, "memory_create_edge", subject="Maya Chen", relation="works at", object="Acme")
            await call(client, "memory_store", text="Maya Chen takes oat milk in her coffee")
            said = await refusal(client, "memory_forget", ref="Maya Chen")
            assert "the note of Maya Chen with its aliases and 1 relation; 1 note about it would stay" in said
            note = await call(client, "memory_get", ref="Maya Chen")
            assert said.endswith(f"with its id: {note['id']}")
            assert (await call(client, "memory_forget", ref=note["id"]))["outcome"] == "forgotten"

        talk(vault.root, body)

    def test_a_whole_conversation_is_forgotten_by_its_id_alone(self, vault: Vault) -> None:
        vault.write("episodes/2026/11/20-1402-2f1c9a.md", EPISODE.format("01episode"))
        vault.write("facts/a.md", "---\nid: a\ntype: fact\nturns: ['[[20-1402-2f1c9a#^t1]]']\n---\nThe user lives "
                    "in Hamburg.\n")  # fmt: skip
        vault.save()

        async def body(client):
            for name in ("s1", "20-1402-2f1c9a"):
                said = await refusal(client, "memory_forget", ref=name)
                assert "the conversation of 2026-11-20 with its 2 turns; 1 fact learned from it would stay" in said
                assert said.endswith(": 01episode")
            assert (await call(client, "memory_forget", ref="20-1402-2f1c9a#t1"))["outcome"] == "forgotten"
            assert (await call(client, "memory_forget", ref="01episode"))["outcome"] == "forgotten"

        talk(vault.root, body)
