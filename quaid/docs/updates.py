"""Edits of documents as models propose them: updates of stale ones, cuts of those that have grown.

An edit replaces an exact passage. Each proposal is validated against the document and its sources. What its owner takes
becomes a commit in the vault, or a branch in the source repository.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from quaid.docs import markup, registry
from quaid.docs.catalogue import Doc
from quaid.docs.changes import SourceChange, excerpt, find_removed, make_patch, read_text, shorten_lines, show_changes
from quaid.docs.freshness import Freshness
from quaid.docs.source_trees import SourceTrees
from quaid.docs.validation import faults, find_invented
from quaid.errors import ModelAnswerError, NoteBrokenError, NoteChangedError, ProposalError, name_first
from quaid.history import proposal
from quaid.history.messages import render
from quaid.history.proposal import Proposed
from quaid.history.source_repository import MAX_COMMITS, open_repository
from quaid.llm import Models
from quaid.llm.exchange import ItemProblem
from quaid.local.runs import Judgements, evidence_key
from quaid.model import Edit, Message, SourceEdit
from quaid.redaction import admit
from quaid.text.quoting import neutralise
from quaid.text.zones import local_now
from quaid.vault import files, headings, replacements
from quaid.vault.replacements import Replacement

UPDATE, CLEANUP = "docs_staleness", "docs_cleanup"
"""The tasks of the janitor, which also name what was decided."""
PROMPTS = {UPDATE: "docs_update", CLEANUP: "docs_cleanup"}
TINY = 600
"""Characters: half of a document of this size may be one sentence."""
MAX_GROWN = 60_000
"""Characters of a document that is to be shortened."""
_MAX_STALE, _MAX_CHANGES, _MAX_UNDONE = 3_400, 3_400, 400
"""Characters of a stale document, of the changes and of refused edits: with the prompt some 4,000 tokens."""
RECENT_S = 90 * 86_400
LARGE = 20_000
"""Bytes: one in ten of 304 READMEs of packages is as large. A smaller document is read whole."""
MANY_CHANGES = 12
"""In that time: one a week, as a document is changed with nearly every piece of work on its subject."""
MUCH_GROWTH = 1.5
"""Times its former size: whatever was added replaced nothing."""


class DocUpdate(NamedTuple):
    """The answer of a model: `edits` of a document, in the order of their places, make `after`. Without edits it stays
    as it is.
    """

    edits: tuple[Replacement, ...]
    after: str
    summary: str
    model: str
    prompt: str


class OpenDoc(NamedTuple):
    """A document as it is on the disk, with all that a model is shown of it: a stale one, or without `freshness` one
    that has grown. `why` says so in a sentence.

    `changes` belong to the findings of `freshness`, in their order, then come those of tests; `head` is the commit that
    has the sources as they are now.
    """

    doc: Doc
    data: bytes
    why: str
    freshness: Freshness | None = None
    changes: Sequence[SourceChange] = ()
    head: str | None = None

    @property
    def task(self) -> str:
        return CLEANUP if self.freshness is None else UPDATE

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "surrogateescape")

    @property
    def is_committed(self) -> bool:
        """Whether the HEAD of its repository has it like this."""
        found = open_repository(self.doc.file.parent)
        return found is not None and found.holds(found.inside(self.doc.file), self.data)

    @property
    def key(self) -> str:
        """The key of a decision about it: the document and the changes of its sources."""
        changed = [self.freshness.evidence] if self.freshness is not None else []
        return evidence_key(self.task, self.doc.evidence(self.data), *changed)

    # -- asked -------------------------------------------------------------------------------------------------------

    def inputs(self, refused: Sequence[str] = ()) -> dict[str, str]:
        """Return the inputs of the prompt; `refused` are earlier edits that the owner refused, the newest first."""
        longest = MAX_GROWN if self.freshness is None else _MAX_STALE
        doubts = self.freshness.doubts if self.freshness is not None else ()
        undone = shorten_lines("\n".join(json.dumps(text, ensure_ascii=False) for text in refused), _MAX_UNDONE)
        inputs = {
            "today": f"{local_now():%A %Y-%m-%d}",
            "doc_path": headings.one_line(self.doc.rel_path),
            "doc": excerpt(self.doc.rel_path, self.text, self.changes, longest, doubts),
            "undone_edits": undone or "(nothing so far)",
        }
        if self.freshness is not None:
            inputs["source_changes"] = show_changes(self.text, self.changes, _MAX_CHANGES, doubts) or "(nothing)"
            inputs["removed_values"] = "\n".join(find_removed(self.text, self.changes)) or "(none)"
        return inputs

    def ask(self, models: Models, judgements: Judgements, refused: Sequence[str] = ()) -> DocUpdate:
        """Ask for edits after which a stale document is true of its sources again, or for cuts of one that has grown,
        and store it where none are needed.

        Raises:
            ModelAnswerError: an edit cannot be made, or the result is not allowed; nothing is applied in part.
            ModelError: as `Models.ask`.
        """
        prompt = models.prompt(PROMPTS[self.task])
        answer = models.ask(prompt, self.inputs(refused), check=lambda value: self._fit(value)[1])
        edits, problems = self._fit(answer.value)
        if problems:
            raw = json.dumps(answer.value)
            raise ModelAnswerError(answer.model, answer.prompt, "; ".join(map(str, problems)), raw)
        after = replacements.apply(self.text, edits)
        key, summary = self.key, f"{len(self.text) - len(after):,} of {len(self.text):,} characters can go."
        if self.freshness is not None:
            key, summary = self.freshness.evidence, clean(answer.value["summary"]) or "It is true as it is."
            left = "; ".join(find_removed(after, self.changes))
            summary += f" It still has {left}." if left else ""
        if not edits:
            judgements.add(self.task, {key: summary})
        return DocUpdate(tuple(edits), after, summary, answer.model, answer.prompt)

    def _fit(self, value: Mapping[str, Any]) -> tuple[list[Replacement], list[str | ItemProblem]]:
        """Return the edits of an answer that can be made, and what is wrong with the answer."""
        lines = [line.removesuffix("\r") for line in headings.text_lines(self.text)]
        spans = list(headings.sections(self.text, markup.read_blocks(self.doc.rel_path, lines)))
        fitted, unfit = replacements.fit(self.text, value["edits"], spans)
        edits = [replace(edit, reason=clean(edit.reason)) for edit in fitted]
        problems: list[str | ItemProblem] = [ItemProblem("edits", place, problem) for place, problem in unfit]
        if value.get("still_true", not value["edits"]) == bool(value["edits"]):
            problems.append("`still_true` is true exactly when there are no edits")
        if edits and not problems:
            before, after = (each.replace("\r\n", "\n") for each in (self.text, replacements.apply(self.text, edits)))
            problems += [*faults(before, after), *self._find_excess(before, after, edits)]
        return edits, problems

    def _find_excess(self, before: str, after: str, edits: Sequence[Replacement]) -> Iterator[str]:
        """Yield why edits change too much of the document, or say what neither it nor its sources do."""
        size = len(before) - headings.text_start(before)
        if size >= TINY and 2 * sum(edit.end - edit.start for edit in edits) > size:
            yield "that is more than half of the doc: change no more than is needed"
        if len(after) >= (len(before) if self.freshness is None else 2 * len(before) + TINY):
            yield "the doc would be too long: change no more than is needed"
        changed = "\n".join(line for change in self.changes for line in change.lines)
        # A claim may have the words of all of the changed sources.
        sides = [read_text(side) for change in self.changes for side in (change.before, change.after)]
        if names := find_invented(before, after, changed, "\n".join([changed, *sides])):
            shown = name_first([f"`{name}`" for name in names])
            yield f"`replace` names {shown}, which neither the sources nor the doc do"

    # -- carried out -------------------------------------------------------------------------------------------------

    def describe(self, update: DocUpdate) -> str:
        """Return a line for each edit: what becomes what, and why."""
        return "\n".join(clean(replacements.describe(self.text, edit)) for edit in update.edits)

    def make_edit(self, update: DocUpdate) -> Edit | SourceEdit:
        """Return the edit that carries out an update; one of the vault also notes at which commit it is true."""
        doc, after = self.doc, update.after.encode("utf-8", "surrogateescape")
        if not doc.is_in_vault:
            return SourceEdit(str(doc.folder), doc.rel_path, self.data, after, render(self.write_message(update)))
        if self.head is not None:
            with suppress(NoteBrokenError):  # then the day of the commit says it
                after = registry.plan_fields(doc.rel_path, after, {"true_at": self.head}).after or after
        return Edit(doc.rel_path, self.data, after)

    def write_message(self, update: DocUpdate) -> Message:
        """Return the message of the commit that carries out an update."""
        verb = "shorten" if self.freshness is None else "update"
        body = "\n\n".join(part for part in (update.summary, self.describe(update), self.why) if part)
        trailers = (("Quaid-Task", self.task), ("Quaid-Model", update.model), ("Quaid-Prompt", update.prompt))
        return Message(f"docs: {verb} {headings.one_line(self.doc.rel_path)}", body, trailers)

    def render_patch(self, update: DocUpdate) -> str:
        """Return an update as a patch that `git apply` takes, in the repository or in the vault."""
        found = open_repository(self.doc.file.parent) if not self.doc.is_in_vault else None
        return make_patch(found.inside(self.doc.file) if found else self.doc.rel_path, self.text, update.after)


def open_stale(trees: SourceTrees, doc: Doc, freshness: Freshness) -> OpenDoc:
    """Read a stale document and its sources."""
    found, since = freshness.findings, freshness.since
    data = files.read_note(doc.folder, doc.rel_path) or b""
    why = f"Stale since {since.id[:10]} ({clean(since.subject)})." if since is not None else ""
    paths = dict.fromkeys(finding.path for finding in found)
    tests = (each for each in trees.read_tests(found) if each.finding.path not in paths)
    changes = (*trees.read_changes(found), *tests)
    return OpenDoc(doc, data, why, freshness, changes, trees.newest_head(doc))


def find_grown(trees: SourceTrees, docs: Iterable[Doc], now: datetime) -> Iterator[OpenDoc]:
    """Yield the documents that many additions have made larger, the largest first.

    Raises:
        GitError: the history of one cannot be read.
    """
    sizes = {doc: doc.file.stat().st_size for doc in docs if doc.file.is_file()}
    for doc in sorted((doc for doc in sizes if sizes[doc] >= LARGE), key=lambda doc: -sizes[doc]):
        if (tree := trees.open(doc.file.parent)) is not None:
            path = tree.inside(doc.file)
            log = tree.read_log(MAX_COMMITS, [path]).changes(path)
            stored = tree.git.read_sizes(touch.after for _, touch in log if touch.after)
            life = [(each.at, stored[touch.after]) for each, touch in log if touch.after in stored]
            if why := describe_growth(life, now.timestamp()):
                yield OpenDoc(doc, files.read_note(doc.folder, doc.rel_path) or b"", why)


def describe_growth(commits: Iterable[tuple[float, int]], now: float) -> str:
    """Describe the growth of a document that may be worth shortening: large, often changed, and much larger than it was
    90 days ago. Empty for any other, and for one that was begun since.

    `commits` are (seconds, size in bytes) of each commit that changed it.
    """
    sized = sorted(commits)
    older = [size for at, size in sized if at <= now - RECENT_S]
    changes = len(sized) - len(older)
    if not older or changes < MANY_CHANGES or sized[-1][1] < max(LARGE, MUCH_GROWTH * older[-1]):
        return ""
    growth = sized[-1][1] / max(1, older[-1])
    return f"It was changed {changes:,} times in three months and is {growth:.1f} times what it was."


def apply_stored(found: Sequence[Freshness], judgements: Judgements) -> list[Freshness]:
    """Return `found`, and as fresh what a model has found to be true with the changes of its sources."""
    keys = {one.doc: one.evidence for one in found if one.is_stale}
    known = judgements.known(list(keys.values()))
    return [
        replace(one, status="fresh", since=None, findings=(), doubts=(), certainty=0.0)
        if keys.get(one.doc) in known
        else one
        for one in found
    ]


def clean(text: str) -> str:
    """Return text of a model, a document or a source as one line that is fit for a commit and a question."""
    return headings.one_line(neutralise(admit(text.encode("utf-8", "replace").decode()).text))


def propose_branch(edit: SourceEdit, task: str, key: str, judgements: Judgements) -> Proposed:
    """Create the branch that an edit of a source repository becomes, and store that for the evidence `key`.

    Raises:
        NoteChangedError: another state of the file was committed since.
        ProposalError: as `proposal.propose_branch`.
    """
    file = Path(edit.folder, edit.path)
    folder = file.parent.resolve()
    found = open_repository(folder) if folder.is_dir() else None
    if found is None:
        raise ProposalError(edit.folder, "there is no repository any more", "Say where it is now in source_roots")
    path = (folder / file.name).relative_to(found.top.resolve()).as_posix()
    now = files.read_note(folder, file.name)
    if now != edit.before and (path not in found.files if now is None else found.holds(path, now)):
        raise NoteChangedError(edit.path)
    name = proposal.name_branch(path, edit.after)
    made = proposal.propose_branch(folder, name, path, edit.before, edit.after, edit.message)
    judgements.add(task, {key: f"branch {made.branch}"})
    return made
