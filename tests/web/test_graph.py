"""The graph: what is drawn and told of entities and their relations, whoever looks and whatever notes say."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest
from recall_index import candidate
from vaults import copy_vault
from web.browsing import visit, wait_until
from web.conftest import let_in
from web.test_pages import Tags

from quaid.index.graph import Entity, Link
from quaid.web.pages.graph import MAX_DRAWN, select

FACT = "---\nid: {id}\ntype: fact\nstatus: active\nowner: {owner}\n{more}---\n{text}\n"
NASTY = "<img src=x onerror=alert(1)>"
BIDI = "Eve \u202egnp.exe"
LONG = "Longlong " * 30
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def graph_vault(tmp_path_factory, calm):
    """Maya, where she worked and works, hostile names, and what bob keeps to himself."""
    vault = copy_vault(tmp_path_factory.mktemp("graph") / "vault")

    def relate(name, text, more="", owner="default"):
        vault.write(f"facts/{name}.md", FACT.format(id=f"01{name}", owner=owner, more=more, text=text))

    for name, kind in {"Maya Chen": "person", "Acme Maps": "organization", "Lisbon": "place", BIDI: "person"}.items():
        aliases = "aliases: [Maya]\n" if name == "Maya Chen" else ""
        vault.write(f"entities/{name}.md", f"---\nid: 01{len(name)}{kind}\ntype: {kind}\n{aliases}---\n")
    past = "valid_from: 2024-05-01\nvalid_until: 2026-07-31\n"
    relate("acme", "[[Maya Chen]] works at [[Acme Maps]]\n\n- [[Maya]] works_at [[Acme Maps]]", past)
    relate("tide", "[[Maya]] works at [[Tidewater]]\n\n- [[Maya]] works_at [[Tidewater]]", "valid_from: 2026-08-01\n")
    relate("city", "[[Tidewater]] is in [[Lisbon]]\n\n- [[Tidewater]] located_in [[Lisbon]]")
    relate("eve", f'[[{BIDI}]] knows [[{NASTY}]]\n\n- [[{BIDI}]] knows [[{NASTY}]]\n- [[{NASTY}]] "of" [[{LONG}]]')
    relate("key", "Tom's password is hunter2hunter2\n\n- [[Tom]] knows [[Maya]]")
    relate(
        "bob", "[[Bobsecret]] loves [[Maya]]\n\n- [[Bobsecret]] loves_secretly [[Maya]]",
        "privacy: private\n", owner="bob",
    )  # fmt: skip
    vault.write("entities/Bobplace.md", "---\nid: 01bobplace\ntype: place\nowner: bob\nprivacy: private\n---\n")
    vault.save()
    return vault


@pytest.fixture
def graph_client(graph_vault):
    with let_in(graph_vault) as client:
        yield client


def drawn(client, query=""):
    """Names of the nodes, and edges as (from, relation, to)."""
    found = client.get(f"/graph.json{query}").json()
    names = [node["name"] for node in found["nodes"]]
    return names, [(names[each["from"]], each["relation"], names[each["to"]]) for each in found["edges"]], found


def test_an_entity_is_one_node_whatever_name_it_goes_by(graph_client):
    names, edges, found = drawn(graph_client)
    assert names.count("Maya Chen") == 1
    assert "Maya" not in names
    assert ("Maya Chen", "works at", "Acme Maps") in edges
    maya = found["nodes"][names.index("Maya Chen")]
    assert maya["type"] == "person"
    assert maya["facts"] == 3
    assert graph_client.get(maya["page"]).status_code == 200
    assert graph_client.get(found["nodes"][names.index("Tidewater")]["page"]).status_code == 200
    edge = found["edges"][edges.index(("Maya Chen", "works at", "Acme Maps"))]
    assert (edge["since"], edge["until"], edge["over"]) == ("2024-05-01", "2026-07-31", True)
    assert edge["text"] == "Maya Chen works at Acme Maps"
    assert graph_client.get(edge["page"]).status_code == 200


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("query", "kept", "gone"),
    [
        ("?focus=Maya&hops=1", {"Maya Chen", "Acme Maps", "Tidewater", "Tom"}, {"Lisbon"}),
        ("?focus=maya+chen&hops=2", {"Lisbon", "Tidewater"}, {NASTY}),
        ("?relation=located_in", {"Tidewater", "Lisbon"}, {"Maya Chen"}),
        ("?type=person&type=place", {"Maya Chen", "Lisbon"}, {"Acme Maps", "Tidewater"}),
        ("?relation=works_at&on=2026-01-01", {"Maya Chen", "Acme Maps"}, {"Tidewater"}),
        ("?relation=works_at&on=2026-09", {"Maya Chen", "Tidewater"}, {"Acme Maps"}),
        ("?focus=tidewa&hops=1&type=place", {"Tidewater", "Lisbon"}, {"Maya Chen"}),
    ],
)
def test_the_address_says_what_is_shown_in_the_picture_and_in_words(graph_client, query, kept, gone):
    names, _, _ = drawn(graph_client, query)
    assert kept <= set(names)
    assert not gone & set(names)
    table = graph_client.get(f"/graph{query}").text.partition('id="table"')[2]
    assert all(f">{name}</a></th>" in table for name in kept)
    assert not any(f">{name}</a></th>" in table for name in gone)


def test_the_focused_entity_is_told_with_its_facts(graph_client):
    text = graph_client.get("/graph?focus=Maya").text.partition('id="about"')[2].partition("</aside>")[0]
    assert "works at → <a" in text
    assert 'href="/memory/facts%2Facme.md"' in text or 'href="/memory/01acme"' in text
    assert "no longer true" in text
    assert 'href="?focus=Tidewater"' in text


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?focus=nobody", "No entity is called"),
        ("?focus=e", "entities match"),
        ("?on=soon", "is not a date"),
        ("?hops=9", "is not a number of steps"),
        ("?page=99999999999&hops=1", "As a table"),
        ("?relation=unheard_of", "No entity matches"),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(graph_client, query, sentence):
    answer = graph_client.get(f"/graph{query}")
    assert answer.status_code == 200
    assert sentence in answer.text
    assert graph_client.get(f"/graph.json{query}").status_code in {200, 400}


@pytest.mark.parametrize("path", ["/graph", "/graph.json", "/graph?focus=Maya", "/graph?focus=Bobsecret", "/timeline"])
def test_what_another_owner_keeps_private_is_in_no_graph(graph_client, path):
    text = graph_client.get(path).text.replace("focus=Bobsecret", "").replace('value="Bobsecret"', "")
    text = text.replace("is called “<bdi>Bobsecret</bdi>”", "")
    assert not re.search("(?i)bob|secretly", text)


def test_hostile_names_are_text(graph_client):
    for path in ("/graph", f"/graph?focus={BIDI}", f"/graph?focus={NASTY}", "/graph?focus=%22%3E%3Cb"):
        text = graph_client.get(path).text
        assert "<img src=x" not in text
        assert "\u202e" not in text.replace(BIDI, "")
        for _, attributes in Tags(text).found:
            assert not [name for name in attributes if name == "style" or name.startswith("on")]
    sent = graph_client.get("/graph.json")
    assert sent.headers["content-type"] == "application/json"
    assert "\u202e" not in sent.text
    assert "Eve \\\\u202egnp.exe" in sent.text
    assert "hunter2" not in sent.text + graph_client.get("/graph?focus=Tom").text
    assert NASTY in drawn(graph_client)[0]


def test_an_empty_memory_says_what_to_do(tmp_path, calm):
    with let_in(copy_vault(tmp_path / "vault")) as client:
        assert "quaid link" in client.get("/graph").text
        assert client.get("/graph.json").json()["nodes"] == []


def test_of_too_many_the_most_connected_are_drawn():
    entities = [Entity(f"e{number}", frozenset({f"e{number}"}), "", None, 1, 0) for number in range(MAX_DRAWN + 10)]
    links = [Link(0, 1, "r", candidate(1)), Link(0, MAX_DRAWN + 5, "r", candidate(1))]
    picture = select(entities, links, f"e{MAX_DRAWN + 5}")
    assert len(picture.entities) == MAX_DRAWN
    assert picture.left_out == 10
    assert picture.entities[picture.focus].name == f"e{MAX_DRAWN + 5}"
    assert len(picture.links) == 2


COLOURS = """() => {
  const canvas = document.querySelector("#drawing canvas"), found = new Set();
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found.add([...data.slice(at, at + 3)].join());
  return [...found];
}"""


def settle(tab, count):
    tab.locator(f"[data-drawn='{count}']").wait_for()
    tab.wait_for_timeout(100)


def colour(tab, name):
    given = tab.evaluate(f"getComputedStyle(document.getElementById('drawing')).getPropertyValue('--{name}')").strip()
    return ",".join(str(int(given[at : at + 2], 16)) for at in (1, 3, 5))


@pytest.mark.slow
def test_the_graph_is_drawn_focused_by_keyboard_and_saved(browser, graph_vault, tmp_path):
    with visit(browser, graph_vault, accept_downloads=True) as site:
        tab = site.open("/graph")
        everything = len(tab.evaluate("fetch('/graph.json').then(answer => answer.json())")["nodes"])
        settle(tab, everything)
        seen = tab.evaluate(COLOURS)
        assert {colour(tab, name) for name in ("person", "place", "organization", "other")} <= set(seen)

        tab.get_by_label("Name").fill("Maya")
        tab.keyboard.press("Enter")
        tab.get_by_role("heading", name="Maya Chen").wait_for()
        assert tab.url.endswith("/graph?focus=Maya")
        tab.get_by_label("Distance").select_option("1")
        settle(tab, 4)
        assert "hops=1" in tab.url
        assert colour(tab, "ink") in tab.evaluate(COLOURS)  # the ring around it
        tab.get_by_role("link", name="Tidewater").first.focus()
        tab.keyboard.press("Enter")
        tab.get_by_role("heading", name="Tidewater").wait_for()
        assert wait_until(tab, "[...document.querySelectorAll('input')].some(input => input.value === 'Tidewater')")
        tab.go_back()
        tab.get_by_role("heading", name="Maya Chen").wait_for()
        settle(tab, 4)
        before = tab.evaluate("document.querySelector('#drawing canvas').toDataURL()")
        tab.locator("#drawing").focus()
        tab.keyboard.press("ArrowLeft")
        tab.wait_for_timeout(100)
        assert tab.evaluate("document.querySelector('#drawing canvas').toDataURL()") != before
        tab.goto(site.base + "/graph")
        settle(tab, everything)

        with tab.expect_download() as saved:
            tab.get_by_role("button", name="SVG").click()
        svg = ET.fromstring(saved.value.path().read_bytes())
        assert svg.tag == f"{SVG}svg"
        assert len(list(svg.iter(f"{SVG}circle"))) == everything
        titles = [title.text for title in svg.iter(f"{SVG}title")]
        assert NASTY in titles
        assert {each.tag.removeprefix(SVG) for each in svg.iter()} <= {"svg", "title", "rect", "line", "circle", "text"}
        assert not [name for each in svg.iter() for name in each.attrib if name.startswith("on") or "href" in name]

        with tab.expect_download() as saved:
            tab.get_by_role("button", name="Obsidian canvas").click()
        check_canvas(json.loads(saved.value.path().read_text()), graph_vault)


def check_canvas(canvas, vault):
    """JSON Canvas 1.0, and each file is there."""
    assert set(canvas) == {"nodes", "edges"}
    ids = [node["id"] for node in canvas["nodes"]]
    assert len(set(ids)) == len(ids) > 4
    for node in canvas["nodes"]:
        assert all(isinstance(node[name], int) for name in ("x", "y", "width", "height"))
        assert node["type"] in {"file", "text"}
        assert isinstance(node["file" if node["type"] == "file" else "text"], str)
    files = [node["file"] for node in canvas["nodes"] if node["type"] == "file"]
    assert "entities/Maya Chen.md" in files
    assert all((vault.root / file).is_file() for file in files if "\\u" not in file)
    assert not [node for node in canvas["nodes"] if node["type"] == "text" and re.search(r"(?<!\\)[<\[]", node["text"])]
    assert canvas["edges"]
    for edge in canvas["edges"]:
        assert {edge["fromNode"], edge["toNode"]} <= set(ids)
        assert isinstance(edge["label"], str)
    assert len({edge["id"] for edge in canvas["edges"]} | set(ids)) == len(canvas["edges"]) + len(ids)


@pytest.mark.slow
def test_a_change_appears_in_the_picture_and_the_pointer_shows_facts(browser, tmp_path, calm):
    vault = copy_vault(tmp_path / "vault")
    with vault.memory() as memory:
        memory.link("Maya", "works_at", NASTY.replace("<", "").replace(">", ""))
    with visit(browser, vault) as site:
        tab = site.open("/graph")
        settle(tab, 2)
        box = tab.locator("#drawing").bounding_box()
        tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # on the line between the two
        tab.locator(".float-tooltip-kap", has_text="Maya works at img src=x").wait_for()
        assert tab.locator(".float-tooltip-kap img").count() == 0
        tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tab.locator("#about li.chosen").wait_for()
        with vault.memory() as memory:
            memory.link("Maya", "lives_in", "Lisbon")
        settle(tab, 3)
        assert site.troubles == []


@pytest.mark.slow
def test_without_scripts_the_graph_is_a_table(browser, graph_vault):
    with visit(browser, graph_vault, java_script_enabled=False) as site:
        tab = site.open("/graph?focus=Maya&hops=1")
        assert tab.get_by_text("The picture needs JavaScript").is_visible()
        assert not tab.locator("#graph").is_visible()
        assert tab.locator("table.entities tbody tr").count() == 4
        tab.get_by_label("Distance").select_option("2")
        tab.get_by_role("button", name="Show").click()
        assert tab.locator("table.entities tbody tr").count() == 5
