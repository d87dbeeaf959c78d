"""What markdown says once its markup is gone, whatever a file holds."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matrices import examples, for_each
from pumping import MAX_GROWTH, growth_of

from quaid.model import Citation, Edge
from quaid.vault import markdown
from quaid.vault.markdown import (
    blank,
    citations,
    comments,
    edges,
    escape,
    has_conflict_markers,
    link_target,
    links,
    plain,
    sections,
    split_text,
    tags,
    without_edges,
)

PIECES = (
    *"*_`~=[]()!|#^>-+<%\\ \n\r\t1.é😀a", "**", "[[", "]]", "[[A|b]]", "![[x#^y]]", "](", "%%", "<!--", "-->", "```", "\n\n",
    "\n# H\n", "\n- ", "\n    ", "\n|a|b|\n|-|-|\n", "\n> ", "- [[A]] knows [[B]]\n", "[[20-1402-2f1c9a#^t3]]", "<div>", "&amp;", "\0",
    "<<<<<<< x\n", "=======\n", ">>>>>>> y\n", "word ", " ^t1", "[^1]: x\n", "http://a.b/c_d_e",
)  # fmt: skip
markup = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(markup)
def test_nothing_in_a_text_makes_reading_fail(text):
    plain(text)
    assert all(links(text))
    edges(text)
    edges(text, "Maya")
    without_edges(text)
    citations([text])
    has_conflict_markers(text)
    for section in sections(text):
        assert section.text.strip()
    assert all(piece.strip() for piece in split_text(text, 20))


HOSTILE = (
    "*", "*a ", "**a ", "***", "_", "_a ", "`", "`a ", "``b ```c ", "~~a ", "==a ", "[", "[[a", "[[a|b", "[a](", '[](a "b', "![",
    "> ", "- ", "-", "#", "|", "| a ", "<", "<!-- ", "<a ", "%%", " ", "\t", " ^a", "1. ", "\\", "&", "(", "\n", "\n- ", "\n> ",
    "\n# a", "a|b\n-|-\n", "\n```", "[a]: b\n", "- [[a]] b ", "- a [[", "[[a/", "[[a#^t", "<<<<<<< \n", "a", "1", "[^1]", "\n    a",
    "a\n=\n", "\n---", "<div>\n", "\n  - a", "😀", "\n````\n```", "\n> ```", "\n> ```\n", "\n- ~~~", "`%%", "\\`", "%%\n```\n",
)  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(piece):
    def text(size):
        return (piece * (size // len(piece)) + "^%%")[:size]

    for read in (
        plain,
        links,
        edges,
        without_edges,
        sections,
        lambda t: list(split_text(t)),
        lambda t: blank(t, "fence", "code", "comment"),
        lambda t: list(comments(t)),
        escape,
    ):
        assert growth_of(lambda size, read=read: read(text(size))) < MAX_GROWTH
    citations([text(100_000)])


# --- code and comments


@for_each(("text", "code"), [
    ("use `a` and ``b ` c``", ["`a`", "``b ` c``"]),
    ("\\`not\\` code, `a\\` is", ["`a\\`"]),
    ("`two\nlines`, `not\n\ntwo paragraphs`", ["`two\nlines`"]),
    ("- a ` in one item\n- a ` in the next", []),
    ("text\n```python\n%%time\n```\nafter", ["```python\n%%time\n```"]),
    ("```\nopen to the end\n``\n``` x", ["```\nopen to the end\n``\n``` x"]),
    ("````\n```\n````\nx", ["````\n```\n````"]),
    ("~~~ `\n```\n~~~~\nx", ["~~~ `\n```\n~~~~"]),
    ("```rm -rf```\nx", ["```rm -rf```"]),
    ("- ```sh\n  ls\n  ```\n- x", ["```sh\n  ls\n  ```"]),
    ("> ```\n> ls\n> ```\nx", ["```\n> ls\n> ```"]),
    ("> ```\n> open in a quotation\n\nx `y`", ["```\n> open in a quotation\n", "`y`"]),
    ("```\r\nx\r\n```\r\ny", ["```\r\nx\r\n```"]),
    ("%%\n```\n%% x `y`\n<!-- ` --> `z`", ["`y`", "`z`"]),
    ("no code", []),
])  # fmt: skip
def test_code_is_fences_and_inline_code(text, code):
    shown, place = "", 0
    for span in code:
        start = text.index(span, place)
        place = start + len(span)
        shown += text[len(shown) : start] + re.sub(r"\S", " ", span)
    assert blank(text, "fence", "code") == shown + text[place:]


@pytest.mark.parametrize(("text", "hidden"), [
    ("a %%b%% c <!-- d\n\n--> e", ["%%b%%", "<!-- d\n\n-->"]),
    ("`for %%f in` and `%%g` %%h%%", ["%%h%%"]),
    ("```\n%%time\n```\nx\n```\n%%sql\n```\n%%y%%", ["%%y%%"]),
    ("Begin with `<!--`.\n```mermaid\nA --> B\n```", []),
    ("\\%%not%% and \\<!-- not -->", []),
    ("50%% of it, <!-- and no end", []),
])  # fmt: skip
def test_comments_are_none_in_code(text, hidden):
    assert [text[start:end] for start, end in comments(text)] == hidden


# --- plain


@for_each(("text", "shown"), [
    ("[[Maya Chen]] takes [[Oat milk|oats]]", "Maya Chen takes oats"),
    ("[[Maya Chen#Work]] and ![[image.png]]", "Maya Chen and image.png"),
    ("[[#Heading]] here", "Heading here"),
    ('a [link](http://x.org/a_b) and ![alt](i.png "t")', "a link and alt"),
    ("**bold** and *it* and ***both***", "bold and it and both"),
    ("**bold *it* bold**", "bold it bold"),
    ("__bold__ and _it_", "bold and it"),
    ("~~gone~~ ==marked==", "gone marked"),
    ("2 * 3 * 4 = 24", "2 * 3 * 4 = 24"),
    ("a*b*c and snake_case_name", "a*b*c and snake_case_name"),
    ("if a == b and c == d", "if a == b and c == d"),
    ("use `__init__` and `a*b*c` **now**", "use __init__ and a*b*c now"),
    ("``a ` b`` c", "a ` b c"),
    ("don`t and won`t do", "dont and wont do"),
    ("one ` only", "one ` only"),
    ("\\*not emphasis\\*, 3\\. Mai, \\[\\[x]] and C:\\new", "*not emphasis*, 3. Mai, [[x]] and C:\\new"),
    ("`[[a]]`, `%%b%%` and `\\*`", "[[a]], %%b%% and \\*"),
    ("[[Deep\\|shown]] in a table, a\\|b", "shown in a table, a|b"),
    ("24. Dezember\n1582) that year", "24. Dezember\n1582) that year"),
    ("```\n- [[a]] ^b\n1. %%c%%\n```\n- d", "- [[a]] ^b\n1. %%c%%\n\nd"),
    ("seen %%hidden%% and <!-- not\nshown --> here", "seen  and  here"),
    ("50%% of it", "50%% of it"),
    ("says it ^t12", "says it"),
    ("says it ^t12\r\nand more", "says it\r\nand more"),
    ("- [ ] buy milk\n- [x] sell it", "buy milk\nsell it"),
    ("> quoted\n> more", "quoted\nmore"),
    ("# Title\n1. first", "Title\n1. first"),
    ("```python\nx = 1\n```", "x = 1"),
    ("```rm -rf```", "rm -rf"),
    ("~~~\ncode\n~~~", "code"),
    ("5 stars ***** and **** more", "5 stars ***** and **** more"),
    ("", ""),
])  # fmt: skip
def test_plain_shows_what_a_reader_sees(text, shown):
    assert plain(text) == shown


@given(st.text("abc XYZ,.?", max_size=60))
def test_plain_leaves_text_without_markup_alone(text):
    assert plain(text) == text.strip()


@given(
    st.lists(st.sampled_from(["word", "two", "*", "**", "_", "`", "~~", "==", " ", ".", "\n"]), max_size=30).map(
        "".join
    )
)
def test_plain_takes_only_marks_away(text):
    text = re.sub("~~~+|```+", "", text)  # these may begin a fence of code, whose words are the code's language
    kept = plain(text)
    letters = [char for char in text if char.isalpha()]
    assert [char for char in kept if char.isalpha()] == letters


# --- escape


SPOKEN = (
    "3. Mai: Zahnarzt", "3) Mai: Zahnarzt", "- 18 degrees outside", "+ 18 degrees", "* a star", "> 30 users", "# is the root prompt",
    "###### six hashes", "__name__ is set", "*a* and **b**", "_a_ b", "~~a~~ b", "==a== b", "`x` and ``y``", "``` fence", "~~~ fence",
    "x[[0]] is", "![[x]] is", "[[Maya|M]] is", "[a](b) c", "![a](b) c", "ends in ^abc", "^abc", "a %%b%% c", "<!-- a --> b", "<b>a</b> b",
    "<div", "AT&amp;T and &#65;", "a \\* b", "C:\\_x_\\y", "ends in \\", "$x$ and $$y$$", "[14:30]: standup", "[^1]: note", "a[^1] b",
    "- [[A]] knows [[B]]", "- [ ] task here", "> [!note] x", "--- a b", "^[inline]", "2*3*4 and a*b", "a==b and c==d", "<<<<<<< a", "|a|b|",
    "1. 2. 3.", "- - -", "[[[x]]]", "\\[[x]]", "\\`a`", "%%%", "`", "\\",
)  # fmt: skip


@for_each("text", SPOKEN)
def test_what_looks_like_markup_reads_back_as_it_was_stated(text):
    assert plain(escape(text)) == text
    assert (links(escape(text)), edges(escape(text)), list(comments(escape(text)))) == ([], [], [])


@for_each("text", [
    "Maya takes oat milk.", "2 * 3 * 4 = 24", "snake_case_name and other_name", "costs $5, not $6", "a < b", "5* hotel", "R&D, 100%",
    "mail a@b.org #tag", "if a == b and c == d", "it's (maybe) [sic] so", "http://x.org/a_b?c=d&e=f", "one ` only", "f(x)^2", "3.5 GB",
])  # fmt: skip
def test_ordinary_text_is_not_escaped(text):
    assert escape(text) == text


lines = (st.lists(st.sampled_from((*PIECES, *SPOKEN)), max_size=12).map("".join) | st.text()).map(
    lambda t: " ".join(t.split())
)


@pytest.mark.slow
@settings(max_examples=examples(600))
@given(lines)
def test_any_line_reads_back_as_it_was_stated(text):
    assert plain(without_edges(escape(text))) == text
    assert sections(escape(text)) == ([] if not text else [markdown.Section((), text)])


@for_each("line", ["24. Dezember: Essen", "1582. Das Jahr", "[14:30]: standup", "[^1]: word", "[^2]: two words"])
@for_each("before", ["", "A paragraph.\n\n", "A line\n", "> ", "- ", "30. November: x\n"])
def test_a_section_has_the_numbers_and_the_notes_in_its_lines(line, before):
    (section,) = sections(before + line)
    assert line in section.text.splitlines()


def test_what_an_item_holds_stays_in_it():
    assert sections("1. one\n   ```\n   1. code\n   ```\n2. two\n    - three\n\n```\n3. x\n```")[0].text == (
        "1. one\n1. code\n2. two\nthree\n\n3. x"
    )


# --- links, edges, citations


@pytest.mark.parametrize(("text", "targets"), [
    ("[[A]] [[B|b]] [[A#h]] ![[C#^b]]", ["A", "B", "C"]),
    ("[[folder/Note]] [[ spaced ]]", ["folder/Note", "spaced"]),
    ("[[]] [[|x]] [[#only]] [not] [[open", []),
    ("[[a [[b]]", ["b"]),
])  # fmt: skip
def test_links_are_their_targets_once_each(text, targets):
    assert links(text) == targets


@pytest.mark.parametrize(
    ("link", "target"), [("Maya|M", "Maya"), ("Maya#Work", "Maya"), (" Maya ", "Maya"), ("a|b#c", "a"), ("", "")]
)
def test_a_link_leads_to_its_note(link, target):
    assert link_target(link) == target


@for_each(("line", "found"), [
    ("- [[Maya Chen]] prefers [[Oat milk]]", [Edge("Maya Chen", "prefers", "Oat milk")]),
    ("* [[A|a]] works at [[B#x|b]] ^t3", [Edge("A", "works_at", "B")]),
    ("  + [[A]] Works-At [[B]]\r", [Edge("A", "works_at", "B")]),
    ("- works_at [[Acme]]", [Edge("Own", "works_at", "Acme")]),
    ("- [[A]] is a really very close friend of [[B]]", []),
    ("- [[A]] knows [[B]] and [[C]]", []),
    ("[[A]] knows [[B]]", []),
    ("- [[A]] [[B]]", []),
    ("- [[A\nx]] knows [[B]]", []),
])  # fmt: skip
def test_an_edge_is_a_list_item_with_a_relation(line, found):
    assert edges(line, "Own") == found


def test_an_edge_without_a_subject_needs_one():
    assert edges("- works_at [[Acme]]") == []
    assert edges("- works_at [[Acme]]", "Maya") == [Edge("Maya", "works_at", "Acme")]


def test_what_is_left_without_edges_has_no_edges():
    text = "Prose.\n\n- [[A]] knows [[B]]\n- an item\n"
    assert edges(without_edges(text)) == []
    assert without_edges(text).split() == ["Prose.", "-", "an", "item"]


@pytest.mark.parametrize(("text", "found"), [
    ("[[20-1402-2f1c9a#^t3]]", [Citation("20-1402-2f1c9a", 3)]),
    ("[[episodes/2026/11/20-1402-2f1c9a.md#^t12|said]]", [Citation("20-1402-2f1c9a", 12)]),
    ("[[20-1402-2f1c9a]] [[a#^b3]] [[#^t1]]", []),
    ("[[a#^t99999999999999999999999]]", []),
    ("[[a#^t" + "9" * 5000 + "]]", []),
    ("[[a#^t٣]]", []),
])  # fmt: skip
def test_citations_name_a_turn(text, found):
    assert citations([text]) == found


# --- sections


def headings(body):
    return [(section.heading, section.text) for section in sections(body)]


def test_sections_carry_the_path_of_their_headings():
    body = "intro\n\n# A\n\none\n\n## B\n\ntwo\n\n### C\n\nthree\n\n## D\n\nfour\n\n# E\n\nfive"
    assert headings(body) == [
        ((), "intro"), (("A",), "one"), (("A", "B"), "two"), (("A", "B", "C"), "three"), (("A", "D"), "four"), (("E",), "five"),
    ]  # fmt: skip


def test_a_heading_with_nothing_below_it_is_text():
    assert headings("# A\n# B\ntext\n## C\n## D\n# E") == [
        ((), "A"), (("B",), "text"), (("B",), "C"), (("B",), "D"), ((), "E"),
    ]  # fmt: skip


@for_each(("body", "expected"), [
    ("# A\n\n```\n# no heading\n```\n", [(("A",), "# no heading")]),
    ("# A\n\n~~~sh\n# no heading\n\n\n## nor this\n~~~\n", [(("A",), "# no heading\n\n\n## nor this")]),
    ("# A\n\n    # indented code\n", [(("A",), "# indented code")]),
    ("Title\n=====\ntext\n\nSub\n---\nmore", [(("Title",), "text"), (("Title", "Sub"), "more")]),
    ("| a | b |\n|---|---|\n| #1 | 2 |\n", [((), "a | b\n#1 | 2")]),
    ("- one\n  - # two\n    - three\n", [((), "one\ntwo\nthree")]),
    ("> # quoted\n> text", [((), "quoted\ntext")]),
    ("# **Bold** [[Maya|M]]\r\n\r\ntext\r\n", [(("Bold M",), "text")]),
    ("#tag is no heading", [((), "#tag is no heading")]),
    ("%%\n# hidden\n%%\ntext", [((), "text")]),
    ("<div>\ninside\n</div>\n", [((), "<div>\ninside\n</div>")]),
    ("", []),
    ("   \n\n", []),
])  # fmt: skip
def test_blocks_are_read_as_blocks(body, expected):
    assert headings(body) == expected


@given(
    st.lists(
        st.sampled_from(
            [
                "alpha",
                "beta",
                "# Gamma",
                "## Delta",
                "- eps",
                "> zeta",
                "```\neta\n```",
                "| th | io |\n|--|--|\n| ka | la |",
            ]
        ),
        max_size=8,
    )
)
def test_sections_lose_no_word(blocks):
    words = [word for block in blocks for word in block.replace("|", " ").split() if word.isalpha()]
    found = " ".join(" ".join((*section.heading, section.text)) for section in sections("\n\n".join(blocks)))
    assert set(words) <= set(found.replace("|", " ").split())


# --- chunks


@settings(max_examples=examples(300))
@given(
    st.lists(st.sampled_from(["word", "x" * 30, " ", "  ", "\n", "\n\n", ". ", "é😀", " " * 50]), max_size=80).map(
        "".join
    ),
    st.integers(5, 60),
)
@example(" " * 200 + "x", 20)
@example("x" + " " * 200 + "y" * 30, 20)
def test_splitting_loses_nothing_and_holds_the_limit(text, limit):
    pieces = list(split_text(text, limit))
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece == piece.strip() and piece for piece in pieces)
    assert all(len(piece) <= limit * 1.25 for piece in pieces)


def test_splitting_prefers_paragraphs_then_lines_then_sentences_then_words():
    assert list(split_text("aaa bbb ccc\n\nddd eee fff", 20)) == ["aaa bbb ccc\n\nddd eee fff"]
    assert list(split_text("aaa bbb ccc\n\nddd eee fff ggg", 20)) == ["aaa bbb ccc", "ddd eee fff ggg"]
    assert list(split_text("aaa bbb. ccc\nddd eee fff ggg", 20)) == ["aaa bbb. ccc", "ddd eee fff ggg"]
    assert list(split_text("aaa bbb ccc. ddd eee fff ggg", 20)) == ["aaa bbb ccc.", "ddd eee fff ggg"]
    assert list(split_text("aaa bbb ccc ddd eee fff ggg", 20)) == ["aaa bbb ccc ddd eee", "fff ggg"]
    assert list(split_text("a" * 30, 20)) == ["a" * 20, "a" * 10]
    assert next(split_text("ab\n" + "word " * 30, 60)).startswith("ab\nword word"), "no piece is so short"


def test_two_megabytes_are_split_in_no_time():
    started = time.thread_time()
    assert len(list(split_text("word " * 400_000))) > 2000
    assert time.thread_time() - started < 5.0


# --- conflicts


CONFLICT = "before\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch\nafter\n"


@pytest.mark.parametrize(
    "text", [CONFLICT, CONFLICT.replace("\n", "\r\n"), CONFLICT.replace("=======", "||||||| base\nold\n=======")]
)
def test_marks_in_their_order_are_those_of_a_conflict(text):
    assert has_conflict_markers(text)
    assert has_conflict_markers(f"```\ncode\n```\n{text}\n`code`\n")
    assert has_conflict_markers(text.replace("ours", "Ours\n======="))


def test_no_side_of_a_conflict_is_a_heading():
    (section,) = sections(CONFLICT)
    assert section.heading == ()
    assert {"before", "ours", "theirs", "after"} <= set(section.text.split())


@for_each(
    "text",
    [
        *("Title\n=======\ntext", "<<<<<<< is how a conflict begins", "a <<<<<<< b\n=======\nc >>>>>>> d", ""),
        *(f"```text\n{CONFLICT}```\n", f"~~~\n{CONFLICT}~~~\nafter", f"a\n\n```\n{CONFLICT}"),
        *("".join(f"{mark}{line}\n" for line in CONFLICT.splitlines()) for mark in ("> ", "    ", "- ", "Tom: ")),
        ">>>>>>> a\n=======\n<<<<<<< b\n=======\n",
        "<<<<<<< a\n>>>>>>> b\n=======\n",
    ],
)
def test_what_only_looks_like_a_conflict_is_none(text):
    assert not has_conflict_markers(text)


def test_the_limit_of_a_chunk_fits_a_small_model():
    assert markdown.CHUNK_CHARS * 1.25 < 256 * 5


# --- links as other programs write them


@for_each(("text", "targets"), [
    ("| [[Pond\\|the pond]] | x |", ["Pond"]),
    ("[[Pond.md]] ![[Pond#Depth|300]] [[Pond.md#Depth]]", ["Pond"]),
    ("[the pond](Pond.md)", ["/Work/Pond"]),
    ("[the pond](pond)", ["/Work/pond"]),
    ('[up](../Pond.md) [b](../A%20b.md) [c](<C d.md#x>) [d](./D.md "title") [e](/E.md)', ["/Pond", "/A b", "/Work/C d", "/Work/D", "/E"]),
    ("[the pond][p]\n\n[p]: ../Pond.md", ["/Pond"]),
    ("[[Work/Index]] [[../Pond]] [[./Near]] [[/Far]]", ["Work/Index", "/Pond", "/Work/Near", "/Far"]),
    ("[desc]([[Page]])", ["Page"]),
    ("[a](https://x.org/a.md) [b](mailto:a@b.org) [c](#part) [d](//x.org/d) [e](obsidian://open?vault=x)", []),
    ("[^1]: Pond.md", []),
    ("`[[Pond]]` \\[[Pond]]", []),
    ("```\n[[Pond]]\n[x](Pond.md)\n```\n[[Home]]", ["Home"]),
    ("%% [[Pond]] %% <!-- [x](Pond.md) --> [[Home]]", ["Home"]),
    ("`%%` [[Pond]] `%%`", ["Pond"]),
])  # fmt: skip
def test_links_are_those_that_other_programs_follow(text, targets):
    assert links(text, "Work") == targets


def test_code_holds_neither_edges_nor_citations():
    text = "- [[Maya.md]] likes [[Tea\\|tea]]\n```\n- [[Maya]] likes [[Code]]\n```\n`[[e#^t1]]` [[e#^t2]]\n"
    assert edges(text) == [Edge("Maya", "likes", "Tea")]
    assert [(each.episode, each.turn) for each in citations([text])] == [("e", 2)]
    assert without_edges(text) == "\n```\n- [[Maya]] likes [[Code]]\n```\n`[[e#^t1]]` [[e#^t2]]\n"


def test_tags_are_those_of_obsidian():
    text = "# Heading\n#home and #at/work-2, not a#b, #123 or \\#no\n`#code` %%#hidden%%\n"
    assert tags(["#Food", "drink", "#"], text) == ["Food", "drink", "home", "at/work-2"]
