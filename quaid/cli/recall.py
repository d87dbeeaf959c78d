"""`quaid recall` and `quaid search`."""

# Annotations are values here, for typer to read: evaluating them from text would cost each start 2 ms.

import inspect
from collections.abc import Callable
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_args

import typer

from quaid.cli.invocation import Invocation, render_json
from quaid.cli.options import check_one_of, flag, option, parse_option_day
from quaid.cli.terminal import INDENT, count, has_terminal, moment, paragraphs, short, styled, wrapped
from quaid.errors import UsageError
from quaid.memory import Memory
from quaid.model import PRIVACIES, STATUSES, Recall
from quaid.recall.cutoff import fit_shapes, tokens
from quaid.recall.intent import asks_for_course
from quaid.recall.options import KINDS, Depth
from quaid.recall.trace import list_degraded
from quaid.shapes import json_object
from quaid.text.dates import parse_period
from quaid.text.quoting import describe, render_memory_line, shorten
from quaid.text.zones import local_now, order_key

DEPTHS: tuple[str, ...] = get_args(Depth)
FEDERATED_FIELDS = ("vault", "also_in")
"""Fields that a hit has only when several vaults were asked."""
MAX_SHOWN = 600
"""Characters of a hit that a terminal shows; `quaid get` has the rest, and a pipe gets all."""


class QueryOptions(NamedTuple):
    """The command line of a query. Each field is an argument or an option of the command."""

    query: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY", help="What you want to know, in words.", show_default=False)
    ] = None
    limit: Annotated[int | None, option("N", "Show at most N hits.", "--limit", "-n", min=1)] = None
    kind: Annotated[list[str] | None, option("KIND", f"Only this kind; repeatable: {', '.join(KINDS)}.")] = None
    project: Annotated[
        list[str] | None, option("NAME", "Only notes of this project, or of no project; repeatable.")
    ] = None
    status: Annotated[list[str] | None, option("STATUS", f"Only this one; repeatable: {', '.join(STATUSES)}.")] = None
    privacy: Annotated[list[str] | None, option("WHOSE", f"Only this one; repeatable: {', '.join(PRIVACIES)}.")] = None
    owner: Annotated[str | None, option("NAME", "Who is asking; private notes of others are left out.")] = None
    session: Annotated[str | None, option("ID", "The current session: its own turns are left out.")] = None
    compacted_at: Annotated[
        str | None, option("TIME", "With --session: turns up to this time were compacted and may be found again.")
    ] = None
    first: Annotated[str | None, option("DAY", "Created on this day or later.", "--from")] = None
    last: Annotated[str | None, option("DAY", "Created on this day or before.", "--to")] = None
    at: Annotated[str | None, option("DAY", "What was true on this day.")] = None
    as_of: Annotated[str | None, option("REV|DAY", "What the memory held at this commit or day.")] = None
    superseded: Annotated[bool, flag("Also facts that were replaced or have expired.", "--superseded")] = False
    budget: Annotated[
        int | None, option("TOKENS", "Fill so many tokens: a block for each conversation and note, best first.", min=1)
    ] = None
    ids: Annotated[bool, flag("With --budget: the id and the score of each memory.", "--ids")] = False
    context: Annotated[bool, flag("Print the core notes before the hits.", "--context")] = False
    depth: Annotated[str | None, option("DEPTH", f"{', '.join(DEPTHS)}: never ask a model, in doubt, always.")] = None
    explain: Annotated[bool, flag("Show how the answer was found and scored.", "--explain")] = False
    expect: Annotated[str | None, option("REF", "Exit with 0 when this note is among the hits, else with 1.")] = None
    show_last: Annotated[
        bool, flag("Show the last answer, or the last of --session: its hits, scores and left-outs.", "--last")
    ] = False

    @property
    def text(self) -> str:
        return " ".join(self.query or ())

    def recall_options(self, now: datetime) -> dict[str, Any]:
        """Return the fields of `RecallOptions`.

        Raises:
            UsageError: an unknown name, something that is not a date, or options that exclude each other.
        """
        check_one_of("kind", self.kind, KINDS)
        check_one_of("status", self.status, STATUSES)
        check_one_of("privacy", self.privacy, PRIVACIES)
        check_one_of("depth", [self.depth] if self.depth else None, DEPTHS)
        if self.context and self.as_of:
            raise UsageError("--context has the core notes of today, --as-of asks the past. Leave one of them out.")
        if self.ids and self.budget is None:
            raise UsageError("--ids is for --budget: without it, each hit has its id anyway. Leave --ids out.")
        first, last = parse_period(("--from", "--to"), self.first, self.last, now)
        compacted_at = None
        if self.compacted_at is not None:
            if self.session is None:
                problem = "--compacted-at is a moment of the session that is going on."
                raise UsageError(f"{problem} Name that with --session ID.")
            try:
                time = datetime.fromisoformat(self.compacted_at)
            except ValueError as error:
                what = f"--compacted-at is {self.compacted_at!r}, must be a time like 2026-11-20T14:30:00Z."
                raise UsageError(what) from error
            compacted_at = time if time.tzinfo else time.replace(tzinfo=UTC)
        options = {
            "kinds": frozenset(self.kind or ()),
            "projects": frozenset(self.project or ()),
            "statuses": frozenset(self.status or ()),
            "privacies": frozenset(self.privacy or ()),
            "exclude_session": self.session,
            "compacted_at": compacted_at,
            "first": first,
            "last": last,
            "at": parse_option_day("--at", self.at, now, end=True),
            "superseded": self.superseded,
            "budget": self.budget,
            "with_ids": self.ids,
            "context": self.context,
        }
        # --expect must decide alike the next time: no model is asked, unless that was asked for.
        depth = self.depth or ("fast" if self.expect else None)
        return options | ({"depth": depth} if depth else {})

    def filters(self) -> list[str]:
        """Return the given options that leave something out."""
        names = {"first": "from", "last": "to", "as_of": "as-of"}
        fields = ("kind", "project", "status", "privacy", "session", "first", "last", "at", "as_of")
        return [f"--{names.get(name, name)}" for name in fields if getattr(self, name)]


def query_command(*, without: tuple[str, ...] = ()) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Make a command of a function of `QueryOptions`: typer reads its fields, but `without`, as parameters."""

    def make_command(function: Callable[..., int | None]) -> Callable[..., int | None]:
        @wraps(function)
        def run(ctx: typer.Context, **given: Any) -> int | None:
            query = QueryOptions(**given)
            if not query.query and not query.show_last:
                raise typer.BadParameter("there is no question", ctx, param_hint="QUERY")
            return function(ctx.obj, query)

        options = inspect.signature(QueryOptions).parameters.values()
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        parameters = [context, *(option for option in options if option.name not in without)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # typer reads it
        return run

    return make_command


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
    if query.show_last:
        from quaid.cli.explanation import show_last

        if query.query:
            raise UsageError("--last shows an answer that was given already. Leave QUERY out.")
        show_last(invocation, query.session)
        return None
    return _answer(invocation, query, keyword_only=False)


@query_command(without=("context", "depth", "expect", "show_last"))
def run_search(invocation: Invocation, query: QueryOptions) -> int | None:
    """Find notes by their words alone: no model, no graph.

    Examples:
      quaid search "oat milk"
      quaid search invoice --kind note --from 2026-01 --json
    """
    return _answer(invocation, query, keyword_only=True)


def _answer(invocation: Invocation, query: QueryOptions, *, keyword_only: bool) -> int | None:
    rank = None
    if len(invocation.vaults) > 1:
        from quaid.federation import Federation

        if query.expect is not None:
            raise UsageError("--expect names a note of one vault. Leave all but one --vault out.")
        options = {**query.recall_options(local_now()), "keyword_only": keyword_only}
        with closing(Federation.open(invocation.vaults, query.owner)) as federation:
            found = federation.recall(
                query.text, limit=query.limit, as_of=query.as_of, session=query.session, door="cli", **options
            )
            for remark in federation.remarks:
                invocation.notify(remark)
    elif query.expect is None:
        with invocation.open(owner=query.owner) as memory:
            found = _recall(invocation, memory, query, keyword_only=keyword_only)
    else:
        from quaid.recall.evaluation import check_decidable, deciding, find_expected, list_targets

        invocation.is_deciding = True
        with deciding(), invocation.open(owner=query.owner) as memory:
            found = _recall(invocation, memory, query, keyword_only=keyword_only)
            check_decidable(found)
            rank = find_expected(found.hits, query.expect, list_targets(memory.index(), query.expect))
    _notify(invocation, query, found)
    about = {
        "query": query.text,
        "degraded": found.degraded,
        "doubt": found.doubt,
        "as_of": found.trace.get("as_of"),
        "took_ms": round(found.took_ms, 2),
        "context": [{"path": path, "text": text} for path, text in found.context],
    }
    hits = [json_object(hit, without=() if hit.vault else FEDERATED_FIELDS) for hit in found.hits]
    if query.budget is not None:
        hits = [hit | {"channels": {}, "evidence": {}} for hit in hits]
        hits = fit_shapes(hits, query.budget - tokens(render_json(about)))
    invocation.respond(
        render_answer(found, explain=query.explain),
        **about,
        hits=hits,
        **({"expected": {"ref": query.expect, "rank": rank}} if query.expect else {}),
        **({"trace": found.trace} if query.explain else {}),
    )
    if not found.hits and not invocation.as_json:
        steps = [f"ask without {' '.join(filters)}"] if (filters := query.filters()) else []
        steps += [] if query.superseded else ["also look at the past: --superseded"]
        step = ", or ".join(steps or ["see what there is: quaid stats"])
        invocation.notify(f"Nothing {'' if keyword_only else 'relevant '}found. {step[0].upper()}{step[1:]}")
    if query.expect is None:
        return None
    counted = count(len(found.hits), "hit")
    if rank is None:
        invocation.notify(f"quaid: {query.expect} is not in the answer of {counted}. See why with: --explain")
        return 1
    invocation.notify(f"quaid: {query.expect} has rank {rank} of {counted}.")
    return 0


def _recall(invocation: Invocation, memory: Memory, query: QueryOptions, *, keyword_only: bool) -> Recall:
    options = {**query.recall_options(local_now(memory.settings.timezone)), "keyword_only": keyword_only}
    if not keyword_only:
        memory.warm()
    keep = query.expect is None  # a test does not count as a use of a memory
    with invocation.progress(memory) if query.as_of else nullcontext():
        return memory.recall(
            query.text, query.limit, as_of=query.as_of, session=query.session, door="cli", keep=keep, **options
        )


def _notify(invocation: Invocation, query: QueryOptions, found: Recall) -> None:
    past: Any = found.trace.get("as_of", {})
    for vault, known in {"": past}.items() if "commit" in past else past.items():
        at = f"{moment(known['when'])}, at {short(known['commit'])}"
        invocation.notify(f"quaid: {f'vault {vault} ' if vault else ''}as it was known {at}")
    if degraded := list_degraded(found.degraded, found.trace):
        invocation.notify(f"quaid: {' · '.join(degraded)}")
    if found.doubt and found.hits and not query.explain:
        invocation.notify(f"quaid: in doubt: {found.doubt}")


def render_answer(found: Recall, *, explain: bool) -> str:
    """Return the core notes that were asked for, then the hits, then with `explain` how they were found."""
    blocks = [f"{styled(path, 'bold')}\n{text}" for path, text in found.context]
    if found.text is not None and not explain:
        blocks.append(found.text)
    elif not has_terminal():
        blocks.append("\n".join(map(render_memory_line, found.hits)))
    elif not explain:
        blocks += render_hits(found)
    if explain:
        from quaid.cli.explanation import render_explanation

        blocks.append(render_explanation(found, render_hits(found) if has_terminal() else []))
    return paragraphs(*blocks)


def render_hits(found: Recall) -> list[str]:
    """Return each hit for a terminal: its text, its source, and the facts that contradict it."""
    blocks = []
    hits = sorted(found.hits, key=lambda hit: order_key(hit.created)) if asks_for_course(found.query) else found.hits
    for hit in hits:
        text = wrapped(shorten(hit.text, MAX_SHOWN), INDENT).removeprefix(INDENT)
        rows = [f"{styled(f'{hit.score:.2f}', 'cyan')}  {text}"]
        rows.append(styled(wrapped(" · ".join([*describe(hit), hit.id]), INDENT), "dim"))
        blocks.append("\n".join([*rows, *(f"{INDENT}{styled(f'! {mark}', 'yellow')}" for mark in hit.marks)]))
    return blocks
