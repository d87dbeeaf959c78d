"""The description of a converted model: the small JSON beside the graph, which is read without loading it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

CONVERTER_VERSION = 1
GRAPH_FILE = "model.onnx"
GRAPH_WEIGHTS_FILE = "weights.bin"
TOKENIZER_FILE = "tokenizer.json"
WEIGHTS_FILE = "model.safetensors"
DESCRIPTION_FILE = "model.json"

Pooling = Literal["mean", "cls", "max"]
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
    converter: int = CONVERTER_VERSION

    @property
    def fingerprint(self) -> str:
        """Is equal for two builds exactly when their vectors are comparable."""
        parts = (self.content[:16], self.precision, self.pooling, self.max_tokens, self.dimension)
        return f"local/{'/'.join(map(str, parts))}/v{self.converter}"


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
    """Write `description` into `folder`, as the last file of a build."""
    text = json.dumps(asdict(description), indent=2)
    (folder / DESCRIPTION_FILE).write_text(text, encoding="utf-8")


def stamp_of(weights: Path) -> str:
    """Return size and modification time of `weights` as one word."""
    status = weights.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"
