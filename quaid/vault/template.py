"""What `quaid init` puts into a folder, and only where nothing of that name is there."""

from __future__ import annotations

from importlib.resources import files as package_files
from pathlib import Path

from quaid.model import Edit
from quaid.place import state_folder
from quaid.vault import files

ADOPTED = ("quaid.toml", "Facts.base")
"""All that a folder with notes of its own is given."""
_DOTTED = {"gitignore": ".gitignore", "gitattributes": ".gitattributes"}


def template_folder() -> Path:
    """vault-template/ as the wheel carries it, else as it lies in a checkout."""
    packaged = Path(str(package_files("quaid"))) / "data" / "vault-template"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "vault-template"


def plan_template(root: Path, *, adopt: bool) -> list[Edit]:
    """The files to add. `adopt` leaves a folder that has notes already as much as possible as it is."""
    planned = []
    for source in sorted(template_folder().iterdir()):
        rel_path = _DOTTED.get(source.name, source.name)
        if adopt and rel_path not in ADOPTED:
            continue
        if not (root / rel_path).exists() and not (root / rel_path).is_symlink():
            planned.append(Edit(rel_path, None, source.read_bytes()))
    return planned


def make_state_folder(root: Path) -> None:
    """.quaid/, which ignores itself: the owner's own .gitignore need not name it."""
    state = state_folder(root)
    try:
        state.mkdir(parents=True, exist_ok=True)
        ignore = state / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise files.sentence(error, state) from error


def has_notes(root: Path) -> bool:
    """Whether a folder holds anything that is its owner's."""
    return root.is_dir() and any(not entry.name.startswith(".git") for entry in root.iterdir())
