"""After a merge of two machines: settle what no merge of single files can see, or ask about it.

An entity or conversation that both have made a note of becomes one note. Facts that both have stated and that cannot
both be true stay, and become a question to the owner. The result is the same on every machine.
"""

import hashlib
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

from quaid.capture.entities import Profile, add_aliases, contradict
from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.errors import NoteLockedError
from quaid.history.merges import list_merges
from quaid.history.repository import find_repository
from quaid.index import documents, references
from quaid.index.port import IndexConnection
from quaid.janitor.decision import CONFLICT, fact_evidence
from quaid.janitor.model_text import quote
from quaid.janitor.questions import question_path, render_question
from quaid.janitor.tasks.resolve import TASK
from quaid.local.runs import Decision, evidence_key
from quaid.model import Edit, Kind, Message, Note, name_key, note_name
from quaid.open_vault import OpenVault
from quaid.place import write_private
from quaid.recall.contradictions import list_opposed
from quaid.vault import files, frontmatter, layout, markdown, notes
from quaid.vault.frontmatter import FrontmatterBrokenError
from quaid.vault.merging import DISPUTED, list_sentences, merge_note

SETTLED_FILE = "settled"
"""In the state folder: the commit up to which merges were settled."""
_WHY = "Two machines have stated them, each on its own, and they cannot both be true."
_SHOWN, _TITLE = 300, 60
_TIME_CHARS = 10
"""Characters of an id that encode when it was made."""
_JOINED = frozenset({Kind.FACT, Kind.ENTITY, Kind.EPISODE})


def settle_merges(vault: OpenVault) -> tuple[list[tuple[str, str]], list[str]]:
    """Settle the merges since the last call, in one commit. Call it when a merge is committed.

    Returns:
        The notes that were joined, as (path that stays, path that is gone), and the paths of new questions.

    Raises:
        LockedError: a merge is still in progress, or another writer does not end.
    """
    root, history = vault.root, vault.git
    head = history.state().head if find_repository(root) is not None else None
    mark = vault.state / SETTLED_FILE
    known = mark.read_text("ascii", "replace").strip() if mark.is_file() else None
    if head is None or head == known:
        return [], []
    merges = list_merges(history.runner, known)
    joined: list[tuple[str, str]] = []
    questions: list[str] = []

    def plan() -> WritePlan:
        nonlocal joined, questions
        draft = Draft(vault)
        for merge in merges:
            draft.settle(*merge)
        joined, questions = draft.joined, draft.questions
        subject = f"merge: {len(joined)} notes joined, asks {len(questions)}"
        body = "\n".join(f"- {gone} is {stays}" for stays, gone in joined)
        return WritePlan(WriteResult(head, "", "edited", subject), draft.edits, Message(subject, body))

    if merges:
        try:
            Writer(vault).write(f"settle {head}", plan)
        except NoteLockedError as error:
            joined, questions = [], []
            vault.notify(str(error))
    with suppress(OSError):  # then the next call checks again
        write_private(mark, f"{history.state().head}\n")
    return joined, questions


class Draft:
    """The vault as it will be: files by their paths, read when they are first needed."""

    def __init__(self, vault: OpenVault) -> None:
        self._root = vault.root
        self._layout = vault.layout
        self._index: IndexConnection = vault.whole_index()
        self._now = datetime.now(UTC)
        self._edits: dict[str, Edit] = {}
        self.joined: list[tuple[str, str]] = []
        self.questions: list[str] = []

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(edit for _, edit in sorted(self._edits.items()) if edit.before != edit.after)

    def settle(self, ours: frozenset[str], theirs: frozenset[str], both: frozenset[str]) -> None:
        """Settle the notes that each side of a merge has added, and those that both have changed."""
        sides = [[note for path in sorted(side) if (note := self.read(path))] for side in (ours, theirs)]
        for one, other in product(*([note for note in side if note.kind in _JOINED] for side in sides)):
            if one.kind is other.kind and _are_one(one, other):
                self.join(*sorted((one, other), key=lambda note: (note.created or "9", note.id, note.rel_path)))
        for path in sorted(both):
            self._split_disputed(path)
        # Ask about two facts, one of each side, that give one subject two values of what it has one of.
        paths = {
            doc_id: path
            for path, doc_id in documents.find_paths(self._index, [*ours, *theirs]).items()
            if (note := self.read(path)) and note.kind is Kind.FACT and not note.superseded_by
        }
        for first, second in sorted(list_opposed(self._index, list(paths))):
            pair = [paths.get(first, ""), paths.get(second, "")]
            if any(left in ours and right in theirs for left, right in (pair, pair[::-1])):
                self._ask(*pair)

    def _get(self, path: str) -> bytes | None:
        if path not in self._edits:
            data = files.read_note(self._root, path)
            self._edits[path] = Edit(path, data, data)
        return self._edits[path].after

    def _set(self, path: str, data: bytes | None) -> None:
        self._get(path)
        self._edits[path] = replace(self._edits[path], after=data)

    def read(self, path: str) -> Note | None:
        data = self._get(path)
        return notes.parse_note(path, data, place=self._layout) if data is not None else None

    def join(self, stays: Note, gone: Note) -> None:
        """Make one note of two, and redirect the links of the one that goes."""
        first, second = self._get(stays.rel_path), self._get(gone.rel_path)
        merged = merge_note(b"", first, second, stays.rel_path) if first is not None and second is not None else None
        if merged is None:
            return
        old, new = note_name(gone.rel_path), note_name(stays.rel_path)
        if stays.kind is Kind.ENTITY and name_key(old) != name_key(new):
            merged = add_aliases(merged, [old])
        self._set(stays.rel_path, merged)
        self._set(gone.rel_path, None)
        self.joined.append((stays.rel_path, gone.rel_path))
        for path in references.list_linking(self._index, old) if old != new else ():
            note = self.read(path)
            if note is not None and note.kind in {*_JOINED, Kind.REVIEW}:
                self._set(path, redirect(self._get(path) or b"", old, new))

    def _split_disputed(self, path: str) -> None:
        """Give each statement of a fact that cannot be true together its own note, and ask which one is true."""
        note, data = self.read(path), self._get(path)
        if note is None or data is None or note.kind is not Kind.FACT:
            return
        try:
            text = data.decode("utf-8")
            disputed = frontmatter.parse(text).fields.get(DISPUTED)
            if not isinstance(disputed, list):
                return
            body = notes.split_body(text)[1]
            others = [sentence for sentence in list_sentences(body) if markdown.plain(sentence) in disputed][1:]
            made = [self._make_fact(text, statement, note) for statement in others]
            for statement in others:
                pattern = rf"^{re.escape(statement)}[ \t]*\r?\n|[ \t]*{re.escape(statement)}"
                body = re.sub(pattern, "", body, count=1, flags=re.MULTILINE)
            head = notes.split_body(frontmatter.set_fields(text, {DISPUTED: None}))[0]
        except (FrontmatterBrokenError, UnicodeDecodeError):
            return
        self._set(path, (head + body).encode())
        for other in made:
            self._ask(path, other)

    def _make_fact(self, text: str, statement: str, original: Note) -> str:
        """Write a fact that says `statement`, otherwise like the file `text`; every machine gives it the same id."""
        digest = hashlib.sha256(f"{original.id}\n{statement}".encode()).digest()
        note_id = original.id[:_TIME_CHARS] + layout.encode_id(int.from_bytes(digest[:10]), 16)
        own = {"id": note_id, DISPUTED: None, "confirmations": None, "superseded_by": None}
        head = notes.split_body(frontmatter.set_fields(text, own))[0]
        created = notes.parse_time(original.created) or self._now
        path = self._layout.place(layout.fact_path(markdown.plain(statement), note_id, created))
        if self._get(path) is None:
            self._set(path, f"{head}{statement}{notes.newline_of(text)}".encode())
        return path

    def _ask(self, *paths: str) -> None:
        """Write the question which of the facts is true."""
        found = [note for path in sorted(paths) if (note := self.read(path))]
        subject = f"which is true: {' or '.join(quote(note.text, _TITLE) for note in found)}?"
        key, facts = evidence_key(TASK, *map(fact_evidence, found)), tuple(note.id for note in found)
        choices = tuple((note.rel_path, quote(note.text, _SHOWN)[1:-1]) for note in found)
        decision = Decision(TASK, CONFLICT, key, (), subject, _WHY, facts, always_asks=True, choices=choices)
        path = question_path(CONFLICT, decision.key, self._layout)
        if self._get(path) is None:
            contents = {quoted: self._get(quoted) for quoted in paths}
            self._set(path, render_question(decision, self._now, contents, self._layout))
            self.questions.append(path)


def _are_one(one: Note, other: Note) -> bool:
    """Return whether two notes are of one id, one conversation, or one entity."""
    if one.kind is Kind.EPISODE:
        return bool(one.session) and one.session == other.session
    if one.id == other.id or one.kind is Kind.FACT:
        return one.id == other.id
    keys = [{name_key(name) for name in note.names} for note in (one, other)]
    has_name = name_key(one.names[0]) in keys[1] or name_key(other.names[0]) in keys[0]
    profiles = [Profile.of(own, note.edges) for own, note in zip(keys, (one, other), strict=True)]
    return one.type == other.type and has_name and not contradict(profiles[0], profiles[1])


def redirect(data: bytes, old: str, new: str) -> bytes:
    """Return a note whose links to the note `old` lead to the note `new`, with the same visible text."""

    def relink(link: re.Match[str]) -> str:
        part = link["part"] or ""
        shown = link["shown"] or ("" if part else f"|{old}")
        return f"[[{new}{part}{shown}]]"

    text = data.decode("utf-8", "surrogateescape")
    pattern = rf"\[\[{re.escape(old)}(?:\.md)?(?P<part>#[^\[\]|\\]*)?(?P<shown>\\?\|[^\[\]]*)?\]\]"
    return re.sub(pattern, relink, text, flags=re.IGNORECASE).encode("utf-8", "surrogateescape")
