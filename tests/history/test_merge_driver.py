"""The driver as git calls it: three files, one of which it changes, and an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from quaid.cli.merge_driver import main
from quaid.history.merge_driver import command_line, is_set_up, set_up

NOTE = "---\nid: 01kagx3m7r9q2d5w8t0v7k3qdz\ntype: fact\nstatus: active\n{more}---\nMaya takes oat milk.\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return [str(tmp_path / name) for name in "OAB"]


def merge(files: list[str], texts: list[bytes], path: str = "facts/x.md", size: str = "7") -> tuple[int, bytes]:
    for name, text in zip(files, texts, strict=True):
        Path(name).write_bytes(text)
    code = main([*files, size, path])
    assert sorted(entry.name for entry in Path(files[0]).parent.iterdir()) == ["A", "B", "O"]
    return code, Path(files[1]).read_bytes()


def test_what_can_be_merged_by_parts_ends_with_0(files: list[str]) -> None:
    texts = [NOTE.format(more=f"confirmations: {number}\n").encode() for number in (1, 2, 4)]
    assert merge(files, texts) == (0, NOTE.format(more="confirmations: 5\n").encode())


def test_lines_of_other_files_are_merged_as_git_does(files: list[str]) -> None:
    assert merge(files, [b"a\nb\nc\n", b"A\nb\nc\n", b"a\nb\nC\n"], "own.md") == (0, b"A\nb\nC\n")
    code, text = merge(files, [b"a\n", b"b\n", b"c\n"], "own.md", "9")
    assert code == 1
    assert text == b"<<<<<<<<< ours\nb\n=========\nc\n>>>>>>>>> theirs\n"


@pytest.mark.parametrize("hostile", [b"\0binary\0", b"---\nid: [\n---\nx\n", b"id: no end\n" * 400_000, b"\xff\xff\n"])
def test_no_byte_of_what_cannot_be_merged_is_lost(files: list[str], hostile: bytes) -> None:
    ours = NOTE.format(more="").encode()
    code, text = merge(files, [b"", ours, hostile])
    assert code == 1
    assert ours.splitlines()[1] in text
    if b"\0" not in hostile:  # what is no text, git keeps in its index
        assert set(hostile.splitlines()) <= set(text.splitlines())
    assert Path(files[2]).read_bytes() == hostile


def test_a_call_by_hand_and_a_missing_file_are_explained(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "is for git to call" in capsys.readouterr().err
    assert main([*files, "7", "facts/x.md"]) == 2
    assert "could not be merged" in capsys.readouterr().err


def test_a_folder_without_a_repository_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_set_up(tmp_path)
    assert not set_up(tmp_path)
    monkeypatch.setattr("shutil.which", lambda *_: None)
    assert " merge-driver %O %A %B %L %P || " in command_line()
    assert not command_line().startswith("quaid ")
