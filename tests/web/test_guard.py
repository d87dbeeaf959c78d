"""The page answers its owner's browser and nobody else, and tells the browser to load nothing from elsewhere."""

from __future__ import annotations

import os
import time

import pytest
from web.test_pages import Tags

from quaid.web.guard import MAX_KEYS_AGE_S, Keys

HERE = "http://127.0.0.1:7438"
COOKIE = {"Cookie": "quaid-view-7438=cookie"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": HERE}


def test_the_printed_address_lets_in_and_the_token_leaves_it(site):
    answer = site.get("/memory/01milk?token=printed&q=a", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/memory/01milk?q=a")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert site.get("/ask").status_code == 200
    site.cookies.clear()


def test_the_address_on_the_command_line_opens_once(site):
    assert "set-cookie" in site.get("/?token=started", follow_redirects=False).headers
    site.cookies.clear()
    assert "set-cookie" not in site.get("/?token=started", follow_redirects=False).headers


@pytest.mark.parametrize(("path", "headers"), [
    ("/ask", {}),
    ("/static/quaid.css", {}),
    ("/ask", {"Cookie": "quaid-view-7438=guess"}),
    ("/ask", {"Cookie": "quaid-view-1=cookie"}),
    ("/ask", COOKIE | {"Host": "evil.example:7438"}),
    ("/ask", COOKIE | {"Host": "127.0.0.1"}),
    ("/ask", COOKIE | {"Host": "127.0.0.1.nip.io:7438"}),
    ("/?token=printed", {"Host": "evil.example:7438"}),
    ("/ask", COOKIE | {"Origin": "https://evil.example"}),
    ("/ask", COOKIE | {"Origin": "null"}),
    ("/ask", COOKIE | {"Sec-Fetch-Site": "cross-site"}),
    ("/ask", COOKIE | {"Sec-Fetch-Site": "same-site"}),
])  # fmt: skip
def test_whoever_else_asks_is_refused_with_a_sentence(site, path, headers):
    answer = site.get(path, headers=headers, follow_redirects=False)
    assert answer.status_code == 403
    assert len(answer.text.split()) >= 5
    assert answer.text.count("\n") == 1
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(client, method):
    assert client.request(method, "/").status_code == 403


@pytest.mark.parametrize(("headers", "body"), [
    (FORM, "x=1"),
    (FORM, "form_token=guess"),
    (FORM | {"Origin": "https://evil.example"}, "form_token=form"),
    (FORM | {"Origin": "null"}, "form_token=form"),
    ({"Content-Type": FORM["Content-Type"]}, "form_token=form"),
    (FORM | {"Content-Type": "text/plain"}, "form_token=form"),
    (FORM, b"form_token=form&x=" + b"a" * (4 * 2**20)),
    (FORM, b"form_token=form&x=%ff"),
])  # fmt: skip
def test_a_post_that_is_not_of_our_forms_is_refused(client, headers, body):
    assert client.post("/", headers=headers, content=body).status_code == 403


def test_a_post_of_our_forms_passes_the_guard(client):
    answer = client.post("/", headers=FORM, content="form_token=form")
    assert answer.status_code == 405
    assert "accepts no forms" in answer.text


@pytest.mark.parametrize("path", ["/", "/memory/01milk", "/memory/none", "/nowhere", "/static/quaid.css", "/?token=x"])
def test_every_answer_says_what_the_browser_may_do(client, path):
    headers = client.get(path, follow_redirects=False).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == ("private, no-cache" if path.startswith("/static") else "no-store")
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", [
    "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/guard.py", "/static//etc/passwd", "/static/%00",
    "/memory/..%2f..%2f..%2fetc%2fpasswd", "/memory/%2fetc%2fpasswd", "/memory/..%5cquaid.toml", "/memory/quaid.toml",
    "/memory/.git%2fconfig",
])  # fmt: skip
def test_no_path_leads_out_of_the_memory(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    for said in ("root:", "import", "[core]", "[janitor]"):
        assert said not in answer.text


def test_the_way_after_a_token_stays_here(site):
    for path in ("//evil.example/x", "/%5cevil.example", "///evil.example"):
        there = site.get(f"http://127.0.0.1:7438{path}?token=guess", follow_redirects=False).headers["location"]
        assert there.startswith("/")
        assert there[1:2] not in {"/", "\\"}


def test_the_keys_of_a_run_are_those_of_the_last_one_and_private(tmp_path):
    file = tmp_path / "vault" / "view_keys.json"
    first, second = Keys.load(file), Keys.load(file)
    assert (first.cookie, first.form) == (second.cookie, second.form)
    assert (first.printed, first.started) != (second.printed, second.started)
    assert file.stat().st_mode & 0o777 == 0o600
    assert first.printed not in file.read_text()


@pytest.mark.parametrize("spoil", [
    lambda file: file.unlink(),
    lambda file: file.chmod(0o644),
    lambda file: os.utime(file, times=(0, time.time() - MAX_KEYS_AGE_S - 1)),
    lambda file: file.write_text("{}"),
    lambda file: file.write_text('{"cookie": "a", "form": "b"}'),
    lambda file: file.write_bytes(b"\xff"),
    lambda file: file.rename(file.with_name("other")) and file.symlink_to("other"),
])  # fmt: skip
def test_keys_that_another_could_know_or_that_are_old_are_replaced(tmp_path, spoil):
    file = tmp_path / "view_keys.json"
    first = Keys.load(file)
    spoil(file)
    second = Keys.load(file)
    assert second.cookie != first.cookie
    assert second == Keys.load(file)._replace(printed=second.printed, started=second.started)


def test_a_form_of_an_earlier_run_comes_back_with_its_text_and_can_be_sent_again(client):
    sent = {"form_token": "old", "text": "My <b>long</b> text", "before": "YWJj"}
    headers = {"Origin": HERE, "Referer": f"{HERE}/edit/01milk?x=1"}
    answer = client.post("/edit/01milk", headers=headers, data=sent)
    assert answer.status_code == 403
    assert "My &lt;b&gt;long&lt;/b&gt; text</textarea>" in answer.text
    fields = {each.get("name"): each.get("value") for each in Tags(answer.text).named("input")}
    assert fields == {"form_token": "form", "text": sent["text"], "before": "YWJj"}
    assert 'action="/edit/01milk"' in answer.text
    assert 'href="/edit/01milk?x=1"' in answer.text


def test_a_browser_without_access_gets_its_text_and_nothing_of_the_vault(site, seen_vault):
    headers = {"Origin": HERE, "Referer": "https://evil.example/x"}
    answer = site.post("/edit/01milk", headers=headers, data={"form_token": "old", "text": "My long text"})
    assert answer.status_code == 403
    assert "My long text</textarea>" in answer.text
    assert seen_vault.root.name not in answer.text
    assert "form_token" not in answer.text
    assert "evil" not in answer.text


def test_a_file_that_has_not_changed_is_not_sent_again(client, site):
    first = client.get("/static/quaid.css")
    again = client.get("/static/quaid.css", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    site.cookies.clear()
    assert site.get("/static/quaid.css").headers["cache-control"] == "no-store"
