"""The vault that the tests of this room begin with."""

from __future__ import annotations

import pytest
from timelines import furnished
from vaults import copy_of


@pytest.fixture
def vault(calm, tmp_path):
    return copy_of(furnished(), tmp_path / "vault")
