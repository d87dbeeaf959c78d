"""Loads onnxruntime without its telemetry."""

from __future__ import annotations

import os
from typing import Any


def load_onnxruntime() -> Any:
    """Return the library. By default it reports the models that are opened to its makers, with an id of the machine."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime
