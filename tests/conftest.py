from __future__ import annotations

import pytest
from vaults import calm, vault  # noqa: F401 - fixtures for whoever asks for them


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--snapshot-update", action="store_true", help="Rewrite the expected output of transcripts.")
