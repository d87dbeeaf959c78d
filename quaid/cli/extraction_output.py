"""The output that `extract` and `analyze` share: facts that were stored, what was left out, what the model took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quaid.cli.change_output import warn_left, warn_redacted
from quaid.cli.invocation import fields
from quaid.cli.terminal import clipped, known, line_width, short

if TYPE_CHECKING:
    from quaid.capture.extractor import ExtractResult
    from quaid.capture.files.analyzer import AnalyzeResult
    from quaid.cli.invocation import Invocation

MAX_SHOWN = 10
_MARGIN = 12
"""The columns before a line."""


def shape_of_learned(done: ExtractResult | AnalyzeResult) -> dict[str, object]:
    """The fields that both answers have. Ids and paths of facts that a dry run would make do not exist yet."""
    facts = []
    for fact in done.facts:
        exists = not done.is_dry_run or fact.outcome != "created"
        place = fields(fact, "id", "path") if exists else {"id": None, "path": None}
        facts.append({**place, "text": fact.text, "outcome": fact.outcome})
    return {
        "dry_run": done.is_dry_run,
        "facts": facts,
        "entities": done.entities,
        "edges": done.edges,
        "left_out": [{"text": item.text, "reason": item.reason} for item in done.left_out],
        "model": done.model,
        "prompt": done.prompt,
        "usage": fields(done.usage, "calls", "input_tokens", "output_tokens", "cached_tokens", "cost_usd"),
        **fields(done, "degraded", "commit", "left"),
    }


def rows_of_learned(done: ExtractResult | AnalyzeResult) -> list[tuple[str, str]]:
    """Rows for a person: what was not kept, new names, what the model took, the commit."""
    rows = listed("not kept", [f"{item.text}: {item.reason}" for item in done.left_out], MAX_SHOWN)
    rows += listed("names", [", ".join(done.entities)] if done.entities else [])
    if done.model and done.usage.calls:
        cost = f", ${done.usage.cost_usd:.4f}" if done.usage.cost_usd else ""
        rows.append(("model", f"{done.model}, {done.usage.tokens:,} tokens{cost}"))
    return rows + known(("commit", short(done.commit)))


def listed(title: str, lines: Sequence[str], most: int | None = None) -> list[tuple[str, str]]:
    """Rows of one line each below `title`: `most` of them, and how many more there are."""
    shown = lines if most is None else lines[:most]
    width = line_width() - _MARGIN
    rows = [("" if number else title, clipped(line, width)) for number, line in enumerate(shown)]
    return rows + ([("", f"and {len(lines) - len(shown)} more")] if len(lines) > len(shown) else [])


def remark_on_learned(invocation: Invocation, done: ExtractResult | AnalyzeResult, redacted: Sequence[str]) -> None:
    """Say what the owner should know besides the answer."""
    warn_redacted(invocation, redacted)
    if "relations" in done.degraded:
        invocation.notify("New relations were stored as they were said: the fast model did not answer.")
    warn_left(invocation, done.left)
