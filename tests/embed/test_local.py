"""Conversion and the local embedder: a tiny random model against plain numpy, and the real one where it is to be had."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from embed_tiny import HEADS, HIDDEN, MAX_TOKENS, SPECIAL, WORDS, random_weights, reference, write_tiny_model

from quaid.embed import fetch_weights, open_embedder
from quaid.embed.convert import convert
from quaid.embed.local import PlainTokenizer, open_build
from quaid.errors import EmbeddingError, WeightsMissingError
from quaid.settings import EmbeddingSettings

TEXTS = ["maya likes oat milk", "the dog sleeps all day long and the dog sleeps", "tea", "", "Rex, the DOG!"]


@pytest.fixture(autouse=True)
def _cache(request, tmp_path, monkeypatch):
    if "minilm" not in request.fixturenames:
        monkeypatch.setenv("QUAID_CACHE_DIR", str(tmp_path / "cache"))


def open_tiny(folder, **settings):
    chosen = EmbeddingSettings(model=str(folder), **settings)
    fetch_weights(chosen)
    return open_embedder(chosen)


def token_ids(text):
    words = text.lower().replace(",", " , ").replace("!", " ! ").split()
    known = [*SPECIAL, *WORDS]
    ids = [known.index(word) if word in known else 1 for word in words]
    return [2, *ids[: MAX_TOKENS - 2], 3]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_equal_a_plain_numpy_forward_pass(tmp_path, pooling):
    embedder = open_tiny(write_tiny_model(tmp_path / "model", pooling), precision="fp32")
    expected = [reference(random_weights(7), token_ids(text), HEADS, 1e-12, pooling) for text in TEXTS]
    assert np.abs(embedder.embed(TEXTS) - expected).max() < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_neighbours_and_padding_do_not_change_a_vector(tmp_path, precision):
    folder = write_tiny_model(tmp_path / "model")
    many = [" ".join(WORDS[: i % 12 + 1]) for i in range(60)]
    together = open_tiny(folder, precision=precision).embed([*TEXTS, *many])
    alone = np.array([open_tiny(folder, precision=precision).embed([text])[0] for text in TEXTS])
    assert np.abs(together[: len(TEXTS)] - alone).max() < 1e-5


def test_cold_warm_and_bulk_sessions_agree(tmp_path):
    embedder = open_tiny(write_tiny_model(tmp_path / "model"))
    first = embedder.embed_query("maya likes tea")
    for _ in range(12):
        last = embedder.embed_query("maya likes tea")
    bulk = embedder.embed([*(f"{a} {b}" for a in WORDS for b in WORDS), "maya likes tea"])[-1]
    assert np.abs(first - last).max() < 1e-5
    assert np.abs(first - bulk).max() < 1e-5


def test_a_long_text_is_cut_at_the_models_limit(tmp_path):
    embedder = open_tiny(write_tiny_model(tmp_path / "model"))
    kept = "oat " * (MAX_TOKENS - 2)
    cut, whole = embedder.embed([kept, kept + "dog tea coffee " * 500])
    assert np.abs(cut - whole).max() < 1e-6
    assert np.abs(cut - embedder.embed(["oat"])[0]).max() > 1e-3


def test_int8_is_close_to_fp32(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    full, small = (open_tiny(folder, precision=precision) for precision in ("fp32", "int8"))
    assert (full.embed(TEXTS) * small.embed(TEXTS)).sum(1).min() > 0.98
    assert full.fingerprint != small.fingerprint


def test_rows_are_float32_unit_vectors_in_the_order_of_the_texts(tmp_path):
    embedder = open_tiny(write_tiny_model(tmp_path / "model"))
    vectors = embedder.embed(["tea", "oat milk", "tea"])
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, HIDDEN)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert (vectors[0] == vectors[2]).all()
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_no_texts_give_no_rows_and_load_nothing(tmp_path):
    assert open_tiny(write_tiny_model(tmp_path / "model")).embed([]).shape == (0, HIDDEN)


def test_a_lone_surrogate_is_embedded_like_any_unknown_word(tmp_path):
    vectors = open_tiny(write_tiny_model(tmp_path / "model")).embed(["tea \ud83d", "tea ?"])
    assert np.isfinite(vectors).all()


def test_the_query_prompt_of_the_model_is_used(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "the dog "}}))
    embedder = open_tiny(folder)
    assert np.abs(embedder.embed_query("sleeps") - embedder.embed(["the dog sleeps"])[0]).max() < 1e-5


def test_fingerprint_follows_the_content_of_the_weights_not_their_name(tmp_path):
    one = open_tiny(write_tiny_model(tmp_path / "one"))
    same = open_tiny(write_tiny_model(tmp_path / "same"))
    other = open_tiny(write_tiny_model(tmp_path / "other", seed=8))
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert open_tiny(write_tiny_model(tmp_path / "cls", "cls")).fingerprint != one.fingerprint


def test_changed_weights_are_converted_again(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    before = open_tiny(folder).fingerprint
    write_tiny_model(folder, seed=9)
    os.utime(folder / "model.safetensors", ns=(1, 1))
    with pytest.raises(WeightsMissingError):
        open_embedder(EmbeddingSettings(model=str(folder)))
    assert open_tiny(folder).fingerprint != before


def test_duplicate_similarity_is_the_models(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    assert open_tiny(folder).duplicate_similarity == 0.97


@pytest.mark.parametrize(
    ("config", "named"),
    [({"model_type": "roberta"}, "roberta"), ({"hidden_act": "relu"}, "relu"), ({"num_attention_heads": 3}, "trial")],
)
def test_a_model_of_another_kind_is_refused_by_name(tmp_path, config, named):
    with pytest.raises(EmbeddingError, match=named):
        open_tiny(write_tiny_model(tmp_path / "model", **config))
    assert not list((tmp_path / "cache").rglob("model.onnx"))


def test_a_layer_that_is_not_known_is_refused_by_name(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.CNN"}]')
    with pytest.raises(EmbeddingError, match="a CNN layer"):
        open_tiny(folder)
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]')
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text("{}")
    with pytest.raises(EmbeddingError, match=r"cannot be read: .*2_Dense"):
        open_tiny(folder)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_pooling_of_a_graph_is_that_of_its_folder(tmp_path, pooling):
    """The graph is that of another build, under the name and with the other inputs that an export gives it."""
    source = write_tiny_model(tmp_path / "source")
    convert(source, tmp_path / "build", "fp32")
    folder = tmp_path / "model"
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(tmp_path / "build" / "model.onnx", folder / "onnx")
    shutil.copy(tmp_path / "build" / "weights.bin", folder / "onnx" / "model.onnx_data")
    graph = (folder / "onnx" / "model.onnx").read_bytes()
    assert b"weights.bin" in graph
    model = onnx.load_from_string(graph)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = "model.onnx_data" if entry.key == "location" else entry.value
    (folder / "onnx" / "model.onnx").write_bytes(model.SerializeToString())
    shutil.copy(source / "tokenizer.json", folder)
    (folder / "config.json").write_text('{"model_type": "xlm-roberta", "max_position_embeddings": 16}')
    (folder / "modules.json").write_text('[{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "p"}]')
    (folder / "p").mkdir()
    (folder / "p" / "config.json").write_text(json.dumps({"pooling_mode": pooling}))
    embedder = open_tiny(folder)
    expected = [reference(random_weights(7), token_ids(text), HEADS, 1e-12, pooling) for text in TEXTS]
    assert np.abs(embedder.embed(TEXTS) - expected).max() < 1e-5
    assert embedder.fingerprint.split("/")[2:4] == ["fp32", pooling]


def test_a_folder_without_weights_says_what_quaid_runs(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "xlm-roberta"}')
    with pytest.raises(EmbeddingError, match=r"'xlm-roberta', not 'bert', and there is no ONNX graph.*model\.onnx"):
        open_tiny(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_missing_or_damaged_file_is_refused_and_leaves_nothing(tmp_path, name):
    folder = write_tiny_model(tmp_path / "model")
    (folder / name).write_text("{")
    with pytest.raises(EmbeddingError, match="trial" if name == "tokenizer.json" else name):
        open_tiny(folder)
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [".lock"]
    (folder / name).unlink()
    with pytest.raises(EmbeddingError, match=name):
        open_tiny(folder)


def test_a_damaged_build_says_how_to_make_it_anew(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    embedder = open_tiny(folder)
    next((tmp_path / "cache").rglob("weights.bin")).unlink()
    with pytest.raises(EmbeddingError, match="quaid doctor --fetch"):
        embedder.embed(["tea"])
    fetch_weights(EmbeddingSettings(model=str(folder)), force=True)
    assert open_tiny(folder).embed(["tea"]).shape == (1, HIDDEN)


def test_warming_from_many_threads_loads_once_and_embedding_waits_for_it(tmp_path):
    embedder = open_tiny(write_tiny_model(tmp_path / "model"))
    expected = open_tiny(tmp_path / "model").embed(TEXTS)
    results = []

    def work():
        embedder.warm()
        results.append(embedder.embed(TEXTS))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(np.abs(result - expected).max() < 1e-5 for result in results)


def test_numpy_may_be_imported_while_the_model_is_warming(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    fetch_weights(EmbeddingSettings(model=str(folder)))
    code = (
        "import sys, time; from quaid.settings import EmbeddingSettings; from quaid.embed import open_embedder\n"
        f"embedder = open_embedder(EmbeddingSettings(model={str(folder)!r})); embedder.warm()\n"
        "time.sleep(float(sys.argv[1])); import numpy; import numpy.linalg\n"
        "assert embedder.embed_query('tea').shape == (32,)"
    )
    for delay_s in ("0", "0.01", "0.03"):
        subprocess.run([sys.executable, "-c", code, delay_s], check=True, env=_environ())


def test_provider_none_has_no_embedder():
    assert open_embedder(EmbeddingSettings(provider="none")) is None


def test_opening_imports_nothing_heavy(tmp_path):
    folder = write_tiny_model(tmp_path / "model")
    fetch_weights(EmbeddingSettings(model=str(folder)))
    code = (
        "import sys; from quaid.settings import EmbeddingSettings; from quaid.embed import open_embedder\n"
        f"embedder = open_embedder(EmbeddingSettings(model={str(folder)!r}))\n"
        "assert embedder.dimension and embedder.fingerprint\n"
        "print([name for name in ('numpy', 'onnxruntime', 'tokenizers', 'onnx', 'httpx', 'apsw', 'tenacity',"
        " 'platformdirs', 'filelock', 'tempfile', 'concurrent.futures') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environ())
    assert answer.stdout.strip() == "[]"


def _environ():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture(scope="session")
def minilm():
    settings = EmbeddingSettings()
    try:
        if os.environ.get("QUAID_TEST_FETCH") == "1":
            fetch_weights(settings)
        return open_embedder(settings)
    except WeightsMissingError:
        pytest.skip("the weights of all-MiniLM-L6-v2 are not in the cache folder (QUAID_TEST_FETCH=1 fetches them)")


def test_minilm_knows_what_is_alike(minilm):
    fact = "Maya takes oat milk in her coffee."
    others = ["Maya likes her coffee with oat milk.", "Maya drinks tea with milk.", "The server runs on port 8080."]
    same, near, far = minilm.embed(others) @ minilm.embed([fact])[0]
    assert same > 0.9 > near > 0.4 > 0.2 > far
    assert minilm.embed_query("What does Maya drink?") @ minilm.embed([fact])[0] > 0.5
    assert minilm.dimension == 384
    assert minilm.duplicate_similarity == 0.97


def test_a_plain_text_has_the_pieces_that_the_tokenizer_gives(minilm):
    chance, plain = random.Random(3), PlainTokenizer.open(minilm._build.folder)
    words = [
        "Maya",
        "unbelievable",
        "2024-05-01",
        "don't",
        "C++",
        "e.g.",
        "~/quaid",
        "antidisestablishmentarianism",
        "x" * 101,
    ]
    signs = [chr(code) for code in range(32, 127) if chr(code) != "["]
    library = minilm._open_tokenizer()
    for length in (*range(40), 300):
        text = " ".join(chance.choices(words, k=length)) + "".join(chance.choices(signs, k=20))
        assert plain.encode(text, 256) == library.encode(text).ids, text


def test_the_first_question_of_a_process_opens_no_tokenizer_and_gets_the_same_vector(minilm):
    asked = ["what milk does Maya take?", "", "Where's (the) 7th #entry-of_2024 & c:\\x?", "[SEP] a", "早い"]
    expected = minilm.embed(asked)
    for text, vector in zip(asked, expected, strict=True):
        fresh = open_build(minilm._build)
        assert np.abs(fresh.embed_query(text) - vector).max() < 1e-6
        assert (fresh._encode is None) == (text in asked[:3])


def test_minilm_vectors_do_not_depend_on_the_batch(minilm):
    texts = [f"Fact {i}: " + "Maya walked the dog in the park. " * (i % 9) for i in range(40)]
    together = minilm.embed(texts)
    alone = np.array([minilm.embed([text])[0] for text in texts])
    assert np.abs(together - alone).max() < 1e-5
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_minilm_equals_a_plain_numpy_forward_pass(minilm):
    exact = EmbeddingSettings(precision="fp32")
    fetch_weights(exact)  # the weights are there: this only converts them
    minilm = open_embedder(exact)
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    from quaid.embed.weights import cache_folder

    source = cache_folder() / "models" / "all-MiniLM-L6-v2" / "source"
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.no_padding()
    weights = load_file(source / "model.safetensors")
    text = "Maya moved from Lisbon to Porto in 2024, and her café résumé went with her."
    expected = reference(weights, tokenizer.encode(text).ids, 12, 1e-12, "mean")
    assert np.abs(minilm.embed([text])[0] - expected).max() < 1e-5
