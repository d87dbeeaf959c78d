"""What the owner is told of a run, and the ways it gets there: none of them may fail, hang, or write where it should not."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from vaults import wait_for

from quaid.janitor import news
from quaid.janitor.decision import Decision
from quaid.janitor.news import deliver, level_of, overdue, render_news
from quaid.janitor.report import Report
from quaid.local.runs import Run, Runs
from quaid.model import ModelUsage
from quaid.settings import NotificationSettings

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def decision(kind: str, subject: str = "x", why: str = "Both say the same.") -> Decision:
    return Decision("task", kind, "k" * 16, (), subject, why)


def report(**fields) -> Report:
    return replace(Report("01kagx3m7r9q2d5w8t0v7k3qd", NOW, commit="4fea"), **fields)


BUSY = report(
    done=[
        *(decision("approve", f"approve {n}") for n in range(12)),
        decision("merge", "merge a into b"),
        decision("ledger"),
    ],
    asked=[decision("reject", "reject c", "Nobody said so.")],
    held_back=[(decision("rewrite", "rewrite d"), "the budget is used up")],
    answered=["forget e"],
    waiting=["resolve", "journal"],
    usage=ModelUsage(1000, 100, cost_usd=0.214, calls=3),
)


class TestLevels:
    @pytest.mark.parametrize(("level", "levels"), [
        ("quiet", ("off", "off", "off", "off")),
        ("normal", ("summary", "off", "summary", "summary")),
        ("verbose", ("summary",) * 4),
        ("debug", ("full",) * 4),
    ])  # fmt: skip
    def test_presets(self, level, levels):
        settings = NotificationSettings(level=level)
        assert tuple(level_of(settings, one) for one in ("janitor", "extraction", "retrieval", "docs")) == levels

    def test_a_feature_of_its_own(self):
        settings = NotificationSettings(level="quiet", janitor="full")
        assert level_of(settings, "janitor") == "full"
        assert level_of(settings, "docs") == "off"


class TestText:
    def test_a_night_in_a_few_sentences(self):
        assert render_news(BUSY, "summary", questions=4) == (
            "Quaid's janitor: 12 approved, 1 merged, 1 answer of yours carried out. "
            "4 questions wait for you in review/, 1 of them new. 1 decision held back. "
            "Waiting for a model: resolve, journal. 3 calls of models for $0.21. "
            "See it with: quaid janitor show v7k3qd"
        )

    def test_in_full_every_decision_has_its_line(self):
        text = render_news(BUSY, "full", questions=1)
        assert text.startswith(render_news(BUSY, "summary", questions=1) + "\n\nDone:\n- approve 0\n")
        assert "- merge a into b\n" in text
        assert "Asked:\n- reject c: Nobody said so.\n" in text
        assert "Held back:\n- rewrite d: the budget is used up" in text

    def test_off_says_nothing(self):
        assert render_news(BUSY, "off") == ""

    def test_a_night_without_anything_to_do(self):
        assert render_news(report(commit=None), "summary") == "Quaid's janitor: nothing to do."
        assert render_news(report(commit=None), "full") == "Quaid's janitor: nothing to do."

    def test_a_run_that_the_gate_has_stopped(self):
        stopped = replace(BUSY, lost=["'what milk?' would no longer find 01oat: oat milk"], commit=None)
        assert render_news(stopped, "summary").startswith(
            "Quaid's janitor merged nothing: 1 answer would have been lost."
        )
        assert "approved" not in render_news(stopped, "summary")
        assert "Would be lost:\n- 'what milk?'" in render_news(stopped, "full")

    def test_a_run_with_failures_and_one_that_only_looked(self):
        failed = report(failed={"review": "No key."}, skipped=["graduate", "decay"], remarks=["a remark"])
        assert "Failed: review, so graduate, decay did not run." in render_news(failed, "summary")
        assert "Failed:\n- review: No key.\n\nRemarks:\n- a remark" in render_news(failed, "full")
        assert render_news(report(is_dry_run=True, done=[decision("date")]), "summary").startswith(
            "Quaid's janitor would do this: 1 dated."
        )

    def test_a_long_list_is_cut_and_a_subject_stays_on_its_line(self):
        long = report(done=[decision("merge", f"merge\n{n}") for n in range(130)])
        text = render_news(long, "full")
        assert "- merge 99\n- … and 30 more" in text

    @pytest.mark.parametrize(
        ("cost", "said"), [(None, "an unknown price"), (0.0001, "less than $0.01"), (12.345, "$12.35")]
    )
    def test_what_it_cost(self, cost, said):
        assert f"1 call of models for {said}." in render_news(
            report(usage=ModelUsage(cost_usd=cost, calls=1)), "summary"
        )


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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
        path = tmp_path / ".quaid" / "log" / "news.log"
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
        monkeypatch.setattr(news, "LONGEST_FILE", 10)
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
        assert len((tmp_path / "said").read_text()) <= news.LONGEST_POPUP

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
        monkeypatch.setattr(news, "WEBHOOK_TIMEOUT_S", 0.05)
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


class TestOverdue:
    @pytest.fixture
    def runs(self, tmp_path):
        return Runs(tmp_path / ".quaid" / "local.db")

    def test_where_it_never_ran_nothing_is_overdue(self, runs):
        assert overdue(runs, NOW) is None

    @pytest.mark.parametrize(("hours", "is_late"), [(0, False), (47, False), (48, False), (49, True), (24 * 9, True)])
    def test_after_two_days(self, runs, hours, is_late):
        runs.add(Run("01", (NOW - timedelta(hours=hours)).isoformat(), "done"))
        warning = overdue(runs, NOW)
        assert bool(warning) is is_late
        if warning:
            assert f"for {hours // 24} days" in warning
            assert "quaid janitor install" in warning

    def test_runs_that_failed_do_not_count_and_say_why(self, runs):
        runs.add(Run("01", "2026-11-10T03:30:00Z", "done"))
        runs.add(Run("02", "2026-11-20T03:30:00Z", "failed", problem="review: there is no key."))
        assert overdue(runs, NOW).startswith(
            "The janitor has not run for 10 days. The last time: review: there is no key."
        )

    def test_one_that_has_never_ended_well(self, runs):
        runs.add(Run("02", "2026-11-20T03:30:00Z", "failed"))
        assert overdue(runs, NOW).startswith("The janitor has not run to its end yet.")

    def test_books_that_cannot_be_read_are_a_warning_and_no_error(self, tmp_path):
        (tmp_path / ".quaid").write_text("a file")
        (tmp_path / "local.db").mkdir()
        assert "not known" in overdue(Runs(tmp_path / "local.db"), NOW)
