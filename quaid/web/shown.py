"""A page that answers what was posted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Shown(NamedTuple):
    """A page that answers an action: what was posted cannot be done as it is, and is not lost; or, with the status 200,
    what it has come to.
    """

    template: str
    context: Mapping[str, Any]
    status: int = 409
