"""Pages of projects: the freshness of their documents, the changes of their sources, and proposed updates; without what
other owners keep private.
"""

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.requests import Request

from quaid.docs.catalogue import Doc
from quaid.docs.freshness import PARTS, WORDS, Freshness, describe
from quaid.docs.registry import STATES, Project
from quaid.docs.source_roots import check_roots, next_step
from quaid.docs.updates import DocUpdate, OpenDoc
from quaid.errors import BadInputError, QuaidError
from quaid.history.proposal import Proposed
from quaid.memory import Memory
from quaid.recall.visibility import visible_paths
from quaid.redaction import admit
from quaid.web.answer import Shown, go_to
from quaid.web.word_diff import diff_words, read_diff

HERE = "/projects"
MAX_DOCS = 200
"""Documents of a project on one page, those that are stale first."""


class ProjectView(NamedTuple):
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


def show_projects(memory: Memory, _: Request) -> Mapping[str, Any]:
    """Return all projects as their last check has left them."""
    known = memory.documentation.known()
    projects = memory.documentation.projects(STATES)
    return {"views": [_view(memory, each, known) for each in projects if _sees(memory, each.path)]}


def show_project(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return a project as its last check has left it. No repository is read."""
    project = _find_project(memory, request.path_params["name"])
    return _describe_project(_view(memory, project, memory.documentation.known()))


def show_checked(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Check the documents of a project and return it."""
    project = _find_project(memory, request.path_params["name"])
    catalogue = memory.documentation.catalogue(project.name)
    found = [freshness for _, freshness in memory.documentation.check((), project.name, catalogue)]
    return _describe_project(_view(memory, project, found, catalogue.remarks))


def show_document(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return a document with what changed of its sources."""
    view = _check_doc(memory, request.path_params["name"], request.query_params.get("id", ""))
    return _describe_doc(memory, view)


def confirm(memory: Memory, form: Mapping[str, str], _: Request) -> str:
    """Note that a document is true as its sources are now."""
    view = _check_doc(memory, form.get("project", ""), form.get("id", ""))
    written = memory.documentation.confirm(view.doc.id, view.project.name, by_owner=True)
    return go_to(_doc_path(view), "left" if written.left else "doc_confirmed", written.commit)


def propose(memory: Memory, form: Mapping[str, str], _: Request) -> str | Shown:
    """Ask the deep model how a stale document becomes true, and show what it proposes; carry out what was `shown`: a
    commit in the vault, or a branch in the source repository. The answer is cached, so that it is the same.
    """
    memory.documentation.finish_killed()
    view = _check_doc(memory, form.get("project", ""), form.get("id", ""))
    found = list(memory.documentation.propose([view.doc.id], view.project.name))
    proposed = next((each for each in found if not isinstance(each, str)), None)
    if proposed is None and found:
        return Shown("document.html", {**_describe_doc(memory, view), "problem": " ".join(map(str, found))})
    if proposed is None or not proposed[1].edits:
        return f"{_doc_path(view)}&said=doc_still_true"
    if form.get("shown") != _name_proposal(*proposed):
        return _show_proposal(view, *proposed, is_another="shown" in form)
    done = memory.documentation.apply(*proposed, by_owner=True)
    if not isinstance(done, Proposed):
        return go_to(_doc_path(view), "left" if done.left else "doc_updated", done.commit)
    merge = f"git -C {shlex.quote(str(view.doc.folder))} merge {shlex.quote(done.branch)}"
    context = {"view": view, "branch": done.branch, "merge": merge, "back": _doc_path(view)}
    return Shown("updated.html", context, 200)


def _show_proposal(view: DocView, stale: OpenDoc, update: DocUpdate, *, is_another: bool = False) -> Shown:
    # Secrets are removed first: pieces of one would not look like it.
    before, after = (admit(side, keep_lines=True).text for side in (stale.text, update.after))
    context = {
        **_name(view),
        "update": update,
        "pieces": diff_words(before, after),
        "shown": _name_proposal(stale, update),
        "is_another": is_another,
    }
    return Shown("proposal.html", context, 409 if is_another else 200)


def _name_proposal(stale: OpenDoc, update: DocUpdate) -> str:
    shown = repr((stale.doc.id, stale.data, update.after))
    return hashlib.sha256(shown.encode("utf-8", "surrogateescape")).hexdigest()


def _describe_project(view: ProjectView) -> Mapping[str, Any]:
    name = view.project.name
    return {
        "view": view,
        "words": WORDS,
        "parts": PARTS,
        "docs": [(one, describe(one), _address(name, one.doc)) for one in view.docs],
        "max_docs": MAX_DOCS,
        "check": f"{HERE}/{quote(name, safe='')}/check",
    }


def _describe_doc(memory: Memory, view: DocView) -> Mapping[str, Any]:
    # Secrets are removed first, as above.
    diffs = [read_diff(admit(diff, keep_lines=True).text) for diff in view.diffs.values()]
    cost, why_not = None, ""
    try:
        cost = memory.documentation.estimate_update(view.doc, view.freshness)
    except QuaidError as error:
        why_not = str(error)
    return {
        **_name(view),
        "about": describe(view.freshness),
        "words": WORDS,
        "parts": PARTS,
        "changes": list(zip(view.freshness.findings, diffs, strict=False)),
        "cost": cost,
        "why_not": why_not,
        "models": memory.settings.models,
        "problem": "",
    }


def _name(view: DocView) -> Mapping[str, Any]:
    return {"view": view, "home": f"{HERE}/{quote(view.project.name, safe='')}"}


def _check_doc(memory: Memory, name: str, doc_id: str) -> DocView:
    project = _find_project(memory, name)
    ((doc, freshness),) = memory.documentation.check([doc_id], project.name)
    diffs = memory.documentation.changes([freshness])[doc.id] if freshness.is_stale else {}
    return DocView(project, doc, freshness, diffs)


def _find_project(memory: Memory, name: str) -> Project:
    project = memory.documentation.project(name)
    if not _sees(memory, project.path):
        raise BadInputError(f"There is no project {name!r}. See them with: quaid project list")
    return project


def _doc_path(view: DocView) -> str:
    return _address(view.project.name, view.doc.id)


def _address(project: str, doc_id: str) -> str:
    return f"{HERE}/{quote(project, safe='')}/document?id={quote(doc_id, safe='/:')}"


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
