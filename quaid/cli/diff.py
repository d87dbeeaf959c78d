"""`quaid diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.invocation import Invocation, fields
from quaid.cli.memory_changes import render_changes
from quaid.cli.terminal import clipped, count, line_width, lines, moment, paragraphs, short, styled
from quaid.errors import BadInputError

if TYPE_CHECKING:
    from quaid.history.revisions import Point
    from quaid.memory import Memory
    from quaid.timeline.states import AnswerChange, StateDiff


def run_diff(
    ctx: typer.Context,
    span: Annotated[
        str, typer.Argument(metavar="A..B", help="Two commits or days; without B up to the files as they are.")
    ] = "HEAD..",
    recall: Annotated[
        Path | None,
        typer.Option("--recall", metavar="FILE", help="Also compare the answers to the questions of this file."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, help="--recall: the hits that count as an answer.")
    ] = 5,
) -> None:
    """Show what the memory learned, changed, replaced and forgot between two commits or days.

    Days are whole: yesterday.. is what changed since yesterday began. Without A..B it is what is not committed.

    Examples:
      quaid diff yesterday..
      quaid diff 2026-03-01..2026-03-31
      quaid diff HEAD~5..HEAD --recall questions.txt
    """
    invocation: Invocation = ctx.obj
    with invocation.open() as memory, invocation.progress(memory):
        diff = memory.timeline.diff(span)
        answers = list_answers(memory, diff, recall, limit)
    names = [name_state(diff.before, "the beginning"), name_state(diff.after, "now")]
    invocation.respond(
        paragraphs(render_changes(diff.changes), render_answers(answers), *_summarise(diff, names)),
        **shape_of_diff(diff, answers),
    )


def list_answers(memory: Memory, diff: StateDiff, file: Path | None, limit: int) -> list[AnswerChange]:
    """Return what the questions of `file` gain and lose; nothing without one.

    Raises:
        BadInputError: it cannot be read, or asks nothing.
    """
    from quaid.timeline.states import read_questions

    if file is None:
        return []
    try:
        questions = read_questions(file)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{file} could not be read ({error}). Give a text file with a question a line.") from error
    return memory.timeline.diff_answers(diff, questions, limit)


def name_state(point: Point | None, otherwise: str) -> str:
    """Return a state as a person knows it."""
    return f"{moment(point.when)}, at {short(point.id)}" if point else otherwise


def shape_of_diff(diff: StateDiff, answers: Sequence[AnswerChange]) -> dict[str, Any]:
    """Two states compared, as JSON."""
    return {
        "before": fields(diff.before, "id", "when") if diff.before else None,
        "after": fields(diff.after, "id", "when") if diff.after else None,
        "changes": [asdict(change) for change in diff.changes],
        "answers": [
            {
                "question": one.question.text,
                "gained": [fields(hit, "id", "kind", "path", "text") for hit in one.gained],
                "lost": [fields(hit, "id", "kind", "path", "text") for hit in one.lost],
                **fields(one, "found", "missing"),
            }
            for one in answers
        ],
    }


def render_answers(answers: Sequence[AnswerChange]) -> str:
    """The questions whose answers differ, and how."""
    if not answers:
        return ""
    differing = [one for one in answers if one.gained or one.lost]
    rows = [styled(f"Answers: {len(differing)} of {count(len(answers), 'question')} changed", "bold")]
    for one in differing:
        rows.append(f"  {one.question.text}")
        for mark, style, hits in (("+", "green", one.gained), ("-", "red", one.lost)):
            rows += [f"    {styled(mark, style)} {clipped(hit.text, line_width() - 6)}" for hit in hits]
        rows += [f"    {styled('expected and found', 'green')}: {name}" for name in one.found]
        rows += [f"    {styled('expected and missing', 'red')}: {name}" for name in one.missing]
    return lines(*rows)


def _summarise(diff: StateDiff, names: Sequence[str]) -> list[str]:
    """The two states, and how much of each sort there is between them."""
    facts = Counter(change.how for change in diff.changes if change.kind == "fact")
    others = len(diff.changes) - facts.total()
    counts = [f"{number:,} {how}" for how, number in facts.items()] + ([count(others, "other note")] if others else [])
    return [styled(f"{names[0]} to {names[1]}: {', '.join(counts) or 'nothing changed'}", "dim")]
