"""The owner's name -> the edits that give the owner an entity note: the person whom `my` and `User` mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quaid.capture.entity_names import add_aliases
from quaid.capture.entity_note import EntityNote, plan_entity
from quaid.config import render_setting
from quaid.errors import BadInputError
from quaid.model import Edit, is_owner_label, name_key, note_name
from quaid.place import CONFIG_FILE
from quaid.vault import files, frontmatter, template
from quaid.vault.layout import Layout
from quaid.vault.template import VaultPlan

OWNER_NAME = "owner_name"
"""The setting."""
_SHARED_LOGINS = frozenset({"root", "admin", "administrator", "ubuntu", "debian", "pi", "vscode", "runner", "nobody"})
"""Accounts that are called so on many machines."""


def clean_name(name: str) -> str:
    """Return the name of an owner on one line; empty for one that says to forget it.

    Raises:
        BadInputError: it is a word that means whoever the owner is.
    """
    plain = " ".join(name.split())
    if is_owner_label(plain):
        raise BadInputError(f"{plain!r} is not a name: in a note it means whoever the owner is. Give your own name.")
    return plain


def plan_vault(root: Path, owner_names: Sequence[str], folder: str | None = None) -> VaultPlan:
    """Return what makes the folder `root` a vault: as few files as possible where it adopts one. The first of
    `owner_names` is in its settings and has a note, unless one in the folder is called so already. Quaid's folders will
    lie in `folder`, by default where they clash with none of the owner's.

    Raises:
        BadInputError: `root` is a file, or that name means whoever the owner is, or Quaid's notes cannot be kept in
            `folder`.
    """
    if root.exists() and not root.is_dir():
        raise BadInputError(f"{root} is not a folder. Give the folder of your notes, or a new one.")
    adopted = template.has_notes(root)
    clashing = tuple(template.list_clashes(root))
    folder = template.choose_folder(root) if folder is None else template.check_folder(root, folder)
    edits = template.plan_template(root, adopt=adopted, folder=folder)
    if owner_names and (name := clean_name(owner_names[0])):
        edits = _with_owner(root, edits, name, owner_names[1:], Layout(folder))
    return VaultPlan(tuple(edits), adopted, clashing, folder)


def _with_owner(root: Path, edits: list[Edit], name: str, also: Sequence[str], place: Layout) -> list[Edit]:
    for number, edit in enumerate(edits):
        if edit.rel_path == CONFIG_FILE:
            text = (edit.after or b"").decode()
            edits[number] = replace(edit, after=render_setting(text, OWNER_NAME, name).encode())
    own = plan_owner(name, also, datetime.now(UTC), place)
    taken = {name_key(note_name(path)) for path in files.list_notes(root).notes} if root.is_dir() else set()
    return edits if name_key(note_name(own.rel_path)) in taken else [*edits, own]


def plan_owner(name: str, also: Iterable[str], now: datetime, place: Layout) -> Edit:
    """Return the edit that makes the note of the owner `name`; its aliases are the first name and those of `also` that
    can be told from everybody's.
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


def plan_new_name(name: str, former: EntityNote) -> Edit | None:
    """Return the edit that adds `name` to the note of an owner who was called otherwise; None where Quaid did not make
    that note or cannot edit it.
    """
    if former.is_own:
        return None
    try:
        return Edit(former.rel_path, former.data, add_aliases(former.data, [name]))
    except (frontmatter.FrontmatterBrokenError, UnicodeDecodeError):
        return None
