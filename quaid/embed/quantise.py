"""Converts an encoder's weights from float32 to int8."""

import logging
from pathlib import Path
from typing import Any, BinaryIO

from quaid.embed.local import load_onnxruntime
from quaid.embed.weights import GRAPH_FILE, GRAPH_WEIGHTS_FILE

_LARGE_BYTES = 1024
_PAGE_BYTES = 4096


def quantise(folder: Path) -> None:
    """Replace the graph and the weights in `folder` by int8 ones. It takes half a gigabyte for a second."""
    load_onnxruntime()
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    # Its advice goes to the root logger, which would print it, and all that follows, if it had no handler.
    logging.getLogger().addHandler(silent := logging.NullHandler())
    whole = folder / "whole.onnx"
    quantize_dynamic(
        folder / GRAPH_FILE,
        whole,
        weight_type=QuantType.QInt8,
        # With one scale per matrix the cosine to float32 is .966 only; with one per output channel it is .994.
        per_channel=True,
        # Seven bits: without VNNI, processors add the products of two numbers of eight bits in sixteen, which is not
        # enough, so that vectors would be others there than elsewhere. The cosine is .9915 so.
        reduce_range=True,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    logging.getLogger().removeHandler(silent)
    model = onnx.load(whole)
    with (folder / GRAPH_WEIGHTS_FILE).open("wb") as file:
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) >= _LARGE_BYTES:
                store_outside(tensor, tensor.raw_data, file)
                tensor.ClearField("raw_data")
    (folder / GRAPH_FILE).write_bytes(model.SerializeToString())
    whole.unlink()


def store_outside(tensor: Any, data: bytes, file: BinaryIO) -> None:
    """Append `data` to `file`, which holds the weights of a graph, page-aligned, and let `tensor` refer to it."""
    file.write(b"\0" * (-file.tell() % _PAGE_BYTES))
    tensor.data_location = tensor.EXTERNAL
    for key, entry in (("location", GRAPH_WEIGHTS_FILE), ("offset", file.tell()), ("length", len(data))):
        tensor.external_data.add(key=key, value=str(entry))
    file.write(data)
