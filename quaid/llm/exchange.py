"""The types of a request and its answer, and the protocols of providers and stores. No I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from quaid.llm.schema import outline
from quaid.model import ModelUsage, PlannedCall, SpendingCap, Tier

_MAX_TOKENS = 100_000_000
_MAX_COST_USD = 1_000.0
Role = Literal["user", "assistant"]
Stop = Literal["end", "length", "refusal"]


class ItemProblem(NamedTuple):
    """A problem of one item of an answer's list `items`, so that the repair is for this item alone. `place` is its
    place in the list, None for a missing item. `sentence` continues the item's name: "cites no turn".
    """

    items: str
    place: int | None
    sentence: str

    def __str__(self) -> str:
        return f"{self.items}[{self.place}] {self.sentence}" if self.place is not None else self.sentence


Check = Callable[[Mapping[str, Any]], Sequence["str | ItemProblem"]]
"""Returns the problems of a value that fits its schema. A sentence is about the answer as a whole, which is asked for
again; for an `ItemProblem` only its item is. A problem that no second answer can mend is left to the caller.
"""


@dataclass(frozen=True, slots=True)
class AnswerItem:
    """An item of an answer's list `items`, its problems, and whether it fits the schema all the same; one that does not
    is as the model gave it.
    """

    items: str
    value: Any
    problems: tuple[str, ...] = ()
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """One request to one model, the same for every provider."""

    tier: Tier
    model: str
    prompt: str
    """`name@version`, for messages."""
    instructions: str
    """The system part, without the schema. It is the same in every call: providers cache it."""
    turns: tuple[tuple[Role, str], ...]
    schema: Mapping[str, Any] = field(repr=False)
    """JSON schema of the answer, an object."""
    max_output_tokens: int
    """The limit of the answer and of what a model thinks before it."""

    @property
    def system(self) -> str:
        """The system part with the schema in its text, for a model that its service does not show the schema."""
        return with_schema(self.instructions, self.schema)

    def as_messages(self, system: str) -> list[dict[str, str]]:
        """Return `system` and the turns in the form of chat services other than Anthropic's."""
        turns = [{"role": role, "content": text} for role, text in self.turns]
        return [{"role": "system", "content": system}, *turns]


def with_schema(instructions: str, schema: Mapping[str, Any]) -> str:
    """Return the system part of a prompt with the form of its answer below it."""
    return f"{instructions} Its form, where ? marks what may be left out:\n{outline(schema)}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A provider's answer, not checked yet."""

    text: str
    """For a refusal: the name of the filter, and what the model wrote instead."""
    stop: Stop
    model: str
    usage: ModelUsage


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer that fits its prompt's schema."""

    value: Mapping[str, Any]
    provider: str
    model: str
    """The provider's name for what has answered."""
    prompt: str
    """`name@version`, for a commit's trailer."""
    usage: ModelUsage
    """Nothing, where the answer is stored from an earlier call."""
    took_s: float
    problems: tuple[str, ...] = ()
    """The problems that the caller's check still finds after the repair; the caller decides what to leave out."""
    failed: tuple[AnswerItem, ...] = ()
    """The items that still do not fit the schema; `value` does not have them."""


class Provider(Protocol):
    """One way to reach a model."""

    name: str
    is_local: bool
    """True if it answers without the network."""
    goes_to: str
    """The host that prompts are sent to; empty where they stay on this machine."""
    min_s: float
    """A call with less time than this is not begun."""
    turns_per_call: int
    """The number of calls of the model for one answer."""

    def complete(self, request: Request, deadline: float) -> Reply:
        """Return the model's answer. `deadline` is a time.monotonic().

        Raises:
            ModelUnavailableError: the provider is not there, overloaded, or did not accept the key or the request.
            ModelTimeoutError: no answer came in time.
            ModelAnswerError: the answer is not in the provider's format, or the request is too long.
            ModelRefusedError: a filter of the service does not let the request through.
        """


class UsageStore(Protocol):
    """Stores the usage of calls, for caps that hold across processes."""

    def reserve(self, call: PlannedCall, day: str, cap: SpendingCap | None = None) -> int:
        """Count `call` at its estimate on `day` (ISO, UTC) and return its number.

        Check and count are one transaction. A call that is never settled stays counted at its estimate.

        Raises:
            BudgetExceededError: with the usage of the day it would exceed `cap`.
        """

    def settle(self, reservation: int, usage: ModelUsage) -> None:
        """Replace the estimate of a call by its usage."""


class AnswerStore(Protocol):
    """Stores answers to repeated questions."""

    def get(self, key: str, oldest_day: str) -> str | None:
        """Return the answer stored under `key` on `oldest_day` or later."""

    def put(self, key: str, answer: str, day: str, oldest_day: str) -> None:
        """Store `answer`, and delete what is older than `oldest_day`."""


def read_text(content: Any) -> str:
    """Return the text of a message's content; of a list of parts, that of its text parts, without thoughts.

    Raises:
        TypeError, KeyError, AttributeError: it is something else.
    """
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") in {"text", "output_text"})
    if content is not None and not isinstance(content, str):
        raise TypeError(content)
    return content or ""


def read_count(value: Any) -> int:
    """Return the number of tokens in a provider's answer; 0 where it is missing or more than any call can take.

    Raises:
        TypeError, ValueError: it is not a number.
    """
    number = value if isinstance(value, int) else float(value or 0)
    return int(number) if 0 <= number <= _MAX_TOKENS else 0


def read_cost(value: Any) -> float | None:
    """Return the cost in dollars in a provider's answer; None where it is missing or more than any call can cost.

    Raises:
        TypeError, ValueError: it is not a number.
    """
    cost = value if isinstance(value, int) else float(value or 0)
    return float(cost) if value is not None and 0 <= cost <= _MAX_COST_USD else None
