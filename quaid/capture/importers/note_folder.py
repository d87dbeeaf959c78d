"""A note, or a folder of them such as an Obsidian vault: its markdown is kept as it is, byte for byte.

Links go by name and names hold for the whole vault, so they lead where they led. What the folder has besides, settings
of programs and attachments, stays where it is.
"""

from __future__ import annotations

from quaid.capture.importers.import_content import NOT_MARKDOWN, ImportContent, ImportedFile, ImportSource
from quaid.errors import BadInputError
from quaid.vault import layout

NAME = "notes"


def recognises(source: ImportSource) -> bool:
    return source.is_folder and bool(source.notes)


def read(source: ImportSource, found: ImportContent) -> None:
    if not source.notes:
        raise BadInputError(f"{source.name} holds no markdown. Give a note, or the folder that holds the notes.")
    for path, data in source.files.items():
        if not path.endswith(".md"):
            found.left_out[NOT_MARKDOWN] += 1
        elif layout.is_conflict_copy(path):
            found.left_out["copies that a sync tool made of a conflict"] += 1
        elif not layout.is_note_path(path):
            found.left_out["temporary files of an editor"] += 1
        else:
            found.files.append(ImportedFile(f"{found.into}/{path}", found.admitted_bytes(path, data)))
