"""The description of a converted model: the small JSON beside the graph, which is read without loading it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

CONVERTER_VERSION = 2
GRAPH_FILE = "model.onnx"
GRAPH_WEIGHTS_FILE = "weights.bin"
TOKENIZER_FILE = "tokenizer.json"
WEIGHTS_FILE = "model.safetensors"
PACKED_FILE = "e5-small-q4.bin"
"""A model in one file of 4-bit weights, with its vocabulary; see packed.py."""
VECTORS_FILE = "vectors.npy"
"""The table of a static model."""
DESCRIPTION_FILE = "model.json"

Pooling = Literal["mean", "cls", "max"]
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
    """Whether what its vectors have of their language, and of nothing, is taken from each; see centre.py."""
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
    duplicate_similarity: float
    relevant_similarity: float


def read_description(folder: Path) -> Description | None:
    """Return the description in `folder`; None without one that this version wrote."""
    try:
        fields = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        return Description(**fields)
    except (OSError, ValueError, TypeError):
        return None


def write_description(folder: Path, description: Description) -> None:
    """Write `description` into `folder`, as the last file of a build; whoever reads it meanwhile sees a whole one."""
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
