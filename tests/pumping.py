"""Texts that make a regular expression work hard: what its parts match, over and over, and then something else."""

from __future__ import annotations

import math
import random
import re
import re._constants as sre
import re._parser as parser
import time
from collections.abc import Callable, Iterator

FEW, SHORT, LONG = 20, 4_000, 16_000
"""Characters. From one to the other linear work takes 4 times as long, quadratic work 16 times."""
NOTICED_S = 0.003
MARKED_S = 0.05
"""What reading all of a long text may take, however it grows from the short one."""
MAX_GROWTH = 8.0
MAX_PUMPS = 30
CATEGORIES = {
    sre.CATEGORY_DIGIT: "7", sre.CATEGORY_NOT_DIGIT: "a", sre.CATEGORY_SPACE: " ", sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_WORD: "a", sre.CATEGORY_NOT_WORD: "-",
}  # fmt: skip


def growth(pattern: re.Pattern, text: Callable[[int], str], how: str) -> float:
    """How many times as long the long text takes as the short one; 0 where neither is noticed."""
    if _seconds(pattern, text(FEW), how) > NOTICED_S:
        return math.inf
    if _seconds(pattern, text(SHORT), how) < NOTICED_S:
        return 0.0
    return _growth(lambda size: _seconds(pattern, text(size), how), NOTICED_S)


def growth_of(work: Callable[[int], object]) -> float:
    """How many times as long `work` takes with 16,000 characters as with 4,000; 0 where neither is noticed."""

    def seconds(size: int) -> float:
        began = time.thread_time()
        work(size)
        return time.thread_time() - began

    return _growth(seconds, MARKED_S)


def _growth(seconds: Callable[[int], float], noticed_s: float) -> float:
    """The least of some measurements, the first that is small enough: what is quadratic is never quick by chance."""
    found = math.inf
    for _ in range(4):
        short, long = (min(seconds(size) for _ in range(2)) for size in (SHORT, LONG))
        found = min(found, long / short if long > noticed_s else 0.0)
        if found < MAX_GROWTH:
            break
    return found


def _seconds(pattern: re.Pattern, text: str, how: str) -> float:
    """Of this thread alone: whatever else the machine does is not counted."""
    given = text if isinstance(pattern.pattern, str) else text.encode("utf-8", "replace")
    began = time.thread_time()
    if how == "sub":
        for _ in pattern.finditer(given):
            pass
    else:
        getattr(pattern, how)(given)
    return time.thread_time() - began


def texts(pattern: re.Pattern) -> Iterator[Callable[[int], str]]:
    """Texts of any size, each made of something that a part of `pattern` matches."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(source, pattern.flags & ~re.DEBUG if isinstance(pattern.pattern, str) else 0)
    found = dict.fromkeys(_parts(tree))
    atoms = [part for part in found if part][:24]
    draw = random.Random(len(source))
    pumps = list(dict.fromkeys([*atoms, *("".join(draw.sample(atoms, min(2, len(atoms)))) for _ in range(MAX_PUMPS))]))
    for pump in pumps[:MAX_PUMPS]:
        for head, tail in (("", "\0"), (_sample(tree), "\0")):
            yield lambda size, pump=pump, head=head, tail=tail: head + pump * (size // len(pump)) + tail


def _parts(tree) -> Iterator[str]:
    """An example of each part, the whole first."""
    yield _sample(tree)
    run = ""
    for op, value in tree:
        run = run + chr(value) if op is sre.LITERAL else ""
        if len(run) > 1:
            yield run
        yield _sample([(op, value)])
        for inner in _inside(op, value):
            yield from _parts(inner)


def _inside(op, value) -> list:
    if op is sre.BRANCH:
        return list(value[1])
    if op in {sre.SUBPATTERN, sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT, sre.ASSERT, sre.ASSERT_NOT}:
        return [value[-1]]
    if op is sre.ATOMIC_GROUP:
        return [value]
    return [tree for tree in value[1:] if tree] if op is sre.GROUPREF_EXISTS else []


def _sample(tree) -> str:
    """A short text that `tree` may match."""
    return "".join(_one(op, value) for op, value in tree)[:40]


def _one(op, value) -> str:
    if op is sre.LITERAL:
        return chr(value)
    if op is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if op is sre.ANY:
        return "a"
    if op is sre.IN:
        return _member(value)
    if op is sre.BRANCH:
        return _sample(value[1][0])
    if op in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        return _sample(value[-1]) * max(1, min(value[0], 3))
    if op in {sre.SUBPATTERN, sre.ATOMIC_GROUP}:
        return _sample(value[-1] if op is sre.SUBPATTERN else value)
    return ""


def _member(items) -> str:
    if items[0][0] is sre.NEGATE:
        taken = re.compile("[^a]")  # what most classes leave out is not a letter
        return next((char for char in "ab \n7-" if not any(_has(item, char) for item in items[1:])), taken.pattern[2])
    op, value = items[0]
    if op is sre.RANGE:
        return chr(value[0])
    return CATEGORIES[value] if op is sre.CATEGORY else chr(value)


def _has(item, char: str) -> bool:
    op, value = item
    if op is sre.CATEGORY:
        return bool(re.match({sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s",
                              sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w"}.get(value, r"\W"), char))  # fmt: skip
    return value[0] <= ord(char) <= value[1] if op is sre.RANGE else value == ord(char)
