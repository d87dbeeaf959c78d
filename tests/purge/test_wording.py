"""A text is found and replaced in every encoding it may be kept in."""

from __future__ import annotations

import base64
import json
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quaid.errors import UsageError
from quaid.purge.wording import Wording

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
    "latin-1": "Zürich-hunter2".encode("latin-1"),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_text_is_found_and_replaced_in_each_encoding(name: str) -> None:
    wording = Wording([SECRET, "Zürich-hunter2"])
    data = b"before " + ENCODINGS[name] + b" after"
    assert wording.is_in(data)
    assert not wording.is_in(wording.replace(data))


def test_a_text_is_found_where_its_lines_are_wrapped_and_in_the_name_of_a_file() -> None:
    wording = Wording(["Maya hides the key under the stone"])
    assert wording.replace(b"> Maya hides\n> the **key** under the stone.") == b"> [purged]."
    assert wording.replace_name(b"facts/maya-hides-the-key-under-the-stone-7k3qd.md") == b"facts/purged-7k3qd.md"


def test_what_stands_for_it_in_frontmatter_stays_a_string() -> None:
    note = b"---\ntitle: hunter2 is it\n---\nhunter2\n"
    assert Wording(["hunter2"]).replace(note) == b'---\ntitle: "[purged] is it"\n---\n[purged]\n'


def test_a_text_that_stands_anywhere_by_chance_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 4"):
        Wording(["abc"])


@given(st.text(min_size=4, max_size=20), st.binary(max_size=9))
def test_no_text_is_left_behind_in_any_encoding(text: str, before: bytes) -> None:
    text = text.strip()
    raw = text.encode("utf-8", "surrogatepass")
    assume(len(text) >= 4 and raw.lower() not in b"[purged]")
    wording = Wording([text])
    wide = text.encode("utf-16-le", "surrogatepass")
    for held in (before + raw, before + json.dumps(text).encode(), before + wide, before + quote(raw).encode()):
        assert wording.is_in(held)
    assert raw.lower() not in wording.replace(before + raw).lower()
