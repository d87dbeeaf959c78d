"""The files that `quaid init` puts into a folder, where nothing of that name is there."""

from __future__ import annotations

import re
from importlib.resources import files as package_files
from pathlib import Path
from typing import NamedTuple

from quaid.config import render_setting
from quaid.model import Edit
from quaid.place import CONFIG_FILE
from quaid.vault.layout import FOLDERS

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


def template_folder() -> Path:
    """vault-template/ as the wheel carries it, else as it lies in a checkout."""
    packaged = Path(str(package_files("quaid"))) / "data" / "vault-template"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "vault-template"


def plan_template(root: Path, *, adopt: bool, folder: str = "") -> list[Edit]:
    """The files to add. `adopt` adds as little as possible to a folder that has notes already; `folder` is the one that
    will hold Quaid's folders.
    """
    planned = []
    for source in sorted(template_folder().iterdir()):
        rel_path = _DOTTED.get(source.name, source.name)
        if adopt and rel_path not in ADOPTED:
            continue
        if not (root / rel_path).exists() and not (root / rel_path).is_symlink():
            planned.append(Edit(rel_path, None, _with_folder(rel_path, source.read_text("utf-8"), folder).encode()))
    return planned


def _with_folder(rel_path: str, text: str, folder: str) -> str:
    """A file of the template for a vault whose `folder` holds Quaid's folders."""
    if not folder:
        return text
    if rel_path == CONFIG_FILE:
        return render_setting(text, "vault.folder", folder)
    if rel_path == "Facts.base":
        return text.replace('inFolder("facts")', f'inFolder("{folder}/facts")')
    return re.sub(
        rf"(^|`)({'|'.join(FOLDERS)})(?=/)", lambda found: f"{found[1]}{folder}/{found[2]}", text, flags=re.MULTILINE
    )


def has_notes(root: Path) -> bool:
    """Return True if a folder holds anything that is its owner's."""
    return root.is_dir() and any(not entry.name.startswith(".git") for entry in root.iterdir())
