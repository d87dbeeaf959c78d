"""conversation -> the edit that keeps it: a new episode note, or the new turns at the end of the one there is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePosixPath

from quaid.model import Conversation, Edit, Turn
from quaid.vault import episodes, frontmatter, layout, notes
from quaid.vault.layout import Layout

NOTE_SPEAKER = "Note to self"
_MIN_SHARED_TURNS = 2


@dataclass(frozen=True, slots=True)
class EpisodePlan:
    """`edit` is None when nothing new was said. Turns are numbered from `first_turn`."""

    session: str
    rel_path: str
    edit: Edit | None
    first_turn: int
    new_turns: int


@dataclass(frozen=True)
class KeptEpisode:
    """An episode note as it is on disk."""

    rel_path: str
    data: bytes

    @cached_property
    def head(self) -> frontmatter.Head:
        return frontmatter.parse(self.data.decode("utf-8", errors="replace"))

    @cached_property
    def started(self) -> datetime | None:
        return notes.parse_time(str(self.head.fields.get("started") or ""))

    @cached_property
    def turns(self) -> list[episodes.EpisodeTurn]:
        return episodes.parse_turns(self.head.body, self.started)

    @property
    def said_turns(self) -> list[episodes.EpisodeTurn]:
        """The turns without the notes to self."""
        return [turn for turn in self.turns if turn.speaker != NOTE_SPEAKER]

    @property
    def last_number(self) -> int:
        return max((turn.number for turn in self.turns if turn.number), default=0)

    @property
    def inherited(self) -> int:
        """The number of turns that were said before the session left another one, and are kept there."""
        return self._count("inherited") or 0

    @property
    def progress(self) -> tuple[int, str]:
        """The number of turns read of the transcript, and the hash of the last of them."""
        count = self._count("turn_count")
        return self.last_number if count is None else count, str(self.head.fields.get("last_turn") or "")

    def _count(self, key: str) -> int | None:
        value = str(self.head.fields.get(key) or "")
        return int(value) if re.fullmatch("[0-9]{1,9}", value) else None


@dataclass(frozen=True, slots=True)
class Fork:
    """The point where a session left another one, whose turns its transcript repeats: the first `turns` are kept in
    `parent`, the last of them as turn `number`.
    """

    parent: str
    turns: int
    number: int


def candidate_sessions(conversation: Conversation) -> Iterator[str]:
    """Names for a conversation without a session id: from its first turn, then with -2, -3 … behind.

    The first turn of a transcript stays when it grows, so the same file finds its episode again; whether it truly
    is the same conversation is for `continues` to say.
    """
    first = conversation.turns[0]
    base = hashlib.sha256(f"{first.speaker}\n{first.text}".encode()).hexdigest()[:12]
    yield base
    number = 2
    while True:
        yield f"{base}-{number}"
        number += 1


def continues(kept: KeptEpisode, conversation: Conversation) -> bool:
    """Return True when `conversation` is the kept one, as it was, grown, or an earlier state of it."""
    count, last = kept.progress
    if count <= len(conversation.turns):
        return count == 0 or _turn_hash(conversation.turns[count - 1]) == last
    if any(_turn_hash(turn) == last for turn in conversation.turns):
        return True
    start = [_said(turn.speaker, turn.text) for turn in kept.turns[: len(conversation.turns)]]
    return start == [_said(turn.speaker, turn.text) for turn in conversation.turns]


def find_fork(kept: KeptEpisode, conversation: Conversation) -> Fork | None:
    """Return where `conversation` left the kept session; None when fewer than two turns are shared, which may be
    chance. Of several parents the one with the most shared turns is the nearest.
    """
    shared = shared_start(kept, conversation)
    if shared < _MIN_SHARED_TURNS:
        return None
    return Fork(kept.rel_path, shared, kept.said_turns[shared - kept.inherited - 1].number or shared)


def shared_start(kept: KeptEpisode, conversation: Conversation) -> int:
    """Return how many leading turns of `conversation` the episode of another session holds: by the same speaker, in
    the same minute, in the same words. A turn that its owner forgot there counts, so that no fork brings it back.
    """
    shared = 0
    for block, turn in zip(kept.said_turns, conversation.turns[kept.inherited :], strict=False):
        speaker, text = _kept(turn)
        minute = f"{turn.at.astimezone(UTC):%Y-%m-%dT%H:%M}:00Z" if turn.at else None
        is_same_text = not block.text or _said(block.speaker, block.text) == text
        if not is_same_text or block.speaker != speaker or block.said_at != minute:
            break
        shared += 1
    # What a fork has from its own parent is shared with its forks too.
    return kept.inherited + shared if shared else 0


def plan_episode(
    session: str,
    conversation: Conversation,
    kept: KeptEpisode | None,
    now: datetime,
    notes_to_self: Sequence[str] = (),
    owner: str = "default",
    fork: Fork | None = None,
    place: Layout = layout.DEFAULT,
) -> EpisodePlan:
    """Return the edit that keeps every turn of `conversation` exactly once.

    Notes to self that were queued for the session follow the new turns, so that turn n stays the n-th thing said. Of a
    session that left another one (`fork`; asked for only when the session has no episode yet) what follows the fork is
    written; until something does, nothing is.
    """
    own = [Turn(NOTE_SPEAKER, text, "note", now) for text in notes_to_self]
    if kept is None:
        shared = fork.turns if fork else 0
        return _plan_new(session, conversation, [*conversation.turns[shared:], *own], now, owner, fork, place)
    return _plan_growth(session, conversation, kept, [*_new_turns(kept, conversation.turns), *own])


def _plan_new(
    session: str, conversation: Conversation, turns: Sequence[Turn], now: datetime, owner: str, fork: Fork | None,
    place: Layout,
) -> EpisodePlan:  # fmt: skip
    started = conversation.started or next((turn.at for turn in conversation.turns if turn.at), None) or now
    rel_path = place.place(layout.episode_path(session, started, conversation.title))
    first = fork.turns + 1 if fork else 1
    if fork and not turns:
        return EpisodePlan(session, rel_path, None, first, 0)
    ended = _last_time(conversation)
    fields: dict[str, frontmatter.Value | None] = {
        "type": "episode",
        "session": session,
        "title": conversation.title,
        "owner": None if owner == "default" else owner,
        "source": conversation.source,
        "project": conversation.project,
        "started": notes.render_time(started),
        "ended": notes.render_time(ended) if ended else None,
        "speakers": _speakers(turns),
        "continues": f"[[{PurePosixPath(fork.parent).stem}#^t{fork.number}]]" if fork else None,
        "inherited": fork.turns if fork else None,
        **_progress_fields(conversation.turns),
    }
    text = frontmatter.render(fields) + episodes.render_turns(turns, first, started)
    return EpisodePlan(session, rel_path, Edit(rel_path, None, text.encode()), first, len(turns))


def _plan_growth(session: str, conversation: Conversation, kept: KeptEpisode, new: Sequence[Turn]) -> EpisodePlan:
    text = kept.data.decode("utf-8")
    first = max(kept.last_number, kept.inherited) + 1
    if not new:
        return EpisodePlan(session, kept.rel_path, None, first, 0)
    ended = _last_time(conversation)
    listed = kept.head.fields.get("speakers")
    speakers = list(listed) if isinstance(listed, list) else []
    changes: dict[str, frontmatter.Value | None] = {
        **({"ended": notes.render_time(ended)} if ended else {}),
        "speakers": list(dict.fromkeys([*speakers, *_speakers(new)])),
        **_progress_fields(conversation.turns),
    }
    grown = frontmatter.set_fields(text, changes)
    newline = notes.newline_of(grown)
    gap = "" if grown.endswith(newline * 2) else newline if grown.endswith(newline) else newline * 2
    block = episodes.render_turns(new, first, kept.started).replace("\n", newline)
    edit = Edit(kept.rel_path, kept.data, f"{grown}{gap}{block}".encode())
    return EpisodePlan(session, kept.rel_path, edit, first, len(new))


def _new_turns(kept: KeptEpisode, turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns after the last one that was kept. A transcript that was rewound and went another way is followed
    from where the two part; an earlier state of it brings nothing new.
    """
    count, last = kept.progress
    if count == 0:
        return turns
    if count <= len(turns) and _turn_hash(turns[count - 1]) == last:
        return turns[count:]
    # Those before a fork are kept elsewhere.
    turns, count = turns[kept.inherited :], count - kept.inherited
    if not turns:
        return ()
    known = [(turn.speaker, _said(turn.speaker, turn.text)) for turn in kept.turns]
    if len(turns) < count and known[len(turns) - 1 : len(turns)] == [_kept(turns[-1])]:
        return ()
    return list(_unknown(turns, known))


def _unknown(turns: Sequence[Turn], kept: Sequence[tuple[str, str]]) -> Iterator[Turn]:
    """The turns that are not in `kept`, both read in order. A turn that its owner changed or took out is known by its
    place: it must not come back.
    """
    place = 0
    for index, turn in enumerate(turns):
        found = next((number for number in range(place, len(kept)) if _holds(kept[number], turn)), None)
        if found is not None:
            place = found + (kept[found] == _kept(turn))
        elif _is_altered(turns[index:], kept[place:]):
            place += 1
        else:
            yield turn


def _holds(kept: tuple[str, str], turn: Turn) -> bool:
    """Return whether a kept turn has `turn` in it: all that an agent said between two prompts was one turn once."""
    if turn.role != "assistant":
        return kept == _kept(turn)
    speaker, _, text = kept[1].partition("\n")
    return speaker == _kept(turn)[0] and f"\n\n{turn.text.strip()}\n\n" in f"\n\n{text}\n\n"


def _is_altered(turns: Sequence[Turn], kept: Sequence[tuple[str, str]]) -> bool:
    """Return True when the first of `kept` is the first turn, forgotten, or changed while the next is the same."""
    if not kept or kept[0][0] != _kept(turns[0])[0]:
        return False
    following = next((index for index in range(1, len(kept)) if kept[index][1]), len(turns))
    return not kept[0][1] or (following < len(turns) and kept[following] == _kept(turns[following]))


def _progress_fields(turns: Sequence[Turn]) -> dict[str, frontmatter.Value | None]:
    """The fields that say how far the transcript was read, apart from the text, which its owner may edit or forget."""
    return {"turn_count": len(turns), "last_turn": _turn_hash(turns[-1]) if turns else None}


def _last_time(conversation: Conversation) -> datetime | None:
    return max((turn.at for turn in conversation.turns if turn.at), default=None)


def _speakers(turns: Sequence[Turn]) -> list[str]:
    return list(dict.fromkeys(turn.speaker for turn in turns))


def _said(speaker: str, text: str) -> str:
    return f"{' '.join(speaker.split())}\n{text.strip()}" if text else ""


def _kept(turn: Turn) -> tuple[str, str]:
    return " ".join(turn.speaker.split()), _said(turn.speaker, turn.text)


def _turn_hash(turn: Turn) -> str:
    # A leading letter keeps YAML readers from taking the hash for a number.
    return "h" + hashlib.sha256(_said(turn.speaker, turn.text).encode()).hexdigest()[:12]
