"""docs.db says what the docs say: after anything that may happen to them it equals one built from nothing."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from docs_fixture import Docs
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples

from quaid.docs.catalogue import Doc
from quaid.index.sqlite import database
from quaid.janitor import cleanup
from quaid.settings import EmbeddingSettings

GUIDE = "# Boat\n\nThe keel is of oak.\n\n## Sails\n\n" + "A sail is sewn by hand. " * 200
TOKEN = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def docs(tmp_path):
    return Docs(tmp_path)


def embedding(service):
    return EmbeddingSettings(provider="openai", url=f"http://127.0.0.1:{service.port}", model="one")


def test_what_is_added_changed_renamed_and_removed(docs):
    boat, log = docs.write("docs/boat.md", GUIDE), docs.write("log.md", "# Log\n\nWe sailed.\n")
    first = docs.sync()
    assert (first.added, first.modified, first.removed, first.total) == ((boat, log), (), (), 2)
    assert docs.sync().changed == 0
    docs.write("log.md", "# Log\n\nWe stayed.\n")
    (docs.folder / "docs/boat.md").rename(docs.folder / "docs/ship.md")
    del docs.files[boat]
    ship = "boat:docs/ship.md"
    docs.files[ship] = Doc(ship, "boat", docs.folder, "docs/ship.md")
    second = docs.sync()
    assert (second.added, second.modified, second.renamed) == ((), (log,), ((boat, ship),))
    del docs.files[log]
    (docs.folder / "docs/ship.md").unlink()
    third = docs.sync()
    assert (third.removed, third.total) == ((ship, log), 0)
    docs.assert_sound()
    assert docs.rows("SELECT count(*) FROM passages") == [(0,)]


def test_only_what_changed_is_parsed(docs):
    for number in range(5):
        docs.write(f"d{number}.md", f"# D{number}\n\nWords.\n")
    docs.sync()
    docs.write("d3.md", "# D3\n\nOther words.\n")
    os.utime(docs.folder / "d1.md", (1, 1))
    docs.sync()
    assert docs.parsed == ["boat:d3.md"]


def test_a_passage_knows_its_lines(docs):
    docs.write("boat.md", "---\ntitle: B\n---\n" + GUIDE)
    docs.sync()
    rows = docs.rows(
        "SELECT path, p.ordinal, heading, first_line, last_line FROM passages p JOIN documents USING (doc_id)"
    )
    assert rows[:2] == [("boat:boat.md", 0, '["Boat"]', 4, 6), ("boat:boat.md", 1, '["Boat", "Sails"]', 8, 10)]
    assert docs.rows("SELECT DISTINCT passage FROM chunks ORDER BY 1") == [(n,) for n in range(len(rows))]


def test_one_file_may_be_a_doc_of_two_projects(docs):
    docs.write("boat.md", GUIDE)
    docs.files["vault.md"] = Doc("vault.md", "yard", docs.folder, "boat.md")
    docs.sync()
    assert docs.rows("SELECT path, project FROM documents ORDER BY 1") == [
        ("boat:boat.md", "boat"),
        ("vault.md", "yard"),
    ]
    docs.assert_sound()


def test_other_sizes_cut_all_docs_anew(docs, tmp_path, monkeypatch):
    docs.write("boat.md", GUIDE)
    docs.sync()
    monkeypatch.setattr("quaid.docs.chunks.CHUNK_TOKENS", 200)
    docs = Docs(tmp_path)
    docs.write("boat.md", GUIDE)
    assert docs.sync().rebuilt == "the settings for documents have changed"
    docs.assert_sound()
    assert docs.sync().rebuilt is None


def test_what_is_no_doc_is_passed_over(docs, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n")
    docs.write("real.md", "# Real\n")
    (docs.folder / "link.md").symlink_to(secret)
    (docs.folder / "linked").symlink_to(tmp_path)
    os.mkfifo(docs.folder / "pipe.md")
    (docs.folder / "folder.md").mkdir()
    for name in ("link.md", "linked/secret.md", "pipe.md", "folder.md", "gone.md"):
        docs.files[f"boat:{name}"] = Doc(f"boat:{name}", "boat", docs.folder, name)
    report = docs.sync()
    assert (report.added, report.total) == (("boat:real.md",), 1)
    assert report.passed_over["boat:link.md"].startswith("is a symbolic link")
    assert docs.sync().changed == 0
    docs.assert_sound()


def test_secrets_are_not_in_the_file_and_their_kinds_are_told(docs):
    docs.write("TOOLS.md", f"# Tools\n\nThe token is {TOKEN} for the yard.\n")
    assert [*docs.sync().redacted] == ["boat:TOOLS.md"]
    stored = b"".join(path.read_bytes() for path in docs.index.path.parent.glob("docs.db*"))
    assert TOKEN.encode() not in stored
    assert "secrets" in docs.rows("SELECT problems FROM documents")[0][0]


def test_killed_at_any_doc_and_run_again_it_is_the_same(docs):
    for number in range(6):
        docs.write(f"d{number}.md", f"# D{number}\n\nWords of {number}.\n")
    docs.sync()
    for number in range(4):
        docs.write(f"d{number}.md", f"# D{number}\n\nOther words of {number}.\n")
    before = docs.dumped()
    for stop in range(4):
        left = [stop]

        def die(_what, _done, _total, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            docs.sync(progress=die)
        assert docs.dumped() == before
    docs.sync()
    docs.assert_sound()


def test_vectors_come_in_batches_within_a_budget_and_from_the_cache(tmp_path, service):
    docs = Docs(tmp_path, embedding(service))
    for number in range(300):
        docs.write(f"d{number}.md", f"# D{number}\n\nWords of {number}.\n")
    first = docs.sync(embed_budget_s=0.0)
    assert 0 < first.pending < 300
    second = docs.sync()
    assert (first.embedded + second.embedded, second.pending) == (300, 0)
    asked = len(service.requests)
    for number in range(300):
        (docs.folder / f"d{number}.md").rename(docs.folder / f"e{number}.md")
        docs.files.pop(f"boat:d{number}.md")
        docs.files[f"boat:e{number}.md"] = Doc(f"boat:e{number}.md", "boat", docs.folder, f"e{number}.md")
    assert (len(docs.sync().renamed), len(service.requests)) == (300, asked)
    docs.assert_sound()


def test_the_janitor_keeps_the_vectors_of_docs(tmp_path, service, monkeypatch):
    monkeypatch.setattr("quaid.janitor.cleanup.MIN_SPARE", 0)
    docs = Docs(tmp_path, embedding(service))
    docs.write("boat.md", GUIDE)
    docs.sync()
    database.connect_writer(docs.index.path.with_name("index.db"))[0].close()
    cleanup.clean(docs.index.path.parent, datetime.now(UTC))
    docs.index.path.unlink()
    asked = len(service.requests)
    docs.sync()
    assert len(service.requests) == asked


NAMES = st.sampled_from(["a.md", "b.md", "docs/c.md", "docs/d.rst"])
TEXTS = st.sampled_from(
    ["", "# A\n\nOne.\n", "# B\r\n\r\nTwo.\r\n", GUIDE, "plain", f"key: {TOKEN}", "```\nx\n```\n", "\0\1"]
)
STEPS = st.lists(st.one_of(
    st.tuples(st.just("write"), NAMES, TEXTS), st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.sampled_from(["remove", "forget"]), NAMES, st.just("")),
    st.tuples(st.just("give"), NAMES, st.sampled_from(["boat", "yard"])), st.just(("sync", "", "")),
), max_size=12)  # fmt: skip


@settings(max_examples=examples(25), deadline=None)
@given(STEPS)
def test_after_any_events_the_index_equals_a_rebuilt_one(steps):
    with tempfile.TemporaryDirectory() as made:
        docs = Docs(Path(made))
        for verb, name, other in steps:
            _happen(docs, verb, name, other)
        docs.sync()
        docs.assert_sound()


def _happen(docs, verb, name, other):
    path = docs.folder / name
    match verb:
        case "write":
            docs.write(name, other)
        case "rename" if path.exists() and name != other:
            docs.write(other, path.read_bytes())
            path.unlink()
        case "remove":
            path.unlink(missing_ok=True)
        case "forget":
            docs.files.pop(f"boat:{name}", None)
        case "give" if f"boat:{name}" in docs.files:
            docs.files[f"boat:{name}"] = Doc(f"boat:{name}", other, docs.folder, name)
        case "sync":
            docs.sync()
