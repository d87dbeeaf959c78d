"""Converts a model as it is published into one that opens at once.

That is a BERT-type sentence-transformers folder, one whose weights are packed in 4 bits (packed.py), or a static
model of model2vec.
"""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from quaid.embed.local import CENTRE_FILE, find_centre, open_build, write_vocabulary
from quaid.embed.quantise import quantise, store_outside
from quaid.embed.weights import (
    GRAPH_FILE,
    GRAPH_WEIGHTS_FILE,
    PACKED_FILE,
    TOKENIZER_FILE,
    VECTORS_FILE,
    WEIGHTS_FILE,
    Build,
    Description,
    Pooling,
    Precision,
    content_of,
    parts_of,
    read_prompts,
    stamp_of,
    write_description,
)
from quaid.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_PARALLEL = Path(__file__).with_name("parallel.tsv")
"""The same sentences in many languages: a language a line, its code and what all of them say."""
_STATIC = "model2vec"
_STATIC_TOKENS = 4096
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
}


def convert(source: Path, target: Path, precision: Precision) -> Description:
    """Convert the model in the folder `source` into the folder `target`, which appears whole.

    Raises:
        EmbeddingError: `source` is neither a static model nor one of BERT's type with mean or cls pooling, or a file is
            missing.
    """
    import numpy as np

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".convert-") as name:
        draft = Path(name) / "build"
        draft.mkdir()
        config = _read_config(source)
        description = _describe(source, config, precision)
        _write_model(source, config, draft, description)
        write_description(draft, description)
        try:  # one word, so that a damaged tokenizer or a wrong shape is found now and not later
            embedder = open_build(Build(draft, replace(description, centred=False)))
            vector = embedder.embed_query("trial")
            assert abs(float(vector @ vector) - 1) < 1e-3, "its vectors are not numbers"
        except Exception as error:
            raise _refusal(source, f"it failed its trial: {error.__cause__ or error}") from error
        if description.centred:
            lines = _PARALLEL.read_text(encoding="utf-8").splitlines()
            parallel = [line.split("\t")[1:] for line in lines]
            sentences = [sentence for line in parallel for sentence in line]
            texts = embedder.embed(sentences).reshape(len(parallel), -1, description.dimension)
            np.save(draft / CENTRE_FILE, find_centre(texts, np.stack([*map(embedder.embed_query, sentences)])))
        shutil.rmtree(target, ignore_errors=True)
        draft.replace(target)
    return description


def _describe(source: Path, config: Mapping[str, Any], precision: Precision) -> Description:
    sentence = _read_json(source / "sentence_bert_config.json", {})
    for name in parts_of(source):
        if not (source / name).is_file():
            raise _refusal(source, f"{name} is missing")
    try:
        prompts, content = read_prompts(source), content_of(source)
    except (OSError, ValueError) as error:
        raise _refusal(source, f"it cannot be read: {error}") from error
    is_static = config["model_type"] == _STATIC
    positions = _STATIC_TOKENS if is_static else int(config["max_position_embeddings"])
    return Description(
        content=content,
        precision="fp32" if is_static else precision,
        pooling="mean" if is_static else _read_pooling(source),
        max_tokens=min(int(sentence.get("max_seq_length") or positions), positions),
        dimension=int(config["hidden_dim" if is_static else "hidden_size"]),
        source_stamp=stamp_of(source / parts_of(source)[0]),
        lowercase=bool(sentence.get("do_lower_case", False)),
        query_prompt=str(prompts.get("query", "")),
        text_prompt=str(prompts.get("document", prompts.get("passage", ""))),
        kind="static" if is_static else "bert",
        centred=bool(config.get("centred")),
    )


def _read_config(source: Path) -> dict[str, Any]:
    config: dict[str, Any] = _read_json(source / "config.json")
    if config.get("model_type") == _STATIC:
        if "hidden_dim" not in config:
            raise _refusal(source, "config.json lacks hidden_dim")
        return config
    wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for key, value in wanted.items():
        if config.get(key, value) != value:
            raise _refusal(source, f"its {key} is {config[key]!r}, not {value!r}")
    missing = [key for key in ("hidden_size", "num_hidden_layers", "num_attention_heads") if key not in config]
    if missing:
        raise _refusal(source, f"config.json lacks {missing[0]}")
    config.setdefault("max_position_embeddings", 512)
    return config


def _read_pooling(source: Path) -> Pooling:
    for module in _read_json(source / "modules.json", []):
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind not in {"Transformer", "Pooling", "Normalize"}:
            raise _refusal(source, f"it has a {kind} layer after the encoder")
    modes = _read_json(source / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    chosen = [key for key, value in modes.items() if key.startswith("pooling_mode") and value]
    if chosen == ["pooling_mode"]:
        chosen = [f"pooling_mode_{modes['pooling_mode']}_token{'' if modes['pooling_mode'] == 'cls' else 's'}"]
    if len(chosen) != 1 or chosen[0] not in _POOLINGS:
        raise _refusal(source, f"its pooling is {' + '.join(chosen) or 'not given'}, neither mean nor cls")
    return _POOLINGS[chosen[0]]


def _read_json(path: Path, default: Any = None) -> Any:
    if default is not None and not path.exists():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _refusal(path.parent, f"{path.name} cannot be read: {error}") from error


def _write_model(source: Path, config: Mapping[str, Any], draft: Path, description: Description) -> None:
    import numpy as np

    if (source / PACKED_FILE).exists():
        try:
            packed = PackedModel(source / PACKED_FILE)
            write_graph(draft, config, description, packed)
        except (ValueError, TypeError) as error:
            raise _refusal(source, f"{PACKED_FILE} cannot be read: {error}") from error
        write_vocabulary(draft, packed.pieces, packed.scores)
    else:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(source / WEIGHTS_FILE, framework="numpy") as file:
                stored = StoredModel(file)
                if description.kind == "static":
                    np.save(draft / VECTORS_FILE, stored.weight("embeddings"))
                else:
                    write_graph(draft, config, description, stored)
        except (SafetensorError, TypeError) as error:
            raise _refusal(source, f"{WEIGHTS_FILE} cannot be read: {error}") from error
        shutil.copyfile(source / TOKENIZER_FILE, draft / TOKENIZER_FILE)
    if description.precision == "int8":
        quantise(draft)


class StoredModel:
    """The weights of an open safetensors file, by name without a `bert.` prefix."""

    words: tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]] | None = None

    def __init__(self, file: Any) -> None:
        self._file = file
        self._names = {name.removeprefix("bert."): name for name in file.keys()}  # noqa: SIM118 (not a dict)

    def weight(self, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor. Raises TypeError: there is none of that name."""
        if name not in self._names:
            raise TypeError(f"{name} is missing")
        tensor: npt.NDArray[np.float32] = self._file.get_tensor(self._names[name]).astype("float32")
        return tensor


def _refusal(source: Path, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"Quaid cannot run the model in {source} ({why}). "
        'Name a BERT-type sentence-transformers folder, or use all-MiniLM-L6-v2, in quaid.toml: embedding.model = "…"'
    )


# -- models whose weights are packed in 4 bits ------------------------------------------------------------------------

BLOCK = 32
_BLOCK_BYTES = 2 + BLOCK // 2
_MAGIC = b"E5S1"
_PACKED = 1
_EMBEDDINGS = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}
_PARTS = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}


class PackedModel:
    """The weights, by the names that the model's safetensors file has for them, and the vocabulary.

    Raises:
        ValueError: the file is not of this format.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        self._data = np.memmap(path, np.uint8, "r")
        self._tensors: dict[str, tuple[bool, int, int, int]] = {}
        """Whether a tensor is packed, how many numbers it has, its place and its size in bytes, by its short name."""
        try:
            if bytes(self._data[:4]) != _MAGIC:
                raise ValueError("it does not begin as a packed model does")
            place = 8  # the magic word and a version
            self.hidden, self.layers, self.heads, self.wide, self._words, self._positions, self._types = self._take(
                "7i", place
            )
            (self.epsilon, block), place = self._take("fi", place + 28), place + 36
            if block != BLOCK:
                raise ValueError(f"its blocks have {block} weights, not {BLOCK}")
            (count, *_), place = self._take("5i", place), place + 20
            (length,), place = self._take("Q", place), place + 8
            bounds, place = self._array("<u4", count + 1, place), place + 4 * (count + 1)
            self.scores, place = self._array("<f4", count, place), place + 4 * count
            text, place = bytes(self._data[place : place + length]), place + length
            self.pieces = [text[start:end].decode() for start, end in pairwise(bounds)]
            (_, size), place = self._take("iI", place), place + 8
            place += size  # what the normaliser replaces, which is NFKC
            (count,), place = self._take("i", place), place + 4
            for _ in range(count):
                (length,), place = self._take("H", place), place + 2
                name, place = bytes(self._data[place : place + length]).decode(), place + length
                kind, numbers, offset, size = self._take("BIQQ", place)
                self._tensors[name], place = (kind == _PACKED, numbers, offset, size), place + 21
            self._names = dict(_EMBEDDINGS)
            for layer in range(self.layers):
                for part, short in _PARTS.items():
                    self._names[f"encoder.layer.{layer}.{part}.weight"] = f"l{layer}.{short}.w"
                    self._names[f"encoder.layer.{layer}.{part}.bias"] = f"l{layer}.{short}.b"
            self._shapes = {"emb.word": self._words, "emb.pos": self._positions, "emb.type": self._types}
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} is not whole: {error}") from error

    def weight(self, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor, float32, a matrix as [rows, columns].

        Raises:
            TypeError: there is none of that name.
        """
        import numpy as np

        short = self._names.get(name, "")
        if short not in self._tensors:
            raise TypeError(f"{name} is missing")
        is_packed, numbers, offset, _ = self._tensors[short]
        if is_packed:
            bits, scales = self._blocks(short)
            values = ((bits.astype(np.float32) - 8) * scales[:, None]).reshape(-1)
        else:
            values = self._array("<f4", numbers, offset)
        columns = self.wide if short.endswith(".fo.w") else self.hidden
        is_matrix = is_packed or short in self._shapes
        return values.reshape(-1, columns) if is_matrix else values

    @property
    def words(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """The vectors of the vocabulary, four fifths of the model, as packed as they are: signed 4-bit numbers, two in
        a byte, the first in the low bits, uint8 [rows, columns / 2], and the scales of their blocks, float32 [rows,
        columns / BLOCK].
        """
        import numpy as np

        bits, scales = self._blocks("emb.word")
        signed = (bits ^ 8).reshape(self._words, self.hidden)
        numbers = signed[:, 0::2] | (signed[:, 1::2] << 4)
        return np.ascontiguousarray(numbers), scales.reshape(self._words, -1)

    def _blocks(self, short: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """Return the bits, uint8 [blocks, BLOCK], and the scales, float32 [blocks]."""
        import numpy as np

        _, _, offset, size = self._tensors[short]
        blocks = self._data[offset : offset + size].reshape(-1, _BLOCK_BYTES)
        packed = blocks[:, 2:]
        scales = blocks[:, :2].copy().view("<f2").reshape(-1).astype(np.float32)
        return np.concatenate([packed & 15, packed >> 4], axis=1), scales

    def _take(self, form: str, place: int) -> tuple[Any, ...]:
        return struct.unpack_from(f"<{form}", self._data.data, place)

    def _array(self, form: str, count: int, place: int) -> npt.NDArray[Any]:
        import numpy as np

        values = np.frombuffer(self._data, form, count, place)
        return values.astype(form[1:])


# -- the ONNX graph of a BERT encoder ---------------------------------------------------------------------------------

_FUSED = "com.microsoft"
_OPSET = 21
_IR_VERSION = 10


def write_graph(
    folder: Path, config: Mapping[str, Any], description: Description, weights: StoredModel | PackedModel
) -> None:
    """Write the graph of a BERT encoder, as config.json describes it, into `folder`.

    Inputs `input_ids` and `attention_mask`, int64 [batch, length]; output `pooled`, float32 [batch, hidden], not
    normalised.
    """
    epsilon, heads = float(config.get("layer_norm_eps", 1e-12)), int(config["num_attention_heads"])
    with (folder / GRAPH_WEIGHTS_FILE).open("wb") as file:
        graph = _Graph(weights, file)
        hidden = _embed_tokens(graph, epsilon)
        graph.node("Cast", ["attention_mask"], "mask_int32", to=6)
        for layer in range(int(config["num_hidden_layers"])):
            hidden = _encode_layer(graph, f"encoder.layer.{layer}.", hidden, heads, epsilon)
        _add_pooling(graph, hidden, description.pooling)
        model = graph.finish(description.dimension)
    (folder / GRAPH_FILE).write_bytes(model)


class _Graph:
    """Nodes and weights under construction. A tensor is referred to by its name."""

    def __init__(self, weights: StoredModel | PackedModel, file: BinaryIO) -> None:
        self.words = weights.words
        self.weight = weights.weight
        self._file = file
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self._nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: npt.NDArray[Any]) -> str:
        from onnx import numpy_helper

        self._tensors.append(numpy_helper.from_array(value, name))
        return name

    def stored(self, name: str, value: npt.NDArray[np.float32] | npt.NDArray[np.uint8]) -> str:
        """Store numbers; bytes hold two signed 4-bit numbers each."""
        import numpy as np
        from onnx import TensorProto

        is_packed = value.dtype == np.uint8
        kind, form = (TensorProto.INT4, "u1") if is_packed else (TensorProto.FLOAT, "<f4")
        shape = (len(value), 2 * value.shape[1]) if is_packed else value.shape
        tensor = TensorProto(name=name, data_type=kind, dims=shape)
        store_outside(tensor, np.ascontiguousarray(value, form).tobytes(), self._file)
        self._tensors.append(tensor)
        return name

    def vector(self, name: str) -> str:
        return self.stored(name, self.weight(name))

    def matrix(self, name: str) -> str:
        """Store a linear layer's weight, transposed from [out, in] to [in, out]."""
        return self.stored(name, self.weight(name).T)

    def finish(self, hidden: int) -> bytes:
        from onnx import TensorProto, helper

        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ]
        output = helper.make_tensor_value_info("pooled", TensorProto.FLOAT, ["batch", hidden])
        graph = helper.make_graph(self._nodes, "encoder", inputs, [output], self._tensors)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        return bytes(model.SerializeToString())


def _embed_tokens(graph: _Graph, epsilon: float) -> str:
    import numpy as np

    words = graph.words

    # A single text is all of token type 0, so that type's vector is added to the positions once, here.
    positions = graph.weight("embeddings.position_embeddings.weight")
    types = graph.weight("embeddings.token_type_embeddings.weight")
    graph.stored("positions", positions + types[0])
    if words is None:
        graph.node("Gather", [graph.vector("embeddings.word_embeddings.weight"), "input_ids"], "words")
    else:
        numbers, scales = words
        table = [graph.stored("word_numbers", numbers), "input_ids", graph.stored("word_scales", scales)]
        graph.node("GatherBlockQuantized", table, "words", domain=_FUSED, quantize_axis=1, block_size=BLOCK)
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    start = graph.constant("start", np.array([0], np.int64))
    graph.node("Slice", ["positions", start, "length", start], "placed")
    graph.node("Add", ["words", "placed"], "embedded")
    scale, bias = _norm(graph, "embeddings.LayerNorm")
    return graph.node("LayerNormalization", ["embedded", scale, bias], "layer_in", axis=-1, epsilon=epsilon)


def _encode_layer(graph: _Graph, prefix: str, hidden: str, heads: int, epsilon: float) -> str:
    import numpy as np

    attention, parts = f"{prefix}attention.", ("query", "key", "value")
    weight = np.concatenate([graph.weight(f"{attention}self.{part}.weight").T for part in parts], axis=1)
    bias = np.concatenate([graph.weight(f"{attention}self.{part}.bias") for part in parts])
    stored = graph.stored(f"{attention}self.weight", weight), graph.stored(f"{attention}self.bias", bias)
    inputs = [hidden, *stored, "mask_int32"]
    context = graph.node("Attention", inputs, f"{attention}self.context", domain=_FUSED, num_heads=heads)
    seen = _add_and_norm(graph, f"{attention}output.", context, hidden, epsilon)
    wide = graph.node("MatMul", [seen, graph.matrix(f"{prefix}intermediate.dense.weight")], f"{prefix}wide")
    activation = [wide, graph.vector(f"{prefix}intermediate.dense.bias")]
    active = graph.node("BiasGelu", activation, f"{prefix}active", domain=_FUSED)
    return _add_and_norm(graph, f"{prefix}output.", active, seen, epsilon)


def _add_and_norm(graph: _Graph, prefix: str, value: str, residual: str, epsilon: float) -> str:
    projected = graph.node("MatMul", [value, graph.matrix(f"{prefix}dense.weight")], f"{prefix}projected")
    scale, shift = _norm(graph, f"{prefix}LayerNorm")
    inputs = [projected, residual, scale, shift, graph.vector(f"{prefix}dense.bias")]
    return graph.node("SkipLayerNormalization", inputs, f"{prefix}out", domain=_FUSED, epsilon=epsilon)


def _norm(graph: _Graph, prefix: str) -> tuple[str, str]:
    return graph.vector(f"{prefix}.weight"), graph.vector(f"{prefix}.bias")


def _add_pooling(graph: _Graph, hidden: str, pooling: Pooling) -> None:
    """Reduce [batch, length, hidden] to [batch, hidden]. A mean is left as a sum: only its direction counts."""
    import numpy as np

    if pooling == "cls":
        graph.node("Gather", [hidden, graph.constant("first", np.array(0, np.int64))], "pooled", axis=1)
        return
    axis = graph.constant("length_axis", np.array([1], np.int64))
    graph.node("Cast", ["attention_mask"], "mask_float", to=1)
    graph.node("Unsqueeze", ["mask_float", axis], "mask_row")
    graph.node("MatMul", ["mask_row", hidden], "summed")
    graph.node("Squeeze", ["summed", axis], "pooled")
