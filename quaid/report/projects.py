"""Projects and how true their documents are, as the last check found or as a new one finds, without the private ones of
other owners.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quaid.docs.catalogue import Doc, find_doc
from quaid.docs.freshness import Freshness
from quaid.docs.registry import STATES, Project
from quaid.docs.source_roots import check_roots, next_step
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
    def counts(self) -> Counter[str]:
        return Counter(found.status for found in self.docs)

    @property
    def checked(self) -> int:
        """The number of documents of which something is known: the others are unknown."""
        return sum(self.counts[status] for status in ("fresh", "moved", "stale"))


class DocView(NamedTuple):
    """A document of a project, how fresh it is, and the diff of each source that made it stale."""

    project: Project
    doc: Doc
    freshness: Freshness
    diffs: Mapping[str, str]


def list_projects(memory: Memory) -> list[ProjectView]:
    """Return the projects, whatever their state, as their last check has left them. No repository is read."""
    known = memory.documentation.known()
    return [_view(memory, each, known) for each in memory.documentation.projects(STATES) if _sees(memory, each.path)]


def read_project(memory: Memory, name: str, *, is_checked: bool = False) -> ProjectView:
    """Return one project as its last check has left it, or as a check now finds it, which reads its repositories.

    Raises:
        BadInputError: no project has that name.
    """
    project = _find_project(memory, name)
    if not is_checked:
        return _view(memory, project, memory.documentation.known())
    catalogue = memory.documentation.catalogue(project.name)
    found = [freshness for _, freshness in memory.documentation.check_docs(catalogue.docs)]
    return _view(memory, project, found, catalogue.remarks)


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


def _view(
    memory: Memory, project: Project, known: Sequence[Freshness], found: Sequence[str] | None = None
) -> ProjectView:
    """Return a project with what is `known` of its documents, and what a check has `found` odd, if there was one."""
    remarks = (
        found
        if found is not None
        else [
            f"The source root {root.written} {root.problem}. {next_step(project.name, root)}"
            for root in check_roots(memory.root, project.source_roots)
            if root.problem
        ]
    )
    own = {freshness.doc: freshness for freshness in known if project.owns(freshness.doc)}
    shown = [own[path] for path in visible_paths([*own], memory.whole_index(), memory.visible_index())]
    docs = [one for one in shown if one.status != "record"]
    docs.sort(key=lambda one: (not one.is_stale, -one.certainty, one.status == "no sources", one.doc))
    problems = (f"{project.path}: {problem}" for problem in project.problems)
    return ProjectView(project, tuple(docs), len(shown) - len(docs), (*problems, *remarks), found is not None)


def _sees(memory: Memory, path: str) -> bool:
    return bool(visible_paths([path], memory.whole_index(), memory.visible_index()))
