"""The tokens and dollars of a call: estimated before it, computed after it; questions put into few calls.

Dollars per million tokens, from the providers' price lists of November 2026. A model that is not listed has no known
price unless the user sets one (`models.deep_price`); then only the caps in tokens hold.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from quaid.errors import ModelUnavailableError
from quaid.model import ModelUsage, Tier
from quaid.settings import ModelSettings

T = TypeVar("T")
_BYTES_PER_TOKEN = 3
"""English has 4, Chinese 3, code in between: an estimate for a cap may be too high and never too low."""
_SUFFIX = re.compile(r"([-@:]\d{4,}.*|-latest)?")
_OWN = re.compile(r" *(\d+(?:\.\d+)?) */ *(\d+(?:\.\d+)?) *")


class Price(NamedTuple):
    """Dollars per million tokens."""

    input: float
    output: float
    cached: float
    """The price of input that is read from the provider's cache."""
    written: float
    """The price of input that is written into it."""
    long_from: int = 0
    """A call with more input than this costs `long_factor` as much; 0: never."""
    long_factor: float = 1.0


_HAIKU = Price(0.10, 0.50, 0.01, 0.125, 100_000, 5.0)
_SONNET = Price(2.0, 10.0, 0.10, 2.5)
_OPUS = Price(4.0, 20.0, 0.20, 5.0)
_PRICES = {
    "claude-haiku-5-5": _HAIKU,
    "haiku": _HAIKU,
    "claude-sonnet-5-5": _SONNET,
    "sonnet": _SONNET,
    "claude-opus-5-5": _OPUS,
    "opus": _OPUS,
    "claude-opus-5": Price(5.0, 25.0, 0.50, 6.25),
    "claude-opus-4-6": Price(5.0, 25.0, 0.50, 6.25),
    "claude-sonnet-5": Price(2.0, 10.0, 0.20, 2.5),
    "claude-haiku-4-5": Price(1.0, 5.0, 0.10, 1.25),
    "gpt-5.5": Price(5.0, 30.0, 0.50, 5.0),
    "gpt-5.4": Price(2.5, 15.0, 0.25, 2.5),
    "gpt-5.4-mini": Price(0.75, 4.5, 0.075, 0.75),
    "gpt-5.4-nano": Price(0.20, 1.25, 0.02, 0.20),
}


USUAL_DAY = "ten conversations of 5,000 tokens and the night after them"
"""The assumption of `cost_of_day`."""
_USUAL_USAGE: dict[Tier, ModelUsage] = {"deep": ModelUsage(80_000, 15_000), "fast": ModelUsage(60_000, 10_000)}
"""A conversation is read with 3,000 tokens of prompt and known names, and gives twenty facts."""


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens in `text`, rather too many than too few."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1


def price_of(model: str, tier: Tier, settings: ModelSettings) -> Price | None:
    """Return the price that the user has set for the tier, else the known one of the model, else None.

    Raises:
        ModelUnavailableError: the user's price does not have the form IN/OUT: no cap in dollars could hold.
    """
    own = settings.deep_price if tier == "deep" else settings.fast_price
    if own:
        found = _OWN.fullmatch(own)
        if found is None:
            key = f"models.{tier}_price"
            problem = f"{key} is {own!r}, must be dollars per million tokens in and out"
            raise ModelUnavailableError(problem, f"Set it: quaid config {key} 4/20")
        of_input, of_output = float(found[1]), float(found[2])
        return Price(of_input, of_output, of_input, of_input)
    bare = model.rsplit("/", 1)[-1]  # gateways put the maker in front
    for name, price in _PRICES.items():
        if bare.startswith(name) and _SUFFIX.fullmatch(bare, len(name)):
            return price
    return None


def with_cost(usage: ModelUsage, price: Price | None) -> ModelUsage:
    """Return `usage` with its cost at `price`."""
    if price is None:
        return usage._replace(cost_usd=None)
    uncached = usage.input_tokens - usage.cached_tokens - usage.written_tokens
    read = uncached * price.input + usage.cached_tokens * price.cached + usage.written_tokens * price.written
    factor = price.long_factor if price.long_from and usage.input_tokens > price.long_from else 1.0
    return usage._replace(cost_usd=factor * (read + usage.output_tokens * price.output) / 1_000_000)


def cost_of_day(models: Mapping[Tier, str], settings: ModelSettings) -> float | None:
    """Return what a usual day costs in dollars; None where the price of a model is not known."""
    usual = (with_cost(usage, price_of(models[tier], tier, settings)) for tier, usage in _USUAL_USAGE.items())
    costs = [usage.cost_usd for usage in usual]
    return None if None in costs else sum(filter(None, costs))


def batches(sized: Iterable[tuple[T, int]], input_limit: int, output_per_item: int, output_limit: int) -> list[list[T]]:
    """Return items, given with their sizes, in their order, in batches whose questions and answers fit the limits.

    All numbers are in tokens: `input_limit` is what a question may have next to the prompt, `output_limit` what its
    answer may have, and `output_per_item` the usual answer to one item. An item that is too big for any batch goes
    alone: the service, or a cap, then reports that it does not fit.
    """
    max_items = max(1, output_limit // output_per_item) if output_per_item > 0 else None
    made: list[list[T]] = []
    left = 0
    for item, tokens in sized:
        if not made or tokens > left or len(made[-1]) == max_items:
            made.append([])
            left = input_limit
        made[-1].append(item)
        left -= tokens
    return made
