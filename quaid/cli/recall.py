"""`quaid recall` and `quaid search`."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, has_terminal, one_line, section, styled, wrapped
from quaid.errors import UsageError
from quaid.model import Hit, Recall

MOST_SHOWN = 600
"""Characters of a hit that a terminal shows; `quaid get` has the rest, and a pipe gets all."""
KINDS = ("fact", "turn", "entity", "note", "snippet", "journal", "doc")

Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="What you want to know, in words.")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="At most so many hits.")]
Kinds = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help=f"Only this kind, repeatable: {', '.join(KINDS)}.")
]
Superseded = Annotated[bool, typer.Option("--superseded", help="Also what has been replaced or has expired.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show how the answer came about.")]


def run_recall(
    ctx: typer.Context,
    query: Query,
    limit: Limit = None,
    kind: Kinds = None,
    superseded: Superseded = False,
    explain: Explain = False,
) -> None:
    """Answer a question from memory: facts, turns of conversations and notes, best first.

    Words, meaning and the graph are searched together. On a terminal the hits are a list to read, in a pipe one
    [MEMORY] line each.

    Examples:
      quaid recall "what does Maya drink?"
      quaid recall "Acme" --kind fact --kind entity --limit 3
      quaid recall "where did she live" --superseded --explain
    """
    _answer(ctx.obj, " ".join(query), limit, _options(kind, superseded), explain)


def run_search(
    ctx: typer.Context,
    query: Query,
    limit: Limit = None,
    kind: Kinds = None,
    superseded: Superseded = False,
    explain: Explain = False,
) -> None:
    """Find notes by their words alone: no model, no graph.

    Examples:
      quaid search "oat milk"
      quaid search invoice --kind note --json
    """
    _answer(ctx.obj, " ".join(query), limit, {**_options(kind, superseded), "keyword_only": True}, explain)


def _options(kinds: list[str] | None, superseded: bool) -> dict[str, Any]:
    for kind in kinds or ():
        if kind not in KINDS:
            raise UsageError(f"There is no kind {kind!r}. Kinds are: {', '.join(KINDS)}.")
    return {"kinds": set(kinds or ()), "superseded": superseded}


def _answer(invocation: Invocation, query: str, limit: int | None, options: dict[str, Any], explain: bool) -> None:
    with invocation.open() as memory:
        if not options.get("keyword_only"):
            memory.warm()
        found = memory.recall(query, limit, **options)
    if degraded := _list_degraded(found):
        invocation.say(f"quaid: {' · '.join(degraded)}")
    if invocation.as_json:
        shape = {"query": query, "degraded": list(found.degraded), "took_ms": round(found.took_ms, 2)}
        invocation.answer(**shape, hits=list(found.hits), **({"trace": dict(found.trace)} if explain else {}))
        return
    if not found.hits:
        invocation.say("Nothing found." + ("" if options["superseded"] else " Also look at the past: --superseded"))
    for hit in found.hits:
        invocation.print(_render_hit(hit, explain) if has_terminal() else _render_line(hit))
    if explain:
        invocation.print(_render_trace(found))


def _list_degraded(found: Recall) -> list[str]:
    """One sentence for each thing that is missing, from the trace where it has one."""
    sentences = [str(sentence) for sentence in cast("list[object]", found.trace.get("degraded", []))]
    named = {sentence.split(":", 1)[0] for sentence in sentences}
    bare = [name for name in found.degraded if name not in named]
    return [_DEGRADED.get(name, f"degraded: {name}") for name in bare] + sentences


_DEGRADED = {"vectors": "vectors: searched by words and graph only. See why with: quaid doctor"}


def _render_line(hit: Hit) -> str:
    """What an agent reads: one line, however long."""
    return f"[MEMORY] ({', '.join([*_about(hit), f'score {hit.score:.2f}'])}) {one_line(hit.text)} |ID:{hit.id}"


def _render_hit(hit: Hit, explain: bool) -> str:
    """What a person reads: the text, and below it where it comes from."""
    text = hit.text if len(hit.text) <= MOST_SHOWN else f"{hit.text[:MOST_SHOWN].rstrip()} …"
    lines = [wrapped(text, "      ").replace("      ", styled(f"{hit.score:.2f}  ", "cyan"), 1)]
    lines.append(styled(wrapped(" · ".join([*_about(hit), hit.id]), "      "), "dim"))
    if explain:
        ranks = [(name, f"rank {found.rank}", f"score {found.score:g}") for name, found in hit.channels.items()]
        lines += [f"      {line}" for line in columns(ranks).splitlines()]
        lines += [f"      via {' '.join(hit.via)}"] if hit.via else []
    return "\n".join(lines) + "\n"


def _about(hit: Hit) -> list[str]:
    about = [hit.created[:10]] if hit.created else []
    if hit.kind == "turn":
        about += [hit.speaker] if hit.speaker else []
        about.append(f"turn {hit.turn} of session {hit.session}")
    else:
        about += [f"{hit.kind} by {hit.speaker}" if hit.speaker else hit.kind]
    if hit.valid_from:
        about.append(f"since {hit.valid_from[:10]}")
    if hit.valid_until:
        about.append(f"until {hit.valid_until[:10]}")
    if hit.superseded:
        about.append("no longer true")
    return about


def _render_trace(found: Recall) -> str:
    trace: dict[str, Any] = dict(found.trace)
    took = trace.get("took_ms", {})
    rows: list[tuple[object, ...]] = [
        ("words", " ".join(trace.get("words", []))),
        ("entities", ", ".join(trace.get("entities", [])) or "none"),
    ]
    for name, number in trace.get("channels", {}).items():
        rows.append((name, count(number, "candidate"), f"{took.get(name, 0):.1f} ms"))
    rows.append(("kept", f"{trace.get('left_after_filters', 0):,} of {trace.get('candidates', 0):,} candidates"))
    rows.append(("degraded", ", ".join(found.degraded) or "nothing"))
    rows.append(("took", f"{found.took_ms:.1f} ms"))
    per_hit = [
        (f"{hit.score:.2f}", hit.id, *(f"{name} {rank.rank}. {rank.score:g}" for name, rank in hit.channels.items()))
        for hit in found.hits
    ]
    ranks = "" if has_terminal() else "\n" + section("Ranks", per_hit)
    return section("Trace", rows) + ranks
