"""Loads onnxruntime without its telemetry, and multiplies whole numbers with it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any


def load_onnxruntime() -> Any:
    """Return the library. By default it reports the models that are opened to its makers, with an id of the machine."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    return onnxruntime


# MatMulInteger of opset 13, `row` [1, D] uint8 and `matrix` [D, N] int8 -> `products` [1, N] int32, as the package onnx
# writes it; a test does so again.
PRODUCT_GRAPH = bytes.fromhex(
    "08083a82010a260a03726f770a066d6174726978120870726f6475637473220d4d61744d756c496e7465676572120770726f"
    "647563745a160a03726f77120f0a0d080212090a0208010a031201445a1a0a066d617472697812100a0e0803120a0a031201"
    "440a0312014e621b0a0870726f6475637473120f0a0d080612090a0208010a0312014e42040a00100d"
)


def open_multiply() -> Callable[[Any, Any], Any] | None:
    """Return what multiplies a row of uint8 with the columns of a matrix of int8 exactly, in this thread; None where no
    model has loaded the library: to load it takes as long as many questions.
    """
    if "onnxruntime" not in sys.modules:
        return None
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(PRODUCT_GRAPH, options, providers=["CPUExecutionProvider"])
    return lambda row, matrix: session.run(None, {"row": row, "matrix": matrix})[0]
