"""The registry: projects and registered documents, read and changed."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quaid.docs import registry
from quaid.docs.registry import PATTERNS, Project, RegisteredDoc, parse_project
from quaid.errors import BadInputError, NoteBrokenError

NOW = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
PATH = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}(/[a-z][a-z0-9 _.-]{0,10}[a-z])?", fullmatch=True)


class TestRegisteredDocs:
    @pytest.mark.slow
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
        assert registry.plan_fields(project.path, text, {"state": "archived"}).after == text.replace(
            b"active", b"archived"
        )
        added = registry.plan_document(project, text, "b.md", {"sources": ("src",)}).after
        assert added == text.replace(b"  - a.md\r\n", b'  - a.md\r\n  - "b.md <- src"\r\n')
        with pytest.raises(NoteBrokenError):
            registry.plan_fields(project.path, b"---\n[\n---\n", {"state": "archived"})

    @pytest.mark.parametrize(("label", "name"), [
        ("quaid", "quaid"), ("Quaid Memory", "quaid-memory"), ("web.app_2", "web.app_2"), ("Café", "cafe"),
    ])  # fmt: skip
    def test_names(self, label, name):
        assert registry.name_of(label) == name

    @pytest.mark.parametrize("label", ["", "..", "日本", "/", "-"])
    def test_what_cannot_be_a_name(self, label):
        with pytest.raises(BadInputError, match="cannot be the name of a project"):
            registry.name_of(label)
