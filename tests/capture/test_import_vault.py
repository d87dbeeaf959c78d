"""An import as a whole: what it writes into a real vault, that it can be done again, and what it never does."""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from vaults import assert_verified, calm, copy_vault, refused, texts, vault

from quaid.capture.facts import NewFact
from quaid.capture.importer import ImportOptions, derive_id, import_from, list_facts
from quaid.capture.importers.import_content import ImportContent
from quaid.cli.main import main
from quaid.errors import BadInputError
from quaid.place import state_folder
from quaid.vault import notes

__all__ = ["calm", "vault"]

NOTE = """---
title: {title}
type: {type}
permalink: {permalink}
created: 2025-02-03T10:00:00Z
---
Written down in the winter.

## Observations
- [{category}] {said} #studio

## Relations
- works_at [[Acme]]
- mother_of [[Tom]]
"""


def admit(text):
    return text.replace("s3cr3t", "[redacted: key]"), ("key",) if "s3cr3t" in text else ()


def take(memory, source, **options):
    source = source if hasattr(source, "read") else Path(source)
    return import_from(memory, source, ImportOptions(**options), redact=admit)


@pytest.fixture
def project(tmp_path):
    """A project of basic-memory."""
    folder = tmp_path / "private" / "my-notes"
    (folder / "people").mkdir(parents=True)
    about = {"title": "Maya Chen", "type": "person", "permalink": "people/maya-chen", "category": "preference"}
    maya = NOTE.format(**about, said="Maya Chen likes tea")
    (folder / "people" / "maya-chen.md").write_text(maya)
    (folder / "kiln.md").write_text(
        "---\ntitle: Kiln\npermalink: kiln\n---\n- [fact] fires at 1200 degrees\n- part_of [[people/maya-chen]]\n"
    )
    return folder


def test_facts_entities_and_edges_are_written_as_one_commit(vault, project):
    with vault.memory() as memory:
        before = vault.head()
        done = take(memory, project)
        assert vault.git("rev-parse", "HEAD^") == before
        assert vault.git("log", "-1", "--format=%s") == "import: 2 facts, 4 entities and 3 edges from basic-memory"
        assert "my-notes" in vault.git("log", "-1", "--format=%b")
        assert str(project.parent) not in vault.git("log", "-1", "-p")
        assert vault.status() == ""
        assert done.counts == {"facts": 2, "entities": 4, "edges": 3}
        assert_verified(memory)
        assert texts(memory, "who likes tea?")[0] == "Maya Chen likes tea"
        fact = notes.parse_note("f", (vault.root / memory.recall("likes tea").hits[0].path).read_bytes())
        assert (fact.source, fact.status, fact.type, fact.owner) == ("import", "active", "preference", "default")
        assert fact.created == "2025-02-03T10:00:00Z"
        assert fact.keywords == ("studio",)
        assert "imported_from: basic-memory people/maya-chen" in (vault.root / fact_path(vault)).read_text()


def fact_path(vault):
    return next(path for path in vault.notes() if path.startswith("facts/2025/02/"))


def test_names_in_statements_lead_to_the_notes_made_with_them(vault, project):
    with vault.memory() as memory:
        take(memory, project)
    assert "[[Maya Chen]] likes tea" in (vault.root / fact_path(vault)).read_text()
    entity = (vault.root / "entities/Maya Chen.md").read_text()
    assert "aliases: [people/maya-chen]" in entity
    assert entity.endswith("\nWritten down in the winter.\n\n- works_at [[Acme]]\n- parent_of [[Tom]]\n")


def test_an_import_done_twice_changes_nothing(vault, project):
    with vault.memory() as memory:
        take(memory, project)
        kept, head = vault.notes(), vault.head()
        again = take(memory, project)
        assert (vault.notes(), vault.head()) == (kept, head)
        assert (again.counts, again.known, again.commit) == ({}, 2, None)


def test_an_import_comes_out_the_same_on_two_machines(vault, project, tmp_path):
    source = project / "people"
    other = copy_vault(tmp_path / "other")
    for each in (vault, other):
        with each.memory() as memory:
            take(memory, source)
    of_import = {path for path in vault.notes() if path.startswith("facts/")}
    assert of_import
    assert {path: vault.notes()[path] for path in of_import} == {path: other.notes()[path] for path in of_import}


def test_what_is_new_in_the_source_is_added_and_what_the_owner_rewrote_stays(vault, project):
    with vault.memory() as memory:
        take(memory, project)
        path = fact_path(vault)
        rewritten = (vault.root / path).read_text().replace("likes tea", "likes green tea best")
        vault.write(path, rewritten)
        vault.save()
        with (project / "kiln.md").open("a") as file:
            file.write("- [fact] stands in the cellar\n- located_in [[Leipzig]]\n")
        done = take(memory, project)
        assert done.counts == {"facts": 1, "entities": 1, "edges": 1}
        assert (vault.root / path).read_text() == rewritten
        assert (vault.root / "entities/Kiln.md").read_text().endswith("- located_in [[Leipzig]]\n")


def test_a_fact_the_vault_knows_by_its_words_is_left_alone(vault, tmp_path):
    with vault.memory() as memory:
        path = memory.remember("Maya likes tea").path
        kept = (vault.root / path).read_bytes()
        source = tmp_path / "MEMORY.md"
        source.write_text("- Maya likes tea\n- Maya likes   tea\n- Maya likes TEA\n- Tom likes soup\n")
        done = take(memory, source)
        assert (done.counts, done.known) == ({"facts": 2}, 1)
        assert done.left_out == {"statements made twice": 1}
        assert (vault.root / path).read_bytes() == kept


def test_the_same_words_of_another_owner_are_another_fact(vault, tmp_path):
    source = tmp_path / "mem0.json"
    source.write_text(json.dumps([{"memory": "I like tea", "user_id": owner} for owner in ("maya", "tom")]))
    with vault.memory() as memory:
        assert take(memory, source, keep_owners=True).counts == {"facts": 2}
        assert take(memory, source, owner="ben", project="pottery").counts == {"facts": 1}
    ben = next(data for data in vault.notes().values() if b"owner: ben" in data)
    assert b"project: pottery" in ben


def test_edges_are_added_to_the_note_that_is_there(vault, tmp_path):
    theirs = "---\ntype: person\naliases: [Maya]\n---\nShe is a potter.\r\n\r\n- works_at [[Acme]]\r\n"
    vault.write("entities/Maya Chen.md", theirs)
    vault.save()
    source = tmp_path / "m.json"
    rows = [("maya", "works_at", "acme"), ("tom", "friend_of", "maya"), ("tea", "liked_by", "maya"), ("x", "is", "x")]
    relations = [{"source": a, "relationship": b, "target": c} for a, b, c in rows]
    source.write_text(json.dumps({"results": [{"memory": "Maya has a kiln"}], "relations": relations}))
    with vault.memory() as memory:
        done = take(memory, source)
        assert done.left_out == {"relations without two names": 1}
        written = (theirs + "- friend_of [[tom]]\r\n- prefers [[tea]]\r\n").encode()
        assert (vault.root / "entities/Maya Chen.md").read_bytes() == written
        assert not (vault.root / "entities/maya.md").exists()
        assert take(memory, source).commit is None


def test_a_dry_run_says_what_would_be_and_writes_nothing(vault, project):
    kept, head = vault.notes(), vault.head()
    with vault.memory() as memory:
        told = take(memory, project, dry_run=True)
        assert (told.counts, told.commit) == ({"facts": 2, "entities": 4, "edges": 3}, None)
        assert told.texts["new"] == ["Kiln: fires at 1200 degrees", "Maya Chen likes tea"]
        assert (vault.notes(), vault.head(), vault.strays()) == (kept, head, [])


def test_no_secret_is_written_and_each_is_reported(vault, tmp_path):
    source = tmp_path / "MEMORY.md"
    source.write_text("- The key of the shop is s3cr3t\n- Maya likes tea\n")
    with vault.memory() as memory:
        done = take(memory, source)
    assert done.redacted == {"MEMORY.md": ("key",)}
    assert b"The key of the shop is [redacted: key]" in b"".join(vault.notes().values())
    assert "s3cr3t" not in vault.git("log", "-p")


def test_a_killed_import_is_finished_and_told_by_the_next_call(vault, project, monkeypatch):
    with vault.memory() as memory:
        with monkeypatch.context() as patch:
            patch.setattr("quaid.vault.files.write_note", lambda *_: os._exit(9))
            if not (child := os.fork()):
                try:
                    take(memory, project)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert (state_folder(vault.root) / "pending.json").exists()
        done = take(memory, project)
        assert done.counts == {"facts": 2, "entities": 4, "edges": 3}
        assert vault.status() == ""
        assert take(memory, project).commit is None


# -- a folder of notes -----------------------------------------------------------------------------------------------


@pytest.fixture
def garden(tmp_path):
    """An Obsidian vault."""
    folder = tmp_path / "Garden"
    for path, data in {
        ".obsidian/app.json": b"{}",
        ".git/config": b"",
        "Ideas/Beds.md": b"\xef\xbb\xbf---\r\ntags: [x]\r\n---\r\nTomatoes like [[Sun]].\r\n",
        "Sun.md": b"Sun in the morning.",
        "pictures/bed.png": b"\x89PNG",
        "Other vault/quaid.toml": b"",
        "Other vault/Secret.md": b"Not this.",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / "Loop").symlink_to(folder)
    return folder


def test_notes_are_copied_as_they_are_and_links_lead_where_they_led(vault, garden):
    with vault.memory() as memory:
        done = take(memory, garden)
        assert done.counts == {"notes": 2}
        assert done.left_out == {"files that are not markdown": 1, "vaults of their own": 1}
        beds = vault.notes()["notes/Garden/Ideas/Beds.md"]
        assert beds == (garden / "Ideas/Beds.md").read_bytes()
        assert memory.get("Sun").document.path == "notes/Garden/Sun.md"
        assert take(memory, garden).commit is None
        assert take(memory, garden, into="garden").counts == {"notes": 2}


def test_a_note_that_would_overwrite_another_is_reported_and_skipped(vault, garden):
    vault.write("notes/Garden/Sun.md", "My own words on the sun.")
    vault.write("entities/Beds.md", "---\ntype: thing\n---\n")
    vault.save()
    with vault.memory() as memory:
        done = take(memory, garden)
    assert done.counts == {"notes": 1}
    assert done.clashes == ["notes/Garden/Sun.md"]
    assert done.namesakes == [("notes/Garden/Ideas/Beds.md", "entities/Beds.md")]
    assert (vault.root / "notes/Garden/Sun.md").read_text() == "My own words on the sun."


@pytest.mark.parametrize("into", ["facts", "entities/x", ".git", "../out", "a//b", ".quaid", "journal", "a/./b"])
def test_notes_are_kept_only_where_they_are_notes(vault, garden, into):
    with vault.memory() as memory:
        refused(lambda: take(memory, garden, into=into), BadInputError)


# -- what is refused -------------------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_refused_with_the_next_step(vault, tmp_path):
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with vault.memory() as memory:
        for source in ("gone", "empty", "pipe"):
            refused(lambda source=source: take(memory, tmp_path / source), BadInputError)
        for source in ("", "facts", "MEMORY.md"):
            (vault.root / "facts").mkdir(exist_ok=True)
            refused(lambda source=source: take(memory, vault.root / source), BadInputError)
        refused(lambda: take(memory, io.BytesIO(b"  \n")), BadInputError)


# -- names and ids ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ten_thousand_facts_whose_words_make_no_slug_get_files_of_their_own(vault):
    found = ImportContent(admit)
    found.facts = [NewFact(f"麻耶は{n}番目の 茶 が 好き", imported_from=str(n)) for n in range(10_000)]
    candidates = list_facts(found, "mem0", "default")
    tails = Counter(candidate.id[-5:] for candidate in candidates)
    shared = [candidate for candidate in candidates if tails[candidate.id[-5:]] > 1]
    assert len(shared) >= 2, "none share a tail: that is the case this is about"
    named = [{"memory": each.text, "id": each.imported_from.removeprefix("mem0 ")} for each in shared]
    rows = "\n".join(map(json.dumps, named)).encode()
    with vault.memory() as memory:
        assert take(memory, io.BytesIO(rows)).counts == {"facts": len(shared)}
        assert take(memory, io.BytesIO(rows)).commit is None


def test_an_id_depends_on_every_part_it_is_made_of():
    made = {derive_id(*parts) for parts in (("a", "b"), ("ab", ""), ("a", "c"), ("b", "b"), ("a", "b", ""))}
    assert len(made) == 5
    assert derive_id("a", "b") == derive_id("a", "b")
    assert all(len(note_id) == 26 and note_id[0] in "01234567" for note_id in made)


# -- the command -----------------------------------------------------------------------------------------------------


def quaid(capsys, vault, *arguments):
    code = main([*arguments, "--vault", str(vault.root)])
    return code, *capsys.readouterr()


def test_the_command_says_what_it_did(vault, project, capsys):
    code, out, _ = quaid(capsys, vault, "import", str(project), "--dry-run")
    assert code == 0
    assert out.splitlines()[0] == "Would import: 2 facts, 4 entities and 3 edges from basic-memory"
    assert "  Kiln: fires at 1200 degrees" in out
    code, out, _ = quaid(capsys, vault, "import", str(project), "--json")
    shape = json.loads(out)
    assert list(shape) == [
        "v", "source", "format", "dry_run", "counts", "known", "left_out", "redacted", "clashes", "namesakes", "examples",
        "newer", "missing", "refused", "commit", "left",
    ]  # fmt: skip
    assert shape["counts"] == {"facts": 2, "entities": 4, "edges": 3, "notes": 0}
    assert quaid(capsys, vault, "import", str(project))[1].startswith("Nothing new in my-notes (basic-memory)")


def test_the_command_names_what_was_not_taken(vault, garden, capsys):
    vault.write("notes/Garden/Sun.md", "My own words on the sun.")
    _, _, said = quaid(capsys, vault, "import", str(garden))
    assert "notes/Garden/Sun.md" in said
    assert quaid(capsys, vault, "import", str(garden), "--from", "zep")[0] == 1


def test_what_an_imported_fact_states_by_its_form_are_edges(vault, tmp_path):
    (tmp_path / "MEMORY.md").write_text(
        "# Memory\n\n- The user lives in Porto.\n- Tom Okafor works at Acme as a designer.\n"
        "- Tom Okafor moved to Ghent last month.\n- Zoe used to live in Berlin.\n- I live in the machine room.\n"
        "- We moved to Postgres in May.\n",
        encoding="utf-8",
    )
    rows = [{"id": "1", "memory": "Moved to Lisbon last month", "created_at": "2024-05-10T10:00:00Z"}]
    (tmp_path / "mem0.json").write_text(json.dumps({"results": rows}), encoding="utf-8")
    with vault.memory() as memory:
        memory.configure("owner_name", "Maya Chen")
    with vault.memory() as memory:
        assert take(memory, tmp_path / "MEMORY.md").counts["edges"] == 3
        assert take(memory, tmp_path / "mem0.json").counts["edges"] == 1
    parsed = (notes.parse_note(path.name, path.read_bytes()) for path in (vault.root / "facts").rglob("*.md"))
    assert {(edge.subject, edge.relation, edge.object, note.valid_from) for note in parsed for edge in note.edges} == {
        ("Maya Chen", "lives_in", "Porto", None),
        ("Tom Okafor", "works_at", "Acme", None),
        ("Tom Okafor", "moved_to", "Ghent", None),
        ("Maya Chen", "moved_to", "Lisbon", "2024-04"),
    }
