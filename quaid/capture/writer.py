"""Everything that writes: lock, finish what a crash left, be fresh, plan, write and commit. `Memory` passes it on.

Plans are made by the capture room and are pure; here is what they need looked up, and the order of things.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from quaid.capture import facts, linking
from quaid.capture.facts import FactDetails
from quaid.capture.lookups import Lookups
from quaid.capture.storing import KnownFact, NewFact
from quaid.config import is_users_own, render_setting, render_value, set_users_own
from quaid.errors import (
    BadInputError,
    NoteBrokenError,
    NoteChangedError,
    NoteNotFoundError,
    NotOursError,
    UncommittedError,
    VaultNotFoundError,
)
from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.model import Edge, Edit, Kind, Message
from quaid.place import CONFIG_FILE, INDEX_FILE, state_folder
from quaid.recall.visibility import may_see
from quaid.settings import Settings
from quaid.sqlite import heal
from quaid.sync.embedding import Embedding
from quaid.vault import episodes, files, frontmatter, notes, transaction
from quaid.vault.transaction import VaultChange

if TYPE_CHECKING:
    import apsw

    from quaid.history.vault_history import History

PLAN_ATTEMPTS = 5
FORGETTABLE = (Kind.FACT, Kind.ENTITY, Kind.EPISODE)


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did.

    `outcome` is created, confirmed, linked, known, forgotten, restored, kept, set or unchanged; `left` are paths whose
    change is on disk but not committed, because the owner's own uncommitted work is in them; `hint` names a next
    step worth knowing; `redacted` are the kinds of the secrets that were replaced.
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


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan that may come to nothing: without edits there is no commit.

    `told` is what its caller is told besides, as plain JSON.
    """

    written: Written
    edits: tuple[Edit, ...] = ()
    message: Message = field(default_factory=lambda: Message(""))
    told: Mapping[str, Any] = field(default_factory=dict)

    def answer(self) -> str:
        """What the same call is told again when a crash kept it from hearing."""
        return json.dumps([asdict(self.written), dict(self.told)])

    @classmethod
    def answered(cls, answer: str) -> Plan:
        written, told = json.loads(answer)
        lists: dict[str, Any] = {key: tuple(value) for key, value in written.items() if isinstance(value, list)}
        return cls(Written(**{**written, **lists}), told=told)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What a writer works with: the vault, the git history, and the index: all of it, brought up to date, where a plan
    must not repeat what is there; and then as its owner may see it, where a reference or a name is looked up.
    """

    root: Path
    settings: Settings
    embedding: Embedding
    history: Callable[[], History]
    fresh_index: Callable[[], apsw.Connection]
    seen_index: Callable[[], apsw.Connection]
    visible_index: Callable[[], apsw.Connection]
    owners: Callable[[], frozenset[str]]
    say: Callable[[str], None]


class Writer:
    """One vault's writing side."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._root = dependencies.root
        self.lookups = Lookups(dependencies.root, dependencies.settings, dependencies.embedding)

    def remember(self, text: str, details: FactDetails) -> Written:
        """Store a fact, or confirm the one that says it already. What was secret in it is replaced by its name."""
        from quaid.redaction import admit, admit_all

        said = admit(text)
        statement = facts.clean_statement(said.text)
        named = [details.speaker, details.project, details.session, list(details.keywords)]
        (speaker, project, session, keywords), more = admit_all(named)
        safe = replace(details, speaker=speaker, project=project, session=session, keywords=tuple(keywords))
        done = self.write(_key("remember", statement, safe), lambda: self._plan_fact(statement, safe)).written
        return replace(done, redacted=(*said.redacted, *more))

    def link(self, edge: Edge) -> Written:
        """Put an edge into the graph, normalised, with entity notes made on the way."""
        from quaid.redaction import admit

        edge = Edge(*(admit(name).text for name in (edge.subject, edge.relation, edge.object)))
        return self.write(_key("link", edge), lambda: self._plan_link(edge)).written

    def forget(self, reference: str) -> Written:
        """Take a fact, an entity, an episode or one turn out of the vault; git keeps it."""
        return self.write(_key("forget", reference), lambda: self._plan_forget(reference)).written

    def restore(self, reference: str) -> Written:
        """Bring back what was forgotten, as it was."""
        return self.write(_key("restore", reference), lambda: self._plan_restore(reference)).written

    def configure(self, key: str, value: object) -> Written:
        """Set one key of quaid.toml, or of the user's own config; its comments and order stay.

        Raises:
            BadInputError: the value is a secret, and would be kept in clear.
        """
        from quaid.redaction import admit

        said = f"{key} = {render_value(value)}"
        if admit(said).redacted:
            raise BadInputError(
                f"The value of {key} looks like a secret, and a file would keep it in clear. "
                f"Set it in the environment: QUAID_{key.replace('.', '_').upper()}"
            )
        if is_users_own(key):
            return Written(key, str(set_users_own(key, value)), "set", said)
        return self.write(_key("config", key, value), lambda: self._plan_setting(key, value)).written

    # -- the order of things -------------------------------------------------------------------------------------

    def write(self, key: str, plan: Callable[[], Plan]) -> Plan:
        """Carry out what `plan` plans, as one commit; it is asked again when a file changed under it.

        `key` names the call: one that a crash cut off is told what it did, and nothing is done twice.
        """
        dependencies = self._dependencies
        if not (self._root / CONFIG_FILE).exists():
            raise VaultNotFoundError(self._root)
        history = dependencies.history()
        with transaction.begin(self._root, history, dependencies.settings.git.wait_s, dependencies.say) as finished:
            if finished is not None and finished.key == key:
                return Plan.answered(finished.answer)
            for attempt in range(1, PLAN_ATTEMPTS + 1):
                planned = self._plan(plan)
                if not planned.edits:
                    return planned
                change = VaultChange(key, planned.edits, planned.message, answer=planned.answer())
                try:
                    committed = transaction.apply(self._root, change, history)
                except NoteChangedError:  # an editor saved between plan and write: look again
                    if attempt == PLAN_ATTEMPTS:
                        raise
                    continue
                return replace(planned, written=replace(planned.written, commit=committed.id, left=committed.left))
        raise AssertionError("unreachable")

    def _plan(self, plan: Callable[[], Plan]) -> Plan:
        return heal(state_folder(self._root) / INDEX_FILE, lambda _again: plan())

    def _look_up(self) -> apsw.Connection:
        self._dependencies.fresh_index()
        return self._dependencies.visible_index()

    # -- plans ---------------------------------------------------------------------------------------------------

    def _plan_fact(self, statement: str, details: FactDetails) -> Plan:
        index = self._dependencies.fresh_index()
        (same,) = self.lookups.find_same(index, [NewFact(statement, details)])
        if isinstance(same, KnownFact):
            edit = self._edit(same.rel_path, lambda data: facts.plan_confirmation(same.rel_path, data))
            message = Message(f"confirm: {statement}", trailers=_trailers(same.id, details.session))
            return Plan(Written(same.id, same.rel_path, "confirmed", statement), (edit,), message)
        visible = self._dependencies.visible_index()
        visible = self._dependencies.visible_index()
        note_id, edit = facts.plan_fact(statement, details, _now(), graph.entity_names(visible))
        message = Message(f"remember: {statement}", trailers=_trailers(note_id, details.session))
        return Plan(Written(note_id, edit.rel_path, "created", statement), (edit,), message)

    def _plan_link(self, edge: Edge) -> Plan:
        index = self._look_up()
        planned = linking.plan_link(edge, lambda name: self.lookups.find_entity(index, name), _now())
        said = f"{planned.edge.subject} {planned.edge.relation} {planned.edge.object}"
        subject = self.lookups.find_entity(index, planned.edge.subject)
        if subject is not None:
            self._refuse_private(planned.edge.subject, subject)
        path = subject.rel_path if subject else planned.edits[0].rel_path
        written = Written(path, path, "linked" if planned.edits else "known", said, created=planned.created)
        return Plan(written, planned.edits, Message(f"link: {said}"))

    def _refuse_private(self, name: str, subject: linking.EntityNote) -> None:
        if not may_see(subject.rel_path, subject.data, {*self._dependencies.owners(), "default"}):
            raise BadInputError(f"The name {name!r} is taken. Give the subject of the link another name.")

    def _plan_forget(self, reference: str) -> Plan:
        index = self._look_up()
        note, _, turn = reference.partition("#t")
        document = documents.resolve_one(index, note)
        if document.kind not in FORGETTABLE:
            raise NotOursError(document.path)
        if turn:
            return self._plan_forget_turn(document, reference, turn)
        data = self._read(document.path)
        if self._dependencies.history().read_at("HEAD", document.path) != data:
            raise UncommittedError(document.path)
        text = documents.text_of(index, document.doc_id)
        message = Message(f"forget: {text or document.title}", trailers=_trailers(document.id, None))
        cited = graph.cited_turns(index, [document.doc_id])
        written = Written(
            document.id, document.path, "forgotten", text or document.title, hint=_turn_hint(index, cited)
        )
        return Plan(written, (Edit(document.path, data, None),), message)

    def _plan_forget_turn(self, document: Document, reference: str, turn: str) -> Plan:
        if document.kind != Kind.EPISODE or not turn.isdigit():
            raise NoteNotFoundError(reference)
        turn_id = f"{Path(document.path).stem}#t{turn}"
        edit = self._edit_body(document.path, lambda body: episodes.forget_turn(body, int(turn)))
        written = Written(turn_id, document.path, "forgotten", f"turn {turn} of {document.title}")
        if edit.after == edit.before:
            return Plan(replace(written, outcome="unchanged"))
        message = Message(
            f"forget: turn {turn} of session {document.session}", trailers=_trailers(turn_id, document.session)
        )
        return Plan(written, (edit,), message)

    def _plan_restore(self, reference: str) -> Plan:
        note, _, turn = reference.partition("#t")
        index = self._look_up()
        living = documents.resolve(index, note)
        if turn and living:
            return self._plan_restore_turn(living[0], turn)
        if living:
            return Plan(Written(living[0].id, living[0].path, "unchanged", living[0].title))
        found = self._dependencies.history().find_removed(note)
        if found is None:
            raise NoteNotFoundError(reference)
        _, path, data = found
        if not may_see(path, data, self._dependencies.owners()):
            raise NoteNotFoundError(reference)
        restored = notes.parse_note(path, data)
        message = Message(f"restore: {restored.text or path}", trailers=_trailers(restored.id, None))
        return Plan(Written(restored.id, path, "restored", restored.text or path), (Edit(path, None, data),), message)

    def _plan_restore_turn(self, document: Document, turn: str) -> Plan:
        turn_id = f"{Path(document.path).stem}#t{turn}"
        old = self._find_said(document, turn_id, turn)
        edit = self._edit_body(document.path, lambda body: _restore_turn(body, old, int(turn)))
        written = Written(turn_id, document.path, "restored", f"turn {turn} of {document.title}")
        if edit.after == edit.before:
            return Plan(replace(written, outcome="unchanged"))
        return Plan(written, (edit,), Message(f"restore: turn {turn}", trailers=_trailers(turn_id, document.session)))

    def _find_said(self, document: Document, turn_id: str, turn: str) -> str:
        """The body of an episode as it was when it last said this turn."""
        history = self._dependencies.history()
        for commit in history.log(grep_trailer=("Quaid-Fact", turn_id)) if turn.isdigit() else ():
            before = history.read_at(f"{commit.id}^", document.path)
            body = notes.split_body(before.decode("utf-8", "replace"))[1] if before else ""
            if _says_turn(body, int(turn)):
                return body
        raise NoteNotFoundError(f"{document.path}#t{turn}")

    def _plan_setting(self, key: str, value: object) -> Plan:
        edit = self._edit(
            CONFIG_FILE, lambda data: Edit(CONFIG_FILE, data, render_setting(data.decode(), key, value).encode())
        )
        said = f"{key} = {render_value(value)}"
        if edit.after == edit.before:
            return Plan(Written(key, CONFIG_FILE, "unchanged", said))
        return Plan(Written(key, CONFIG_FILE, "set", said), (edit,), Message(f"config: {said}"))

    # -- editing notes -------------------------------------------------------------------------------------------

    def _read(self, path: str) -> bytes:
        data = files.read_note(self._root, path)
        if data is None:
            raise NoteNotFoundError(path)
        return data

    def _edit(self, path: str, change: Callable[[bytes], Edit]) -> Edit:
        try:
            return change(self._read(path))
        except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError) as error:
            _raise_broken(path, error)

    def _edit_body(self, path: str, change: Callable[[str], str]) -> Edit:
        def edit(data: bytes) -> Edit:
            head, body = notes.split_body(data.decode("utf-8"))
            return Edit(path, data, (head + change(body)).encode())

        return self._edit(path, edit)


def _says_turn(body: str, number: int) -> bool:
    return any(turn.number == number and turn.text for turn in episodes.parse_turns(body))


def _restore_turn(body: str, old: str, number: int) -> str:
    return body if _says_turn(body, number) else episodes.restore_turn(body, old, number)


def _raise_broken(path: str, error: Exception) -> NoReturn:
    problem = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    raise NoteBrokenError(path, problem) from error


def _turn_hint(index: apsw.Connection, cited: Sequence[tuple[int, int]]) -> str | None:
    """A forgotten fact is still in the conversation it was drawn from: say so, and how to forget that too."""
    turns = documents.fetch_candidates(index, [chunk_id for _, chunk_id in cited]).values()
    if not turns:
        return None
    ids = sorted({f"{Path(turn.path).stem}#t{turn.turn}" for turn in turns})
    return f"The conversation still says it; forget that too with: quaid forget {ids[0]}"


def _trailers(fact_id: str, session: str | None) -> tuple[tuple[str, str], ...]:
    return (("Quaid-Fact", fact_id), *((("Quaid-Session", session),) if session else ()))


def _key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _now() -> datetime:
    return datetime.now(UTC)
