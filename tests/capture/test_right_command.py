"""A source that was given to the wrong command: which one takes it."""

from __future__ import annotations

import json
import zipfile

import pytest
from vaults import refused

from quaid.capture.importer import ImportOptions, import_from
from quaid.capture.importers.formats import select_format
from quaid.capture.importers.import_content import ImportSource
from quaid.capture.right_command import hint_for, list_transcripts
from quaid.cli.main import main
from quaid.errors import BadInputError

CHAT = [{"title": "The lease", "create_time": 1784164500.0, "conversation_id": "g1", "current_node": "n",
         "mapping": {"n": {"id": "n", "parent": None, "message": {
             "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["I rent a flat in Ghent"]}}}}}]  # fmt: skip
MEM0 = {"results": [{"id": "1", "memory": "Maya likes oat milk", "user_id": "maya"}]}


@pytest.fixture
def sources(tmp_path):
    """One folder of each kind."""
    folders = {name: tmp_path / name for name in ("chats", "zipped", "export", "garden", "papers", "empty")}
    for folder in folders.values():
        folder.mkdir()
    (folders["chats"] / "deep").mkdir()
    (folders["chats"] / "deep" / "conversations.json").write_text(json.dumps(CHAT))
    with zipfile.ZipFile(folders["zipped"] / "chatgpt.zip", "w") as packed:
        packed.writestr("conversations.json", json.dumps(CHAT))
    (folders["export"] / "mem0.json").write_text(json.dumps(MEM0))
    (folders["garden"] / "Tomatoes.md").write_text("Tomatoes want sun.\n")
    (folders["papers"] / "lease.txt").write_text("A lease from May on.\n")
    return folders


@pytest.mark.parametrize(("kind", "tried", "hint"), [
    ("chats", "import", "conversations: quaid extract {0}"), ("chats", "analyze", "conversations: quaid extract {0}"),
    ("zipped", "import", "conversations: quaid extract {0}"), ("export", "import", "memories: quaid import {0}/mem0.json"),
    ("export", "extract", "memories: quaid import {0}/mem0.json"), ("garden", "extract", "notes: quaid import {0}"),
    ("papers", "import", "papers: quaid analyze {0}/*.txt"), ("papers", "extract", "papers: quaid analyze {0}/*.txt"),
])  # fmt: skip
def test_a_folder_for_another_command_is_told_which(sources, kind, tried, hint):
    assert hint_for(sources[kind], tried) == f" It holds {hint.format(sources[kind])}"


def test_the_right_command_and_an_empty_or_missing_folder_get_no_hint(sources, tmp_path):
    for kind, tried in (("chats", "extract"), ("garden", "import"), ("papers", "analyze"), ("empty", "import")):
        assert hint_for(sources[kind], tried) == ""
    assert hint_for(tmp_path / "gone", "import") == ""


def test_the_transcripts_of_a_folder_are_found_and_no_other_files(sources, tmp_path):
    (sources["chats"] / "notes.md").write_text("Maya: hi\nTom: yo\n")
    (sources["chats"] / ".hidden.jsonl").write_text('{"role": "user", "content": "hi"}\n')
    found = [path.relative_to(tmp_path).as_posix() for path in list_transcripts(tmp_path)]
    assert found == ["chats/deep/conversations.json", "zipped/chatgpt.zip"]


def test_a_folder_of_chats_is_extracted_under_their_titles(vault, sources, capsys):
    with vault.memory():
        assert main(["--vault", str(vault.root), "extract", "--no-facts", str(sources["chats"])]) == 0
    (episode,) = (vault.root / "episodes").rglob("*.md")
    assert "-the-lease-" in episode.name
    assert "title: The lease\n" in episode.read_text("utf-8")
    with vault.memory() as memory:
        assert memory.recall("the lease").hits[0].text == "I rent a flat in Ghent"
    assert main(["--vault", str(vault.root), "extract", str(sources["garden"])]) == 1
    assert main(["--vault", str(vault.root), "import", str(sources["chats"])]) == 1
    assert main(["--vault", str(vault.root), "analyze", str(sources["chats"])]) == 1
    err = capsys.readouterr().err
    assert f"quaid import {sources['garden']}" in err
    assert err.count(f"quaid extract {sources['chats']}") == 2


@pytest.mark.parametrize("text", [
    "---\ntitle: A\npermalink: a\ntype: note\n---\n- see [[B]]\n- important #todo\n",
    "---\ntitle: A\npermalink: /posts/a/\n---\n## Relations\n- brother [[Tom]]\n",
    "---\ntitle: A\npermalink: a\n---\n- [Maya] said hello to all\n",
    "---\npermalink: a\n---\n## Observations\n- [fact] no title\n",
])  # fmt: skip
def test_own_notes_with_a_permalink_stay_notes(text):
    assert select_format(ImportSource("Garden", {f"{n}.md": text.encode() for n in range(3)})).name == "notes"


def test_a_folder_that_was_given_for_notes_is_never_passed_over(vault, sources, tmp_path):
    note = "---\ntitle: A\npermalink: a\n---\n## Observations\n- [fact] Soft water here\n"
    (sources["garden"] / "A.md").write_text(note)
    (tmp_path / "one.md").write_text("- Maya likes tea\n")
    with vault.memory() as memory:

        def take(path, **options):
            return import_from(memory, path, ImportOptions(**options))

        take(sources["garden"], into="plants/mine")
        take(tmp_path / "one.md", into="plants")
        assert (vault.root / "plants/mine/A.md").read_text() == note
        assert (vault.root / "plants/one.md").read_text() == "- Maya likes tea\n"
        wrong = refused(lambda: take(sources["export"] / "mem0.json", into="plants"), BadInputError)
        assert "mem0.json is read as mem0. Leave --into out." in str(wrong)
