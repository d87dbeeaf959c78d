"""Questions with the answers they should find: read from a file, asked, scored, and compared between two revisions.

What `recall --expect` and `quaid eval` decide.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from quaid.errors import BadInputError, CouldNotAskError, QuaidError, UsageError
from quaid.index import references
from quaid.index.port import IndexConnection
from quaid.model import Hit, Recall, name_key, note_name
from quaid.vault import markdown, notes

_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*\S)\s*")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(?P<text>.*)")
_HEADING_END = re.compile(r"(?<!\s)\s+#+\s*\Z")
_ARROW = re.compile(r"(?:^|(?<!\s)\s+)(?:→|->)(?:\s+|$)")
_LINK = re.compile(r"\[\[[^\[\]]+\]\]")
_EXPECTED = re.compile(rf"({_LINK.pattern})|,")
_KEYS = {"question", "expect", "group"}
_TURN = re.compile(r"(?P<note>.+)#\^?t(?P<turn>\d+)")
_MIN_ID_PART = 4
_NOT_AS_ASKED = ("config", "stale", "removals")
"""The degradation when the settings are not the owner's, or the index that answered is behind the files."""
NOT = "not "
_JSON_FORM = 'Write: {"question": "…", "expect": ["7k3qd"]}'


class EvalQuestion(NamedTuple):
    """`expected` are references as `quaid get` takes them; without any, the question is only replayed."""

    text: str
    expected: tuple[str, ...] = ()
    group: str = ""
    place: str = ""
    """File and line of the question."""


class Outcome(NamedTuple):
    """The outcome of one question: the rank from 1 of each expected answer, None where it was not found."""

    question: EvalQuestion
    ranks: tuple[int | None, ...]
    hits: int
    degraded: tuple[str, ...] = ()

    @property
    def found(self) -> tuple[str, ...]:
        return tuple(name for name, rank in zip(self.question.expected, self.ranks, strict=True) if rank is not None)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name, rank in zip(self.question.expected, self.ranks, strict=True) if rank is None)

    @property
    def recall(self) -> float:
        """Return the share of the expected answers that was found."""
        return len(self.found) / len(self.ranks)

    @property
    def reciprocal_rank(self) -> float:
        """Return 1 / rank of the first expected answer, 0 when none was found."""
        return max((1 / rank for rank in self.ranks if rank is not None), default=0.0)


class Score(NamedTuple):
    """Means over the `judged` questions, those that expect something; None when there are none.

    `recall` is recall@k (the share of the expected answers among the first k hits), `mrr` the mean reciprocal rank of
    the first one (https://en.wikipedia.org/wiki/Mean_reciprocal_rank); `complete` counts questions that miss nothing.
    """

    questions: int
    judged: int
    complete: int
    expected: int
    found: int
    recall: float | None
    mrr: float | None


def parse_questions(text: str, name: str) -> list[EvalQuestion]:
    """Return the questions of one file; JSON lines when `name` ends in .jsonl, else markdown.

    Markdown: each list item is a question, `→` or `->` and the expected answers may follow, as links or ids with commas
    between them; headings group. Code, comments, the frontmatter and all other text are passed over.

        - What milk does Maya take? → [[maya-prefers-oat-milk-7k3qd]], [[20-1402-2f1c9a#^t3]]

    JSON lines: `{"question": "What milk does Maya take?", "expect": ["7k3qd"], "group": "Coffee"}`.

    Raises:
        BadInputError: a line is invalid, with its number, or there is no question.
    """
    text = text.removeprefix("\ufeff")
    if name.endswith(".jsonl"):
        numbered = enumerate(text.split("\n"), 1)
        questions = [_parse_json(line, f"{name}, line {number}") for number, line in numbered if line.strip()]
    else:
        questions, group = [], ""
        head, body = notes.split_body(text)  # without frontmatter, code blocks and comments
        lines = markdown.blank(body, "fence", "comment").split("\n")
        for number, line in enumerate((each.removesuffix("\r") for each in lines), head.count("\n") + 1):
            if heading := _HEADING.fullmatch(line):
                group = _HEADING_END.sub("", heading["text"]).strip()
            elif item := _ITEM.fullmatch(line):
                questions.append(_parse_item(item["text"], group, f"{name}, line {number}"))
    if not questions:
        raise BadInputError(f"{name} asks nothing. Write a question as a list item: - question → [[note]]")
    return questions


def score(outcomes: Sequence[Outcome]) -> Score:
    """Return the figures of a whole replay."""
    judged = [outcome for outcome in outcomes if outcome.ranks]
    return Score(
        questions=len(outcomes),
        judged=len(judged),
        complete=sum(not outcome.missing for outcome in judged),
        expected=sum(len(outcome.ranks) for outcome in judged),
        found=sum(len(outcome.found) for outcome in judged),
        recall=sum(outcome.recall for outcome in judged) / len(judged) if judged else None,
        mrr=sum(outcome.reciprocal_rank for outcome in judged) / len(judged) if judged else None,
    )


def list_gained(before: Sequence[Outcome], after: Sequence[Outcome]) -> list[tuple[EvalQuestion, list[str]]]:
    """Return the questions of which only `after` found expected answers, with these, as written. Both are replays of
    the same questions, in order.
    """
    pairs = zip(before, after, strict=True)
    found = ((new.question, [name for name in new.found if name in old.missing]) for old, new in pairs)
    return [(question, names) for question, names in found if names]


# -- what is expected ------------------------------------------------------------------------------------------------


def find_expected(hits: Sequence[Hit], reference: str, targets: Collection[str] = ()) -> int | None:
    """Return the rank, from 1, of the first hit that `reference` names, None when there is none.

    A reference is what `quaid get` takes: an id or four characters or more from either end of it, a path, a name, the
    session of a conversation, or one turn of it (`20-1402-2f1c9a#t3`), each also as a link. Aliases and the ids of
    episodes are not part of a hit: `targets` are the paths that `list_targets` finds. After `not `, 1 if none fits.
    """
    if reference.startswith(NOT):
        return None if find_expected(hits, reference.removeprefix(NOT), targets) else 1
    note, turn = parse_reference(reference)
    named = (turn in {None, hit.turn} and (hit.path in targets or _is_named(hit, note)) for hit in hits)
    return next((rank for rank, is_it in enumerate(named, 1) if is_it), None)


def list_targets(connection: IndexConnection, reference: str) -> frozenset[str]:
    """Return the paths of the notes that `reference` resolves to in this index; empty if it has no such note."""
    return frozenset(target.document.path for target in references.resolve(connection, reference.removeprefix(NOT)))


def parse_reference(reference: str) -> tuple[str, int | None]:
    """Return (note, turn) of `7k3qd`, `20-1402-2f1c9a#t3`, `[[20-1402-2f1c9a#^t3|her answer]]`."""
    text = references.target_of(reference)
    match = _TURN.fullmatch(text)
    return (match["note"], int(match["turn"])) if match else (text, None)


@contextmanager
def deciding() -> Iterator[None]:
    """Raise `CouldNotAskError` for every other error of the body but a `UsageError`.

    The exit code is the answer there. An error that prevents the question must not look like an answer: `git bisect`
    would take it for a lost memory. Exit code 125 makes it skip the commit.
    """
    try:
        yield
    except UsageError:
        raise
    except QuaidError as error:
        raise CouldNotAskError(error) from error


def check_decidable(answer: Recall) -> None:
    """Refuse an answer from an index that is behind the files that are checked out.

    Raises:
        CouldNotAskError
    """
    if missing := [name for name in answer.degraded if name in _NOT_AS_ASKED]:
        raise CouldNotAskError(f"The answer is not that of this vault ({', '.join(missing)}). Try: quaid sync")


def _is_named(hit: Hit, note: str) -> bool:
    """Return whether `note` is the exact name of a hit, or a part of an id that is not a path."""
    if note in {hit.id, hit.path} or (note and hit.turn is not None and note == hit.session):
        return True
    if name_key(note.removesuffix(".md")) == name_key(note_name(hit.path)):
        return True
    part = note.lower()
    has_id = hit.turn is None and hit.id != hit.path
    return has_id and len(part) >= _MIN_ID_PART and (hit.id.startswith(part) or hit.id.endswith(part))


# -- question files --------------------------------------------------------------------------------------------------


def _parse_item(text: str, group: str, place: str) -> EvalQuestion:
    arrows = list(_ARROW.finditer(text))
    if not arrows:
        return EvalQuestion(text, (), group, place)
    asked, expected = text[: arrows[-1].start()].strip(), text[arrows[-1].end() :]
    if not asked:
        raise BadInputError(f"{place}: there is no question before the arrow. Write: - question → [[note]]")
    names = tuple(dict.fromkeys(filter(None, map(_name, _EXPECTED.split(expected)))))
    if not names:
        raise BadInputError(f"{place}: nothing is expected after the arrow. Name a note there, or take the arrow away")
    for name in names:
        if "[[" in name or "]]" in name:
            raise BadInputError(f"{place}: {name!r} is half a link. Write [[note]]")
    return EvalQuestion(asked, names, group, place)


def _name(part: str | None) -> str:
    """Return what a piece between commas names; of a link the target."""
    text = (part or "").strip()
    return text[2:-2].partition("|")[0].strip() if _LINK.fullmatch(text) else text


def _parse_json(line: str, place: str) -> EvalQuestion:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInputError(f"{place}: it is not JSON ({error}). {_JSON_FORM}") from error
    if not isinstance(found, dict):
        raise BadInputError(f"{place}: it is not a JSON object. {_JSON_FORM}")
    for key in found:
        if key not in _KEYS:
            raise BadInputError(f"{place}: {key!r} is not one of {', '.join(sorted(_KEYS))}. {_JSON_FORM}")
    question, expected, group = found.get("question"), found.get("expect", []), found.get("group", "")
    if not isinstance(question, str) or not question.strip():
        raise BadInputError(f"{place}: there is no question. {_JSON_FORM}")
    if not isinstance(expected, list) or not all(isinstance(name, str) and name.strip() for name in expected):
        raise BadInputError(f"{place}: expect is not a list of references. {_JSON_FORM}")
    if not isinstance(group, str):
        raise BadInputError(f"{place}: group is not text. {_JSON_FORM}")
    return EvalQuestion(question.strip(), tuple(dict.fromkeys(map(_name, expected))), group, place)
