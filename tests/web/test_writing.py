"""Writing on the page of a memory: every change is a commit, keeps what was not touched, and is undone by one click."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from matrices import for_each
from starlette.testclient import TestClient
from web.browsing import NARROW, find_violations, is_wide_enough, visit
from web.conftest import KEYS, PORT

from quaid.web.answer import go_to, own_address
from quaid.web.app import make_app
from quaid.web.pages.editing import read_from_form, show_in_form
from quaid.web.routes import ACTIONS, MESSAGES

HERE = f"http://127.0.0.1:{PORT}"
MILK = "---\r\nid: 01milk # mine\r\ntype: fact\nstatus: active\r\n\r\n---\r\nMaya takes soy milk\r\n\r\nin her coffee"


class Reader:
    """The owner's browser, as far as forms go: it sends CRLF, and follows where it is sent."""

    def __init__(self, client, vault) -> None:
        self.client = client
        self.vault = vault

    def get(self, path):
        return self.client.get(path)

    def post(self, path, **fields):
        sent = {name: re.sub(r"\r\n|\r|\n", "\r\n", value) for name, value in fields.items()}
        headers = {"Origin": HERE}
        return self.client.post(path, data={"form_token": KEYS.form, **sent}, headers=headers, follow_redirects=False)

    def act(self, path, **fields):
        """Where the browser is after a form was sent, as (path, what is said, the commit)."""
        answer = self.post(path, **fields)
        assert answer.status_code == 303, answer.text
        parts = urlsplit(answer.headers["location"])
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return parts.path, asked.get("said"), asked.get("commit")

    def open_form(self, path):
        """The fields of the form on a page; a browser drops the first newline of a textarea."""
        html = self.get(path).text
        before = re.search(r'name="before" value="([^"]*)"', html)[1]
        text = re.search(r"<textarea[^>]*>\n?(.*?)</textarea>", html, re.DOTALL)[1]
        return {"before": unescape(before), "text": unescape(text)}

    def save(self, reference, change):
        form = self.open_form(f"/edit/{reference}")
        return self.act(f"/edit/{reference}", **form | {"text": change(form["text"])})


@pytest.fixture
def reader(vault):
    vault.run("config", "user.name", "Maya")
    vault.run("config", "user.email", "maya@example.org")
    vault.write("facts/milk.md", MILK.encode())
    vault.write_fact("tea", "Maya drinks green tea in the afternoon")
    vault.write("own.md", "# Breakfast\n\nSee [[milk]].\n")
    vault.write("facts/bobs.md", "---\nid: 01bobs\ntype: fact\nowner: bob\nprivacy: private\n---\nBob hides oat milk\n")
    vault.save("first")
    with TestClient(make_app(vault.root, KEYS, PORT, asyncio.Event()), base_url=HERE) as client:
        client.cookies.set(f"quaid-view-{PORT}", KEYS.cookie)
        yield Reader(client, vault)


@pytest.mark.slow
def test_a_saved_edit_is_a_commit_in_the_owners_name_that_one_click_undoes(reader):
    vault = reader.vault
    path, said, commit = reader.save("01milk", lambda text: text.replace("soy", "oat"))
    assert (path, said, commit) == ("/memory/01milk", "edited", vault.head())
    assert vault.git("log", "-1", "--format=%an: %s") == "Maya: edit: Maya takes oat milk in her coffee"
    assert (vault.root / "facts/milk.md").read_bytes() == MILK.replace("soy", "oat").encode()
    page = reader.get(f"{path}?said={said}&commit={commit}").text
    assert MESSAGES["edited"] in page
    assert f'name="commit" value="{commit}"' in page
    assert f'href="/change/{commit}"' in page
    assert reader.act("/undo", commit=commit, back=path)[:2] == (path, "undone")
    assert (vault.root / "facts/milk.md").read_bytes() == MILK.encode()


@for_each("data", [
    MILK, "\ufeffone\r\ntwo\n\nthree", "\nfirst\n", "\n\n\n", "a\rb\rc\r", "no end", "end\n", "two ends\n\n", "a\0b\nc\n",
    " \n\t\n x \r\n", "x\n" * 300 + "y\r\n" * 300, "<b>&amp;</textarea>\n", "a\x0cb\x0bc\u2028d\x85e\n",
])  # fmt: skip
def test_what_was_not_touched_comes_back_byte_for_byte(data):
    before = data.encode()
    shown = show_in_form(before)
    sent = re.sub(r"\r\n|\r|\n", "\r\n", shown).replace("\0", "\ufffd")
    assert read_from_form(before, sent) == before
    grown = read_from_form(before, f"new line\r\n{sent}")
    assert grown.replace(b"\xef\xbb\xbf", b"").endswith(before.removeprefix(b"\xef\xbb\xbf"))


def test_each_line_keeps_its_end_and_a_new_one_ends_as_most_do():
    before = b"a\r\nb\nc\r\nd"
    assert read_from_form(before, "a\r\nB\r\nnew\r\nc\r\nd") == b"a\r\nB\nnew\r\nc\r\nd"
    assert read_from_form(before, "a\r\nc\r\nd\r\ne\r\n") == b"a\r\nc\r\nd\r\ne\r\n"
    assert read_from_form(b"one", "one\r\ntwo") == b"one\ntwo"
    assert read_from_form(b"one\n", "") == b""


def test_a_form_keeps_a_newline_at_its_beginning(reader):
    reader.vault.write("start.md", "\n\nlate\n")
    assert reader.open_form("/edit/start.md")["text"] == "\n\nlate\n"


def test_nothing_written_is_no_commit(reader):
    head = reader.vault.head()
    assert reader.save("01milk", lambda text: text)[1:] == ("unchanged", None)
    assert reader.vault.head() == head


def test_what_was_changed_in_other_lines_meanwhile_is_merged(reader):
    form = reader.open_form("/edit/01milk")
    note = reader.vault.root / "facts/milk.md"
    note.write_bytes(note.read_bytes().replace(b"active", b"pending"))
    reader.vault.save("meanwhile")
    reader.act("/edit/01milk", **form | {"text": form["text"].replace("soy", "oat")})
    assert note.read_bytes() == MILK.replace("active", "pending").replace("soy", "oat").encode()


def test_a_conflict_shows_both_and_what_is_put_together_is_saved(reader):
    form = reader.open_form("/edit/01milk")
    note = reader.vault.root / "facts/milk.md"
    theirs = MILK.replace("soy", "almond").replace("active", "pending")
    note.write_bytes(theirs.encode())
    reader.vault.save("meanwhile")
    answer = reader.post("/edit/01milk", **form | {"text": form["text"].replace("soy", "oat")})
    assert answer.status_code == 409
    assert note.read_bytes() == theirs.encode()
    assert "<del>almond</del><ins>oat</ins>" in answer.text
    assert "Maya takes almond milk" in answer.text
    again = {
        "before": re.search(r'name="before" value="([^"]*)"', answer.text)[1],
        "text": unescape(re.search(r"<textarea[^>]*>\n(.*?)</textarea>", answer.text, re.DOTALL)[1]),
    }
    assert "oat milk" in again["text"]
    assert "pending" in again["text"]
    reader.act("/edit/01milk", **again | {"text": again["text"].replace("oat", "oat or almond")})
    assert note.read_bytes() == theirs.replace("almond", "oat or almond").encode()


def test_what_cannot_be_saved_is_not_lost(reader):
    form = reader.open_form("/edit/01milk")
    empty = reader.post("/edit/01milk", **form | {"text": " "})
    assert empty.status_code == 409
    assert "would be empty" in empty.text
    (reader.vault.root / "facts/milk.md").unlink()
    gone = reader.post("/edit/01milk", **form | {"text": "what I &lt;wrote"})
    assert "what I &amp;lt;wrote</textarea>" in gone.text
    assert "Not saved." in gone.text
    assert reader.post("/edit/01milk", before="é", text="x").status_code == 400


def test_a_head_that_cannot_be_read_is_kept_and_told(reader):
    form = reader.open_form("/edit/01tea")
    broken = {**form, "text": form["text"].replace("status: active", "status: [active")}
    path = reader.post("/edit/01tea", **broken, anyway="yes").headers["location"]
    assert "said=edited" in path
    assert "This note has a problem: the frontmatter is not YAML" in reader.get(path).text


def test_a_note_that_a_form_cannot_hold_says_how_it_is_edited(reader):
    reader.vault.write("latin.md", "caf\xe9\n".encode("latin-1"))
    reader.vault.write("long.md", "word " * 110_000)
    for name, why in (("latin.md", "is not UTF-8"), ("long.md", "512 KiB")):
        answer = reader.get(f"/edit/{name}")
        assert answer.status_code == 400
        assert why in answer.text
        assert f"quaid edit &#39;{name}&#39;" in answer.text


def test_what_nobody_sees_is_named_above_the_form(reader):
    reader.vault.write("unseen.md", "# A\n\nsafe \u202etxt.exe\n")
    html = reader.get("/edit/unseen.md").text
    assert r"\u202e (right-to-left override) in line 3" in html
    assert "\u202e" in html


def test_own_notes_are_edited_and_nothing_else(reader):
    path, said, _ = reader.save("own.md", lambda text: text + "More.\n")
    assert (path, said) == ("/memory/own.md", "edited")
    assert (reader.vault.root / "own.md").read_bytes() == b"# Breakfast\n\nSee [[milk]].\nMore.\n"
    html = reader.get("/memory/own.md").text
    assert "It is your own note" in html
    for action in ("forget", "mark", "dispute"):
        assert f'action="/{action}/' not in html
        assert reader.post(f"/{action}/own.md", mark="pinned", value="on").status_code == 400


@pytest.mark.slow
def test_a_forgotten_memory_has_a_page_that_brings_it_back(reader):
    before = reader.vault.notes()
    path, said, commit = reader.act("/forget/01tea")
    assert (path, said, commit) == ("/memory/01tea", "forgotten", reader.vault.head())
    html = reader.get(path)
    assert html.status_code == 200
    assert "Maya drinks green tea" in html.text
    assert 'action="/restore/01tea"' in html.text
    assert reader.act("/restore/01tea")[:2] == ("/memory/01tea", "restored")
    assert reader.vault.notes() == before
    assert reader.act("/forget/01tea")[1] == "forgotten"
    undone = reader.act("/undo", commit=reader.vault.head(), back="/memory/01tea")
    assert undone == ("/memory/01tea", "undone", reader.vault.head())
    assert reader.vault.notes() == before


def test_what_the_owner_forgets_and_brings_back_on_the_page_is_committed_in_their_name(reader):
    reader.act("/forget/01tea")
    reader.act("/restore/01tea")
    said = reader.vault.git("log", "-2", "--format=%an: %s").splitlines()
    told = "Maya drinks green tea in the afternoon"
    assert said == [f"Maya: restore: {told}", f"Maya: forget: {told}"]
    with reader.vault.memory() as memory:
        assert [(entry.who, entry.what) for entry in memory.timeline.log(2)] == [
            ("owner", f"restored “{told}”"),
            ("owner", f"forgot “{told}”"),
        ]
        memory.forget("01tea")  # as an agent does
        assert memory.timeline.log(1)[0].who == "agent"


def test_a_turn_is_forgotten_alone(reader):
    episode = reader.vault.write(
        "episodes/2026/03/20-1402-2f1c9a.md",
        "---\nid: 20-1402-2f1c9a\ntype: episode\nsession: 2f1c9a\nstarted: 2026-03-20T14:02:00Z\n---\n"
        "**Maya** (14:02): I only take oat milk now. ^t1\n\n**Assistant** (14:03): Noted, oat milk. ^t2\n",
    )
    reader.vault.save("a conversation")
    path, said, commit = reader.act("/forget/20-1402-2f1c9a%23t1")
    assert (path, said) == ("/memory/20-1402-2f1c9a", "forgotten")
    assert b"I only take" not in episode.read_bytes()
    reader.act("/undo", commit=commit, back=path)
    assert b"I only take" in episode.read_bytes()


def test_a_replaced_fact_holds_again(reader):
    with reader.vault.memory() as memory:
        memory.remember("Maya drinks black tea in the afternoon", replaces="01tea")
    assert "Make it current again" in reader.get("/memory/01tea").text
    assert reader.act("/restore/01tea")[:2] == ("/memory/01tea", "restored")
    assert "no longer true" not in reader.get("/memory/01tea").text


@pytest.mark.parametrize(("mark", "verb"), [("pinned", "pin"), ("verified", "verify")])
def test_marks_are_commits_that_change_one_line(reader, mark, verb):
    note = reader.vault.root / "facts/milk.md"
    path, said, commit = reader.act("/mark/01milk", mark=mark, value="on")
    assert (path, said) == ("/memory/01milk", mark)
    assert note.read_bytes() == MILK.replace("active\r\n\r\n", f"active\r\n\r\n{mark}: true\r\n").encode()
    assert reader.vault.git("log", "-1", "--format=%an: %s").startswith(f"Maya: {verb}: Maya takes soy milk")
    assert f"Un{verb}" in reader.get(path).text
    assert reader.act("/mark/01milk", mark=mark, value="on")[1:] == ("unchanged", None)
    assert reader.act("/mark/01milk", mark=mark, value="off")[1] == f"un{mark}"
    assert note.read_bytes() == MILK.encode()
    assert reader.post("/mark/01milk", mark="owner", value="on").status_code == 400
    assert commit


@pytest.mark.slow
def test_this_is_wrong_is_a_question_at_once_and_its_answer_is_followed(reader):
    path, said, commit = reader.act("/dispute/01tea", why="It is\ncoffee")
    assert (path, said, commit) == ("/memory/01tea", "disputed", reader.vault.head())
    shown = reader.get(path).text
    (key,) = re.findall(r'href="/review\?question=([0-9a-f]{16})"', shown)
    assert "dispute-" not in shown
    assert "Review asks you" in MESSAGES["disputed"]
    card = reader.get("/review").text
    assert f'id="q-{key}"' in card
    assert "Another machine" not in card
    reader.act("/review/answer", key=key, answer="yes")
    assert not (reader.vault.root / "facts/tea.md").exists()
    assert "This memory is forgotten" in reader.get("/memory/01tea").text


def test_what_another_owner_keeps_private_cannot_be_written(reader):
    before = reader.vault.notes()
    assert reader.get("/edit/01bobs").status_code == 404
    assert reader.get("/version/01bobs").status_code == 404
    for action in ("forget", "mark", "dispute", "restore"):
        answer = reader.post(f"/{action}/01bobs", mark="pinned", value="on")
        assert answer.status_code == 404
        assert "hides" not in answer.text
    form = reader.open_form("/edit/01milk")
    assert "hides" not in reader.post("/edit/01bobs", **form).text
    assert reader.vault.notes() == before
    reader.vault.run("rm", "-q", "facts/bobs.md")
    reader.vault.run("commit", "-qm", "forget: Bob hides oat milk\n\nQuaid-Fact: 01bobs")
    assert reader.get("/memory/01bobs").status_code == 404


def test_what_is_known_since_today_has_a_bar_that_can_be_seen(reader):
    reader.save("01milk", lambda text: text.replace("status: active", "status: active\nvalid_from: 2020-01-01"))
    bars = re.findall(r'<rect class="c\d" x="([\d.]+)" width="([\d.]+)"', reader.get("/memory/01milk").text)
    assert len(bars) == 2
    assert all(float(start) + float(width) <= 100 and float(width) >= 1 for start, width in bars)


@pytest.mark.slow
def test_an_undo_leads_to_its_change_or_back_and_says_what_it_cannot_do(reader):
    _, _, commit = reader.act("/mark/01milk", mark="pinned", value="on")
    path, said, _ = reader.act("/undo", commit=commit)
    assert (path, said) == (f"/change/{reader.vault.head()}", "undone")
    assert reader.act("/undo", commit=commit)[1] == "nothing_undone"
    assert reader.post("/undo", commit="0" * 40).status_code == 404
    first = reader.vault.git("rev-list", "--max-parents=0", "HEAD")
    answer = reader.post("/undo", commit=first)
    assert answer.status_code == 400
    assert "has made the vault itself" in answer.text


@for_each("there", [
    "//evil.example", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/\t/evil.example", "evil", "",
    "/ok\r\nSet-Cookie: a=b", "\\/evil.example", " /x", "/\u202e",
])  # fmt: skip
def test_the_way_back_stays_here(there):
    assert own_address(there) is None


def test_the_way_back_says_only_what_was_done_last():
    assert own_address("/memory/a%23t1?q=b#c") == "/memory/a%23t1?q=b"
    assert go_to("/memory/a%23t1?q=b&said=edited&commit=1", "undone") == "/memory/a%23t1?q=b&said=undone"


@pytest.mark.matrix
@pytest.mark.parametrize("path", [action.path.replace("{reference:path}", "01milk") for action in ACTIONS])
@pytest.mark.parametrize(("headers", "token"), [
    ({"Origin": "https://evil.example"}, KEYS.form), ({"Origin": HERE, "Sec-Fetch-Site": "cross-site"}, KEYS.form),
    ({}, KEYS.form), ({"Origin": HERE}, "guess"),
])  # fmt: skip
def test_what_another_site_posts_changes_nothing(client, seen_vault, path, headers, token):
    before = seen_vault.head(), seen_vault.notes()
    fields = {"form_token": token, "mark": "pinned", "value": "on", "commit": before[0]}
    assert client.post(path, data=fields, headers=headers).status_code == 403
    assert (seen_vault.head(), seen_vault.notes()) == before


@pytest.mark.slow
def test_asking_opening_editing_and_undoing_by_keyboard_alone(browser, vault):
    """Only keys are pressed: each control can be reached, and says what it is."""
    vault.write_fact("milk", "Maya takes soy milk in her coffee")
    vault.save()

    def go_to_control(name):
        for _ in range(40):
            tab.keyboard.press("Tab")
            focused = tab.evaluate(
                "(document.activeElement.ariaLabel || document.activeElement.innerText || '').trim()"
            )
            if focused == name:
                return
        pytest.fail(f"{name!r} is not reached by Tab")

    with visit(browser, vault) as site:
        tab = site.open("/ask")
        tab.keyboard.type("milk")
        tab.get_by_text("Maya takes soy milk").wait_for()
        go_to_control("Maya takes soy milk in her coffee")
        tab.keyboard.press("Enter")
        tab.get_by_role("link", name="Edit").wait_for()
        go_to_control("Edit")
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/edit/01milk")
        assert find_violations(tab) == []
        tab.keyboard.press("Control+Home")
        text = tab.locator("textarea")
        place = text.input_value().index("soy")
        tab.evaluate("place => document.querySelector('textarea').setSelectionRange(place, place + 3)", place)
        tab.keyboard.type("oat")
        tab.keyboard.press("Control+s")
        tab.get_by_text("Saved as a commit.").wait_for()
        assert tab.locator(".life ins").first.inner_text() == "oat"
        assert "oat" in (vault.root / "facts/milk.md").read_text()
        go_to_control("Undo")
        tab.keyboard.press("Enter")
        tab.get_by_text("Undone. The undo is a commit").wait_for()
        assert "soy" in (vault.root / "facts/milk.md").read_text()
        go_to_control("This is wrong …")
        tab.keyboard.press("Enter")
        go_to_control("")
        tab.keyboard.type("It is oat")
        tab.keyboard.press("Enter")
        tab.get_by_text("A question about it waits for your answer").wait_for()
        assert find_violations(tab) == []
        go_to_control("Forget …")
        tab.keyboard.press("Enter")
        go_to_control("Forget it")
        tab.keyboard.press("Enter")
        tab.get_by_text("This memory is forgotten").wait_for()
        assert find_violations(tab) == []


@pytest.mark.slow
def test_two_tabs_that_edit_one_line_end_in_a_page_with_both(browser, vault):
    vault.write_fact("milk", "Maya takes soy milk in her coffee")
    vault.save()
    with visit(browser, vault, viewport=NARROW) as site:
        one, other = site.open("/edit/01milk"), site.open("/edit/01milk")
        for tab, word in ((one, "oat"), (other, "almond")):
            text = tab.locator("textarea")
            text.fill(text.input_value().replace("soy", word))
        one.get_by_role("button", name="Save").click()
        one.get_by_text("Saved as a commit.").wait_for()
        other.bring_to_front()
        other.get_by_text("The note has changed on disk.").wait_for()
        with other.expect_event("response", lambda answer: answer.status == 409):
            other.get_by_role("button", name="Save").click()
        other.get_by_role("heading", name="Two versions of one note").wait_for()
        assert other.locator("section", has_text="Saved version").last.inner_text().count("oat milk")
        assert other.locator("section", has_text="Your version").last.inner_text().count("almond milk")
        assert find_violations(other) == []
        assert is_wide_enough(other)
        asked = []
        other.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
        other.locator("textarea").press("End")
        other.evaluate("location.href = '/'")
        other.wait_for_timeout(300)
        assert asked == ["beforeunload"]
        other.get_by_role("button", name="Save").click()
        other.get_by_text("Saved as a commit.").wait_for()
        assert "almond" in (vault.root / "facts/milk.md").read_text()
        site.troubles = [each for each in site.troubles if "409" not in each]


@pytest.mark.slow
def test_a_note_is_edited_and_forgotten_without_javascript_and_keeps_its_bytes(browser, vault):
    data = "\ufeff---\r\nid: 01milk\r\ntype: fact\r\n---\r\n\nMaya takes soy milk\r\nin her coffee".encode()
    vault.write("facts/milk.md", data)
    vault.save()
    with visit(browser, vault, java_script_enabled=False) as site:
        tab = site.open("/edit/01milk")
        tab.get_by_role("button", name="Save").click()
        tab.get_by_text("Nothing to change").wait_for()
        assert (vault.root / "facts/milk.md").read_bytes() == data
        tab.get_by_role("link", name="Edit").click()
        text = tab.get_by_label("The note with its frontmatter")
        text.fill(text.input_value().replace("soy", "oat"))
        tab.get_by_role("button", name="Save").click()
        tab.get_by_text("Saved as a commit.").wait_for()
        assert (vault.root / "facts/milk.md").read_bytes() == data.replace(b"soy", b"oat")
        tab.get_by_text("Forget …").click()
        tab.get_by_role("button", name="Forget it").click()
        tab.get_by_text("This memory is forgotten").wait_for()


@pytest.mark.slow
def test_what_would_no_longer_be_a_fact_is_asked_about_before_it_is_saved(reader):
    form = reader.open_form("/edit/01milk")
    before = reader.vault.notes()
    broken = {**form, "text": "---\nbroken: [\n---\nhello"}
    answer = reader.post("/edit/01milk", **broken)
    assert answer.status_code == 409
    assert "Not saved yet." in answer.text
    assert "hello" in answer.text
    assert reader.vault.notes() == before
    assert reader.post("/edit/01milk", **broken, anyway="yes").status_code == 303
    assert b"hello" in reader.vault.notes()["facts/milk.md"]


def test_a_change_that_git_cannot_separate_is_committed_by_one_click_and_then_forgotten(reader):
    note = reader.vault.root / "facts/tea.md"
    note.write_text(note.read_text().replace("green", "black"))
    reader.vault.run("add", "facts/tea.md")
    note.write_text(note.read_text().replace("afternoon", "evening"))
    refused = reader.post("/forget/01tea")
    assert refused.status_code == 409
    assert "git add" not in refused.text
    assert "Commit my change and forget it" in refused.text
    assert note.exists()
    path, message, commit = reader.act("/commit/01tea", then="forget")
    assert (path, message) == ("/memory/01tea", "forgotten")
    assert not note.exists()
    assert reader.vault.git("log", "-2", "--format=%an %s").splitlines() == [
        "Maya forget: Maya drinks black tea in the evening",
        "Maya edit: Maya drinks black tea in the evening",
    ]
    assert "evening" in reader.vault.git("show", f"{commit}^:facts/tea.md")


def test_a_change_made_in_an_editor_is_committed_alone(reader):
    note = reader.vault.root / "facts/tea.md"
    note.write_text(note.read_text().replace("green", "black"))
    assert reader.act("/commit/01tea")[:2] == ("/memory/01tea", "committed")
    assert reader.vault.git("log", "-1", "--format=%an %s") == "Maya edit: Maya drinks black tea in the afternoon"
    assert reader.act("/commit/01tea")[1] == "unchanged"
