"""How editors save: what each does to a file, with the pause in which somebody else may come by."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

Save = Callable[[Path, bytes, float], None]
"""Add a line to a file, pausing for so many seconds where the file is in between."""


def truncate_pause_write(path: Path, line: bytes, pause_s: float) -> None:
    text = path.read_bytes() + line
    with path.open("wb") as file:
        time.sleep(pause_s)
        file.write(text)


def truncate_close_write(path: Path, line: bytes, pause_s: float) -> None:
    """`O_TRUNC` in one opening and the text in another: nobody holds the file open in the pause."""
    text = path.read_bytes() + line
    path.write_bytes(text[:-1])
    time.sleep(pause_s)
    path.write_bytes(text)


def open_pause_write(path: Path, line: bytes, pause_s: float) -> None:
    with path.open("r+b") as file:
        text = file.read() + line
        time.sleep(pause_s)
        file.seek(0)
        file.write(text)
        file.truncate()


def two_chunks(path: Path, line: bytes, pause_s: float) -> None:
    text = path.read_bytes() + line
    with path.open("wb", buffering=0) as file:
        file.write(text[: len(text) // 2])
        time.sleep(pause_s)
        file.write(text[len(text) // 2 :])


def map_memory(path: Path, line: bytes, pause_s: float) -> None:
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        file.truncate(size + len(line))
        mapped = mmap.mmap(file.fileno(), size + len(line))
    time.sleep(pause_s)
    mapped[size:] = line
    mapped.close()


def append(path: Path, line: bytes, pause_s: float) -> None:
    with path.open("ab") as file:
        time.sleep(pause_s)
        file.write(line)


def rename(path: Path, line: bytes, pause_s: float) -> None:
    text = path.read_bytes() + line
    draft = path.with_name(f".{path.name}.draft")
    draft.write_bytes(text)
    draft.replace(path)
    time.sleep(pause_s)


SAVES: dict[str, Save] = {
    save.__name__: save
    for save in (truncate_pause_write, truncate_close_write, open_pause_write, two_chunks, map_memory, append, rename)
}
