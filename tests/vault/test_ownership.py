"""Whose a note is and who may see it: whatever a person would read as private is hidden, in any spelling."""

from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import examples, for_each

from quaid.index.scope import is_visible
from quaid.recall.visibility import may_see
from quaid.vault.layout import DEFAULT, Layout
from quaid.vault.notes import parse_note

HERS = frozenset({"maya", "default"})
MADE = "id: 01kagx3m7r9q2d5w8t0v7k3qdz\ntype: fact\n"

PRIVATE = {
    "plain": "---\nowner: bob\nprivacy: private\n---\nx\n",
    "in any case": "---\nOWNER: bob\nPrivacy: Private\n---\nx\n",
    "quoted with spaces": "---\nowner: bob\n'privacy': \"private \"\n---\nx\n",
    "a list": "---\nowner: bob\nprivacy: [private]\n---\nx\n",
    "a list of both": "---\nowner: bob\nprivacy: [shared, private]\n---\nx\n",
    "a switch": "---\nowner: bob\nprivate: true\n---\nx\n",
    "another key": "---\nowner: bob\nvisibility: private\n---\nx\n",
    "a tag": "---\nowner: bob\ntags: [x, private]\n---\nx\n",
    "an owner nobody knows": "---\nowner: Robert Tables\nprivacy: private\n---\nx\n",
    "an owner in a list": "---\nowner: [bob]\nprivacy: private\n---\nx\n",
    "two owners": "---\nowner: [bob, maya]\nprivacy: private\n---\nx\n",
    "two owners in lines": "---\nowner:\n  - bob\n  - maya\nprivacy: private\n---\nx\n",
    "an owner as a map": "---\nowner: {name: bob}\nprivacy: private\n---\nx\n",
    "an owner as a link": '---\nowner: "[[Bob]]"\nprivacy: private\n---\nx\n',
    "an owner as a bare link": "---\nowner: [[people/Bob|B]]\nprivacy: private\n---\nx\n",
    "nested": "---\nmeta:\n  owner: bob\n  privacy: private\n---\nx\n",
    "nested in a list": "---\nmeta:\n  - owner: bob\n    privacy: private\n---\nx\n",
    "a broken line above": "---\nowner: bob\nx: [\nprivacy: private\n---\nx\n",
    "a broken quote": '---\nowner: "bob\nprivacy: private\n---\nx\n',
    "in one line": "---\nowner: bob privacy: private\n---\nx\n",
    "values in lines of their own": "---\nprivacy:\n  private\nowner:\n  bob\nx: [\n---\nx\n",
    "stated twice": "---\nowner: bob\nprivacy: private\nprivacy: shared\n---\nx\n",
    "twice the owner": "---\nowner: bob\nowner: maya\nprivacy: private\n---\nx\n",
    "in two spellings": "---\nowner: bob\nprivacy: shared\nPrivacy: private\n---\nx\n",
    "a mark in front": "\ufeff---\nowner: bob\nprivacy: private\n---\nx\n",
    "two marks in front": "\ufeff\ufeff---\nowner: bob\nprivacy: private\n---\nx\n",
    "a space nobody sees in front": "\u200b---\nowner: bob\nprivacy: private\n---\nx\n",
    "blank lines in front": "\n\n---\nowner: bob\nprivacy: private\n---\nx\n",
    "a title in front": "# Plan\n\n---\nowner: bob\nprivacy: private\n---\nx\n",
    "another head in front": "---\nowner: maya\n---\n---\nowner: bob\nprivacy: private\n---\nx\n",
    "four dashes": "----\nowner: bob\nprivacy: private\n----\nx\n",
    "never closed": "---\nowner: bob\n\nprivacy: private\n\nx\n",
    "tabs": "---\n\towner: bob\n\tprivacy: private\n---\nx\n",
    "flow": "---\n{owner: bob, privacy: private}\n---\nx\n",
    "broken flow": "---\n{owner: bob, privacy: private\n---\nx\n",
    "a complex key": "---\n? privacy\n: private\nowner: bob\n---\nx\n",
    "wide colons": "---\nowner： bob\nprivacy： private\n---\nx\n",
    "wide letters": "---\nowner: bob\nｐｒｉｖａｃｙ: private\n---\nx\n",
    "lines that end in CR": "---\rowner: bob\rprivacy: private\r---\rx\r",
    "lines that end in CRLF": "---\r\nowner: bob\r\nprivacy: private\r\n---\r\nx\r\n",
    "TOML": '+++\nowner = "bob"\nprivacy = "private"\n+++\nx\n',
    "broken TOML": "+++\nowner = bob\nprivacy = private\n+++\nx\n",
    "JSON": '{"owner": "bob", "privacy": "private"}\nx\n',
    "broken JSON": '{"owner": "bob", "privacy": "private",}\nx\n',
    "JSON in lines": '{\n  "owner": "bob",\n  "privacy": "private"\n}\nx\n',
    "Logseq": "owner:: bob\n\nprivacy:: private\n\nx\n",
    "bold": "**Owner:** Bob\n**Privacy:** private\n\nx\n",
    "a comment of HTML": "<!-- owner: bob -->\n<!-- privacy: private -->\nx\n",
    **{
        f"the word {word}": f"---\nowner: bob\nprivacy: {word}\n---\nx\n"
        for word in ("true", "yes", "hidden", "personal", "secret", "mine", "'private!'", "PRIVATE # mine", "privat")
    },
}
OPEN = {
    "an owner alone": "---\nowner: bob\n---\nx\n",
    "shared": "---\nowner: bob\nprivacy: Shared\n---\nx\n",
    "denied": "---\nowner: bob\nprivate: false\n---\nx\n",
    "a title": "---\nowner: bob\ntitle: My private notes on privacy\n---\nx\n",
    "prose": "The owner: bob says that privacy: is good, and private things are private.\n",
    "her own": "---\nowner: maya\nprivacy: private\n---\nx\n",
    "nobody's": "---\nprivacy: private\n---\nx\n",
}


@for_each("encoding", ["utf-8", "utf-16"])
@for_each("spelling", PRIVATE)
def test_what_a_person_reads_as_private_is_hidden(spelling: str, encoding: str) -> None:
    data = PRIVATE[spelling].encode(encoding)
    note = parse_note("a/plan.md", data)
    assert note.privacy == "private"
    assert not is_visible(note.owner, note.privacy, HERS)
    for path in ("a/plan.md", "USER.md", "review/x.md", "snippets/USER.snippets.md", "projects/x/PROJECT.md"):
        assert not may_see(path, data, HERS, DEFAULT), path
    assert not may_see("facts/x.md", data, HERS, Layout(is_managed=True))


@pytest.mark.parametrize("spelling", OPEN)
def test_what_a_person_reads_as_open_or_as_their_own_stays_theirs(spelling: str) -> None:
    assert may_see("a/plan.md", OPEN[spelling].encode(), HERS, DEFAULT)


@pytest.mark.parametrize("word", ["private", "Private", "hidden", "true", "[private]", "'shared '' '", "sharde"])
def test_only_two_words_open_a_memory_of_quaids(word: str) -> None:
    note = parse_note("facts/a.md", f"---\n{MADE}owner: bob\nprivacy: {word}\n---\nx\n".encode())
    assert (note.kind, note.owner, note.privacy) == (
        "fact",
        "bob",
        "shared" if word.startswith("'shared") else "private",
    )


_CASES = st.sampled_from([str, str.upper, str.title, str.capitalize])
_QUOTES = st.sampled_from(["{}", '"{}"', "'{}'", '" {} "', "[{}]", "['{}']", "{} ", "{} # why"])
_COLONS = st.sampled_from([": ", ":  ", " : ", ":\t"])
_NOISE = st.sampled_from(
    [
        "title: Plan",
        "tags: [a, b]",
        "x: [",
        "- loose",
        "# comment",
        "date: 2026-01-01",
        "a: 'b",
        "rating: 5",
        "",
        "\t",
        "}",
        "k: {",
    ]
)
_WORDS = st.sampled_from(["private", "secret", "hidden", "personal", "true", "yes", "me only", "confidential"])
_OWNERS = st.sampled_from(["bob", "Bob Brown", "[[Bob]]", "b.o.b@example.org", "böb", "Боб"])


@st.composite
def private_heads(draw: st.DrawFn) -> str:
    """A head that a person would read as private and another's, however it is written."""

    def line(key: str, value: str) -> str:
        return draw(_CASES)(key) + draw(_COLONS) + draw(_QUOTES).format(value)

    privacy = line("privacy", draw(_CASES)(draw(_WORDS)))
    if draw(st.booleans()):
        privacy = line("private", draw(st.sampled_from(["true", "yes", "on", "1", "True"])))
    lines = [line("owner", draw(_OWNERS)), privacy, *draw(st.lists(_NOISE, max_size=4))]
    random.Random(draw(st.integers(0, 999))).shuffle(lines)
    opening = draw(st.sampled_from(["---", "--- ", "\ufeff---", "\n---", "\u200b---", "# Plan\n---", "----"]))
    closing = draw(st.sampled_from(["---", "...", "", "--- "]))
    ending = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return ending.join([opening, *lines, closing, "The wombat sleeps.", ""])


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(private_heads(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_no_spelling_of_private_is_seen_by_another(text: str, encoding: str) -> None:
    assert not may_see("a/plan.md", text.encode(encoding), HERS, DEFAULT), text


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(st.dictionaries(st.text(max_size=8), st.one_of(st.text(max_size=8), st.integers(), st.none()), max_size=4))
def test_other_words_hide_no_note_from_its_owner(fields: dict[str, object]) -> None:
    said = {
        key: value for key, value in fields.items() if not re.search(r"(?i)owner|priva|visib|confid", f"{key}{value}")
    }
    assert may_see("a/plan.md", f"---\n{json.dumps(said)}\n---\nx\n".encode(), HERS, DEFAULT)
