"""The registry: a project is the frontmatter of its `projects/NAME/PROJECT.md`. Reading it, and planning its changes.

Everything in it is flat, so that Obsidian shows it: a registered document is one line of a list,
`docs/recall.md <- quaid/recall, quaid/settings.py @ 3f2a91c`: the document, what it is about, and the commit at which
it was last known to be true.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from quaid.docs.source_roots import check_roots
from quaid.errors import BadInputError, NoteBrokenError
from quaid.model import Edit
from quaid.redaction import admit
from quaid.vault import files, frontmatter, layout, notes
from quaid.vault.layout import DEFAULT, Layout

FOLDER = "projects"
FILE = "PROJECT.md"
State = Literal["active", "archived", "deleted"]
STATES: tuple[State, ...] = ("active", "archived", "deleted")
PATTERNS = (
    *(f"*.{ending}" for ending in ("md", "markdown", "mdx", "rst", "adoc", "asciidoc")),
    *(f"**/{folder}/**" for folder in ("docs", "doc", "documentation", "help")),
    "!**/*.txt",
    "**/README.*",
    *(f"!**/{folder}/**" for folder in ("test", "tests", "testdata", "fixtures")),
)
"""The documents of a source repository, unless the project says otherwise."""
ABOUT = "What {label} is, in a few sentences."
"""The placeholder in a new PROJECT.md without a description."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MAY_BE_INVALID = re.compile(r"[!\[\\]")
_ENTRY = re.compile(
    r"(?P<path>.+?)(?:(?<!\s)\s+<-\s*(?P<sources>.*?))?(?:(?<!\s)\s+@\s*(?P<commit>[0-9a-fA-F]{7,64}))?\Z", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class RegisteredDoc:
    """A registered document: `path` within the vault or within a source root. `true_at` is a commit."""

    path: str
    sources: tuple[str, ...] = ()
    true_at: str | None = None

    @classmethod
    def parse(cls, line: str) -> RegisteredDoc:
        found = _ENTRY.match(line.strip())
        assert found is not None
        sources = (source.strip() for source in (found["sources"] or "").split(","))
        return cls(found["path"].strip(), tuple(source for source in sources if source), found["commit"])

    def render(self) -> str:
        sources = f" <- {', '.join(self.sources)}" if self.sources else ""
        return f"{self.path}{sources}{f' @ {self.true_at}' if self.true_at else ''}"


@dataclass(frozen=True, slots=True)
class Project:
    """A project of the registry. `source_roots` are as written: absolute, from the home folder (~), or from the vault.

    `problems` are sentences about values that could not be read.
    """

    name: str
    label: str = ""
    source_roots: tuple[str, ...] = ()
    patterns: tuple[str, ...] = PATTERNS
    exclude: tuple[str, ...] = ()
    state: State = "active"
    auto_index: bool = True
    registered: tuple[RegisteredDoc, ...] = ()
    problems: tuple[str, ...] = ()
    layout: Layout = DEFAULT

    @property
    def path(self) -> str:
        return f"{self.home}/{FILE}"

    @property
    def home(self) -> str:
        return self.layout.place(f"{FOLDER}/{self.name}")

    def owns(self, doc_id: str) -> bool:
        """Return whether a document, by its id, is one of this project."""
        return doc_id.startswith((f"{self.name}:", f"{self.home}/"))

    def roots(self, vault: Path) -> tuple[Path, ...]:
        """Return the source roots that may be read, whether they are on this machine or not."""
        return tuple(root.folder for root in check_roots(vault, self.source_roots) if not root.problem)


def read_projects(vault: Path) -> list[Project]:
    """Return every project of the vault, whatever its state, by name."""
    found = []
    place = Layout.of_vault(vault)
    for folder in sorted((vault / place.place(FOLDER)).glob("*/")):
        path = Project(folder.name, layout=place).path
        data = None
        with suppress(OSError):  # no permission to read it, which a check of the vault names
            data = files.read_note(vault, path) if files.is_file_in(vault, path) else None
        if data is not None:
            found.append(parse_project(folder.name, data, place))
    return found


def read_project(vault: Path, name: str) -> Project:
    """Return the project with this name or label, whatever its state.

    Raises:
        BadInputError: there is none.
    """
    known = read_projects(vault)
    found = next((project for project in known if name in (project.name, project.label)), None)
    if found is None:
        close = get_close_matches(name, [project.name for project in known], n=1)
        hint = f"Did you mean {close[0]}?" if close else "See them with: quaid project list"
        raise BadInputError(f"There is no project {name!r}. {hint}")
    return found


def parse_project(name: str, data: bytes, place: Layout = DEFAULT) -> Project:
    """Parse a PROJECT.md. A value that cannot be read is a problem and counts as absent."""
    head = frontmatter.parse(data.decode("utf-8", "replace"))
    fields = head.fields
    problems = list(head.problems)
    state = _text(fields, "state") or "active"
    if state not in STATES:
        problems.append(f"state should be one of {', '.join(STATES)}, is {state!r}")
        state = "active"
    return Project(
        name=name,
        label=_text(fields, "label") or name,
        source_roots=_list(fields, "source_roots"),
        patterns=_patterns(fields, "patterns", problems) or PATTERNS,
        exclude=_patterns(fields, "exclude", problems),
        state=state,  # type: ignore[arg-type] # one of STATES, as was just seen
        auto_index=(_text(fields, "auto_index") or "true").lower() not in {"false", "no", "off", "0"},
        registered=tuple(RegisteredDoc.parse(line) for line in _list(fields, "documents") if line.strip()),
        problems=tuple(problems),
        layout=place,
    )


def name_of(label: str) -> str:
    """Return the name of a project with this label: lower case, hyphens.

    Raises:
        BadInputError: nothing is left of it.
    """
    label = admit(label).text
    name = label if _NAME.fullmatch(label) else layout.slug(label)
    if not _NAME.fullmatch(name) or (name == "note" and label.lower() != "note") or re.search(r"[/\\]", label):
        raise BadInputError(f"{label!r} cannot be the name of a project. Use letters, digits and hyphens.")
    return name


def plan_create(project: Project, about: str, now: datetime) -> Edit:
    """Return the edit that creates a PROJECT.md."""
    fields: Mapping[str, frontmatter.Value | None] = {
        "type": "project",
        "label": project.label,
        "aliases": list(dict.fromkeys([project.name, project.label])),
        "source_roots": list(project.source_roots) or None,
        "patterns": list(project.patterns) if project.patterns != PATTERNS else None,
        "exclude": list(project.exclude) or None,
        "state": project.state,
        "auto_index": project.auto_index,
        "created": notes.render_time(now),
    }
    return Edit(project.path, None, f"{frontmatter.render(fields)}\n# {project.label}\n\n{about}\n".encode())


def plan_fields(path: str, data: bytes, changes: Mapping[str, frontmatter.Value | None]) -> Edit:
    """Set fields of a frontmatter: a project's, or `sources` and `true_at` of a document; nothing else changes.

    Raises:
        NoteBrokenError: the frontmatter cannot be changed, or is not UTF-8.
    """
    try:
        return Edit(path, data, frontmatter.set_fields(data.decode("utf-8"), changes).encode())
    except frontmatter.FrontmatterBrokenError as error:
        raise NoteBrokenError(path, str(error)) from error
    except UnicodeDecodeError as error:
        raise NoteBrokenError(path, "it is not UTF-8") from error


def plan_document(project: Project, data: bytes, path: str, changes: Mapping[str, Any]) -> Edit:
    """Change the row of a document, or add it.

    Raises:
        BadInputError: a line of the registry cannot hold it.
    """
    known = next((doc for doc in reversed(project.registered) if doc.path == path), None)
    row = replace(known or RegisteredDoc(path), **changes)
    if RegisteredDoc.parse(row.render()) != row:
        raise BadInputError(
            f"{row.render()!r} would be read as something else: commas, <- and @ separate the parts of a line. "
            "Say it in the document's own frontmatter (sources, true_at)."
        )
    rows = [row if doc is known else doc for doc in project.registered] + ([] if known else [row])
    return plan_fields(project.path, data, {"documents": [each.render() for each in rows]})


def _text(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    return value.strip() or None if isinstance(value, str) else None


def _patterns(fields: Mapping[str, Any], key: str, problems: list[str]) -> tuple[str, ...]:
    """Return those that can be read as lines of a .gitignore."""
    found = []
    for text in _list(fields, key):
        try:
            if _MAY_BE_INVALID.search(text):
                import pathspec

                pathspec.GitIgnoreSpec.from_lines([text, f"/{text}"])
            found.append(text)
        except (ValueError, re.error):
            problems.append(f"{key} has {text!r}, which is not a pattern")
    return tuple(found)


def _list(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, frontmatter.list_values(fields.get(key)))))
