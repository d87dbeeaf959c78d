from __future__ import annotations

import os
import sys

import pytest
from vaults import calm, vault  # noqa: F401 - fixtures for whoever asks for them

# Hundreds of processes are started here: each would compile all of Quaid where nothing compiled may be kept.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# No test may reach a model that this machine happens to have; those that want one name their own.
os.environ.setdefault("QUAID_MODELS_PROVIDER", "none")
os.environ.setdefault("QUAID_NOTIFICATIONS_CHANNELS", "")  # nor pop up on the desktop of who runs it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshot-update", action="store_true", help="Rewrite the expected output of transcripts.")
