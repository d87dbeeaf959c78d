"""Import: read the memories of another program, look up what the vault has, plan, and write once.

A source has the same result each time: the id of an imported fact is a hash of its place in the source and its text, so
a second import finds the facts of the first, even if their owner has rewritten them since.
"""

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple

from quaid import redaction
from quaid.capture import facts, relations
from quaid.capture.entities import plan_entity
from quaid.capture.facts import NewFact, StoredFact
from quaid.capture.importers import import_content
from quaid.capture.importers.agent_memories import read_export
from quaid.capture.importers.formats import NoteFolder, select_format
from quaid.capture.importers.programs import Program
from quaid.capture.replacements import may_replace
from quaid.capture.stated_relations import add_stated
from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.claims import claim_key, is_same_claim
from quaid.config import own_names, person_of
from quaid.errors import BadInputError, FactTooShortError
from quaid.index import documents, graph
from quaid.index.documents import Document
from quaid.model import CORE_FILES, Edge, Edit, Message, name_key, note_name
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE, data_folder
from quaid.recall.contradictions import SINGLE_VALUED, find_pairs
from quaid.vault import files, frontmatter, layout, notes
from quaid.vault.notes import StoredNote

EXAMPLES = 5
MAX_REDACTED = 10
"""Places with redactions that a commit names."""
MIN_SIMILARITY = 0.6
"""Share of the words of a line that an edited one has as well."""
UNDATED = "9"
"""It sorts behind all days."""
KINDS = {"facts": "fact", "entities": "entity", "edges": "edge", "notes": "note"}
_MAX_NAME_CHARS = 150


class ImportOptions(NamedTuple):
    """Options of an import. `into` is the folder of the vault for notes that are copied as they are."""

    format: str | None = None
    owner: str = "default"
    project: str | None = None
    keep_owners: bool = False
    into: str | None = None
    dry_run: bool = False


@dataclass(slots=True)
class ImportResult:
    """The result of an import, on a dry run what it would write.

    `counts` are of facts, entities, edges and notes; `known` were in the vault already; `left_out` counts by reason;
    `redacted` names for each place the removed secrets; `clashes` are paths with other contents, which stay as they
    are; `namesakes` are (new note, other note) of one name; `left` is on disk but not committed. `texts` are some of
    the `new` facts; those that are `newer` than one in the vault, or were edited in the source, with that one; those
    that are `missing` from the source now; and what was `refused`, with the reason.
    """

    source: str
    format: str
    dry_run: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    known: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    redacted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    clashes: list[str] = field(default_factory=list)
    namesakes: Sequence[Sequence[str]] = ()
    texts: dict[str, list[str]] = field(default_factory=dict)
    commit: str | None = None
    left: Sequence[str] = ()


Reading = tuple[import_content.ImportSource, str, import_content.ImportContent, list[NewFact]]
"""A source, the name of its program or format, what it holds, and the facts to store."""
Source = Path | IO[bytes] | Program


def import_from(
    vault: OpenVault, source: Source, options: ImportOptions, *, redact: import_content.Redact | None = None
) -> ImportResult:
    """Import the memories of a source as one commit. A second import of the same source changes nothing."""
    writer = Writer(vault)
    planning = (vault, writer, read_memories(vault, source, options, redact), options)
    if options.dry_run:
        plan = plan_import(*planning)
    else:
        read = planning[2][0]
        digest = hashlib.sha256(repr(("import", read.name, options)).encode())
        for path, data in read.files.items():
            digest.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
        plan = writer.write(digest.hexdigest(), plan_import, *planning)
    return ImportResult(**{**plan.details, "commit": plan.written.commit, "left": plan.written.left})


def read_memories(
    vault: OpenVault, source: Source, options: ImportOptions, redact: import_content.Redact | None = None
) -> Reading:
    """Read a source. Secrets are removed from all that is found in it."""
    read = read_source(source, vault.root) if isinstance(source, (Path, Program)) else read_stream(source)
    form = select_format(read, options.format or (NoteFolder.name if options.into and read.notes else None))
    if options.into and form is not NoteFolder:
        raise BadInputError(
            f"--into is for notes that are kept as they are, and {read.name} is read as {form.name}. Leave --into out."
        )
    into = (options.into or f"notes/{read.name}").strip("/") if form is NoteFolder else ""
    is_plain = layout.is_note_path(f"{into}/note.md") and not {"", ".", ".."}.intersection(into.split("/"))
    if form is NoteFolder and not is_plain:
        raise BadInputError(f"Notes cannot be kept in {into!r}. Give a folder within the vault with --into.")
    if into and vault.layout.folder_kind(f"{into}/note.md") is not None:
        raise BadInputError(f"{into} is a folder of Quaid's. Give another one for your notes with --into.")
    done, total = 0, sum(map(len, read.files.values()))

    def redact_counted(text: str) -> tuple[str, tuple[str, ...]]:
        nonlocal done
        done = min(done + len(text), total)
        vault.show_progress("Reading", done, total)
        if redact is not None:
            return redact(text)
        admitted = redaction.admit(text)
        return admitted.text, admitted.redacted

    found = import_content.ImportContent(redact_counted, into=into, keeps_owners=options.keep_owners)
    found.left_out.update(read.passed_over)
    form.read(read, found)
    name = read.program or form.name
    return read, name, found, list_facts(found, name, options.owner, options.project)


def plan_import(vault: OpenVault, writer: Writer, reading: Reading, options: ImportOptions, *without: str) -> WritePlan:
    """Plan an import `without` the facts with these ids. The details of the plan are fields of an `ImportResult`."""
    source, format_name, found, new = reading
    plan = _Planner(vault, writer, found, ImportResult(source.name, format_name, options.dry_run))
    names = plan.plan_entities(NewFact("", source="import", project=options.project, imported_from=format_name))
    plan.plan_facts(new, names, source, *without)
    plan.plan_files()
    plan.find_namesakes()
    redacted = {place: tuple(dict.fromkeys(secrets)) for place, secrets in found.redacted.items()}
    done = replace(plan.result, counts=dict(+plan.counts), left_out=dict(+plan.left_out), redacted=redacted)
    vault.show_progress("Writing", 0, len(plan.edits))
    lines = [f"Read from {' '.join(source.name.split())}: {phrase_counts(done.counts)}."]
    if done.known:
        lines.append(f"Known already: {done.known:,}.")
    if done.left_out:
        reasons = ", ".join(f"{reason} ({number:,})" for reason, number in done.left_out.items())
        lines.append(f"Left out: {reasons}.")
    lines += [f"Newer: {text}." for text in done.texts["newer"]]
    for place, secrets in list(done.redacted.items())[:MAX_REDACTED]:
        lines.append(f"Redacted in {place}: {', '.join(secrets)}.")
    subject = f"import: {phrase_counts(done.counts)} from {format_name}"
    message = Message(subject, "\n".join(lines), (("Quaid-Task", "import"),))
    return WritePlan(WriteResult(source.name, "", "imported"), tuple(plan.edits), message, details=asdict(done))


# -- the source ------------------------------------------------------------------------------------------------------


def read_source(source: Path | Program, root: Path) -> import_content.ImportSource:
    """Read a file, a folder without hidden files, links and vaults in it, or what a program stores."""
    program = source if isinstance(source, Program) else None
    path = source.folder if isinstance(source, Program) else source
    if not path.exists():
        raise BadInputError(f"{path} does not exist. Give the file or folder that holds the memories.")
    place = path if program else path.resolve()
    if place.is_relative_to(root.resolve()) and (path.is_dir() or layout.is_note_name(path.name)):
        raise BadInputError(f"{path} is in the vault already: its notes are recalled as they are. Give another source.")
    if not path.is_file() and not path.is_dir():
        raise BadInputError(f"{path} is neither a file nor a folder. Give one of these.")
    places = program.places if program else (place,)
    passed_over: Counter[str] = Counter()
    data: dict[str, bytes] = {}
    modified: dict[str, datetime] = {}
    exporter = ""
    for file in (file for top in places for file in sorted(_list_files(top, passed_over))):
        name = redaction.admit_name(file.name if file == place else file.relative_to(place).as_posix())
        try:
            changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
            exporter, contents = read_export(file) if file.suffix.lower() in {".zip", ".json"} else ("", {})
            contents = contents or {name: file.read_bytes()}
        except (BadInputError, OSError) as error:
            if file == place and isinstance(error, OSError):
                raise BadInputError.unreadable(path, error) from error
            if file == place:
                raise
            passed_over["files that cannot be read"] += 1
            continue
        data |= contents
        modified |= dict.fromkeys(contents, changed)
    if not data:
        raise BadInputError(f"{path} holds no files that can be read. Give the folder that holds the memories.")
    return import_content.ImportSource(
        program.title if program else redaction.admit_name(place.name),
        data,
        is_folder=place.is_dir() or place.name not in data,
        has_obsidian=(place / ".obsidian").is_dir(),
        passed_over=passed_over,
        program=program.name if program else exporter * (place.name not in data),
        modified=modified,
        places=places,
    )


def read_stream(stream: IO[bytes]) -> import_content.ImportSource:
    """Read stdin: JSON or markdown, as its first character says."""
    data = stream.read()
    if not data.strip():
        raise BadInputError("Nothing came on stdin. Pipe an export or a markdown file into it.")
    name = "stdin.json" if data.lstrip()[:1] in {b"{", b"["} else "stdin.md"
    return import_content.ImportSource(name, {name: data}, is_folder=False)


def _list_files(top: Path, passed_over: Counter[str]) -> Iterator[Path]:
    """Yield the files in `top`, or that file. Those in folders that are not markdown are only counted: attachments may
    be large.
    """
    if top.is_file():
        yield top
        return
    for folder, folders, names in os.walk(top):
        here = Path(folder)
        if here != top and CONFIG_FILE in names:
            passed_over["vaults of their own"] += 1
            folders.clear()
            continue
        folders[:] = sorted(
            name for name in folders if not layout.skips_folder(name) and not (here / name).is_symlink()
        )
        for path in (here / name for name in names if not name.startswith(".")):
            if path.is_symlink() or not path.is_file():
                passed_over["links and other things that are not files"] += 1
            elif any("\udc80" <= char <= "\udcff" for char in path.name):
                passed_over["files whose name is not UTF-8"] += 1
            elif path.suffix.lower() not in import_content.MARKDOWN:
                passed_over[import_content.NOT_MARKDOWN] += 1
            else:
                yield path


def list_facts(
    found: import_content.ImportContent, format_name: str, owner: str, project: str | None = None
) -> list[NewFact]:
    """Return the facts to store, each statement of an owner once; others are counted as left out."""
    new: dict[tuple[str, str], NewFact] = {}
    for fact in found.facts:
        try:
            text = facts.clean_statement(fact.text)
        except FactTooShortError:
            found.left_out.add("statements of fewer than three words", fact.text)
            continue
        fact_owner = owner if fact.owner == "default" else fact.owner
        text_hash, claim = notes.text_hash(text), (fact_owner, claim_key(text))
        if claim in new and not is_same_claim(new[claim].text, text):
            claim = fact_owner, text  # `Polish` and `polish`
        if earlier := new.get(claim):
            found.left_out.add("statements made twice", text)
            if earlier.created and fact.created and fact.created < earlier.created:
                new[claim] = replace(earlier, created=fact.created)
            continue
        place = fact.imported_from or ""
        new[claim] = replace(
            fact,
            text=text,
            id=derive_id("fact", format_name, place, fact_owner, text_hash),
            owner=fact_owner,
            source="import",
            project=project,
            imported_from=f"{format_name} {place}".strip(),
        )
    return list(new.values())


def derive_id(*parts: str) -> str:
    """Return an id that the same parts always have: 128 bits, written as ids are."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return layout.encode_id(int.from_bytes(digest[:16]))


# -- the plan --------------------------------------------------------------------------------------------------------


class _Planner:
    """Plans the edits of an import, and counts what it brings."""

    def __init__(
        self, vault: OpenVault, writer: Writer, found: import_content.ImportContent, result: ImportResult
    ) -> None:
        self._vault = vault
        self._root = vault.root
        self._index = vault.whole_index()
        self._visible = vault.visible_index()
        self._finder = writer.finder
        self._found = found
        self._now = datetime.now(UTC)
        self._names: dict[str, str] = {}
        """Key of a name or alias -> the name that links use."""
        self._entities: dict[str, tuple[import_content.ImportedEntity, StoredNote | None]] = {}
        """Name that links use -> the entity, and its note."""
        self.edits: list[Edit] = []
        self.counts: Counter[str] = Counter()
        self.left_out = Counter(found.left_out)
        self.result = result
        self.texts = result.texts
        refused = [f"{text} ({reason})" for reason, text in found.left_out.lines]
        self.texts |= {"new": [], "newer": [], "missing": [], "refused": refused}

    @cached_property
    def _living(self) -> dict[int, Document]:
        return {each.doc_id: each for each in documents.list_living(self._index)}

    def plan_entities(self, edge_fact: NewFact) -> list[tuple[str, str]]:
        """Plan notes for the entities and the ends of edges; return the new names with the names of their notes.

        An edge of an entity with a note of the owner's own becomes a fact like `edge_fact`.
        """
        named = [entity for entity in self._found.entities.values() if _is_name(entity.name)]
        for entity in named:
            self._add_entity(entity)
        for alias, name in ((alias, entity.name) for entity in named for alias in entity.aliases):
            self._names.setdefault(name_key(alias), self._names[name_key(name)])
        edges: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in dict.fromkeys(self._found.edges):
            normal = self._place(edge)
            if normal is None:
                self.left_out["relations without two names"] += 1
            elif normal not in edges[normal.subject]:
                edges[normal.subject].append(normal)
        known: list[tuple[str, str]] = []
        taken: set[str] = set()
        for name, (entity, note) in self._entities.items():
            if note is not None:
                self._plan_known_entity(note, entity, edges[name], edge_fact)
                continue
            edit = self._plan_new_entity(entity, edges[name], edge_fact.imported_from or "")
            is_free = edit.rel_path not in taken and files.can_hold(self._root, edit.rel_path)
            if not is_free or files.read_note(self._root, edit.rel_path) is not None:
                self.result.clashes.append(edit.rel_path)
                continue
            taken.add(edit.rel_path)
            self.edits.append(edit)
            self.counts["entities"] += 1
            self.counts["edges"] += len(edges[name])
            known += [(alias, note_name(edit.rel_path)) for alias in (entity.name, *entity.aliases)]
        return known

    def _add_entity(self, entity: import_content.ImportedEntity) -> str:
        note = self._finder.find_entity(self._visible, entity.name)
        name = note.name if note else entity.name
        self._names.setdefault(name_key(entity.name), name)
        self._entities.setdefault(name, (entity, note))
        return name

    def _place(self, edge: Edge) -> Edge | None:
        """Return the edge in normal form between entities, new ones added; None without two names."""
        try:
            normal = relations.normalise_edge(edge)
            if not (_is_name(normal.subject) and _is_name(normal.object)):
                return None
            kinds = relations.entity_types(normal.relation)
            subject, target = (
                self._names.get(name_key(name)) or self._add_entity(import_content.ImportedEntity(name, kind))
                for name, kind in zip((normal.subject, normal.object), kinds, strict=True)
            )
            return relations.normalise_edge(Edge(subject, normal.relation, target))
        except BadInputError:
            return None

    def _plan_new_entity(self, entity: import_content.ImportedEntity, edges: Sequence[Edge], format_name: str) -> Edit:
        edit = plan_entity(entity.name, entity.type, entity.created or self._now, tuple(edges), self._vault.layout)
        file_name = note_name(edit.rel_path)
        aliases = [name for name in dict.fromkeys((entity.name, *entity.aliases)) if name != file_name]
        text = frontmatter.set_fields(
            (edit.after or b"").decode(),
            {
                "id": derive_id("entity", edit.rel_path),
                "aliases": aliases or None,
                "imported_from": f"{format_name} {entity.place or ''}".strip(),
            },
        )
        head, listed = notes.split_body(text)
        body = "\n\n".join(filter(None, (entity.prose, listed.strip("\n"))))
        return replace(edit, after=f"{head}{body}\n".encode() if body else head.encode())

    def _plan_known_entity(
        self, note: StoredNote, entity: import_content.ImportedEntity, edges: Sequence[Edge], edge_fact: NewFact
    ) -> None:
        """Add the edges that its note does not have. Its text is its owner's."""
        if note.is_own:
            for edge in edges:
                fact = replace(edge_fact, id=derive_id("edge", edge.subject, edge.relation, edge.object))
                edit = facts.plan_edge_fact(edge, fact, self._now, self._vault.layout)
                if files.read_note(self._root, edit.rel_path) is None:
                    self.edits.append(edit)
                    self.counts["edges"] += 1
            return
        data = note.data
        try:
            for edge in edges:
                if not facts.has_edge(data, note.name, edge):
                    data = notes.append_edge(data.decode("utf-8"), edge, own=True).encode()
                    self.counts["edges"] += 1
        except UnicodeDecodeError:
            self.left_out["relations of a note that is not UTF-8"] += len(edges)
            return
        if data != note.data:
            self.edits.append(Edit(note.rel_path, note.data, data))
        if entity.prose and entity.prose.encode() not in data:
            self.left_out["texts on what has a note in the vault already"] += 1

    def plan_facts(
        self, new: Sequence[NewFact], names: Sequence[tuple[str, str]], source: import_content.ImportSource, *but: str
    ) -> None:
        """Plan the facts that the vault does not have; names in them become links. What they replace is ended."""
        names = [*graph.entity_names(self._visible), *names]
        notes_by_name = {name_key(name): note for name, note in reversed(names)}
        # By first words: searching each text for each name takes too long.
        by_word: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, note in dict.fromkeys(names):
            if words := _words(name):
                by_word[words[0]].append((name, note))
        owner = person_of(self._root, self._vault.settings)
        unknown: list[NewFact] = []
        for fact in (each for each in self._list_unknown(new) if each.id not in but):
            stated = add_stated(fact, fact.created or self._now, owner)
            ends = [(notes_by_name.get(name_key(e.subject), e.subject), e) for e in stated.edges]
            edges = tuple(Edge(one, e.relation, notes_by_name.get(name_key(e.object), e.object)) for one, e in ends)
            # `last month` in a source without dates is any month.
            since = stated.valid_from if fact.created else fact.valid_from
            unknown.append(replace(stated, edges=edges, valid_from=since))
        replaced = [*self._find_edited(new, unknown, source.program), *self._find_older(unknown)]
        drafts: dict[str, Edit] = {}
        stored: list[StoredFact] = []
        replacing = {place for _, place in replaced}
        for place, stated in enumerate(unknown):
            dated = replace(stated, created=stated.created or source.find_modified(stated.imported_from or ""))
            fact = facts.begin_when_stated(dated, self._now) if place in replacing else dated
            linked = [pair for word in dict.fromkeys(_words(fact.text)) for pair in by_word.get(word, ())]
            note_id, edit = facts.plan_fact(fact, self._now, linked, self._vault.layout)
            path = edit.rel_path
            # Of ten thousand facts whose words make no slug, two may share a file name: one gets a longer tail.
            for length in (8, 12, 26):
                if path not in drafts and files.read_note(self._root, path) is None:
                    break
                path = f"{edit.rel_path.removesuffix(f'{note_id[-5:]}.md')}{note_id[-length:]}.md"
            drafts[path] = replace(edit, rel_path=path)
            stored.append(StoredFact(note_id, path, fact.text, "created"))
        self.counts["facts"] += len(unknown)
        self.counts["edges"] += sum(len(fact.edges) for fact in unknown)
        self.texts["new"] += [fact.text for fact in unknown[:EXAMPLES]]
        list(facts.end_replaced(unknown, replaced, stored, drafts, self._now))  # it changes the drafts
        self.edits += drafts.values()

    def _list_unknown(self, new: Sequence[NewFact]) -> Iterator[NewFact]:
        """Yield those of `new` that the vault does not have: with this id, in these or other words, or as what was true
        then and is no more.
        """
        wanted = json.dumps([fact.id for fact in new]), json.dumps([notes.text_hash(fact.text) for fact in new])
        found = documents.find_documents(
            self._index,
            "id IN (SELECT value FROM json_each(?)) "
            "OR superseded_by IS NOT NULL AND text_hash IN (SELECT value FROM json_each(?))",
            wanted,
        )
        ids = {each.id for each in found}
        ended = {(each.owner, each.text_hash): (each.valid_until or "9")[:10] for each in found if each.superseded_by}
        living = {(each.owner, claim_key(each.text)): each for each in self._living.values()}
        for fact in new:
            text_hash, same = notes.text_hash(fact.text), living.get((fact.owner, claim_key(fact.text)))
            end = ended.get((fact.owner, text_hash), "")
            if (
                fact.id in ids
                or documents.find_by_text(self._index, text_hash, fact.owner, fact.valid_until)
                or (same and same.valid_until == fact.valid_until and is_same_claim(fact.text, same.text))
                or (end and (fact.valid_from or "")[:10] <= end)
            ):
                self.result.known += 1
            else:
                yield fact

    def _find_edited(
        self, new: Sequence[NewFact], unknown: Sequence[NewFact], program: str
    ) -> Iterator[tuple[StoredNote | int, int]]:
        """Yield (fact of an earlier import, place of the one of `unknown` that its line has become). A line that is not
        in the source any more is named; the fact stays.
        """
        claims, here = {claim_key(fact.text) for fact in new}, {fact.imported_from for fact in new}
        places: defaultdict[str | None, list[int]] = defaultdict(list)
        for at, fact in enumerate(unknown):
            places[fact.imported_from].append(at)
        earlier: defaultdict[str, list[tuple[Document, StoredNote]]] = defaultdict(list)
        for old in (each for each in self._living.values() if each.source == "import"):
            note = StoredNote(old.path, files.read_note(self._root, old.path) or b"")
            origin = str(note.head.fields.get("imported_from") or "")
            name, _, place = origin.partition(" ")
            is_as_imported = derive_id("fact", name, place, old.owner, old.text_hash or "") == old.id
            if is_as_imported and (name == program or origin in here):
                earlier[origin].append((old, note))
        for origin, pairs in earlier.items():
            gone = [(old, note) for old, note in pairs if claim_key(old.text) not in claims]
            if not origin.startswith(f"{program} ") and len(gone) > len(pairs) / 3:
                continue  # another file with this name
            for old, note in gone:
                words = {*_words(old.text.casefold())}
                others = {at: {*_words(unknown[at].text.casefold())} for at in places[origin]}
                likeness = {at: 2 * len(words & other) / (len(words) + len(other)) for at, other in others.items()}
                best = max(likeness, key=likeness.__getitem__, default=None)
                if best is None or likeness[best] < MIN_SIMILARITY or old.pinned or old.verified:
                    self.texts["missing"].append(old.text)
                    continue
                places[origin].remove(best)
                self.texts["newer"].append(f"{unknown[best].text} (it was: {old.text})")
                yield note, best

    def _find_older(self, unknown: Sequence[NewFact]) -> Iterator[tuple[StoredNote | int, int]]:
        """Yield (older fact, place of the one of `unknown` that replaces it): both give one subject different values of
        a relation that has one, and `may_replace` allows it. An older fact is a note, or the place of another one.
        """
        every: dict[int, NewFact | Document] = {**self._living, **{-1 - at: fact for at, fact in enumerate(unknown)}}
        stated = {-1 - at: [(e.subject, e.relation, e.object) for e in fact.edges] for at, fact in enumerate(unknown)}
        subjects = {name_key(subject) for edges in stated.values() for subject, _, _ in edges}
        relations_used = SINGLE_VALUED.union(relation for edges in stated.values() for _, relation, _ in edges)
        known = graph.fetch_edges_about(self._index, subjects, relations_used) if subjects else {}
        owners = own_names(self._root, self._vault.settings)
        for pair in sorted(find_pairs({**stated, **{key: edges for key, edges in known.items() if key in every}})):
            early, late = sorted(pair, key=lambda key: _since(every[key]))
            if late >= 0 or not _since(every[early]) < _since(every[late]) < UNDATED:
                continue
            newer, older = unknown[-1 - late], every[early]
            if not isinstance(older, Document):
                yield -1 - early, -1 - late
            elif older.owner == newer.owner:
                data = files.read_note(self._root, older.path)
                stays = data is None or not may_replace(newer, older, owners) or older.pinned or older.verified
                what = "next to your own" if stays else "it was"
                self.texts["newer"].append(f"{newer.text} ({what}: {older.text})")
                if not stays:
                    yield StoredNote(older.path, data or b""), -1 - late

    def plan_files(self) -> None:
        """Plan the files that are copied as they are. Only an untouched core note of the template is overwritten."""
        blank = {name: (data_folder("vault-template") / name).read_bytes() for name in CORE_FILES}
        planned: dict[str, bytes] = {}
        for path, data in self._found.files:
            if not files.can_hold(self._root, path):
                self.left_out["files whose name is too long, or is that of something else in the vault"] += 1
                continue
            present = planned.get(path)
            if present is None:
                present = files.read_note(self._root, path)
            if present == data:
                self.result.known += 1
            elif present is None or present == blank.get(path):
                planned[path] = data
                self.edits.append(Edit(path, present, data))
                self.counts["notes"] += 1
                self.texts["new"].append(path)
            else:
                self.result.clashes.append(path)

    def find_namesakes(self) -> None:
        """Find (new note, a note elsewhere in the vault with its name): a link to that name is ambiguous."""
        into = self._found.into
        new = {name_key(note_name(path)): path for path, _ in self._found.files if into}
        others = documents.find_documents(
            self._visible,
            "doc_id IN (SELECT doc_id FROM names WHERE position = 0 AND name_key IN (SELECT value FROM json_each(?)))",
            (json.dumps(list(new)),),
        )
        self.result.namesakes = [
            (new[name_key(note_name(other.path))], other.path)
            for other in others
            if not other.path.startswith(f"{into}/")
        ]


def _since(fact: NewFact | Document) -> str:
    """Return the day (ISO) since when a fact holds or, if that is not known, on which it was stated."""
    stated = fact.created if isinstance(fact, Document) else fact.created and notes.render_time(fact.created)
    return (fact.valid_from or stated or UNDATED)[:10]


def _is_name(name: str) -> bool:
    return 0 < len(name.strip()) <= _MAX_NAME_CHARS


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text).split()


def phrase_counts(counts: Mapping[str, int]) -> str:
    """Return `412 facts, 38 entities and 1 note`."""
    parts = [
        f"{counts[kind]:,} {one if counts[kind] == 1 else kind}" for kind, one in KINDS.items() if counts.get(kind)
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "nothing"
