"""Nothing leaves unasked: the kernel counts the attempts of the main job, and ends native code that makes a socket."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from network_watch import need_namespaces, need_watch, reached_out, run_alone, run_without_network
from replay import facts_of, write_claude, write_talk
from vaults import need_weights

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).parents[1] / "main_job.py")
DETECTED = """
from secret_samples import BASE64, KEYS, some
from quaid.redaction import detector
kinds = {span.kind for key in KEYS.values() for span in detector._detect(f"Here is the key: {key} - keep it.")}
together = "\\n".join([*(f"{name} = {key}" for name, key in KEYS.items()), f"aws_secret_access_key = {some(40, BASE64)}"])
kinds |= {span.kind for span in detector._detect(together)}
text, found = detector.redact(together)
print(len(kinds), len(found))
"""
VALIDATED = """
from kingfisher_sdk import Scanner, Validator
from secret_samples import KEYS
findings = Scanner(base64=False).scan(f"token = {KEYS['github-pat']}".encode())
print("begun", flush=True)
Validator(timeout=5).validate(findings)
print("came back")
"""
EMBEDDED = """
import sys, pathlib
from embed_tiny import write_tiny_model
from secret_samples import KEYS
from cross_encoder import write_matcher
from quaid.embed import fetch_weights, open_embedder, open_reranker
from quaid.settings import EmbeddingSettings
folder = write_tiny_model(pathlib.Path(sys.argv[1]) / "tiny")
pairs = write_matcher(pathlib.Path(sys.argv[1]) / "pairs", {})
settings = EmbeddingSettings(model=str(folder), precision="fp32", offline=True)
fetch_weights(settings)
fetch_weights(EmbeddingSettings(model=str(pairs), offline=True))
texts = list(KEYS.values())
print(len(open_embedder(settings).embed(texts)) == len(open_reranker(str(pairs)).score("key", texts, 600)) == len(KEYS))
"""
STORED = """
import sys
import apsw, sqlite_vec
from secret_samples import KEYS

database = apsw.Connection(sys.argv[1] + "/x.db")
database.enable_load_extension(True)
database.load_extension(sqlite_vec.loadable_path())
database.execute("CREATE VIRTUAL TABLE words USING fts5(text); CREATE VIRTUAL TABLE vectors USING vec0(v float[2])")
for key in KEYS.values():
    database.execute("INSERT INTO words VALUES (?)", (key,))
    database.execute("INSERT INTO vectors(v) VALUES (?)", ("[1, 2]",))
print(database.execute("SELECT count(*) FROM words WHERE words MATCH 'rsa OR private'").get > 0,
      len(list(database.execute("SELECT rowid FROM vectors WHERE v MATCH '[1, 2]' ORDER BY distance LIMIT 3"))))
"""


@pytest.fixture
def alone():
    need_namespaces()


def test_a_socket_of_python_or_of_native_code_ends_a_watched_process():
    need_watch()
    assert reached_out(run_without_network("import socket; socket.socket()"))
    native = "import ctypes; ctypes.CDLL(None).socket(2, 1, 0); print('made')"
    assert reached_out(run_without_network(native))
    thread = (
        f"import threading; t = threading.Thread(target=lambda: exec({native!r})); t.start(); t.join(); print('made')"
    )
    assert reached_out(run_without_network(thread))
    child = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {native!r}]).returncode)"
    assert run_without_network(child).stdout == f"{-signal.SIGSYS}\n"
    assert run_without_network("print('calm')").stdout == "calm\n"


def test_the_detector_of_keys_opens_no_socket_for_keys_of_many_providers():
    """Its library can ask the providers whether a key is valid, and revoke it."""
    need_watch()
    done = run_without_network(DETECTED)
    assert not reached_out(done)
    kinds, found = map(int, done.stdout.split())
    assert kinds > 40  # the detector itself, not only the forms of Quaid's own, has known them
    assert found > 55


def test_a_detector_that_asks_the_providers_would_be_noticed():
    need_watch()
    done = run_without_network(VALIDATED)
    assert done.stdout == "begun\n"
    assert reached_out(done)


@pytest.mark.parametrize(("code", "said"), [(EMBEDDED, "True"), (STORED, "True 3")], ids=["models", "databases"])
def test_no_other_native_code_that_reads_texts_opens_a_socket(tmp_path, code, said):
    need_watch()
    done = run_without_network(code, str(tmp_path), QUAID_CACHE_DIR=str(tmp_path / "cache"))
    assert (done.stdout.strip(), reached_out(done)) == (said, False), done.stderr


def test_attempts_to_reach_anybody_are_counted(alone):
    done, sent = run_alone(sys.executable, PROGRAM)
    assert json.loads(done.stdout) == {"ActiveOpens": 1, "OutDatagrams": 1, "Udp6OutDatagrams": 0}, done
    assert sent > 0


def test_the_main_job_reaches_for_nobody(alone, calm, tmp_path, monkeypatch):
    need_weights(monkeypatch)
    from quaid.embed.weights import cache_folder

    home = tmp_path / "home"
    home.mkdir()
    write_talk(tmp_path / "talk.jsonl", "We adopted a quokka called Biscuit.")
    environ = write_claude(tmp_path / "bin", {"s1": facts_of("Maya adopted a quokka called Biscuit.")})
    environ |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "QUAID_CACHE_DIR": str(cache_folder())}
    done, sent = run_alone(sys.executable, PROGRAM, str(tmp_path), **environ)
    assert done.returncode == 0, done
    assert set(json.loads(done.stdout).values()) == {sent} == {0}
    # What onnxruntime tells its makers waits in a store first, with an id of the machine beside it.
    assert [path for path in home.rglob("*") if "microsoft" in str(path).lower()] == []
