"""What a document says it is about, and which files that means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.docs.mentions import find_paths
from quaid.docs.sources import FileList, References, is_record, learned_from, sources_of, true_at_of

PATH = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}(/[a-z][a-z0-9 _.-]{0,10}[a-z])?", fullmatch=True)


def read(text):
    stated = sources_of(text)
    return stated if stated.origin != "none" else learned_from(find_paths("docs/x.md", text))


class TestSources:
    @for_each(("text", "origin", "references"), [
        ("---\nsources: [a.py, lib/]\n---\n`c.py`", "frontmatter", ("a.py", "lib/")),
        ("---\nsources: a.py, b.py\n---\n", "frontmatter", ("a.py", "b.py")),
        ('---\nsources: ["[[a.py]]"]\n---\n', "frontmatter", ("a.py",)),
        ("# X\n<!-- PURPOSE: x -->\n<!-- SOURCES: a.py, `lib/b.ts`,\n c.go -->\n", "comment", ("a.py", "lib/b.ts", "c.go")),
        ("see [it](../src/a.py#L10-L20) and `lib/b.ts:14`", "learned", ("../src/a.py", "lib/b.ts")),
        ("a link [over\nlines](src/a.py)", "learned", ("src/a.py",)),
        ("`docs/x.md` ![pic](a.png) [web](https://x.org/a.py) [abs](/etc/a.py) `not a path` `Models.ask()`", "none", ()),
        ("```\n`a.py`\n```\n", "none", ()),
        ("| file | what |\n|---|---|\n| `a.py` | x |\n", "learned", ("a.py",)),
        ("[ref]: lib/a.rs", "learned", ("lib/a.rs",)),
        ("---\nsources: []\n---\n`a.py`", "frontmatter", ()),
        ("# X\n<!-- SOURCES: none -->\n`a.py`", "comment", ()),
        ("Write `<!-- SOURCES: a.py -->` on top.\n\n```\n<!-- SOURCES: b.py -->\n```\n", "none", ()),
    ])  # fmt: skip
    def test_what_a_document_names(self, text, origin, references):
        assert read(text) == References(references, origin)

    def test_who_is_asked_first(self):
        assert sources_of("`a.py`", ("lib",)).origin == "registered"
        assert sources_of("<!-- SOURCES: b.py -->", ("lib",)).origin == "comment"

    @for_each(("path", "record"), [
        ("CHANGELOG.md", True), ("docs/decisions/0001-use-sqlite.md", True), ("docs/adr/why.md", True),
        ("docs/2026-11-20-notes.md", True), ("docs/recall.md", False), ("go/queue/archive/README.md", False),
        ("src/decisions/README.md", False), ("LICENSE.md", True), ("docs/releasing.md", False),
    ])  # fmt: skip
    def test_records_of_their_time(self, path, record):
        assert is_record(path) is record

    def test_the_commit_that_it_names(self):
        assert true_at_of("---\ntrue_at: 3f2a91c\n---\n") == "3f2a91c"
        assert true_at_of("---\ntrue_at: yesterday\n---\n") is None

    @given(st.text(alphabet="`<>!-[]() \nSOURCE:ab./#~|", max_size=400))
    def test_nothing_makes_it_fail(self, text):
        read(text)

    @for_each("text", [
        "<!-- SOURCES: " * 20_000, "<!-- SOURCES:" + " " * 400_000, "[" * 200_000, "`" * 200_000, "``a`" * 80_000,
        "](" + " " * 200_000, "a/" * 200_000 + ".py", "`" + "a/" * 100_000 + "`",
    ])  # fmt: skip
    def test_hostile_documents_are_read_in_no_time(self, text):
        read(text)


class TestLookingUp:
    FILES = FileList(
        ("README.md", "src/a.py", "src/deep/a.py", "src/deep/b.py", "lib/c.ts", "web/src/d.js"), ("src/old.py",)
    )

    @for_each(("reference", "paths"), [
        ("src/a.py", ("src/a.py",)),
        ("../lib/c.ts", ("lib/c.ts",)),
        ("deep/b.py", ("src/deep/b.py",)),
        ("c.ts", ("lib/c.ts",)),
        ("src/deep/", ("src/deep/a.py", "src/deep/b.py")),
        ("src/**/*.py", ("src/a.py", "src/deep/a.py", "src/deep/b.py", "src/old.py")),
        ("src/*.py", ("src/a.py", "src/old.py")),
        ("src/old.py", ("src/old.py",)),
        ("old.py", ("src/old.py",)),
        ("src/d.js", ("web/src/d.js",)),
    ])  # fmt: skip
    def test_what_is_stated(self, reference, paths):
        assert tuple(self.FILES.resolve(reference, "docs", "")[0]) == paths

    def test_what_is_unclear_is_named(self):
        for reference, count in (("a.py", 2), ("nope.py", 0), ("../../etc/passwd", 0)):
            assert self.FILES.resolve(reference, "docs", "") == ((), count)
        assert self.FILES.resolve("src/old.py", "docs", "") == (["src/old.py"], 0)

    def test_a_name_that_looks_like_a_pattern(self):
        path = "app/[post-id]/page.tsx"
        assert FileList((path,)).resolve(path, "docs", "") == ([path], None)

    @pytest.mark.parametrize("reference", ["src/[z-a]*.py", "src/*\\", "src/" + "*a" * 12 + "*b"])
    def test_a_glob_that_is_none_means_no_file_in_no_time(self, reference):
        listed = FileList(("src/a.py", f"src/{'a' * 200}.py"))
        assert listed.resolve(reference, "docs", "") == ((), 0)

    def test_what_is_learned_must_mean_one_file(self):
        found = [self.FILES.resolve(each, "docs", "", is_stated=False) for each in ("a.py", "b.py", "nope.py")]
        assert found == [((), None), (["src/deep/b.py"], None), ((), None)]

    def test_the_root_of_a_project_comes_before_the_top(self):
        assert self.FILES.resolve("src/d.js", "web/docs", "web") == (["web/src/d.js"], None)
