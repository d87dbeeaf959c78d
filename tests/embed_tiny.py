"""A tiny BERT of random weights as a sentence-transformers folder, and its forward pass in plain numpy."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

WORDS = [
    "maya",
    "likes",
    "oat",
    "milk",
    "in",
    "her",
    "coffee",
    "and",
    "tea",
    "rex",
    "the",
    "dog",
    "sleeps",
    "all",
    "day",
    "long",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 32, 2, 4, 64, 24
MAX_TOKENS = 16


def write_tiny_model(folder: Path, pooling: str = "mean", seed: int = 7, **config) -> Path:
    """A model folder; `config` overrides config.json. Its weights carry the `bert.` prefix that some files have."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file({f"bert.{name}": value for name, value in random_weights(seed).items()}, folder / "model.safetensors")
    write_tokenizer(folder / "tokenizer.json")
    described = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps({**described, **config}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": MAX_TOKENS}))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"mean": "mean_tokens", "cls": "cls_token"}
    chosen = {f"pooling_mode_{mode}": name == pooling for name, mode in modes.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": HIDDEN, **chosen}))
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [{"idx": i, "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def random_weights(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return random.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": draw(len(SPECIAL) + len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": draw(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": draw(2, HIDDEN),
        "embeddings.LayerNorm.weight": 1 + draw(HIDDEN),
        "embeddings.LayerNorm.bias": draw(HIDDEN),
    }
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            weights[f"{prefix}attention.self.{part}.weight"] = draw(HIDDEN, HIDDEN)
            weights[f"{prefix}attention.self.{part}.bias"] = draw(HIDDEN)
        for part, wide in (("attention.output", HIDDEN), ("output", WIDE)):
            weights[f"{prefix}{part}.dense.weight"] = draw(HIDDEN, wide)
            weights[f"{prefix}{part}.dense.bias"] = draw(HIDDEN)
            weights[f"{prefix}{part}.LayerNorm.weight"] = 1 + draw(HIDDEN)
            weights[f"{prefix}{part}.LayerNorm.bias"] = draw(HIDDEN)
        weights[f"{prefix}intermediate.dense.weight"] = draw(WIDE, HIDDEN)
        weights[f"{prefix}intermediate.dense.bias"] = draw(WIDE)
    return weights


def write_tokenizer(path: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    # As published models do: both must be undone, or every text would be as long as the longest.
    tokenizer.enable_padding(length=12)
    tokenizer.enable_truncation(8)
    tokenizer.save(str(path))


def reference(weights: dict[str, np.ndarray], ids: list[int], heads: int, epsilon: float, pooling: str) -> np.ndarray:
    """The unit vector of one unpadded text, as the BERT paper has it, in float64."""
    states = encode(weights, ids, [0] * len(ids), heads, epsilon)
    pooled = {"mean": states.mean(0), "cls": states[0]}[pooling]
    return pooled / np.linalg.norm(pooled)


def encode(weights: dict[str, np.ndarray], ids: list[int], types: list[int], heads: int, epsilon: float) -> np.ndarray:
    """The states of the tokens of one unpadded text or pair, in float64."""
    get = {name: value.astype(np.float64) for name, value in weights.items()}.__getitem__
    states = get("embeddings.word_embeddings.weight")[ids] + get("embeddings.position_embeddings.weight")[: len(ids)]
    states = _norm(states + get("embeddings.token_type_embeddings.weight")[types], "embeddings.", get, epsilon)
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder."))
    for layer in range(layers):
        states = _layer(states, f"encoder.layer.{layer}.", get, heads, epsilon)
    return states


def _layer(states, prefix, get, heads, epsilon):
    query, key, value = (
        np.stack(np.split(_linear(states, f"{prefix}attention.self.{part}.", get), heads, axis=1))
        for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    context = np.concatenate(list(scores / scores.sum(-1, keepdims=True) @ value), axis=1)
    seen = _linear(context, f"{prefix}attention.output.dense.", get) + states
    seen = _norm(seen, f"{prefix}attention.output.", get, epsilon)
    wide = _linear(seen, f"{prefix}intermediate.dense.", get)
    active = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
    return _norm(_linear(active, f"{prefix}output.dense.", get) + seen, f"{prefix}output.", get, epsilon)


def _linear(states, prefix, get):
    return states @ get(f"{prefix}weight").T + get(f"{prefix}bias")


def _norm(states, prefix, get, epsilon):
    centred = states - states.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return scaled * get(f"{prefix}LayerNorm.weight") + get(f"{prefix}LayerNorm.bias")
