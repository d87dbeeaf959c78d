"""Conversation -> the edit that stores it: a new episode note, or new turns at the end of an existing one."""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from quaid.model import Conversation, Edit, Turn
from quaid.vault import episodes, frontmatter, layout, notes
from quaid.vault.layout import Layout
from quaid.vault.notes import StoredNote

NOTE_SPEAKER = "Note to self"
_MIN_SHARED_TURNS = 2


class StoredEpisode(StoredNote):
    """An episode note as it is on disk."""

    @cached_property
    def started(self) -> datetime | None:
        return notes.parse_time(str(self.head.fields.get("started") or ""))

    @cached_property
    def turns(self) -> list[episodes.EpisodeTurn]:
        return episodes.parse_turns(self.head.body, self.started)

    @property
    def spoken_turns(self) -> list[episodes.EpisodeTurn]:
        """The turns without the notes to self."""
        return [turn for turn in self.turns if turn.speaker != NOTE_SPEAKER]

    @property
    def last_number(self) -> int:
        return max((turn.number for turn in self.turns if turn.number), default=0)

    @property
    def inherited(self) -> int:
        """The number of turns from before the session left another one; they are stored there."""
        return episodes.read_count(self.head.fields, "inherited") or 0

    @property
    def progress(self) -> tuple[int, str]:
        """The number of turns read of the transcript, and the hash of the last of them."""
        count = episodes.read_count(self.head.fields, "turn_count")
        return self.last_number if count is None else count, str(self.head.fields.get("last_turn") or "")


class Fork(NamedTuple):
    """The point where a session left another one, whose turns its transcript repeats: the first `turns` are stored in
    `parent`, the last of them as turn `number`.
    """

    parent: str
    turns: int
    number: int


def candidate_sessions(conversation: Conversation) -> Iterator[str]:
    """Yield names for a conversation without a session id: a hash of its first turn, then with -2, -3 … appended.

    The first turn of a transcript stays when it grows, so the same file finds its episode again; `continues` decides
    whether it is the same conversation.
    """
    first = conversation.turns[0]
    base = hashlib.sha256(f"{first.speaker}\n{first.text}".encode()).hexdigest()[:12]
    yield base
    yield from (f"{base}-{number}" for number in itertools.count(2))


def continues(stored: StoredEpisode, conversation: Conversation) -> bool:
    """Return True when `conversation` is the stored one, as it was, grown, or an earlier state of it."""
    count, last = stored.progress
    if count <= len(conversation.turns):
        return count == 0 or _turn_hash(conversation.turns[count - 1]) == last
    if any(_turn_hash(turn) == last for turn in conversation.turns):
        return True
    start = [_utterance(turn.speaker, turn.text) for turn in stored.turns[: len(conversation.turns)]]
    return start == [_utterance(turn.speaker, turn.text) for turn in conversation.turns]


def find_fork(stored: StoredEpisode, conversation: Conversation) -> Fork | None:
    """Return where `conversation` left the stored session; None when fewer than two turns are shared, which may be
    chance.
    """
    shared = shared_start(stored, conversation)
    if shared < _MIN_SHARED_TURNS:
        return None
    return Fork(stored.rel_path, shared, stored.spoken_turns[shared - stored.inherited - 1].number or shared)


def shared_start(stored: StoredEpisode, conversation: Conversation) -> int:
    """Return how many leading turns of `conversation` the episode of another session has: by the same speaker, in
    the same minute, in the same words. A turn that its owner forgot there counts, so that no fork brings it back.
    """
    shared = 0
    for block, turn in zip(stored.spoken_turns, conversation.turns[stored.inherited :], strict=False):
        speaker, text = _speaker_and_utterance(turn)
        spoken = notes.parse_time(block.said_at)
        minutes = {at.astimezone(UTC).replace(second=0, microsecond=0) if at else None for at in (spoken, turn.at)}
        is_same_text = not block.text or _utterance(block.speaker, block.text) == text
        if not is_same_text or block.speaker != speaker or len(minutes) > 1:
            break
        shared += 1
    # A fork shares the turns of its own parent too.
    return stored.inherited + shared if shared else 0


def plan_episode(
    session: str,
    conversation: Conversation,
    stored: StoredEpisode | None,
    now: datetime,
    notes_to_self: Sequence[str] = (),
    owner: str = "default",
    fork: Fork | None = None,
    place: Layout = layout.DEFAULT,
) -> tuple[str, Edit | None, int]:
    """Return the path of the note, the edit that stores every turn of `conversation` once, None when there is nothing
    new, and the number of new turns.

    Notes to self that were queued for the session follow the new turns, so that turn n stays the n-th utterance. Of a
    session that left another one (`fork`; only for a session without an episode) the turns after the fork are written;
    until there are some, nothing is.
    """
    own = [Turn(NOTE_SPEAKER, text, "note", now) for text in notes_to_self]
    turns = conversation.turns
    ended = max((turn.at for turn in turns if turn.at), default=None)
    if stored is not None:
        new = [*_new_turns(stored, turns), *own]
        if not new:
            return stored.rel_path, None, 0
        listed = stored.head.fields.get("speakers")
        changes: dict[str, frontmatter.Value | None] = {
            **({"ended": notes.render_time(ended)} if ended else {}),
            "speakers": list(dict.fromkeys([*(listed if isinstance(listed, list) else []), *_speakers(new)])),
            **_progress_fields(turns),
        }
        grown = frontmatter.set_fields(stored.data.decode("utf-8"), changes)
        newline = notes.newline_of(grown)
        gap = "" if grown.endswith(newline * 2) else newline if grown.endswith(newline) else newline * 2
        first = max(stored.last_number, stored.inherited) + 1
        block = episodes.render_turns(new, first, stored.started).replace("\n", newline)
        return stored.rel_path, Edit(stored.rel_path, stored.data, f"{grown}{gap}{block}".encode()), len(new)
    shared = fork.turns if fork else 0
    new = [*turns[shared:], *own]
    started = conversation.started or next((turn.at for turn in turns if turn.at), None) or now
    rel_path = place.place(layout.episode_path(session, started, conversation.title))
    if fork and not new:
        return rel_path, None, 0
    fields: dict[str, frontmatter.Value | None] = {
        "type": "episode",
        "session": session,
        "title": conversation.title,
        "owner": None if owner == "default" else owner,
        "source": conversation.source,
        "project": conversation.project,
        "started": notes.render_time(started),
        "ended": notes.render_time(ended) if ended else None,
        "speakers": _speakers(new),
        "continues": f"[[{PurePosixPath(fork.parent).stem}#^t{fork.number}]]" if fork else None,
        "inherited": fork.turns if fork else None,
        **_progress_fields(turns),
    }
    text = frontmatter.render(fields) + episodes.render_turns(new, shared + 1, started)
    return rel_path, Edit(rel_path, None, text.encode()), len(new)


def _new_turns(stored: StoredEpisode, turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return the turns after the last stored one. A rewound transcript is followed from where the two part; an earlier
    state of it has nothing new.
    """
    count, last = stored.progress
    if count == 0:
        return turns
    if count <= len(turns) and _turn_hash(turns[count - 1]) == last:
        return turns[count:]
    # Those before a fork are stored elsewhere.
    turns, count = turns[stored.inherited :], count - stored.inherited
    known = [(turn.speaker, _utterance(turn.speaker, turn.text)) for turn in stored.turns]
    given = [_speaker_and_utterance(turn) for turn in turns]
    if not turns or (len(turns) < count and known[len(turns) - 1 : len(turns)] == given[-1:]):
        return ()
    new: list[Turn] = []
    place = 0
    for index, turn in enumerate(turns):
        found = next((number for number in range(place, len(known)) if _holds(known[number], turn)), None)
        if found is not None:
            place = found + (known[found] == given[index])
        elif _is_altered(given[index:], known[place:]):
            place += 1
        else:
            new.append(turn)
    return new


def _holds(stored: tuple[str, str], turn: Turn) -> bool:
    """Return whether a stored turn contains `turn`: all answers between two prompts were one turn once."""
    if turn.role != "assistant":
        return stored == _speaker_and_utterance(turn)
    speaker, _, text = stored[1].partition("\n")
    return speaker == _speaker_and_utterance(turn)[0] and f"\n\n{turn.text.strip()}\n\n" in f"\n\n{text}\n\n"


def _is_altered(given: Sequence[tuple[str, str]], stored: Sequence[tuple[str, str]]) -> bool:
    """Return True when the first of `stored` is the first turn, which its owner forgot, or changed while the next is
    the same: it must not come back.
    """
    if not stored or stored[0][0] != given[0][0]:
        return False
    following = next((index for index in range(1, len(stored)) if stored[index][1]), len(given))
    return not stored[0][1] or (following < len(given) and stored[following] == given[following])


def _progress_fields(turns: Sequence[Turn]) -> dict[str, frontmatter.Value | None]:
    """The progress in the transcript, apart from the text, which its owner may edit or forget."""
    return {"turn_count": len(turns), "last_turn": _turn_hash(turns[-1]) if turns else None}


def _speakers(turns: Sequence[Turn]) -> list[str]:
    return list(dict.fromkeys(turn.speaker for turn in turns))


def _utterance(speaker: str, text: str) -> str:
    return f"{' '.join(speaker.split())}\n{text.strip()}" if text else ""


def _speaker_and_utterance(turn: Turn) -> tuple[str, str]:
    return " ".join(turn.speaker.split()), _utterance(turn.speaker, turn.text)


def _turn_hash(turn: Turn) -> str:
    # A leading letter keeps YAML readers from taking the hash for a number.
    return "h" + hashlib.sha256(_utterance(turn.speaker, turn.text).encode()).hexdigest()[:12]
