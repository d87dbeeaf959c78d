"""Health: what is charted, what was unanswered and its answer, and that nothing of others is counted."""

from __future__ import annotations

import re
import subprocess
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from vaults import Vault
from web.browsing import NARROW, find_violations, is_wide_enough, start_browser, visit, wait_until
from web.conftest import let_in
from web.test_pages import Tags

from quaid.local.model_usage import ModelRecords
from quaid.local.recall_log import question_key
from quaid.model import Hit, ModelUsage, PlannedCall, Recall
from quaid.place import state_folder
from quaid.recall.records import RecallRecords
from quaid.report import health
from quaid.web.templating import format_moment

NOW = datetime.now(UTC)
TODAY = NOW.date()
ASKED = "What is Jon's <b>phone</b> number?"
FACT = "---\nid: {id}\ntype: fact\nstatus: active\nowner: {owner}\nprivacy: private\nconfidence: 0.8\ncreated: {created}\n{more}---\n{text}\n"


def put(vault: Vault, name: str, text: str, *, days: int = 0, owner: str = "default", more: str = "", edge: str = ""):
    created = f"{NOW - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
    text = f"{text}\n\n- {edge}" if edge else text
    return vault.write(
        f"facts/{name}.md", FACT.format(id=f"01{name}", owner=owner, created=created, more=more, text=text)
    )


def commit_then(vault: Vault, days: int) -> None:
    """All there is, as if it had been committed `days` ago."""
    when = f"{NOW - timedelta(days=days):%Y-%m-%dT%H:%M:%SZ}"
    vault.run("add", "-A")
    git = ["git", "-c", "user.name=Maya", "-c", "user.email=maya@example.org"]
    subprocess.run(
        [*git, "commit", "-qm", "then", "--date", when],
        cwd=vault.root,
        check=True,
        env={"GIT_COMMITTER_DATE": when, "PATH": "/usr/bin:/bin"},
    )


@pytest.fixture
def lived(vault):
    """A vault with a history: facts of two months, one of them Bob's own, a contradiction, questions, models."""
    put(vault, "old", "Maya plays the violin", days=62)
    put(vault, "pinned", "Maya is allergic to walnuts", days=62, more="pinned: true\n")
    put(vault, "porto", "Maya lives in Porto", days=40, edge="[[Maya]] lives_in [[Porto]]")
    put(vault, "lisbon", "Maya lives in Lisbon", days=2, edge="[[Maya]] lives_in [[Lisbon]]")
    put(vault, "berlin", "Maya lives in Berlin", days=2, owner="bob", edge="[[Maya]] lives_in [[Berlin]]")
    commit_then(vault, 1)
    found = (Hit("01old", "fact", "violin", 1.0, "f.md"),)
    with vault.memory() as memory, closing(RecallRecords(vault.root, memory.settings)) as records:
        for number in range(20):
            answer = Recall("violin", found, ("vectors",) if number == 3 else (), 4.0 * (number + 1))
            records.after_recall(answer, door="mcp", depth="auto", now=NOW - timedelta(days=1))
        for _ in range(3):
            records.after_recall(Recall(ASKED, (), (), 7.0), door="cli", depth="auto", now=NOW)
    models, usage = ModelRecords(state_folder(vault.root) / "local.db"), ModelUsage(1_500, 500, cost_usd=0.25, calls=1)
    call = PlannedCall("deep", "anthropic", "wise", "extract@2", usage)
    models.settle(models.reserve(call, TODAY.isoformat()), usage)
    return vault


@pytest.fixture
def client(lived):
    with let_in(lived) as client:
        yield client


def post(client, path: str, **form: str):
    headers = {"origin": str(client.base_url)}
    return client.post(path, data={**form, "form_token": "form"}, headers=headers, follow_redirects=False)


def figures(page: str, caption: str) -> list[list[str]]:
    """The rows of the table under a chart, without their tags."""
    table = page[page.index(f"<figcaption>{caption}") :].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [[cell.strip() for cell in re.findall(r"<t[hd][^>]*>(?:<time[^>]*>)?([^<]*)<", row)] for row in rows]


def in_words(day) -> str:
    return format_moment(day.isoformat())


def test_the_numbers_of_each_chart_stand_in_a_table(client):
    page = client.get("/health").text
    growth = figures(page, "Notes by creation date")
    assert growth[0][:2] == ["day", "fact"]
    assert growth[1][:2] == [in_words(TODAY - timedelta(days=62)), "2"]
    assert growth[-1][:2] == [in_words(TODAY), "4"]
    recalls = figures(page, "Recall time by day")
    assert recalls[1] == [in_words(TODAY - timedelta(days=1)), "40.0", "76.0", "20", "0", "1"]
    assert recalls[2] == [in_words(TODAY), "7.0", "7.0", "3", "3", "0"]
    assert figures(page, "Model cost by day")[1] == [in_words(TODAY), "0.2500", "1", "1,500", "500"]
    assert "$0.2500" in page
    assert "of $5.00" in page


def test_growth_is_told_in_few_steps_and_ends_today(lived):
    put(lived, "ancient", "Maya was born in Braga", days=9000)
    put(lived, "nowhen", "Maya likes figs").write_text(
        "---\nid: 01n\ntype: fact\ncreated: some day\n---\nMaya likes figs\n"
    )
    with lived.memory() as memory:
        growth = health.measure_growth(memory, TODAY)
    assert len(growth.days) <= health.MAX_POINTS
    assert growth.days[-1] == TODAY.isoformat()
    steps = {
        (date.fromisoformat(b) - date.fromisoformat(a)).days for a, b in zip(growth.days, growth.days[1:], strict=False)
    }
    assert len(steps) == 1
    assert growth.kinds["fact"][-1] == 5
    assert growth.undated >= 1


def test_a_contradiction_shows_both_sides_the_later_first(client):
    page = client.get("/health").text
    assert page.index("Maya lives in Lisbon") < page.index("Maya lives in Porto")
    assert ", the newer" in page
    (pair,) = re.findall(r'<li class="card pair">(.*?)</li>', page, re.DOTALL)
    assert 'href="/memory/01porto"' in pair


def test_what_is_over_contradicts_nothing(client, lived):
    put(
        lived,
        "porto",
        "Maya lived in Porto",
        days=40,
        more="valid_until: 2026-01-01\n",
        edge="[[Maya]] lives_in [[Porto]]",
    )
    assert "No two facts contradict each other." in client.get("/health").text


@pytest.mark.parametrize("path", ["/health", "/health/fading", "/health/checks"])
def test_what_another_owner_keeps_private_is_neither_shown_nor_counted(client, lived, path):
    lived.write(
        "facts/bobs secret (conflict 2026-01-01).md",
        FACT.format(id="01c", owner="bob", created="2026-01-01", more="", text="Bob hides"),
    )
    page = client.get(path).text
    assert "Berlin" not in page
    assert "ob hides" not in page
    assert "bobs secret" not in page
    if path == "/health":
        assert re.search(r"<b>(\d+)</b> notes", page)[1] == str(8 if (lived.root / "AGENTS.md").exists() else 4)


def test_facts_fade_as_the_janitor_reckons(lived):
    with lived.memory() as memory:
        far = health.measure_fading(memory, NOW + timedelta(days=211))
        near = health.measure_fading(memory, NOW)
        further = health.measure_fading(memory, NOW + timedelta(days=3000))
    assert (near.facts, near.below, near.lasting) == (4, 0, 1)
    assert (near.spans["within a year"], near.spans["later"]) == (2, 1)
    assert sum(near.left) == 3
    # Committed yesterday: thirty days untouched, then three half-lives from 0.8 to 0.1. What was used lasts longer.
    falls = {fact.id: fact.falls for fact in near.following}
    assert falls["01porto"] == falls["01lisbon"] == TODAY + timedelta(days=30 + 180)
    assert list(falls)[-1] == "01old"
    assert (far.below, further.below, further.lasting) == (2, 3, 1)


def test_the_next_to_fade_are_named(client):
    page = client.get("/health/fading").text
    assert "Maya plays the violin" in page
    assert f"below 0.10 on {in_words(TODAY + timedelta(days=210))}" in page
    assert "allergic to walnuts" not in page


def test_what_was_asked_in_vain_is_shown_with_a_field(client):
    page = client.get("/health").text
    assert "What is Jon&#39;s &lt;b&gt;phone&lt;/b&gt; number?" in page
    assert "asked 3 times" in page
    (area,) = Tags(page).named("textarea")
    assert area["name"] == "answer"


def test_an_answer_becomes_a_fact_and_closes_the_gap(client, lived):
    lived.run("config", "user.name", "Maya")
    lived.run("config", "user.email", "maya@example.org")
    head = lived.head()
    done = post(client, "/health/gaps/answer", key=question_key(ASKED), answer="Jon's phone number is 5551")
    with lived.memory() as memory:
        (fact,) = [hit.id for hit in memory.recall("Jon phone number").hits if "5551" in hit.text]
    place = f"/health?said=gap_answered&commit={lived.head()}&fact={fact}#gaps"
    assert (done.status_code, done.headers["location"]) == (303, place)
    shown = client.get(place).text
    assert f'name="commit" value="{lived.head()}"' in shown
    assert f'href="/memory/{fact}"' in shown
    assert 'href="/memory/01nowhere"' not in client.get("/health?fact=01nowhere").text
    assert lived.git("log", "--format=%an: %s", f"{head}..HEAD") == "Maya: remember: Jon's phone number is 5551"
    assert "Every question found something." in client.get("/health").text
    assert "Jon&#39;s phone number is 5551" in client.get("/ask?q=Jon+phone+number").text
    again = post(client, "/health/gaps/answer", key=question_key(ASKED), answer="Jon's phone number is 5552")
    assert again.status_code == 400
    assert "not open any more" in again.text


def test_an_answer_that_the_question_does_not_find_says_so(client):
    done = post(client, "/health/gaps/answer", key=question_key(ASKED), answer="Ring him under 5551")
    assert done.headers["location"].startswith("/health?said=gap_unfound&commit=")


@pytest.mark.parametrize("answer", ["", "no", "   "])
def test_an_answer_that_cannot_be_a_fact_is_not_lost(client, lived, answer):
    head = lived.head()
    done = post(client, "/health/gaps/answer", key=question_key(ASKED), answer=answer)
    assert done.status_code == 409
    assert f">{answer.strip()}</textarea>" in done.text
    assert re.search(r'role="alert">[^<]{10,}<', done.text)
    assert lived.head() == head
    assert "asked 3 times" in client.get("/health").text


def test_a_question_can_be_left_out(client, lived):
    head = lived.head()
    done = post(client, "/health/gaps/leave-out", key=question_key(ASKED), answer="")
    assert done.headers["location"] == "/health?said=gap_left_out#gaps"
    assert "Every question found something." in client.get("/health").text
    assert lived.head() == head


def test_words_that_nobody_keeps_are_not_shown(lived, monkeypatch):
    monkeypatch.setenv("QUAID_RECALL_LOG", "hashes")
    with lived.memory() as memory, closing(RecallRecords(lived.root, memory.settings)) as records:
        records.after_recall(Recall("Who is Zoe?", (), (), 7.0), door="cli", depth="auto", now=NOW)
    with let_in(lived) as client:
        page = client.get("/health").text
    assert "Zoe" not in page
    assert "1 more were recorded without their words on this machine" in page


def test_checks_are_those_of_doctor_and_status(client, lived):
    lived.write("facts/broken.md", "---\nid: [\n---\nMaya rows\n")
    page = client.get("/health/checks").text
    assert "Embedding is switched off" in page
    assert "Next: quaid config embedding.provider local" in page
    assert re.search(r"facts/broken\.md", page)
    assert "conflict copies" in page


def test_an_empty_memory_says_what_to_do(vault):
    with let_in(vault) as client:
        page = client.get("/health").text
        for sentence in (
            "Every question found something.",
            "No two facts contradict",
            "No recall is logged yet.",
            "No model calls in the last 90 days",
        ):
            assert sentence in page
        assert "There are no facts that can fade." in client.get("/health/fading").text


@pytest.mark.slow
def test_charts_are_drawn_and_a_gap_is_answered_with_the_keyboard(lived):
    with start_browser() as browser, visit(browser, lived) as site:
        tab = site.open("/health")
        tab.get_by_role("heading", name="This machine").wait_for()  # both parts were fetched
        tab.get_by_role("heading", name="Next to fade").wait_for()
        drawn = tab.evaluate(
            "[...document.querySelectorAll('figure canvas')].map((canvas) => new Set(new Uint32Array("
            "canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size)"
        )
        assert len(drawn) == 3
        assert min(drawn) > 5  # lines, colours and words, and no empty canvas
        assert find_violations(tab) == []
        ink = tab.evaluate("document.querySelector('figure canvas').toDataURL()")
        tab.emulate_media(color_scheme="dark")
        assert wait_until(tab, f"document.querySelector('figure canvas').toDataURL() !== {ink!r}")
        tab.set_viewport_size(NARROW)
        assert is_wide_enough(tab)
        assert find_violations(tab) == []
        tab.get_by_text("Answer", exact=True).focus()
        tab.keyboard.press("Enter")
        tab.keyboard.press("Tab")
        tab.keyboard.type("Jon's phone number is 5551")
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        tab.get_by_text("Remembered. The question is closed.").wait_for()
    assert any("5551" in path.read_text() for path in Path(lived.root, "facts").rglob("*.md"))


LISTEN = """
window.written = [];
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { written.push(text); return write.call(this, text, ...at); };
"""
"""A script for a page that notes what is written on its charts."""


@pytest.mark.slow
@pytest.mark.parametrize(("ages", "first"), [
    ([0], TODAY), (range(6), None), ([*range(0, 3 * 365, 40)], None),
    ([*range(0, 60, 2), (TODAY - date(2012, 5, 1)).days], TODAY - timedelta(days=90)),
], ids=["one day", "six days", "three years", "one fact of 2012"])  # fmt: skip
def test_a_chart_has_few_different_ticks_and_one_old_fact_squeezes_nothing(vault, ages, first):
    for number, age in enumerate(ages):
        put(vault, f"fact{number}", f"Maya has seen film {number}", days=age)
    vault.save()
    with start_browser() as browser, visit(browser, vault) as site:
        site.context.add_init_script(LISTEN)
        tab = site.open("/health")
        tab.locator("figure canvas").first.wait_for()
        written = list(dict.fromkeys(text for text in tab.evaluate("written") if re.search("[A-Z]|^20..$", text)))
        years = [text[-4:] for text in written if re.search(r"\d{4}$", text)]
        assert 1 <= len(written) <= 14
        assert all(re.fullmatch(r"(\d{1,2} )?[A-Z][a-z]{2,3}( \d{4})?|\d{4}", text) for text in written), written
        assert years
        if first:
            assert min(years) >= str(first.year)
            assert tab.get_by_text("The chart begins on").count() == (len(ages) > 1)
