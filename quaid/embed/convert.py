"""Converts a model as it is published into one that opens at once.

That is a BERT-type sentence-transformers folder, one whose weights are packed in 4 bits (packed.py), or a static
model of model2vec.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.embed.bert import Shape, write_graph
from quaid.embed.build import (
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

_STATIC = "model2vec"
_STATIC_TOKENS = 4096
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}


def convert(source: Path, target: Path, precision: Precision) -> Description:
    """Convert the model in the folder `source` into the folder `target`, which appears whole.

    Raises:
        EmbeddingError: `source` is neither a static model nor one of BERT's type with mean, cls or max pooling, or a
            file is missing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".convert-") as name:
        draft = Path(name) / "build"
        draft.mkdir()
        config = _read_config(source)
        description = _describe(source, config, precision)
        _write_model(source, config, draft, description)
        write_description(draft, description)
        _try_out(source, draft, description)
        if description.centred:
            _write_centre(draft, description)
        shutil.rmtree(target, ignore_errors=True)
        draft.replace(target)
    return description


def _try_out(source: Path, draft: Path, description: Description) -> None:
    """Embed one word, so that a damaged tokenizer or a wrong shape is found now and not later."""
    from quaid.embed.local import open_build

    try:
        plain = Build(draft, replace(description, centred=False), 1.0, 1.0)
        vector = open_build(plain).embed_query("trial")
        assert abs(float(vector @ vector) - 1) < 1e-3, "its vectors are not numbers"
    except Exception as error:
        raise _refusal(source, f"it failed its trial: {error.__cause__ or error}") from error


def _write_centre(draft: Path, description: Description) -> None:
    import numpy as np

    from quaid.embed.centre import CENTRE_FILE, find_centre
    from quaid.embed.local import LocalEmbedder

    plain = Build(draft, replace(description, centred=False), 1.0, 1.0)
    embedder = LocalEmbedder(plain)
    centre = find_centre(embedder.embed, lambda texts: np.stack([embedder.embed_query(text) for text in texts]))
    np.save(draft / CENTRE_FILE, centre)


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
        raise _refusal(source, f"its pooling is {' + '.join(chosen) or 'not given'}, not mean, cls or max")
    return _POOLINGS[chosen[0]]


def _read_json(path: Path, default: Any = None) -> Any:
    if default is not None and not path.exists():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _refusal(path.parent, f"{path.name} cannot be read: {error}") from error


def _write_model(source: Path, config: Mapping[str, Any], draft: Path, description: Description) -> None:
    if description.kind == "static":
        _write_table(source, draft)
        return
    shape = Shape(
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        hidden=description.dimension,
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        pooling=description.pooling,
    )
    if (source / PACKED_FILE).exists():
        _unpack(source, draft, shape)
    else:
        with _tensors_in(source) as file:
            write_graph(draft, shape, _named_weights(file))
        shutil.copyfile(source / TOKENIZER_FILE, draft / TOKENIZER_FILE)
    if description.precision == "int8":
        from quaid.embed.quantise import quantise

        quantise(draft)


def _unpack(source: Path, draft: Path, shape: Shape) -> None:
    from quaid.embed.packed import PackedModel
    from quaid.embed.unigram import write_vocabulary

    try:
        packed = PackedModel(source / PACKED_FILE)
        write_graph(draft, shape, packed.weight, packed.word_table())
    except (ValueError, TypeError) as error:
        raise _refusal(source, f"{PACKED_FILE} cannot be read: {error}") from error
    write_vocabulary(draft, packed.pieces, packed.scores)


def _write_table(source: Path, draft: Path) -> None:
    import numpy as np

    with _tensors_in(source) as file:
        np.save(draft / VECTORS_FILE, _named_weights(file)("embeddings"))
    shutil.copyfile(source / TOKENIZER_FILE, draft / TOKENIZER_FILE)


@contextmanager
def _tensors_in(source: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(source / WEIGHTS_FILE, framework="numpy") as file:
            yield file
    except (SafetensorError, TypeError) as error:
        raise _refusal(source, f"{WEIGHTS_FILE} cannot be read: {error}") from error


def _named_weights(file: Any) -> Callable[[str], npt.NDArray[np.float32]]:
    names = {name.removeprefix("bert."): name for name in file.keys()}  # noqa: SIM118 (not a dict)

    def weight(name: str) -> npt.NDArray[np.float32]:
        if name not in names:
            raise TypeError(f"{name} is missing")
        tensor: npt.NDArray[np.float32] = file.get_tensor(names[name]).astype("float32")
        return tensor

    return weight


def _refusal(source: Path, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"Quaid cannot run the model in {source} ({why}). "
        'Name a BERT-type sentence-transformers folder, or use all-MiniLM-L6-v2, in quaid.toml: embedding.model = "…"'
    )
