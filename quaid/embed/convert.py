"""Converts a model as it is published, an embedder or a cross-encoder, into one that opens at once.

That is a folder with an ONNX graph, which is used as it is, one with a BERT's weights, whose graph is built here, one
whose weights are packed in 4 bits, or a static model of model2vec.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast, get_args

from quaid.embed.local import CENTRE_FILE, FUNCTIONS, LAYERS_FILE, find_centre, open_build, write_vocabulary
from quaid.embed.quantise import quantise, store_outside
from quaid.embed.weights import (
    BUILT,
    GRAPH_FILE,
    GRAPH_WEIGHTS_FILE,
    PACKED_FILE,
    STATIC,
    TOKENIZER_FILE,
    VECTORS_FILE,
    WEIGHTS_FILE,
    Build,
    Description,
    Pooling,
    Precision,
    content_of,
    find_graph,
    parts_of,
    read_prompts,
    stamp_of,
    write_description,
)
from quaid.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    _Layers = dict[str, npt.NDArray[np.float32]]

_PARALLEL = Path(__file__).with_name("parallel.tsv")
"""The same sentences in many languages: a language a line, its code and what all of them say."""
_STATIC_TOKENS = 4096
_LAST_LAYERS = {"0.Tanh": "pooler.dense", "1.Identity": "classifier"}
"""Of a BERT for pairs."""
_DEFAULT_TOKENS = 512
"""The tokens that a model reads whose files do not say how many; longer chunks are rare."""


def convert(source: Path, target: Path, precision: Precision) -> Description:
    """Convert the model in the folder `source` into the folder `target`, which appears whole.

    Raises:
        EmbeddingError: the model in `source` is of no kind that Quaid can run, or a file is missing.
    """
    import numpy as np

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".convert-") as name:
        draft = Path(name) / "build"
        draft.mkdir()
        graph = find_graph(source, precision)
        config = _read_config(source, graph)
        description = _describe(source, config, graph, precision)
        if layers := _write_model(source, config, graph, draft, description):
            np.savez(draft / LAYERS_FILE, **cast(Any, layers))
        try:  # one word, so that a damaged tokenizer or a wrong shape is found now and not later
            if graph is None and description.precision == "int8":
                quantise(draft)
            trial = open_build(Build(draft, replace(description, centred=False)))
            numbers = trial.embed_query("trial") if description.kind == "static" else trial.run("trial")
            kind = "reranker" if len(numbers) == 1 else description.kind
            assert kind != "reranker" or len(numbers) in {1, 2}, f"it gives {len(numbers)} numbers for a pair"
            assert np.isfinite(numbers).all(), "it gives other than numbers"
            description = replace(description, dimension=len(numbers), kind=kind)
            write_description(draft, description)
        except Exception as error:
            raise _refusal(source, f"it failed its trial: {error.__cause__ or error}") from error
        if description.centred:
            embedder = open_build(Build(draft, replace(description, centred=False)))
            lines = _PARALLEL.read_text(encoding="utf-8").splitlines()
            parallel = [line.split("\t")[1:] for line in lines]
            sentences = [sentence for line in parallel for sentence in line]
            texts = embedder.embed(sentences).reshape(len(parallel), -1, description.dimension)
            np.save(draft / CENTRE_FILE, find_centre(texts, np.stack([*map(embedder.embed_query, sentences)])))
        shutil.rmtree(target, ignore_errors=True)
        draft.replace(target)
    return description


def _describe(source: Path, config: Mapping[str, Any], graph: Path | None, precision: Precision) -> Description:
    parts = parts_of(source, precision)
    for name in parts:
        if not (source / name).is_file():
            raise _refusal(source, f"{name} is missing")
    try:
        prompts, content = read_prompts(source), content_of(source, precision)
    except (OSError, ValueError) as error:
        raise _refusal(source, f"it cannot be read: {error}") from error
    if is_static := config.get("model_type") == STATIC:
        precision = "fp32"
    elif graph is not None:
        precision = "fp32" if graph.name == GRAPH_FILE else "int8"
    sentence = _read_json(source / "sentence_bert_config.json", {})
    stated = _read_json(source / "tokenizer_config.json", {}).get("model_max_length")
    limits = (sentence.get("max_seq_length"), stated, config.get("max_position_embeddings"))
    is_whole = any("ForSequenceClassification" in name for name in config.get("architectures") or ())
    last = [folder for kind, folder in _list_modules(source) if kind == "Dense"][-1:]
    is_pair = is_whole or any(_read_json(folder / "config.json").get("out_features") == 1 for folder in last)
    return Description(
        content=content,
        precision=precision,
        pooling="mean" if is_static else "cls" if is_whole else _read_pooling(source),
        max_tokens=min((int(limit) for limit in limits if limit), default=_DEFAULT_TOKENS),
        dimension=int(config["hidden_dim"]) if is_static else 0,
        source_stamp=stamp_of(source / parts[0]),
        lowercase=bool(sentence.get("do_lower_case", False)),
        query_prompt=str(prompts.get("query", "")),
        text_prompt=str(prompts.get("document", prompts.get("passage", ""))),
        kind="static" if is_static else "reranker" if is_pair else "bert",
        centred=bool(config.get("centred")),
    )


def _read_config(source: Path, graph: Path | None) -> dict[str, Any]:
    config: dict[str, Any] = _read_json(source / "config.json", None if graph is None else {})
    if graph is not None:
        return config
    is_static = config.get("model_type") == STATIC
    for key, value in BUILT.items():
        if not is_static and config.get(key, value) != value:
            raise _refusal(source, f"its {key} is {config[key]!r}, not {value!r}, and there is no ONNX graph")
    for key in ("hidden_dim",) if is_static else ("hidden_size", "num_hidden_layers", "num_attention_heads"):
        if key not in config:
            raise _refusal(source, f"config.json lacks {key}")
    config.setdefault("max_position_embeddings", _STATIC_TOKENS if is_static else _DEFAULT_TOKENS)
    return config


def _list_modules(source: Path) -> list[tuple[str, Path]]:
    """Return the kind and the folder of each part of a sentence-transformers model."""
    modules = _read_json(source / "modules.json", [])
    kinds = [str(each.get("type", "")).rpartition(".")[2] for each in modules]
    folders = [str(each.get("path", f"{number}_{kinds[number]}")) for number, each in enumerate(modules)]
    return [(kind, source / folder) for kind, folder in zip(kinds, folders, strict=True)]


def _read_pooling(source: Path) -> Pooling:
    folder = next((folder for kind, folder in _list_modules(source) if kind == "Pooling"), source / "1_Pooling")
    modes = _read_json(folder / "config.json", {"pooling_mode": "mean"})
    chosen = [
        value if key == "pooling_mode" else re.sub("^pooling_mode_|_tokens?$", "", key)
        for key, value in modes.items()
        if key.startswith("pooling_mode") and value
    ]
    if len(chosen) != 1 or chosen[0] not in get_args(Pooling):
        known = ", ".join(get_args(Pooling))
        raise _refusal(source, f"its pooling is {' + '.join(chosen) or 'not given'}, none of {known}")
    return cast(Pooling, chosen[0])


def _read_layers(source: Path) -> _Layers:
    """Return the weights of the layers after the pooling, each called `<number>.<function>.<name>`."""
    from safetensors.numpy import load_file

    layers: _Layers = {}
    for number, (kind, folder) in enumerate(_list_modules(source)):
        if kind in {"Transformer", "Pooling", "Normalize"}:
            continue
        function = kind
        if kind == "Dense":
            function = str(_read_json(folder / "config.json").get("activation_function", "Tanh")).rpartition(".")[2]
        if function not in FUNCTIONS:
            raise _refusal(source, f"it has a {function} layer after the encoder")
        for name, weight in load_file(folder / WEIGHTS_FILE).items():
            layers[f"{number}.{function}.{name.rpartition('.')[2]}"] = weight.astype("float32")
    return layers


def _read_json(path: Path, default: Any = None) -> Any:
    if default is not None and not path.exists():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _refusal(path.parent, f"{path.name} cannot be read: {error}") from error


def _write_model(
    source: Path, config: Mapping[str, Any], graph: Path | None, draft: Path, description: Description
) -> _Layers:
    """Write the graph, or the table, and the tokenizer; return the last layers of a cross-encoder's weights."""
    import numpy as np
    from safetensors import SafetensorError, safe_open

    layers: _Layers = {}
    try:
        if (source / PACKED_FILE).exists():
            packed = PackedModel(source / PACKED_FILE)
            write_graph(draft, config, description, packed)
            write_vocabulary(draft, packed.pieces, packed.scores)
            return layers
        layers = _read_layers(source)
        shutil.copyfile(source / TOKENIZER_FILE, draft / TOKENIZER_FILE)
        if graph is not None:
            for path in (graph, *graph.parent.glob(f"{graph.name}?data*")):  # the graph names its data
                shutil.copyfile(path, draft / (GRAPH_FILE if path == graph else path.name))
            return layers
        with safe_open(source / WEIGHTS_FILE, framework="numpy") as file:
            stored = StoredModel(file)
            if description.kind == "static":
                np.save(draft / VECTORS_FILE, stored.weight("embeddings"))
            else:
                write_graph(draft, config, description, stored)
            for layer, name in _LAST_LAYERS.items() if "classifier.weight" in stored.names else ():
                layers |= {f"{layer}.{part}": stored.weight(f"{name}.{part}") for part in ("weight", "bias")}
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        weights = parts_of(source, description.precision)[0]
        raise _refusal(source, f"{weights} cannot be read: {error}") from error
    return layers


class StoredModel:
    """The weights of an open safetensors file, by name without a `bert.` prefix."""

    words: tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]] | None = None

    def __init__(self, file: Any) -> None:
        self._file = file
        self.names = {name.removeprefix("bert."): name for name in file.keys()}  # noqa: SIM118 (not a dict)

    def weight(self, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor. Raises TypeError: there is none of that name."""
        if name not in self.names:
            raise TypeError(f"{name} is missing")
        tensor: npt.NDArray[np.float32] = self._file.get_tensor(self.names[name]).astype("float32")
        return tensor


def _refusal(source: Path, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"Quaid cannot run the model in {source} ({why}). "
        "Name a folder with tokenizer.json and model.onnx, or with a BERT's model.safetensors and config.json, or a "
        "built-in model."
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

        self._data, self._place = np.memmap(path, np.uint8, "r"), 0
        self._tensors: dict[str, tuple[bool, int, int, int]] = {}
        """Whether a tensor is packed, how many numbers it has, its place and its size in bytes, by its short name."""
        try:
            if self._take("4sI")[0] != _MAGIC:
                raise ValueError("it does not begin as a packed model does")
            self.hidden, self.layers, _, self.wide, self._words, self._positions, self._types = self._take("7i")
            if (block := self._take("fi")[1]) != BLOCK:
                raise ValueError(f"its blocks have {block} weights, not {BLOCK}")
            count, *_, length = self._take("5iQ")
            bounds = self._take(f"{count + 1}I")
            self.scores = self._take(f"{count}f")
            text = self._take(f"{length}s")[0]
            self.pieces = [text[start:end].decode() for start, end in pairwise(bounds)]
            _, size = self._take("iI")
            self._place += size  # what the normaliser replaces, which is NFKC
            for _ in range(self._take("i")[0]):
                name = self._take(f"{self._take('H')[0]}s")[0].decode()
                kind, *rest = self._take("BIQQ")
                self._tensors[name] = (kind == _PACKED, *rest)
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
            values = np.frombuffer(self._data, "<f4", numbers, offset).astype("f4")
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

    def _take(self, form: str) -> tuple[Any, ...]:
        """Return the values that come next."""
        values = struct.unpack_from(f"<{form}", self._data.data, self._place)
        self._place += struct.calcsize(f"<{form}")
        return values


# -- the ONNX graph of a BERT encoder ---------------------------------------------------------------------------------

_FUSED = "com.microsoft"
_OPSET = 21
_IR_VERSION = 10


def write_graph(
    folder: Path, config: Mapping[str, Any], description: Description, weights: StoredModel | PackedModel
) -> None:
    """Write the graph of a BERT encoder, as config.json describes it, into `folder`.

    Inputs `input_ids`, `attention_mask` and, of a cross-encoder, `token_type_ids`, int64 [batch, length]; one output,
    float32 [batch, length, hidden].
    """
    epsilon, heads = float(config.get("layer_norm_eps", 1e-12)), int(config["num_attention_heads"])
    inputs = ["input_ids", "attention_mask"] + ["token_type_ids"] * (description.kind == "reranker")
    with (folder / GRAPH_WEIGHTS_FILE).open("wb") as file:
        graph = _Graph(weights, file)
        hidden = _embed_tokens(graph, epsilon, of_pairs=len(inputs) == 3)
        graph.node("Cast", ["attention_mask"], "mask_int32", to=6)
        for layer in range(int(config["num_hidden_layers"])):
            hidden = _encode_layer(graph, f"encoder.layer.{layer}.", hidden, heads, epsilon)
        model = graph.finish(inputs, hidden)
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

    def finish(self, names: list[str], states: str) -> bytes:
        from onnx import TensorProto, helper

        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
        output = helper.make_tensor_value_info(states, TensorProto.FLOAT, ["batch", "length", None])
        graph = helper.make_graph(self._nodes, "encoder", inputs, [output], self._tensors)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        return bytes(model.SerializeToString())


def _embed_tokens(graph: _Graph, epsilon: float, *, of_pairs: bool) -> str:
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
    embedded = graph.node("Add", ["words", "placed"], "placed_words")
    if of_pairs:
        graph.node("Gather", [graph.stored("types", types - types[0]), "token_type_ids"], "typed")
        embedded = graph.node("Add", [embedded, "typed"], "typed_words")
    scale, bias = _norm(graph, "embeddings.LayerNorm")
    return graph.node("LayerNormalization", [embedded, scale, bias], "layer_in", axis=-1, epsilon=epsilon)


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
