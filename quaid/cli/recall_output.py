"""Hits and what was degraded, as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from quaid.cli.terminal import styled, wrapped
from quaid.model import Hit, Recall
from quaid.text.quoting import describe, describe_rivals

if TYPE_CHECKING:
    from quaid.docs.search import DocSearchResult

MAX_SHOWN = 600
"""Characters of a hit that a terminal shows; `quaid get` has the rest, and a pipe gets all."""
INDENT = "      "
"""As wide as a score."""
_DEGRADED = {"vectors": "vectors: searched by words and graph only. See why with: quaid doctor"}


def render_hits(found: Recall) -> Iterator[str]:
    """Yield each hit as a person reads it: the text, where it comes from, and what speaks against it."""
    by_id = {hit.id: hit for hit in found.hits}
    for hit in found.hits:
        text = hit.text if len(hit.text) <= MAX_SHOWN else f"{hit.text[:MAX_SHOWN].rstrip()} …"
        lines = [f"{styled(f'{hit.score:.2f}', 'cyan')}  {wrapped(text, INDENT).removeprefix(INDENT)}"]
        lines.append(styled(wrapped(" · ".join([*describe(hit), hit.id]), INDENT), "dim"))
        marks = ["no longer true"] if hit.superseded else []
        marks += describe_rivals(hit, lambda other: _since(by_id.get(other)))
        lines += [f"{INDENT}{styled(f'! {mark}', 'yellow')}" for mark in marks]
        yield "\n".join(lines)


def list_degraded(found: Recall | DocSearchResult) -> list[str]:
    """One sentence for each thing that is missing, from the trace where it has one."""
    sentences = [str(sentence) for sentence in cast("list[object]", found.trace.get("degraded", []))]
    named = {sentence.split(":", 1)[0] for sentence in sentences}
    bare = [name for name in found.degraded if name not in named]
    problems = [stage["problem"] for stage in cast("list[Any]", found.trace.get("stages", [])) if "problem" in stage]
    known = {**_DEGRADED, "model": f"model: the order is not a model's. {' '.join(problems)}".rstrip()}
    return [known.get(name, name if ": " in name else f"degraded: {name}") for name in bare] + sentences


def _since(hit: Hit | None) -> str:
    """The day from which a hit holds, else the one on which it was said."""
    if hit is None:
        return ""
    if hit.valid_from:
        return f" (since {hit.valid_from[:10]})"
    return f" (said {hit.created[:10]})" if hit.created else ""
