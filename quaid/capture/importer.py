"""Taking memories of other programs into a vault: reads the source, looks up what the vault has, plans, writes once."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from quaid import redaction
from quaid.capture.fact_note import FactDetails
from quaid.capture.importers import note_folder
from quaid.capture.importers.formats import choose_format
from quaid.capture.importers.import_content import MARKDOWN, NOT_MARKDOWN, Admit, ImportContent, ImportSource
from quaid.capture.importers.import_plan import (
    ImportCandidate,
    ImportPlan,
    VaultState,
    list_candidates,
    plan_import,
)
from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.config import person_of
from quaid.errors import BadInputError
from quaid.index import documents, graph
from quaid.model import CORE_FILES, Message, name_key, note_name
from quaid.open_vault import OpenVault
from quaid.place import CONFIG_FILE
from quaid.vault import files, layout, template

if TYPE_CHECKING:
    from quaid.index.port import IndexConnection

EXAMPLES = 5
SHOWN = 10
"""Places with redactions that a commit names."""
KINDS = {"facts": "fact", "entities": "entity", "edges": "edge", "notes": "note"}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import. `into` is the folder of the vault for notes that are kept as they are."""

    format: str | None = None
    owner: str = "default"
    project: str | None = None
    keep_owners: bool = False
    into: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import, on a dry run what it would write.

    `counts` are facts, entities, edges and notes; `known` is what the vault had already; `left_out` counts by reason;
    `redacted` names for each place what the gate took out; `clashes` are paths that hold something else and were left
    as they are, `namesakes` (new note, other note) of one name; `left` is on disk but not committed.
    """

    source: str
    format: str
    counts: Mapping[str, int]
    known: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    redacted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    clashes: tuple[str, ...] = ()
    namesakes: tuple[tuple[str, str], ...] = ()
    examples: tuple[str, ...] = ()
    commit: str | None = None
    left: tuple[str, ...] = ()
    dry_run: bool = False


def import_from(
    vault: OpenVault,
    source: Path | IO[bytes],
    options: ImportOptions,
    *,
    admit: Admit | None = None,
) -> ImportResult:
    """Take what `source` holds into the vault, as one commit.

    Twice the same changes nothing the second time.

    Raises:
        BadInputError: the source cannot be read, is of no known format, or lies in the vault.
    """
    writer = Writer(vault)
    held = read_source(source, vault.root) if isinstance(source, Path) else read_stream(source)
    form = choose_format(held, options.format or (note_folder.NAME if options.into and held.notes else None))
    if options.into and form is not note_folder:
        raise BadInputError(
            f"--into is for notes that are kept as they are, and {held.name} is read as {form.NAME}. Leave --into out."
        )
    place = vault.layout
    into = _folder_for(options.into, held.name, place) if form is note_folder else ""
    gate = _counting(admit, sum(map(len, held.files.values())), vault)
    found = ImportContent(gate, into=into, keeps_owners=options.keep_owners)
    found.left_out.update(held.passed_over)
    form.read(held, found)
    candidates, doubled = list_candidates(found, form.NAME, options.owner)
    found.left_out.update(doubled)
    details = FactDetails(source="import", project=options.project, imported_from=form.NAME)
    now = datetime.now(UTC)

    def plan() -> tuple[ImportResult, ImportPlan]:
        planned = plan_import(found, candidates, details, _look_up(vault, writer, candidates), now)
        imported = ImportResult(
            held.name, form.NAME, dict(+planned.counts), planned.known, dict(+planned.left_out),
            {place: tuple(dict.fromkeys(secrets)) for place, secrets in found.redacted.items()},
            tuple(planned.clashes), _namesakes(vault.visible_index(), found), tuple(planned.examples[:EXAMPLES]),
            dry_run=options.dry_run,
        )  # fmt: skip
        return imported, planned

    def plan_write() -> WritePlan:
        imported, planned = plan()
        vault.show_progress("Writing", 0, len(planned.edits))
        return WritePlan(
            WriteResult(held.name, "", "imported"), tuple(planned.edits), _message(imported), details=asdict(imported)
        )

    if options.dry_run:
        return plan()[0]
    digest = hashlib.sha256(repr(("import", held.name, options)).encode())
    for path, data in held.files.items():
        digest.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
    plan_done = writer.write(digest.hexdigest(), plan_write)
    result = ImportResult(**{key: _frozen(value) for key, value in plan_done.details.items()})
    return replace(result, commit=plan_done.written.commit, left=plan_done.written.left)


# -- the source ------------------------------------------------------------------------------------------------------


def read_source(path: Path, root: Path) -> ImportSource:
    """A file, or a folder with all in it that is not hidden, a link or a vault of its own.

    Raises:
        BadInputError: it does not exist, cannot be read, or is the vault itself.
    """
    if not path.exists():
        raise BadInputError(f"{path} does not exist. Give the file or folder that holds the memories.")
    place = path.resolve()
    if place.is_relative_to(root.resolve()) and (path.is_dir() or layout.is_note_name(path.name)):
        raise BadInputError(f"{path} is in the vault already: its notes are recalled as they are. Give another source.")
    if path.is_file():
        name = redaction.admit_name(path.name)
        return ImportSource(name, {name: _read_file(path)}, is_folder=False)
    if not path.is_dir():
        raise BadInputError(f"{path} is neither a file nor a folder. Give one of these.")
    passed_over: Counter[str] = Counter()
    held = {}
    for name in sorted(_list_files(place, passed_over)):
        try:
            held[redaction.admit_name(name)] = _read_file(place / name)
        except BadInputError:
            passed_over["files that cannot be read"] += 1
    if not held:
        raise BadInputError(f"{path} holds no files that can be read. Give the folder that holds the memories.")
    return ImportSource(
        redaction.admit_name(place.name), held, has_obsidian=(place / ".obsidian").is_dir(), passed_over=passed_over
    )


def read_stream(stream: IO[bytes]) -> ImportSource:
    """Read stdin: JSON or markdown, as its first character says."""
    data = stream.read()
    if not data.strip():
        raise BadInputError("Nothing came on stdin. Pipe an export or a markdown file into it.")
    name = "stdin.json" if data.lstrip()[:1] in {b"{", b"["} else "stdin.md"
    return ImportSource(name, {name: data}, is_folder=False)


def _list_files(top: Path, passed_over: Counter[str]) -> list[str]:
    """Paths below `top`. Other files than markdown are counted without being read: attachments may be large."""
    found = []
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
            elif path.suffix.lower() not in MARKDOWN:
                passed_over[NOT_MARKDOWN] += 1
            else:
                found.append(path.relative_to(top).as_posix())
    return found


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInputError(f"{path} cannot be read ({reason}). Check the path and its permissions.") from error


def _folder_for(into: str | None, name: str, place: layout.Layout) -> str:
    """The folder of the vault for notes that are kept as they are.

    Raises:
        BadInputError: it is not a folder of the vault, or one that means something to Quaid.
    """
    folder = (into or f"notes/{name}").strip("/")
    if not layout.is_note_path(f"{folder}/note.md") or any(part in {"", ".", ".."} for part in folder.split("/")):
        raise BadInputError(f"Notes cannot be kept in {folder!r}. Give a folder within the vault with --into.")
    if place.folder_kind(f"{folder}/note.md") is not None:
        raise BadInputError(f"{folder} is a folder of Quaid's. Give another one for your notes with --into.")
    return folder


# -- the vault -------------------------------------------------------------------------------------------------------


def _look_up(vault: OpenVault, writer: Writer, candidates: Sequence[ImportCandidate]) -> VaultState:
    index, visible = vault.whole_index(), vault.visible_index()
    wanted = json.dumps([candidate.id for candidate in candidates])
    by_id = {
        document.id for document in documents.find_documents(index, "id IN (SELECT value FROM json_each(?))", (wanted,))
    }
    by_text = {
        (candidate.owner, candidate.text_hash)
        for candidate in candidates
        if candidate.id not in by_id
        and documents.find_by_text(index, candidate.text_hash, candidate.owner, candidate.fact.valid_until)
    }
    return VaultState(
        frozenset(by_id),
        frozenset(by_text),
        lambda path: files.read_note(vault.root, path),
        lambda path: files.can_hold(vault.root, path),
        lambda name: writer.finder.find_entity(visible, name),
        tuple(graph.entity_names(visible)),
        {name: (template.template_folder() / name).read_bytes() for name in CORE_FILES},
        vault.layout,
        person_of(vault.root, vault.settings),
    )


def _namesakes(index: IndexConnection, found: ImportContent) -> tuple[tuple[str, str], ...]:
    """(new note, a note elsewhere in the vault that has its name): a link to that name may mean either."""
    if not found.into:
        return ()
    new = {name_key(note_name(file.rel_path)): file.rel_path for file in found.files}
    others = documents.find_documents(
        index,
        "doc_id IN (SELECT doc_id FROM names WHERE position = 0 AND name_key IN (SELECT value FROM json_each(?)))",
        (json.dumps(list(new)),),
    )
    pairs = ((new[name_key(note_name(other.path))], other.path) for other in others)
    return tuple((path, other) for path, other in pairs if not other.startswith(f"{found.into}/"))


# -- what is said of it ----------------------------------------------------------------------------------------------


def _message(imported: ImportResult) -> Message:
    lines = [f"Read from {' '.join(imported.source.split())}: {phrase_counts(imported.counts)}."]
    if imported.known:
        lines.append(f"Known already: {imported.known:,}.")
    if imported.left_out:
        reasons = ", ".join(f"{reason} ({number:,})" for reason, number in imported.left_out.items())
        lines.append(f"Left out: {reasons}.")
    for place, secrets in list(imported.redacted.items())[:SHOWN]:
        lines.append(f"Redacted in {place}: {', '.join(secrets)}.")
    subject = f"import: {phrase_counts(imported.counts)} from {imported.format}"
    return Message(subject, "\n".join(lines), (("Quaid-Task", "import"),))


def phrase_counts(counts: Mapping[str, int]) -> str:
    """`412 facts, 38 entities and 1 note`"""
    parts = [
        f"{counts[kind]:,} {one if counts[kind] == 1 else kind}" for kind, one in KINDS.items() if counts.get(kind)
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "nothing"


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _counting(admit: Admit | None, total: int, vault: OpenVault) -> Admit:
    """The gate, telling how many characters of the source went through it."""
    done = 0

    def counted(text: str) -> tuple[str, tuple[str, ...]]:
        nonlocal done
        done = min(done + len(text), total)
        vault.show_progress("Reading", done, total)
        if admit is not None:
            return admit(text)
        admitted = redaction.admit(text)
        return admitted.text, admitted.redacted

    return counted
