"""Relations that neither tables nor graph know: what a model is asked about them, and what counts of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quaid.capture import relations
from quaid.errors import BadInputError
from quaid.model import Edge

PROMPT = "relations"
LIMIT_S = 20.0
"""No answer by then, and the relations stay as they were said."""
_MOST_ASKED = 60
_MOST_KNOWN = 200


@dataclass(frozen=True, slots=True)
class Question:
    """`asked` are relations no one knows, each with an edge as its example; an answer may name those `allowed`."""

    asked: tuple[Edge, ...]
    allowed: frozenset[str]
    inputs: Mapping[str, str]

    def read(self, value: Mapping[str, Any]) -> dict[str, tuple[str, bool]]:
        """Relation -> (the known one that says the same, whether subject and object change places)."""
        renamed: dict[str, tuple[str, bool]] = {}
        for choice in value["edges"]:
            if choice["n"] > len(self.asked):
                continue
            edge = self.asked[choice["n"] - 1]
            try:
                named = relations.normalise_edge(Edge(edge.subject, choice["relation"], edge.object))
            except BadInputError:
                continue
            is_turned = named.subject == edge.object
            if named.relation in self.allowed and named.relation != edge.relation:
                renamed[edge.relation] = (named.relation, bool(choice["flipped"]) != is_turned)
        return renamed


def ask_about(edges: Sequence[Edge], in_use: Sequence[str]) -> Question | None:
    """The question about those of `edges` whose relation is new; `in_use` are the graph's, the most frequent first.

    None when all are known.
    """
    used = set(in_use)
    new: dict[str, Edge] = {}
    for edge in edges:
        if not relations.is_known(edge.relation) and edge.relation not in used:
            new.setdefault(edge.relation, edge)
    if not new:
        return None
    asked = tuple(new.values())[:_MOST_ASKED]
    known = tuple(dict.fromkeys((*sorted(relations.CANONICAL), *in_use)))[:_MOST_KNOWN]
    lines = [
        json.dumps({"n": n, "subject": edge.subject, "relation": edge.relation, "object": edge.object})
        for n, edge in enumerate(asked, 1)
    ]
    return Question(asked, frozenset(known), {"relations": ", ".join(known), "edges": "\n".join(lines)})
