"""ZIP archives as ChatGPT and Claude.ai send them: the conversations in them, unpacked as they are read."""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from quaid.errors import BadInputError

UNPACKED_LIMIT_BYTES = 4 * 2**30
"""All conversations of an archive together; an archive that holds more is a trap."""

_CHUNK_BYTES = 2**20
_HELD_IN_MEMORY_BYTES = 16 * 2**20
_CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:[-_][0-9]+)?\.json", re.IGNORECASE)


def read_members(stream: IO[bytes], name: str) -> Iterator[Iterator[bytes]]:
    """The chunks of each `conversations.json`, or `conversations-000.json` and so on, in order.

    Raises:
        BadInputError: the archive is damaged, encrypted, holds no conversations or more than the limit.
    """
    left = UNPACKED_LIMIT_BYTES

    def unpack(member: zipfile.ZipInfo) -> Iterator[bytes]:
        nonlocal left
        with _explained(name), archive.open(member) as unpacked:
            while chunk := unpacked.read(_CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise BadInputError(
                        f"{name} unpacks to more than {UNPACKED_LIMIT_BYTES / 2**30:g} GB of conversations. Unpack it "
                        "and give its parts one by one."
                    )
                yield chunk

    with _explained(name), _seekable(stream) as seekable, zipfile.ZipFile(seekable) as archive:
        members = [
            entry
            for entry in archive.infolist()
            if _CONVERSATIONS.fullmatch(entry.filename) and not entry.filename.startswith("__MACOSX/")
        ]
        if not members:
            raise BadInputError(
                f"{name} is a ZIP archive without conversations.json. Give the archive as ChatGPT or Claude.ai sent "
                "it, or a transcript taken out of it."
            )
        for member in sorted(members, key=lambda entry: entry.filename):
            yield unpack(member)


@contextmanager
def _seekable(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    if stream.seekable():
        yield stream
        return
    with tempfile.SpooledTemporaryFile(max_size=_HELD_IN_MEMORY_BYTES) as copy:
        shutil.copyfileobj(stream, copy)
        yield copy


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, ValueError, EOFError) as error:
        raise BadInputError(f"{name} is a damaged ZIP archive ({error}). Download it again.") from error
    except (RuntimeError, NotImplementedError) as error:
        raise BadInputError(
            f"{name} cannot be unpacked ({error}). Unpack it and give its conversations.json."
        ) from error
