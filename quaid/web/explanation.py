"""How an answer came about, as what a picture of it needs: places in percent, counts, and the words beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from quaid.model import Hit, Recall
from quaid.recall.trace import MIN_SHOWN, group_left_out, split_score

CHANNELS = {
    "keyword": "words",
    "vector": "meaning",
    "graph": "graph",
    "exact": "name",
    "episodes": "sessions",
    "hyde": "imagined answer",
    "second_pass": "broader search",
}
"""The channels as a reader is told of them; those of a question in this order."""
WANTED = {
    "who": "a person", "when": "a time", "where": "a place", "what": "a thing", "preference": "what somebody likes",
    "relation": "how two are related", "why": "a reason", "project": "how a project works", "general": "anything",
}  # fmt: skip
"""What a question asks for, by its intent."""
EVIDENCE = {
    "own": "its own words and meaning",
    "beside": "what was said beside it",
    "session_best": "the best turn of its session",
    "session_words": "its session as a whole",
    "cited": "a fact that rests on it",
    "session_fact": "a fact from its session",
    "speaker": "who said it, or who it is about",
    "length": "how much it says",
    "pieces": "one of many pieces of a long turn",
    "asks": "it asks, and answers nothing",
    "answers": "it follows a question",
    "tells_when": "it tells when",
    "graph": "near in the graph to a name in the question",
    "dated": "from the time in the question",
    "phrase": "it has the quoted phrase",
    "later stages": "its exact name, its confidence, the order",
}
"""The kinds of evidence as a reader is told of them."""
MAX_COLOURS = 4
"""Kinds of evidence with a colour of their own."""
MIN_WIDTH = 1.5
"""Percent: what is there can be seen."""
MIN_APART = 5.0
"""Percent between two dots of one row: closer ones lie in rows."""
MAX_ROWS = 4


class Share(NamedTuple):
    """A part of a score: `start` and `width` in percent of the best score, `colour` from 1, 0 for what has none;
    `strength` is its size in percent of the greatest part of all answers, for and against alike.
    """

    name: str
    value: float
    start: float
    width: float
    colour: int
    strength: float


class Dot(NamedTuple):
    """A memory at a place in percent, in a row from 0. `number` is that of its answer, 0 for what was left out."""

    number: int
    at: float
    row: int = 0


class Track(NamedTuple):
    """What one channel found. The first place is at 0 percent, the last at 100, on a logarithmic scale."""

    name: str
    found: int
    dots: list[Dot]
    told: str


class Remaining(NamedTuple):
    """How many are left after a step, `width` in percent of all candidates."""

    left: int
    what: str
    width: float


class Scores(NamedTuple):
    """The scores on a line from 0 to 1, in percent. `least` is what is far behind the best, where that was decisive;
    under `gate` an answer is in doubt.
    """

    dots: list[Dot]
    gate: float
    least: float | None
    told: str


class Explanation(NamedTuple):
    """The road of an answer: how the question was read, what was found, how it was weighed, what remained."""

    read: list[tuple[str, Sequence[str]]]
    tracks: list[Track]
    scores: Scores
    remaining: list[Remaining]


def explain(found: Recall, gate: float, cut_share: float) -> Explanation | None:
    """Return the road of an answer; None where nothing was asked, and so nothing weighed. `gate` and `cut_share` are
    the settings of recall.
    """
    trace: Mapping[str, Any] = found.trace
    if "channels" not in trace:
        return None
    return Explanation(
        list(_tell_question(trace)),
        list(_draw_tracks(found, trace)),
        _draw_scores(found, gate, cut_share),
        list(_count_remaining(found, trace)),
    )


def share_scores(hits: Sequence[Hit]) -> list[list[Share]]:
    """Return for each hit what its score is made of, all on one scale."""
    split = [{name: value for name, value in split_score(hit).items() if abs(value) >= MIN_SHOWN} for hit in hits]
    best = max((1.0, *(hit.score for hit in hits)))
    greatest = max((abs(value) for parts in split for value in parts.values()), default=1.0)
    return [list(_share(hit.score, parts, best, greatest)) for hit, parts in zip(hits, split, strict=True)]


def _share(score: float, parts: Mapping[str, float], best: float, greatest: float) -> Iterator[Share]:
    """Yield stretches of one bar; what speaks against a hit has no width there."""
    total = sum(value for value in parts.values() if value > 0)
    start = 0.0
    for place, (name, value) in enumerate(parts.items(), 1):
        width = 100 * score / best * value / total if value > 0 else 0.0
        colour = place if place <= MAX_COLOURS and value > 0 else 0
        yield Share(EVIDENCE.get(name, name), value, start, width, colour, 100 * abs(value) / greatest)
        start += width


def tell_channels(hit: Hit, trace: Mapping[str, Any]) -> list[str]:
    """Return for each channel that found a hit where it stood there: `1st of 35 by words`."""
    counts = _count_found(trace)
    return [
        f"{_ordinal(place.rank)} of {counts.get(name, place.rank):,} by {CHANNELS.get(name, name)}"
        if place.rank
        else f"by the {CHANNELS.get(name, name)}"
        for name, place in hit.channels.items()
    ]


def _tell_question(trace: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    (read,) = [stage for stage in trace["stages"] if stage["stage"] == "query"][:1] or [{}]
    yield "It asks for", [WANTED[trace["intent"]]]
    # The second pass adds words; the stage has those that were typed.
    for name in ("words", "names", "dates", "phrases"):
        if read.get(name):
            yield f"by the {name}", [str(each) for each in read[name]]


def _count_found(trace: Mapping[str, Any]) -> dict[str, int]:
    """Return how many each channel has found, in the order of `CHANNELS`."""
    stages = {stage["stage"]: stage["found"] for stage in trace["stages"] if "found" in stage}
    counts = {**{name: stages[name] for name in ("exact", "episodes") if stages.get(name)}, **trace.get("channels", {})}
    return {name: counts[name] for name in CHANNELS if name in counts}


def _draw_tracks(found: Recall, trace: Mapping[str, Any]) -> Iterator[Track]:
    for name, count in _count_found(trace).items():
        ranks = {number: hit.channels[name].rank for number, hit in enumerate(found.hits, 1) if name in hit.channels}
        last = math.log(max(2, count, *ranks.values()))
        dots = _in_rows((number, 100 * math.log(max(1, rank)) / last) for number, rank in ranks.items())
        places = ", ".join(f"answer {number} was {_ordinal(rank)}" for number, rank in ranks.items())
        yield Track(CHANNELS[name], count, dots, places or ("of none of the answers" if count else ""))


def _draw_scores(found: Recall, gate: float, cut_share: float) -> Scores:
    left_out = group_left_out(found.trace)
    behind = [score for why, scores in left_out.items() if "behind" in why for score in scores.values() if score]
    others = [score for scores in left_out.values() for score in scores.values() if score]
    shown = [hit.score for hit in found.hits]
    least = cut_share * shown[0] if shown and behind else None
    if least is not None and not max(behind) <= least <= min(shown):
        least = None  # a list asks for less, an exact name has another scale: then no line tells the two apart
    dots = _in_rows((number, 100 * min(1.0, score)) for number, score in enumerate(shown, 1))
    dots += [Dot(0, 100 * min(1.0, score)) for score in others]
    told = ", ".join(f"answer {number} has {score:.2f}" for number, score in enumerate(shown, 1))
    if others:
        told += f"{'; ' if told else ''}what was left out has up to {max(others):.2f}"
    return Scores(dots, 100 * gate, None if least is None else 100 * least, told)


def _count_remaining(found: Recall, trace: Mapping[str, Any]) -> Iterator[Remaining]:
    stages = {stage["stage"]: stage for stage in trace["stages"]}
    weighed, chosen = stages.get("score", {}), stages.get("choose", {})
    first = weighed.get("candidates", 0)
    counts = (
        (first, "were found and weighed"),
        (weighed.get("left", 0), "may be shown: they hold, and are of the kind asked for"),
        (chosen.get("shown", 0) + chosen.get("behind", 0), "have to do with the question, and are near the best"),
        (len(found.hits), "are shown: the best of them, one for all that say the same"),
    )
    for count, what in counts:
        yield Remaining(count, what, max(MIN_WIDTH, 100 * count / first) if count and first else 0.0)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _in_rows(places: Iterator[tuple[int, float]]) -> list[Dot]:
    """Return dots so that none covers another, as far as there are rows."""
    ends = [-100.0] * MAX_ROWS
    dots = []
    for number, at in sorted(places, key=lambda each: each[1]):
        row = next((row for row, end in enumerate(ends) if at - end >= MIN_APART), MAX_ROWS - 1)
        ends[row] = at
        dots.append(Dot(number, at, row))
    return dots
