"""The files that `quaid init` puts into a folder, where nothing of that name is there."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from quaid.config import render_setting
from quaid.errors import BadInputError
from quaid.model import Edit, Kind
from quaid.place import CONFIG_FILE, data_folder
from quaid.vault import files, frontmatter, layout
from quaid.vault.layout import FOLDERS, Layout

ADOPTED = ("quaid.toml", "Facts.base")
"""All that a folder with notes of its own is given."""
_DOTTED = {"gitignore": ".gitignore", "gitattributes": ".gitattributes"}


class VaultPlan(NamedTuple):
    """What makes a folder a vault. `clashes` are the owner's folders that are called like Quaid's, which will lie in
    `folder`.
    """

    edits: tuple[Edit, ...]
    adopted: bool
    clashes: tuple[str, ...] = ()
    folder: str = ""


def plan_template(root: Path, *, adopt: bool, folder: str = "") -> list[Edit]:
    """Return the files to add. `adopt` adds as little as possible to a folder that has notes already; `folder` is the
    one that will hold Quaid's folders.
    """
    planned = []
    for source in sorted(data_folder("vault-template").iterdir()):
        rel_path = _DOTTED.get(source.name, source.name)
        if (adopt and rel_path not in ADOPTED) or os.path.lexists(root / rel_path):
            continue
        text = source.read_text("utf-8")
        if folder and rel_path == CONFIG_FILE:
            text = render_setting(text, "vault.folder", folder)
        elif folder and rel_path == "Facts.base":
            text = text.replace('inFolder("facts")', f'inFolder("{folder}/facts")')
        elif folder:
            text = re.sub(rf"(?m)(^|`)({'|'.join(FOLDERS)})(?=/)", lambda at: f"{at[1]}{folder}/{at[2]}", text)
        planned.append(Edit(rel_path, None, text.encode()))
    return planned


# -- folders of the owner's that have a name of Quaid's ---------------------------------------------------------------

_HEAD_BYTES = 8192


def list_clashes(root: Path, folder: str = "") -> list[str]:
    """Return the folders that are called like Quaid's and hold files of the owner's: in the folder `root`, or in
    `folder` below it. `Projects` is such a name too: some file systems take it for `projects`.
    """
    place = Layout(folder)
    there = root / folder
    called = sorted(path.name for path in there.iterdir() if path.is_dir()) if there.is_dir() else []
    named = (place.place(name) for name in called if name.lower() in FOLDERS)
    return [path for path in named if _holds_own(root, path, place)]


def choose_folder(root: Path) -> str:
    """Return the folder for Quaid's folders in `root`: empty where they clash with nothing, else a new one."""
    if not list_clashes(root):
        return ""
    names = ("quaid", *(f"quaid-{number}" for number in range(2, 1_000)))
    return next(name for name in names if not (root / name).exists())


def check_folder(root: Path, folder: str) -> str:
    """Return `folder` as the setting `vault.folder` has it.

    Raises:
        BadInputError: it cannot hold notes, or Quaid's folders in it would clash with the owner's.
    """
    folder = folder.strip("/")
    is_plain = all(part not in {"", ".", ".."} for part in folder.split("/"))
    if folder and not (is_plain and layout.is_note_path(f"{folder}/note.md")):
        raise BadInputError(f"Quaid's notes cannot be in {folder!r}. Give a visible folder within the vault.")
    if clashes := list_clashes(root, folder):
        raise BadInputError(f"{', '.join(clashes)} hold files of yours. Give another folder for Quaid's notes.")
    return folder


def _holds_own(root: Path, folder: str, place: Layout) -> bool:
    """Return whether a folder has notes that Quaid did not make, documents of projects aside, or only other files."""
    there = [path for path in (root / folder).rglob("*") if path.is_file() and not path.name.startswith(".")]
    notes = [path for path in there if layout.is_note_name(path.name)]
    if not notes:
        return bool(there)
    for path in notes:
        rel_path = path.relative_to(root).as_posix()
        data = files.read_note(root, rel_path, _HEAD_BYTES) or b""
        kind = place.kind_of(rel_path, frontmatter.parse(data.decode("utf-8", "replace")).fields)
        project = place.project_of(rel_path)
        has_row = project is not None and (root / place.place(f"projects/{project}/PROJECT.md")).is_file()
        if kind is Kind.NOTE or (project is not None and not has_row):
            return True
    return False
