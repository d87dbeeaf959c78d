"""Hits for people."""

from __future__ import annotations

from collections.abc import Iterator

from quaid.cli.terminal import styled, wrapped
from quaid.model import Hit, Recall
from quaid.text.quoting import describe, relate_rivals, short_id

MAX_SHOWN = 600
"""Characters of a hit that a terminal shows; `quaid get` has the rest, and a pipe gets all."""
INDENT = "      "
"""As wide as a score."""


def render_hits(found: Recall) -> Iterator[str]:
    """Yield each hit: its text, its source, and the facts that contradict it."""
    by_id = {hit.id: hit for hit in found.hits}
    for hit in found.hits:
        text = hit.text if len(hit.text) <= MAX_SHOWN else f"{hit.text[:MAX_SHOWN].rstrip()} …"
        lines = [f"{styled(f'{hit.score:.2f}', 'cyan')}  {wrapped(text, INDENT).removeprefix(INDENT)}"]
        lines.append(styled(wrapped(" · ".join([*describe(hit), hit.id]), INDENT), "dim"))
        marks = ["no longer true"] if hit.superseded else []
        rivals = relate_rivals(hit).items()
        marks += [f"{word} {short_id(other)}{_describe_date(by_id.get(other))}" for other, word in rivals]
        lines += [f"{INDENT}{styled(f'! {mark}', 'yellow')}" for mark in marks]
        yield "\n".join(lines)


def _describe_date(hit: Hit | None) -> str:
    if hit is None:
        return ""
    if hit.valid_from:
        return f" (since {hit.valid_from[:10]})"
    return f" (said {hit.created[:10]})" if hit.created else ""
