"""What a path says about a note, and names every file system takes."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.model import Kind
from quaid.place import find_vault
from quaid.vault import layout
from quaid.vault.layout import Layout, entity_path, is_conflict_copy, is_note_name, new_id, slug

FIRST, LAST = datetime(1970, 1, 2), datetime(9999, 1, 1)  # noqa: DTZ001
NOW = datetime(2026, 11, 20, 14, 2, 30, tzinfo=UTC)


@for_each(("path", "note_type", "keys", "kind"), [
    ("facts/2026/11/a.md", None, (), Kind.FACT),
    ("facts/a.md", "person", (), Kind.FACT),
    ("entities/Maya.md", "fact", ("confidence",), Kind.ENTITY),
    ("episodes/2026/11/x.md", None, (), Kind.EPISODE),
    ("snippets/SOUL.snippets.md", None, (), Kind.SNIPPET),
    ("journal/archive/SOUL-2026-02.md", None, (), Kind.JOURNAL),
    ("projects/p/docs/a.md", None, (), Kind.DOC),
    ("review/decay-1.md", None, (), Kind.REVIEW),
    ("SOUL.md", "person", (), Kind.CORE),
    ("notes/SOUL.md", None, (), Kind.NOTE),
    ("facts.md", None, (), Kind.NOTE),
    ("sub/facts/a.md", None, (), Kind.NOTE),
    ("people/Maya.md", "person", (), Kind.ENTITY),
    ("a.md", "event", (), Kind.ENTITY),
    ("a.md", "event", ("confidence",), Kind.FACT),
    ("a.md", "preference", ("status",), Kind.FACT),
    ("a.md", "preference", (), Kind.NOTE),
    ("a.md", "episode", (), Kind.EPISODE),
    ("a.md", "recipe", ("status",), Kind.NOTE),
])  # fmt: skip
def test_in_a_managed_vault_the_folder_decides_then_the_type(path, note_type, keys, kind):
    head = {**({"type": note_type} if note_type else {}), **dict.fromkeys(keys, "x")}
    assert Layout(is_managed=True).kind_of(path, head) is kind


@given(st.lists(st.datetimes(FIRST, LAST, timezones=st.just(UTC)), min_size=2, max_size=20))
def test_ids_sort_by_time(moments):
    ids = [new_id(moment) for moment in sorted(moments)]
    milliseconds = [int(moment.timestamp() * 1000) for moment in sorted(moments)]
    assert [one[:10] for one in ids] == sorted(one[:10] for one in ids)
    assert len({one[:10] for one in ids}) == len(set(milliseconds))
    assert all(len(one) == 26 and set(one) <= set("0123456789abcdefghjkmnpqrstvwxyz") for one in ids)


def test_ids_of_one_moment_differ():
    assert len({new_id(NOW) for _ in range(5000)}) == 5000


def test_an_id_of_a_later_millisecond_is_greater():
    assert new_id(NOW) < new_id(NOW + timedelta(milliseconds=1))


@given(st.text(max_size=200), st.integers(8, 60))
def test_a_slug_is_short_and_of_letters_in_lower_case(text, limit):
    made = slug(text, limit)
    assert 0 < len(made) <= limit
    assert len(made.encode()) <= 120
    assert all(char == "-" or unicodedata.category(char)[0] in "LNM" for char in made)
    assert made == made.lower() == unicodedata.normalize("NFC", made) == slug(made, limit)
    assert not made.startswith("-")
    assert not made.endswith("-")
    assert "--" not in made


@for_each(("text", "made"), [
    ("Maya prefers oat milk.", "maya-prefers-oat-milk"), ("Maya's café", "mayas-cafe"), ("日本", "日本"), ("", "note"),
    ("我对花生过敏。", "我对花生过敏"), ("犬が好き! Tokyoに住む", "犬が好き-tokyoに住む"), ("मैं शाकाहारी हूँ", "मैं-शाकाहारी-हूँ"),
    ("Живёт в Осло", "живёт-в-осло"), ("أنا نباتي", "أنا-نباتي"), ("Große Straße", "grosse-strasse"), ("🥜🚫", "note"),
    (unicodedata.normalize("NFD", "저는 채식주의자"), "저는-채식주의자"), ("我" * 90, "我" * 40), ("İzmir'de", "izmirde"),
    ("x" * 80, "x" * 48), ("one " * 30, "one-one-one-one-one-one-one-one-one-one-one-one"),
])  # fmt: skip
def test_slugs_by_example(text, made):
    assert slug(text) == made


def test_paths_by_example():
    assert (
        layout.fact_path("Maya takes oat milk", "01kagx3m7r9q2d5w8t0v7k3qd", NOW)
        == "facts/2026/11/maya-takes-oat-milk-7k3qd.md"
    )
    assert layout.episode_path("2f1c9a", NOW) == "episodes/2026/11/20-1402-2f1c9a.md"
    assert entity_path("Maya Chen") == "entities/Maya Chen.md"
    assert entity_path("Zoë  of\nOslo") == "entities/Zoë of Oslo.md"


@given(st.text(min_size=1, max_size=300))
def test_a_session_of_any_name_has_a_tail_for_a_file(session):
    assert set(layout.session_tail(session)) <= set("abcdefghijklmnopqrstuvwxyz0123456789")
    assert 4 <= len(layout.session_tail(session)) <= 8


WINDOWS_DEVICES = {
    "con",
    "prn",
    "aux",
    "nul",
    "conin$",
    "conout$",
    *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"),
}
HOSTILE_NAMES = (
    *WINDOWS_DEVICES, *(f"{name}.txt" for name in WINDOWS_DEVICES), "CON .x", "..", ".", "...", " ", "../../etc/passwd", "/abs", "C:\\x",
    ".git", ".gitignore", ".hidden", "~tmp", "~$doc", "#1", "a#b^c|d[e]f", "AC/DC", 'say "x"', "what?", "a*b<c>d", "trailing.", "trailing ",
    "tab\tnew\nline\r", "nul\0", "\x7f", "\ud800", "\u202egnp.exe", "x" * 500, "é" * 300, "😀" * 120, "a%%b%%", "\u200b", "", "-rf", "a.md",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(
    st.sampled_from(HOSTILE_NAMES)
    | st.text(st.characters(), max_size=40)
    | st.text('./\\~ -#^|[]:*?"<>%\n\tconaux1.', max_size=12)
)
def test_an_entity_of_any_name_has_a_file_everyone_accepts(name):
    path = entity_path(name)
    folder, _, file_name = path.partition("/")
    stem = file_name.removesuffix(".md")
    assert folder == "entities"
    assert stem
    assert not set('\\/:*?"<>|#^[]') & set(stem)
    assert all(ord(char) >= 32 and char != "\x7f" for char in stem)
    assert "%%" not in stem
    assert stem.split(".")[0].rstrip(" ").lower() not in WINDOWS_DEVICES
    assert not stem.startswith((" ", ".", "~"))
    assert not stem.endswith((" ", "."))
    assert len(file_name.encode("utf-8")) <= 230
    assert is_note_name(file_name)
    assert entity_path(stem) == path  # the note's own name leads to it again


def test_long_names_take_no_time():
    entity_path("é" * 1_000_000)


@for_each("name", [
    "Maya (Conflicted copy DEVICE 202411281430).md", "a.sync-conflict-20261120-101010-ABCDEFG.md",
    "Notes (Maya's conflicted copy 2026-11-20).md", "Notes (Maya’s MacBook's conflicted copy 2026-11-20).md",
    "Notes (James' conflicted copy 2026-11-20).md", "Notes (conflicted copy 2026-11-20 093612).md", "Notes.Conflict.md",
    "deep/folder/x (conflicted copy).md", "note (Ada s in Konflikt stehende Kopie 2026-03-01).md",
    "note (Copie en conflit de Ada 2026-03-01).md", "note (Ada's conflicted copy 2026-03-01).markdown",
    "note (Copia en conflicto de Ada 2026-03-01).md", "note (Copia in conflitto di Ada 2026-03-01) 2.MD",
    "nota (cópia em conflito de Ada 2026-03-01).md", "note (Конфликтующая копия с компьютера Ada 2026-03-01).md",
    "note (Ada の競合コピー 2026-03-01).md", "note (Ada 的冲突副本 2026-03-01).md", "note (Ada's conflict 2026-03-01).md",
    "note (SFConflict ada@example.org 2026-03-01-10-11-12).md", "note_conflict-20260301-101010.md",
    "note_ada-laptop_Mar-01-101010-2026_Conflict.md", "note (CONFLICT 20260301T070858).md",
    "note.sync-conflict-20260301-101010-5RQAITR.MD", "note (Ada çakışan kopya 2026-03-01).md",
    "note (Ada's conflicted copy 2026-03-01 (1)).md", "note (Case Conflict).md", "note (Unicode Encoding Conflict 1).md",
    "note (コンフリクトコピー 2026-03-01).md",
])  # fmt: skip
def test_copies_of_sync_tools_are_known(name):
    assert is_conflict_copy(name)


@for_each("name", [
    "Maya Chen.md", "name 2.md", "name (1).md", "How to merge a conflicted copy.md", "sync-conflict notes.md", "Conflict.md",
    "conflict of interest.md", "v1.conflict-free types.md", "a (copy).md", "sync-conflict-20261120-x/a.md", "x (conflicted copy)/a.md",
    "(the conflicted).md", "Meeting (2026-03-01).md", "Meeting (Berlin 2026-03-01).md", "Chapter 2.md", "note-LAPTOP.md",
    "Korea (conflict 1950-1953).md", "Conflict (2026-03-01).md", "2026-03-01 conflict.md", "my_conflict.md", "role_conflict.md",
    "Treaty (Konflikt 2026-03-01) Notes.md", "A (Case of Conflict).md", "B (conflict).md",
])  # fmt: skip
def test_names_people_give_are_no_copies(name):
    assert not is_conflict_copy(name)


@for_each(("name", "is_note"), [
    ("a.md", True), ("ä b.md", True), (".a.md", False), ("~a.md", True), ("#a.md", True), ("~$a.md", False), ("a.MD", True), ("a.Markdown", True), ("a.markdow", False), ("a.md~", False), ("a.txt", False),
    (".a.md.swp", False), ("4913", False), (".syncthing.a.md.tmp", False), ("~syncthing~a.md.tmp", False), (".a.md.icloud", False), ("md", False),
])  # fmt: skip
def test_temporary_files_are_no_notes(name, is_note):
    assert is_note_name(name) is is_note


@given(st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/"), min_size=1, max_size=150))
def test_temporary_names_are_hidden_unique_and_known_again(name):
    made = {layout.temporary_name(name) for _ in range(20)}
    assert len(made) == 20
    assert all(one.startswith(".") and not is_note_name(one) and layout.is_temporary_name(one) for one in made)
    assert not layout.is_temporary_name(f".{name}.tmp")


def test_the_vault_is_the_nearest_folder_upwards_with_settings(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_vault(inner) is None
    (tmp_path / "quaid.toml").touch()
    assert find_vault(inner) == tmp_path
    (tmp_path / "a" / "quaid.toml").touch()
    assert find_vault(inner) == tmp_path / "a"


@pytest.mark.parametrize(
    ("name", "skipped"),
    [(".git", True), (".obsidian", True), (".trash", True), ("node_modules", True), ("facts", False)],
)
def test_folders_without_notes_are_skipped(name, skipped):
    assert layout.skips_folder(name) is skipped
