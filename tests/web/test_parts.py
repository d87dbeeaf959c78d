"""The parts of pages: word diffs, rendered notes, and the files of others."""

from __future__ import annotations

import hashlib
import random
import re
import time

import pytest
from matrices import for_each

from quaid.web.app import HERE
from quaid.web.rendering import MAX_PART, MAX_RENDERED, read_part, render_markdown, render_note, render_reason
from quaid.web.word_diff import Piece, diff_words


def test_each_file_of_others_is_the_one_that_is_named():
    readme = (HERE / "static" / "vendor" / "README.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"^\| `([\w.-]+)` \|.*`([0-9a-f]{64})` \|$", readme, re.MULTILINE))
    files = {path.name for path in (HERE / "static" / "vendor").iterdir() if path.suffix != ".md"}
    assert files == named.keys()
    for name, digest in named.items():
        assert hashlib.sha256((HERE / "static" / "vendor" / name).read_bytes()).hexdigest() == digest


def test_a_diff_is_of_words_and_leaves_out_what_is_far_away():
    before = "".join(f"line {number}\n" for number in range(20)) + "Maya takes soy milk\n"
    pieces = diff_words(before, before.replace("soy", "oat"))
    assert Piece("removed", "soy") in pieces
    assert Piece("added", "oat") in pieces
    assert pieces[0].how == "gap"
    assert "line 3" not in "".join(piece.text for piece in pieces)
    assert diff_words(before, before) == []


def test_a_diff_can_be_put_together_again():
    before, after = "one two\nthree four\n", "one 2\nthree four five\nsix\n"
    pieces = diff_words(before, after)
    assert "".join(text for how, text in pieces if how != "added") == before
    assert "".join(text for how, text in pieces if how != "removed") == after


def test_changes_with_little_between_them_are_one():
    before, after = "She moved to a flat in Porto", "She rented out an old house near Lisbon"
    pieces = diff_words(before, after)
    assert [piece.how for piece in pieces] == ["same", "removed", "added"]
    assert [piece.text for piece in diff_words("A red car, and a blue bike", "A big car, and a fast bike")] == [
        "A ", "red", "big", " car, and a ", "blue", "fast", " bike",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_every_diff_can_be_put_together_again(seed):
    chance = random.Random(seed)
    before, after = (" ".join(chance.choices(["a", "in", "coffee", "Maya", ",", "takes"], k=30)) for _ in range(2))
    pieces = diff_words(before, after)
    assert "".join(text for how, text in pieces if how != "added") == before
    assert "".join(text for how, text in pieces if how != "removed") == after


def test_a_note_is_rendered_as_it_is_linked():
    html = render_note(
        "---\nid: x\n---\n# Plan\n\n- [[Maya Chen#Work|her work]] %%hidden%% ^b1\n- [ ] [rest](../notes/rest.md)\n"
    )
    assert "id: x" not in html
    assert "hidden" not in html
    assert "<h2>Plan</h2>" in html
    assert '<a class="memory" href="/memory/Maya%20Chen%23Work">her work</a>' in html
    assert 'id="b-b1"' in html
    assert "☐" in html
    assert 'href="/memory/notes%2Frest.md"' in html


@for_each("link", [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "data:text/html,x", "vbscript:x", "//evil.example/x",
    "file:///etc/passwd", "&#106;avascript:alert(1)", "\\\\evil.example\\x", "http://[",
])  # fmt: skip
def test_a_link_leads_to_the_memory_or_plainly_to_the_web(link):
    html = render_markdown(f"[a]({link}) ![b]({link}) <{link}>\n\n[c]: {link}\n\n[c]")
    assert all(
        href.startswith(("/memory/", "http://%5B", "http://[")) for href in re.findall(r'href="([^"]*)"', html)
    ), html
    assert "<img" not in html


@pytest.mark.matrix
@pytest.mark.parametrize("text", ["[", "[[", "*a", "> ", "`", "![a](", "==a", "^a ", "<", "| ", "<!--", "[a]: b\n"])
def test_a_note_made_to_take_long_does_not(text):
    started = time.thread_time()
    render_markdown(text * (60_000 // len(text)))
    assert time.thread_time() - started < 5


def test_secrets_are_left_out():
    assert "AKIA" not in render_markdown(
        "key: AKIAQYLPMN5HHHFPZAM2 and aws_secret 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"
    )


def test_a_reason_leaves_out_what_the_diff_beside_it_shows_and_ends_with_a_line():
    shown = render_reason("It reads better.\n\n- before: a\n- after: b\n\n> Maya: a <b>\n")
    assert "before" not in shown
    assert "<blockquote>" in shown
    assert "<b>" not in shown
    assert "… and 1 more line" in render_reason("a" * 1400 + "\n" + "b" * 200)


def test_a_long_note_is_shown_in_parts_of_whole_lines_and_no_secret_is_cut_in_two():
    line = "Maya takes oat milk in her coffee, and has done so for years.\n\n"
    body = "A" * 40
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{f'MIIEpAIBAAKCAQEA{body}abc123' * 20}\n-----END RSA PRIVATE KEY-----\n"
    long = line * (MAX_PART // len(line) - 5)
    source = long + key + line * 30_000
    _, count = read_part(source, 1)
    parts = [read_part(source, number)[0] for number in range(1, count + 1)]
    assert "".join(parts) == source
    assert all(part.endswith("\n") for part in parts)
    assert max(map(len, parts)) < MAX_RENDERED
    assert "MIIE" not in "".join(map(render_note, parts[:3]))


def test_a_short_note_is_one_part_and_no_part_is_beyond_the_last():
    assert read_part("short", 5) == ("short", 1)
    assert read_part("", 1) == ("", 1)
    long = "x" * 1_000_000
    assert read_part(long, 10**6) == read_part(long, 10)
