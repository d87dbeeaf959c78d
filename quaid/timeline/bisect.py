"""The commit at which the answer to a question was lost or gained, found by bisection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quaid.model import name_key
from quaid.recall.evaluation import find_expected, list_targets

if TYPE_CHECKING:
    from quaid.timeline.timeline import Timeline


class Bisection:
    """Bisects the answers to `query` at `commits`, oldest first, for what is `expected` of them."""

    def __init__(self, timeline: Timeline, query: str, expected: str, commits: Sequence[str], limit: int) -> None:
        self._timeline, self._query, self._expected = timeline, query, expected
        self._commits, self._limit = commits, limit
        self._meant = list_targets(timeline.vault.visible_index(), expected)
        self.answers: dict[int, bool] = {}

    def find_turn(self) -> int | None:
        """Return the number of the commit since which the answer is as it is at the last one; None where it was never
        seen otherwise. States are tried back at growing distances, and at the beginning; of several turns one is found.
        """
        end = len(self._commits) - 1
        probes = [end - 2**power for power in range(end.bit_length())]
        start = next((each for each in (*probes, 0) if 0 <= each < end and self.has(each) != self.has(end)), None)
        if start is None:
            return None
        while end - start > 1:
            middle = (start + end) // 2
            if self.has(middle) == self.has(len(self._commits) - 1):
                end = middle
            else:
                start = middle
        return end

    def has(self, number: int) -> bool:
        """Return whether the answer at a commit has the expected note, or says the expected text."""
        if number not in self.answers:
            total = max(len(self.answers) + 1, 2 * len(self._commits).bit_length())
            self._timeline.vault.show_progress("Asking the past", len(self.answers), total)
            hits = self._timeline.ask(self._query, self._limit, self._commits[number]).hits
            text = name_key(self._expected)
            is_named = find_expected(hits, self._expected, self._meant) is not None
            self.answers[number] = is_named or any(text in name_key(hit.text) for hit in hits)
        return self.answers[number]
