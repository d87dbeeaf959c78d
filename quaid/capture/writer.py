"""Everything that writes: lock, finish what a crash left, be fresh, plan, write and commit. `Memory` passes it on.

Plans are made by the capture room and are pure; here is what they need looked up, and the order of things.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quaid.capture import entity_note, fact_note, note_edit, owner_note, replacing
from quaid.capture.fact_note import FactDetails
from quaid.capture.note_edit import Mark
from quaid.capture.note_finder import NoteFinder
from quaid.capture.storing import KnownFact, NewFact
from quaid.config import is_users_own, person_of, render_setting, render_value, set_users_own
from quaid.errors import (
    BadInputError,
    NoteBrokenError,
    NoteChangedError,
    NoteNotFoundError,
    NotOursError,
    VaultNotFoundError,
)
from quaid.history import merge_driver
from quaid.index import documents, graph, references
from quaid.index.documents import Document
from quaid.local import claimed
from quaid.model import Edge, Edit, Kind, Message, is_owner_label
from quaid.place import CONFIG_FILE, INDEX_FILE, state_folder
from quaid.recall.visibility import find_forgotten, may_see
from quaid.sqlite import retry_after_damage
from quaid.vault import episodes, files, frontmatter, notes, transaction
from quaid.vault.transaction import VaultChange

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection
    from quaid.open_vault import OpenVault


PLAN_ATTEMPTS = 5
FORGETTABLE = (Kind.FACT, Kind.ENTITY, Kind.EPISODE)


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write.

    `outcome` is created, confirmed, linked, known, forgotten, restored, edited, marked, disputed, kept, set or
    unchanged; `left` are paths whose change is on disk but not committed, because the owner's own uncommitted work is
    in them or because git refused, as `hint` then says; else `hint` names a next step worth knowing; `redacted` are the
    kinds of the secrets that were taken out; `replaced` is the id of the fact that holds no longer.
    """

    id: str
    path: str
    outcome: str
    text: str = ""
    commit: str | None = None
    left: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    hint: str | None = None
    redacted: tuple[str, ...] = ()
    replaced: str | None = None


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A plan, perhaps an empty one: without edits there is no commit. What `travels` is committed along with the next
    plan.

    `details` are for its caller, as plain JSON.
    """

    written: WriteResult
    edits: tuple[Edit, ...] = ()
    message: Message = field(default_factory=lambda: Message(""))
    details: Mapping[str, Any] = field(default_factory=dict)
    travels: bool = False

    def answer(self) -> str:
        """The answer that the same call gets again when a crash cut it off."""
        return json.dumps([asdict(self.written), dict(self.details)])

    @classmethod
    def from_answer(cls, answer: str) -> WritePlan:
        written, details = json.loads(answer)
        lists: dict[str, Any] = {key: tuple(value) for key, value in written.items() if isinstance(value, list)}
        return cls(WriteResult(**{**written, **lists}), details=details)


class Writer:
    """One vault's writing side."""

    def __init__(self, vault: OpenVault) -> None:
        if vault.problem is not None:
            raise vault.problem
        self._vault = vault
        self._root = vault.root
        self._layout = vault.layout
        self.finder = NoteFinder(vault.root, vault.settings, vault.embedding, vault.matrix)

    def remember(
        self, text: str, details: FactDetails, replaces: str | None = None, *, by_owner: bool = False
    ) -> WriteResult:
        """Store a fact, or confirm the one that says it already; the one that it `replaces` holds no longer. What was
        secret in it is replaced by its name. `by_owner` is as for `write`.
        """
        from quaid.redaction import admit, admit_all

        said = admit(text)
        statement = fact_note.clean_statement(said.text)
        fact_note.check_period(details)
        named = [details.speaker, details.project, details.session, list(details.keywords)]
        (speaker, project, session, keywords), more = admit_all(named)
        safe = replace(details, speaker=speaker, project=project, session=session, keywords=tuple(keywords))
        key = _key("remember", statement, safe, replaces)
        done = self.write(key, lambda: self._plan_fact(statement, safe, replaces), by_owner=by_owner).written
        return replace(done, redacted=(*said.redacted, *more))

    def link(self, edge: Edge) -> WriteResult:
        """Put an edge into the graph, normalised, with entity notes made on the way."""
        from quaid.redaction import admit

        ends = (references.target_of(edge.subject), edge.relation, references.target_of(edge.object))
        subject, relation, target = (admit(name).text for name in ends)
        if owner := person_of(self._root, self._vault.settings):
            subject, target = (owner if is_owner_label(end) else end for end in (subject, target))
        edge = Edge(subject, relation, target)
        return self.write(_key("link", edge), lambda: self._plan_link(edge)).written

    def forget(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Take a fact, an entity, an episode or one turn out; git keeps it. `by_owner` is as for `write`."""
        return self.write(_key("forget", reference), lambda: self._plan_forget(reference), by_owner=by_owner).written

    def restore(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Bring back what was forgotten, as it was, or let a fact that was replaced hold again. `by_owner` is as for
        `write`.
        """
        return self.write(_key("restore", reference), lambda: self._plan_restore(reference), by_owner=by_owner).written

    def save_edit(self, path: str, before: bytes, after: bytes) -> WriteResult:
        """Write a note as its owner has edited it, in the owner's name; what was changed in it meanwhile stays. A text
        whose head cannot be read is kept as it is, and `hint` says so.

        Raises:
            NoteChangedError: the same lines were changed meanwhile.
            NoteNotFoundError: the note is gone.
            EmptyNoteError: nothing would be left of it.
        """
        key = _key("edit", path, before, after)
        return self.write(key, lambda: self._plan_edit(path, before, after), by_owner=True).written

    def mark(self, reference: str, mark: Mark, *, is_set: bool) -> WriteResult:
        """Pin or verify a fact or a core note in its owner's name, or take that back. What was somebody else's claim
        is the owner's word then.
        """
        key = _key("mark", reference, mark, is_set)
        written = self.write(key, lambda: self._plan_mark(reference, mark, is_set=is_set), by_owner=True).written
        return replace(written, outcome="marked") if is_set and claimed.drop(self._root, written.id) else written

    def configure(self, key: str, value: object) -> WriteResult:
        """Set one key of quaid.toml, or of the user's own config; its comments and order stay.

        Raises:
            BadInputError: the value is a secret, and would be kept in clear.
        """
        from quaid.redaction import admit

        if key == owner_note.OWNER_NAME:
            value = owner_note.clean_name(str(value))
        said = f"{key} = {render_value(value)}"
        if admit(said).redacted:
            raise BadInputError(
                f"The value of {key} looks like a secret, and a file would keep it in clear. "
                f"Set it in the environment: QUAID_{key.replace('.', '_').upper()}"
            )
        if is_users_own(key):
            return WriteResult(key, str(set_users_own(key, value)), "set", said)
        return self.write(_key("config", key, value), lambda: self._plan_setting(key, value), by_owner=True).written

    # -- the order of things -------------------------------------------------------------------------------------

    def write(self, key: str, plan: Callable[[], WritePlan], *, by_owner: bool = False) -> WritePlan:
        """Carry out what `plan` plans, as one commit; it is asked again when a file changed under it.

        `key` names the call: one that a crash cut off gets the answer that it missed, and nothing is done twice. The
        commit is Quaid's, or `by_owner` in the name under which git commits by hand, where it has one: for what no
        agent can have asked for.
        """
        vault = self._vault
        if not (self._root / CONFIG_FILE).exists():
            raise VaultNotFoundError(self._root)
        history = vault.git
        merge_driver.set_up(self._root)  # the first write in a clone that was made with git
        with transaction.begin(self._root, history, vault.settings.git.wait_s, vault.notify) as finished:
            if finished is not None and finished.key == key:
                return WritePlan.from_answer(finished.answer)
            for attempt in range(1, PLAN_ATTEMPTS + 1):
                planned = retry_after_damage(state_folder(self._root) / INDEX_FILE, lambda _again: plan())
                if not planned.edits:
                    return planned
                message = replace(planned.message, trailers=(*planned.message.trailers, *vault.trailers))
                change = VaultChange(
                    key,
                    planned.edits,
                    message,
                    answer=planned.answer(),
                    author=history.owner() if by_owner else None,
                    stays=True,
                    travels=planned.travels,
                )
                try:
                    committed = transaction.apply(self._root, change, history)
                except NoteChangedError:  # an editor saved between plan and write: look again
                    if attempt == PLAN_ATTEMPTS:
                        raise
                    continue
                hint = committed.refusal or planned.written.hint
                written = replace(planned.written, commit=committed.id, left=committed.left, hint=hint)
                return replace(planned, written=written)
        raise AssertionError("unreachable")

    # -- plans ---------------------------------------------------------------------------------------------------

    def _plan_fact(self, statement: str, details: FactDetails, replaces: str | None) -> WritePlan:
        index, seen = self._vault.whole_index(), self._vault.visible_index()
        new = NewFact(statement, details)
        old = replacing.find_replaced(seen, self.finder, replaces, new) if replaces else None
        (same,) = self.finder.find_duplicates(index, [new])
        if isinstance(same, KnownFact) and (old is None or same.id != old.id):
            note_id, outcome, verb = same.id, "confirmed", "confirm"
            edit = self._edit(same.rel_path, lambda data: fact_note.plan_confirmation(same.rel_path, data))
        else:
            (note_id, edit), outcome, verb = self._plan_new(statement, details, seen), "created", "remember"
        message = Message(f"{verb}: {statement}", trailers=_trailers(note_id, details.session))
        plan = WritePlan(WriteResult(note_id, edit.rel_path, outcome, statement), (edit,), message)
        if old is None:
            return plan
        ended = self._edit(
            old.path, lambda data: replacing.plan_end(old, data, edit.rel_path, details.valid_from, _now())
        )
        return replacing.add_end(plan, ended, old.id, documents.text_of(seen, old.doc_id))

    def _plan_new(self, statement: str, details: FactDetails, visible: IndexConnection) -> tuple[str, Edit]:
        from quaid.capture.stated_relations import add_stated

        owner = person_of(self._root, self._vault.settings)
        details = add_stated(statement, details, _now(), owner, lambda name: graph.note_of(visible, name))
        return fact_note.plan_fact(statement, details, _now(), graph.entity_names(visible, statement), self._layout)

    def _plan_link(self, edge: Edge) -> WritePlan:
        index = self._vault.index()
        details = FactDetails(owner=self._vault.settings.owner)
        find = partial(self.finder.find_entity, index)
        planned = entity_note.plan_link(edge, find, _now(), details, self._layout)
        said = f"{planned.edge.subject} {planned.edge.relation} {planned.edge.object}"
        subject = self.finder.find_entity(index, planned.edge.subject)
        owners = {*self._vault.owners, "default"}
        if subject is not None and not may_see(subject.rel_path, subject.data, owners, self._layout):
            raise BadInputError(
                f"The name {planned.edge.subject!r} is taken. Give the subject of the link another name."
            )
        if subject is not None and subject.is_own and (said_in := graph.find_edge_fact(index, planned.edge)):
            return WritePlan(WriteResult(said_in, said_in, "known", said))
        path = planned.edits[0].rel_path if subject is None or subject.is_own else subject.rel_path
        written = WriteResult(path, path, "linked" if planned.edits else "known", said, created=planned.created)
        return WritePlan(written, planned.edits, Message(f"link: {said}", trailers=(("Quaid-Task", "link"),)))

    def _plan_forget(self, reference: str) -> WritePlan:
        index = self._vault.index()
        document, turn, heading = references.resolve_one(index, reference)
        if document.kind not in FORGETTABLE:
            raise NotOursError(document.path)
        if heading:
            raise BadInputError(f"{reference!r} is a part of {document.path}. Cut it out with: quaid edit")
        if turn is not None:
            return self._plan_forget_turn(document, reference, turn)
        data = self._read(document.path)
        history, text = self._vault.git, documents.text_of(index, document.doc_id) or document.title
        transaction.commit_deferred(self._root, history, document.path)
        transaction.commit_unsaved(history, document.path, data, Message(f"edit: {text}"))
        message = Message(f"forget: {text}", trailers=_trailers(document.id, None))
        cited = [chunk_id for _, chunk_id in graph.cited_turns(index, [document.doc_id])]
        turns = {f"{Path(turn.path).stem}#t{turn.turn}" for turn in documents.fetch_candidates(index, cited).values()}
        hint = f"The conversation still says it; forget that too with: quaid forget {min(turns)}" if turns else None
        written = WriteResult(document.id, document.path, "forgotten", text, hint=hint)
        return WritePlan(written, (Edit(document.path, data, None),), message)

    def _plan_forget_turn(self, document: Document, reference: str, turn: int) -> WritePlan:
        if document.kind != Kind.EPISODE:
            raise NoteNotFoundError(reference)
        turn_id = f"{Path(document.path).stem}#t{turn}"
        edit = self._edit_body(document.path, lambda body: episodes.forget_turn(body, turn))
        written = WriteResult(turn_id, document.path, "forgotten", f"turn {turn} of {document.title}")
        if edit.after == edit.before:
            return WritePlan(replace(written, outcome="unchanged"))
        message = Message(
            f"forget: turn {turn} of session {document.session}", trailers=_trailers(turn_id, document.session)
        )
        return WritePlan(written, (edit,), message)

    def _plan_restore(self, reference: str) -> WritePlan:
        index = self._vault.index()
        if references.resolve(index, reference):
            document, turn, heading = references.resolve_one(index, reference)
            if turn is not None:
                return self._plan_restore_turn(document, turn)
            if heading:
                raise NoteNotFoundError(reference)
            if document.superseded_by:
                return self._plan_reinstatement(document)
            return WritePlan(WriteResult(document.id, document.path, "unchanged", document.title))
        vault = self._vault
        found = find_forgotten(vault.git, reference, vault.owners, self._layout)
        if found is None:
            raise NoteNotFoundError(reference)
        _, path, data = found
        restored = notes.parse_note(path, data, place=self._layout)
        message = Message(f"restore: {restored.text or path}", trailers=_trailers(restored.id, None))
        return WritePlan(
            WriteResult(restored.id, path, "restored", restored.text or path), (Edit(path, None, data),), message
        )

    def _plan_reinstatement(self, document: Document) -> WritePlan:
        """Let a fact that was replaced hold again."""
        history = self._vault.git
        edit = self._edit(document.path, lambda data: replacing.plan_taking_back(history, document, data))
        said = documents.text_of(self._vault.visible_index(), document.doc_id)
        message = Message(f"restore: {said}", trailers=_trailers(document.id, None))
        return WritePlan(WriteResult(document.id, document.path, "restored", said), (edit,), message)

    def _plan_restore_turn(self, document: Document, turn: int) -> WritePlan:
        turn_id = f"{Path(document.path).stem}#t{turn}"
        old = self._find_said(document, turn_id, turn)
        edit = self._edit_body(
            document.path,
            lambda body: body if episodes.says_turn(body, turn) else episodes.restore_turn(body, old, turn),
        )
        written = WriteResult(turn_id, document.path, "restored", f"turn {turn} of {document.title}")
        if edit.after == edit.before:
            return WritePlan(replace(written, outcome="unchanged"))
        return WritePlan(
            written, (edit,), Message(f"restore: turn {turn}", trailers=_trailers(turn_id, document.session))
        )

    def _find_said(self, document: Document, turn_id: str, turn: int) -> str:
        """The body of an episode as it was when it last said this turn."""
        history = self._vault.git
        for commit in history.log(grep_trailer=("Quaid-Fact", turn_id)):
            before = history.read_at(f"{commit.id}^", document.path)
            body = notes.split_body(before.decode("utf-8", "replace"))[1] if before else ""
            if episodes.says_turn(body, turn):
                return body
        raise NoteNotFoundError(f"{document.path}#t{turn}")

    def _plan_edit(self, path: str, before: bytes, after: bytes) -> WritePlan:
        now = self._read(path)
        merged = note_edit.merge_edit(path, before, now, after, self._layout)
        old, note = (notes.parse_note(path, data, place=self._layout) for data in (before, merged))
        said = note.title if note.problems or not note.text else note.text
        written = WriteResult(note.id, path, "edited", said, hint=note_edit.tell_new_problems(old, note))
        if merged == now:
            return WritePlan(replace(written, outcome="unchanged"))
        return WritePlan(written, (Edit(path, now, merged),), Message(f"edit: {said}"))

    def _plan_mark(self, reference: str, mark: Mark, *, is_set: bool) -> WritePlan:
        index = self._vault.index()
        document, *_ = references.resolve_one(index, reference)
        note_edit.check_markable(document)
        path, place = document.path, self._layout
        edit = self._edit(path, lambda data: note_edit.plan_mark(path, data, mark, place, is_set=is_set))
        said = documents.text_of(index, document.doc_id) if document.kind == Kind.FACT else document.title
        written = WriteResult(document.id, path, "marked", said)
        if edit.after == edit.before:
            return WritePlan(replace(written, outcome="unchanged"))
        verb = note_edit.name_marking(mark, is_set=is_set)
        return WritePlan(written, (edit,), Message(f"{verb}: {said}", trailers=_trailers(document.id, None)))

    def _plan_setting(self, key: str, value: object) -> WritePlan:
        edit = self._edit(
            CONFIG_FILE, lambda data: Edit(CONFIG_FILE, data, render_setting(data.decode(), key, value).encode())
        )
        said = f"{key} = {render_value(value)}"
        names_owner = key == owner_note.OWNER_NAME and value
        edits, created = self._plan_owner(str(value)) if names_owner else ((), ())
        if edit.after == edit.before and not edits:
            return WritePlan(WriteResult(key, CONFIG_FILE, "unchanged", said))
        changed = (edit, *edits) if edit.after != edit.before else edits
        written = WriteResult(key, CONFIG_FILE, "set", said, created=created)
        return WritePlan(written, changed, Message(f"config: {said}", trailers=(("Quaid-Task", "config"),)))

    def _plan_owner(self, name: str) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
        """The edits that give the owner `name` a note, and the names of new ones; none where a note is called so."""
        index = self._vault.index()
        if self.finder.find_entity(index, name) or documents.find_by_name(index, name):
            return (), ()
        former_name = self._vault.settings.owner_name
        former = self.finder.find_entity(index, former_name) if former_name else None
        renamed = owner_note.plan_new_name(name, former) if former else None
        return ((renamed,), ()) if renamed else ((owner_note.plan_owner(name, (), _now(), self._layout),), (name,))

    # -- editing notes -------------------------------------------------------------------------------------------

    def _read(self, path: str) -> bytes:
        data = files.read_note(self._root, path)
        if data is None:
            raise NoteNotFoundError(path)
        return data

    def _edit(self, path: str, change: Callable[[bytes], Edit]) -> Edit:
        with naming_broken_note(path):
            return change(self._read(path))

    def _edit_body(self, path: str, change: Callable[[str], str]) -> Edit:
        def edit(data: bytes) -> Edit:
            head, body = notes.split_body(data.decode("utf-8"))
            return Edit(path, data, (head + change(body)).encode())

        return self._edit(path, edit)


@contextmanager
def naming_broken_note(path: str) -> Iterator[None]:
    """Raise a NoteBrokenError with `path` where a note's head or its encoding cannot be read."""
    try:
        yield
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError) as error:
        problem = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise NoteBrokenError(path, problem) from error


def _trailers(fact_id: str, session: str | None) -> tuple[tuple[str, str], ...]:
    return (("Quaid-Fact", fact_id), *((("Quaid-Session", session),) if session else ()))


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)
