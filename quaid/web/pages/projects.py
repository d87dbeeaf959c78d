"""Pages of projects: the freshness of their documents, the changes of their sources, and proposed updates."""

import hashlib
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from quaid.docs.freshness import PARTS, WORDS, describe
from quaid.docs.updates import DocUpdate, OpenDoc
from quaid.errors import QuaidError
from quaid.history.proposal import Proposed
from quaid.memory import Memory
from quaid.redaction import admit
from quaid.report.projects import DocView, ProjectView, check_doc, list_projects, read_project
from quaid.web.answer import Shown, go_to
from quaid.web.word_diff import diff_words, read_diff

HERE = "/projects"
MAX_DOCS = 200
"""Documents of a project that are listed, those that are stale first."""


def show_projects(memory: Memory, _: Request) -> Mapping[str, Any]:
    """Return all projects as their last check has left them."""
    return {"views": list_projects(memory)}


def show_project(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return a project as its last check has left it."""
    return _describe_project(read_project(memory, request.path_params["name"]))


def show_checked(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Check the documents of a project and return it. Raises as `show_project`."""
    return _describe_project(read_project(memory, request.path_params["name"], is_checked=True))


def show_document(memory: Memory, request: Request) -> Mapping[str, Any]:
    """Return a document with what changed of its sources."""
    doc_id = request.query_params.get("id", "")
    return _describe_doc(memory, check_doc(memory, request.path_params["name"], doc_id))


def confirm(memory: Memory, form: Mapping[str, str], _: Request) -> str:
    """Note that a document is true as its sources are now."""
    view = _find_doc(memory, form)
    written = memory.documentation.confirm(view.doc.id, view.project.name, by_owner=True)
    return go_to(_doc_path(view), "left" if written.left else "doc_confirmed", written.commit)


def propose(memory: Memory, form: Mapping[str, str], _: Request) -> str | Shown:
    """Ask the deep model how a stale document becomes true, and show what it proposes; carry out what was `shown`: a
    commit in the vault, or a branch in the source repository. The answer is cached, so that it is the same.
    """
    memory.documentation.finish_killed()
    view = _find_doc(memory, form)
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
        "docs": [(one, describe(one), _address(name, one.doc)) for one in view.docs[:MAX_DOCS]],
        "more": max(0, len(view.docs) - MAX_DOCS),
        "check": f"{HERE}/{quote(name, safe='')}/check",
    }


def _describe_doc(memory: Memory, view: DocView) -> Mapping[str, Any]:
    # Secrets are removed first, as above.
    diffs = {path: read_diff(admit(diff, keep_lines=True).text) for path, diff in view.diffs.items()}
    paths = iter(diffs)
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
        "changes": [(finding, diffs[next(paths)]) for finding in view.freshness.findings],
        "cost": cost,
        "why_not": why_not,
        "models": memory.settings.models,
        "problem": "",
    }


def _name(view: DocView) -> Mapping[str, Any]:
    return {"view": view, "home": f"{HERE}/{quote(view.project.name, safe='')}"}


def _find_doc(memory: Memory, form: Mapping[str, str]) -> DocView:
    return check_doc(memory, form.get("project", ""), form.get("id", ""))


def _doc_path(view: DocView) -> str:
    return _address(view.project.name, view.doc.id)


def _address(project: str, doc_id: str) -> str:
    return f"{HERE}/{quote(project, safe='')}/document?id={quote(doc_id, safe='/:')}"
