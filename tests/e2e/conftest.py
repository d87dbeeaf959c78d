from __future__ import annotations

from collections.abc import Iterator

import pytest
from vaults import be_calm


@pytest.fixture(scope="module")
def monkey() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        be_calm(patch)
        yield patch
