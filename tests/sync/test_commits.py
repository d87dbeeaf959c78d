"""A commit of a bare repository -> an index: the same by steps and at once, in either engine."""

from __future__ import annotations

import random
import shutil
from functools import cache

import pytest
from recall_index import NOTES, ByWords, ask
from vaults import Vault

from quaid.errors import RevisionError
from quaid.index import contents, documents, fulltext, vectors
from quaid.index.sqlite import database
from quaid.server.vaults import index_commit
from quaid.settings import EmbeddingSettings, Settings
from quaid.sync.embedding import Embedding


@cache
def server():
    from postgres_server import make_database

    addresses = make_database()
    from quaid.index.postgres.server import IndexServer

    return IndexServer(addresses[1])


@pytest.fixture(params=["sqlite", "postgres"])
def begin(request, tmp_path):
    if request.param == "postgres":
        return lambda name: server().open(f"{tmp_path} {name}")
    return lambda _name: database.make_in_memory()


class Origin:
    """A vault whose owner pushes to a bare repository."""

    def __init__(self, folder):
        self.vault, self.bare = Vault(folder / "vault"), folder / "vault.git"
        self.vault.root.mkdir()
        self.vault.git("init", "-q", "-b", "main")
        self.vault.write("quaid.toml", "")
        self.vault.git("init", "-q", "--bare", "-b", "main", str(self.bare))

    def push(self):
        commit = self.vault.save()
        self.vault.git("push", "-q", "--force", str(self.bare), "HEAD:main")
        return commit


@pytest.fixture
def origin(tmp_path):
    origin = Origin(tmp_path)
    for path, text in NOTES.items():
        origin.vault.write(path, text)
    return origin


def dump(index):
    return [*contents.dump(index), *sorted(documents.list_passed_over(index).items())]


def test_only_what_a_commit_changed_is_read(begin, origin):
    index = begin("kept")
    origin.push()
    report = index_commit(index, origin.bare, "main", Settings())
    assert (report.added, report.modified, report.removed) == (tuple(sorted(NOTES)), (), ())
    assert index_commit(index, origin.bare, "main", Settings()).changed == 0
    origin.vault.write("facts/new.md", "---\nid: 01x\n---\nTom plays the cello.\n")
    origin.vault.write("facts/a.md", "---\nid: 01a\n---\nMaya drinks tea.\n")
    (origin.vault.root / "facts/d.md").unlink()
    origin.push()
    report = index_commit(index, origin.bare, "main", Settings())
    assert (report.added, report.modified, report.removed) == (("facts/new.md",), ("facts/a.md",), ("facts/d.md",))
    assert len(fulltext.search(index, '"cello"', 9)) == 1
    assert not report.rebuilt


@pytest.mark.slow
def test_an_index_kept_by_commits_equals_one_made_of_the_last(begin, origin):
    index, shuffled, commits = begin("kept"), random.Random(5), []
    for step in range(6):
        for path in shuffled.sample([*NOTES, "own/Ünder [x].md", "own/a\nb.md"], 4):
            origin.vault.write(path, shuffled.choice([*NOTES.values()]))
        for path in shuffled.sample(sorted(origin.vault.notes()), 2):
            if path != "quaid.toml":
                (origin.vault.root / path).unlink()
        if step == 2:
            (origin.vault.root / "facts/link.md").symlink_to("a.md")
        if step == 3:
            origin.vault.write(".gitattributes", "*.md eol=crlf\n")
        commits.append(origin.push())
        index_commit(index, origin.bare, commits[-1], Settings())
        made = begin(f"made {step}")
        index_commit(made, origin.bare, commits[-1], Settings())
        assert dump(index) == dump(made)
    index_commit(index, origin.bare, commits[1], Settings())  # and back
    made = begin("made of an old one")
    index_commit(made, origin.bare, commits[1], Settings())
    assert dump(index) == dump(made)


def test_an_index_of_a_commit_that_is_gone_is_made_anew(begin, origin):
    index = begin("kept")
    origin.push()
    index_commit(index, origin.bare, "main", Settings())
    shutil.rmtree(origin.vault.root / ".git")
    shutil.rmtree(origin.bare)
    origin.vault.git("init", "-q", "-b", "main")
    origin.vault.git("init", "-q", "--bare", "-b", "main", str(origin.bare))
    origin.vault.write("facts/a.md", "Another history.\n")
    commit = origin.push()
    report = index_commit(index, origin.bare, "main", Settings())
    assert report.rebuilt
    made = begin("made")
    index_commit(made, origin.bare, commit, Settings())
    assert dump(index) == dump(made)


def test_a_commit_that_is_not_there_changes_nothing(begin, origin):
    index = begin("kept")
    origin.push()
    index_commit(index, origin.bare, "main", Settings())
    before = dump(index)
    for wanted in ("nothing", "0" * 40, "--help", "main:facts"):
        with pytest.raises(RevisionError):
            index_commit(index, origin.bare, wanted, Settings())
    assert dump(index) == before


def test_a_path_that_no_index_can_look_up_is_passed_over(begin, origin):
    index, folder = begin("kept"), "/".join(["d" * 200] * 4)
    origin.vault.write(f"{folder}/long.md", "words\n")
    origin.push()
    index_commit(index, origin.bare, "main", Settings())
    assert documents.count(index) == len(NOTES)
    assert list(documents.list_passed_over(index)) == [folder[:600]]


def test_nothing_that_a_bare_repository_configures_is_run(begin, origin, tmp_path):
    ran = tmp_path / "ran"
    origin.vault.write(".gitattributes", "*.md filter=evil diff=evil\n")
    origin.push()
    for name in (
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "diff.evil.textconv",
        "core.sshCommand",
    ):
        origin.vault.git("-C", str(origin.bare), "config", name, f"touch {ran}; cat")
    index_commit(begin("kept"), origin.bare, "main", Settings())
    assert not ran.exists()


def test_what_a_commit_brings_is_embedded(begin, origin, tmp_path):
    index, embedding = begin("kept"), Embedding(tmp_path / "server", EmbeddingSettings())
    embedding._embedder = ByWords()
    origin.push()
    report = index_commit(index, origin.bare, "main", Settings(), embedding)
    assert report.pending == vectors.count_missing(index) == 0
    assert report.embedded == documents.count_chunks(index)
    assert ask(index, "oat milk", ByWords()).hits[0].path == "facts/a.md"
    origin.vault.write("facts/new.md", "---\nid: 01x\n---\nTom plays the cello.\n")
    origin.push()
    before = documents.count_chunks(index)
    report = index_commit(index, origin.bare, "main", Settings(), embedding)
    assert report.embedded == documents.count_chunks(index) - before > 0
    assert ask(index, "who plays the cello", ByWords()).hits[0].path == "facts/new.md"
