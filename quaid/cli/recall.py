"""`quaid recall` and `quaid search`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.cli.invocation import Invocation, fields
from quaid.cli.query_options import QueryOptions, query_command
from quaid.cli.recall_output import render_hits
from quaid.cli.terminal import count, has_terminal, moment, paragraphs, short, styled
from quaid.errors import UsageError
from quaid.model import Recall
from quaid.recall.trace import list_degraded
from quaid.text.quoting import render_memory_line

if TYPE_CHECKING:
    from quaid.memory import Memory

OF_SEVERAL = {"vault", "also_in"}
"""The fields of a hit that are there where several vaults were asked."""


class _Expected(NamedTuple):
    """The memory that was to be found, and its rank from 1, None when it is not among the hits."""

    ref: str
    rank: int | None


@query_command()
def run_recall(invocation: Invocation, query: QueryOptions) -> int | None:
    """Answer a question from memory: facts, turns of conversations and notes, best first.

    Words, meaning and the graph are searched together. On a terminal the hits are a list to read, in a pipe one
    [MEMORY] line each.

    Several --vault are asked together, and each hit names its own. A DAY is 2026-03-01, 2026-03, last March or
    yesterday. With --expect the exit code is the answer, as git bisect run wants it.

    Examples:
      quaid recall "what does Maya drink?"
      quaid recall "Acme" --kind fact --kind entity --limit 3
      quaid recall "where did she live" --at 2024-06 --explain
      quaid recall "what do we know of the lease" --as-of 2026-03-01
      quaid recall --last --session 2f1c9a
      quaid recall "when is the launch?" --vault ~/team --vault ~/quaid
      git bisect run quaid recall "what milk does Maya take?" --expect 7k3qd
    """
    if query.given:
        from quaid.cli.last_recall import show_last

        if query.query:
            raise UsageError("--last shows an answer that was given already. Leave QUERY out.")
        show_last(invocation, query.session)
        return None
    return _answer(invocation, query, keyword_only=False)


@query_command(without=("context", "depth", "expect", "given"))
def run_search(invocation: Invocation, query: QueryOptions) -> int | None:
    """Find notes by their words alone: no model, no graph.

    Examples:
      quaid search "oat milk"
      quaid search invoice --kind note --from 2026-01 --json
    """
    return _answer(invocation, query, keyword_only=True)


def _answer(invocation: Invocation, query: QueryOptions, *, keyword_only: bool) -> int | None:
    options = {**query.options(datetime.now(UTC)), "keyword_only": keyword_only}
    expected = None
    if len(invocation.vaults) > 1:
        found = _recall_from_all(invocation, query, options)
    elif query.expect is None:
        with invocation.open(owner=query.owner) as memory:
            found = _recall(invocation, memory, query, options)
    else:
        from quaid.recall.evaluation import check_decidable, deciding, find_expected, list_meant

        invocation.is_deciding = True
        with deciding(), invocation.open(owner=query.owner) as memory:
            found = _recall(invocation, memory, query, options)
            check_decidable(found)
            rank = find_expected(found.hits, query.expect, list_meant(memory.index(), query.expect))
        expected = _Expected(query.expect, rank)
    _remark(invocation, query, found)
    invocation.respond(render_answer(found, explain=query.explain), **shape_of_recall(query, found, expected))
    if not found.hits and not invocation.as_json:
        _suggest(invocation, query, keyword_only=keyword_only)
    if expected is None:
        return None
    hits = count(len(found.hits), "hit")
    if expected.rank is None:
        invocation.notify(f"quaid: {expected.ref} is not in the answer of {hits}. See why with: --explain")
        return 1
    invocation.notify(f"quaid: {expected.ref} has rank {expected.rank} of {hits}.")
    return 0


def _recall(invocation: Invocation, memory: Memory, query: QueryOptions, options: dict[str, Any]) -> Recall:
    if not options["keyword_only"]:
        memory.warm()
    keep = query.expect is None  # a test does not count as a use of a memory
    with invocation.progress(memory) if query.as_of else nullcontext():
        return memory.recall(
            query.text, query.limit, as_of=query.as_of, session=query.session, door="cli", keep=keep, **options
        )


def _recall_from_all(invocation: Invocation, query: QueryOptions, options: dict[str, Any]) -> Recall:
    """The answer of all vaults that were named."""
    from quaid.federation import Federation

    if query.expect is not None:
        raise UsageError("--expect names a note of one vault. Leave all but one --vault out.")
    with Federation.open(invocation.vaults, query.owner) as federation:
        found = federation.recall(
            query.text, limit=query.limit, as_of=query.as_of, session=query.session, door="cli", **options
        )
        for remark in federation.remarks:
            invocation.notify(remark)
    return found


def _remark(invocation: Invocation, query: QueryOptions, found: Recall) -> None:
    then: Any = found.trace.get("as_of", {})
    for vault, known in {"": then}.items() if "commit" in then else then.items():
        at = f"{moment(known['when'])}, at {short(known['commit'])}"
        invocation.notify(f"quaid: {f'vault {vault} ' if vault else ''}as it was known {at}")
    if degraded := list_degraded(found.degraded, found.trace):
        invocation.notify(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits and not query.explain:
        invocation.notify(f"quaid: in doubt: {found.doubt}")


def _suggest(invocation: Invocation, query: QueryOptions, *, keyword_only: bool) -> None:
    steps = [f"ask without {' '.join(narrowing)}"] if (narrowing := query.narrowing()) else []
    steps += [] if query.superseded else ["also look at the past: --superseded"]
    step = ", or ".join(steps or ["see what there is: quaid stats"])
    what = "Nothing found." if keyword_only else "Nothing relevant found."
    invocation.notify(f"{what} {step[0].upper()}{step[1:]}")


def shape_of_recall(query: QueryOptions, found: Recall, expected: _Expected | None) -> dict[str, object]:
    """An answer as JSON."""
    return {
        "query": query.text,
        **fields(found, "degraded", "doubt"),
        "as_of": found.trace.get("as_of"),
        "took_ms": round(found.took_ms, 2),
        "context": [{"path": path, "text": text} for path, text in found.context],
        "hits": [
            {name: value for name, value in asdict(hit).items() if hit.vault or name not in OF_SEVERAL}
            for hit in found.hits
        ],
        **({"expected": expected._asdict()} if expected else {}),
        **({"trace": dict(found.trace)} if query.explain else {}),
    }


def render_answer(found: Recall, *, explain: bool) -> str:
    """The core notes that were asked for, then the hits, then with `explain` how they came about."""
    blocks = [f"{styled(path, 'bold')}\n{text}" for path, text in found.context]
    if found.text is not None and not explain:
        blocks.append(found.text)
    elif not has_terminal():
        blocks.append("\n".join(map(render_memory_line, found.hits)))
    elif not explain:
        blocks += render_hits(found)
    if explain:
        from quaid.cli.explanation import render_explanation

        blocks.append(render_explanation(found))
    return paragraphs(*blocks)
