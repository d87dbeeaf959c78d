"""`quaid recall` and `quaid search`."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.cli.hits import list_degraded, render_list
from quaid.cli.invocation import Invocation
from quaid.cli.query_options import Asked, asks
from quaid.cli.terminal import count, has_terminal, moment, styled
from quaid.model import Recall
from quaid.text.quoting import render_memory_line

if TYPE_CHECKING:
    from quaid.memory import Memory


class _Expected(NamedTuple):
    """The memory that was to be found, and its rank from 1, None when it is not among the hits."""

    ref: str
    rank: int | None


@asks()
def run_recall(invocation: Invocation, asked: Asked) -> int | None:
    """Answer a question from memory: facts, turns of conversations and notes, best first.

    Words, meaning and the graph are searched together. On a terminal the hits are a list to read, in a pipe one
    [MEMORY] line each.

    A DAY is 2026-03-01, 2026-03, last March or yesterday. With --expect the exit code is the answer, as git bisect run
    wants it.

    Examples:
      quaid recall "what does Maya drink?"
      quaid recall "Acme" --kind fact --kind entity --limit 3
      quaid recall "where did she live" --at 2024-06 --explain
      quaid recall "what do we know of the lease" --as-of 2026-03-01
      git bisect run quaid recall "what milk does Maya take?" --expect 7k3qd
    """
    return _answer(invocation, asked, keyword_only=False)


@asks(without=("context", "depth", "expect"))
def run_search(invocation: Invocation, asked: Asked) -> int | None:
    """Find notes by their words alone: no model, no graph.

    Examples:
      quaid search "oat milk"
      quaid search invoice --kind note --from 2026-01 --json
    """
    return _answer(invocation, asked, keyword_only=True)


def _answer(invocation: Invocation, asked: Asked, *, keyword_only: bool) -> int | None:
    options = {**asked.options(datetime.now(UTC)), "keyword_only": keyword_only}
    if asked.expect is None:
        with invocation.open(owner=asked.owner) as memory:
            found, expected = _recall(invocation, memory, asked, options), None
    else:
        found, expected = _decide(invocation, asked, asked.expect, options)
    _say_how(invocation, asked, found)
    invocation.tell(lambda: render_answer(found, explain=asked.explain), **_shape(asked, found, expected))
    if not found.hits and not invocation.as_json:
        _say_nothing(invocation, asked, keyword_only=keyword_only)
    return None if expected is None else _verdict(invocation, expected, found)


def _recall(invocation: Invocation, memory: Memory, asked: Asked, options: dict[str, Any]) -> Recall:
    if not options["keyword_only"]:
        memory.warm()
    keep = asked.expect is None  # a test is no use of a memory
    with invocation.progress(memory) if asked.as_of else nullcontext():
        return memory.recall(
            asked.text, asked.limit, as_of=asked.as_of, session=asked.session, door="cli", keep=keep, **options
        )


def _decide(invocation: Invocation, asked: Asked, reference: str, options: dict[str, Any]) -> tuple[Recall, _Expected]:
    from quaid.recall.evaluation import check_decidable, deciding, find_expected, list_meant

    invocation.is_deciding = True
    with deciding(), invocation.open(owner=asked.owner) as memory:
        found = _recall(invocation, memory, asked, options)
        check_decidable(found)
        rank = find_expected(found.hits, reference, list_meant(memory.index(), reference))
    return found, _Expected(reference, rank)


def _verdict(invocation: Invocation, expected: _Expected, found: Recall) -> int:
    hits = count(len(found.hits), "hit")
    if expected.rank is not None:
        invocation.say(f"quaid: {expected.ref} has rank {expected.rank} of {hits}.")
        return 0
    invocation.say(f"quaid: {expected.ref} is not in the answer of {hits}. See why with: --explain")
    return 1


def _say_how(invocation: Invocation, asked: Asked, found: Recall) -> None:
    """What the reader must know of the answer as a whole."""
    then = found.trace.get("as_of")
    if isinstance(then, dict):
        invocation.say(f"quaid: as it was known {moment(then['when'])}, at {then['commit'][:10]}")
    if degraded := list_degraded(found):
        invocation.say(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits and not asked.explain:
        invocation.say(f"quaid: in doubt: {found.doubt}")


def _say_nothing(invocation: Invocation, asked: Asked, *, keyword_only: bool) -> None:
    steps = [f"ask without {' '.join(narrowing)}"] if (narrowing := asked.narrowing()) else []
    steps += [] if asked.superseded else ["also look at the past: --superseded"]
    step = ", or ".join(steps or ["see what there is: quaid stats"])
    what = "Nothing found." if keyword_only else "Nothing relevant found."
    invocation.say(f"{what} {step[0].upper()}{step[1:]}")


def _shape(asked: Asked, found: Recall, expected: _Expected | None) -> dict[str, object]:
    shape: dict[str, object] = {
        "query": asked.text,
        "degraded": list(found.degraded),
        "doubt": found.doubt,
        "as_of": found.trace.get("as_of"),
        "took_ms": round(found.took_ms, 2),
        "context": [{"path": path, "text": text} for path, text in found.context],
        "hits": list(found.hits),
    }
    if expected is not None:
        shape["expected"] = expected._asdict()
    if asked.explain:
        shape["trace"] = dict(found.trace)
    return shape


def render_answer(found: Recall, *, explain: bool) -> str:
    """Core notes, where they were asked for, then the hits, then with `explain` how they came about."""
    blocks = [f"{styled(path, 'bold')}\n{text}" for path, text in found.context]
    if not has_terminal():
        blocks.append("\n".join(map(render_memory_line, found.hits)))
    elif not explain:
        blocks += render_list(found)
    if explain:
        from quaid.cli.explain import render_explanation

        blocks.append(render_explanation(found))
    return "\n\n".join(block for block in blocks if block)
