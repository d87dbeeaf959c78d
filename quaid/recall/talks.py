"""The conversations that candidates were said in: their turns in order, who speaks, and whether people talk there.

A short turn among people is understood by what is said around it; a message to an assistant says for itself what it is
about, and its session goes through many things. How much a conversation is one among people is told by who speaks and
by how much they say at a time, never asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quaid.index.turns import TurnChunks, list_turns
from quaid.model import name_key

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

ROLES = frozenset({"user", "human", "assistant", "ai", "system", "tool"})
"""What speakers are called in talks with an assistant."""
_LONG = 400
"""The bytes of a chunk, its header included, where a turn is a message as much as a remark. People who chat write some
150, to assistants 200 to 600, who write 700.
"""
_STEEP = 4


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: its turns in their order, the place of each by its number, and in [0, 1] how much it is people
    who talk with each other in short turns.
    """

    turns: Sequence[TurnChunks]
    places: Mapping[int, int]
    among_people: float = 0.0

    @classmethod
    def of(cls, turns: Sequence[TurnChunks], size: int) -> Talk:
        """Return the talk of `turns`, `size` bytes in all."""
        speakers = {name_key(speaker) for speaker in {turn.speaker or "" for turn in turns}}
        is_among_people = len(speakers) > 1 and speakers.isdisjoint(ROLES)
        chunks = sum(len(turn.chunks) for turn in turns) or 1
        shortness = 1 / (1 + (size / chunks / _LONG) ** _STEEP)
        places = {turn.number: place for place, turn in enumerate(turns)}
        return cls(turns, places, shortness if is_among_people else 0.0)

    def beside(self, number: int) -> tuple[TurnChunks | None, TurnChunks | None]:
        """Return the turns before and after one, None where the talk begins or ends."""
        place = self.places[number]
        before = self.turns[place - 1] if place else None
        return before, self.turns[place + 1] if place + 1 < len(self.turns) else None


def read_talks(connection: IndexConnection, doc_ids: Collection[int]) -> dict[int, Talk]:
    """Return the talks of episodes, by doc_id."""
    return {doc_id: Talk.of(turns, size) for doc_id, (size, turns) in list_turns(connection, doc_ids).items()}
