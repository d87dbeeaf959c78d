"""A doc is cut into passages that lose nothing, split no code and no table, and know their lines."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quaid.docs.chunks import parse_doc
from quaid.recall.cutoff import tokens
from quaid.vault.markdown import CHUNK_CHARS, split_blocks

USUAL, SMALL = (800, 100), (60, 15)


def parse(text, sizes=None, doc_id="p:docs/a.md", max_bytes=2_000_000):
    data = text if isinstance(text, bytes) else text.encode()
    chunk, overlap = sizes or USUAL
    with patch.multiple("quaid.docs.chunks", CHUNK_TOKENS=chunk, OVERLAP_TOKENS=overlap):
        return parse_doc(doc_id, "p", data, max_bytes)


def cut(text, sizes=None):
    return parse(text, sizes).passages


def places(text, sizes=None):
    return [(one.heading, one.first_line, one.last_line) for one in cut(text, sizes)]


def long(words, line=""):
    """Lines of ten words, so many words in all."""
    return "\n".join(f"{line}" + " ".join(f"w{10 * row + n}" for n in range(10)) for row in range(words // 10))


# -- headings ----------------------------------------------------------------------------------------------------------


def test_a_passage_is_what_stands_under_a_heading():
    text = f"# Guide\n\n{long(300)}\n\n## Setup\n\n{long(300)}\n\n### Linux\n\n{long(300)}\n\n## Use\n\n{long(300)}\n"
    assert [heading for heading, _, _ in places(text)] == [
        ("Guide",), ("Guide", "Setup"), ("Guide", "Setup", "Linux"), ("Guide", "Use"),
    ]  # fmt: skip
    setup = cut(text)[1]
    lines = text.split("\n")
    assert setup.text == "\n".join(lines[setup.first_line - 1 : setup.last_line])
    assert setup.text.startswith("## Setup\n\nw0 ")


def test_a_sentence_under_a_heading_is_a_passage():
    text = "# Guide\n\nIntro.\n\n## A\n\nOne.\n\n## B\n\nTwo.\n\n### Deep\n\nThree.\n"
    assert places(text) == [
        (("Guide",), 1, 3), (("Guide", "A"), 5, 7), (("Guide", "B"), 9, 11), (("Guide", "B", "Deep"), 13, 15),
    ]  # fmt: skip
    assert [chunk.context for chunk in parse(text).chunks] == ["Guide", "Guide > A", "Guide > B", "Guide > B > Deep"]


def test_headings_above_a_heading_go_with_it_and_one_with_nothing_below_is_its_own_words():
    text = f"# Guide\n## Setup\n### Linux\n{long(300)}\n## Nothing\n"
    first, last = cut(text)
    assert (first.heading, first.first_line, first.text.split("\n")[:3]) == (
        ("Guide", "Setup", "Linux"), 1, ["# Guide", "## Setup", "### Linux"],
    )  # fmt: skip
    assert last.text == "## Nothing"
    assert parse(text).chunks[-1].text == "Nothing"


@pytest.mark.parametrize(("text", "heading"), [
    ("Title\n=====\n\nWords.\n", ("Title",)), ("A\nlong title\n---\nWords.\n", ("A long title",)),
    ("## *Bold* `code` ##\nWords.\n", ("Bold code",)), ("  # In\nWords.\n", ("In",)), ("#\nWords.\n", ()),
    ("#no heading\n", ()), ("    # code\n", ()), ("- item\n---\n", ()), ("> quoted\n---\n", ()), ("words\n\n---\n", ()),
    ("####### seven\n", ()), ("###### Six\nWords.\n", ("Six",)), ("# A\n#### D\nWords\n", ("A", "D")),
    ("one\ntwo\nthree\nfour\n---\n", ()),
])  # fmt: skip
def test_what_a_heading_is(text, heading):
    assert [one.heading for one in cut(text)] == [heading]


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "- ```", "> ```", "  ```"])
def test_nothing_in_code_is_a_heading(fence):
    mark = fence.lstrip("-> ")
    close = fence.replace("-", " ")
    text = f"# Real\n\n{fence}python\n# comment\n| a |\n|---|\n<!-- {mark[:2]} -->\n{close}\n"
    (passage,) = cut(text)
    assert (passage.heading, passage.first_line, passage.last_line) == (("Real",), 1, 8)
    assert "<!--" in passage.text
    assert "# comment" in parse(text).chunks[0].text


def test_a_fence_that_is_never_closed_hides_nothing():
    assert [heading for heading, _, _ in places(f"# A\n\n```\ncode\n\n# B\n\n{long(400)}\n")] == [("A",), ("B",)]


def test_comments_are_not_shown_and_hide_their_headings():
    text = (
        "# A\n<!-- SOURCES: quaid/recall\n# no heading\n-->\nSeen <!-- not\nthis --> and `<!-- that -->`.\n<!-- open\n"
    )
    (passage,) = cut(text)
    assert passage.text == "# A\n\nSeen \n and `<!-- that -->`.\n<!-- open"
    assert (passage.first_line, passage.last_line) == (1, 7)


def test_frontmatter_counts_as_lines_and_is_not_shown():
    text = "---\ntitle: The guide\ntags: [setup]\ndescription: How to begin\n---\n# Begin\n\nWords.\n"
    doc = parse(text)
    (passage,) = doc.passages
    assert (passage.text, passage.first_line, passage.last_line) == ("# Begin\n\nWords.", 6, 8)
    assert doc.title == "The guide"
    assert doc.chunks[0].keywords == "docs a setup How to begin"
    assert doc.chunks[0].context == "The guide > Begin"


@pytest.mark.parametrize(
    "text", ["", "\n\n", "---\ntitle: Only this\n---\n", "\ufeff", "<!-- nothing -->", b"\0\0\0\0"]
)
def test_a_doc_that_is_empty_label_has_no_passages(text):
    doc = parse(text)
    assert (doc.passages, doc.chunks) == ((), ())
    assert doc.title in {"a", "Only this"}


def test_a_doc_takes_nothing_from_its_frontmatter_that_would_hide_it():
    note = parse("---\ntechnical: true\nprivacy: private\nvalid_until: 2020-01-01\nid: x\ntype: fact\n---\nWords.\n")
    assert (note.id, note.kind, note.project, note.technical, note.valid_until) == (
        "p:docs/a.md",
        "doc",
        "p",
        False,
        None,
    )


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_a_long_section_is_cut_and_neighbours_overlap():
    text = "# A\n\n" + "\n\n".join(long(40, f"p{n} ") for n in range(80)) + "\n"
    found = cut(text)
    assert len(found) > 3
    assert all(tokens(one.text) <= 800 and one.heading == ("A",) for one in found)
    assert all(tokens(one.text) > 600 for one in found[:-1])
    for before, after in itertools.pairwise(found):
        shared = before.last_line - after.first_line + 1
        assert shared > 0
        assert before.text.split("\n")[-shared:] == after.text.split("\n")[:shared]
        assert tokens("\n".join(after.text.split("\n")[:shared])) <= 100


def test_what_is_repeated_is_searched_once():
    text = "# A\n\n" + "\n\n".join(f"Paragraph {n} is about thing{n}x. " + long(30) for n in range(40))
    chunks = parse(text).chunks
    assert all(sum(f"thing{n}x" in chunk.text for chunk in chunks) == 1 for n in range(40))


def test_a_single_line_of_any_length_is_cut_at_sentences():
    line = " ".join(f"Sentence {n} says this." for n in range(2000))
    found = cut(f"# A\n\n{line}\n")
    assert all(tokens(one.text) <= 800 for one in found)
    assert all((one.first_line, one.last_line) in {(1, 3), (3, 3)} for one in found)
    assert all(one.text.startswith("Sentence") and one.text.endswith(".") for one in found[1:])


@pytest.mark.parametrize("block", [
    "```\n" + long(1500) + "\n```",
    "| n | words |\n|---|---|\n" + "\n".join(f"| {n} | some words of a row |" for n in range(300)),
])  # fmt: skip
def test_code_and_tables_stay_whole(block):
    found = cut(f"# A\n\n{long(600)}\n\n{block}\n\n{long(600)}\n")
    assert [one.text == block for one in found] == [False, True, False]


def test_a_heading_stays_with_code_that_is_too_long():
    code = "```\n" + long(1500) + "\n```"
    (passage,) = cut(f"# A\n\n## B\n\n{code}\n")
    assert passage.text == f"# A\n\n## B\n\n{code}"


def test_chunks_are_short_and_say_what_their_passage_says():
    doc = parse("# A\n\n" + "\n\n".join(f"Paragraph **{n}** of [many](x.md). " + long(40) for n in range(30)))
    assert all(len(chunk.text) <= CHUNK_CHARS * 1.25 for chunk in doc.chunks)
    assert all("**" not in chunk.text and "x.md" not in chunk.text for chunk in doc.chunks)
    assert {chunk.passage for chunk in doc.chunks} == {one.ordinal for one in doc.passages}
    assert [chunk.ordinal for chunk in doc.chunks] == [*range(len(doc.chunks))]


def test_five_thousand_lines():
    text = "".join(f"## Part {n}\n\n{long(70)}\n\n```\ncode {n}\n```\n\n" for n in range(400))
    found = cut(text)
    assert text.count("\n") > 5_000
    assert all(text.split("\n")[one.first_line - 1].startswith("## Part") for one in found)
    assert found[-1].last_line == text.count("\n") - 1


# -- other texts -------------------------------------------------------------------------------------------------------


def test_line_ends_make_no_difference():
    text = f"---\ntitle: T\n---\n# A\n\n{long(900)}\n\n```\ncode\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n"
    assert cut(text) == cut(text.replace("\n", "\r\n")) == cut("\ufeff" + text)


@pytest.mark.parametrize("name", ["notes.txt", "README"])
def test_plain_text_has_no_headings(name):
    doc = parse(f"Title\n=====\n\n# no heading\n\n{long(1500)}\n", doc_id=f"p:{name}")
    assert {one.heading for one in doc.passages} == {()}
    assert doc.passages[0].first_line == 1
    assert doc.title == name.partition(".")[0]


def test_a_doc_without_headings_and_bytes_that_are_no_utf8():
    doc = parse("Gr\xfc\xdfe aus K\xf6ln.".encode("cp1252"))
    assert doc.passages[0].text == "Grüße aus Köln."
    assert doc.problems == ("it is not UTF-8; read as Windows-1252",)


def test_both_sides_of_a_conflict_are_searched():
    doc = parse("# A\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n")
    assert "merge conflict" in doc.problems[0]
    assert [(one.heading, one.last_line) for one in doc.passages] == [(("A",), 6)]


def test_a_long_doc_is_searched_up_to_its_limit():
    doc = parse("# A\n\n" + "word " * 1000, max_bytes=1000)
    assert "only its first" in doc.problems[0]
    assert sum(len(one.text) for one in doc.passages) < 1001


TOKEN = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEowIBAAKCAQEAx5Zq3vT8kN2mYwRf7uJ1pLcD9sHgXbV4eKaQnWyMzEtB\n" * 6
    + "-----END RSA PRIVATE KEY-----"
)


def test_secrets_are_not_in_it_and_lines_survive():
    text = f"# Tools\n\nToken: `{TOKEN}`\n\n```\n{PEM}\n```\n\n<private>\nmine\n</private>\n\n## Last\n\n{long(300)}\n"
    doc = parse(text)
    whole = "\n".join([*(one.text for one in doc.passages), *(chunk.text for chunk in doc.chunks)])
    assert TOKEN not in whole
    assert "MIIEow" not in whole
    assert "mine" not in whole
    assert "[redacted: " in whole
    assert len(doc.redacted) == 2
    assert "secrets in it are not searched" in doc.problems[0]
    last = doc.passages[-1]
    assert text.split("\n")[last.first_line - 1] == "## Last"
    assert last.last_line == text.count("\n")


# -- whatever is written -----------------------------------------------------------------------------------------------

WORDS = st.lists(
    st.sampled_from(["alpha", "beta", "gamma", "delta", "`x`", "**y**", "[l](m)", "1.", "|", "#", "-", ">", "*"]),
    min_size=1,
    max_size=30,
)
PARAGRAPH = st.lists(WORDS.map(" ".join), min_size=1, max_size=12).map("\n".join)
HEADING = st.tuples(st.integers(1, 6), st.sampled_from(["A", "B", "Set *up*", ""])).map(
    lambda h: f"{'#' * h[0]} {h[1]}"
)
SETEXT = st.sampled_from(["Title\n===", "Two\nlines\n---"])
CODE = st.tuples(st.sampled_from(["```", "~~~", "````"]), st.lists(st.sampled_from(["# no", "", "| a", "x = 1", "<!--"]), max_size=90)).map(
    lambda c: "\n".join([c[0], *c[1], c[0]])
)  # fmt: skip
TABLE = (
    st.integers(0, 60)
    .map(lambda n: "| a | b |\n|---|:-:|\n" + "\n".join(["| cell one | cell two |"] * n))
    .map(str.strip)
)
COMMENT = st.sampled_from(["<!-- hidden -->", "<!-- hidden\n\n# hidden\n-->"])
DOC = st.lists(st.one_of(PARAGRAPH, HEADING, SETEXT, CODE, TABLE, COMMENT), max_size=14).map("\n\n".join)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(DOC, st.sampled_from([SMALL, USUAL]))
@example(f"{'alpha ' * 25}\n-\n\n{'beta ' * 24}".strip(), SMALL)
@example(f"# A\n\n{'> * ' * 4}\n\n{'alpha ' * 20}\n-\n\n{'beta ' * 24}".strip(), SMALL)
def test_every_visible_line_is_in_some_passage_and_no_block_is_split(text, sizes):
    blocks = list(split_blocks(text.split("\n")))
    found = cut(text, sizes)
    limit, overlap = sizes
    for block in blocks:
        holding = [one for one in found if one.first_line <= block.first and block.last <= one.last_line]
        if block.kind in {"fence", "table", "heading"}:
            assert any(block.text.rstrip() in one.text for one in holding), block
        lines = [line for line in block.text.split("\n") if line.strip()]
        covered = {line for one in found for line in range(one.first_line, one.last_line + 1)}
        assert set(range(block.first, block.last + 1)) <= covered
        assert all(any(line.strip() in one.text for one in found) or tokens(line) > overlap for line in lines)
    too_long = [block.text for block in blocks if block.kind != "text" and tokens(block.text) > limit]
    for one in found:
        assert tokens(one.text) <= limit or any(block.rstrip() in one.text for block in too_long)
        assert 1 <= one.first_line <= one.last_line <= text.count("\n") + 1
    assert "hidden" not in "".join(one.text for one in found)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="#`~-=|<!>* \n\r\tab1.[]()", max_size=200))
def test_any_text_is_a_doc(text):
    doc = parse(text, SMALL)
    ends = [(one.first_line, one.last_line) for one in doc.passages]
    assert ends == sorted(ends)
    assert {chunk.passage for chunk in doc.chunks} <= {one.ordinal for one in doc.passages}
