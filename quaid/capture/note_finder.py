"""Look-ups in the index: duplicates of a fact, the note of a name or a session, known names in a text."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from quaid.capture.entities import EntityNames, has_no_capitals
from quaid.capture.episode_note import StoredEpisode
from quaid.capture.facts import Duplicate, NewFact
from quaid.capture.other_names import list_other_names
from quaid.capture.relations import is_known
from quaid.claims import claim_key, difference, is_same_claim
from quaid.config import person_of
from quaid.errors import EmbeddingError
from quaid.index import documents, fulltext, graph, references, vectors
from quaid.index.documents import Document
from quaid.index.port import EmbedderRow, IndexConnection
from quaid.model import Edge, Kind, name_key
from quaid.open_vault import OpenVault
from quaid.text.language import language
from quaid.vault import files, frontmatter, layout, notes
from quaid.vault.notes import StoredNote

SIMILAR_FACTS = 24
"""Nearest chunks, turns among them, that a new fact is compared with."""
MAX_RELATED = 8
"""Stored facts that a model is shown with a conversation."""
_MAX_COMPARED = 40
_COMPARED_CHARS = 400
_LEAST_SPREAD = 0.01
_BEST_BY_WORDS = 3.0
"""Standard deviations, for the fact without a vector that shares most words with a turn."""
_NAMED_BONUS = 0.1
_MAX_SHOWN_NAMES = 60
_MAX_TIES = 4
_MIN_NAME_CHARS = 2
_MAX_PROJECTS = 40
_MAX_RELATIONS = 20

_EXTRACTED = re.compile(rb"^extracted:", re.MULTILINE)
_HEAD_BYTES = 8192


class NoteFinder:
    """One vault's look-ups, in an index that is up to date."""

    def __init__(self, vault: OpenVault) -> None:
        self._root = vault.root
        self._matrix = vault.matrix
        self._settings = vault.settings
        self._layout = vault.layout
        self._embedding = vault.embedding

    def find_duplicates(self, index: IndexConnection, new: Sequence[NewFact]) -> list[Duplicate]:
        """Return for each fact the owner's living fact with the same claim, else an earlier one of `new` with it."""
        if not new:
            return []
        hashes = [notes.text_hash(fact.text) for fact in new]
        keys = [claim_key(fact.text) for fact in new]
        found: list[Duplicate] = [
            self._known(index, fact, documents.find_by_text(index, text_hash, fact.owner, fact.valid_until))
            for text_hash, fact in zip(hashes, new, strict=True)
        ]
        with index.snapshot():
            alike = self._find_alike(index, new, found)
        for place in range(len(new)):
            same = (
                earlier
                for earlier in range(place)
                if found[earlier] is None  # no duplicate itself
                and new[earlier].valid_until == new[place].valid_until
                and keys[earlier] == keys[place]
                and is_same_claim(new[place].text, new[earlier].text)
            )
            known = found[place] or alike.get(place)
            found[place] = next(same, None) if known is None else known
        return found

    def find_related(self, index: IndexConnection, turns: Sequence[str]) -> list[Document]:
        """Return the owner's living facts that `turns`, which have their context, may repeat or replace, the nearest to
        one of them first. A fact counts more if it is about a name in them.
        """
        import numpy as np

        facts = {each.chunk_id: each for each in documents.list_living(index) if each.owner == self._settings.owner}
        texts = [turn[:_COMPARED_CHARS] for turn in turns[-_MAX_COMPARED:]] if facts else []
        row, embedded = self._embed(index, texts)
        nearness: dict[int, float] = defaultdict(float)
        if row is not None and embedded:
            held, matrix = vectors.VectorMatrix().vectors(index, row, list(facts))
            cosines = np.stack([np.frombuffer(each, "<f4") for each in embedded]) @ matrix.T
            # Some turns are near to everything: what counts is to stand out among the facts.
            scores = (cosines - cosines.mean(1, keepdims=True)) / (cosines.std(1, keepdims=True) + _LEAST_SPREAD)
            nearness.update(zip(held, scores.max(0).tolist(), strict=True) if held else ())
        unread = facts.keys() - nearness.keys()
        for text in texts if unread else ():
            words = fulltext.terms(text, language(text))
            found = fulltext.search(index, fulltext.match_any(words), MAX_RELATED, unread)
            for chunk_id, score in found:
                nearness[chunk_id] = max(nearness[chunk_id], _BEST_BY_WORDS * score / (found[0][1] or 1.0))
        spoken = f" {name_key(' '.join(texts))} "
        names = {f" {key} " for name, _ in graph.entity_names(index) if (key := name_key(name)) and key in spoken}
        for chunk_id, fact in facts.items():
            said = f" {name_key(fact.text)} "
            nearness[chunk_id] += _NAMED_BONUS * any(name in spoken and name in said for name in names)
        nearest = sorted(facts, key=lambda each: (-nearness[each], -each))  # of what is as near, the newest
        return [facts[chunk_id] for chunk_id in nearest[: MAX_RELATED * bool(texts)]]

    def find_entity(self, index: IndexConnection, name: str) -> StoredNote | None:
        """Return the entity note of this name, else the owner's own note, else the file of this name, which `index` may
        not show.
        """
        for kind in (Kind.ENTITY, Kind.NOTE):
            found = documents.find_documents(
                index,
                "kind = ? AND doc_id IN (SELECT doc_id FROM names WHERE name_key = ? ORDER BY position)",
                (str(kind), name_key(name)),
            )
            for document in found:
                data = files.read_note(self._root, document.path)
                if data is not None:
                    return StoredNote(document.path, data, is_own=kind is Kind.NOTE)
        path = self._layout.place(layout.entity_path(name))
        data = files.read_note(self._root, path)
        if data is None:
            return None
        kind = self._layout.kind_of(path, frontmatter.parse(data.decode("utf-8", "replace")).fields)
        return StoredNote(path, data, is_own=kind is not Kind.ENTITY)

    def entity_names(
        self,
        index: IndexConnection,
        now: datetime,
        speakers: Iterable[str] = (),
        turns: Sequence[tuple[str, str]] = (),
    ) -> EntityNames:
        """Return the names of all entities that `index` shows, for a plan made at `now` on `turns` (speaker, text)."""
        owner = person_of(self._root, self._settings)
        return EntityNames(
            graph.entity_names(index),
            lambda name: self.find_entity(index, name),
            now,
            speakers=(*speakers, *(speaker for speaker, _ in turns)),
            owner=owner,
            other_names=list_other_names(turns, owner),
            layout=self._layout,
            find_edges=lambda name: [
                Edge(near.subject, near.relation, near.object) for near in graph.neighbours(index, {name_key(name)})
            ],
        )

    def find_episode(self, index: IndexConnection, session: str) -> StoredEpisode | None:
        """Return the episode note of a session."""
        return next(self._episodes(index, "session = ?", (session,)), None)

    def find_episodes(self, index: IndexConnection, started: datetime, but: str) -> list[StoredEpisode]:
        """Return the episodes that began at `started`, but for that of one session."""
        moment = f"{started.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        return list(self._episodes(index, "datetime(created) = ? AND session <> ?", (moment, but)))

    def _episodes(self, index: IndexConnection, where: str, values: Sequence[str]) -> Iterator[StoredEpisode]:
        for document in documents.find_documents(index, f"kind = 'episode' AND {where}", values):
            data = files.read_note(self._root, document.path)
            if data is not None:
                yield StoredEpisode(document.path, data)

    def _find_alike(
        self, index: IndexConnection, new: Sequence[NewFact], found: Sequence[Duplicate]
    ) -> dict[int, StoredNote]:
        """Return place of a fact without a duplicate so far -> the known fact with the same claim in other words."""
        import numpy as np

        nearest: dict[int, set[int]] = {}
        row, embedded = self._embed(index, [fact.text for fact in new])
        for place, fact in enumerate(new):
            if found[place] is None:
                phrase = fulltext.match_any([fulltext.as_phrase(fact.text)])
                near = fulltext.search(index, phrase, SIMILAR_FACTS)  # finds what has no vector, or not yet
                if row is not None and embedded is not None:
                    near += self._matrix.search(index, row, np.frombuffer(embedded[place], "<f4"), SIMILAR_FACTS)
                nearest[place] = {chunk_id for chunk_id, _ in near}
        chunks = {chunk_id for near in nearest.values() for chunk_id in near}
        owners = {new[place].owner for place in nearest}
        repeatable = (each for owner in owners for each in documents.list_repeatable(index, chunks, owner))
        known = {each.chunk_id: each for each in repeatable}
        alike: dict[int, StoredNote] = {}
        for place, chunk_ids in nearest.items():
            fact = new[place]
            for document in (known[chunk_id] for chunk_id in sorted(chunk_ids & known.keys())):
                is_same = document.owner == fact.owner and is_same_claim(fact.text, document.text)
                if is_same and (same := self._known(index, fact, document)):
                    alike[place] = same
                    break
        return alike

    def _embed(self, index: IndexConnection, texts: Sequence[str]) -> tuple[EmbedderRow | None, list[bytes] | None]:
        """Return the embedder of `index` and the vectors of `texts`, None for what is not there."""
        row, embedded = vectors.active_embedder(index), None
        embedder = self._embedding.embedder_of(row) if row is not None else None
        if embedder is not None:
            with suppress(EmbeddingError):  # then only words are compared
                embedded = self._embedding.vectors_of(embedder, texts)
        return row, embedded

    def _known(self, index: IndexConnection, fact: NewFact, document: Document | None) -> StoredNote | None:
        """Return the note of a duplicate, or of the fact that it was merged into unless that differs."""
        survivor = references.find_survivor(index, document) if document else None
        if survivor is None or (
            survivor != document and difference(fact.text, documents.text_of(index, survivor.doc_id))
        ):
            return None
        data = files.read_note(self._root, survivor.path)
        return StoredNote(survivor.path, data) if data is not None else None


def list_waiting(root: Path, connection: IndexConnection) -> tuple[str, ...]:
    """Return the paths of the episodes that are pending for a model, oldest first."""
    episodes = documents.find_documents(connection, "kind = ?", (str(Kind.EPISODE),))
    heads = ((document.path, files.read_note(root, document.path, _HEAD_BYTES) or b"") for document in episodes)
    return tuple(path for path, head in heads if not _EXTRACTED.search(head.partition(b"\n---")[0]))


def show_known_names(index: IndexConnection, text: str) -> str:
    """Return a line for each entity that `text` names, as `index` shows it, the relations of its own that are used
    most, and a last line with all projects.

    A person counts by the first name: `Anna Kowalski (person, also Ania): colleague_of Maya`.
    """
    words = f" {name_key(text)} "
    names: dict[str, list[str]] = defaultdict(list)
    begun: set[str] = set()
    for name, note in graph.entity_names(index):
        names[note].append(name)
        first = next(iter(name_key(name).split()), "")
        # A plain search first spares compiling a pattern for each of thousands of names.
        if note in begun or len(first) < _MIN_NAME_CHARS or first not in words:
            continue
        # Within a word in scripts without spaces.
        if has_no_capitals(name) or re.search(rf"(?<!\w){re.escape(first)}(?!\w)", words):
            begun.add(note)
    alike = {note: called for note, called in names.items() if note in begun}
    types = graph.entity_types(index, alike)
    used = [
        note
        for note, called in alike.items()
        if types.get(note) == "person" or any(name_key(name) in words for name in called)
    ]
    lines: list[str] = []
    for note in used[:_MAX_SHOWN_NAMES]:
        key = name_key(note)
        aliases = [f"also {name}" for name in alike[note] if name_key(name) != key]
        ties = [
            f"{one.relation} {one.object}" if name_key(one.subject) == key else f"{one.subject} {one.relation} {note}"
            for one in graph.neighbours(index, {key}, limit=_MAX_TIES)
        ]
        shown = f": {'; '.join(dict.fromkeys(ties))}" if ties else ""
        lines.append(f"{note} ({', '.join([types.get(note) or 'concept', *aliases])}){shown}")
    used = [name for name in graph.relations(index) if not is_known(name)][:_MAX_RELATIONS]
    lines += [f"relations: {', '.join(used)}"] if used else []
    projects = sorted(name for name in documents.count_by(index, "project") if name)[:_MAX_PROJECTS]
    return "\n".join([*lines, *([f"projects: {', '.join(projects)}"] if projects else [])])
