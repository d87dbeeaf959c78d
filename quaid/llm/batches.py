"""Puts many small questions into as few calls as their answers allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def batches(
    items: Iterable[T], *, tokens_of: Callable[[T], int], input_limit: int, output_per_item: int, output_limit: int
) -> list[list[T]]:
    """Return `items` in their order, in batches whose tokens fit into one question and whose answers into one answer.

    `tokens_of` estimates the tokens of one item; `input_limit` is the room in a question beside the prompt,
    `output_limit` the room in its answer, `output_per_item` the answer to one item, all in tokens. An item that is too
    big for any batch goes alone: the service, or a cap, then says that it does not fit.
    """
    max_items = max(1, output_limit // output_per_item) if output_per_item > 0 else None
    made: list[list[T]] = []
    room = 0
    for item in items:
        tokens = tokens_of(item)
        if not made or tokens > room or len(made[-1]) == max_items:
            made.append([])
            room = input_limit
        made[-1].append(item)
        room -= tokens
    return made
