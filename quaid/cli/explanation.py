"""How an answer came about: `--explain` for a new one, `quaid recall --last` for the last one."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from quaid.cli import terminal as ui
from quaid.cli.invocation import Invocation
from quaid.errors import QuaidError
from quaid.local import recall_trail
from quaid.model import Hit, Recall
from quaid.recall.options import DEFENDED_BY
from quaid.recall.trace import MIN_SHOWN, group_left_out, list_degraded, split_score
from quaid.shapes import json_object
from quaid.text.quoting import short_id

FILLS = (("█", "cyan"), ("▓", "green"), ("▒", "yellow"), ("░", "dim"))
"""The bars of the strongest features, distinct without colour too."""
REST = "·"
SCORE_WIDTH = 60
TIME_WIDTH = 14
MAX_AGAINST = 2
MAX_LEFT_OUT = 10
"""Named for each reason; --json has more."""
OUTPUTS = ("left", "found", "shown", "hits", "grades", "candidates")
PIPELINE = ("fetch", "evidence", "score", "choose", "answer")
"""Stages that pass their output on; channels start from the question."""
CALLERS = {"hook": "before a prompt", "mcp": "asked by an agent", "cli": "asked here", "python": "asked by a program"}

Trace = Mapping[str, Any]


def render_explanation(found: Recall, hits: Sequence[str] = ()) -> str:
    """Return the whole explanation. It includes `hits` as a terminal shows them; a pipe has them before it, and gets a
    line for each.
    """
    trace: Trace = found.trace
    width = ui.line_width() - len(ui.INDENT)
    heads = hits or [f"{hit.score:.2f}  {ui.clipped(f'{hit.id}: {hit.text}', width)}" for hit in found.hits]
    answer = {
        "in doubt": found.doubt or "no",
        "missing": " · ".join(list_degraded(found.degraded, trace)) or "nothing",
        "took": ui.milliseconds(found.took_ms),
    }
    answer_rows = [
        row
        for name, text in answer.items()
        for row in zip_longest([name], textwrap.wrap(text, ui.line_width() - 12, break_on_hyphens=False), fillvalue="")
    ]
    query: Trace = next((stage for stage in trace.get("stages", ()) if stage["stage"] == "query"), {})
    parsed = {**trace, **query}
    asked = {"words": " ".join(parsed.get("words", ())) or "none worth searching"}
    asked |= {name: ", ".join(map(str, parsed[name])) for name in ("names", "dates", "phrases") if parsed.get(name)}
    asked_rows = [(name, ui.clipped(text, ui.line_width() - 12)) for name, text in asked.items()]
    used = {name for hit in found.hits for name in hit.evidence}
    defended = ((sets, ", ".join(name for name in names if name in used)) for sets, names in DEFENDED_BY.items())
    return ui.paragraphs(
        ui.section("Question", [("asks for", parsed.get("intent", "general")), *asked_rows]),
        ui.section("Road", _stage_rows(trace.get("stages", ()), found.took_ms), right=(1, 3, 5)),
        *_render_scores("Hits", heads, found.hits),
        ui.section("Defended by", [row for row in defended if row[1]]),
        ui.section("Left out", _left_out_rows(trace)),
        ui.section("Answer", answer_rows),
    )


def show_last(invocation: Invocation, session: str | None) -> None:
    """Show the last recall, or the last of `session`."""
    with invocation.open() as memory:
        last = recall_trail.read_last(memory.state, session, memory.owners)
        if last is None:
            is_off = memory.settings.recall.log == "off"
            of_session = f" of session {session}" if session else ""
            why = "recall.log is off. Keep some with: quaid config recall.log hashes"
            step = f"No recall{of_session} is known yet. Ask something: quaid recall QUERY"
            invocation.notify(why if is_off else step)
            return
        hits = []
        for hit_id, score, evidence in last.given:
            hit = Hit(hit_id, "", "(no longer there)", score, "", evidence=evidence)
            with suppress(QuaidError):  # the log stores no texts: it is shown with its text of today
                view = memory.get(hit_id)
                text, document = " ".join(view.text.split()), view.document
                hit = replace(hit, kind=document.kind, text=text, path=document.path)
            hits.append(hit)
    left_out = [{"id": each, "score": score, "why": why} for each, score, why in last.left_out]
    when = [
        ui.moment(last.at),
        CALLERS.get(last.door, last.door),
        *([f"session {last.session}"] if last.session else []),
    ]
    rows = {
        "when": ", ".join(when),
        "question": last.query or "(its words are not kept: recall.log)",
        "in doubt": last.doubt or "no",
        "missing": ", ".join(last.degraded) or "nothing",
        "took": ui.milliseconds(last.took_ms),
    }
    width = ui.line_width() - len(ui.INDENT)
    heads = [f"{ui.styled(f'{hit.score:.2f}', 'cyan')}  {ui.clipped(f'{hit.id}: {hit.text}', width)}" for hit in hits]
    text = ui.paragraphs(
        ui.section("Recall", rows.items()),
        *(_render_scores("Given", heads, hits) or [ui.styled("Nothing was given", "bold")]),
        ui.section("By themselves", ((hit.id, last.weighed[hit.id]) for hit in hits if hit.id in last.weighed)),
        ui.section("Left out", _left_out_rows({"cut": left_out})),
    )
    given = [json_object(hit, "id", "text", "score", "evidence") for hit in hits]
    invocation.respond(text, **json_object(last, without=("asker",), left_out=left_out, given=given))


def _stage_rows(stages: Sequence[Trace], took_ms: float) -> list[tuple[str, ...]]:
    """Return one row a stage: its name, its time in figures and as a bar, the sizes of its input and output."""
    slowest = max((stage["took_ms"] for stage in stages), default=0.0)
    rows: list[tuple[str, ...]] = []
    before: int | None = None
    for stage in stages:
        name = stage["stage"]
        out = next((each for each in OUTPUTS if isinstance(stage.get(each), int)), None)
        into = stage.get("candidates") if out != "candidates" else None
        if name in PIPELINE and out:
            into = before if into is None and name != PIPELINE[0] else into
            before = stage[out]
        flow = (f"{into:,}" if into is not None else "", "→" if out else "", f"{stage[out]:,}" if out else "")
        shown = {"stage", "took_ms", "problem", out, "candidates"}
        if name != "second_pass":
            shown |= {"words", "names", "named", "intent", "dates", "phrases"}
        rest = [
            f"{key} {', '.join(map(str, value)) if isinstance(value, list) else value}"
            for key, value in stage.items()
            if key not in shown and value not in (0, "", [], None)
        ]
        time = (ui.milliseconds(stage["took_ms"]), ui.draw_bar(stage["took_ms"], slowest, TIME_WIDTH))
        rows.append((name.replace("_", " "), *time, *flow, ui.clipped(", ".join(rest), ui.line_width() - 56)))
    rows.append(("all", ui.milliseconds(took_ms), "", "", "", "", "channels work side by side"))
    return rows


def _render_scores(title: str, heads: Sequence[str], hits: Sequence[Hit]) -> list[str]:
    """Return a heading and of each hit its head, its score as a bar, split by feature, and the channels that found it;
    nothing without hits.
    """
    best = max((1.0, *(hit.score for hit in hits)))
    width = ui.line_width() - len(ui.INDENT)
    shown: list[str] = []
    for head, hit in zip(heads, hits, strict=True):
        features = split_score(hit)
        given = [value for value in features.values() if value > 0] or [1.0]
        shares = [*given[: len(FILLS)], sum(given[len(FILLS) :])]
        length = hit.score / best * min(SCORE_WIDTH, width)
        bar, end, total = "", 0.0, sum(given)
        for (fill, style), share in zip([*FILLS, (REST, "dim")], shares, strict=False):
            begin, end = end, end + share / total * length
            bar += ui.styled(fill * (round(end) - round(begin)), style)
        channels = [
            f"{name} {found.rank}. ({found.score:.2f})" if found.rank else name.replace("_", " ")
            for name, found in hit.channels.items()
        ]
        rows = [bar, *_legend_rows(features, width)]
        rows += [f"found by {', '.join(channels)}"] if channels else []
        rows += [ui.clipped(f"via {', then '.join(hit.via)}", width)] if hit.via else []
        shown.append("\n".join([head, *(f"{ui.INDENT}{row}" for row in rows)]))
    return [ui.styled(title, "bold"), *shown] if shown else []


def _legend_rows(features: Mapping[str, float], width: int) -> Iterator[str]:
    """Yield lines that map fills to features and name what lowers the score."""
    raising = [(name, value) for name, value in features.items() if value >= MIN_SHOWN]
    lowering = [(name, -value) for name, value in features.items() if value <= -MIN_SHOWN]
    rest = raising[len(FILLS) :]
    items = [(*fill, *feature) for fill, feature in zip(FILLS, raising, strict=False)]
    items += [(REST, "dim", f"{len(rest)} more", sum(value for _, value in rest))] if rest else []
    items += [("-", "red", *feature) for feature in lowering[: -MAX_AGAINST - 1 : -1]]
    line, used = "", 0
    for mark, style, name, value in items:
        text = f"{name.replace('_', ' ')} {value:.2f}".replace(" 0.", " .")
        if used and used + len(text) + 2 > width:
            yield line
            line, used = "", 0
        line += ("  " if used else "") + f"{ui.styled(mark, style)} {text}"
        used += len(text) + 4
    if line:
        yield line


def _left_out_rows(trace: Trace) -> Iterator[tuple[str, ...]]:
    """Yield the hits that were found and are not shown, by reason, the best of each named."""
    for why, scores in group_left_out(trace).items():
        names = [
            short_id(hit_id) if score is None else f"{score:.2f} {short_id(hit_id)}" for hit_id, score in scores.items()
        ]
        yield (f"{len(names):,} {why}",)
        yield (f"  {ui.clipped(', '.join(names[:MAX_LEFT_OUT]), ui.line_width() - 4)}",)
    if behind := sum(stage.get("behind", 0) for stage in trace.get("stages", ())):
        yield (f"{behind:,} behind the last that is shown; a higher --limit shows more",)
