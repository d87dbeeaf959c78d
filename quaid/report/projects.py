"""Projects and how true their documents are: as the last check found, at once, or as a new check finds.

Projects and documents of the vault that others keep private are left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quaid.docs.catalogue import Doc, find_doc
from quaid.docs.freshness import Freshness, State
from quaid.docs.registry import STATES, Project
from quaid.docs.source_roots import check_roots, next_step
from quaid.docs.sources import is_record
from quaid.errors import BadInputError
from quaid.memory import Memory
from quaid.recall.visibility import visible_paths


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project with its documents, those that are stale first. `records` counts changelogs, dated decisions and the
    like, which are not checked; `remarks` are sentences about what is missing, moved or refused. `is_checked` says
    that it was checked just now.
    """

    project: Project
    docs: tuple[Freshness, ...]
    records: int
    remarks: tuple[str, ...]
    is_checked: bool

    @property
    def counts(self) -> Mapping[State, int]:
        return Counter(found.state for found in self.docs)

    @property
    def checked(self) -> int:
        """The number of documents that are true or stale: of the others it is not known."""
        return sum(found.status in {"fresh", "stale"} for found in self.docs)

    @property
    def true(self) -> int:
        return sum(found.status == "fresh" for found in self.docs)


class DocView(NamedTuple):
    """A document of a project, how fresh it is, and the diff of each source that made it stale."""

    project: Project
    doc: Doc
    freshness: Freshness
    diffs: Mapping[str, str]


def list_projects(memory: Memory) -> list[ProjectView]:
    """Return the projects, whatever their state, as their last check has left them. No repository is read."""
    projects = [each for each in memory.documentation.projects(STATES) if _sees(memory, each.path)]
    known = memory.documentation.known()
    return [_view_known(memory, project, known) for project in projects]


def read_project(memory: Memory, name: str) -> ProjectView:
    """Return one project as its last check has left it.

    Raises:
        BadInputError: no project has that name.
    """
    return _view_known(memory, _find_project(memory, name), memory.documentation.known())


def check_project(memory: Memory, name: str) -> ProjectView:
    """Check the documents of a project, which reads its repositories, and return it. Raises as `read_project`."""
    project = _find_project(memory, name)
    catalogue = memory.documentation.catalogue(project.name)
    found = memory.documentation.check_docs(catalogue.docs)
    return _view(memory, project, [freshness for _, freshness in found], catalogue.remarks, is_checked=True)


def check_doc(memory: Memory, name: str, doc_id: str) -> DocView:
    """Check one document.

    Raises:
        BadInputError: there is no such project or document.
    """
    project = _find_project(memory, name)
    docs = [doc for doc in memory.documentation.catalogue(project.name).docs if _sees(memory, doc.id)]
    doc = find_doc(docs, doc_id)
    ((_, freshness),) = memory.documentation.check_docs([doc])
    diffs = memory.documentation.changes([freshness])[doc.id] if freshness.is_stale else {}
    return DocView(project, doc, freshness, diffs)


def _find_project(memory: Memory, name: str) -> Project:
    project = memory.documentation.project(name)
    if not _sees(memory, project.path):
        raise BadInputError(f"There is no project {name!r}. See them with: quaid project list")
    return project


def _view_known(memory: Memory, project: Project, known: Sequence[Freshness]) -> ProjectView:
    refused = [
        f"The source root {root.written} {root.problem}. {next_step(project.name, root)}"
        for root in check_roots(memory.root, project.source_roots)
        if root.problem
    ]
    found = [freshness for freshness in known if project.owns(freshness.doc)]
    return _view(memory, project, found, refused, is_checked=False)


def _view(
    memory: Memory, project: Project, found: Sequence[Freshness], remarks: Sequence[str], *, is_checked: bool
) -> ProjectView:
    paths = [freshness.doc for freshness in found]
    seen = set(visible_paths(paths, memory.whole_index(), memory.visible_index()))
    shown = [freshness for freshness in found if freshness.doc in seen]
    docs = [one for one in shown if one.status != "no sources" or not is_record(one.doc.partition(":")[2] or one.doc)]
    docs.sort(key=lambda one: (not one.is_stale, one.status == "no sources", one.doc))
    all_remarks = (*(f"{project.path}: {problem}" for problem in project.problems), *remarks)
    return ProjectView(project, tuple(docs), len(shown) - len(docs), all_remarks, is_checked)


def _sees(memory: Memory, path: str) -> bool:
    return bool(visible_paths([path], memory.whole_index(), memory.visible_index()))
