"""What the pages show of a real vault: answers, a memory with its sources and its life, and no hostile note's doing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag == name]


PAGES = (
    "/ask",
    "/ask?q=oat+milk",
    "/ask?from=2026&kind=fact",
    "/memory/01milk",
    "/memory/hostile.md",
    "/memory/none",
    "/x",
    "/review",
    "/nights",
    "/change/HEAD",
    "/health",
    "/health/fading",
    "/health/checks",
    "/projects",
    "/projects/none",
    "/graph",
    "/timeline",
    "/session/20-1402-2f1c9a",
    "/edit/01milk",
)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_whole_and_has_nothing_inline(client, path):
    answer = client.get(path)
    tags = Tags(answer.text)
    for tag, attributes in tags.found:
        assert tag != "style"
        assert not [name for name in attributes if name == "style" or name.startswith("on")], (tag, attributes)
    assert {"/static/vendor/htmx.min.js", "/static/live.js"} <= {script["src"] for script in tags.named("script")}
    assert [image["src"] for image in tags.named("img")] == ["/static/icon.svg"]
    assert len(tags.named("h1")) == 1
    assert tags.named("html")[0]["lang"] == "en"
    assert any(link["href"] == "#main" for link in tags.named("a"))
    names = {field.get("id") for tag in ("input", "textarea", "select") for field in tags.named(tag)}
    assert {label["for"] for label in tags.named("label") if label.get("for")} <= names


def test_a_question_is_answered_and_each_answer_says_why(client):
    text = client.get("/ask?q=oat+milk").text
    assert "Maya takes oat milk in her coffee" in text
    assert "by words" in text
    assert re.search(r'<rect class="c1" x="0\.00" width="[1-9]', text)
    assert 'href="/memory/01milk"' in text
    assert "How this answer was found" in text


def test_without_a_question_the_newest_are_shown(client):
    text = client.get("/ask").text
    assert "Newest memories" in text
    assert "Maya drinks green tea" in text


def test_the_filters_are_those_of_recall(client):
    assert "Maya takes" not in client.get("/ask?q=milk&kind=turn").text
    assert "There is no kind" in client.get("/ask?q=milk&kind=cat").text
    assert "soon" in client.get("/ask?q=milk&from=soon").text


def test_as_of_asks_the_past(client, seen_vault):
    first = seen_vault.git("rev-list", "--grep=first", "HEAD")
    text = client.get(f"/ask?q=milk&as_of={first}").text
    assert "Maya takes soy milk" in text
    assert "as of <time" in text


def test_nothing_is_recorded(client, seen_vault):
    before = seen_vault.notes()
    client.get("/ask?q=oat+milk")
    assert seen_vault.notes() == before
    with seen_vault.memory() as memory:
        assert memory.answers.records.strengths(["01milk"]) in ({}, {"01milk": 0.0})


def test_a_memory_shows_where_it_comes_from_and_its_life(client):
    text = client.get("/memory/01milk").text
    assert "<mark>I only take oat milk now.</mark>" in text
    assert "Noted, oat milk." in text
    assert "<del>soy</del><ins>oat</ins>" in text
    assert "oat, not soy" in text
    assert "2026-03-01" in text
    assert 'href="/memory/linking.md"' in text


def test_what_links_to_a_memory_is_called_by_its_title(client):
    linked = client.get("/memory/01milk").text.split("Linked from")[1]
    assert ">linking</a>" in linked
    assert "and coffee" not in linked


def test_a_turn_and_its_conversation_have_addresses(client):
    assert "I only take oat milk now." in client.get("/memory/20-1402-2f1c9a%23t1").text
    assert 'id="b-t2"' in client.get("/memory/20-1402-2f1c9a").text


def test_a_hostile_note_is_only_read(client):
    text = client.get("/memory/hostile.md").text
    assert "&lt;script&gt;alert(2)" in text
    for attributes in Tags(text).named("a"):
        href = attributes["href"]
        assert href.startswith(("/", "#", "https://example.org", "http://evil.example"))
        if href.startswith("http"):
            assert set(attributes["rel"].split()) == {"noreferrer", "noopener", "nofollow"}
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "\\u202etxt.exe" in text
    assert "{{ 7 * 7 }}" in text
    assert '<a class="memory" href="/memory/Maya">her</a>' in text
    assert 'href="/memory/01milk#b-x1"' in text


@pytest.mark.parametrize("path", ["/memory/01secret", "/ask?q=hides", "/ask", "/ask?q=milk&privacy=private"])
def test_what_another_owner_keeps_private_is_on_no_page(client, path):
    assert "Bob" not in client.get(path).text


@pytest.mark.parametrize(
    "path",
    [
        "/memory/none",
        "/memory/01secret",
        "/memory/%00",
        "/memory/a%0ab",
        "/memory/" + "x" * 3000,
        "/memory/milk%23Nothing",
    ],
)
def test_an_unknown_memory_is_one_sentence(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    (sentence,) = re.findall(r'role="alert">([^<]*)<', answer.text)
    assert sentence.strip()
    assert "\n" not in sentence.strip()


def test_a_page_that_fails_says_where_the_report_is(client, monkeypatch):
    monkeypatch.setattr("quaid.memory.Memory.get", lambda *_: 1 / 0)
    answer = client.get("/memory/01milk")
    assert answer.status_code == 500
    assert "This is a bug in Quaid (ZeroDivisionError)" in answer.text
    assert "Traceback" not in answer.text


def test_a_list_that_is_longer_than_the_page_leads_to_all_of_it(open_client, vault):
    for number in range(230):
        vault.write(f"notes/n{number:03}.md", f"# Note {number:03}\n\nSee [[milk]].\n")
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    client = open_client(vault)
    text = client.get("/memory/01milk").text
    assert "See all 230" in text
    first, last = (client.get(f"/memory/01milk?all=linked-from&page={page}").text for page in (1, 2))
    assert "Page 2 of 2" in last
    shown = [set(re.findall(r">(n\d{3}|Note \d{3})<", page)) for page in (text, first, last)]
    assert list(map(len, shown)) == [20, 200, 30]
    assert not shown[1] & shown[2]
    assert client.get("/memory/01milk?all=linked-from&page=x").status_code == 200
    assert client.get("/memory/01milk?all=linked-from&page=-3").status_code == 200


def test_a_note_of_two_megabytes_has_parts(open_client, vault):
    vault.write("long.md", "# Long\n\n" + "".join(f"Line {number} of a long note.\n\n" for number in range(70_000)))
    client = open_client(vault)
    text = client.get("/memory/long.md").text
    assert len(text) < 500_000
    assert "Part 1 of" in text
    assert "Line 3 of" in text
    last = int(re.search(r"Part 1 of (\d+)", text)[1])
    assert "Line 69999 of" in client.get(f"/memory/long.md?part={last}").text
    assert f"Part {last} of {last}" in client.get("/memory/long.md?part=999").text
