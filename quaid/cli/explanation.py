"""`--explain`: how a question was understood, its stages, the evidence for each hit, and what was left out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from quaid.cli.recall_output import INDENT, render_hits
from quaid.cli.terminal import (
    aligned,
    clipped,
    draw_bar,
    has_terminal,
    line_width,
    milliseconds,
    paragraphs,
    section,
    styled,
)
from quaid.model import Hit, Recall
from quaid.recall.trace import MIN_SHOWN, group_left_out, list_degraded, split_score
from quaid.text.quoting import short_id

FILLS = (("█", "cyan"), ("▓", "green"), ("▒", "yellow"), ("░", "dim"))
"""The bars of the strongest kinds of evidence, told apart without colour too."""
REST = "·"
SCORE_WIDTH = 60
TIME_WIDTH = 14
MAX_AGAINST = 2
MAX_CUT = 10
"""Named for each reason; --json has more."""
_INTO = "candidates"
_OUT_OF = ("left", "found", "shown", "hits", "grades", "candidates")
_IN_LINE = ("fetch", "evidence", "score", "choose", "answer")
"""Stages that pass their output on; channels start from the question."""

Trace = Mapping[str, Any]


def render_explanation(found: Recall) -> str:
    """The whole explanation. On a terminal the hits are part of it, in a pipe they stand before it."""
    trace: Trace = found.trace
    if has_terminal():
        heads = [*render_hits(found)]
    else:
        heads = [f"{hit.score:.2f}  {clipped(f'{hit.id}: {hit.text}', _hit_width())}" for hit in found.hits]
    best = max((1.0, *(hit.score for hit in found.hits)))
    hits = [f"{head}\n{draw_evidence(hit, best)}" for head, hit in zip(heads, found.hits, strict=True)]
    ending = {
        "in doubt": found.doubt or "no",
        "missing": " · ".join(list_degraded(found.degraded, found.trace)) or "nothing",
        "took": milliseconds(found.took_ms),
    }
    answer = [
        row
        for name, text in ending.items()
        for row in zip_longest([name], textwrap.wrap(text, line_width() - 12, break_on_hyphens=False), fillvalue="")
    ]
    return paragraphs(
        section("Question", _question(trace)),
        section("Road", _stage_rows(trace.get("stages", ()), found.took_ms)),
        *([styled("Hits", "bold"), *hits] if hits else []),
        section("Left out", list_left_out(trace)),
        section("Answer", answer),
    )


def _hit_width() -> int:
    return line_width() - len(INDENT)


# -- the question ----------------------------------------------------------------------------------------------------


def _question(trace: Trace) -> Iterator[tuple[str, str]]:
    read = [stage for stage in trace.get("stages", ()) if stage["stage"] == "query"]
    told = {**trace, **(read[0] if read else {})}
    width = line_width() - 12
    yield "asks for", str(told.get("intent", "general"))
    yield "words", clipped(" ".join(told.get("words", ())), width) or "none worth searching"
    for name in ("names", "dates", "phrases"):
        if told.get(name):
            yield name, clipped(", ".join(map(str, told[name])), width)


# -- the stages ------------------------------------------------------------------------------------------------------


def _stage_rows(stages: Sequence[Trace], took_ms: float) -> list[tuple[str, ...]]:
    """One row a stage: its name, its time in figures and as a bar, how many it was given and how many it left."""
    slowest = max((stage["took_ms"] for stage in stages), default=0.0)
    rows: list[tuple[str, ...]] = []
    before: int | None = None
    for stage in stages:
        out = next((name for name in _OUT_OF if isinstance(stage.get(name), int)), None)
        into = stage.get(_INTO) if out != _INTO else None
        if stage["stage"] in _IN_LINE and out:
            into = before if into is None and stage["stage"] != _IN_LINE[0] else into
            before = stage[out]
        flow = (f"{into:,}" if into is not None else "", "→" if out else "", f"{stage[out]:,}" if out else "")
        time = draw_bar(stage["took_ms"], slowest, TIME_WIDTH)
        rows.append((stage["stage"].replace("_", " "), milliseconds(stage["took_ms"]), time, *flow, _noted(stage, out)))
    rows.append(("all", milliseconds(took_ms), "", "", "", "", "channels work side by side"))
    return aligned(rows, right=(1, 3, 5))


def _noted(stage: Trace, out: str | None) -> str:
    """The rest of what the trace holds of a stage."""
    known = {"stage", "took_ms", "problem", out, _INTO}
    if stage["stage"] != "second_pass":
        known |= {"words", "names", "named", "intent", "dates", "phrases"}
    said = {name: value for name, value in stage.items() if name not in known and value not in (0, "", [], None)}
    shown = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in said.items()
    ]
    return clipped(", ".join(shown), line_width() - 56)


# -- the hits --------------------------------------------------------------------------------------------------------


def draw_evidence(hit: Hit, best: float) -> str:
    """Return the score as a bar, what it is made of, and the channels that found the hit; `best` is the best score."""
    parts = split_score(hit)
    rows = [_draw_score(hit.score / best * min(SCORE_WIDTH, _hit_width()), parts), *_legend(parts)]
    channels = [
        f"{name} {found.rank}. ({found.score:.2f})" if found.rank else name.replace("_", " ")
        for name, found in hit.channels.items()
    ]
    rows += [f"found by {', '.join(channels)}"] if channels else []
    rows += [clipped(f"via {', then '.join(hit.via)}", _hit_width())] if hit.via else []
    return "\n".join(f"{INDENT}{row}" for row in rows)


def _draw_score(length: float, parts: Mapping[str, float]) -> str:
    """A bar of `length` characters, split as the evidence is: the strongest kinds in a fill of their own."""
    given = [value for value in parts.values() if value > 0] or [1.0]
    shares = [*given[: len(FILLS)], sum(given[len(FILLS) :])]
    drawn, end, total = "", 0.0, sum(given)
    for (fill, style), share in zip_longest(FILLS, shares, fillvalue=(REST, "dim")):
        if not isinstance(share, float):
            break
        begin, end = end, end + share / total * length
        drawn += styled(fill * (round(end) - round(begin)), style)
    return drawn


def _legend(parts: Mapping[str, float]) -> Iterator[str]:
    """Yield lines that tell which fill is which evidence, and what speaks against the hit."""
    speaks_for = [(name, value) for name, value in parts.items() if value >= MIN_SHOWN]
    against = [(name, -value) for name, value in parts.items() if value <= -MIN_SHOWN]
    rest = speaks_for[len(FILLS) :]
    items = [(*fill, *part) for fill, part in zip(FILLS, speaks_for, strict=False)]
    items += [(REST, "dim", f"{len(rest)} more", sum(value for _, value in rest))] if rest else []
    items += [("-", "red", *part) for part in against[: -MAX_AGAINST - 1 : -1]]
    line, used = "", 0
    for mark, style, name, value in items:
        said = f"{name.replace('_', ' ')} {value:.2f}".replace(" 0.", " .")
        if used and used + len(said) + 2 > _hit_width():
            yield line
            line, used = "", 0
        line += ("  " if used else "") + f"{styled(mark, style)} {said}"
        used += len(said) + 4
    if line:
        yield line


# -- the rest --------------------------------------------------------------------------------------------------------


def list_left_out(trace: Trace) -> Iterator[tuple[str, ...]]:
    """Yield the hits that were found and are not shown, by reason, the best of each named."""
    for why, scores in group_left_out(trace).items():
        named = [
            short_id(hit_id) if score is None else f"{score:.2f} {short_id(hit_id)}" for hit_id, score in scores.items()
        ]
        yield (f"{len(named):,} {why}",)
        yield (f"  {clipped(', '.join(named[:MAX_CUT]), line_width() - 4)}",)
    if behind := sum(stage.get("behind", 0) for stage in trace.get("stages", ())):
        yield (f"{behind:,} behind the last that is shown; a higher --limit shows more",)
