"""`quaid eval`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, option
from quaid.cli.terminal import ProgressBar, columns, count, moment, paragraphs, section, short, styled
from quaid.history.revisions import Point
from quaid.memory import Memory
from quaid.recall.evaluation import EvalQuestion, Outcome, find_expected, list_gained, list_targets, score
from quaid.shapes import json_object
from quaid.timeline.states import read_questions


def run_eval(
    invocation: Invocation,
    file: Annotated[
        list[Path], argument("FILE", "Questions: list items in markdown, JSON lines, or a text with one a line.")
    ],
    before: Annotated[str | None, option("REV|DATE", "Compare with the memory at this commit or day.")] = None,
    after: Annotated[
        str | None, option("REV|DATE", "Ask the memory at this commit or day instead of the present files.")
    ] = None,
    limit: Annotated[
        int, option("N", "The number of hits for each question, the k of recall@k.", "--limit", "-n", min=1)
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
    questions = [question for path in file for question in read_questions(path)]
    with invocation.open() as memory, invocation.progress(memory) as bar:
        # Found once: what a branch names may move between two questions.
        points = [memory.git.revisions.find(revision) if revision else None for revision in (before, after)]
        sides = [point for point, revision in zip(points, (before, "now"), strict=True) if revision]
        replayed = [
            _replay(memory, questions, file, limit, point, bar, (number, len(sides)))
            for number, point in enumerate(sides)
        ]
    old, new = replayed[0] if before else None, replayed[-1]
    gained, lost = (list_gained(old, new), list_gained(new, old)) if old else ([], [])
    earlier: Sequence[Outcome | None] = old or [None] * len(new)
    pairs = [*zip(earlier, new, strict=True)]
    invocation.respond(
        paragraphs(
            _render_questions(pairs),
            section("Gained", [(name, question.text) for question, names in gained for name in names]),
            section("Lost", [(name, question.text) for question, names in lost for name in names]),
            _render_scores([*zip(sides, replayed, strict=True)], limit),
        ),
        limit=limit,
        before=_side_shape(points[0], old) if old else None,
        after=_side_shape(points[1], new),
        questions=[
            {
                "question": now.question.text,
                **json_object(now.question, "group", "place"),
                "hits": now.hits,
                "expected": [
                    {"answer": name, "before": rank, "after": later}
                    for name, rank, later in zip(
                        now.question.expected, was.ranks if was else [None] * len(now.ranks), now.ranks, strict=True
                    )
                ],
            }
            for was, now in pairs
        ],
        **{
            side: [
                {"question": question.text, "place": question.place, "answers": names} for question, names in changed
            ]
            for side, changed in (("gained", gained), ("lost", lost))
        },
    )
    labels = [("before", old or []), ("after" if old else "now", new)]
    if degraded := [f"{name} ({label})" for label, outcomes in labels for name in _list_degraded(outcomes)]:
        invocation.notify(f"quaid: degraded: {', '.join(degraded)}. More may be found without that; see: quaid doctor")
    if lost:
        number = sum(len(names) for _, names in lost)
        invocation.notify(f"quaid: Found before and lost now: {count(number, 'expected answer')}.")
        return 1
    if old is None and score(new).expected and not score(new).found:
        invocation.notify("quaid: Nothing of what is expected was found. Is this the right vault? See: quaid status")
        return 1
    return 0


def _replay(
    memory: Memory,
    questions: Sequence[EvalQuestion],
    files: Sequence[Path],
    limit: int,
    point: Point | None,
    bar: ProgressBar,
    part: tuple[int, int],
) -> list[Outcome]:
    """Run the questions against the memory, or against its state at `point`. `part` is the number of this replay, and
    how many there are.

    No model is used, as it may decide otherwise the next time. `files` with the questions are left out of the hits:
    they have every question word for word, and answer none.
    """
    root = memory.root.resolve()
    inside = [path.resolve() for path in files if path.resolve().is_relative_to(root)]
    left_out = {path.relative_to(root).as_posix() for path in inside}
    then: dict[str, Any] = {"as_of": point.id} if point else {}
    memory.warm()
    outcomes = []
    for number, question in enumerate(questions, 1):
        answer = memory.recall(question.text, limit + len(left_out), depth="fast", keep=False, **then)
        hits = [hit for hit in answer.hits if hit.path not in left_out][:limit]
        index = memory.index()
        ranks = [find_expected(hits, reference, list_targets(index, reference)) for reference in question.expected]
        outcomes.append(Outcome(question, tuple(ranks), len(hits), answer.degraded))
        bar.update("Asking", part[0] * len(questions) + number, part[1] * len(questions))
    return outcomes


def _list_degraded(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(name for outcome in outcomes for name in outcome.degraded))


def _side_shape(point: Point | None, outcomes: Sequence[Outcome]) -> dict[str, object]:
    commit, when = (point.id, point.when) if point else (None, None)
    return {"commit": commit, "when": when, "degraded": _list_degraded(outcomes), **json_object(score(outcomes))}


def _render_questions(pairs: Sequence[tuple[Outcome | None, Outcome]]) -> str:
    """Return each question with the ranks of its expected answers, below the headings of its file."""
    groups: dict[str, list[str]] = {}
    for before, after in pairs:
        lines = groups.setdefault(after.question.group or "Questions", [])
        lines.append(f"  {after.question.text}")
        ranks = [[f"rank {rank}" if rank else "missing" for rank in one.ranks] for one in (before, after) if one]
        rows = [(" -> ".join(both), name) for *both, name in zip(*ranks, after.question.expected, strict=True)]
        table = columns(rows or [(count(after.hits, "hit"), "no expected answer")])
        lines += [f"    {line}" for line in table.splitlines()]
    return paragraphs(*("\n".join([styled(title, "bold"), *lines]) for title, lines in groups.items()))


def _render_scores(sides: Sequence[tuple[Point | None, list[Outcome]]], limit: int) -> str:
    """Return the figures of each side."""
    scores = [score(outcomes) for _, outcomes in sides]
    names = [f"{moment(point.when)}, at {short(point.id)}" if point else "the present files" for point, _ in sides]
    rows: list[tuple[object, ...]] = [("as of", *names)] if any(point for point, _ in sides) else []
    rows += [
        (f"recall@{limit}", *("-" if one.recall is None else f"{one.recall:.3f}" for one in scores)),
        ("MRR", *("-" if one.mrr is None else f"{one.mrr:.3f}" for one in scores)),
        ("found", *(f"{one.found:,} of {count(one.expected, 'expected answer')}" for one in scores)),
        ("complete", *(f"{one.complete:,} of {count(one.judged, 'question')}" for one in scores)),
    ]
    if unjudged := scores[0].questions - scores[0].judged:
        rows.append(("replayed", *(f"{count(unjudged, 'question')} with no expected answer" for _ in scores)))
    return section("Score", rows)
