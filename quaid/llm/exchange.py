"""What goes to a model and what comes back: the nouns all of this room share, and the ports it needs. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from quaid.model import ModelUsage, PlannedCall, Tier

MAX_TOKENS = 100_000_000
MAX_COST_USD = 1_000.0
Role = Literal["user", "assistant"]
Stop = Literal["end", "length", "refusal"]
Check = Callable[[Mapping[str, Any]], Sequence[str]]
"""What is wrong with a value that fits its schema: a sentence each, none when it can be used as it is."""


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One question to one model, the same for every provider."""

    tier: Tier
    model: str
    prompt: str
    """`name@version`, for messages."""
    system: str
    """What stays the same from call to call: providers keep it in their cache."""
    turns: tuple[Turn, ...]
    schema: Mapping[str, Any] = field(repr=False)
    """JSON schema of the answer, an object."""
    max_output_tokens: int
    """Room for the answer and for what a model thinks before it."""

    def as_messages(self) -> list[dict[str, str]]:
        """The system part and the turns as chat services other than Anthropic's want them."""
        turns = [{"role": turn.role, "content": turn.text} for turn in self.turns]
        return [{"role": "system", "content": self.system}, *turns]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a provider answered, not yet looked at."""

    text: str
    stop: Stop
    model: str
    usage: ModelUsage


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer that fits its prompt's schema."""

    value: Mapping[str, Any]
    provider: str
    model: str
    """As the provider names what has answered."""
    prompt: str
    """`name@version`, for a commit's trailer."""
    usage: ModelUsage
    is_cached: bool
    """Kept from an earlier call: nothing was asked and nothing spent."""
    took_s: float
    problems: tuple[str, ...] = ()
    """What its caller's check still finds wrong after it was sent back: the caller decides what to leave out."""


class Provider(Protocol):
    """One way to reach a model."""

    name: str
    is_local: bool
    """Whether it answers without the network."""
    goes_to: str
    """Whom prompts are sent to; empty where they stay on this machine."""
    least_s: float
    """A call that may take less than this need not be begun."""
    turns_per_call: int
    """How often the model itself is asked for one answer."""

    def complete(self, request: Request, deadline: float) -> Reply:
        """The model's answer. `deadline` is a time.monotonic().

        Raises:
            ModelUnavailableError: not there, not allowed, overloaded, or the question was not taken.
            ModelTimeoutError: nothing came in time.
            ModelAnswerError: what came is not of the provider's format.
        """


class UsageStore(Protocol):
    """Remembers what calls took, for caps that hold over processes."""

    def reserve(self, call: PlannedCall, day: str, check: Callable[[ModelUsage], None]) -> int:
        """Count `call` at its estimate, if `check` does not object to what `day` (ISO, UTC) has taken already.

        Between the check and the count nobody else counts. A call that is never settled stays counted in full.
        """

    def settle(self, reservation: int, usage: ModelUsage) -> None:
        """Put what the call really took in the place of its estimate."""

    def spent(self, day: str) -> ModelUsage:
        """What `day` has taken, estimates of running calls included."""


class AnswerStore(Protocol):
    """Keeps answers for questions that are asked again."""

    def get(self, key: str, oldest_day: str) -> str | None:
        """The answer kept under `key` on `oldest_day` or later."""

    def put(self, key: str, answer: str, day: str, oldest_day: str) -> None:
        """Keep `answer`, and forget what is older than `oldest_day`."""


def read_count(told: Any) -> int:
    """The number of tokens that a provider tells; 0, which stands for nothing told, where no call can have taken it.

    Raises:
        TypeError, ValueError: it is not a number.
    """
    number = told if isinstance(told, int) else float(told or 0)
    return int(number) if 0 <= number <= MAX_TOKENS else 0


def read_cost(told: Any) -> float | None:
    """The same for dollars; None where nothing was told.

    Raises:
        TypeError, ValueError: it is not a number.
    """
    cost = told if isinstance(told, int) else float(told or 0)
    return float(cost) if told is not None and 0 <= cost <= MAX_COST_USD else None
