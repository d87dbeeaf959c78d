"""A note as it is on disk: what plans compare with and edit."""

from dataclasses import dataclass
from functools import cached_property

from quaid.model import note_name
from quaid.vault import frontmatter


@dataclass(frozen=True)
class StoredNote:
    """The note at `rel_path`. An owner's own note (`is_own`) is never edited."""

    rel_path: str
    data: bytes
    is_own: bool = False

    @property
    def name(self) -> str:
        """The file name, which links use."""
        return note_name(self.rel_path)

    @property
    def id(self) -> str:
        return str(self.head.fields.get("id") or self.rel_path)

    @cached_property
    def head(self) -> frontmatter.Head:
        return frontmatter.parse(self.data.decode("utf-8", errors="replace"))
