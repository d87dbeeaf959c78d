"""An export holds the whole memory, and importing it gives the same bytes back."""

from __future__ import annotations

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each
from vaults import calm, copy_vault, refused, vault

from quaid.capture.export import export_notes, write_export
from quaid.capture.importer import ImportOptions, import_from
from quaid.capture.importers.formats import QuaidExport, can_import
from quaid.capture.importers.import_content import ImportContent, ImportSource
from quaid.cli.main import main
from quaid.errors import BadInputError
from quaid.vault.notes import parse_time

__all__ = ["calm", "vault"]

NOW = parse_time("2026-11-20T14:30:00Z")
OWNERS = frozenset({"default"})
NAMES = st.text(st.characters(exclude_characters="/\\\0\n\r", exclude_categories=("Cs",)), min_size=1, max_size=12)
BYTES = (
    st.binary(max_size=80)
    | st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.sampled_from(
        [b"\xef\xbb\xbf---\r\nid: 1\r\n---\r\nA fact.\r\n", b"---\ntype: fact\n---\n\xff\xfe", b"", b"---"]
    )
)


def untouched(text):
    return text, ()


def lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def read_back(data):
    """What an import into an empty vault would write."""
    found = ImportContent(untouched)
    QuaidExport.read(ImportSource("export.jsonl", {"export.jsonl": data}, is_folder=False), found)
    return dict(found.files), found


def take(memory, data):
    options = ImportOptions()
    return import_from(memory, io.BytesIO(data), options, redact=untouched)


@pytest.mark.slow
@given(st.dictionaries(NAMES.map(lambda name: f"facts/{name}.md"), BYTES, max_size=4))
def test_what_can_import_comes_back_byte_for_byte(notes):
    with TemporaryDirectory() as folder:
        written = {}
        for path, data in notes.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            try:
                file.write_bytes(data)
            except OSError:  # a name this file system does not take
                continue
            if can_import(path) and "conflict" not in path.lower():
                written[path] = data
        back, found = read_back(lines(export_notes(Path(folder), OWNERS)))
        assert back == written
        assert not found.left_out


@pytest.fixture
def full(vault):
    """A vault with a note of every kind and every oddness."""
    vault.write("entities/Maya Chen.md", "---\ntype: person\naliases: [Maya]\n---\n- works_at [[Acme]]\n")
    vault.write(
        "episodes/2026/11/20-1402-2f1c9a.md", "---\ntype: episode\nsession: 2f1c9a\n---\n**Maya**: Hello. ^t1\n"
    )
    vault.write("snippets/SOUL.snippets.md", "## Compaction - 2026-02-12 14:30\n- Maya laughs\n")
    vault.write("journal/SOUL.journal.md", "## 2026-02-12 - Compaction\nA day.\n")
    vault.write("projects/kiln/PROJECT.md", "# Kiln\n")
    vault.write("Ideas/Größe.md", b"\xef\xbb\xbfCRLF\r\nand no newline at the end")
    vault.write("Ideas/broken.md", b"\xff\xfe\x00 no text \x80")
    vault.write(
        "facts/odd.md",
        "---\nid: 007\nstatus:   active # really\ntype: fact\nkeywords:\n  - a\n---\nMaya \u2028 likes tea.",
    )
    vault.write("MEMORY.md", "# Memory\n\nMaya is a potter.\n")
    vault.write("pictures/kiln.png", b"\x89PNG")
    vault.save()
    with vault.memory() as memory:
        memory.remember("Maya takes oat milk", keywords=["coffee"], valid_from="2026-11-01")
    return vault


def memory_of(vault):
    return {path: data for path, data in vault.notes().items() if path.endswith(".md")}


def test_a_vault_comes_back_whole_and_a_second_time_nothing_changes(full, tmp_path):
    data = lines(export_notes(full.root, OWNERS))
    other = copy_vault(tmp_path / "other")
    with other.memory() as memory:
        done = take(memory, data)
        assert memory_of(other) == memory_of(full)
        assert not (other.root / "pictures").exists()
        assert done.clashes == []
        assert other.status() == ""
        assert lines(export_notes(other.root, OWNERS)) == data
        assert take(memory, data).commit is None


def test_an_export_says_what_a_fact_says(full):
    rows = {row["path"]: row for row in export_notes(full.root, OWNERS)}
    fact = next(row for row in rows.values() if row["text"] == "Maya takes oat milk")
    assert (fact["v"], fact["kind"], fact["status"], fact["valid_from"]) == (1, "fact", "active", "2026-11-01")
    assert fact["keywords"] == ["coffee"]
    maya = rows["entities/Maya Chen.md"]
    assert (maya["aliases"], maya["edges"]) == (
        ["Maya"],
        [{"subject": "Maya Chen", "relation": "works_at", "object": "Acme"}],
    )
    assert "content_base64" in rows["Ideas/broken.md"]
    assert list(rows) == sorted(rows)


def test_only_the_kinds_that_are_asked_for_are_exported(full):
    assert {row["kind"] for row in export_notes(full.root, OWNERS, ["entity", "core"])} == {"entity", "core"}
    refused(lambda: list(export_notes(full.root, OWNERS, ["facts"])), BadInputError)


def test_what_the_vault_has_otherwise_is_kept_and_reported(full, tmp_path):
    data = lines(export_notes(full.root, OWNERS))
    other = copy_vault(tmp_path / "other")
    other.write("MEMORY.md", "# Memory\n\nTom is a cook.\n")
    other.write("facts/odd.md", "Tom likes soup.")
    other.save()
    with other.memory() as memory:
        done = take(memory, data)
    assert done.clashes == ["MEMORY.md", "facts/odd.md"]
    assert (other.root / "facts/odd.md").read_text() == "Tom likes soup."
    assert (other.root / "entities/Maya Chen.md").exists()


@for_each(
    "path",
    ["../out.md", "/etc/out.md", "a/../../out.md", ".git/hooks/x.md", ".quaid/x.md", "a\\..\\out.md", "quaid.toml", "a\0.md",
     "C:/out.md", "facts/.hidden.md", "", "a//b.md", "facts/../x.md", "usage/mac.tsv", ".gitattributes", "hooks/x.sh",
     "node_modules/x.md", "\ud800.md", "a\nb.md"],
)  # fmt: skip
def test_an_export_can_write_nothing_but_memory(path):
    back, found = read_back(lines([{"v": 1, "path": path, "content": "x"}]))
    assert back == {}
    assert found.left_out == {"paths that no note of a vault can have": 1}


def test_broken_lines_are_counted_and_the_others_read():
    rows = b'{"v": 1, "path": "a.md"}\n{"v": 1\n[]\n\n{"v": 1, "path": "b.md", "content_base64": "?"}\n'
    back, found = read_back(rows + b'{"v": 1, "path": "c.md", "content": "x", "path2": null}\n')
    assert back == {"c.md": b"x"}
    assert found.left_out == {"lines without a path or a content": 2, "lines that are not JSON": 2}


def test_an_export_of_another_version_is_refused():
    refused(lambda: read_back(b'{"v": 2, "path": "a.md", "content": "x"}'), BadInputError)


def test_only_an_earlier_export_is_replaced(tmp_path):
    path = tmp_path / "export.jsonl"
    row = json.dumps({"v": 1, "path": "a.md", "content": "x"})
    assert write_export(iter([row]), path) == 1
    assert write_export(iter([row, row]), path) == 2
    assert path.read_text() == f"{row}\n{row}\n"
    path.write_text("My shopping list")
    refused(lambda: write_export(iter([row]), path), BadInputError)
    refused(lambda: write_export(iter([row]), tmp_path), BadInputError)
    refused(lambda: write_export(iter([row]), tmp_path / "gone" / "x"), BadInputError)
    assert path.read_text() == "My shopping list"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failing_export_leaves_the_earlier_one(tmp_path):
    path = tmp_path / "export.jsonl"

    def rows():
        yield "{}"
        raise BadInputError("No more of it can be read now.")

    write_export(iter([json.dumps({"v": 1, "path": "a.md", "content": "x"})]), path)
    kept = path.read_bytes()
    refused(lambda: write_export(rows(), path), BadInputError)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (kept, [path])


def test_the_commands_carry_a_memory_over(full, tmp_path, capsys):
    file = tmp_path / "memory.jsonl"
    assert main(["export", str(file), "--vault", str(full.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"v": 1, "path": str(file), "notes": len(memory_of(full))}
    other = copy_vault(tmp_path / "other")
    assert main(["import", str(file), "--vault", str(other.root)]) == 0
    assert memory_of(other) == memory_of(full)
    capsys.readouterr()
    assert main(["export", "--kind", "fact", "--vault", str(full.root)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["kind"] for row in rows} == {"fact"}
    assert main(["export", "--kind", "facts", "--vault", str(full.root)]) == 1
