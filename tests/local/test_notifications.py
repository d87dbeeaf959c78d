"""How much is told of each part, and the ways it gets to the owner: none may fail, hang, or write where it should not."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from http.server import BaseHTTPRequestHandler

import pytest
from loopback import LoopbackServer
from vaults import wait_for

from quaid.local import notifications
from quaid.local.notifications import deliver, level_of, list_channels, take_host_news
from quaid.place import state_folder
from quaid.settings import NotificationSettings


class TestLevels:
    @pytest.mark.parametrize(("level", "levels"), [
        ("quiet", ("off",) * 6),
        ("normal", ("summary", "off", "summary", "summary", "off", "off")),
        ("verbose", ("summary",) * 6),
        ("debug", ("full",) * 6),
    ])  # fmt: skip
    def test_presets(self, level, levels):
        settings = NotificationSettings(level=level)
        features = ("janitor", "extraction", "retrieval", "docs", "digest", "search")
        assert tuple(level_of(settings, one) for one in features) == levels

    def test_a_feature_has_a_level_and_channels_of_its_own(self):
        settings = NotificationSettings(
            level="quiet", channels="file", features="digest=full, Digest=host, docs=summary"
        )
        assert (level_of(settings, "digest"), list_channels(settings, "digest")) == ("full", ["host"])
        assert (level_of(settings, "docs"), list_channels(settings, "docs")) == ("summary", ["file"])
        assert (level_of(settings, "janitor"), list_channels(settings, "janitor")) == ("off", ["file"])

    def test_a_channel_that_does_not_exist_is_named(self, tmp_path):
        settings = NotificationSettings(features="digest=pigeon, digest=full")
        assert "'pigeon'" in deliver(tmp_path, settings, "digest", "Quaid learned 1 fact.")[0]


class TestHost:
    def test_news_wait_for_the_program_in_which_the_owner_goes_on_and_are_shown_once(self, tmp_path):
        settings = NotificationSettings(level="debug", channels="host")
        deliver(tmp_path, settings, "digest", "Quaid learned 2 facts.")
        deliver(tmp_path, settings, "janitor", "Quaid's janitor: approved 2 facts.")
        assert take_host_news(tmp_path) == "Quaid learned 2 facts.\nQuaid's janitor: approved 2 facts."
        assert take_host_news(tmp_path) == ""

    def test_of_news_that_nobody_took_for_long_the_newest_are_shown(self, tmp_path):
        settings = NotificationSettings(level="debug", channels="host")
        for number in range(100):
            deliver(
                tmp_path, settings, "digest", f"Quaid learned {number} facts, and this is a long sentence about them."
            )
        news = take_host_news(tmp_path)
        assert len(news) <= notifications.MAX_HOST_CHARS
        assert "learned 99 facts" in news


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A desktop whose notifier writes down what it is called with."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.defpath}")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    return make


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """No proxy stands between the tests and their own services."""
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def hook():
    """A webhook: what was posted, and what it answers."""
    posted, answer = [], [200]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            posted.append(
                (self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"])))
            )
            self.send_response(answer[0])
            self.end_headers()

        def log_message(self, *_):
            pass

    server = LoopbackServer(Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/s3cret", posted, answer
    server.shutdown()
    server.server_close()


def sent(root, text="3 merged.", **fields) -> list[str]:
    return deliver(root, NotificationSettings(**fields), "janitor", text)


class TestFile:
    def test_each_message_begins_with_its_time(self, tmp_path):
        assert sent(tmp_path, "first\n\nDone:\n- a", channels="file") == []
        assert sent(tmp_path, "second", channels=" FILE, file,") == []
        path = state_folder(tmp_path) / "log" / "news.log"
        first, *rest, second = path.read_text().splitlines()
        assert first.endswith("Z  first")
        assert rest == ["", "  Done:", "  - a"]
        assert second.endswith("Z  second")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_file_of_the_owners_choice(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        (tmp_path / "home").mkdir()
        for setting in ("news.txt", "~/news.log", str(tmp_path / "home" / "other.log")):
            assert sent(tmp_path, channels="file", file=setting) == []
        assert sorted(path.name for path in tmp_path.rglob("*.*") if path.is_file()) == [
            "news.log",
            "news.txt",
            "other.log",
        ]

    @pytest.mark.parametrize(
        "setting", ["~/.bashrc", "authorized_keys", "SOUL.md", ".git/hooks/pre-commit", "a.log/../x.sh"]
    )
    def test_it_writes_into_no_file_that_something_obeys(self, tmp_path, monkeypatch, setting):
        monkeypatch.setenv("HOME", str(tmp_path))
        (remark,) = sent(tmp_path, channels="file", file=setting)
        assert ".log or .txt" in remark
        assert list(tmp_path.rglob("*")) == []

    def test_nor_through_a_link(self, tmp_path):
        (tmp_path / "mine").write_text("mine")
        (tmp_path / "news.log").symlink_to(tmp_path / "mine")
        assert sent(tmp_path, channels="file", file="news.log")
        assert (tmp_path / "mine").read_text() == "mine"

    def test_a_long_one_is_begun_anew(self, tmp_path, monkeypatch):
        monkeypatch.setattr(notifications, "MAX_FILE_BYTES", 10)
        for text in ("first", "second"):
            sent(tmp_path, text, channels="file", file="news.log")
        assert (tmp_path / "news.log").read_text().endswith("  second\n")
        assert (tmp_path / "news.log.1").read_text().endswith("  first\n")

    def test_a_folder_that_is_not_there_is_a_remark(self, tmp_path):
        (remark,) = sent(tmp_path, channels="file", file="nowhere/news.log")
        assert "could not be delivered by file" in remark


class TestTerminal:
    def test_a_person_is_told_and_a_pipe_is_not(self, tmp_path, capsys, monkeypatch):
        assert sent(tmp_path, channels="terminal") == []
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        sent(tmp_path, "merge “\x1b]0;own\x07a”", channels="terminal")
        assert capsys.readouterr().err == "merge “a”\n"


class TestDesktop:
    def test_a_popup_shows_text_and_nothing_of_it_is_obeyed(self, tmp_path, program):
        program("notify-send", 'printf "%s\\n" "$@" > "$SAID.tmp"; /bin/mv "$SAID.tmp" "$SAID"')
        assert sent(tmp_path, "--icon=x <b>merge</b> $(touch bad) `x`", channels="desktop") == []
        wait_for((tmp_path / "said").exists, "the notifier")
        said = (tmp_path / "said").read_text().splitlines()
        assert said == ["--app-name=Quaid", "--", "Quaid", "--icon=x &lt;b&gt;merge&lt;/b&gt; $(touch bad) `x`"]

    def test_a_long_text_is_cut(self, tmp_path, program):
        program("notify-send", 'printf "%s" "$4" > "$SAID.tmp"; /bin/mv "$SAID.tmp" "$SAID"')
        sent(tmp_path, "word " * 500, channels="desktop")
        wait_for((tmp_path / "said").exists, "the notifier")
        assert len((tmp_path / "said").read_text()) <= notifications.MAX_POPUP_CHARS

    def test_on_a_mac_the_text_is_an_argument_and_no_script(self, tmp_path, program, monkeypatch):
        monkeypatch.setattr(sys, "platform", "darwin")
        program("osascript", 'printf "%s\\n" "$@" > "$SAID.tmp"; /bin/mv "$SAID.tmp" "$SAID"')
        sent(tmp_path, '" & do shell script "touch bad', channels="desktop")
        wait_for((tmp_path / "said").exists, "the notifier")
        assert (tmp_path / "said").read_text().splitlines()[-2:] == ['" & do shell script "touch bad', "Quaid"]

    def test_nobody_waits_for_it(self, tmp_path, program):
        program("notify-send", 'read -r answer < "$SAID"; echo shown > "$SAID.done"')
        os.mkfifo(tmp_path / "said")
        assert sent(tmp_path, channels="desktop") == []  # the popup still waits for us
        (tmp_path / "said").write_text("go\n")
        wait_for((tmp_path / "said.done").exists, "the notifier")

    def test_where_there_is_no_desktop_there_is_nothing_to_remark(self, tmp_path, monkeypatch):
        monkeypatch.delenv("DISPLAY", raising=False)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        monkeypatch.setattr(sys, "platform", "linux")
        assert sent(tmp_path, channels="desktop") == []

    def test_a_desktop_without_a_notifier_is_a_remark(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(sys, "platform", "linux")
        (remark,) = sent(tmp_path, channels="desktop")
        assert "notify-send is not installed" in remark


class TestWebhook:
    def test_the_text_is_posted(self, tmp_path, hook):
        address, posted, _ = hook
        assert sent(tmp_path, "“a” merged\n- b", channels="webhook", webhook=address) == []
        ((path, kind, body),) = posted
        assert (path, kind, json.loads(body)) == ("/s3cret", "application/json", {"text": "“a” merged\n- b"})

    @pytest.mark.parametrize("code", [404, 500, 302])
    def test_a_refusal_is_a_remark_that_does_not_tell_the_address(self, tmp_path, hook, code):
        address, _, answer = hook
        answer[0] = code
        (remark,) = sent(tmp_path, channels="webhook", webhook=address)
        assert "127.0.0.1" in remark
        assert "s3cret" not in remark

    def test_one_that_does_not_answer_is_not_waited_for(self, tmp_path, monkeypatch):
        monkeypatch.setattr(notifications, "WEBHOOK_TIMEOUT_S", 0.05)
        import socket

        with socket.create_server(("127.0.0.1", 0)) as silent:
            (remark,) = sent(tmp_path, channels="webhook", webhook=f"http://127.0.0.1:{silent.getsockname()[1]}/s3cret")
        assert "s3cret" not in remark

    @pytest.mark.parametrize(
        "address", ["", "file:///etc/passwd", "ftp://x/y", "https://", "http://[", "s3cret", "http://a b/"]
    )
    def test_what_is_no_address_is_a_remark(self, tmp_path, address):
        (remark,) = sent(tmp_path, channels="webhook", webhook=address)
        assert "webhook" in remark
        assert "passwd" not in remark


class TestDelivery:
    def test_one_way_that_fails_does_not_stop_the_others(self, tmp_path, hook):
        address, posted, _ = hook
        remarks = sent(tmp_path, channels="pigeon,file,webhook", file="x/y.log", webhook=address)
        assert len(remarks) == 2
        assert "'pigeon'" in remarks[0]
        assert len(posted) == 1

    def test_nothing_is_sent_of_a_feature_that_is_off_or_of_nothing(self, tmp_path):
        assert sent(tmp_path, channels="file", level="quiet") == []
        assert sent(tmp_path, " \n", channels="file") == []
        assert sent(tmp_path, channels="") == []
        assert list(tmp_path.iterdir()) == []
