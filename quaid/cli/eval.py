"""`quaid eval`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import columns, count, moment, paragraphs, section, short, styled
from quaid.errors import BadInputError
from quaid.model import Recall
from quaid.recall.evaluation import (
    EvalQuestion,
    Outcome,
    OutcomeChange,
    Score,
    compare,
    find_expected,
    list_meant,
    parse_questions,
    replay,
    score,
)

if TYPE_CHECKING:
    from quaid.memory import Memory


@dataclass(frozen=True, slots=True)
class _Side:
    """A replay: of the files as they are, or of a commit."""

    commit: str | None
    when: str | None
    outcomes: list[Outcome]

    @property
    def score(self) -> Score:
        return score(self.outcomes)

    @property
    def degraded(self) -> list[str]:
        return list(dict.fromkeys(name for outcome in self.outcomes for name in outcome.degraded))


def run_eval(
    ctx: typer.Context,
    file: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Questions: list items in markdown, or JSON lines."),
    ],
    before: Annotated[
        str | None, typer.Option(metavar="REV|DATE", help="Compare with the memory at this commit or day.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="REV|DATE", help="Ask the memory at this commit or day instead of the present files."),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", metavar="N", min=1, help="The number of hits for each question, the k of recall@k."
        ),
    ] = 10,
) -> int:
    """Replay questions and count how many expected answers are found; with --before, which were gained and lost.

    A question is a list item, and what it should find stands behind an arrow: - question → [[note]], 7k3qd

    The exit code is 1 when an answer that was found before is lost, or when nothing at all of what is expected is
    found.

    Examples:
      quaid eval eval/*.md
      quaid eval eval/coffee.md --before HEAD~1
      quaid eval questions.jsonl --before 2026-03-01 --after v2 --limit 5 --json
    """
    invocation: Invocation = ctx.obj
    questions = [question for path in file for question in parse_questions(_read(path), str(path))]
    with invocation.open() as memory, invocation.progress(memory) as bar:
        replayed = _Replay(memory, questions, file, limit)
        points = [replayed.find(revision) for revision in (before, after)]
        total = len(questions) * (1 if before is None else 2)
        old = None if before is None else replayed.run(points[0], lambda done: bar.update("Asking", done, total))
        begun = total - len(questions)
        new = replayed.run(points[1], lambda done: bar.update("Asking", begun + done, total))
    changes = compare(old.outcomes, new.outcomes) if old else []
    pairs = [*zip(old.outcomes if old else [None] * len(new.outcomes), new.outcomes, strict=True)]
    invocation.respond(
        paragraphs(
            _render_questions(pairs),
            section("Gained", [(name, change.question.text) for change in changes for name in change.gained]),
            section("Lost", [(name, change.question.text) for change in changes for name in change.lost]),
            _render_scores([old, new] if old else [new], limit),
        ),
        limit=limit,
        before=_side_shape(old) if old else None,
        after=_side_shape(new),
        questions=[shape_of_question(*pair) for pair in pairs],
        gained=[_change_shape(change, change.gained) for change in changes if change.gained],
        lost=[_change_shape(change, change.lost) for change in changes if change.lost],
    )
    return _exit_code(invocation, old, new, changes)


class _Replay:
    """The questions of one call and the memory they are put to."""

    def __init__(self, memory: Memory, questions: list[EvalQuestion], paths: Sequence[Path], limit: int) -> None:
        self.limit = limit
        self._memory = memory
        self._questions = questions
        root = memory.root.resolve()
        inside = [path.resolve() for path in paths if path.resolve().is_relative_to(root)]
        self._own = {path.relative_to(root).as_posix() for path in inside}
        self._meant: dict[str, frozenset[str]] = {}

    def find(self, revision: str | None) -> tuple[str, str] | None:
        """The commit and its time, found once: what a branch names may move between two questions."""
        if revision is None:
            return None
        point = self._memory.git.revisions.find(revision)
        return point.id, point.when

    def run(self, point: tuple[str, str] | None, progress: Callable[[int], None]) -> _Side:
        then: dict[str, Any] = {} if point is None else {"as_of": point[0]}
        self._memory.warm()
        commit, when = point or (None, None)
        return _Side(commit, when, replay(self._questions, lambda text: self._ask(text, then), self._rank, progress))

    def _ask(self, text: str, then: dict[str, Any]) -> Recall:
        """Without a model, which may decide otherwise the next time, and without the file that asks: it says every
        question word for word, and answers none.
        """
        options: dict[str, Any] = {"depth": "fast", "keep": False, **then}
        answer = self._memory.recall(text, self.limit + len(self._own), **options)
        return replace(answer, hits=tuple(hit for hit in answer.hits if hit.path not in self._own)[: self.limit])

    def _rank(self, answer: Recall, reference: str) -> int | None:
        if reference not in self._meant:
            self._meant[reference] = list_meant(self._memory.index(), reference)
        return find_expected(answer.hits, reference, self._meant[reference])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInputError(f"There is no file {path}. Give a markdown file with questions, or JSON lines.") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 text. Save it as UTF-8 and try again.") from error
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}). Give a file with questions.") from error


def _exit_code(invocation: Invocation, old: _Side | None, new: _Side, changes: Sequence[OutcomeChange]) -> int:
    sides = [("before", old), ("now" if old is None else "after", new)]
    if degraded := [f"{name} ({label})" for label, side in sides if side for name in side.degraded]:
        invocation.notify(f"quaid: degraded: {', '.join(degraded)}. More may be found without that; see: quaid doctor")
    lost = sum(len(change.lost) for change in changes)
    if lost:
        invocation.notify(f"quaid: Found before and lost now: {count(lost, 'expected answer')}.")
        return 1
    if old is None and new.score.expected and not new.score.found:
        invocation.notify("quaid: Nothing of what is expected was found. Is this the right vault? See: quaid status")
        return 1
    return 0


def _side_shape(side: _Side) -> dict[str, object]:
    return {"commit": side.commit, "when": side.when, "degraded": side.degraded, **asdict(side.score)}


def shape_of_question(before: Outcome | None, after: Outcome) -> dict[str, object]:
    """A question with the ranks of its expected answers, as JSON."""
    question = after.question
    old = before.ranks if before else (None,) * len(after.ranks)
    expected = [
        {"answer": name, "before": was, "after": now}
        for name, was, now in zip(question.expected, old, after.ranks, strict=True)
    ]
    about = {"question": question.text, "group": question.group, "place": question.place}
    return {**about, "hits": after.hits, "expected": expected}


def _change_shape(change: OutcomeChange, names: Sequence[str]) -> dict[str, object]:
    return {"question": change.question.text, "place": change.question.place, "answers": list(names)}


def _render_questions(pairs: Sequence[tuple[Outcome | None, Outcome]]) -> str:
    """Each question with the ranks of what it expects, below the headings of its file."""
    groups: dict[str, list[str]] = {}
    for before, after in pairs:
        lines = groups.setdefault(after.question.group or "Questions", [])
        lines.append(f"  {after.question.text}")
        old = before.ranks if before else after.ranks
        rows = [
            (_rank(now) if before is None else f"{_rank(was)} -> {_rank(now)}", name)
            for name, was, now in zip(after.question.expected, old, after.ranks, strict=True)
        ] or [(count(after.hits, "hit"), "no expected answer")]
        lines += [f"    {line}" for line in columns(rows).splitlines()]
    return "\n\n".join("\n".join([styled(title, "bold"), *lines]) for title, lines in groups.items())


def _rank(rank: int | None) -> str:
    return "missing" if rank is None else f"rank {rank}"


def _render_scores(sides: Sequence[_Side], limit: int) -> str:
    scores = [side.score for side in sides]
    named = [f"{moment(side.when)}, at {short(side.commit)}" if side.commit else "the present files" for side in sides]
    rows: list[tuple[object, ...]] = [("as of", *named)] if any(side.commit for side in sides) else []
    rows += [
        (f"recall@{limit}", *(_figure(one.recall) for one in scores)),
        ("MRR", *(_figure(one.mrr) for one in scores)),
        ("found", *(f"{one.found:,} of {count(one.expected, 'expected answer')}" for one in scores)),
        ("complete", *(f"{one.complete:,} of {count(one.judged, 'question')}" for one in scores)),
    ]
    only_asked = scores[0].questions - scores[0].judged
    if only_asked:
        rows.append(("replayed", *(f"{count(only_asked, 'question')} with no expected answer" for _ in scores)))
    return section("Score", rows)


def _figure(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"
