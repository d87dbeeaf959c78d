"""The owner's name -> the edits that give the owner, whom `my` and `User` refer to, an entity note."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quaid.capture.entities import add_aliases, plan_entity
from quaid.config import render_setting
from quaid.errors import BadInputError
from quaid.model import Edit, is_owner_label, name_key, note_name
from quaid.place import CONFIG_FILE
from quaid.vault import files, template
from quaid.vault.layout import Layout
from quaid.vault.template import VaultPlan

OWNER_NAME = "owner_name"
"""The setting."""
_SHARED_LOGINS = frozenset({"root", "admin", "administrator", "ubuntu", "debian", "pi", "vscode", "runner", "nobody"})
"""Accounts with the same name on many machines."""


def clean_name(name: str) -> str:
    """Return the name of an owner on one line; empty to forget it."""
    plain = " ".join(name.split())
    if is_owner_label(plain):
        raise BadInputError(f"{plain!r} is not a name: in a note it means whoever the owner is. Give your own name.")
    return plain


def plan_vault(root: Path, owner_names: Sequence[str], folder: str | None = None) -> VaultPlan:
    """Return the files that make the folder `root` a vault: as few as possible where it has notes already. The first of
    `owner_names` goes into its settings and gets a note, unless a note has that name already. Quaid's folders are in
    `folder`, by default where they clash with none of the owner's.
    """
    if root.exists() and not root.is_dir():
        raise BadInputError(f"{root} is not a folder. Give the folder of your notes, or a new one.")
    adopted = root.is_dir() and any(not entry.name.startswith(".git") for entry in root.iterdir())
    clashing = tuple(template.list_clashes(root))
    folder = template.choose_folder(root) if folder is None else template.check_folder(root, folder)
    edits = template.plan_template(root, adopt=adopted, folder=folder)
    if owner_names and (name := clean_name(owner_names[0])):
        for number, edit in enumerate(edits):
            if edit.rel_path == CONFIG_FILE:
                text = (edit.after or b"").decode()
                edits[number] = replace(edit, after=render_setting(text, OWNER_NAME, name).encode())
        own = plan_owner(name, owner_names[1:], datetime.now(UTC), Layout(folder))
        taken = {name_key(note_name(path)) for path in files.list_notes(root).notes} if root.is_dir() else set()
        edits += [] if name_key(note_name(own.rel_path)) in taken else [own]
    return VaultPlan(tuple(edits), adopted, clashing, folder)


def plan_owner(name: str, also: Iterable[str], now: datetime, place: Layout) -> Edit:
    """Return the edit that creates the note of the owner `name`; its aliases are the first name and the distinctive
    ones of `also`.
    """
    first = name.split(maxsplit=1)[0]
    known = {name_key(name)}
    aliases = []
    for alias in (first, *also):
        key = name_key(alias)
        if len(key) > 1 and key not in known and key not in _SHARED_LOGINS and not is_owner_label(alias):
            aliases.append(alias)
            known.add(key)
    edit = plan_entity(name, "person", now, place=place)
    return replace(edit, after=add_aliases(edit.after or b"", aliases))
