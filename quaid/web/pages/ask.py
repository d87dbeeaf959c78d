"""Ask: the answer to a question, the reasons for each hit, and what was left out; or the newest memories."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from quaid.errors import GitError, QuaidError, UsageError
from quaid.index.listing import list_values
from quaid.index.references import view_note
from quaid.memory import Memory
from quaid.model import PRIVACIES, Hit, Recall
from quaid.recall.options import KINDS, PROFILES
from quaid.recall.scoring import THRESHOLD
from quaid.recall.trace import MIN_SHOWN, group_left_out, list_degraded, split_score
from quaid.text.dates import parse_day
from quaid.text.quoting import describe
from quaid.text.zones import local_now
from quaid.web.answer import Context
from quaid.web.outcomes import read_words
from quaid.web.templating import memory_path

ASK = "/ask"
MAX_NEWEST = 12
"""Memories that are shown without a question."""
MAX_LEFT_OUT = 8
"""Memories that are named for each reason to leave them out."""
MAX_CHOICES = 200
"""Owners and projects to choose from."""
FIELDS = ("q", "kind", "owner", "project", "privacy", "from", "to", "at", "as_of", "superseded")
CHANNELS = read_words("channels")
"""The names of the channels, in the order of the page."""
WANTED = read_words("intents")
"""What a question asks for, by intent."""
FEATURES = read_words("features")
"""The names of the features of a score."""
MAX_COLOURS = 4
"""Features with their own colour."""
MIN_WIDTH = 1.5
"""Percent, so that a small share is visible."""
MIN_DISTANCE = 5.0
"""Percent between two dots of one row: closer ones are drawn in several rows."""
MAX_ROWS = 4
_TERMS = ("words", "names", "dates", "phrases")

Picture = Mapping[str, Any]
"""What a drawing needs; places and widths are in percent."""


def show_ask(memory: Memory, request: Request) -> Context:
    """Return the answer to the question in the address. Nothing is recorded: a page view is not a use of a memory."""
    now = local_now(memory.settings.timezone)
    asked = {name: request.query_params.get(name, "").strip() for name in FIELDS}
    index = memory.index()
    shown: dict[str, Any] = {
        "asked": asked,
        "kinds": KINDS,
        "privacies": PRIVACIES,
        "owners": list_values(index, "owner")[:MAX_CHOICES],
        "projects": list_values(index, "project")[:MAX_CHOICES],
        "history": _read_history(memory, asked["as_of"], now.date()),
        "present": f"{ASK}?{urlencode({name: value for name, value in asked.items() if value and name != 'as_of'})}",
        "found": None,
        "problem": "",
    }
    try:
        found = memory.recall(
            asked["q"],
            None if asked["q"] else MAX_NEWEST,
            as_of=asked["as_of"] or None,
            keep=False,
            recent=not asked["q"],
            depth="fast",  # as fast as it is typed: no model is called for each letter
            **_read_options(asked, now),
        )
    except QuaidError as error:
        return {**shown, "problem": str(error)}
    trace: Mapping[str, Any] = found.trace
    left_out: dict[str, list[tuple[str, float | None, str]]] = {}
    for why, scores in group_left_out(trace).items():
        left_out[why] = []
        for hit_id, score in [*scores.items()][:MAX_LEFT_OUT]:
            text = ""
            with suppress(QuaidError):  # it is not there any more
                text = view_note(index, hit_id, memory.settings.timezone).text.strip()
            left_out[why].append((hit_id, score, text))
    settings = memory.settings.recall
    stages = trace.get("stages", ())
    slowest = max((stage["took_ms"] for stage in stages), default=0.0)
    return {
        **shown,
        "found": found,
        "hits": [
            (hit, describe(hit), shares, list_ranks(hit, trace))
            for hit, shares in zip(found.hits, share_scores(found.hits), strict=True)
        ],
        "origins": {  # the address and the name of the conversation of each turn
            hit.id: (f"{memory_path(hit.path)}#b-t{hit.turn}", hit.heading or hit.path)
            for hit in found.hits
            if hit.turn is not None
        },
        "explained": _explain(found, trace, THRESHOLD, PROFILES[settings.profile].cut_share),
        "degraded": list_degraded(found.degraded, trace),
        "then": trace.get("as_of"),
        "stages": [(stage, 100 * stage["took_ms"] / slowest if slowest else 0) for stage in stages],
        "left_out": left_out,
    }


def _read_history(memory: Memory, as_of: str, today: date) -> Picture | None:
    """Return the days of the slider, as numbers from the first one; None if there is no history to go back in."""
    first, selected = None, today
    with suppress(GitError):
        first = memory.pasts.first_day()
    with suppress(ValueError):
        selected = date.fromisoformat(as_of)
    if first is None or first >= today:
        return None
    days = (today - first).days
    return {"first": first.isoformat(), "days": days, "chosen": min(days, max(0, (selected - first).days))}


def _read_options(asked: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return the fields of `RecallOptions`. UsageError: an unknown name, or not a date."""
    for name, known in (("kind", KINDS), ("privacy", PRIVACIES)):
        if asked[name] and asked[name] not in known:
            raise UsageError(f"There is no {name} {asked[name]!r}; there are {', '.join(known)}.")
    names = {"kinds": "kind", "privacies": "privacy", "of_owners": "owner", "projects": "project"}
    days = {"first": ("from", False), "last": ("to", True), "at": ("at", True)}
    return {
        **{option: frozenset({asked[name]} - {""}) for option, name in names.items()},
        **{
            option: parse_day(asked[name], now, end=end) if asked[name] else None
            for option, (name, end) in days.items()
        },
        "superseded": bool(asked["superseded"]),
    }


# -- how an answer came about ----------------------------------------------------------------------------------------


def _explain(found: Recall, trace: Mapping[str, Any], gate: float, cut_share: float) -> Picture | None:
    """Return how the question was read, what each channel found, how it was scored, and how many hits remained at each
    stage; None without a question. `gate` and `cut_share` are the settings of recall.
    """
    if "channels" not in trace:
        return None
    stages = {stage["stage"]: stage for stage in reversed(trace["stages"])}
    read = [("It asks for", [WANTED[trace["intent"]]])]
    # The second pass adds words; the first stage has the words of the question.
    terms = stages.get("query", {})
    scored, selected = stages.get("score", {}), stages.get("choose", {})
    first = scored.get("candidates", 0)
    counts = (
        (first, "candidates were scored"),
        (scored.get("left", 0), "pass the filters and are still true"),
        (selected.get("shown", 0) + selected.get("behind", 0), "are relevant, with a score near the best"),
        (len(found.hits), "are shown, duplicates merged"),
    )
    read += [(f"by the {name}", list(map(str, terms[name]))) for name in _TERMS if terms.get(name)]
    tracks: list[Picture] = []
    # The answers on a line for each channel: the first rank at 0 percent, the last at 100, logarithmic.
    for name, number_found in _count_found(trace).items():
        ranks = {number: hit.channels[name].rank for number, hit in enumerate(found.hits, 1) if name in hit.channels}
        last = math.log(max(2, number_found, *ranks.values()))
        dots = _in_rows([(number, 100 * math.log(max(1, rank)) / last) for number, rank in ranks.items()])
        places = ", ".join(f"answer {number} was {_ordinal(rank)}" for number, rank in ranks.items())
        words = places or ("of none of the answers" if number_found else "")
        tracks.append({"name": CHANNELS[name], "found": number_found, "dots": dots, "words": words})
    return {
        "read": read,
        "tracks": tracks,
        "scores": _draw_scores(found, gate, cut_share),
        "remaining": [
            {"left": count, "what": what, "width": max(MIN_WIDTH, 100 * count / first) if count and first else 0.0}
            for count, what in counts
        ],
    }


def share_scores(hits: Sequence[Hit]) -> list[list[Picture]]:
    """Return the shares of the score of each hit: stretches of one bar, all on one scale."""
    split = [{name: value for name, value in split_score(hit).items() if abs(value) >= MIN_SHOWN} for hit in hits]
    best = max((1.0, *(hit.score for hit in hits)))
    greatest = max((abs(value) for parts in split for value in parts.values()), default=1.0)
    bars = []
    for hit, parts in zip(hits, split, strict=True):
        total, start = sum(value for value in parts.values() if value > 0), 0.0
        shares: list[Picture] = []
        for place, (name, value) in enumerate(parts.items(), 1):
            # A negative share has no width; `strength` compares it with those of all answers.
            width = 100 * hit.score / best * value / total if value > 0 else 0.0
            colour = place if place <= MAX_COLOURS and value > 0 else 0
            strength = 100 * abs(value) / greatest
            share = {"name": FEATURES.get(name, name), "value": value, "start": start, "width": width}
            shares.append({**share, "colour": colour, "strength": strength})
            start += width
        bars.append(shares)
    return bars


def list_ranks(hit: Hit, trace: Mapping[str, Any]) -> list[str]:
    """Return the rank of a hit in each channel that found it: `1st of 35 by words`."""
    counts = _count_found(trace)
    return [
        f"{_ordinal(place.rank)} of {counts.get(name, place.rank):,} by {CHANNELS.get(name, name)}"
        if place.rank
        else f"by the {CHANNELS.get(name, name)}"
        for name, place in hit.channels.items()
    ]


def _count_found(trace: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of candidates of each channel, in the order of `CHANNELS`."""
    stages = {stage["stage"]: stage["found"] for stage in trace["stages"] if "found" in stage}
    counts = {**{name: stages[name] for name in ("exact",) if stages.get(name)}, **trace.get("channels", {})}
    return {name: counts[name] for name in CHANNELS if name in counts}


def _draw_scores(found: Recall, gate: float, cut_share: float) -> Picture:
    """Return the scores on a line from 0 to 1. `least` is the line between hits and what is too far behind the best."""
    left_out = group_left_out(found.trace)
    behind = [score for why, scores in left_out.items() if "behind" in why for score in scores.values() if score]
    others = [score for scores in left_out.values() for score in scores.values() if score]
    shown = [hit.score for hit in found.hits]
    least = cut_share * shown[0] if shown and behind else None
    if least is not None and not max(behind) <= least <= min(shown):
        least = None  # a list has a lower limit, an exact name another scale: then no line separates the two
    dots = _in_rows([(number, 100 * min(1.0, score)) for number, score in enumerate(shown, 1)])
    dots += [{"number": 0, "at": 100 * min(1.0, score), "row": 0} for score in others]
    words = ", ".join(f"answer {number} has {score:.2f}" for number, score in enumerate(shown, 1))
    if others:
        words += f"{'; ' if words else ''}memories left out have up to {max(others):.2f}"
    return {"dots": dots, "gate": 100 * gate, "least": None if least is None else 100 * least, "words": words}


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _in_rows(places: Sequence[tuple[int, float]]) -> list[Picture]:
    """Return dots in as many rows as are needed, and allowed, so that none covers another."""
    ends = [-100.0] * MAX_ROWS
    dots: list[Picture] = []
    for number, at in sorted(places, key=lambda each: each[1]):
        row = next((row for row, end in enumerate(ends) if at - end >= MIN_DISTANCE), MAX_ROWS - 1)
        ends[row] = at
        dots.append({"number": number, "at": at, "row": row})
    return dots
