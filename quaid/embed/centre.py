"""What a multilingual model's vectors have of their language, and of nothing.

The cosines of multilingual-e5-small lie between .7 and .9 whatever is compared, as all its vectors share one large
part; and a question is more like any text of its own language than like its answer in another. Both parts show where
the same text is in many languages: their mean is what all vectors share, of questions another than of texts, and
the directions in which the languages differ most are the language and not the content. Without these parts the
cosines spread around zero as those of other models do, whatever languages are compared, so that one scale serves
thresholds, diversity and duplicates.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CENTRE_FILE = "languages.npy"
_PARALLEL = Path(__file__).with_name("parallel.tsv")
"""A language a line: its code and what all of them say."""
_DIRECTIONS = 8
"""Any number from 4 to 12 does nearly as well (docs/explanation/recall.md)."""
_TEXTS, _QUESTIONS = 0, 1


def read_parallel() -> list[list[str]]:
    """Return the same sentences in many languages, a list for each."""
    return [line.split("\t")[1:] for line in _PARALLEL.read_text(encoding="utf-8").splitlines()]


def find_centre(texts: npt.NDArray[np.float32], questions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the parts, float32 [2 + directions, dimension]: the means of texts and of questions, then the directions
    of languages, which are orthonormal. The vectors are those of the parallel sentences, [languages, sentences,
    dimension] and [any number, dimension].
    """
    import numpy as np

    mean = texts.reshape(-1, texts.shape[-1]).mean(axis=0)
    *_, directions = np.linalg.svd(texts.mean(axis=1) - mean, full_matrices=False)
    return np.vstack([mean, questions.mean(axis=0), directions[:_DIRECTIONS]])


def remove_centre(
    vectors: npt.NDArray[np.float32], centre: npt.NDArray[np.float32], *, of_questions: bool
) -> npt.NDArray[np.float32]:
    """Return unit vectors without the parts that `find_centre` has found; they are not of unit length any more."""
    centred: npt.NDArray[np.float32] = vectors - centre[_QUESTIONS if of_questions else _TEXTS]
    directions = centre[_QUESTIONS + 1 :]
    centred -= (centred @ directions.T) @ directions
    return centred
