"""The notes that agents write, over MCP."""

from __future__ import annotations

from mcp_host import call, refusal, talk
from vaults import Vault


def test_a_note_is_made_read_changed_moved_and_deleted(vault: Vault) -> None:
    async def body(client):
        made = await call(client, "notes_create", path="Trips/Lisbon.md", text="# Lisbon\n\nIn May.\n")
        assert (made["outcome"], len(made["commit"])) == ("created", 40)
        read = await call(client, "notes_read", path="Trips/Lisbon.md")
        assert (read["text"], read["hash"]) == ("# Lisbon\n\nIn May.\n", made["hash"])
        done = await call(client, "notes_edit", path="Trips/Lisbon.md", old="May", new="June", expected=read["hash"])
        stale = await refusal(client, "notes_insert", path="Trips/Lisbon.md", line=0, text="x", expected=read["hash"])
        assert stale == "Trips/Lisbon.md has changed since you read it: nothing was overwritten. Read it again."
        await call(client, "notes_insert", path="Trips/Lisbon.md", line=3, text="- [ ] tickets", expected=done["hash"])
        moved = await call(client, "notes_rename", path="Trips", to="Reisen")
        assert (moved["outcome"], moved["path"]) == ("renamed", "Reisen")
        assert "Reisen/Lisbon.md" in (await call(client, "notes_list", folder="Reisen"))["paths"]
        assert (await call(client, "notes_delete", path="Reisen/Lisbon.md"))["outcome"] == "deleted"

    talk(vault.root, body)
    assert vault.status() == ""
    assert len(vault.git("log", "--format=%s").splitlines()) == 6


def test_what_is_refused_names_a_tool_for_the_next_step(vault: Vault) -> None:
    vault.write("Diary.md", "mine\n")
    vault.write("Trips/Trips.md", "---\nlocked: true\n---\n")
    vault.save()

    async def body(client):
        done = await call(client, "memory_store", text="Maya takes oat milk in her coffee")
        assert "memory_store" in await refusal(client, "notes_edit", path=done["path"], old="oat", new="soy")
        assert "owner's own note" in await refusal(client, "notes_edit", path="Diary.md", old="mine", new="ours")
        assert "locked" in await refusal(client, "notes_create", path="Trips/x.md", text="x")
        assert "../x.md" in await refusal(client, "notes_create", path="../x.md", text="x")

    talk(vault.root, body)
