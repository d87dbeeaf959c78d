"""The languages that a vault is in, as far as the choice of an embedding model asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quaid.embed import AUTO
from quaid.embed.weights import MULTILINGUAL_MODEL
from quaid.text.language import language

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.settings import EmbeddingSettings

SHARE = 0.1
"""Of the texts that tell, from which on another model is proposed."""
_SAMPLE = 1_000
_LEAST = 3
"""Texts in other languages: one quotation is not a language."""
STEP = f"quaid config embedding.model {MULTILINGUAL_MODEL}"


def propose_model(connection: IndexConnection, settings: EmbeddingSettings) -> str:
    """Return the sentence that proposes the multilingual model; empty where a model was chosen or notes are English."""
    if settings.provider != "local" or settings.model != AUTO:
        return ""
    foreign, told = count_languages(connection)
    if foreign < _LEAST or foreign < SHARE * told:
        return ""
    return (
        f"{foreign / told:.0%} of the notes are not in English, and the embedding model knows English only; "
        "another finds them by meaning too (a download of 75 MB; meanwhile the present one answers)"
    )


def count_languages(connection: IndexConnection) -> tuple[int, int]:
    """Return how many chunks of an even sample are not English, and how many tell either way."""
    newest = connection.execute("SELECT max(chunk_id) FROM chunks").fetchone()
    step = max(1, int((newest and newest[0]) or 0) // _SAMPLE)
    texts = connection.execute("SELECT text FROM chunks WHERE chunk_id % ? = 0 LIMIT ?", (step, 2 * _SAMPLE))
    told = [known for (text,) in texts if (known := language(str(text))) is not None]
    return len(told) - told.count("en"), len(told)
