"""The kinds of decisions that others know, and the evidence that a decision about a fact rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quaid.index.documents import Document
    from quaid.model import Note

CONFLICT = "conflict"
"""The kind of a question which of two facts is true."""
DISPUTE = "dispute"
"""The kind of a question whether to forget a fact that its owner says is wrong."""
SET_ASIDE = "set_aside"
"""The kind of an item that no model could judge: it is held back, changes nothing and is not judged again."""


def fact_evidence(fact: Document | Note) -> str:
    """Return the evidence of a judgement of a fact: what it says and when it holds, not what each run changes."""
    return "\n".join([fact.id, fact.text_hash or "", fact.valid_from or "", fact.valid_until or ""])
