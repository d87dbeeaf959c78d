"""Notes of Quaid's as tests write them: by hand, with ids that can be read, in a vault whose settings allow it."""

from __future__ import annotations

from functools import partial

from quaid.vault import notes
from quaid.vault.layout import Layout

MANAGED = Layout(is_managed=True)
parse_note = partial(notes.parse_note, place=MANAGED)
