"""The tokenizer of XLM-RoBERTa: SentencePiece's unigram model, read in 50 ms.

The tokenizers library takes 0.8 s and 300 MB to read this vocabulary of 250,000 pieces, which a process with one
question waits for.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

PIECES_FILE = "pieces.txt"
SCORES_FILE = "scores.bin"
_SPACE = "▁"
"""U+2581, which stands for a space in a piece."""
_START, _END, _UNKNOWN = 0, 2, 3
_SPECIAL = 4
"""The first pieces are marks of the model, which no text contains."""
_UNKNOWN_PENALTY = 10.0
"""The score of an unknown character under that of the worst piece, as SentencePiece has it."""
_WORDS_KEPT = 20_000
_LEFT_OUT = dict.fromkeys((*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F))
_SPACES = dict.fromkeys(map(ord, "\t\n\f\r\u1680\u200b\u200c\u200d\u200e\u200f\u2028\u2029\ufeff\ufffd▁"), " ")
_NORMALISED = re.compile("[^\uff5e]+")
"""The normaliser of SentencePiece, nmt_nfkc, spares the full-width tilde."""


class UnigramTokenizer:
    """Splits a text into the pieces that are most probable together. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        pieces = (folder / PIECES_FILE).read_text(encoding="utf-8").split("\n")
        scores = np.fromfile(folder / SCORES_FILE, "<f4")
        if len(pieces) != len(scores):
            raise ValueError(f"{PIECES_FILE} has {len(pieces)} pieces and {SCORES_FILE} {len(scores)} scores")
        self._ids = dict(zip(pieces[_SPECIAL:-1], range(_SPECIAL, len(pieces) - 1), strict=True))
        self._scores = scores.tolist()
        self._longest = max(map(len, self._ids))
        self._unknown_score = float(scores.min()) - _UNKNOWN_PENALTY
        self._split = lru_cache(_WORDS_KEPT)(self._split_word)

    def encode(self, text: str, limit: int) -> list[int]:
        """Return the pieces of `text` between the marks of start and end, `limit` with these at most."""
        ids = [_START]
        for word in normalise(text).split(" "):
            ids += self._split(_SPACE + word)
            if len(ids) >= limit:
                break
        return [*ids[: limit - 1], _END]

    def _split_word(self, word: str) -> tuple[int, ...]:
        """Return the pieces of `word` by Viterbi's algorithm: no piece reaches over a space."""
        end = len(word)
        best = [0.0] + [float("-inf")] * end
        last: list[tuple[int, int]] = [(0, 0)] * (end + 1)  # (where the piece begins, its id)
        ids, scores = self._ids, self._scores
        for start in range(end):
            so_far = best[start]
            for stop in range(start + 1, min(end, start + self._longest) + 1):
                piece = ids.get(word[start:stop])
                if piece is not None and so_far + scores[piece] > best[stop]:
                    best[stop] = so_far + scores[piece]
                    last[stop] = start, piece
            if so_far + self._unknown_score > best[start + 1]:
                best[start + 1] = so_far + self._unknown_score
                last[start + 1] = start, _UNKNOWN
        found = []
        while end:
            end, piece = last[end]
            found.append(piece)
        return tuple(reversed(found))


def normalise(text: str) -> str:
    """Return `text` as the model was taught: NFKC, without control characters, every space one space."""
    spaced = text.translate(_SPACES).translate(_LEFT_OUT)
    composed = _NORMALISED.sub(lambda run: unicodedata.normalize("NFKC", run[0]), spaced)
    return re.sub(" +", " ", composed).removeprefix(" ")


def write_vocabulary(folder: Path, pieces: Iterable[str], scores: npt.ArrayLike) -> None:
    """Write the files that a tokenizer reads."""
    import numpy as np

    (folder / PIECES_FILE).write_text("\n".join(pieces), encoding="utf-8")
    np.asarray(scores, "<f4").tofile(folder / SCORES_FILE)
