"""A model packed in 4 bits, with its vocabulary in the same file, and a static one: read, run and compared."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from embed_tiny import HEADS, HIDDEN, LAYERS, POSITIONS, WIDE, random_weights, reference
from hypothesis import given
from hypothesis import strategies as st

from quaid.embed.convert import BLOCK, PackedModel, convert
from quaid.embed.local import (
    LocalEmbedder,
    StaticEmbedder,
    UnigramTokenizer,
    find_centre,
    normalise,
    remove_centre,
    write_vocabulary,
)
from quaid.embed.weights import PACKED_FILE, Build, Description
from quaid.errors import EmbeddingError

MARKS = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [*MARKS, *"▁ab猫が", "▁a", "ab", "▁ab", "▁q", "猫が", "q", ":", "▁query", "▁passage", "<mask>"]
SCORES = [0, 0, 0, 0, *[-8.0] * 5, -4, -4.5, -4.25, -6, -5, -9, -6, -7, -7, 0]
NAMES = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}
SHORT = {
    "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v", "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln", "intermediate.dense": "fi", "output.dense": "fo", "output.LayerNorm": "oln",
}  # fmt: skip


def pack(weight):
    """Blocks of 4 bits as e5.c reads them, and the weights that these are."""
    blocks = weight.reshape(-1, BLOCK)
    scales = (np.abs(blocks).max(1) / 7).astype("<f2")
    bits = np.clip(np.rint(blocks / scales[:, None].astype("f4")) + 8, 0, 15).astype(np.uint8)
    packed = np.concatenate([scales[:, None].view(np.uint8), bits[:, :16] | (bits[:, 16:] << 4)], axis=1)
    return packed.tobytes(), ((bits.astype("f4") - 8) * scales[:, None].astype("f4")).reshape(weight.shape)


def write_packed(path):
    """A packed model of random weights at `path`; return the weights that it holds."""
    weights = random_weights(3)
    weights["embeddings.word_embeddings.weight"] = (
        np.random.default_rng(1).normal(0, 0.3, (len(PIECES), HIDDEN)).astype("f4")
    )
    names = dict(NAMES)
    for layer in range(LAYERS):
        for part, short in SHORT.items():
            for end in ("weight", "bias"):
                names[f"encoder.layer.{layer}.{part}.{end}"] = f"l{layer}.{short}.{end[0]}"
    text = "".join(PIECES).encode()
    bounds = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)])
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, LAYERS, HEADS, WIDE, len(PIECES), POSITIONS, 2, 1e-12, BLOCK)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(text)) + bounds.astype("<u4").tobytes()
    head += np.array(SCORES, "<f4").tobytes() + text + struct.pack("<iI", 0, 0)
    stored = {}
    for name, weight in weights.items():
        is_packed = weight.ndim == 2 and ("word" in name or "encoder" in name)
        data, weights[name] = pack(weight) if is_packed else (weight.astype("<f4").tobytes(), weight)
        stored[names[name]] = (is_packed, weight.size, data)
    place = len(head) + 4 + sum(2 + len(name) + 21 for name in stored)
    directory = struct.pack("<i", len(stored))
    for name, (is_packed, size, data) in stored.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", is_packed, size, place, len(data))
        place += len(data)
    path.write_bytes(head + directory + b"".join(data for _, _, data in stored.values()))
    return weights


@pytest.fixture
def source(tmp_path):
    """A folder as it is fetched, and the weights in it."""
    folder = tmp_path / "source"
    folder.mkdir()
    weights = write_packed(folder / PACKED_FILE)
    config = {
        "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "max_position_embeddings": POSITIONS, "layer_norm_eps": 1e-12,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    return folder, weights


def opened(folder, description):
    return LocalEmbedder(Build(folder, description, 1.0, 1.0))


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.99999), ("int8", 0.97)])
def test_a_packed_model_gives_the_vectors_of_the_weights_in_it(source, tmp_path, precision, least):
    folder, weights = source
    embedder = opened(tmp_path / "build", convert(folder, tmp_path / "build", precision))
    tokens = UnigramTokenizer(tmp_path / "build").encode
    for text in ("ab", "猫が a b ab", "a" * 100):
        ids = tokens(f"passage: {text}", POSITIONS)
        assert embedder.embed([text])[0] @ reference(weights, ids, HEADS, 1e-12, "mean") > least
        asked = reference(weights, tokens(f"query: {text}", POSITIONS), HEADS, 1e-12, "mean")
        assert embedder.embed_query(text) @ asked > least


def test_a_centred_model_gives_vectors_without_their_language_and_has_a_fingerprint_of_its_own(source, tmp_path):
    folder, _ = source
    plain = convert(folder, tmp_path / "plain", "fp32")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "centred": True}))
    centred = convert(folder, tmp_path / "centred", "fp32")
    assert plain.fingerprint != centred.fingerprint
    of_texts, of_questions, *directions = np.load(tmp_path / "centred" / "languages.npy")
    whole, without = opened(tmp_path / "plain", plain), opened(tmp_path / "centred", centred)
    for mean, before, after in (
        (of_texts, whole.embed(["猫が a"])[0], without.embed(["猫が a"])[0]),
        (of_questions, whole.embed_query("ab"), without.embed_query("ab")),
    ):
        wanted = before - mean
        for direction in directions:
            wanted -= (wanted @ direction) * direction
        assert np.allclose(after, wanted / np.linalg.norm(wanted), atol=1e-5)


def test_what_is_said_in_several_languages_has_one_vector_where_only_the_language_differs():
    rng = np.random.default_rng(5)
    said, differences = rng.normal(0, 1, (4, HIDDEN)), rng.normal(0, 1, (3, HIDDEN))

    def embed(sentences):
        languages = rng.normal(0, 1, (len(sentences) // len(said), 1, 3)) @ differences
        return (languages + said).reshape(-1, HIDDEN)

    centre = find_centre(embed(range(40)).reshape(10, *said.shape), embed(range(40)))
    first, *others = remove_centre(embed(range(12)), centre, are_questions=False).reshape(3, *said.shape)
    for other in others:
        assert np.allclose(first, other, atol=1e-6)


@pytest.mark.parametrize("damage", [lambda data: b"E5S2" + data[4:], lambda data: data[:300], lambda _: b"E5S1"])
def test_a_damaged_packed_model_is_refused_by_name(source, tmp_path, damage):
    folder, _ = source
    (folder / PACKED_FILE).write_bytes(damage((folder / PACKED_FILE).read_bytes()))
    with pytest.raises(EmbeddingError, match=PACKED_FILE):
        convert(folder, tmp_path / "build", "fp32")
    assert not (tmp_path / "build").exists()


def test_the_vocabulary_is_read_back(source):
    model = PackedModel(source[0] / PACKED_FILE)
    assert model.pieces == PIECES
    assert [*model.scores] == SCORES


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    write_vocabulary(folder, PIECES, SCORES)
    return UnigramTokenizer(folder)


@given(st.text(alphabet="abq猫が :x\t́", max_size=20))
def test_a_text_is_split_as_the_tokenizers_library_splits_it(tokenizer, text):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    theirs = Tokenizer(models.Unigram(list(zip(PIECES, map(float, SCORES), strict=True)), unk_id=3))
    theirs.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("\t", " ")])
    theirs.pre_tokenizer = pre_tokenizers.Metaspace()
    ids = tokenizer.encode(text, 1000)
    clean = " ".join(text.split())
    if text and clean == text:  # of nothing, and of spaces in a row, they make other marks
        # They join unknown characters that stand side by side into one.
        assert [i for i in ids[1:-1] if i != 3] == [i for i in theirs.encode(text).ids if i != 3]
    assert (ids[0], ids[-1]) == (0, 2)


def test_a_text_is_normalised_as_the_model_was_taught():
    assert normalise("Ｆｕｌｌ\u3000width\u200bﬁne\x07  ①～") == "Full width fine 1～"


def test_marks_in_a_text_are_text(tokenizer):
    assert not {0, 1, 2} & set(tokenizer.encode("<s> a </s>", 100)[1:-1])


def test_a_long_text_is_cut_with_its_end_mark(tokenizer):
    ids = tokenizer.encode("ab " * 500, 16)
    assert (len(ids), ids[0], ids[-1]) == (16, 0, 2)


def test_a_static_model_gives_the_mean_of_its_tokens_vectors(tmp_path):
    from embed_tiny import write_tokenizer
    from safetensors.numpy import save_file

    source = tmp_path / "source"
    source.mkdir()
    write_tokenizer(source / "tokenizer.json")
    table = np.random.default_rng(5).normal(size=(30, 8)).astype("f4")
    save_file({"embeddings": table}, source / "model.safetensors")
    (source / "config.json").write_text(json.dumps({"model_type": "model2vec", "hidden_dim": 8}))
    description = convert(source, tmp_path / "build", "int8")
    embedder = StaticEmbedder(Build(tmp_path / "build", description, 1.0, 1.0))
    vectors = embedder.embed(["maya likes tea", "unheard of", "猫が好き", ""])
    wanted = table[[5, 6, 13]].mean(0)
    assert np.allclose(vectors[0], wanted / np.linalg.norm(wanted), atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(vectors[2], embedder.embed_query("猫が好き"))
    assert not np.allclose(vectors[1], vectors[2])  # what is unknown is not the same
    assert embedder.embed_query("tea") @ embedder.embed(["tea"])[0] == pytest.approx(1)
    assert embedder.embed([]).shape == (0, 8)
    assert isinstance(description, Description)
    assert (description.kind, description.dimension) == ("static", 8)
