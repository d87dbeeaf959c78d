"""The tools that answer the janitor's questions: memory_questions, memory_answer. Servers of many vaults offer them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from mcp.types import CallToolResult
from pydantic import Field
from typing_extensions import TypedDict

from quaid.mcp import results
from quaid.mcp.toolbox import READS, SETTLES, Ref, Tool
from quaid.mcp.workers import Workers
from quaid.model import Kind
from quaid.text.quoting import PREFACE

if TYPE_CHECKING:
    from quaid.capture.writer import WriteResult
    from quaid.janitor.questions import Question
    from quaid.memory import Memory

AnswerTo = Literal["yes", "no", "a", "b", "both", "neither"]
MAX_QUESTIONS = 50


class QuestionOutput(TypedDict):
    """`answer`: what was ticked already and is carried out by the janitor's next run."""

    id: str
    question: str
    answers: list[str]
    answer: NotRequired[str]


class QuestionsOutput(TypedDict):
    """The questions that wait, by their path."""

    notice: str
    questions: list[QuestionOutput]
    left_out: NotRequired[int]


class ReviewTools:
    """Tools for whoever reviews what the janitor would do."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def tools(self) -> Iterator[Tool]:
        yield Tool(self.memory_questions, "Questions of the janitor", READS)
        yield Tool(self.memory_answer, "Answer the janitor", SETTLES)

    async def memory_questions(self) -> Annotated[CallToolResult, QuestionsOutput]:
        """What the janitor asks before it merges, replaces or removes a memory, and which of two facts is true.

        USE WHEN: the user wants to review the memory. Show them the question; do not answer for them.
        """
        found = await self._workers.slow.run(_list_questions)
        shown = [
            results.without_empty(QuestionOutput(
                id=results.one_line(each.rel_path),
                question=results.shorten(results.one_line(each.title), results.MAX_TEXT),
                answers=list(each.answers),
                answer=each.answer or "",
            ))
            for each in found[:MAX_QUESTIONS]
        ]  # fmt: skip
        shape = QuestionsOutput(notice=PREFACE, questions=shown, left_out=max(0, len(found) - MAX_QUESTIONS))
        return results.tool_result(shape, keep=("questions",))

    async def memory_answer(
        self,
        ref: Ref,
        answer: Annotated[AnswerTo, Field(description="One of the question's `answers`, as the user said it.")],
    ) -> Annotated[CallToolResult, results.WriteOutput]:
        """Answer a question of memory_questions; the janitor's next run does what the answer says.

        USE WHEN: the user has decided.
        """
        return results.write_result(await self._workers.writing.run(lambda memory: _answer(memory, ref, answer)))


def _list_questions(memory: Memory) -> list[Question]:
    from quaid.index import documents
    from quaid.janitor.questions import read_question

    listed = documents.find_documents(memory.index(), "kind = ?", (str(Kind.REVIEW),))
    views = (memory.get(document.path) for document in sorted(listed, key=lambda each: each.path))
    found = (read_question(view.document.path, view.source) for view in views)
    return [question for question in found if question is not None]


def _answer(memory: Memory, reference: str, answer: AnswerTo) -> WriteResult:
    path = memory.get(reference).document.path  # refuses what the caller may not see
    (question,), written = memory.janitor.answer(path, answer)
    return replace(written, text=f"{answer}: {question.title}")
