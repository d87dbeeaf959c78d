"""The definition of a tool, and what all tools share: annotations, arguments, schemas, progress, dates."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, NamedTuple

from mcp.server.mcpserver import Context
from mcp.types import ToolAnnotations
from pydantic import Field

from quaid.resident.worker import Reporter
from quaid.text.dates import parse_day

ATTEMPTS = 3
"""Of a write while others write: ten servers that write at once have to queue. Each waits as `git.wait_s` says."""

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
SETTLES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Adds; the same call repeated changes nothing."""
REMOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
ASKS_A_MODEL = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)

Ref = Annotated[str, Field(min_length=1, max_length=250, description=(
    "An id or its last characters, a name (Maya Chen), a path, or a turn (20-1402-2f1c9a#t3)."
))]  # fmt: skip
_OMITTED = frozenset({"title", "maxLength", "minLength", "maxItems"})
Name = Annotated[str, Field(min_length=1, max_length=300)]
Day = Annotated[str | None, Field(max_length=60)]


class Tool(NamedTuple):
    """A function that is offered as a tool. Its name and docstring are those of the tool."""

    call: Callable[..., Awaitable[Any]]
    title: str
    annotations: ToolAnnotations
    is_default: bool = False
    """Whether it is offered without `--tools all`."""

    @property
    def name(self) -> str:
        return self.call.__name__

    @property
    def description(self) -> str:
        return inspect.getdoc(self.call) or ""


def lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema as a model needs it: with each definition where it is used, without titles, without limits
    of length, which a refusal names, and without null for optional arguments.
    """
    definitions = schema.get("$defs", {})

    def leaner(value: Any) -> Any:
        if isinstance(value, list):
            return [leaner(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return leaner(definitions[value["$ref"].rpartition("/")[2]])
        # A property that has one of these names is an object.
        left = {key: leaner(each) for key, each in value.items() if key not in _OMITTED or isinstance(each, dict)}
        given = [each for each in left.get("anyOf", ()) if each != {"type": "null"}]
        if len(given) == 1 and left.get("default", 0) is None:
            del left["anyOf"], left["default"]
            return given[0] | left
        return left

    lean_schema: dict[str, Any] = leaner({key: value for key, value in schema.items() if key != "$defs"})
    return lean_schema


def reporter(context: Context) -> Reporter:
    """Return a function that reports messages as progress. By the protocol the count must always grow."""
    count = 0

    async def report(message: str) -> None:
        nonlocal count
        count += 1
        await context.report_progress(count, None, message)

    return report


def parse_date(text: str | None, *, end: bool) -> date | None:
    return parse_day(text, datetime.now(UTC), end=end) if text else None
