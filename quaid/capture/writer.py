"""Everything that writes: lock, finish what a crash left, update the index, plan, write and commit."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from quaid import errors
from quaid.capture import facts, owner_note, relations
from quaid.capture.entities import add_aliases
from quaid.capture.facts import NewFact
from quaid.capture.note_finder import NoteFinder
from quaid.capture.stated_relations import add_stated
from quaid.config import is_users_own, person_of, render_setting, render_value, set_users_own
from quaid.history import merge_driver
from quaid.history.merge import merge_lines, revert_change
from quaid.index import documents, graph, references
from quaid.index.documents import Document
from quaid.index.port import IndexConnection
from quaid.local import claimed
from quaid.model import Edge, Edit, Kind, Message, Note, is_owner_label, note_name
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE
from quaid.recall.visibility import find_forgotten, may_see
from quaid.redaction import admit, admit_all
from quaid.sqlite import DamageRetries
from quaid.sync.embedding import LEFT_OPEN, propose_for_memory
from quaid.text.words import find_words
from quaid.text.zones import local_now, localise
from quaid.vault import episodes, files, frontmatter, notes, transaction
from quaid.vault.agent_notes import find_lock
from quaid.vault.notes import StoredNote
from quaid.vault.transaction import VaultChange

PLAN_ATTEMPTS = 5
NO_MESSAGE = Message("")
FORGETTABLE = (Kind.FACT, Kind.ENTITY, Kind.EPISODE)
MARKABLE = (Kind.FACT, Kind.CORE)
Mark = Literal["pinned", "verified"]
LEARNED = {"kept", "imported"}
"""The outcomes of writes of many notes, of which each is for itself."""
MARKS: dict[Mark, str] = {"pinned": "pin", "verified": "verify"}
"""The marks that protect a note from change, with the verbs for setting them."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write.

    `outcome` is created, confirmed, linked, known, forgotten, restored, edited, renamed, deleted, marked, disputed,
    kept, set or unchanged; `left` are paths whose change is on disk but not committed, because the owner's own
    uncommitted work is in them or because git refused, as `hint` then explains; else `hint` names a useful next step;
    `redacted` are the kinds of the removed secrets; `replaced` is the id of the fact that is no longer true.
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
    """A planned commit; without edits there is none. One that `travels` is committed together with the next plan.

    `details` are for its caller, as plain JSON.
    """

    written: WriteResult
    edits: tuple[Edit, ...] = ()
    message: Message = NO_MESSAGE
    details: Mapping[str, Any] = field(default_factory=dict)
    travels: bool = False

    def answer(self) -> str:
        """The answer that a repeated call gets when a crash interrupted the first."""
        return json.dumps([asdict(self.written), dict(self.details)])

    @classmethod
    def from_answer(cls, answer: str) -> "WritePlan":
        written, details = json.loads(answer)
        lists: dict[str, Any] = {key: tuple(value) for key, value in written.items() if isinstance(value, list)}
        return cls(WriteResult(**{**written, **lists}), details=details)


class Writer:
    """One vault's writing side."""

    def __init__(self, vault: OpenVault) -> None:
        vault.check_settings()
        self._vault = vault
        self._root = vault.root
        self._layout = vault.layout
        self.finder = NoteFinder(vault)

    def remember(self, fact: NewFact, replaces: str | None = None, *, by_owner: bool = False) -> WriteResult:
        """Store a fact, or confirm the one with the same claim; the one that it `replaces` is no longer true.

        Secrets in it are replaced by their names. `by_owner` is as for `write`.
        """
        text = admit(fact.text)
        (speaker, project, session, keywords), more = admit_all(
            [fact.speaker, fact.project, fact.session, list(fact.keywords)]
        )
        fact = replace(
            fact,
            text=facts.clean_statement(text.text),
            speaker=speaker,
            project=project,
            session=session,
            keywords=tuple(keywords),
            created=fact.created and localise(fact.created, self._vault.settings.timezone),
        )
        facts.check_period(fact)
        key = hashlib.sha256(repr(("remember", fact, replaces)).encode()).hexdigest()
        done = self.write(key, self._plan_fact, fact, replaces, by_owner=by_owner).written
        return replace(done, redacted=(*text.redacted, *more))

    def link(self, edge: Edge) -> WriteResult:
        """Write an edge into the graph, in normal form, with new entity notes for its ends."""
        ends = (references.target_of(edge.subject), edge.relation, references.target_of(edge.object))
        subject, relation, target = (admit(name).text for name in ends)
        if owner := person_of(self._root, self._vault.settings):
            subject, target = (owner if is_owner_label(end) else end for end in (subject, target))
        edge = Edge(subject, relation, target)
        return self.write(make_key("link", edge), self._plan_link, edge).written

    def forget(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Remove a fact, an entity, an episode or one turn; git has it still. `by_owner` is as for `write`."""
        return self.write(make_key("forget", reference), self._plan_forget, reference, by_owner=by_owner).written

    def restore(self, reference: str, *, by_owner: bool = False) -> WriteResult:
        """Restore a forgotten note as it was, or a fact that was replaced. `by_owner` is as for `write`."""
        return self.write(make_key("restore", reference), self._plan_restore, reference, by_owner=by_owner).written

    def save_edit(self, path: str, before: bytes, after: bytes) -> WriteResult:
        """Write a note as its owner has edited it, in the owner's name; changes made meanwhile stay. A text whose head
        cannot be read is stored as it is, and `hint` explains.

        Raises:
            NoteChangedError: the same lines were changed meanwhile.
            NoteNotFoundError: the note is gone.
            QuaidError: nothing would be left of it.
        """
        return self.write(
            make_key("edit", path, before, after), self._plan_edit, path, before, after, by_owner=True
        ).written

    def commit_edit(self, path: str) -> WriteResult:
        """Commit a note as its owner has left it on disk, in the owner's name, whatever is staged of it.

        Raises:
            NoteNotFoundError: the note is gone.
            QuaidError: git would not have all of it.
        """
        vault = self._vault
        with transaction.begin(self._root, vault.git, vault.settings.git.wait_s, vault.notify):
            data = self._read(path)
            note = notes.parse_note(path, data, place=vault.layout)
            transaction.commit_deferred(self._root, vault.git, path)
            vault.git.unstage(path)
            commit = transaction.commit_unsaved(vault.git, path, data, Message(f"edit: {note.text or note.title}"))
        return WriteResult(note.id, path, "edited" if commit else "unchanged", note.title, commit)

    def mark(self, reference: str, mark: Mark, *, is_set: bool) -> WriteResult:
        """Pin or verify a fact or a core note in its owner's name, or undo that. Somebody else's claim becomes the
        owner's own.
        """
        key = make_key("mark", reference, mark, is_set)
        written = self.write(key, self._plan_mark, reference, mark, is_set, by_owner=True).written
        return replace(written, outcome="marked") if is_set and claimed.drop(self._root, written.id) else written

    def configure(self, key: str, value: object) -> WriteResult:
        """Set one key of quaid.toml, or of the user's own config; its comments and order stay."""
        if key == owner_note.OWNER_NAME:
            value = owner_note.clean_name(str(value))
        setting = f"{key} = {render_value(value)}"
        if admit(setting).redacted:
            raise errors.BadInputError(
                f"The value of {key} looks like a secret, and a file would keep it in clear. "
                f"Set it in the environment: QUAID_{key.replace('.', '_').upper()}"
            )
        if is_users_own(key):
            return WriteResult(key, str(set_users_own(key, value)), "set", setting)
        return self.write(make_key("config", key, value), self._plan_setting, key, value, by_owner=True).written

    def write(self, key: str, plan: Callable[..., WritePlan], *args: Any, by_owner: bool = False) -> WritePlan:
        """Carry out `plan(*args)` as one commit; it is called again when a file changed in between.

        `key` identifies the call: after a crash a repeated call gets the answer that it missed, and nothing is done
        twice. The commit is Quaid's, or `by_owner` in the owner's name in git, where there is one: only for what no
        agent can have requested.
        """
        vault = self._vault
        if not (self._root / CONFIG_FILE).exists():
            raise errors.VaultNotFoundError(self._root)
        merge_driver.set_up(self._root)  # the first write in a clone that was made with git
        with transaction.begin(self._root, vault.git, vault.settings.git.wait_s, vault.notify) as finished:
            if finished is not None and finished.key == key:
                return WritePlan.from_answer(finished.answer)
            for attempt in range(1, PLAN_ATTEMPTS + 1):
                planned, retries = None, DamageRetries(vault.indexer.path)
                while planned is None:
                    with retries:
                        planned = plan(*args)
                locked = {} if by_owner else find_lock(self._root, planned.edits)
                if locked:  # of all that was learned the rest is stored
                    edits = tuple(edit for edit in planned.edits if edit.rel_path not in locked)
                    if not edits or planned.written.outcome not in LEARNED or planned.written.path in locked:
                        raise errors.NoteLockedError(*next(iter(locked.items())))
                    vault.notify(f"{errors.name_first(list(locked))} is locked by its owner and was left as it is.")
                    planned = replace(planned, edits=edits)
                if not planned.edits:
                    return planned
                message = replace(planned.message, trailers=(*planned.message.trailers, *vault.trailers))
                change = VaultChange(
                    key,
                    planned.edits,
                    message,
                    answer=planned.answer(),
                    author=vault.git.owner() if by_owner else None,
                    stays=True,
                    travels=planned.travels,
                )
                try:
                    committed = transaction.apply(self._root, change, vault.git)
                except errors.NoteChangedError:  # an editor saved between plan and write: plan again
                    if attempt == PLAN_ATTEMPTS:
                        raise
                    continue
                hint = committed.refusal or planned.written.hint
                written = replace(planned.written, commit=committed.id, left=committed.left, hint=hint)
                return replace(planned, written=written)
        raise AssertionError("unreachable")

    # -- facts and edges -----------------------------------------------------------------------------------------

    def _plan_fact(self, fact: NewFact, replaces: str | None) -> WritePlan:
        index, visible = self._vault.whole_index(), self._vault.visible_index()
        old = self._find_replaced(visible, replaces, fact) if replaces else None
        if old is not None:
            stated = add_stated(fact, self._now(), person_of(self._root, self._vault.settings))
            fact = replace(fact, valid_from=facts.begin_when_stated(stated, self._now()).valid_from)
        (same,) = self.finder.find_duplicates(index, [fact])
        if isinstance(same, StoredNote) and (old is None or same.id != old.id):
            note_id, outcome, verb = same.id, "confirmed", "confirm"
            with naming_broken_note(same.rel_path):
                edit = facts.plan_confirmation(same.rel_path, self._read(same.rel_path))
        else:
            (note_id, edit), outcome, verb = self._plan_new(fact, visible), "created", "remember"
        message = Message(f"{verb}: {fact.text}", trailers=_trailers(note_id, fact.session))
        written = WriteResult(note_id, edit.rel_path, outcome, fact.text)
        if old is None:
            embedder = self._vault.settings.embedding
            if (embedder.provider, embedder.model) == LEFT_OPEN:
                written = replace(written, hint=propose_for_memory(visible, fact.text))
            return WritePlan(written, (edit,), message)
        until = (fact.valid_from or notes.render_time(fact.created or self._now()))[:10]
        with naming_broken_note(old.path):
            data = self._read(old.path)
            ended = facts.supersede(old.path, data, edit.rel_path, until)
        text = documents.text_of(visible, old.doc_id)
        hint = f'It replaces "{text}", which is kept as no longer true. Take that back with: quaid restore {old.id}'
        trailers = (*message.trailers, ("Quaid-Fact", old.id))
        return WritePlan(
            replace(written, replaced=old.id, hint=hint),
            (edit, ended),
            replace(message, body=f"Replaces: {text}", trailers=trailers),
        )

    def _find_replaced(self, index: IndexConnection, reference: str, new: NewFact) -> Document:
        """Return the fact that `new` replaces, by its id, its name or its claim.

        Raises:
            NothingToReplaceError: no such fact is true.
            AmbiguousReferenceError: it could be several.
            BadInputError: it makes the same claim as `new`.
        """
        try:
            document, turn, _ = references.resolve_one(index, reference)
        except errors.NoteNotFoundError:
            (same,) = self.finder.find_duplicates(index, [replace(new, text=reference)])
            if not isinstance(same, StoredNote):
                raise errors.NothingToReplaceError(reference) from None
            document, turn, _ = references.resolve_one(index, same.rel_path)
        if document.kind != Kind.FACT or turn is not None or document.superseded_by:
            raise errors.NothingToReplaceError(reference)
        if documents.text_of(index, document.doc_id) == new.text:
            raise errors.BadInputError(
                f"{document.id} says just that already: it cannot replace itself. Say what is true now."
            )
        return document

    def _plan_new(self, fact: NewFact, visible: IndexConnection) -> tuple[str, Edit]:
        stated = add_stated(fact, self._now(), person_of(self._root, self._vault.settings))
        if stated.edges != fact.edges:
            ends = [
                (graph.note_of(visible, e.subject), e.relation, graph.note_of(visible, e.object)) for e in stated.edges
            ]
            stated = replace(stated, edges=tuple(Edge(*end) for end in ends))
        return facts.plan_fact(stated, self._now(), graph.entity_names(visible, fact.text), self._layout)

    def _plan_link(self, edge: Edge) -> WritePlan:
        index = self._vault.index()
        find = partial(self.finder.find_entity, index)
        edge, edits, created = facts.plan_link(edge, find, self._now(), self._vault.settings.owner, self._layout)
        text = f"{edge.subject} {edge.relation} {edge.object}"
        subject = self.finder.find_entity(index, edge.subject)
        owners = {*self._vault.owners, "default"}
        if subject is not None and not may_see(subject.rel_path, subject.data, owners, self._layout):
            raise errors.BadInputError(
                f"The name {edge.subject!r} is taken. Give the subject of the link another name."
            )
        if subject is not None and subject.is_own and (path := graph.find_edge_fact(index, edge)):
            return WritePlan(WriteResult(path, path, "known", text))
        path = edits[0].rel_path if subject is None or subject.is_own else subject.rel_path
        hint = None
        if edits and not relations.is_known(edge.relation):
            from difflib import get_close_matches

            near = get_close_matches(edge.relation, [*relations.CANONICAL, *relations.SYNONYMS, *relations.INVERSES], 1)
            meant = f" If you meant {near[0]}, undo this with: quaid undo --last" if near else ""
            hint = f"Quaid does not know the relation {edge.relation}: only a question with that word finds it.{meant}"
        written = WriteResult(path, path, "linked" if edits else "known", text, hint=hint, created=created)
        return WritePlan(written, edits, Message(f"link: {text}", trailers=(("Quaid-Task", "link"),)))

    # -- forgetting and restoring --------------------------------------------------------------------------------

    def _plan_forget(self, reference: str) -> WritePlan:
        index = self._vault.index()
        document, turn, heading = references.resolve_one(index, reference)
        if document.kind not in FORGETTABLE:
            raise errors.NotOursError(document.path)
        if heading:
            raise errors.BadInputError(f"{reference!r} is a part of {document.path}. Cut it out with: quaid edit")
        if turn is not None:
            if document.kind != Kind.EPISODE:
                raise errors.NoteNotFoundError(reference)
            head, body = self._split(document.path)
            subject = f"forget: turn {turn} of session {document.session}"
            return self._plan_turn(document, turn, head + body, head + episodes.forget_turn(body, turn), subject)
        data = self._read(document.path)
        history, text = self._vault.git, documents.text_of(index, document.doc_id) or document.title
        transaction.commit_deferred(self._root, history, document.path)
        transaction.commit_unsaved(history, document.path, data, Message(f"edit: {text}"))
        message = Message(f"forget: {text}", trailers=_trailers(document.id, None))
        cited = [chunk_id for _, chunk_id in graph.cited_turns(index, [document.doc_id])]
        turns = {_turn_id(turn.path, turn.turn) for turn in documents.fetch_candidates(index, cited).values()}
        hint = f"The conversation still says it; forget that too with: quaid forget {min(turns)}" if turns else None
        written = WriteResult(document.id, document.path, "forgotten", text, hint=hint)
        return WritePlan(written, (Edit(document.path, data, None),), message)

    def _plan_turn(self, document: Document, turn: int, before: str, after: str, subject: str) -> WritePlan:
        turn_id = _turn_id(document.path, turn)
        outcome = "forgotten" if subject.startswith("forget") else "restored"
        written = WriteResult(turn_id, document.path, outcome, f"turn {turn} of {document.title}")
        if after == before:
            return WritePlan(replace(written, outcome="unchanged"))
        edit = Edit(document.path, before.encode(), after.encode())
        return WritePlan(written, (edit,), Message(subject, trailers=_trailers(turn_id, document.session)))

    def _plan_restore(self, reference: str) -> WritePlan:
        index = self._vault.index()
        if references.resolve(index, reference):
            document, turn, heading = references.resolve_one(index, reference)
            if turn is not None:
                head, body = self._split(document.path)
                old = self._find_turn(document, turn)
                after = body if episodes.says_turn(body, turn) else episodes.restore_turn(body, old, turn)
                return self._plan_turn(document, turn, head + body, head + after, f"restore: turn {turn}")
            if heading:
                raise errors.NoteNotFoundError(reference)
            if document.superseded_by:
                with naming_broken_note(document.path):
                    edit = self._plan_reinstatement(document)
                text = documents.text_of(self._vault.visible_index(), document.doc_id)
                message = Message(f"restore: {text}", trailers=_trailers(document.id, None))
                return WritePlan(WriteResult(document.id, document.path, "restored", text), (edit,), message)
            return WritePlan(WriteResult(document.id, document.path, "unchanged", document.title))
        _, path, data = find_forgotten(
            self._vault.git, reference, self._vault.owners, self._layout
        ) or self._find_forgotten_by_words(reference)
        note = notes.parse_note(path, data, place=self._layout)
        text = note.text or path
        message = Message(f"restore: {text}", trailers=_trailers(note.id, None))
        return WritePlan(WriteResult(note.id, path, "restored", text), (Edit(path, None, data),), message)

    def _find_forgotten_by_words(self, reference: str) -> tuple[str, str, bytes]:
        """Return what `find_forgotten` returns of the one note whose text, as it was forgotten, has all these words.

        Raises:
            NoteNotFoundError: there is none.
            AmbiguousReferenceError: there are several.
        """
        history, index = self._vault.git, self._vault.whole_index()
        named = history.list_removed(find_words(reference)) if find_words(reference) else {}
        gone = [note_id for note_id in named if not references.resolve(index, note_id)]
        seen = [(each, find_forgotten(history, each, self._vault.owners, self._layout)) for each in gone]
        found = {note_id: removal for note_id, removal in seen if removal is not None}
        if len(found) > 1:
            raise errors.AmbiguousReferenceError(reference, [(each, named[each].partition(": ")[2]) for each in found])
        for removal in found.values():
            return removal
        raise errors.NoteNotFoundError(reference)

    def _plan_reinstatement(self, document: Document) -> Edit:
        """Return the edit that undoes that `document` was replaced, and nothing that was written into it since."""
        data = self._read(document.path)
        for revision in self._vault.git.note_history(document.path, document.id):
            before, after = next(iter(revision.befores), None), revision.after
            if before is None or after is None or not _is_replaced(after) or _is_replaced(before):
                continue
            wanted = revert_change(before, after, data)[0]
            if not _is_replaced(wanted):
                return Edit(document.path, data, wanted)
            break
        raise errors.BadInputError(
            f"{document.path} says that it was replaced, and git has no version without that. Take superseded_by out "
            f"of it with: quaid edit {document.id}"
        )

    def _find_turn(self, document: Document, turn: int) -> str:
        """Return the body of an episode as it was when it last had this turn."""
        history = self._vault.git
        for commit in history.log(grep_trailer=("Quaid-Fact", _turn_id(document.path, turn))):
            before = history.read_at(f"{commit.id}^", document.path)
            body = notes.split_body(before.decode("utf-8", "replace"))[1] if before else ""
            if episodes.says_turn(body, turn):
                return body
        raise errors.NoteNotFoundError(f"{document.path}#t{turn}")

    # -- edits by the owner --------------------------------------------------------------------------------------

    def _plan_edit(self, path: str, before: bytes, after: bytes) -> WritePlan:
        now = self._read(path)
        if not after.strip():
            kind = notes.parse_note(path, now, place=self._layout).kind
            removal = f"Remove it with: quaid forget {quote(note_name(path))}"
            step = "To remove it, delete the file" if kind is Kind.NOTE else removal
            raise errors.QuaidError(f"{path} would be empty: nothing was changed. {step}", code="edit")
        merged = after if now == before else merge_lines(before, now, after)
        if merged is None:  # another program has changed the same lines
            raise errors.NoteChangedError(path)
        old, note = (notes.parse_note(path, data, place=self._layout) for data in (before, merged))
        text = note.title if note.problems or not note.text else note.text
        written = WriteResult(note.id, path, "edited", text, hint=describe_new_problems(old, note))
        if merged == now:
            return WritePlan(replace(written, outcome="unchanged"))
        return WritePlan(written, (Edit(path, now, merged),), Message(f"edit: {text}"))

    def _plan_mark(self, reference: str, mark: Mark, is_set: bool) -> WritePlan:
        index = self._vault.index()
        document, *_ = references.resolve_one(index, reference)
        if document.kind == Kind.NOTE:
            raise errors.NotOursError(document.path)
        if document.kind not in MARKABLE:
            raise errors.BadInputError(
                f"{document.path} is not a fact: only facts and core notes are pinned or verified."
            )
        data, edits = self._read(document.path), list[Edit]()
        with naming_broken_note(document.path):
            if getattr(notes.parse_note(document.path, data, place=self._layout), mark) != is_set:
                marked = frontmatter.set_fields(data.decode("utf-8"), {str(mark): True if is_set else None})
                edits = [Edit(document.path, data, marked.encode())]
        text = documents.text_of(index, document.doc_id) if document.kind == Kind.FACT else document.title
        written = WriteResult(document.id, document.path, "marked" if edits else "unchanged", text)
        verb = f"{'' if is_set else 'un'}{MARKS[mark]}"
        return WritePlan(written, tuple(edits), Message(f"{verb}: {text}", trailers=_trailers(document.id, None)))

    def _plan_setting(self, key: str, value: object) -> WritePlan:
        data = self._read(CONFIG_FILE)
        with naming_broken_note(CONFIG_FILE):
            edit = Edit(CONFIG_FILE, data, render_setting(data.decode(), key, value).encode())
        setting = f"{key} = {render_value(value)}"
        names_owner = key == owner_note.OWNER_NAME and value
        edits, created = self._plan_owner(str(value)) if names_owner else ((), ())
        changed = (edit, *edits) if edit.after != edit.before else edits
        if not changed:
            return WritePlan(WriteResult(key, CONFIG_FILE, "unchanged", setting))
        written = WriteResult(key, CONFIG_FILE, "set", setting, created=created)
        return WritePlan(written, changed, Message(f"config: {setting}", trailers=(("Quaid-Task", "config"),)))

    def _plan_owner(self, name: str) -> tuple[tuple[Edit, ...], tuple[str, ...]]:
        """Return the edits that give the owner `name` a note, and the names of new ones; none where a note has it."""
        index = self._vault.index()
        if self.finder.find_entity(index, name) or documents.find_by_name(index, name):
            return (), ()
        former_name = self._vault.settings.owner_name
        former = self.finder.find_entity(index, former_name) if former_name else None
        # Where Quaid did not write the former note, or cannot edit it, the new name gets a new note.
        with suppress(frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
            if former and not former.is_own:
                return (Edit(former.rel_path, former.data, add_aliases(former.data, [name])),), ()
        return (owner_note.plan_owner(name, (), self._now(), self._layout),), (name,)

    def _now(self) -> datetime:
        return local_now(self._vault.settings.timezone)

    def _read(self, path: str) -> bytes:
        data = files.read_note(self._root, path)
        if data is None:
            raise errors.NoteNotFoundError(path)
        return data

    def _split(self, path: str) -> tuple[str, str]:
        with naming_broken_note(path):
            return notes.split_body(self._read(path).decode("utf-8"))


def describe_new_problems(before: Note, after: Note) -> str | None:
    """Return a sentence about what cannot be read since the edit, None where all can."""
    rel_path = after.rel_path
    new = [problem for problem in after.problems if problem not in before.problems]
    if not new:
        return None
    return f"{rel_path} is kept as you wrote it, but {', and '.join(new)}. Repair it with: quaid edit {rel_path!r}"


@contextmanager
def naming_broken_note(path: str) -> Iterator[None]:
    """Raise a NoteBrokenError with `path` where a note's head or its encoding cannot be read."""
    try:
        yield
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError) as error:
        problem = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise errors.NoteBrokenError(path, problem) from error


def make_key(*parts: object) -> str:
    """Return the key of a call, for `Writer.write`."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _trailers(fact_id: str, session: str | None) -> tuple[tuple[str, str], ...]:
    return (("Quaid-Fact", fact_id), *((("Quaid-Session", session),) if session else ()))


def _turn_id(path: str, turn: int | None) -> str:
    return f"{Path(path).stem}#t{turn}"


def _is_replaced(data: bytes) -> bool:
    return "superseded_by" in frontmatter.parse(data.decode("utf-8", "replace")).fields
