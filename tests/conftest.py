from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import matrices
import pytest
from hypothesis import settings
from vaults import calm, vault  # noqa: F401 - fixtures for whoever asks for them

# Hundreds of processes are started here: each would compile all of Quaid where nothing compiled may be kept.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# No test may reach a model that this machine happens to have; those that want one name their own.
os.environ.setdefault("QUAID_MODELS_PROVIDER", "none")
os.environ["TZ"] = "UTC"  # no test depends on the zone of the machine; those that are about zones name theirs
time.tzset()
os.environ["QUAID_RESIDENT"] = "off"  # nor leave a process behind; those that are about it ask for one
os.environ.setdefault("QUAID_NOTIFICATIONS_CHANNELS", "")  # nor pop up on the desktop of who runs it

# A busy machine is no defect, and a change fails for what it does: new cases are searched for with
# pytest --hypothesis-profile=search.
settings.register_profile("search", deadline=None)

SHARED_MEMORY = Path("/dev/shm")
ROOM = 6_000_000_000
"""Bytes."""


LONG = (
    "remotes/test_purged.py", "remotes/test_exchange.py", "capture/test_extraction.py", "capture/test_extraction_trouble.py",
    "recall/test_owners.py", "sync/test_as_of.py", "janitor/test_runner.py", "web/test_review.py", "purge/test_git_folder.py",
    "llm/test_wire.py", "base/test_trust.py", "web/test_writing.py", "history/test_crash.py", "memory/test_own_notes.py",
    "remotes/test_hostile.py", "index/test_engines.py", "house/test_architecture.py", "house/test_figures.py",
    "text/test_invisible.py", "sync/test_watch.py", "memory/test_memory.py", "hooks/test_hooks.py", "mcp/test_tools.py",
)  # fmt: skip
"""They are begun first: a file stays in one process, and a long one at the end leaves the others idle."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    matrices.thin_out(items)
    order = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get("/".join(item.path.parts[-2:]), len(LONG)))
    gc.freeze()  # thousands of tests that live as long as the process: no collection needs to look at them again


def pytest_configure(config: pytest.Config) -> None:
    """The tests make and remove some hundred thousand files: in memory, where there is room, a fifth of the time is saved."""
    is_free = "TMPDIR" not in os.environ and config.option.basetemp is None
    if is_free and os.access(SHARED_MEMORY, os.W_OK) and shutil.disk_usage(SHARED_MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(SHARED_MEMORY)
    matrices.choose_extent(config)
    settings.register_profile("quaid", deadline=None, derandomize=True, max_examples=matrices.examples(100))
    if config.getoption("hypothesis_profile", None) is None:
        settings.load_profile("quaid")
    # Tests start `quaid` by name: the one of this interpreter, whether or not its environment is activated.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # What belongs to the user and the machine: never those of who runs the tests, nor of another run beside this one.
    own = Path(tempfile.mkdtemp(prefix="q-"))  # short: the name of a socket may have a hundred bytes
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    folders = {"QUAID_CONFIG_DIR": "config", "QUAID_STATE_DIR": "state", "XDG_RUNTIME_DIR": "run"}
    os.environ |= {name: str(own / folder) for name, folder in folders.items()}
    (own / "run").mkdir(mode=0o700)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshot-update", action="store_true", help="Rewrite the expected output of transcripts.")
