"""Whole numbers are multiplied exactly by onnxruntime."""

import numpy as np
from onnx import TensorProto, helper

from quaid.embed.local import load_onnxruntime
from quaid.index.vectors import PRODUCT_GRAPH, multiply, open_product


def test_the_graph_of_a_product_is_what_onnx_writes():
    asked = [("row", TensorProto.UINT8, [1, "D"]), ("matrix", TensorProto.INT8, ["D", "N"])]
    inputs = [helper.make_tensor_value_info(*each) for each in asked]
    output = helper.make_tensor_value_info("products", TensorProto.INT32, [1, "N"])
    node = helper.make_node("MatMulInteger", ["row", "matrix"], ["products"])
    graph = helper.make_graph([node], "product", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    assert model.SerializeToString() == PRODUCT_GRAPH


def test_the_largest_numbers_of_seven_and_eight_bits_are_multiplied_exactly():
    load_onnxruntime()
    session = open_product()
    row = np.full((1, 384), 127, np.uint8)
    matrix = np.array([[127, -128, number] for number in range(-128, 128)] + [[127, -128, 0]] * 128, np.int8)
    assert (
        multiply(session, row[:, : len(matrix)], matrix) == row[:, : len(matrix)].astype(int) @ matrix.astype(int)
    ).all()
