"""A local cross-encoder: built from a BERT's weights, read as an ONNX graph, with layers of its own; and its budget."""

from __future__ import annotations

import json
import math
from itertools import chain, count, repeat

import numpy as np
import pytest
from cross_encoder import write_bert, write_matcher
from embed_tiny import HEADS, HIDDEN, SPECIAL, WORDS, encode, random_weights, write_tiny_model

from quaid.embed import fetch_weights, open_embedder, open_reranker
from quaid.embed.convert import convert
from quaid.embed.local import LocalReranker
from quaid.embed.weights import KNOWN_MODELS, RERANKER, Build, find_graph, parts_of
from quaid.errors import EmbeddingError, WeightsMissingError
from quaid.settings import EmbeddingSettings

QUESTION = "maya likes tea"
TEXTS = ["the dog sleeps", "maya likes oat milk in her coffee", "tea", ""]
FOREVER_S = 600.0


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))


def opened(folder):
    fetch_weights(EmbeddingSettings(model=str(folder)))
    return open_reranker(str(folder))


def pair_ids(question, text):
    known = [*SPECIAL, *WORDS]
    first, second = ([known.index(word) for word in part.split()] for part in (question, text))
    return [2, *first, 3, *second, 3], [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_scores_equal_a_plain_numpy_forward_pass_of_a_bert(tmp_path):
    weights = write_bert(tmp_path / "model")
    expected = []
    for text in TEXTS:
        first = encode(weights, *pair_ids(QUESTION, text), HEADS, 1e-12)[0]
        pooled = np.tanh(weights["pooler.dense.weight"] @ first + weights["pooler.dense.bias"])
        expected.append(float((weights["classifier.weight"] @ pooled + weights["classifier.bias"])[0]))
    description = convert(tmp_path / "model", tmp_path / "build", "fp32")
    exact = LocalReranker(Build(tmp_path / "build", description)).score(QUESTION, TEXTS, FOREVER_S)
    assert exact == pytest.approx(expected, abs=1e-5)
    scores = opened(tmp_path / "model").score(QUESTION, TEXTS, FOREVER_S)
    assert scores == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_a_graph_is_used_as_it_is_published(tmp_path, classes, name):
    reranker = opened(write_matcher(tmp_path / "model", {"tea": 3.0, "dog": -1.0}, classes, name))
    assert reranker.score(QUESTION, ["tea and tea", "the dog", "oat"], FOREVER_S) == pytest.approx([6, -1, 0])
    assert reranker.score(QUESTION, [], FOREVER_S) == []
    assert reranker.score("tea \ud83d", ["\udc00 tea"], FOREVER_S) == pytest.approx([3])


def test_layers_after_the_encoder_are_applied_as_sentence_transformers_has_them(tmp_path):
    """As ettin-reranker has them: the first token's state, Dense with GELU, LayerNorm, Dense with one number."""
    from safetensors.numpy import save_file

    folder = write_tiny_model(tmp_path / "model", "cls")
    random = np.random.default_rng(3)
    first, scale, shift, last, bias = (random.normal(0, 1, n) for n in ((HIDDEN, HIDDEN), 32, 32, (1, HIDDEN), 1))
    layers = {
        "2_Dense": ({"linear.weight": first}, "torch.nn.modules.activation.GELU"),
        "3_LayerNorm": ({"norm.weight": scale, "norm.bias": shift}, ""),
        "4_Dense": ({"linear.weight": last, "linear.bias": bias}, "torch.nn.modules.linear.Identity"),
    }
    for name, (weights, function) in layers.items():
        (folder / name).mkdir()
        save_file({key: value.astype("f4") for key, value in weights.items()}, folder / name / "model.safetensors")
        (folder / name / "config.json").write_text(json.dumps({"activation_function": function, "out_features": 1}))
    kinds = ["Transformer", "Pooling", "Dense", "LayerNorm", "Dense"]
    (folder / "modules.json").write_text(json.dumps([{"type": f"sentence_transformers.{kind}"} for kind in kinds]))
    expected = []
    for text in TEXTS:
        state = encode(random_weights(7), *pair_ids(QUESTION, text), HEADS, 1e-12)[0]
        wide = first @ state
        active = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        normed = (active - active.mean()) / np.sqrt(active.var() + 1e-5) * scale + shift
        expected.append(float((last @ normed + bias)[0]))
    description = convert(folder, tmp_path / "build", "fp32")
    scores = LocalReranker(Build(tmp_path / "build", description)).score(QUESTION, TEXTS, FOREVER_S)
    assert scores == pytest.approx(expected, abs=1e-3)


def test_what_is_not_scored_when_the_time_is_over_has_no_score(tmp_path, monkeypatch):
    reranker = opened(write_matcher(tmp_path / "model", {"tea": 3.0}))
    assert reranker.score(QUESTION, ["tea"] * 9, -1.0) == [None] * 9
    monkeypatch.setattr(reranker, "_threads", 1)
    # The clock stands still for the start and three texts, then it is past the deadline.
    clock = chain(repeat(0.0, 4), count(99.0))
    monkeypatch.setattr("quaid.embed.local.time.perf_counter", lambda: next(clock))
    assert reranker.score(QUESTION, ["tea", "oat", "tea", "tea", "tea"], 1.0) == [
        pytest.approx(3),
        0,
        pytest.approx(3),
        None,
        None,
    ]


def test_each_kind_of_model_is_named_where_it_belongs(tmp_path):
    write_bert(tmp_path / "pairs")
    opened(tmp_path / "pairs")
    with pytest.raises(EmbeddingError, match=r"is a reranker.*recall\.reranker"):
        open_embedder(EmbeddingSettings(model=str(tmp_path / "pairs")))
    write_tiny_model(tmp_path / "texts")
    with pytest.raises(EmbeddingError, match=r"is an embedding model.*embedding\.model"):
        opened(tmp_path / "texts")


def test_a_graph_with_other_numbers_or_inputs_is_refused_in_one_sentence(tmp_path):
    import onnx

    folder = write_matcher(tmp_path / "model", {})
    graph = onnx.load(folder / "model.onnx")
    graph.graph.input[0].name = graph.graph.node[0].input[1] = "pixels"
    onnx.save(graph, folder / "model.onnx")
    with pytest.raises(EmbeddingError, match=r"cannot run the model in .*pixels"):
        opened(folder)
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(EmbeddingError, match="failed its trial"):
        opened(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EmbeddingError, match=r"tokenizer\.json is missing"):
        opened(folder)


def test_a_reranker_that_is_not_there_says_how_to_fetch_it():
    for name in (RERANKER, "ms-marco-MiniLM-L6-v2"):
        with pytest.raises(WeightsMissingError, match="quaid doctor --fetch"):
            open_reranker(name)
        assert KNOWN_MODELS[name].hub_id.count("@") == 1, "a revision, so that the hashes stay right"


def test_a_graph_that_is_quantised_is_preferred_for_int8_alone(tmp_path):
    folder = write_matcher(tmp_path / "model", {})
    write_matcher(folder, {}, name="onnx/model_quint8_avx2.onnx")
    (folder / "onnx" / "model_quint8_avx2.onnx_data").write_bytes(b"weights")
    assert find_graph(folder, "fp32") == folder / "model.onnx"
    weights = ("onnx/model_quint8_avx2.onnx", "onnx/model_quint8_avx2.onnx_data")
    assert parts_of(folder, "int8") == (*weights, "tokenizer.json")
