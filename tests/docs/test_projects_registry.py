"""The registry, and what a document says it is about."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.docs import registry
from quaid.docs.registry import PATTERNS, Project, RegisteredDoc, parse_project
from quaid.docs.sources import FileList, References, is_record, mentioned, sources_of, true_at_of
from quaid.errors import BadInputError, NoteBrokenError

NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
PATH = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}(/[a-z][a-z0-9 _.-]{0,10}[a-z])?", fullmatch=True)


class TestEntries:
    @given(
        PATH,
        st.lists(PATH.map(str.strip).filter(bool), max_size=3),
        st.none() | st.from_regex(r"[0-9a-f]{7,40}", fullmatch=True),
    )
    def test_a_line_says_what_it_was_made_of(self, path, sources, commit):
        entry = RegisteredDoc(path.strip(), tuple(sources), commit)
        assert RegisteredDoc.parse(entry.render()) == entry

    @pytest.mark.parametrize(("line", "entry"), [
        ("docs/recall.md", RegisteredDoc("docs/recall.md")),
        ("docs/a b.md <- src, lib/*.py @ 3f2a91c", RegisteredDoc("docs/a b.md", ("src", "lib/*.py"), "3f2a91c")),
        ("docs/a.md @ 3f2a91c", RegisteredDoc("docs/a.md", (), "3f2a91c")),
        ("docs/a.md <- ", RegisteredDoc("docs/a.md")),
        ("docs/a.md <- src @ 3F2A91C", RegisteredDoc("docs/a.md", ("src",), "3F2A91C")),
        ("two\nlines.md <- src", RegisteredDoc("two\nlines.md", ("src",))),
        ("mail@example.org.md", RegisteredDoc("mail@example.org.md")),
    ])  # fmt: skip
    def test_lines_of_people(self, line, entry):
        assert RegisteredDoc.parse(line) == entry


class TestProjects:
    def test_what_create_writes_is_what_is_read(self):
        project = Project("quaid", "Quaid: memory", ("~/code/quaid", "/srv/x"), ("guide/*.md",), ("guide/old/**",))
        edit = registry.plan_create(project, "A memory.", NOW)
        assert edit.rel_path == "projects/quaid/PROJECT.md"
        assert parse_project("quaid", edit.after) == project
        assert b"# Quaid: memory\n\nA memory.\n" in edit.after

    def test_a_bare_note_is_a_project_with_the_usual(self):
        assert parse_project("x", b"# X\n") == Project("x", "x")
        assert parse_project("x", b"# X\n").patterns == PATTERNS

    def test_what_is_not_meant_so_is_named(self):
        found = parse_project("x", b"---\nstate: resting\nauto_index: no\nsource_roots: ~/one\n---\n")
        assert found.state == "active"
        assert found.problems == ("state should be one of active, archived, deleted, is 'resting'",)
        assert (found.auto_index, found.source_roots) == (False, ("~/one",))
        found = parse_project("x", b"---\npatterns: ['!', '[z-a].md', 'docs/[ab]*.md']\n---\n")
        assert found.patterns == ("docs/[ab]*.md",)
        assert found.problems == (
            "patterns has '!', which is not a pattern",
            "patterns has '[z-a].md', which is not a pattern",
        )

    @pytest.mark.parametrize("bad", ["!", "[z-a]*", "\\", "docs\\"])
    def test_what_is_no_pattern_is_named_and_left_out(self, bad):
        head = f"---\npatterns: ['*.md', '{bad}']\nexclude: ['{bad}']\n---\n"
        found = parse_project("x", head.encode())
        assert (found.patterns, found.exclude) == (("*.md",), ())
        assert found.problems == tuple(f"{key} has {bad!r}, which is not a pattern" for key in ("patterns", "exclude"))

    @given(st.binary(max_size=300))
    def test_nothing_makes_it_fail(self, data):
        parse_project("x", data)
        parse_project("x", b"---\n" + data + b"\n---\n")

    def test_a_change_touches_its_own_line_alone(self):
        text = b'---\r\n# mine\r\nlabel: "X"  # as it is\r\nstate: active\r\ndocuments:\r\n  - a.md\r\n---\r\nbody'
        project = parse_project("x", text)
        assert registry.plan_state(project, "archived", text).after == text.replace(b"active", b"archived")
        added = registry.plan_document(project, RegisteredDoc("b.md", ("src",)), text).after
        assert added == text.replace(b"  - a.md\r\n", b'  - a.md\r\n  - "b.md <- src"\r\n')
        with pytest.raises(NoteBrokenError):
            registry.plan_state(project, "archived", b"---\n[\n---\n")

    @pytest.mark.parametrize(("label", "name"), [
        ("quaid", "quaid"), ("Quaid Memory", "quaid-memory"), ("web.app_2", "web.app_2"), ("Café", "cafe"),
    ])  # fmt: skip
    def test_names(self, label, name):
        assert registry.name_of(label) == name

    @pytest.mark.parametrize("label", ["", "..", "日本", "/", "-"])
    def test_what_cannot_be_a_name(self, label):
        with pytest.raises(BadInputError, match="cannot be the name of a project"):
            registry.name_of(label)


class TestSources:
    @pytest.mark.parametrize(("text", "origin", "references"), [
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
        assert sources_of("docs/x.md", text) == References(references, origin)

    def test_who_is_asked_first(self):
        assert sources_of("x.md", "`a.py`", ("lib",)).origin == "registered"
        assert sources_of("x.md", "<!-- SOURCES: b.py -->", ("lib",)).origin == "comment"

    @pytest.mark.parametrize(("path", "record"), [
        ("CHANGELOG.md", True), ("docs/decisions/0001-use-sqlite.md", True), ("docs/adr/why.md", True),
        ("docs/2026-11-20-notes.md", True), ("docs/recall.md", False), ("go/queue/archive/README.md", False),
        ("src/decisions/README.md", False), ("LICENSE.md", True), ("docs/releasing.md", False),
    ])  # fmt: skip
    def test_records_of_their_time(self, path, record):
        assert is_record(path) is record
        assert (sources_of(path, "`a.py`").origin == "none") is record

    def test_the_commit_that_it_names(self):
        assert true_at_of("---\ntrue_at: 3f2a91c\n---\n") == "3f2a91c"
        assert true_at_of("---\ntrue_at: yesterday\n---\n") is None

    @given(st.text(alphabet="`<>!-[]() \nSOURCE:ab./#~|", max_size=400))
    def test_nothing_makes_it_fail(self, text):
        sources_of("docs/x.md", text)
        list(mentioned(text))

    @pytest.mark.parametrize("text", [
        "<!-- SOURCES: " * 20_000, "<!-- SOURCES:" + " " * 400_000, "[" * 200_000, "`" * 200_000, "``a`" * 80_000,
        "](" + " " * 200_000, "a/" * 200_000 + ".py", "`" + "a/" * 100_000 + "`",
    ])  # fmt: skip
    def test_hostile_documents_are_read_in_no_time(self, text):
        sources_of("docs/x.md", text)


class TestLookingUp:
    FILES = FileList(
        ("README.md", "src/a.py", "src/deep/a.py", "src/deep/b.py", "lib/c.ts", "web/src/d.js"), ("src/old.py",)
    )

    @pytest.mark.parametrize(("reference", "paths"), [
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
        assert self.FILES.resolve(References((reference,), "comment"), "docs", "").paths == paths

    def test_what_is_unclear_is_named(self):
        found = self.FILES.resolve(References(("a.py", "nope.py", "../../etc/passwd"), "comment"), "docs", "")
        assert (found.paths, found.unclear) == ((), (("a.py", 2), ("nope.py", 0), ("../../etc/passwd", 0)))
        assert self.FILES.resolve(References(("src/old.py",), "comment"), "docs", "").unclear == (("src/old.py", 0),)

    def test_a_name_that_looks_like_a_pattern(self):
        files = FileList(("app/[post-id]/page.tsx",))
        assert files.resolve(References(("app/[post-id]/page.tsx",), "comment"), "docs", "").paths == files.paths

    @pytest.mark.parametrize("reference", ["src/[z-a]*.py", "src/*\\", "src/" + "*a" * 12 + "*b"])
    def test_a_glob_that_is_none_means_no_file_in_no_time(self, reference):
        listed = FileList(("src/a.py", f"src/{'a' * 200}.py"))
        assert listed.resolve(References((reference,), "comment"), "docs", "").unclear == ((reference, 0),)

    def test_what_is_learned_must_mean_one_file(self):
        found = self.FILES.resolve(References(("a.py", "b.py", "nope.py"), "learned"), "docs", "")
        assert (found.paths, found.unclear) == (("src/deep/b.py",), ())

    def test_the_root_of_a_project_comes_before_the_top(self):
        assert self.FILES.resolve(References(("src/d.js",), "comment"), "web/docs", "web").paths == ("web/src/d.js",)
