"""What docs/obsidian.md says of the notes is so, in a vault of a year."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from story import tell_story

from quaid.web.server import PORT

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "obsidian.md").read_text("utf-8")
BASES = [
    *re.findall(r"```base\n(.*?)```", PAGE, re.DOTALL),
    (ROOT / "vault-template" / "Facts.base").read_text("utf-8"),
]
QUERIES = re.findall(r"```dataview\n(.*?)```", PAGE, re.DOTALL)
OF_OBSIDIAN = {"file", "this", "formula", "date", "today", "link", "default", "dateformat"}


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Path -> (properties, text) of each note."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
        vault = tell_story(tmp_path_factory.mktemp("vault") / "quaid", patch)
    found = {}
    for path in vault.root.rglob("*.md"):
        text = path.read_text("utf-8")
        head = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
        found[path.relative_to(vault.root).as_posix()] = (yaml.safe_load(head[1]) if head else {}, text)
    return found


def names_in(expression):
    """The properties that an expression reads: names that are no text, no function and no field of something."""
    without_texts = re.sub(r'"[^"]*"|\[\[.*?\]\]', " ", expression)
    return set(re.findall(r"(?<![.\w])([a-z_]+)(?![\w(])", without_texts)) - OF_OBSIDIAN


def expressions_of(filters):
    if isinstance(filters, str):
        yield filters
    else:
        for group in filters.values():
            for each in group:
                yield from expressions_of(each)


def properties_of_formats():
    """The names that docs/reference/file-format.md gives to properties."""
    text = (ROOT / "docs" / "reference" / "file-format.md").read_text("utf-8")
    return set(re.findall(r"^([a-z_]+):", text, re.MULTILINE)) | set(re.findall(r"`([a-z_]+)`", text))


def test_properties_are_flat(notes):
    scalar = (str, int, float, bool, date, datetime)
    assert len(notes) > 50
    for path, (properties, _) in notes.items():
        for name, value in properties.items():
            flat = (
                all(isinstance(each, scalar) for each in value)
                if isinstance(value, list)
                else isinstance(value, scalar)
            )
            assert flat, f"{path}: {name}"


def test_a_property_has_one_type_for_all_notes_but_a_bare_year(notes):
    types = {}
    for properties, _ in notes.values():
        for name, value in properties.items():
            kind = "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
            types.setdefault(name, set()).add(kind)
    bare = {"valid_from", "valid_until"}
    assert {name: kinds for name, kinds in types.items() if len(kinds) > 1 and name not in bare} == {}
    assert {"confidence": {"number"}, "created": {"datetime"}, "turns": {"list"}}.items() <= types.items()


def test_every_link_to_a_turn_finds_its_block(notes):
    texts = {Path(path).stem: text for path, (_, text) in notes.items()}
    links = [link for properties, _ in notes.values() for link in properties.get("turns", [])]
    assert len(links) > 20
    for link in links:
        stem, block = re.fullmatch(r"\[\[([^#\]]+)#(\^t\d+)\]\]", link).groups()
        assert re.search(rf" {re.escape(block)}$", texts[stem], re.MULTILINE), link


def test_links_to_people_and_things_find_their_notes(notes):
    stems = {Path(path).stem for path in notes}
    linked = {
        link
        for path, (_, text) in notes.items()
        if path.startswith("facts/")
        for link in re.findall(r"\[\[([^\]|#]+)", text)
    }
    assert linked
    assert linked - stems == set()


def test_bases_are_yaml_and_name_properties_that_there_are(notes):
    written = properties_of_formats()
    assert len(BASES) == 5
    for text in BASES:
        base = yaml.safe_load(text)
        formulas = base.get("formulas", {})
        read = {
            name
            for view in base["views"]
            for each in expressions_of(view.get("filters", {}))
            for name in names_in(each)
        }
        read |= {name for each in expressions_of(base["filters"]) for name in names_in(each)}
        read |= {name for formula in formulas.values() for name in names_in(formula)}
        shown = {name for view in base["views"] for name in view["order"]}
        assert {name for name in shown if name.startswith("formula.")} == {f"formula.{name}" for name in formulas}
        read |= {name for name in shown if "." not in name} | {
            sort["property"] for view in base["views"] for sort in view.get("sort", [])
        }
        assert read - written == set(), text
        folders = set(re.findall(r'inFolder\("([^"]+)"\)', text))
        assert all(any(path.startswith(f"{folder}/") for path in notes) for folder in folders)


def test_queries_name_properties_and_folders_that_there_are(notes):
    assert len(QUERIES) == 3
    for query in QUERIES:
        words = re.sub(r"\b(TABLE|LIST|FROM|WHERE|SORT|AND|OR|DESC|ASC|LIMIT \d+)\b", " ", query)
        assert names_in(words) - properties_of_formats() == set(), query
        (source,) = re.findall(r"^FROM (.*)$", query, re.MULTILINE)
        for folder in re.findall(r'"([^"]+)"', source):
            assert any(path.startswith(f"{folder}/") for path in notes), query


def test_a_day_begins_each_of_the_moments_by_which_notes_are_found(notes):
    for path, (_, text) in notes.items():
        if path.startswith(("facts/", "episodes/")):
            assert re.search(r"^(created|started): \d{4}-\d\d-\d\dT", text, re.MULTILINE), path


def test_addresses_are_encoded_and_the_port_is_that_of_the_page():
    for address in re.findall(r"`(obsidian://[^`]*)`", PAGE):
        parts = urlsplit(address)
        assert parts.netloc == "open"
        assert "/" not in parts.query
        assert set(parse_qs(parts.query, keep_blank_values=True)) <= {"vault", "file", "path"}
    assert set(re.findall(r"http://127\.0\.0\.1:(\d+)/memory/", PAGE)) == {str(PORT)}
