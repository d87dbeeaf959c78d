"""Puts many small questions into as few calls as their answers allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


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
