"""Half a character and NUL, which neither UTF-8 nor SQLite nor git takes, are U+FFFD by the time a memory has them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vaults import Vault

from quaid.errors import NothingToReplaceError, QuaidError
from quaid.model import Turn
from quaid.text.invisible import whole, whole_json

HALF = ("\ud83d", "\ude00", "\0", "\udce9")
ANY_TEXT = st.text(st.characters(categories=None) | st.sampled_from(HALF), max_size=30)
pytestmark = pytest.mark.usefixtures("calm")


@given(ANY_TEXT)
def test_a_whole_text_can_be_written(text: str) -> None:
    found = whole(text)
    found.encode()
    assert "\0" not in found
    assert whole(found) == found
    if not any(half in text for half in "\0") and text.encode("utf-8", "replace").decode() == text:
        assert found == text


def test_two_halves_become_their_character() -> None:
    assert whole("\ud83d\ude00 and \ude00\ud83d") == "\U0001f600 and \ufffd\ufffd"
    assert whole({"a": ["\ud83d", None, 7]}) == {"a": ("\ufffd", None, 7)}
    assert whole_json(r'{"\ud83d": "\ud83d\ude00 \\u0000 \u0000"}') == r'{"\ufffd": "\ud83d\ude00 \\u0000 \ufffd"}'


@pytest.mark.matrix
@pytest.mark.parametrize("half", HALF)
def test_every_text_is_taken_and_found(vault: Vault, half: str) -> None:
    said = f"Maya keeps {half} larkspur in the shed"
    with vault.memory() as memory:
        first = memory.remember(said, speaker=half, session=half, keywords=[f"k{half}"], project=f"p{half}")
        assert first.text == said.replace(half, "\ufffd")
        assert memory.remember(said).outcome == "confirmed"
        assert memory.get(said).document.id == first.id
        assert memory.recall(f"larkspur {half}", session=half).hits[0].id == first.id
        assert memory.search(f"larkspur {half}").hits
        memory.note(said, session=half)
        memory.link(f"Larkspur{half}", f"grows{half} in", f"Shed{half}")
        memory.extract([Turn(f"Jon{half}", f"I met {half} Biscuit the quokka")], session=f"x{half}")
        assert memory.recall("Biscuit quokka").hits
        asked: list[Any] = [memory.get, memory.why, memory.history, memory.forget, memory.restore]
        for ask in (*asked, lambda ref: memory.recall("tea", as_of=ref)):
            with pytest.raises(QuaidError):
                ask(f"nothing {half}")
        with pytest.raises(NothingToReplaceError):
            memory.remember("Maya has given up tea", replaces=f"nothing {half}")
        assert memory.forget(said).id == first.id
    vault.assert_sound()


@pytest.mark.slow
def test_bytes_of_a_command_line_that_are_not_utf8_are_answered(vault: Vault) -> None:
    def quaid(*arguments: bytes) -> str:
        command = [sys.executable, "-m", "quaid", *arguments, "--vault", str(vault.root)]
        return subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout

    quaid(b"remember", b"Maya likes the caf\xe9 at the corner")
    assert "Maya likes the caf\ufffd at the corner" in quaid(b"recall", b"caf\xe9 corner")
