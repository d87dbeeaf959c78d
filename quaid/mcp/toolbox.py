"""The definition of a tool, and what all of them share: annotations, arguments, progress, retries, dates."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import Field

from quaid.errors import BadInputError, LockedError
from quaid.resident.worker import Reporter
from quaid.text.dates import parse_day

if TYPE_CHECKING:
    from quaid.memory import Memory

Result = TypeVar("Result")
ATTEMPTS = 3
"""Each waits as long as `git.wait_s` says."""

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
SETTLES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Adds, and the same call once more changes nothing."""
REMOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
ASKS_A_MODEL = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)

Ref = Annotated[str, Field(min_length=1, max_length=250, description=(
    "An id or its last characters, a name (Maya Chen), a path, or a turn (20-1402-2f1c9a#t3)."
))]  # fmt: skip
_UNSAID = frozenset({"title", "maxLength", "minLength", "maxItems"})
Name = Annotated[str, Field(min_length=1, max_length=300)]
Day = Annotated[str | None, Field(max_length=60)]


class Tool(NamedTuple):
    """A function that is offered as a tool; its name is that of the function, its description the docstring."""

    call: Callable[..., Awaitable[Any]]
    title: str
    annotations: ToolAnnotations
    is_default: bool = False
    """True if it is offered without `--tools all`."""

    @property
    def name(self) -> str:
        return self.call.__name__

    @property
    def description(self) -> str:
        return inspect.getdoc(self.call) or ""


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema as a model needs it: without titles, limits of length, which a refusal names, and that what
    may be left out may be null; with each definition where it is used.
    """
    definitions = schema.get("$defs", {})

    def leaner(value: Any) -> Any:
        if isinstance(value, list):
            return [leaner(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return leaner(definitions[value["$ref"].rpartition("/")[2]])
        # Under one of these names a property is an object of its own.
        kept = {key: leaner(each) for key, each in value.items() if key not in _UNSAID or isinstance(each, dict)}
        given = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
        if len(given) == 1 and kept.get("default", 0) is None:
            del kept["anyOf"], kept["default"]
            return given[0] | kept
        return kept

    lean_schema: dict[str, Any] = leaner({key: value for key, value in schema.items() if key != "$defs"})
    return lean_schema


def select_tools(tools: Iterable[Tool], *, everything: bool) -> list[Tool]:
    """The tools to offer, the default ones first: a host that shows only some shows these."""
    return sorted((tool for tool in tools if everything or tool.is_default), key=lambda tool: not tool.is_default)


def reporter(context: Context) -> Reporter:
    """Return what reports messages as progress, whose count must always grow by the protocol."""
    count = 0

    async def report(message: str) -> None:
        nonlocal count
        count += 1
        await context.report_progress(count, None, message)

    return report


def with_retries(job: Callable[[Memory], Result]) -> Callable[[Memory], Result]:
    """`job`, tried again while others write: ten servers that write at once have to queue."""

    def run(memory: Memory) -> Result:
        for _ in range(ATTEMPTS - 1):
            with suppress(LockedError):
                return job(memory)
        return job(memory)

    return run


def parse_period(first: str | None, last: str | None) -> dict[str, date | None]:
    """Return `first` and `last` of `RecallOptions`.

    Raises:
        UsageError: one of them is not a date.
        BadInputError: nothing lies between them.
    """
    since, until = parse_date(first, end=False), parse_date(last, end=True)
    if since and until and since > until:
        raise BadInputError(f"date_from {since} is after date_to {until}, so nothing is between them. Swap the two.")
    return {"first": since, "last": until}


def parse_date(text: str | None, *, end: bool) -> date | None:
    return parse_day(text, datetime.now(UTC), end=end) if text else None
