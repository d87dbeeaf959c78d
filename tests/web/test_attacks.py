"""What an attacker tries: another site, another program of this machine, a note, the vault's own settings."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from vaults import copy_vault
from web.browsing import serve, start_browser, visit
from web.conftest import KEYS, PORT
from web.test_pages import Tags

from quaid.web import guard, live
from quaid.web.live import Live
from quaid.web.rendering import render_markdown

HERE = f"http://127.0.0.1:{PORT}"
COOKIE = {"Cookie": f"quaid-view-{PORT}=cookie"}
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": HERE}
HOSTILE = """---
type: note
title: "\u202egpj.exe <b>bold</b> {{ 7 * 7 }}"
aliases: ["</title><script>alert(1)</script>", "\" autofocus onfocus=alert(2) x=\""]
"<img src=x onerror=alert(3)>": "javascript:alert(4)"
key: AKIAQYLPMN5HHHFPZAM2
---
# </title><script>document.title = "taken"</script> <svg onload=alert(5)>

<div hx-get="/" hx-trigger="load" data-hx-get="/memory/01milk" onclick="alert(6)" style="position:fixed">over all</div>
<math><mtext><table><mglyph><style><img src=x onerror=alert(7)></style></mglyph></table></mtext></math>
<iframe srcdoc="<script>parent.taken = 1</script>"></iframe><form action="//evil.example"><button>go</button></form>
<base href="http://evil.example/"><meta http-equiv="refresh" content="0; url=http://evil.example/">
<link rel="stylesheet" href="http://evil.example/x.css"><object data="http://evil.example/"></object>

![a](http://evil.example/a.png) ![b][far] [![c](http://evil.example/c.png)](javascript:alert(8)) [t](/memory/x "onclick=1")
[d](data:text/html,<script>alert(9)</script>) [v](vbscript:alert(1)) [e](&#106;avascript:alert(1)) [u](java%0ascript:alert(1))
[f](//evil.example/x) [g](\\\\evil.example/x) [h](file:///etc/passwd) [i](?token=printed) [j](http://127.0.0.1:7438@evil.example/)
<javascript:alert(1)> <http://evil.example/auto> http://evil.example/bare [[a"onmouseover="alert(1)|x"y]] [[../../etc/passwd]]
[[<script>alert(1)</script>]] ![[http://evil.example/e.png]] [far]: x ==<b>== ~~<i>~~ \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u200b\u2066

[far]: http://evil.example/far.png "title"

| <script>alert(1)</script> | [x](javascript:alert(1)) |
|---|:-:|
| <img src=x onerror=alert(1)> | `<script>` |

[^1]: <script>alert(1)</script>

```html"><script>alert(1)</script>
<script>alert(1)</script>
```

block ^x"onclick ^good
"""


# -- who asks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [
    f"[::1]:{PORT}", f"127.0.0.1.:{PORT}", f"localhost.:{PORT}", f"maya@127.0.0.1:{PORT}", f"127.0.0.1:{PORT}@evil.example",
    f"127.1:{PORT}", f"0.0.0.0:{PORT}", f"2130706433:{PORT}", f"127.0.0.1:0{PORT}", f"127.0.0.1:{PORT} ", f"LOCALHOST.evil:{PORT}",
    f"evil.example#127.0.0.1:{PORT}", "", f"127.0.0.1:{PORT},evil.example",
])  # fmt: skip
def test_no_other_name_of_this_machine_is_answered(site, host):
    answer = site.get("/ask", headers=COOKIE | {"Host": host}, follow_redirects=False)
    assert answer.status_code == 403 or host.strip() == f"127.0.0.1:{PORT}"  # a header's spaces are no part of it


@pytest.mark.parametrize("header", ["X-Forwarded-Host", "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Host",
                                    "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override"])  # fmt: skip
def test_what_a_proxy_would_say_changes_nothing(client, site, header):
    assert "evil.example" not in client.get("/nowhere/", headers={header: "evil.example"}).text
    answer = site.get("/ask", headers={"Host": "evil.example", header: f"127.0.0.1:{PORT}"})
    assert answer.status_code == 403


@pytest.mark.parametrize("origin", [
    "null", "", f"http://127.0.0.1:{PORT + 1}", f"https://127.0.0.1:{PORT}", f"http://localhost:{PORT}", f"{HERE}/", f"{HERE}.evil.example",
    "HTTP://127.0.0.1", "file://", f"{HERE}, {HERE}",
])  # fmt: skip
def test_a_post_from_anywhere_else_is_refused(client, origin):
    assert client.post("/", headers=FORM | {"Origin": origin}, content="form_token=form").status_code == 403


@pytest.mark.parametrize("name", ["Host", "Origin", "Cookie", "Sec-Fetch-Site"])
def test_a_header_that_is_given_twice_is_refused(client, name):
    given = {"Host": f"127.0.0.1:{PORT}", "Origin": HERE, **COOKIE, "Sec-Fetch-Site": "same-origin"}
    headers = [*given.items(), (name, given[name])]
    assert client.get("/ask", headers=headers).status_code == 403


@pytest.mark.parametrize("cookies", ['odd={"a": [1]}; {}', "a b=c; {}", '"; {}', "é=ü; {}", "quaid-view-7438=x; {}"])
def test_an_odd_cookie_of_another_server_locks_nobody_out(site, cookies):
    headers = {"Cookie": cookies.replace("{}", COOKIE["Cookie"]).encode("latin-1")}
    assert site.get("/ask", headers=headers).status_code == 200


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "multipart/form-data; boundary=x", ""])
def test_what_is_no_form_is_not_read(client, content_type):
    headers = FORM | {"Content-Type": content_type}
    assert client.post("/", headers=headers, content='{"form_token": "form"}').status_code == 403


def test_half_a_form_is_not_acted_upon():
    """A browser that leaves while it sends would otherwise save half of a note."""
    asked = []

    async def app(*_):
        asked.append("acted")

    async def post() -> list[dict]:
        messages = [
            {"type": "http.request", "body": b"form_token=form&text=half", "more_body": True},
            {"type": "http.disconnect"},
        ]
        sent = []

        async def receive():
            return messages.pop(0)

        async def send(message):
            sent.append(message)

        headers = {
            "host": f"127.0.0.1:{PORT}",
            "origin": HERE,
            "cookie": COOKIE["Cookie"],
            "content-type": FORM["Content-Type"],
        }
        scope = {
            "type": "http", "method": "POST", "path": "/", "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        await guard.Guard(app, app, KEYS, PORT)(scope, receive, send)
        return sent

    assert asyncio.run(post())[0]["status"] == 403
    assert asked == []


@pytest.mark.parametrize("path", ["/ask", "/static/quaid.css", "/live"])
def test_head_is_answered_without_a_body_and_ends(client, path):
    answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", [
    "/static/%252e%252e/guard.py", "/static/..%252fguard.py", "/static/..%5cguard.py", "/static/vendor/../../guard.py",
    "/static/" + "a" * 5000, "/static/" + "../" * 50 + "etc/passwd", "/static/.%2e/guard.py", "/static",
    "/static/vendor", "/memory/%252e%252e%252fquaid.toml", "/memory/file%3a%2f%2f%2fetc%2fpasswd", "/memory/~%2f.ssh%2fid_rsa",
    "/memory/" + "%2e%2e%2f" * 400 + "etc%2fpasswd", "/memory/%ff%fe", "/memory/%0d%0aSet-Cookie:a=b", "/memory/.quaid%2findex.db",
])  # fmt: skip
def test_no_encoding_of_a_path_leads_out(client, path):
    answer = client.get(path, follow_redirects=False)
    assert answer.status_code in {303, 307, 404}
    assert "set-cookie" not in answer.headers
    for said in ("root:", "import annotations", "[core]", "SQLite"):
        assert said not in answer.text


def test_a_link_among_the_static_files_is_not_followed(client, monkeypatch, tmp_path):
    (tmp_path / "secret.css").write_text("secret", encoding="utf-8")
    (tmp_path / "static").mkdir()
    (tmp_path / "static/link.css").symlink_to(tmp_path / "secret.css")
    (mount,) = [route.app for route in client.app._app.routes if getattr(route, "path", "") == "/static"]
    monkeypatch.setattr(mount, "all_directories", [tmp_path / "static"])
    assert client.get("/static/link.css").status_code == 404


# -- a real server -----------------------------------------------------------------------------------------------------


def ask_raw(address: str, request: str, *, wait_s: float = 5) -> bytes:
    place = urlsplit(address)
    with socket.create_connection((place.hostname, place.port), timeout=wait_s) as line:
        line.sendall(request.replace("HOST", place.netloc).replace("\n", "\r\n").encode("latin-1"))
        found = b""
        try:
            while part := line.recv(65536):
                found += part
        except (TimeoutError, ConnectionResetError):
            pass
        return found


@pytest.mark.slow
def test_on_the_wire_nobody_gets_in_and_nothing_is_told_in_the_terminal(vault):
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    (vault.root / "quaid.toml").open("a").write(
        '\n[view]\nhost = "0.0.0.0"\nport = 80\ntrusted_hosts = ["evil.example"]\n'
    )
    vault.save()
    with serve(vault) as address:
        token = address.rpartition("=")[2]
        opened = ask_raw(address, f"GET /?token={token} HTTP/1.1\nHost: HOST\nConnection: close\n\n")
        cookie = re.search(rb"(?i)set-cookie: ([^;]+)", opened)[1].decode()
        assert b"HTTP/1.1 303" in opened
        assert token.encode() not in opened  # the way on has none
        for target in ("http://evil.example/", "//evil.example/", "*", "/../../etc/passwd", "evil.example:80"):
            found = ask_raw(address, f"GET {target} HTTP/1.1\nHost: HOST\nCookie: {cookie}\nConnection: close\n\n")
            assert b"Maya" not in found or target == "*", target
            assert b"root:" not in found
        head = "POST / HTTP/1.1\nHost: HOST\nOrigin: http://HOST\nContent-Type: application/x-www-form-urlencoded\n"
        inner = f"GET /ask HTTP/1.1\nHost: HOST\nCookie: {cookie}\n\n"
        for framing in ("Content-Length: 4\nContent-Length: 90\n", "Transfer-Encoding: chunked\nContent-Length: 4\n",
                        "Transfer-Encoding: x, chunked\n", "Content-Length: -1\n"):  # fmt: skip
            found = ask_raw(address, f"{head}{framing}\n0\n\n{inner.replace(cookie, 'a=b')}", wait_s=1)
            assert b"Maya" not in found, framing
            assert b"HTTP/1.1 200" not in found, framing
        assert b"400" in ask_raw(address, "GET /\xff\xfe HTTP/1.1\n\n", wait_s=1)
        assert (
            ask_raw(address, f"GET / HTTP/1.1\nHost: HOST\nX: {'a' * 200_000}\n\n", wait_s=1)[:15] != b"HTTP/1.1 200 OK"
        )
        assert b"HTTP/1.1 200" in ask_raw(address, inner.replace("\n\n", "\nConnection: close\n\n"))
    # `serve` has checked that nothing was printed, and that it listens on this machine only.


@pytest.mark.slow
def test_a_stream_of_events_ends_with_the_server_and_a_closed_one_at_once(vault):
    command = ["quaid", "view", "--no-browser", "--port", "0", "--vault", str(vault.root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = urlsplit(re.search(r"http://\S+", process.stdout.readline())[0])
        opened = ask_raw(address.geturl(), f"GET /?{address.query} HTTP/1.1\nHost: HOST\nConnection: close\n\n")
        cookie = re.search(rb"(?i)set-cookie: ([^;]+)", opened)[1].decode()
        request = f"GET /live HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: {cookie}\r\n\r\n".encode()
        lines = []
        for _ in range(live.MAX_STREAMS):
            line = socket.create_connection((address.hostname, address.port), timeout=30)
            line.sendall(request)
            assert b"200" in line.recv(100)
            lines.append(line)
        refused = ask_raw(
            address.geturl(), request.decode().replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").replace("\r", "")
        )
        assert b" 503 " in refused
        assert b"Too many pages are open" in refused
        assert b"content-security-policy" in refused
        lines.pop().close()
        deadline = time.monotonic() + 10
        while b"503" in (found := _begin(address, request)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert b"200" in found  # the place of the closed one is free
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""
        for line in lines:
            line.close()
    finally:
        process.kill()
        process.communicate()


def _begin(address, request: bytes) -> bytes:
    with socket.create_connection((address.hostname, address.port), timeout=30) as line:
        line.sendall(request)
        return line.recv(100)


@pytest.mark.parametrize("is_complete", [True, False], ids=["notified", "polled"])
def test_a_vault_that_goes_and_comes_back_is_listened_to_again(vault, monkeypatch, is_complete):
    from quaid.resident.worker import Worker

    monkeypatch.setattr(live, "CHECK_S", 0.1)
    monkeypatch.setattr(live, "POLL_S", 0.2)
    monkeypatch.setattr(live, "why_incomplete", lambda _: None if is_complete else "nobody tells")
    away = vault.root.with_name("away")

    async def see() -> list[str]:
        reading = Worker("reading", vault.root)
        listening = Live(vault.root, reading, asyncio.Event())
        events = listening._list_events()
        seen = []
        async with listening.run():
            seen.append(await asyncio.wait_for(anext(events), 20))
            await asyncio.sleep(0.5)
            vault.root.rename(away)
            await asyncio.sleep(0.5)
            shutil.copytree(away, vault.root, symlinks=True)
            await asyncio.sleep(0.5)
            vault.write_fact("tea", "Maya drinks green tea")
            seen.append(await asyncio.wait_for(anext(events), 20))
            await events.aclose()
        await asyncio.wrap_future(reading.close())
        return seen

    first, second = asyncio.run(see())
    assert first != second


# -- a hostile memory --------------------------------------------------------------------------------------------------


@pytest.fixture
def hostile_vault(vault):
    vault.write("hostile.md", HOSTILE.encode().decode("unicode_escape"))
    vault.write_fact("script", "</script><script>alert(1)</script> milk <img src=x onerror=alert(2)> \u202eevil")
    vault.write(
        "facts/secret.md",
        "---\nid: 01hidden\ntype: fact\nstatus: active\nowner: bob\nprivacy: private\nproject: heist\n---\nBob hides milk\n",
    )
    vault.save("</title><script>alert(1)</script> \u202e")
    return vault


@pytest.mark.slow
def test_a_hostile_note_runs_nothing_and_fetches_nothing_in_the_browser(hostile_vault):
    with start_browser() as browser, visit(browser, hostile_vault) as site:
        dialogs = []
        for path in (
            "/memory/hostile.md",
            "/memory/01script",
            "/ask?q=milk+script",
            "/ask?q=%3Cscript%3Ealert(1)%3C/script%3E",
        ):
            tab = site.open("/ask")
            tab.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
            requests = []
            tab.on("request", lambda request, seen=requests: seen.append(request.url))
            tab.goto(site.base + path)
            tab.wait_for_timeout(300)
            asked = {urlsplit(url).path for url in requests}
            assert {each for each in asked if not each.startswith("/static/")} <= {urlsplit(path).path, "/live"}
            assert "taken" not in tab.title()
            assert tab.evaluate("window.taken === undefined && window.opener === null && document.referrer") in {
                "",
                f"{site.base}/",
            }
            assert (
                tab.evaluate(
                    "document.querySelectorAll('main :is(script, iframe, object, style, base, meta, math)').length"
                )
                == 0
            )
            assert tab.evaluate("navigator.serviceWorker.getRegistrations().then((found) => found.length)") == 0
            tab.close()
        assert dialogs == []
        assert all("token" not in cookie["name"] and cookie["httpOnly"] for cookie in site.context.cookies())


def test_what_is_rendered_has_no_attribute_that_acts(open_client, hostile_vault):
    client = open_client(hostile_vault)
    text = client.get("/memory/hostile.md").text
    prose = text[text.index('<div class="prose"') : text.index("</article>")]
    for tag, attributes in Tags(prose).found:
        assert tag not in {
            "script",
            "img",
            "svg",
            "iframe",
            "form",
            "base",
            "meta",
            "style",
            "object",
            "math",
            "button",
        }
        assert attributes.keys() <= {"class", "dir", "href", "id", "rel"}, (tag, attributes)
        href = attributes.get("href") or ""
        assert re.match(r"/memory/|#|https?://|$", href), href
        assert attributes.get("id", "b-").startswith("b-")
    for unseen in "\u202e\u2066\u200b\x1b\x07":
        assert unseen not in text
    assert "AKIAQYLPMN5HHHFPZAM2" not in text
    assert "49" not in re.findall(r"<h1[^>]*>([^<]*)", text)[0]


@pytest.mark.matrix
@pytest.mark.parametrize("piece", [
    "[", "[[", "*a", "> ", "`", "![a](", "==a", "^a ", "<", "| a ", "<!--", "[a]: b\n", "- a\n  ", "**a _b ", "[[a|", "[a](<b", "~~a",
    "&#x", "\\", "1. a\n", "<a@b", "[a][b]", "# a\n", "%%", "- [ ] ", "\t", "> - ",
])  # fmt: skip
def test_the_time_to_render_grows_no_faster_than_the_note(piece):
    def measure(size: int) -> float:
        text, times = piece * (size // len(piece)), []
        for _ in range(3):
            started = time.thread_time()
            render_markdown(text)
            times.append(time.thread_time() - started)
        return min(times)

    small, large = measure(4_000), measure(16_000)
    assert large < 8 * small + 0.1  # four times is linear, sixteen would be quadratic


PATHS = ("/ask", "/ask?q=milk", "/ask?q=Bob+hides", "/ask?q=milk&owner=bob", "/ask?q=milk&project=heist", "/memory/01hidden", "/memory/secret",
         "/memory/facts%2Fsecret.md", "/memory/Bob%20hides%20milk", "/ask?q=01hidden", "/ask?as_of=HEAD&q=milk+Bob")  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("path", PATHS)
def test_what_another_keeps_private_is_on_no_page(open_client, hostile_vault, path):
    asked = path.replace("%20", " ").replace("+", " ")
    text = open_client(hostile_vault).get(path).text
    for word in ("hides", "01hidden", "heist", "secret.md"):
        assert word not in text or word in asked.replace("%2F", "/"), word


@pytest.mark.slow
def test_asking_for_a_private_note_takes_as_long_as_asking_for_none(open_client, hostile_vault):
    client = open_client(hostile_vault)
    client.get("/memory/01absent")

    def share_apart() -> float:
        took: dict[str, list[float]] = {"01hidden": [], "01absent": []}
        for _ in range(25):
            for reference, times in took.items():
                started = time.process_time()
                assert client.get(f"/memory/{reference}").status_code == 404
                times.append(time.process_time() - started)
        hidden, absent = (statistics.median(times) for times in took.values())
        return abs(hidden - absent) / absent

    assert any(share_apart() < 0.25 for _ in range(3))  # what is told is told each time


def test_a_change_of_a_private_note_tells_no_page(open_client, hostile_vault):
    client = open_client(hostile_vault)
    with hostile_vault.memory() as memory:
        before = live.manifest(memory.index())
        hostile_vault.write(
            "facts/secret.md", (hostile_vault.root / "facts/secret.md").read_text().replace("milk", "tea")
        )
        assert live.manifest(memory.index()) == before
        hostile_vault.write_fact("tea", "Maya drinks tea")
        assert live.manifest(memory.index()) != before
    assert client.get("/ask").status_code == 200


def test_the_way_back_after_a_secret_in_a_question_has_no_secret(client):
    text = client.get("/memory/AKIAQYLPMN5HHHFPZAM2").text
    assert "AKIAQYLPMN5HHHFPZAM2" not in text


def test_a_copy_of_a_vault_opens_under_the_rules_of_its_owner(tmp_path):
    """Nothing in the vault's own settings says where the page listens or whom it trusts."""
    from quaid.config import list_settings

    with copy_vault(tmp_path / "vault").memory() as memory:
        names = {key for key, _ in list_settings(memory.settings)}
    assert not [key for key in names if key.startswith(("view.", "web."))]
