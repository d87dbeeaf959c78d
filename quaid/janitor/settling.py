"""What a merge of two machines leaves that no merge of single files can see: settled, or asked about.

One entity or conversation that both have made a note of becomes one; what both have stated and cannot both be true
stays, and the owner is asked. It comes out the same on every machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING

from quaid.capture.entity_evidence import Profile, contradict
from quaid.capture.entity_names import add_aliases
from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.history.merges import Merge, list_merges
from quaid.index import backlinks
from quaid.janitor.decision import CONFLICT, Decision, fact_evidence
from quaid.janitor.model_text import quote
from quaid.janitor.questions import question_path, render_question
from quaid.janitor.tasks.resolve import TASK
from quaid.local.runs import evidence_key
from quaid.model import Edit, Kind, Message, Note, name_key, note_name
from quaid.open_vault import OpenVault
from quaid.place import state_folder, write_private
from quaid.recall.contradictions import list_opposed
from quaid.vault import files, frontmatter, layout, markdown, notes
from quaid.vault.frontmatter import FrontmatterBrokenError
from quaid.vault.layout import Layout
from quaid.vault.merging import DISPUTED, list_sentences, merge_note

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

SETTLED_FILE = "settled"
"""In the state folder: the commit up to which merges were looked at."""
_WHY = "Two machines have stated them, each on its own, and they cannot both be true."
_SHOWN, _TITLE = 300, 60
_TIME_CHARS = 10
"""Characters of an id that tell when it was made."""
_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, slots=True)
class Settled:
    """`joined` are (path that stays, path that is gone), `questions` the paths of new ones."""

    joined: tuple[tuple[str, str], ...] = ()
    questions: tuple[str, ...] = ()


@dataclass(slots=True)
class _Draft:
    """The vault as it will be: files by their paths, read when they are first asked for."""

    read: Callable[[str], bytes | None]
    place: Layout
    now: datetime
    before: dict[str, bytes | None] = field(default_factory=dict)
    after: dict[str, bytes | None] = field(default_factory=dict)
    joined: list[tuple[str, str]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)

    def get(self, path: str) -> bytes | None:
        if path not in self.before:
            self.before[path] = self.after[path] = self.read(path)
        return self.after[path]

    def put(self, path: str, data: bytes | None) -> None:
        self.get(path)
        self.after[path] = data

    def note(self, path: str) -> Note | None:
        data = self.get(path)
        return notes.parse_note(path, data, place=self.place) if data is not None else None

    @property
    def edits(self) -> tuple[Edit, ...]:
        changed = (path for path in sorted(self.before) if self.before[path] != self.after[path])
        return tuple(Edit(path, self.before[path], self.after[path]) for path in changed)


def settle_merges(vault: OpenVault) -> Settled:
    """Settle what the merges since the last call have left, in one commit. Call it when a merge is committed.

    Raises:
        LockedError: a merge is still in progress, or another writer does not end.
    """
    root, history = vault.root, vault.git
    head = history.state().head if history.find_repository(root) is not None else None
    mark = state_folder(root) / SETTLED_FILE
    known = mark.read_text("ascii", "replace").strip() if mark.is_file() else None
    if head is None or head == known:
        return Settled()
    merges = list_merges(root, known)
    settled, place = Settled(), vault.layout

    def plan() -> WritePlan:
        nonlocal settled
        draft = _Draft(lambda path: files.read_note(root, path), place, datetime.now(UTC))
        plan_settling(draft, merges, vault.whole_index())
        settled = Settled(tuple(draft.joined), tuple(draft.questions))
        subject = f"merge: {len(draft.joined)} notes joined, asks {len(draft.questions)}"
        body = "\n".join(f"- {gone} is {kept}" for kept, gone in draft.joined)
        return WritePlan(WriteResult(head, "", "edited", subject), draft.edits, Message(subject, body))

    if merges:
        Writer(vault).write(f"settle {head}", plan)
    with suppress(OSError):  # then it looks again
        write_private(mark, f"{history.state().head}\n")
    return settled


def plan_settling(draft: _Draft, merges: Sequence[Merge], index: IndexConnection) -> None:
    """Write into `draft` what becomes of the notes that the sides of `merges` have added or both have changed."""
    for merge in merges:
        for one, other in _list_doubles(draft, merge):
            _join(draft, one, other, index)
        for path in sorted(merge.both):
            _part_disputed(draft, path)
        _ask_about_opposed(draft, merge, index)


def _list_doubles(draft: _Draft, merge: Merge) -> Iterator[tuple[Note, Note]]:
    """Two notes of one thing, one of each side: of one id, one conversation, or one entity; the older one first."""
    sides = [[note for path in sorted(side) if (note := draft.note(path))] for side in (merge.ours, merge.theirs)]
    for one, other in product(*([note for note in side if note.kind in _JOINED] for side in sides)):
        if one.kind is other.kind and _are_one(one, other):
            first, second = sorted((one, other), key=lambda note: (note.created or "9", note.id, note.rel_path))
            yield first, second


_JOINED = frozenset({Kind.FACT, Kind.ENTITY, Kind.EPISODE})


def _are_one(one: Note, other: Note) -> bool:
    if one.kind is Kind.EPISODE:
        return bool(one.session) and one.session == other.session
    if one.id == other.id or one.kind is Kind.FACT:
        return one.id == other.id
    keys = [{name_key(name) for name in note.names} for note in (one, other)]
    is_called_so = name_key(one.names[0]) in keys[1] or name_key(other.names[0]) in keys[0]
    profiles = [Profile.of(own, note.edges) for own, note in zip(keys, (one, other), strict=True)]
    return one.type == other.type and is_called_so and not contradict(profiles[0], profiles[1])


def _join(draft: _Draft, kept: Note, gone: Note, index: IndexConnection) -> None:
    """Make one note of two, and have what links to the one that goes link to the other."""
    data = [draft.get(note.rel_path) for note in (kept, gone)]
    if data[0] is None or data[1] is None:
        return
    merged = merge_note(b"", data[0], data[1], kept.rel_path)
    if merged is None:
        return
    old, new = note_name(gone.rel_path), note_name(kept.rel_path)
    if kept.kind is Kind.ENTITY and name_key(old) != name_key(new):
        merged = add_aliases(merged, [old])
    draft.put(kept.rel_path, merged)
    draft.put(gone.rel_path, None)
    draft.joined.append((kept.rel_path, gone.rel_path))
    for path in backlinks.list_linking(index, old) if old != new else ():
        note = draft.note(path)
        if note is not None and note.kind in {*_JOINED, Kind.REVIEW}:
            draft.put(path, redirect(draft.get(path) or b"", old, new))


def redirect(data: bytes, old: str, new: str) -> bytes:
    """Return a note whose links to the note `old` lead to the note `new`, and show what they have shown."""

    def led(link: re.Match[str]) -> str:
        part, shown = link["part"] or "", link["shown"]
        return f"[[{new}{part}{shown or (f'|{old}' if not part else '')}]]"

    text = data.decode("utf-8", "surrogateescape")
    pattern = rf"\[\[{re.escape(old)}(?:\.md)?(?P<part>#[^\[\]|\\]*)?(?P<shown>\\?\|[^\[\]]*)?\]\]"
    return re.sub(pattern, led, text, flags=re.IGNORECASE).encode("utf-8", "surrogateescape")


def _part_disputed(draft: _Draft, path: str) -> None:
    """Give each of the statements of a fact that cannot all be true a note of its own, and ask which one is."""
    note, data = draft.note(path), draft.get(path)
    if note is None or data is None or note.kind is not Kind.FACT:
        return
    try:
        text = data.decode("utf-8")
        disputed = frontmatter.parse(text).fields.get(DISPUTED)
        if not isinstance(disputed, list):
            return
        body = notes.split_body(text)[1]
        said = [sentence for sentence in list_sentences(body) if markdown.plain(sentence) in disputed]
        made = [_make_fact(draft, text, statement, note) for statement in said[1:]]
        for statement in said[1:]:
            body = re.sub(
                rf"^{re.escape(statement)}[ \t]*\r?\n|[ \t]*{re.escape(statement)}",
                "",
                body,
                count=1,
                flags=re.MULTILINE,
            )
        draft.put(path, (notes.split_body(frontmatter.set_fields(text, {DISPUTED: None}))[0] + body).encode())
    except (FrontmatterBrokenError, UnicodeDecodeError):
        return
    for other in made:
        _ask(draft, path, other)


def _make_fact(draft: _Draft, text: str, statement: str, of: Note) -> str:
    """Write a fact that says `statement` and is else like `of`, whose file is `text`; every machine gives it one id."""
    number = int.from_bytes(hashlib.sha256(f"{of.id}\n{statement}".encode()).digest()[:10])
    note_id = of.id[:_TIME_CHARS] + "".join(_BASE32[(number >> shift) & 31] for shift in range(75, -1, -5))
    own = {"id": note_id, DISPUTED: None, "confirmations": None, "superseded_by": None}
    head = notes.split_body(frontmatter.set_fields(text, own))[0]
    created = notes.parse_time(of.created) or draft.now
    path = draft.place.place(layout.fact_path(markdown.plain(statement), note_id, created))
    if draft.get(path) is None:
        draft.put(path, f"{head}{statement}{notes.newline_of(text)}".encode())
    return path


def _ask_about_opposed(draft: _Draft, merge: Merge, index: IndexConnection) -> None:
    """Ask about each two facts, one of each side, that give one subject two values of what it has one of."""
    paths = {
        doc_id: path
        for doc_id, path in backlinks.list_paths(index, [*merge.ours, *merge.theirs])
        if (note := draft.note(path)) and note.kind is Kind.FACT and not note.superseded_by
    }
    for one, other in sorted(list_opposed(index, list(paths))):
        pair = [paths.get(one, ""), paths.get(other, "")]
        if any(left in merge.ours and right in merge.theirs for left, right in (pair, pair[::-1])):
            _ask(draft, *pair)


def _ask(draft: _Draft, *paths: str) -> None:
    found = [note for path in sorted(paths) if (note := draft.note(path))]
    texts = [quote(note.text, _TITLE) for note in found]
    decision = Decision(
        task=TASK,
        kind=CONFLICT,
        key=evidence_key(TASK, *map(fact_evidence, found)),
        edits=(),
        subject=f"which is true: {' or '.join(texts)}?",
        why=_WHY,
        facts=tuple(note.id for note in found),
        always_asks=True,
        choices=tuple((note.rel_path, quote(note.text, _SHOWN)[1:-1]) for note in found),
    )
    path = question_path(CONFLICT, decision.key, draft.place)
    if draft.get(path) is None:
        draft.put(path, render_question(decision, draft.now, {each: draft.get(each) for each in paths}, draft.place))
        draft.questions.append(path)
