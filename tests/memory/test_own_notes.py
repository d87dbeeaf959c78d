"""The owner's own notes, whatever their folder and frontmatter: found, linked, and never edited."""

from __future__ import annotations

from pathlib import Path

import pytest
from matrices import for_each
from vaults import Vault, assert_verified, paths, refused, texts, trust_vault

from quaid import Memory
from quaid.cli.main import main
from quaid.docs.registry import Project
from quaid.errors import NotOursError
from quaid.index import listing, references, vectors
from quaid.index.listing import NoteFilter
from quaid.model import Kind
from quaid.report.status import status_of
from quaid.vault.notes import parse_note
from quaid.vault.template import choose_folder, list_clashes

ID = "01kagx3m7r9q2d5w8t0v7k3qdz"
OWN = {
    "review/boiler.md": "---\nowner: Anna\nstatus: archived\n---\nThe boiler in the attic leaks.\n\n- [ ] call\n",
    "journal/2026-11-20.md": "Dear diary, I saw a pangolin.\n",
    "people/Anna Kowalski.md": "---\ntype: person\naliases: [Ania]\nid: 7\n---\r\n# Anna\r\nShe paints kites.  \r\n",
    "entities/Tom.md": "---\ntype: person\n---\nTom mends pipes.\n",
    "facts/water.md": "---\nid: w1\ntype: fact\nstatus: pending\nsuperseded_by: '[[x]]'\n---\nWater boils sooner on a mountain.\n",
    "facts/tea.md": "---\ntype: fact\nconfidence: 1\nvalid_until: 2001-01-01\nstatus: active\n---\nTea wants soft water.\n",
    "sources/kiln.md": "---\ntype: source\n---\nA kiln is an oven.\n",
    "episodes/podcast.md": "---\ntype: episode\nowner: Anna\n---\nThe host talks about zeppelins.\n",
    "projects/House/plan.md": "---\nowner: Anna\n---\nThe plan of the veranda.\n",
}


@pytest.fixture
def unmanaged(calm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUAID_VAULT_HAND_WRITTEN")


def adopt(root: Path, notes: dict[str, str], folder: str | None = None) -> Vault:
    vault = Vault(root)
    for path, text in notes.items():
        vault.write(path, text)
    Memory.create(root, folder)[0].close()
    trust_vault(root)
    vault.save("mine")
    return vault


@pytest.fixture
def adopted(unmanaged: None, tmp_path: Path) -> Vault:
    return adopt(tmp_path / "vault", OWN)


def assert_untouched(vault: Vault, own: dict[str, str] = OWN) -> None:
    assert {path: data.decode() for path, data in vault.notes().items() if path in own} == own


@pytest.mark.matrix
@pytest.mark.parametrize(("question", "path"), [
    ("boiler attic", "review/boiler.md"), ("pangolin diary", "journal/2026-11-20.md"), ("pipes", "entities/Tom.md"),
    ("boils sooner", "facts/water.md"), ("tea soft water", "facts/tea.md"), ("kiln oven", "sources/kiln.md"),
    ("zeppelins", "episodes/podcast.md"), ("veranda", "projects/House/plan.md"),
])  # fmt: skip
def test_own_notes_are_found_whatever_their_folder_and_head_say(adopted, question, path):
    with adopted.memory() as memory:
        (hit, *_) = memory.recall(question).hits
        assert (hit.path, hit.kind, hit.id, hit.superseded, hit.status) == (path, "note", path, False, None)
        assert_verified(memory)


def test_quaids_folders_do_not_mix_with_the_owners(adopted):
    with adopted.memory() as memory:
        written = memory.remember("Maya takes oat milk in her coffee")
        assert written.path.startswith("quaid/facts/")
        memory.link("Maya", "works_at", "Acme")
        memory.documentation.create(Project("kiln"))
        assert [project.home for project in memory.documentation.projects()] == ["quaid/projects/kiln"]
        assert memory.recall("oat milk").hits[0].kind == "fact"
        assert_verified(memory)
    new = {path.split("/")[0] for path in adopted.notes() if path not in OWN}
    assert new == {"quaid", "quaid.toml", "Facts.base"}
    assert 'inFolder("quaid/facts")' in (adopted.root / "Facts.base").read_text()
    assert_untouched(adopted)


def test_a_link_to_someone_with_an_own_note_lands_in_a_fact(adopted):
    with adopted.memory() as memory:
        first, again = memory.link("Ania", "works_at", "Acme"), memory.link("Anna Kowalski", "works_at", "Acme")
        assert (first.outcome, again.outcome, first.created) == ("linked", "known", ("Acme",))
        assert first.path.startswith("quaid/facts/")
        assert again.path == first.path
        memory.link("Acme", "employs", "Tom")
        assert texts(memory, "Where does Ania work?")[0] == "Anna Kowalski works at Acme."
        assert_verified(memory)
    assert not list(adopted.root.rglob("entities/Anna*"))
    assert not (adopted.root / "quaid/entities/Tom.md").exists()
    assert_untouched(adopted)


def test_aliases_of_own_notes_work_as_names(adopted):
    adopted.write("About me.md", "---\naliases: [me, Will]\n---\nx\n")
    adopted.write("Ideas.md", "---\nup: '[[Home]]'\n---\nx\n")
    with adopted.memory() as memory:
        fact = memory.remember("Anna Kowalski lives in Porto and told me of her Ideas")
        said = (adopted.root / fact.path).read_text()
        assert "[[Anna Kowalski]] lives in Porto and told me of her [[Ideas]]" in said
        assert "Anna Kowalski lives in Porto and told me of her Ideas" in texts(memory, "Where does Ania live?")[:1]
    assert_untouched(adopted)


@pytest.mark.parametrize("reference", ["Tom", "entities/Tom.md", "facts/water.md", "Ania", "episodes/podcast.md"])
def test_no_own_note_can_be_forgotten(adopted, reference):
    with adopted.memory() as memory:
        assert "never edits" in str(refused(lambda: memory.forget(reference), NotOursError))
    assert_untouched(adopted)


def test_a_fact_stays_one_when_its_owner_edits_or_moves_it(unmanaged, tmp_path):
    vault = adopt(tmp_path / "vault", {"Plan.md": "x\n"})
    with vault.memory() as memory:
        fact, maya = memory.remember("Maya takes oat milk in her coffee"), memory.link("Maya", "works_at", "Acme")
    text = (vault.root / fact.path).read_text().replace("oat", "soy").replace("durability: mutable\n", "")
    (vault.root / fact.path).unlink()
    vault.write("Kitchen/milk.md", text)
    vault.write("people/Maya.md", (vault.root / maya.path).read_bytes())
    (vault.root / maya.path).unlink()
    with vault.memory() as memory:
        (hit, *_) = memory.recall("soy milk").hits
        assert (hit.kind, hit.id, hit.path) == ("fact", fact.id, "Kitchen/milk.md")
        memory.link("Maya", "likes", "Kites")
        assert "- prefers [[Kites]]" in (vault.root / "people/Maya.md").read_text()


MADE = "id: 01kagx3m7r9q2d5w8t0v7k3qdz\ncreated: 2026-11-20T14:30:00Z\n"


@for_each(("path", "head", "kind"), [
    ("facts/a.md", f"{MADE}type: fact\nstatus: active\n", Kind.FACT),
    ("facts/a.md", f"{MADE}type: allergy\n", Kind.FACT), ("b/a.md", f"{MADE}type: event\nconfidence: 1\n", Kind.FACT),
    ("b/a.md", f"{MADE}type: event\n", Kind.ENTITY), ("entities/A.md", f"{MADE}type: event\n", Kind.ENTITY),
    ("entities/A.md", "type: person\ncreated: 2026-11-20\n", Kind.NOTE),
    ("facts/a.md", f"id: {ID.upper()}\ntype: fact\nstatus: active\n", Kind.NOTE),
    ("facts/a.md", "id: 202611201430\ntype: fact\nstatus: active\nconfidence: 1\n", Kind.NOTE),
    ("facts/a.md", "id: 0d4c7e1a-7a39-4f7e-8a53-16d6a6a3f1aa\ntype: fact\n", Kind.NOTE),
    ("b/a.md", f"{MADE}type: recipe\nstatus: done\n", Kind.NOTE),
    ("b/a.md", f"{MADE}type: source\nchecksum: aa\n", Kind.DOC),
    ("b/a.md", "type: episode\nsession: s1\nturn_count: 2\n", Kind.EPISODE),
    ("episodes/a.md", "type: episode\nsession: 12\n", Kind.NOTE),
    ("review/a.md", "type: review\ntask: decay\nkind: forget\nkey: 0123456789abcdef\n", Kind.REVIEW),
    ("review/a.md", "type: review\ntask: decay\n", Kind.NOTE),
    ("review/knowledge-gaps.md", "type: digest\n", Kind.REVIEW), ("journal/SOUL.journal.md", "", Kind.JOURNAL),
    ("journal/archive/SOUL-2026-02.md", "", Kind.JOURNAL), ("journal/2026-02-12.md", "", Kind.NOTE),
    ("snippets/SOUL.snippets.md", "", Kind.SNIPPET), ("snippets/bash.md", "", Kind.NOTE),
    ("projects/x/PROJECT.md", "", Kind.DOC), ("projects/x.md", "", Kind.NOTE), ("MEMORY.md", "", Kind.CORE),
    ("sub/MEMORY.md", "", Kind.NOTE), ("facts/a.md", "id: [a]\ntype: {b: c}\n", Kind.NOTE),
])  # fmt: skip
def test_a_note_is_quaids_when_it_says_so(path, head, kind):
    assert parse_note(path, f"---\n{head}---\nMaya.\n".encode()).kind is kind


def test_a_change_of_the_setting_makes_the_index_anew(unmanaged, tmp_path):
    vault = adopt(tmp_path / "vault", {"facts/water.md": OWN["facts/tea.md"]}, folder="mine")
    with vault.memory() as memory:
        assert memory.recall("soft water").hits[0].kind == "note"
        memory.configure("vault.hand_written", "managed")
        memory.configure("vault.folder", "")
    with vault.memory() as memory:
        assert memory.recall("soft water", superseded=True).hits[0].kind == "fact"
        assert_verified(memory)


@pytest.mark.parametrize(("files", "clashes"), [
    ({"a.md": "x"}, []), ({"facts/a.md": "x"}, ["facts"]), ({"sources/scan.pdf": "x"}, ["sources"]),
    ({"facts/a.md": f"---\n{MADE}type: fact\n---\nMaya.\n", "snippets/SOUL.snippets.md": "x"}, []),
    ({"projects/x/PROJECT.md": "x", "projects/x/docs/a.md": "x"}, []), ({"projects/x/a.md": "x"}, ["projects"]),
    ({"review/a.md": "x", "journal/b.md": "x", "Projects/c.md": "x"}, ["Projects", "journal", "review"]),
])  # fmt: skip
def test_folders_that_clash(tmp_path, files, clashes):
    for path, text in files.items():
        Vault(tmp_path).write(path, text)
    assert list_clashes(tmp_path) == clashes
    assert choose_folder(tmp_path) == ("quaid" if clashes else "")
    (tmp_path / "quaid").mkdir()
    assert choose_folder(tmp_path) == ("quaid-2" if clashes else "")


def test_init_names_the_folders_that_clash(unmanaged, tmp_path, capsys):
    Vault(tmp_path).write("a/journal/x.md", "mine")
    Vault(tmp_path).write("b/journal/x.md", "mine")
    assert main(["init", str(tmp_path / "a"), "--no-fetch"]) == 0
    assert "You have journal/ already, so Quaid keeps its own folders in quaid/." in capsys.readouterr().err
    assert main(["init", str(tmp_path / "b"), "--no-fetch", "--folder", "."]) == 1
    assert main(["init", str(tmp_path / "b"), "--no-fetch", "--folder", "my/memory"]) == 0
    assert 'folder = "my/memory"' in (tmp_path / "b/quaid.toml").read_text()


def test_status_and_doctor_name_own_notes_in_quaids_folders(unmanaged, tmp_path, capsys):
    vault = adopt(tmp_path / "vault", {"Plan.md": "x\n"})
    vault.write("review/list.md", "milk\n")
    for command in ("status", "doctor"):
        main(["--vault", str(vault.root), command])
        said = capsys.readouterr().out
        assert "review/list.md" in said
        assert "quaid config vault.hand_written managed" in said


@pytest.mark.parametrize("folder", ["../away", "a/../../b", ".git", "/../x"])
def test_no_setting_leads_out_of_the_vault(unmanaged, tmp_path, folder):
    vault = adopt(tmp_path / "vault", {"Plan.md": "plan of the shed\n"})
    vault.write("quaid.toml", f'[vault]\nfolder = "{folder}"\n')
    with vault.memory() as memory:
        assert "config" in memory.recall("plan of the shed").degraded
        assert "visible folder within the vault" in str(memory.problem)
        assert memory.settings.vault.folder == ""


def test_a_slip_elsewhere_in_the_settings_changes_no_kind(unmanaged, tmp_path):
    vault = adopt(tmp_path / "vault", OWN)
    vault.write("quaid/journal/SOUL.journal.md", "## 2026-11-20 - Compaction\n\nA quiet day.\n")
    for slip in ("[recall\n", "[recall]\nlimits = 3\n"):
        vault.write("quaid.toml", f'[vault]\nfolder = "quaid" # ours\n\n{slip}')
        with vault.memory() as memory:
            assert memory.recall("quiet day").hits[0].kind == "journal"


def test_properties_are_searched_and_linked(unmanaged, tmp_path):
    head = (
        '---\nauthor: Ursula Le Guin\nrating: 5\nreviewer: "[[people/Anna Kowalski|Anna]]"\nup: [[Library]]\n'
        'Read with:\n  - "[[Tom]]"\n  - [[Jo]]\nmeta: {shelf: {row: oak}}\ncssclasses: wide\n---\n'
    )
    vault = adopt(tmp_path / "vault", {"Books/Dispossessed.md": f"{head}Two worlds.\n", "Library.md": "Shelves.\n"})
    with vault.memory() as memory:
        for question in ("author Le Guin", "rating", "reviewer Anna", "shelf oak"):
            assert "Books/Dispossessed.md" in paths(memory, question), question
        assert "Books/Dispossessed.md" not in paths(memory, "cssclasses wide")
        edges = memory.index().execute("SELECT relation, object FROM edges ORDER BY relation, object").fetchall()
        assert edges == [
            ("read_with", "Jo"), ("read_with", "Tom"), ("reviewer", "Anna Kowalski"), ("up", "Library"),
        ]  # fmt: skip
        assert_verified(memory)


CARDS = {
    "Daily/2021-12-25.md": "---\ndate: 2021-12-25\n---\n",
    "Books/Dispossessed.md": "---\nauthor: Ursula Le Guin\nstatus: done\n---\n# Notes\n\nTwo worlds.\n\n# Later\n\nA wall.\n",
    "People/Anna.md": "---\nphone: 0151 2345\nemployer: Blue Current\n---\n", "Plain.md": "Nothing but text.\n",
}  # fmt: skip


def test_properties_are_not_embedded(unmanaged, tmp_path):
    bare = {path: text.split("---\n")[-1] for path, text in CARDS.items()}
    vaults = [adopt(tmp_path / name, notes) for name, notes in (("with", CARDS), ("without", bare))]
    embedded = []
    for vault in vaults:
        with vault.memory() as memory:
            memory.sync()
            embedded.append(sorted(text for _, _, text in vectors.list_pending(memory.index(), 100)))
    assert embedded[0] == embedded[1]


def test_a_hit_by_a_property_shows_the_note_and_names_the_property(unmanaged, tmp_path):
    vault = adopt(tmp_path / "vault", CARDS)
    expected = {
        "books by Le Guin": "Two worlds. (author: Ursula Le Guin)", "what is Anna's phone": "Anna (phone: 0151 2345)",
        "who works at Blue Current?": "Anna (employer: Blue Current)", "Two worlds": "Two worlds.",
        "date 2021-12-25": "2021-12-25 (date: 2021-12-25)",
    }  # fmt: skip
    with vault.memory() as memory:
        for question, text in expected.items():
            assert memory.recall(question).hits[0].text == text
            assert memory.search(question).hits[0].text == text
        assert_verified(memory)


@for_each("head", [
    "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c,*c]\n",
    "\n".join(f"k{n}: {'[[N]] ' * 500}" for n in range(500)) + "\n",
    "k: " + "[" * 80 + "]" * 80 + "\n", "? [a]\n: b\n", "'': '[[x]]'\n'***': '[[y]]'\nx: '[[]]'\ny: ']] [['\n",
    "long: " + "wort " * 100_000 + "\n", f"{'k' * 5000}: '[[x]]'\n", "a: [\n", 'x: "\\0\\ud800"\n',
    "aliases: {a: b}\ntags: [[[x]]]\ntitle: [1, 2]\ncreated: soon\n",
])  # fmt: skip
def test_hostile_properties_stay_small(head):
    note = parse_note("a.md", f"---\n{head}---\nThe note itself.\n".encode())
    assert any(chunk.text == "The note itself." for chunk in note.chunks) or note.problems
    assert len(note.edges) <= 100
    assert sum(len(chunk.text) for chunk in note.chunks) < 5_000 or note.problems


UNUSUAL = {
    "Termine.md": "# Termine\n\n24. Dezember: Essen bei Oma\n31. Dezember: Feuerwerk am Hafen\n",
    "Kalender.md": "Der Kalender wurde geändert.\n1582. Das war das Jahr der Reform.\n",
    "Fluss.md": "Auf der Donau\u00addampf\u00adschiff\u00adfahrt gibt es Ku\u200bchen.\n",
    "Standup.md": "[14:30]: standup\n\nText mit Fu\u00dfnote.[^1]\n\n[^1]: quokkanote\n",
    "Garten.md": "Dieses Jahr: 🥔 und 🧄 im Beet, ☂ dabei.\n",
    "Batch.md": "Use `for %%f in (*)` here: xylophonic, then `%%g` and `<!--`.\n\n```mermaid\nA --> wombatlike %% B\n```\n",
}


@pytest.mark.parametrize(("query", "path", "shown"), [
    ("Feuerwerk", "Termine.md", "31. Dezember: Feuerwerk am Hafen"), ("24. Oma", "Termine.md", "24. Dezember: Essen bei Oma"),
    ("1582", "Kalender.md", "1582. Das war das Jahr der Reform."), ("Donaudampfschifffahrt", "Fluss.md", ""),
    ("Donau\u00addampf\u00adschiff\u00adfahrt", "Fluss.md", ""), ("Kuchen", "Fluss.md", ""), ("standup", "Standup.md", "[14:30]: standup"),
    ("quokkanote", "Standup.md", "[^1]: quokkanote"), ("🥔", "Garten.md", "🥔"), ("wer hat 🧄?", "Garten.md", "🧄"), ("☂", "Garten.md", ""),
    ("xylophonic", "Batch.md", "for %%f in (*)"), ("wombatlike", "Batch.md", "%%g and <!--"),
])  # fmt: skip
def test_every_word_that_a_note_shows_is_found(vault, query, path, shown):
    for name, text in UNUSUAL.items():
        vault.write(name, text)
    with vault.memory() as memory:
        for found in (memory.search(query), memory.recall(query)):
            assert [hit.path for hit in found.hits] == [path]
            assert shown in found.hits[0].text


def test_the_folder_in_a_link_decides_between_notes_of_one_name(vault):
    vault.write("Pond.md", "# Pond\nSix carp.\n")
    vault.write("Work/Index.md", "# Index\nThe plan of the shipyard.\n")
    vault.write("Home/Index.md", "# Index\nThe plumbing of the kitchen.\n")
    vault.write("Old/Work/Index.md", "# Index\nThe plan of last year.\n")
    vault.write("J.md", "See [[Work/Index]].\n")
    vault.write("K.md", "See [kitchen](Home/Index.md).\n")
    vault.write("Home/L.md", "See [[../Work/Index.md|work]] and [pond](../Pond.md).\n")
    vault.write("M.md", "See [[Index]], and `[[Pond]]`.\n")
    vault.write("N.md", "See [[Attic/Index]].\n")
    with vault.memory() as memory:
        connection = memory.index()

        def linking(path):
            return [
                one.path for one in references.links_to(connection, references.resolve_one(connection, path).document)
            ]

        assert linking("Work/Index.md") == ["Home/L.md", "J.md", "M.md", "N.md"]
        assert linking("Home/Index.md") == ["K.md", "M.md", "N.md"]
        assert linking("Old/Work/Index.md") == ["M.md", "N.md"]
        assert linking("Pond.md") == ["Home/L.md"]
        listed = listing.list_notes(connection, NoteFilter(about=("Home/Index",)))
        assert [note.path for _, note in listed] == ["Home/Index.md", "K.md", "M.md", "N.md"]


def test_status_names_files_that_are_not_searched(vault):
    vault.write("Board.canvas", '{"nodes": [{"type": "text", "text": "Buy carp"}]}')
    vault.write("old/garden.org", "* Beans\n")
    with vault.memory() as memory:
        said = [each for each in status_of(memory).attention if "not searched" in each.what]
    assert [(each.what, each.paths) for each in said] == [
        ("2 files in other formats than markdown: not searched", ("Board.canvas", "old/garden.org"))
    ]


@pytest.mark.usefixtures("unmanaged")
def test_status_names_a_broken_line_and_a_date_that_cannot_be_read(vault):
    vault.write(
        "Flat.md", "---\ntitle: Lease: the flat\naliases: [Bergen flat]\ndate: 03/04/2026\n---\nThe rent is 900.\n"
    )
    with vault.memory() as memory:
        problems = dict.fromkeys(problem for path, problem in status_of(memory).problems if path == "Flat.md")
        assert [found.path for found in memory.recall("Bergen flat").hits][:1] == ["Flat.md"]
    assert [problem.split(" (line")[0].split(", is")[0] for problem in problems] == [
        "date should be a date like 2026-11-20",
        "the frontmatter is not YAML: mapping values are not allowed in this context",
    ]
