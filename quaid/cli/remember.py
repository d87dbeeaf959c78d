"""`quaid remember`."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Annotated

from quaid.cli.change_output import tell_written
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, check_one_of, flag, option
from quaid.errors import BadInputError, UsageError
from quaid.model import DURABILITIES, FACT_TYPES, PRIVACIES, SOURCES, STATUSES

_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?)?")


def run_remember(
    invocation: Invocation,
    text: Annotated[list[str], argument("TEXT", "One statement of at least three words; - reads it from stdin.")],
    type_: Annotated[str, option("TYPE", f"{', '.join(FACT_TYPES)}.", "--type")] = "fact",
    speaker: Annotated[str | None, option("NAME", "The speaker.")] = None,
    source: Annotated[str, option("SOURCE", f"Where it comes from: {', '.join(SOURCES)}.")] = "user",
    keywords: Annotated[
        list[str] | None,
        option("WORDS", "Words to find it by, repeatable or with commas between them."),
    ] = None,
    confidence: Annotated[float, option("0…1", "How certain the fact is.", min=0.0, max=1.0)] = 0.8,
    valid_from: Annotated[str | None, option("DATE", "The day from which it is true, such as 2026-11-01.")] = None,
    valid_until: Annotated[str | None, option("DATE", "The day until which it is true.")] = None,
    session: Annotated[str | None, option("ID", "The conversation it comes from.")] = None,
    project: Annotated[str | None, option("NAME", "The project it belongs to.")] = None,
    status: Annotated[str, option("STATUS", f"{', '.join(STATUSES)}.")] = "active",
    durability: Annotated[str, option("HOW", f"{', '.join(DURABILITIES)}.")] = "mutable",
    privacy: Annotated[str, option("WHOSE", f"{', '.join(PRIVACIES)}.")] = "private",
    pinned: Annotated[bool, flag("Never let it fade.", "--pinned")] = False,
    replaces: Annotated[str | None, option("REF", "The fact, or its words, that is true no longer.")] = None,
    technical: Annotated[bool, flag("It is about how something is built.", "--technical")] = False,
) -> None:
    """Store a fact as a note, or confirm the one that says the same.

    Examples:
      quaid remember "Maya takes oat milk in her coffee" --type preference --speaker Maya
      quaid remember "The lease of the Bergstrasse flat ends" --valid-from 2026-12-31 --keywords rent,home
      quaid remember "We track our work in Jira" --replaces 7k3qd
      echo "The backup key is in the blue safe" | quaid remember -
    """
    check_one_of("type", [type_], FACT_TYPES)
    check_one_of("source", [source], SOURCES)
    check_one_of("status", [status], STATUSES)
    check_one_of("durability", [durability], DURABILITIES)
    check_one_of("privacy", [privacy], PRIVACIES)
    words = dict.fromkeys(word.strip() for group in keywords or () for word in group.split(","))
    try:
        statement = sys.stdin.buffer.read().decode("utf-8") if text == ["-"] else " ".join(text)
    except UnicodeDecodeError as error:
        raise BadInputError("What came on stdin is not UTF-8 text: nothing was stored. Convert it first.") from error
    with invocation.open() as memory:
        written = memory.remember(
            statement,
            type=type_,
            speaker=speaker,
            source=source,
            keywords=[*filter(None, words)],
            confidence=confidence,
            valid_from=_check_date("valid-from", valid_from),
            valid_until=_check_date("valid-until", valid_until),
            session=session,
            project=project,
            status=status,
            durability=durability,
            privacy=privacy,
            pinned=pinned,
            technical=technical,
            replaces=replaces,
        )
        if written.outcome == "confirmed":  # show the stored fact, not its repetition
            written = replace(written, text=memory.get(written.path).text)
    tell_written(invocation, written)


def _check_date(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    with suppress(ValueError):
        date.fromisoformat(value[:10])  # the calendar has the day
        if _DATE.fullmatch(value):
            return value
    raise UsageError(f"--{name} is {value!r}, must be a date like 2026-11-01.")
