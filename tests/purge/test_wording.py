"""A text is found and replaced in every encoding it may be kept in."""

from __future__ import annotations

import base64
import json
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from matrices import for_each

from quaid.errors import UsageError
from quaid.purge.wording import PURGED, Wording

SECRET = "Zürich-hunter2-Ω7"
ENCODINGS = {
    "utf-8": SECRET.encode(),
    "nfd": unicodedata.normalize("NFD", SECRET).encode(),
    "upper": SECRET.upper().encode(),
    "utf-16-le": SECRET.encode("utf-16-le"),
    "utf-16-be": SECRET.encode("utf-16-be"),
    "json": json.dumps(SECRET).encode(),
    "percent": quote(SECRET).encode(),
    "base64": base64.b64encode(b"xx" + SECRET.encode() + b"y"),
    "base64 in lines": base64.encodebytes(b"x" * 48 + SECRET.encode() + b"y"),
    "hex": SECRET.encode().hex().encode(),
    "json in json": json.dumps(json.dumps(SECRET)).encode(),
    "every letter in json": "".join(f"\\u{ord(letter):04X}" for letter in SECRET).encode(),
    "every byte in percent": "".join(f"%{byte:02X}" for byte in SECRET.encode()).encode(),
    "html": "".join(f"&#{ord(letter)};" for letter in SECRET).encode(),
    "a line ends within it": SECRET.replace("hun", "hun\n> ").encode(),
    "a line ends within it in json": json.dumps(SECRET.replace("hun", "hun\n")).encode(),
    "latin-1": "Zürich-hunter2".encode("latin-1"),
}


@for_each("name", ENCODINGS)
def test_a_text_is_found_and_replaced_in_each_encoding(name: str) -> None:
    wording = Wording([SECRET, "Zürich-hunter2"])
    data = b"before " + ENCODINGS[name] + b" after"
    assert wording.is_in(data)
    assert not wording.is_in(wording.change_text(data))


def test_a_text_is_found_where_its_lines_are_wrapped_and_in_the_name_of_a_file() -> None:
    wording = Wording(["Maya hides the key under the stone"])
    assert wording.change_text(b"> Maya hides\n> the **key** under the stone.") == b"> [purged]."
    assert wording.change_path(b"facts/maya-hides-the-key-under-the-stone-7k3qd.md") == b"facts/purged-7k3qd.md"


def test_what_is_left_of_a_text_before_and_after_an_ellipsis_goes_too() -> None:
    wording = Wording(["Maya hides the key under the stone"])
    assert wording.change_text("remember: Maya hides the key…\n".encode()) == "remember: [purged]…\n".encode()
    assert wording.change_text(b"... under the stone. Maya ... is here") == b"... [purged]. Maya ... is here"


def test_words_that_are_apart_in_a_line_are_none_and_a_file_that_is_no_text_keeps_its_length() -> None:
    wording = Wording(["hunter2-swordfish"])
    assert not wording.is_in(b"hunter2-sword fish")
    assert len(wording.change_text(b"\0\1hunter2-swordfish\0")) == 20
    assert not wording.is_in(wording.change_text(b"\0\1hunter2-swordfish\0"))


def test_what_stands_for_it_in_frontmatter_stays_a_string() -> None:
    note = b"---\ntitle: hunter2 is it\n---\nhunter2\n"
    assert Wording(["hunter2"]).change_text(note) == b'---\ntitle: "[purged] is it"\n---\n[purged]\n'


def test_a_text_that_stands_anywhere_by_chance_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 4"):
        Wording(["abc"])
    with pytest.raises(UsageError, match="stands for what is purged"):
        Wording(["Purged"])


@given(st.text(min_size=4, max_size=20), st.binary(max_size=9))
def test_no_text_is_left_behind_in_any_encoding(text: str, before: bytes) -> None:
    text = text.strip()
    raw = text.encode("utf-8", "surrogatepass")
    assume(len(text) >= 4 and text.casefold() not in PURGED)
    wording = Wording([text])
    wide = text.encode("utf-16-le", "surrogatepass")
    for held in (before + raw, before + json.dumps(text).encode(), before + wide, before + quote(raw).encode()):
        assert wording.is_in(held)
    assert raw.lower() not in wording.change_text(before + raw).lower()
