"""`quaid view` from start to end: the address it prints, a port that is taken, and nobody who looks."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from http.cookiejar import CookieJar

import pytest
from web.conftest import KEYS

from quaid.cli.main import main
from quaid.resident import loopback
from quaid.web import server


@pytest.mark.slow
def test_it_serves_until_it_is_stopped(vault):
    vault.write_fact("milk", "Maya takes oat milk in her coffee")
    command = ["quaid", "view", "milk", "--no-browser", "--port", "0", "--vault", str(vault.root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/memory/01milk\?token=\S+", process.stdout.readline())[0]
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(address, timeout=20) as answer:
            assert answer.url == address.partition("?")[0]
            assert "Maya takes oat milk" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.communicate()


def test_it_ends_when_nobody_looks(vault, monkeypatch, capsys):
    monkeypatch.setattr(server, "IDLE_S", 0.05)
    server.serve(vault.root, 0, "/", with_browser=False)
    assert "No page was open" in capsys.readouterr().out


def test_an_open_page_is_use(vault, monkeypatch, capsys):
    monkeypatch.setattr(server, "IDLE_S", 0.2)
    monkeypatch.setattr(server.Keys, "load", lambda _: KEYS)
    seen = []

    def look(listening) -> None:
        port = listening.getsockname()[1]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/live", headers={"Cookie": f"quaid-view-{port}={KEYS.cookie}"}
        )
        with urllib.request.urlopen(request, timeout=60) as events:
            seen.append(events.readline())
            time.sleep(1)  # it would have ended by now
            vault.write_fact("milk", "Maya takes oat milk in her coffee")
            seen.extend(events.readline() for _ in range(2))

    listen = loopback.listen

    def listen_and_look(port):
        listening = listen(port)
        looking.append(threading.Thread(target=look, args=[listening]))
        looking[0].start()
        return listening

    looking: list[threading.Thread] = []
    monkeypatch.setattr(loopback, "listen", listen_and_look)
    server.serve(vault.root, 0, "/", with_browser=False)
    looking[0].join()
    assert [line[:5] for line in seen] == [b"data:", b"\n", b"data:"]
    assert "No page was open" in capsys.readouterr().out


def test_a_port_that_is_taken_is_one_sentence(vault, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["view", "--no-browser", "--port", str(port), "--vault", str(vault.root)]) == 1
    said = capsys.readouterr().err
    assert f"Port {port}" in said
    assert said.count("\n") == 1


def test_a_memory_that_is_not_there_is_said_at_once(vault, capsys):
    assert main(["view", "nothing", "--no-browser", "--vault", str(vault.root)]) == 1
    assert "nothing" in capsys.readouterr().err
