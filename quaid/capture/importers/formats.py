"""The formats that can be imported, recognised by content."""

from __future__ import annotations

from typing import Protocol, cast

from quaid.capture.importers import basic_memory, markdown_memories, mem0, note_folder, quaid_export
from quaid.capture.importers.import_content import ImportContent, ImportSource
from quaid.errors import BadInputError


class ImportFormat(Protocol):
    """The attributes of a module in `FORMATS`."""

    NAME: str
    """As `--from` takes it and a commit names it."""

    def recognises(self, source: ImportSource) -> bool:
        """Return True when the content of `source` is of this format."""
        ...

    def read(self, source: ImportSource, found: ImportContent) -> None:
        """Put all that the source states into `found`, each text through `found.admitted`.

        Raises:
            BadInputError: `source` is not of this format.
        """
        ...


FORMATS = cast("tuple[ImportFormat, ...]", (quaid_export, mem0, basic_memory, markdown_memories, note_folder))
"""Asked in this order; a folder of notes is whatever has markdown, so it stays last."""


def choose_format(source: ImportSource, name: str | None = None) -> ImportFormat:
    """The format called `name`, else the one that recognises `source`.

    Raises:
        BadInputError: there is none.
    """
    known = ", ".join(form.NAME for form in FORMATS)
    if name is not None:
        named = next((form for form in FORMATS if name == form.NAME), None)
        if named is None:
            raise BadInputError(f"{name!r} is not a format to import from. Known are: {known}.")
        return named
    for form in FORMATS:
        if form.recognises(source):
            return form
    raise BadInputError(
        f"{source.name} holds nothing that is known as memories. Say what it is with --from: one of {known}."
    )
