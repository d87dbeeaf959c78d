"""Relations that neither tables nor graph know: what a model is asked about them, and what counts of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quaid.capture import relations
from quaid.errors import BadInputError, ModelError
from quaid.index import graph
from quaid.model import Edge, ModelUsage

if TYPE_CHECKING:
    from quaid.capture.extraction import Extraction
    from quaid.index.port import IndexConnection
    from quaid.llm import Models

PROMPT = "relations"
LIMIT_S = 20.0
"""No answer by then, and the relations stay as they were said."""
_MAX_ASKED = 60
_MAX_KNOWN = 200


@dataclass(frozen=True, slots=True)
class RelationNames:
    """Other names of relations (see `storing.plan_facts`), and the usage of asking for them."""

    renamed: Mapping[str, tuple[str, bool]] = field(default_factory=dict)
    usage: ModelUsage = field(default_factory=ModelUsage)
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationQuestion:
    """`asked` are unknown relations, each with an edge as its example; an answer may name those `allowed`."""

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


def name_relations(models: Models, found: Extraction, index: IndexConnection) -> RelationNames:
    """Relations that neither the tables nor the graph know get the name that the model finds for them; without an
    answer they keep their own, and `degraded` says so.
    """
    edges = [edge for fact in found.facts for edge in fact.edges]
    question = build_question(edges, graph.relations(index))
    if question is None:
        return RelationNames()
    try:
        prompt = models.prompt(PROMPT)
        answer = models.ask(prompt, question.inputs, deadline_s=LIMIT_S)
    except ModelError:
        return RelationNames(degraded=("relations",))
    return RelationNames(question.read(answer.value), answer.usage)


def build_question(edges: Sequence[Edge], in_use: Sequence[str]) -> RelationQuestion | None:
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
    asked = tuple(new.values())[:_MAX_ASKED]
    known = tuple(dict.fromkeys((*sorted(relations.CANONICAL), *in_use)))[:_MAX_KNOWN]
    lines = [
        json.dumps({"n": n, "subject": edge.subject, "relation": edge.relation, "object": edge.object})
        for n, edge in enumerate(asked, 1)
    ]
    return RelationQuestion(asked, frozenset(known), {"relations": ", ".join(known), "edges": "\n".join(lines)})
