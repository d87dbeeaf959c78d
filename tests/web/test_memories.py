"""The table of memories: filters with counts, an address for each view, and changes of many memories as one commit."""

from __future__ import annotations

import json
import re
import time
from html import unescape

import pytest
from matrices import for_each
from web.browsing import find_violations, visit
from web.test_writing import Reader

from quaid.web.pages.memories import MEMORIES, ROWS
from quaid.web.routes import MESSAGES


@pytest.fixture
def kept(vault):
    """A vault of many kinds of notes, one of them another owner's."""
    vault.run("config", "user.name", "Maya")
    vault.run("config", "user.email", "maya@example.org")
    vault.write("entities/Maya Chen.md", "---\nid: 01maya\ntype: person\naliases: [Maya]\n---\n")
    vault.write("entities/Jon.md", "---\nid: 01jon\ntype: person\n---\n- works_at [[Harbour]]\n")
    head = "type: fact\nstatus: active\nowner: default\n"
    vault.write(
        "facts/milk.md",
        f"---\nid: 01milk\n{head}confidence: 0.9\ncreated: 2026-03-20T10:00:00Z\nvalid_from: 2026-03-01\n"
        "project: kitchen\ntags: [Food, drink]\n---\n[[Maya Chen|Maya]] takes oat milk in her coffee\n",
    )
    vault.write(
        "facts/tea.md",
        f"---\nid: 01tea\n{head}created: 2025-01-02T10:00:00Z\ntags: food\n---\nMaya drinks green tea\n\n"
        "- [[Maya]] likes [[Jon]]\n",
    )
    vault.write(
        "facts/soy.md",
        f'---\nid: 01soy\n{head}created: 2024-05-01T10:00:00Z\nsuperseded_by: "[[milk]]"\n---\nMaya takes soy milk\n',
    )
    vault.write("own.md", "# Breakfast\n\nWith [[Jon]] and oats. #at/home\n")
    vault.write(
        "facts/bobs.md",
        "---\nid: 01bobs\ntype: fact\nowner: bob\nprivacy: private\nproject: plot\ntags: [heist]\n---\n"
        "[[Maya Chen]] will be robbed by Bob\n",
    )
    vault.save("first")
    return vault


@pytest.fixture
def reader(open_client, kept):
    return Reader(open_client(kept), kept)


def list_shown(html):
    """The texts of the rows, in their order."""
    return [unescape(text) for text in re.findall(r'<td class="text"[^>]*><a [^>]*>([^<]*)<', html)]


def list_choices(html, name):
    found = re.search(rf'<select name="{name}".*?</select>', html, re.DOTALL)[0]
    return {
        unescape(value): int(count) for value, count in re.findall(r'<option value="([^"]+)"[^>]*>.*?\((\d+)\)', found)
    }


def select(html, *names):
    """The fields of the checkboxes of the rows with these paths, or of all."""
    boxes = {unescape(name): version for name, version in re.findall(r'name="(note:[^"]+)" value="([^"]+)"', html)}
    return {name: version for name, version in boxes.items() if not names or name.removeprefix("note:") in names}


def test_the_table_shows_every_kind_newest_first_and_nothing_of_another_owner(reader):
    html = reader.get("/memories").text
    shown = list_shown(html)
    assert set(shown) == {
        "Maya takes oat milk in her coffee", "Maya drinks green tea", "Maya takes soy milk", "Maya Chen", "Jon", "own",
        "AGENTS", "MEMORY", "SOUL", "USER",
    }  # fmt: skip
    facts = [text for text in shown if text.startswith("Maya ") and text != "Maya Chen"]
    assert facts == ["Maya takes oat milk in her coffee", "Maya drinks green tea", "Maya takes soy milk"]
    assert "10 memories" in html
    assert "robbed" not in html
    assert "heist" not in html
    assert "plot" not in html
    milk = re.search(r"<tr[^>]*>(?:(?!</tr>).)*oat milk.*?</tr>", html, re.DOTALL)[0]
    for cell in ("Maya Chen", "active", "20 March 2026", "1 March 2026"):
        assert cell in milk
    assert re.search(r"</meter>0\.\d\d", milk)


@for_each(("filters", "wanted"), [
    ("kind=entity", ["Jon", "Maya Chen"]),
    ("kind=fact&status=active", ["Maya takes oat milk in her coffee", "Maya drinks green tea"]),
    ("status=superseded", ["Maya takes soy milk"]),
    ("project=kitchen", ["Maya takes oat milk in her coffee"]),
    ("tag=food", ["Maya takes oat milk in her coffee", "Maya drinks green tea"]),
    ("tag=%23at/home", ["own"]),
    ("about=Maya+Chen&kind=fact", ["Maya takes oat milk in her coffee", "Maya drinks green tea"]),
    ("about=Jon", ["own", "Jon", "Maya drinks green tea"]),
    ("q=milk+oat", ["Maya takes oat milk in her coffee"]),
    ("q=dri", ["Maya drinks green tea"]),
    ("from=2025-01&to=2025-12", ["Maya drinks green tea"]),
    ("kind=fact&sort=text", ["Maya takes oat milk in her coffee", "Maya takes soy milk", "Maya drinks green tea"]),
    ("kind=fact&sort=-since", ["Maya takes oat milk in her coffee", "Maya takes soy milk", "Maya drinks green tea"]),
    ("tag=heist", []),
    ("q=robbed", []),
])  # fmt: skip
def test_each_filter_leaves_what_fits_and_its_count_says_how_many(reader, filters, wanted):
    html = reader.get(f"/memories?{filters}").text
    assert sorted(list_shown(html)) == sorted(wanted)
    if "sort" in filters:
        assert list_shown(html) == wanted
    assert f"{len(wanted)} memor" in html if wanted else "No memory fits" in html


def test_the_number_next_to_a_filter_is_that_of_the_rows_it_leaves(reader):
    for given in ("", "kind=fact", "tag=food", "q=milk", "about=Jon", "status=active"):
        html = reader.get(f"/memories?{given}").text
        for name in ("kind", "about", "project", "tag", "status"):
            for value, count in list_choices(html, name).items():
                others = "&".join(each for each in given.split("&") if each and not each.startswith(f"{name}="))
                address = f"/memories?{others}&{name}={value.replace(' ', '+')}"
                assert len(list_shown(reader.get(address).text)) == count, address


def test_used_and_strength_are_shown_and_sorted_by(reader):
    with reader.vault.memory() as memory:
        memory.recall("green tea")
    html = reader.get("/memories?kind=fact&sort=-used").text
    assert list_shown(html)[0] == "Maya drinks green tea"
    strengths = [float(each) for each in re.findall(r"</meter>(\d\.\d\d)", reader.get("/memories?sort=-strength").text)]
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] > strengths[-1]


def test_pages_are_cut_and_their_addresses_keep_the_filters(reader):
    for number in range(2 * ROWS[0] + 3):
        reader.vault.write_fact(f"bulk{number}", f"Number {number} of many facts")
    reader.vault.save("many")
    first = reader.get("/memories?q=many&sort=text").text
    assert len(list_shown(first)) == ROWS[0]
    assert "Page 1 of 3" in first
    there = unescape(re.search(r'rel="next" href="([^"]+)"', first)[1])
    assert there == "?q=many&sort=text&page=2"
    there = f"/memories{there}"
    assert not set(list_shown(first)) & set(list_shown(reader.get(there).text))
    assert len(list_shown(reader.get("/memories?q=many&page=3").text)) == 3
    assert len(list_shown(reader.get("/memories?q=many&page=99").text)) == 3
    assert len(list_shown(reader.get(f"/memories?q=many&rows={ROWS[1]}").text)) == 2 * ROWS[0] + 3


def test_a_filter_that_is_none_is_named(reader):
    assert "There is no kind" in reader.get("/memories?kind=walrus").text
    assert "no status" in reader.get("/memories?status=walrus").text
    assert 'role="alert"' in reader.get("/memories?from=soonish").text


@for_each(("do", "message"), [("pinned", "many_pinned"), ("verified", "many_verified"), ("project", "many_project")])
def test_many_are_changed_by_one_commit_that_one_click_undoes(reader, do, message):
    before, head = reader.vault.notes(), reader.vault.head()
    fields = select(reader.get("/memories").text, "facts/milk.md", "facts/tea.md")
    path, said, commit = reader.act("/memories/change", **fields, do=do, project="boat", back="/memories?kind=fact")
    assert (path, said) == (MEMORIES, message)
    assert said in MESSAGES
    assert reader.vault.git("rev-parse", f"{commit}^").strip() == head
    changed = {path for path, data in reader.vault.notes().items() if before.get(path) != data}
    assert changed == {"facts/milk.md", "facts/tea.md"}
    wanted = b"project: boat" if do == "project" else f"{do}: true".encode()
    assert all(wanted in reader.vault.notes()[path] for path in changed)
    assert reader.vault.git("log", "-1", "--format=%an: %s").strip().startswith("Maya: ")
    reader.act("/undo", commit=commit, back=path)
    assert reader.vault.notes() == before


def test_many_are_forgotten_at_once_and_each_can_be_brought_back(reader):
    before = reader.vault.notes()
    fields = select(reader.get("/memories").text, "facts/milk.md", "facts/tea.md", "entities/Jon.md")
    path, said, commit = reader.act("/memories/change", **fields, do="forget", back="/memories")
    assert (path, said) == (MEMORIES, "many_forgotten")
    assert before.keys() - reader.vault.notes().keys() == {"facts/milk.md", "facts/tea.md", "entities/Jon.md"}
    assert "This memory is forgotten" in reader.get("/memory/01tea").text
    assert "3 memories" in reader.vault.git("log", "-1", "--format=%s")
    reader.act("/undo", commit=commit, back=path)
    assert reader.vault.notes() == before


def test_what_has_changed_since_or_is_not_quaids_is_left_and_named(reader):
    fields = select(reader.get("/memories").text, "facts/milk.md", "facts/tea.md", "own.md")
    note = reader.vault.root / "facts/milk.md"
    note.write_text(note.read_text().replace("oat milk", "rice milk"))
    answer = reader.post("/memories/change", **fields, do="forget", back="/memories?q=a")
    assert answer.status_code == 200
    assert "2 memories were left" in answer.text
    assert "changed since the page was shown" in answer.text
    assert "your own note" in answer.text
    assert 'href="/memories?q=a"' in answer.text
    assert note.exists()
    assert not (reader.vault.root / "facts/tea.md").exists()
    assert b"Breakfast" in (reader.vault.root / "own.md").read_bytes()


def test_what_the_owner_has_not_committed_is_in_git_before_it_is_forgotten(reader):
    note = reader.vault.root / "facts/milk.md"
    note.write_text(note.read_text().replace("oat milk", "rice milk"))
    fields = select(reader.get("/memories").text, "facts/milk.md", "facts/tea.md")
    _, _, commit = reader.act("/memories/change", **fields, do="forget")
    assert "rice milk" in reader.vault.git("show", f"{commit}^:facts/milk.md")


def test_another_owners_note_is_neither_changed_nor_exported(reader):
    before = reader.vault.notes()
    fields = {"note:facts/bobs.md": "0" * 16}
    answer = reader.post("/memories/change", **fields, do="forget")
    assert "robbed" not in answer.text
    assert "no longer there" in answer.text
    assert "robbed" not in reader.post("/memories/change", **fields, do="export-json").text
    assert reader.vault.notes() == before
    assert reader.act("/memories/change", do="forget")[1] == "nothing_selected"
    assert reader.post("/memories/change", **fields, do="explode").status_code == 400


def test_a_selection_is_exported_as_markdown_or_as_lines_that_import_reads(reader, tmp_path):
    fields = select(reader.get("/memories").text, "facts/milk.md", "own.md")
    answer = reader.post("/memories/change", **fields, do="export-md")
    assert "attachment" in answer.headers["content-disposition"]
    assert "- Maya takes oat milk in her coffee (true since 2026-03-01, learned 2026-03-20)" in answer.text
    assert "## own" in answer.text
    lines = reader.post("/memories/change", **fields, do="export-json").text.splitlines()
    assert [json.loads(line)["path"] for line in lines] == ["facts/milk.md", "own.md"]


def test_the_field_on_top_remembers_and_says_what_came_of_it(reader):
    path, said, commit = reader.act("/memories/remember", text="Maya keeps bees in the garden")
    assert (path, said, commit) == (MEMORIES, "remembered", reader.vault.head())
    assert reader.vault.git("log", "-1", "--format=%an").strip() == "Maya"
    answer = reader.post("/memories/remember", text="Maya keeps bees in the garden.")
    there = answer.headers["location"]
    assert "said=confirmed" in there
    assert "Maya keeps bees in the garden" in reader.get(there).text
    assert "Already remembered" in reader.get(there).text
    assert reader.act("/memories/remember", text="The key is sk-ant-api03-" + "a1B2" * 22)[1] == "redacted"
    short = reader.post("/memories/remember", text="bees")
    assert short.status_code == 400
    assert 'value="bees"' in short.text
    assert 'role="alert"' in short.text


@pytest.mark.slow
def test_four_hundred_memories_are_changed_within_seconds(reader):
    for number in range(400):
        reader.vault.write_fact(f"bulk{number}", f"Number {number} of many facts")
    reader.vault.save("many")
    fields = select(reader.get(f"/memories?q=many&rows={ROWS[2]}").text)
    assert len(fields) == 400
    started = time.process_time()
    assert reader.act("/memories/change", **fields, do="forget")[1] == "many_forgotten"
    assert time.process_time() - started < 10
    assert len(reader.vault.git("show", "--format=", "--name-only", "HEAD").split()) == 400


@pytest.mark.slow
def test_the_table_in_a_browser_by_keys_alone_and_without_javascript(browser, kept):
    """Rows are selected and changed by keys; filters apply as one types, and their address opens the same view."""
    with visit(browser, kept) as site:
        tab = site.open("/memories")
        tab.locator("#keys").wait_for()
        tab.keyboard.press("/")
        tab.keyboard.type("oat milk")
        tab.get_by_text("Clear the filters").first.wait_for()
        tab.get_by_text("1 memory").wait_for()
        assert tab.url.endswith("/memories?q=oat+milk")
        tab.keyboard.press("Control+a")
        tab.keyboard.press("Delete")
        tab.get_by_text("10 memories").wait_for()
        tab.locator("select[name=kind]").select_option("fact")
        tab.get_by_text("3 memories").wait_for()
        assert tab.url.endswith("/memories?kind=fact")
        tab.evaluate("document.activeElement.blur()")
        for key in ("j", "x", "j", "x", "k"):
            tab.keyboard.press(key)
        tab.get_by_text("2 selected").wait_for()
        assert "milk" in tab.evaluate("document.activeElement.innerText")
        assert find_violations(tab) == []
        tab.get_by_role("button", name="Pin", exact=True).click()
        tab.get_by_text("The selected memories are pinned").wait_for()
        assert tab.locator(".sign").count() == 2
        tab.get_by_role("button", name="Undo").click()
        tab.get_by_text("Undone").first.wait_for()
        assert tab.locator(".sign").count() == 0
        assert "kind=fact" in tab.url
        tab.keyboard.press("j")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/memory/01milk")
    with visit(browser, kept, java_script_enabled=False, color_scheme="dark") as site:
        tab = site.open("/memories?kind=fact")
        tab.get_by_label("Select “Maya drinks green tea”").check()
        tab.get_by_label("Project to set").fill("boat")
        tab.get_by_role("button", name="Set the project").click()
        tab.get_by_text("The project of the selected memories is set.").wait_for()
        assert "project: boat" in (kept.root / "facts/tea.md").read_text()
        tab.get_by_label("What to remember").fill("Maya keeps bees in the garden")
        tab.get_by_role("button", name="Remember").click()
        tab.get_by_text("Remembered, as a commit.").wait_for()


def test_the_navigation_counts_what_waits_on_this_page_too(reader):
    with reader.vault.memory() as memory:
        memory.janitor.dispute("01tea", "It is coffee")
    assert re.search(r'href="/review"[^>]*>Review <span class="number">', reader.get("/memories").text)
