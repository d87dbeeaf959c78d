"""Changes in followed memories of other programs -> a question in review/: take in what is new, forget what is gone.

A source has one open question. What changes meanwhile is asked about when it is answered; what the owner has refused or
taken back is not asked about again. Which sources are followed is in the state folder: paths are of this machine.
"""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quaid.capture.importer import ImportOptions, plan_import, read_memories
from quaid.capture.importers.programs import Program, find_programs, name_program
from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.errors import BadInputError, QuaidError
from quaid.history.authorship import JANITOR
from quaid.index import documents
from quaid.janitor.decision import RunReport
from quaid.janitor.model_text import quote
from quaid.janitor.questions import question_path, render_question
from quaid.janitor.vetoes import read_vetoes
from quaid.local import state_files
from quaid.local.runs import Decision, Decisions, evidence_key
from quaid.model import Edit, Kind, Message
from quaid.open_vault import OpenVault
from quaid.place import FOLLOWED_FILE, LOCAL_FILE, state_folder, write_private
from quaid.vault import files, notes

TASK, KIND = "memories", "adopt"
MAX_SHOWN, MAX_CHARS = 20, 200


def read_followed(root: Path) -> dict[str, Any]:
    """Return the followed memories of the vault at `root` by name: `path`, empty for those of a program; `key` and
    `facts` of the last question; and `refused`, the ids of facts.
    """
    with suppress(OSError, ValueError):
        stored = json.loads(state_files.read(state_folder(root) / FOLLOWED_FILE))
        return stored if isinstance(stored, dict) else {}
    return {}


def begin_following(root: Path, name: str, path: str) -> None:
    """Follow the memories of the program `name`, or those at `path` under this name."""
    records = read_followed(root)
    records[name] = {**records.get(name, {}), "path": path}
    write_private(state_folder(root) / FOLLOWED_FILE, json.dumps(records), sync=True)


def end_following(root: Path, name: str) -> None:
    """Raises BadInputError: it is not followed."""
    records = read_followed(root)
    if records.pop(name, None) is None:
        raise BadInputError(f"{name!r} is not followed. Followed are: {', '.join(records) or 'none'}.")
    write_private(state_folder(root) / FOLLOWED_FILE, json.dumps(records), sync=True)


def propose_changes(vault: OpenVault, report: RunReport) -> None:
    """Ask about what has changed in each followed source, but for what is in the vault or was refused."""
    if not (records := read_followed(vault.root)):
        return
    own = {vault.settings.git.email, JANITOR[1]}
    vetoed = {veto.key for veto in read_vetoes(vault.git.log_changes(), own, vault.git)}
    programs = {program.name: program for program in find_programs(Path.home(), os.environ)}
    for name, record in records.items():
        source = name_program(name, Path(record["path"])) if record.get("path") else programs.get(name)
        if record.get("key") in vetoed:
            record["refused"] = sorted({*record.get("refused", ()), *record["facts"]})
        try:
            question = ask_about(vault, name, source, record) if source else "they are not on this machine any more"
        except QuaidError as error:
            question = str(error)
        report.remarks += [f"Memories of {name}, which you follow: {question}"] if question else []
    write_private(vault.state / FOLLOWED_FILE, json.dumps(records), sync=True)


def ask_about(vault: OpenVault, name: str, source: Program, record: dict[str, Any]) -> str:
    """Write the question about one source, if there is something new to ask, and return its title."""
    place, options, now = vault.layout, ImportOptions(owner=vault.settings.owner), datetime.now(UTC)
    open_path = question_path(KIND, str(record.get("key")), place)
    if files.read_note(vault.root, open_path) is not None:
        return ""
    refused = record.get("refused", ())
    plan = plan_import(vault, Writer(vault), read_memories(vault, source, options), options, *refused)
    made = [notes.parse_note(edit.rel_path, edit.after or b"", place=place) for edit in plan.edits if not edit.before]
    new = [note for note in made if note.kind is Kind.FACT]
    texts, index = plan.details["texts"], vault.whole_index()
    found = (documents.find_by_text(index, notes.text_hash(text), options.owner) for text in texts["missing"])
    gone = [fact for fact in found if fact and fact.id not in refused]
    if not (new or gone):
        return ""
    edits = [*plan.edits, *(Edit(fact.path, files.read_note(vault.root, fact.path), None) for fact in gone)]
    lines = [
        *(f"- new: {quote(note.text, MAX_CHARS)}" for note in new),
        *(f"- newer: {quote(text, 2 * MAX_CHARS)}" for text in texts["newer"]),
        *(f"- not in it any more: {quote(documents.text_of(index, fact.doc_id), MAX_CHARS)}" for fact in gone),
    ]
    more = [f"- … and {len(lines) - MAX_SHOWN:,} more"] if lines[MAX_SHOWN:] else []
    parts = (f"{verb} {len(some):,}" for verb, some in (("take in", new), ("forget", gone)) if some)
    subject = f"{' and '.join(parts)} of the memories of {name}"
    why = f"You follow the memories of {name}, and they have changed."
    ids = (*(note.id for note in new), *(fact.id for fact in gone))
    key = evidence_key(TASK, name, *sorted(ids))
    detail = "\n".join([*lines[:MAX_SHOWN], *more])
    decision = Decision(TASK, KIND, key, tuple(edits), subject, why, ids, always_asks=True, detail=detail)
    question = render_question(decision, now, {edit.rel_path: edit.before for edit in edits}, place)
    path = question_path(KIND, key, place)
    Decisions(vault.state / LOCAL_FILE).put(decision, now.date().isoformat())
    written, asks = WriteResult(path, path, "asked"), (Edit(path, None, question),)
    message = Message(f"{TASK}: ask whether to {subject}", why, (("Quaid-Task", TASK),))
    Writer(vault).write(f"ask {key}", WritePlan, written, asks, message)
    record.update(key=key, facts=ids)
    return f"{subject}? It is asked in review/"
