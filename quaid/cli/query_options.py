"""QUERY and the options of `quaid recall` and `quaid search`, each declared once."""

# Annotations are values here, for typer to read: evaluating them from text would cost each start 2 ms.

import inspect
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_args

import typer

from quaid.cli.dates import parse_option_day
from quaid.cli.invocation import Invocation, check_one_of
from quaid.errors import UsageError
from quaid.model import PRIVACIES, STATUSES
from quaid.recall.options import KINDS, Depth

DEPTHS: tuple[str, ...] = get_args(Depth)


class QueryOptions(NamedTuple):
    """A question as it was typed. Each field is an argument or an option of the command."""

    query: Annotated[
        list[str] | None, typer.Argument(metavar="QUERY", help="What you want to know, in words.", show_default=False)
    ] = None
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="Show at most N hits.")] = None
    kind: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help=f"Only this kind; repeatable: {', '.join(KINDS)}.")
    ] = None
    project: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only notes of this project, or of no project; repeatable.")
    ] = None
    status: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help=f"Only this one; repeatable: {', '.join(STATUSES)}.")
    ] = None
    privacy: Annotated[
        list[str] | None, typer.Option(metavar="WHOSE", help=f"Only this one; repeatable: {', '.join(PRIVACIES)}.")
    ] = None
    owner: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who is asking; private notes of others are left out.")
    ] = None
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="The current session: its own turns are left out.")
    ] = None
    compacted_at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="With --session: turns up to this time were compacted and may be found again."
        ),
    ] = None
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="Created on this day or later.")] = None
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Created on this day or before.")] = None
    at: Annotated[str | None, typer.Option(metavar="DAY", help="What was true on this day.")] = None
    as_of: Annotated[
        str | None, typer.Option(metavar="REV|DAY", help="What the memory held at this commit or day.")
    ] = None
    superseded: Annotated[bool, typer.Option("--superseded", help="Also facts that were replaced or have expired.")] = (
        False
    )
    budget: Annotated[
        int | None,
        typer.Option(
            metavar="TOKENS", min=1, help="Fill so many tokens: a block for each conversation and note, best first."
        ),
    ] = None
    ids: Annotated[bool, typer.Option("--ids", help="With --budget: the id and the score of each memory.")] = False
    context: Annotated[bool, typer.Option("--context", help="Print the core notes before the hits.")] = False
    depth: Annotated[
        str | None, typer.Option(metavar="DEPTH", help=f"{', '.join(DEPTHS)}: never ask a model, in doubt, always.")
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Show how the answer was found and scored.")] = False
    expect: Annotated[
        str | None, typer.Option(metavar="REF", help="Exit with 0 when this note is among the hits, else with 1.")
    ] = None

    given: Annotated[
        bool, typer.Option("--last", help="Show what was given last, or to --session, for what evidence, and what not.")
    ] = False

    @property
    def text(self) -> str:
        return " ".join(self.query or ())

    def options(self, now: datetime) -> dict[str, Any]:
        """The fields of `RecallOptions`.

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
        options = {
            "kinds": frozenset(self.kind or ()),
            "projects": frozenset(self.project or ()),
            "statuses": frozenset(self.status or ()),
            "privacies": frozenset(self.privacy or ()),
            "exclude_session": self.session,
            "compacted_at": self._parse_compacted_at(),
            "at": parse_option_day("--at", self.at, now, end=True),
            "superseded": self.superseded,
            "budget": self.budget,
            "with_ids": self.ids,
            "context": self.context,
            **self._parse_period(now),
        }
        # --expect must decide alike the next time: no model is asked, unless that was asked for.
        depth = self.depth or ("fast" if self.expect else None)
        return options | ({"depth": depth} if depth else {})

    def narrowing(self) -> list[str]:
        """The options that were given and leave something out."""
        names = {"first": "from", "last": "to"}
        fields = ("kind", "project", "status", "privacy", "session", "first", "last", "at", "as_of")
        return [f"--{names.get(name, name).replace('_', '-')}" for name in fields if getattr(self, name)]

    def _parse_period(self, now: datetime) -> dict[str, date | None]:
        first = parse_option_day("--from", self.first, now, end=False)
        last = parse_option_day("--to", self.last, now, end=True)
        if first and last and first > last:
            raise UsageError(f"--from {first} is after --to {last}, so nothing is between them. Swap the two.")
        return {"first": first, "last": last}

    def _parse_compacted_at(self) -> datetime | None:
        if self.compacted_at is None:
            return None
        if self.session is None:
            raise UsageError("--compacted-at is a moment of the session that is going on. Name that with --session ID.")
        try:
            moment = datetime.fromisoformat(self.compacted_at)
        except ValueError as error:
            what = f"--compacted-at is {self.compacted_at!r}, must be a time like 2026-11-20T14:30:00Z."
            raise UsageError(what) from error
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Command = Callable[[Invocation, QueryOptions], int | None]


def query_command(*, without: tuple[str, ...] = ()) -> Callable[[Command], Callable[..., int | None]]:
    """Make a command of a function of `QueryOptions`: typer is shown the fields as if they were parameters.

    The fields in `without` are not options of this command and keep their defaults.
    """

    def make_command(function: Command) -> Callable[..., int | None]:
        @wraps(function)
        def run(ctx: typer.Context, **given: Any) -> int | None:
            query = QueryOptions(**given)
            if not query.query and not query.given:
                raise typer.BadParameter("there is no question", ctx, param_hint="QUERY")
            return function(ctx.obj, query)

        shown = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
        for name, hint in QueryOptions.__annotations__.items():
            if name not in without:
                default = QueryOptions._field_defaults.get(name, inspect.Parameter.empty)
                shown.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint))
        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined] # what inspect and typer look at first
        return run

    return make_command
