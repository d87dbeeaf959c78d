"""A tiny cross-encoder: a random BERT with a head, or an ONNX graph that counts the words a pair shares."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from embed_tiny import HIDDEN, SPECIAL, WORDS, random_weights, write_tiny_model, write_tokenizer

HEAD = {
    "pooler.dense.weight": (HIDDEN, HIDDEN), "pooler.dense.bias": (HIDDEN,),
    "classifier.weight": (1, HIDDEN), "classifier.bias": (1,),
}  # fmt: skip


def write_bert(folder: Path, seed: int = 7) -> dict[str, np.ndarray]:
    """A BERT for pairs as transformers saves it; return its weights."""
    from safetensors.numpy import save_file

    write_tiny_model(folder, seed=seed, architectures=["BertForSequenceClassification"])
    random = np.random.default_rng(seed)
    weights = random_weights(seed) | {name: random.normal(0, 0.3, shape).astype("f4") for name, shape in HEAD.items()}
    named = {name if name.startswith("classifier") else f"bert.{name}": value for name, value in weights.items()}
    save_file(named, folder / "model.safetensors")
    return weights


def write_matcher(folder: Path, words: dict[str, float], classes: int = 1, name: str = "model.onnx") -> Path:
    """A folder with an ONNX graph: the logit of a pair is the sum of what `words` give, each for the text alone."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    table = np.zeros((len(SPECIAL) + len(WORDS), 1), "f4")
    for word, worth in words.items():
        table[[*SPECIAL, *WORDS].index(word)] = worth
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["worth"]),
        helper.make_node("Unsqueeze", ["token_type_ids", "last"], ["types"]),
        helper.make_node("Cast", ["types"], ["of_text"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["worth", "of_text"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "tokens"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "signs"], ["logits"]),
    ]
    signs = np.array([[1.0]] if classes == 1 else [[-0.5, 0.5]], "f4")
    tensors = {"table": table, "signs": signs, "last": np.array([-1]), "tokens": np.array([1])}
    initializers = [numpy_helper.from_array(value, name) for name, value in tensors.items()]
    inputs = [
        helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "length"])
        for each in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", classes])
    graph = helper.make_graph(nodes, "matcher", inputs, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / name).parent.mkdir(exist_ok=True)
    onnx.save(model, folder / name)
    write_tokenizer(folder / "tokenizer.json")
    kind = "BertForSequenceClassification"
    (folder / "config.json").write_text(json.dumps({"model_type": "modernbert", "architectures": [kind]}))
    return folder
