"""The files that `quaid init` puts into a folder, where nothing of that name is there."""

from __future__ import annotations

from importlib.resources import files as package_files
from pathlib import Path

from quaid.model import Edit

ADOPTED = ("quaid.toml", "Facts.base")
"""All that a folder with notes of its own is given."""
_DOTTED = {"gitignore": ".gitignore", "gitattributes": ".gitattributes"}


def template_folder() -> Path:
    """vault-template/ as the wheel carries it, else as it lies in a checkout."""
    packaged = Path(str(package_files("quaid"))) / "data" / "vault-template"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "vault-template"


def plan_template(root: Path, *, adopt: bool) -> list[Edit]:
    """The files to add. `adopt` adds as little as possible to a folder that has notes already."""
    planned = []
    for source in sorted(template_folder().iterdir()):
        rel_path = _DOTTED.get(source.name, source.name)
        if adopt and rel_path not in ADOPTED:
            continue
        if not (root / rel_path).exists() and not (root / rel_path).is_symlink():
            planned.append(Edit(rel_path, None, source.read_bytes()))
    return planned


def has_notes(root: Path) -> bool:
    """Return True if a folder holds anything that is its owner's."""
    return root.is_dir() and any(not entry.name.startswith(".git") for entry in root.iterdir())
