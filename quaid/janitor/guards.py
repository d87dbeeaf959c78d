"""What stops a run or is reported by it: a vault that is not in order, lost answers, problems of the record."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from quaid.history.repository import KEEP_DETACHED
from quaid.history.vault_history import History
from quaid.index import contents, documents
from quaid.index.port import IndexConnection
from quaid.janitor.worktree import NOT_COMMITTED, JanitorStoppedError
from quaid.model import Hit
from quaid.open_vault import OpenVault
from quaid.recall.answers import Answers
from quaid.recall.evaluation import EvalQuestion, find_expected, list_targets, parse_questions
from quaid.recall.options import RecallOptions
from quaid.recall.records import RecallRecords
from quaid.vault import files
from quaid.vault.notes import NOT_MADE

SHRUNK_COUNT, SHRUNK_SHARE = 10, 0.2
MAX_QUESTIONS = 50
"""The number of recent questions to repeat."""
CHECKED_HITS = 3
"""The best answers to a question from the log that must still be found …"""
DEPTH = 10
"""… among this many."""
_MAX_OF_A_KIND = 20


def check_size(notes_now: int, notes_before: int | None) -> None:
    """Raise JanitorStoppedError if a vault has lost many notes since the last run: it may be half mounted."""
    lost = (notes_before or 0) - notes_now
    if notes_before and lost > SHRUNK_COUNT and lost > notes_before * SHRUNK_SHARE:
        raise JanitorStoppedError(
            f"{lost:,} of {notes_before:,} notes are gone since its last run",
            "If that is right: quaid janitor run --accept-removals",
        )


def check_branch(history: History) -> str:
    """Return the newest commit of the owner's branch. JanitorStoppedError: there is none."""
    state = history.state()
    if state.detached:
        raise JanitorStoppedError("HEAD is on no branch", f"Switch to yours first, or {KEEP_DETACHED}")
    if state.head is None:
        raise JanitorStoppedError(*NOT_COMMITTED)
    return state.head


class Gate:
    """The gate on recall: the answers of a worktree to the owner's own questions when the gate is made, to compare with
    those at the end. A lost answer stops the merge.
    """

    def __init__(self, root: Path, worktree: OpenVault) -> None:
        with closing(RecallRecords(root, worktree.settings)) as records:
            self._questions = [EvalQuestion(text) for text in records.questions(MAX_QUESTIONS)]
        for page in sorted((root / "eval").glob("*.md")):
            data = files.read_note(page.parent, page.name) or b""
            self._questions += parse_questions(data.decode("utf-8", "replace"), page.name)
        self._worktree = worktree
        self._before = list(self._ask())

    def find_lost(self, touched: set[str]) -> list[str]:
        """Return a sentence for each answer that is lost by now. Hits of logged questions with an id or path in
        `touched` do not count, as a decision is about them.
        """
        lost: list[str] = []
        for question, (hits, found), (hits_now, found_now) in zip(
            self._questions, self._before, self._ask(), strict=True
        ):
            left = {hit.id for hit in hits_now}
            lost += [
                f"{question.text!r} ({question.place}) would no longer find {reference}"
                for reference in question.expected
                if reference in found and reference not in found_now
            ]
            lost += [
                f"{question.text!r} would no longer find {hit.id}: {hit.text[:80]}"
                for hit in (() if question.place else hits[:CHECKED_HITS])
                if hit.id not in left and touched.isdisjoint((hit.id, hit.path))
            ]
        return lost

    def _ask(self) -> Iterator[tuple[tuple[Hit, ...], list[str]]]:
        """Yield the hits of each question, and which of the expected notes are among them. The worktree answers, not
        the owner's files, which may have uncommitted work.
        """
        with closing(Answers(self._worktree)) as answering:
            for question in self._questions:
                hits = answering.recall(question.text, RecallOptions(limit=DEPTH, depth="fast"), keep=False).hits
                targets = {each: list_targets(self._worktree.visible_index(), each) for each in question.expected}
                found = [each for each, paths in targets.items() if find_expected(hits, each, paths) is not None]
                yield tuple(hits), found


def find_problems(index: IndexConnection) -> list[str]:
    """Return a sentence for each problem of the record, which only its owner can settle: facts replaced by a missing
    note or in a circle, citations of missing turns, names with more than one entity, duplicate ids, unreadable heads.
    """
    rows = contents.list_successors(index)
    next_of = {path: after for path, _, after in rows if after is not None}
    successors = [
        f"{path} says that {named!r} replaced it, and no note is called so." for path, named, after in rows if not after
    ]
    reported: set[str] = set()
    for start in next_of:
        seen = [start]
        while (after := next_of.get(seen[-1])) is not None and after not in seen:
            seen.append(after)
        if after == start and reported.isdisjoint(seen):
            reported.update(seen)
            circle = ", ".join(sorted(seen))
            successors.append(f"{circle} replace each other in a circle, so none of them counts as true.")
    lost: dict[str, list[str]] = {}
    for path, episode, turn in contents.list_broken_citations(index):
        lost.setdefault(path, []).append(f"{episode}#t{turn}")
    citations = [
        f"{path} rests on {', '.join(turns[:3])}{' …' if len(turns) > 3 else ''}, which "
        f"{'is' if len(turns) == 1 else 'are'} not there."
        for path, turns in lost.items()
    ]
    names = [
        f"{name!r} is the name of {' and of '.join(paths)}: recall takes them for one."
        for name, paths in contents.list_shared_names(index)
    ]
    first_problems: dict[str, str] = {}
    for path, problem in documents.list_problems(index):
        if problem != NOT_MADE:  # `quaid status` names them; nothing is wrong with them
            first_problems.setdefault(path, problem)
    notes = [f"{path}: {problem}." for path, problem in first_problems.items()]
    found: list[str] = []
    for sentences in (successors, citations, names, notes):
        more = len(sentences) - _MAX_OF_A_KIND
        found += sentences[:_MAX_OF_A_KIND] + ([f"… and {more:,} more of this kind."] if more > 0 else [])
    return found
