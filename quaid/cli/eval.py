"""`quaid eval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, option
from quaid.cli.terminal import ProgressBar, columns, count, moment, paragraphs, section, short, styled
from quaid.errors import BadInputError
from quaid.memory import Memory
from quaid.model import Recall
from quaid.recall.evaluation import (
    EvalQuestion,
    Outcome,
    OutcomeChange,
    compare,
    find_expected,
    list_targets,
    parse_questions,
    replay,
    score,
)
from quaid.shapes import json_object


def run_eval(
    invocation: Invocation,
    file: Annotated[
        list[Path],
        argument("FILE", "Questions: list items in markdown, or JSON lines."),
    ],
    before: Annotated[str | None, option("REV|DATE", "Compare with the memory at this commit or day.")] = None,
    after: Annotated[
        str | None,
        option("REV|DATE", "Ask the memory at this commit or day instead of the present files."),
    ] = None,
    limit: Annotated[
        int,
        option("N", "The number of hits for each question, the k of recall@k.", "--limit", "-n", min=1),
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
    questions = [question for path in file for question in parse_questions(_read(path), str(path))]
    with invocation.open() as memory, invocation.progress(memory) as bar:
        # Found once: what a branch names may move between two questions.
        points = [memory.git.revisions.find(revision) if revision else None for revision in (before, after)]
        commits: list[tuple[str | None, str | None]] = [
            (point.id, point.when) if point else (None, None) for point in points
        ]
        replayed = _Replay(memory, questions, file, limit, bar, len(questions) * (2 if before else 1))
        old = replayed.run(commits[0][0]) if before else None
        new = replayed.run(commits[1][0])
    changes = compare(old, new) if old else []
    earlier: Sequence[Outcome | None] = old or [None] * len(new)
    pairs = [*zip(earlier, new, strict=True)]
    sides = [(*commits[0], old), (*commits[1], new)] if old else [(*commits[1], new)]
    invocation.respond(
        paragraphs(
            _render_questions(pairs),
            section("Gained", [(name, change.question.text) for change in changes for name in change.gained]),
            section("Lost", [(name, change.question.text) for change in changes for name in change.lost]),
            _render_scores(sides, limit),
        ),
        limit=limit,
        before=_side_shape(*commits[0], old) if old else None,
        after=_side_shape(*commits[1], new),
        questions=[
            {
                "question": new.question.text,
                "group": new.question.group,
                "place": new.question.place,
                "hits": new.hits,
                "expected": [
                    {"answer": name, "before": was, "after": now}
                    for name, was, now in zip(
                        new.question.expected, old.ranks if old else [None] * len(new.ranks), new.ranks, strict=True
                    )
                ],
            }
            for old, new in pairs
        ],
        gained=[_change_shape(change, change.gained) for change in changes if change.gained],
        lost=[_change_shape(change, change.lost) for change in changes if change.lost],
    )
    labels = [("before", old or []), ("after" if old else "now", new)]
    if degraded := [f"{name} ({label})" for label, outcomes in labels for name in _list_degraded(outcomes)]:
        invocation.notify(f"quaid: degraded: {', '.join(degraded)}. More may be found without that; see: quaid doctor")
    if lost := sum(len(change.lost) for change in changes):
        invocation.notify(f"quaid: Found before and lost now: {count(lost, 'expected answer')}.")
        return 1
    if old is None and score(new).expected and not score(new).found:
        invocation.notify("quaid: Nothing of what is expected was found. Is this the right vault? See: quaid status")
        return 1
    return 0


class _Replay:
    """Runs the questions against a memory.

    No model is used, as it may decide otherwise the next time. The files with the questions are left out of the hits:
    they have every question word for word, and answer none.
    """

    def __init__(
        self,
        memory: Memory,
        questions: list[EvalQuestion],
        paths: Sequence[Path],
        limit: int,
        bar: ProgressBar,
        total: int,
    ) -> None:
        self._memory = memory
        self._questions = questions
        self._limit = limit
        self._bar = bar
        self._total = total
        self._done = 0
        root = memory.root.resolve()
        inside = [path.resolve() for path in paths if path.resolve().is_relative_to(root)]
        self._question_files = {path.relative_to(root).as_posix() for path in inside}
        self._ids: dict[str, frozenset[str]] = {}

    def run(self, commit: str | None) -> list[Outcome]:
        self._memory.warm()
        done = self._done
        outcomes = replay(
            self._questions,
            lambda text: self._ask(text, commit),
            self._rank,
            lambda now: self._bar.update("Asking", done + now, self._total),
        )
        self._done += len(self._questions)
        return outcomes

    def _ask(self, text: str, commit: str | None) -> Recall:
        then: dict[str, Any] = {"as_of": commit} if commit else {}
        answer = self._memory.recall(text, self._limit + len(self._question_files), depth="fast", keep=False, **then)
        hits = [hit for hit in answer.hits if hit.path not in self._question_files]
        return replace(answer, hits=tuple(hits[: self._limit]))

    def _rank(self, answer: Recall, reference: str) -> int | None:
        if reference not in self._ids:
            self._ids[reference] = list_targets(self._memory.index(), reference)
        return find_expected(answer.hits, reference, self._ids[reference])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInputError(f"There is no file {path}. Give a markdown file with questions, or JSON lines.") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path} is not UTF-8 text. Save it as UTF-8 and try again.") from error
    except OSError as error:
        raise BadInputError(f"{path} cannot be read ({error.strerror}). Give a file with questions.") from error


def _list_degraded(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(name for outcome in outcomes for name in outcome.degraded))


def _side_shape(commit: str | None, when: str | None, outcomes: list[Outcome]) -> dict[str, object]:
    return {"commit": commit, "when": when, "degraded": _list_degraded(outcomes), **json_object(score(outcomes))}


def _change_shape(change: OutcomeChange, names: Sequence[str]) -> dict[str, object]:
    return {"question": change.question.text, "place": change.question.place, "answers": list(names)}


def _render_questions(pairs: Sequence[tuple[Outcome | None, Outcome]]) -> str:
    """Return each question with the ranks of its expected answers, below the headings of its file."""
    groups: dict[str, list[str]] = {}
    for before, after in pairs:
        lines = groups.setdefault(after.question.group or "Questions", [])
        lines.append(f"  {after.question.text}")
        ranks = before.ranks if before else after.ranks
        rows = [
            (_rank(now) if before is None else f"{_rank(was)} -> {_rank(now)}", name)
            for name, was, now in zip(after.question.expected, ranks, after.ranks, strict=True)
        ] or [(count(after.hits, "hit"), "no expected answer")]
        lines += [f"    {line}" for line in columns(rows).splitlines()]
    return paragraphs(*("\n".join([styled(title, "bold"), *lines]) for title, lines in groups.items()))


def _rank(rank: int | None) -> str:
    return "missing" if rank is None else f"rank {rank}"


def _render_scores(sides: Sequence[tuple[str | None, str | None, list[Outcome]]], limit: int) -> str:
    scores = [score(outcomes) for _, _, outcomes in sides]
    names = [f"{moment(when)}, at {short(commit)}" if commit else "the present files" for commit, when, _ in sides]
    rows: list[tuple[object, ...]] = [("as of", *names)] if any(commit for commit, _, _ in sides) else []
    rows += [
        (f"recall@{limit}", *("-" if one.recall is None else f"{one.recall:.3f}" for one in scores)),
        ("MRR", *("-" if one.mrr is None else f"{one.mrr:.3f}" for one in scores)),
        ("found", *(f"{one.found:,} of {count(one.expected, 'expected answer')}" for one in scores)),
        ("complete", *(f"{one.complete:,} of {count(one.judged, 'question')}" for one in scores)),
    ]
    if unjudged := scores[0].questions - scores[0].judged:
        rows.append(("replayed", *(f"{count(unjudged, 'question')} with no expected answer" for _ in scores)))
    return section("Score", rows)
