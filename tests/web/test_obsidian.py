"""A note as Obsidian shows it: callouts, footnotes, math and images of the vault; copied, downloaded and printed."""

from __future__ import annotations

import struct
import zlib

import pytest
from vaults import be_calm, copy_vault
from web.browsing import find_violations, start_browser, visit
from web.conftest import let_in

from quaid.web.pages import attachments
from quaid.web.rendering import render_markdown


def make_png(width=40, height=30):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + b"\x20\x80\x60" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNG = make_png()
SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
NOTE = """# Calibration

> [!warning]- Mind the **tide**
> Not at low water.

The drift is $d = \\sigma^2$, and a sensor costs $5 or $10.[^1]

$$
d = \\int_0^t v
$$

![[gauge.png|120]]

[^1]: In the shop in Porto.
"""


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        vault = copy_vault(tmp_path_factory.mktemp("pictured") / "vault")
        vault.write("Calibration.md", NOTE)
        for path, data in {
            "assets/gauge.png": PNG, "assets/old/gauge.png": b"GIF89a", "assets/drawing.svg": SVG, "page.png": b"<html>",
            ".git/logo.png": PNG, ".hidden/logo.png": PNG, "assets/.dot.png": PNG, "assets/huge.png": PNG + b"\0" * 999,
        }.items():  # fmt: skip
            (vault.root / path).parent.mkdir(parents=True, exist_ok=True)
            (vault.root / path).write_bytes(data)
        outside = vault.root.parent / "outside.png"
        outside.write_bytes(PNG)
        (vault.root / "link.png").symlink_to(outside)
        (vault.root / "elsewhere").symlink_to(vault.root.parent)
        vault.save("pictures")
        yield vault


@pytest.fixture(scope="module")
def client(pictured):
    with let_in(pictured) as found:
        yield found


@pytest.mark.parametrize(("written", "shown"), [
    ("> [!note]\n> Body", '<div class="callout" data-kind="note"><p class="callout-title">Note</p>\n<p>Body</p>'),
    ("> [!tip] Title", '<div class="callout" data-kind="good"><p class="callout-title">Title</p>'),
    ("> [!danger]+ T\n> B", '<details class="callout" data-kind="warn" open=""><summary class="callout-title">T</summary>'),
    ("> [!x<b>]", "<blockquote>"),
    ("> said", "<blockquote>"),
    ("a[^1]\n\n[^1]: why", '<a href="#fn-1">1</a>'),
    ("a ^[why <b>]", "<small>(why &lt;b&gt;)</small>"),
    ("$\\sigma \\leq \\frac{1}{2}$", '<code class="math">σ ≤ \\frac{1}{2}</code>'),
    ("$x < y$", '<code class="math">x &lt; y</code>'),
    ("$$\n<script>\n$$", '<pre class="math"><code>&lt;script&gt;</code></pre>'),
    ("it costs $5 or $10", "it costs $5 or $10"),
    ("![[a b.png|80]]", '<img src="/file/a%20b.png" alt="a b.png" loading="lazy" width="80">'),
    ("![A cat](../pictures/cat.jpg)", '<img src="/file/pictures%2Fcat.jpg" alt="A cat" loading="lazy">'),
    ("![[Maya]]", '<a class="memory" href="/memory/Maya">'),
])  # fmt: skip
def test_it_is_shown_as_obsidian_does(written, shown):
    assert shown in render_markdown(written)


@pytest.mark.parametrize("written", [
    "![x](http://evil.example/x.png)", "![x](//evil.example/x.png)", "![x](data:image/png;base64,AAAA.png)",
    "![x](file:///etc/x.png)", "![x][far]\n\n[far]: https://evil.example/x.png", '<img src="/file/x.png" onerror=alert(1)>',
    "![x](javascript:alert(1)//.png)", "![x](&#104;ttp://evil.example/x.png)", "![x](\\\\\\\\evil.example\\x.png)",
])  # fmt: skip
def test_no_image_comes_from_elsewhere(written):
    assert '<img src="/file/' not in (shown := render_markdown(written)) or "evil" in shown.split("/file/")[1]
    assert "<img" not in shown.replace('<img src="/file/', "")


def test_an_image_of_the_vault_is_found_by_the_end_of_its_path(client):
    for path in ("gauge.png", "assets/gauge.png", "assets%2Fgauge.png"):
        answer = client.get(f"/file/{path}")
        assert answer.content == PNG
        assert answer.headers["content-type"] == "image/png"


@pytest.mark.parametrize("path", [
    "../outside.png", "..%2Foutside.png", "assets/../../outside.png", "%2e%2e/outside.png", "link.png", "elsewhere/outside.png",
    "outside.png", ".git/logo.png", "logo.png", ".hidden/logo.png", "assets/.dot.png", "page.png", "quaid.toml", "Calibration.md",
    "/etc/passwd", "//etc/passwd", "assets//gauge.png", "assets\\gauge.png", "gauge.png%00", "", ".", "assets", "assets/",
    "C:/gauge.png", "nothing.png",
])  # fmt: skip
def test_nothing_but_an_image_inside_the_vault_is_served(client, path):
    answer = client.get(f"/file/{path}")
    assert answer.status_code in {400, 404}
    assert PNG not in answer.content


def test_a_file_that_is_too_large_is_not_served(client, monkeypatch):
    assert client.get("/file/huge.png").status_code == 200
    monkeypatch.setattr(attachments, "MAX_IMAGE", len(PNG))
    assert client.get("/file/huge.png").status_code == 404


def test_a_drawing_can_run_and_load_nothing(client):
    answer = client.get("/file/drawing.svg")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert answer.headers["content-security-policy"].endswith("sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_other_pages_keep_their_policy(client):
    for path in ("/memory/Calibration", "/static/note.css", "/file/nothing.png"):
        assert "script-src 'self'" in client.get(path).headers["content-security-policy"]


def test_images_are_for_the_opened_browser_only(pictured):
    with let_in(pictured) as client:
        client.cookies.clear()
        assert client.get("/file/gauge.png").status_code == 403
        assert client.get("/download/Calibration").status_code == 403


def test_a_note_is_downloaded_as_it_is_written(client):
    answer = client.get("/download/Calibration")
    assert answer.text == NOTE
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''Calibration.md"
    assert client.get("/download/nothing").status_code == 404


def test_what_another_owner_keeps_private_is_not_downloaded(pictured):
    pictured.write("facts/hers.md", "---\nid: 01hers\ntype: fact\nowner: bob\nprivacy: private\n---\nBob hides it\n")
    with let_in(pictured) as client:
        for reference in ("01hers", "facts%2Fhers.md", "hers"):
            answer = client.get(f"/download/{reference}")
            assert answer.status_code == 404
            assert "hides" not in answer.text


@pytest.mark.slow
def test_in_a_browser_images_load_and_the_markdown_is_copied(pictured):
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with start_browser() as browser, visit(browser, pictured, **options) as site:
        tab = site.open("/memory/Calibration")
        tab.locator(".prose img").scroll_into_view_if_needed()
        tab.wait_for_timeout(500)
        assert tab.evaluate("document.querySelector('.prose img').naturalWidth") == 40
        tab.get_by_text("Mind the tide", exact=True).click()
        tab.get_by_text("Not at low water.", exact=True).wait_for()
        tab.get_by_text("Copy the markdown").click()
        tab.get_by_text("Copied").wait_for()
        assert tab.evaluate("navigator.clipboard.readText()") == NOTE
        assert find_violations(tab) == []
        tab.emulate_media(media="print")
        assert not tab.get_by_text("Download", exact=True).is_visible()
