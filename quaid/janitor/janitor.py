"""The janitor of a vault: start a run, record it, and write what the owner answers."""

import hashlib
import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quaid.capture.note_finder import list_waiting
from quaid.capture.writer import WritePlan, Writer, WriteResult
from quaid.docs.documentation import Documentation
from quaid.errors import BadInputError, NoteNotFoundError, QuaidError
from quaid.history.repository import find_repository
from quaid.index import documents, graph, references
from quaid.index.documents import list_living
from quaid.index.port import IndexConnection
from quaid.index.scope import EVERYTHING
from quaid.janitor import disputes, questions
from quaid.janitor.decision import SET_ASIDE, RunReport
from quaid.janitor.guards import find_problems
from quaid.janitor.news import MAX_LISTED, render_digest, render_docs_news, render_news
from quaid.janitor.questions import Answer, Question
from quaid.janitor.runner import RunOptions, run_tasks, select_tasks
from quaid.janitor.settling import settle_merges
from quaid.janitor.tasks import docs
from quaid.janitor.vetoes import REVIEW, TASK
from quaid.local import recall_log
from quaid.local.notifications import Feature, deliver, level_of
from quaid.local.recall_summary import measure
from quaid.local.runs import Decision, Decisions, HealthLog, Judgements, Run, Runs, Snapshot, evidence_key
from quaid.local.session_notes import SessionNotes
from quaid.model import Edit, Message, note_name
from quaid.open_vault import OpenVault
from quaid.place import FOLLOWED_FILE, INDEX_FILE, LOCAL_FILE, state_folder
from quaid.recall.visibility import find_hidden_names
from quaid.remotes.exchange import Exchange
from quaid.shapes import json_object
from quaid.sync.derived_index import SyncOptions
from quaid.vault import files, layout


class Janitor:
    """The janitor of one vault."""

    def __init__(self, vault: OpenVault, documentation: Documentation) -> None:
        self._vault = vault
        self._root = vault.root
        self._settings = vault.settings
        self._documentation = documentation
        self._state = vault.state
        self._runs = Runs(self._state / LOCAL_FILE)

    def run(self, options: RunOptions, now: datetime | None = None) -> RunReport:
        """Run once and record it however it ends. `now` is the clock's by default.

        Raises:
            LockedError, JanitorStoppedError, QuaidError: nothing was done.
        """
        now = now or datetime.now(UTC)
        vault, state = self._vault, self._state
        if not options.dry_run:
            vault.check_settings()
            Exchange(vault, settle_merges).hold_lease(datetime.now(UTC), take_over=options.take_over)
            settle_merges(vault)
        last = self._runs.last_success()
        notes_before = last.notes_after if last else None
        began = Run(layout.new_id(now), now.isoformat(), notes_before=notes_before or 0)
        if not options.dry_run:
            self._runs.add(began)
        report = RunReport(began.run, now, options.dry_run)
        judgements = Judgements(state / LOCAL_FILE, datetime.now(UTC).date().isoformat())
        try:
            vault.sync(SyncOptions(accept_removals=options.accept_removals))
            is_whole = not (options.dry_run or options.only_answers)
            names = {task.name for task in select_tasks(options)} if is_whole else set()
            if "memories" in names and (state / FOLLOWED_FILE).exists():
                from quaid.janitor.following import propose_changes  # most runs need no reader of memories

                propose_changes(vault, report)
            is_reading = self._settings.capture.facts and "extract" in names
            if is_reading and SessionNotes(state / LOCAL_FILE).list_overdue(now):
                from quaid.capture.extractor import Extractor

                Extractor(vault).store_overdue_notes(now)
                vault.sync(None)
            if is_reading and vault.models.describe().provider and (waiting := list_waiting(self._root, vault.index())):
                from quaid.janitor.waiting import learn_waiting  # most runs need no reader of conversations

                learn_waiting(vault, waiting, judgements, report)
            run_tasks(vault, self._documentation, options, report, notes_before)
            if not options.tasks or "docs_staleness" in options.tasks:
                docs.report_stale(self._documentation, self._settings, report)
        except QuaidError as error:
            if not options.dry_run:
                ended = datetime.now(UTC).isoformat()
                self._runs.finish(began._replace(outcome="stopped", ended=ended, problem=str(error)))
                self._deliver(f"Quaid's janitor stopped: {error}")
            raise
        vault.sync(None)
        report.remarks += find_problems(vault.index())
        if not options.dry_run:
            self._record(began, report, options, last)
        return report

    def open_questions(self) -> list[Question]:
        """Return the open questions, by path."""
        return questions.list_questions(self._root, self._vault.layout)

    def visible_questions(self) -> list[Question]:
        """Return the open questions without those about a note that another owner keeps private."""
        found = self.open_questions()
        if not found:  # every page of quaid view calls this
            return []
        hidden = find_hidden_names(
            {name for question in found for name in question.about},
            self._vault.whole_index(),
            self._vault.visible_index(),
            self._vault.git,
            self._vault.owners,
            self._vault.layout,
        )
        return [question for question in found if hidden.isdisjoint(question.about)]

    def find_decision(self, key: str) -> Decision | None:
        """Return the decision of the open question `key`; None if another machine has asked it."""
        return Decisions(self._state / LOCAL_FILE).get(key)

    def answer(self, reference: str, answer: Answer, *, by_owner: bool = False) -> tuple[list[Question], WriteResult]:
        """Tick a box of the question named by its file or key, or of `all` that take this answer.
        Return the questions and the result of writing them. `by_owner` is as for `Writer.write`.

        Raises:
            NoteNotFoundError, BadInputError: there is no such question, none at all, or it takes other answers.
        """
        named = [question for question in self.open_questions() if question.is_called(reference)]
        matching = [question for question in named if answer in question.answers]
        if not named and reference == "all":
            raise BadInputError("No question waits for an answer. Look for some with: quaid janitor run")
        if not named:
            raise NoteNotFoundError(reference)
        if not matching:
            name, answers = note_name(named[0].rel_path), ", ".join(named[0].answers)
            raise BadInputError(f"{name} takes one of: {answers}. Answer with: quaid janitor accept {name} ANSWER")
        subject = f"{answer} to {len(matching)} question{'s' * (len(matching) > 1)}"
        titles = "\n".join(f"- {question.title}" for question in matching)

        def plan() -> WritePlan:
            return WritePlan(
                WriteResult(matching[0].rel_path, matching[0].rel_path, "edited", subject),
                tuple(Edit(each.rel_path, each.data, questions.tick(each, answer)) for each in matching),
                Message(f"review: {subject}", titles, ((TASK, REVIEW),)),
            )

        written = Writer(self._vault).write(f"answer {reference} {answer}", plan, by_owner=by_owner).written
        self._vault.sync(None)
        return matching, written

    def carry_out_answers(self) -> RunReport | None:
        """Carry out what the owner has answered, by a tick in an editor too, without a model; None where there is
        nothing to carry out now. What has to wait is left to the next call, or to the next run.
        """
        vault, now = self._vault, datetime.now(UTC)
        answered = [question for question in self.open_questions() if question.answer is not None]
        key = evidence_key("answers", *(hashlib.sha256(question.data).hexdigest() for question in answered))
        judgements = Judgements(self._state / LOCAL_FILE, now.date().isoformat())
        report = RunReport(layout.new_id(now), now)
        try:
            if not answered or judgements.known([key]) or vault.problem or vault.git.state().operation:
                return None
            vault.sync(None)
            options = RunOptions(tasks=("resolve",), only_answers=True)
            run_tasks(vault, self._documentation, options, report, None)
            if any(question.answer is not None for question in self.open_questions()):
                judgements.add("answers", {key: ""})  # what it cannot carry out is not tried at every command
            vault.sync(None)
        except QuaidError:
            return None
        return report

    def dispute(self, reference: str, why: str = "") -> WriteResult:
        """Ask in review/ whether to forget a fact that its owner says is wrong, in their name. `path` is that of the
        question; `outcome` is disputed, or unchanged if it is open already.

        Raises:
            NoteNotFoundError, AmbiguousReferenceError
            BadInputError: it is not a fact in force.
        """

        def plan() -> WritePlan:
            index = self._vault.index()
            document, *_ = references.resolve_one(index, reference)
            fact = next((each for each in list_living(index) if each.path == document.path), None)
            data = files.read_note(self._root, document.path)
            if fact is None or data is None:
                path = document.path
                raise BadInputError(f"{path} is not a fact that holds. Edit or forget it instead: quaid edit {path!r}")
            if waiting := disputes.is_asked(fact, self.open_questions()):
                return WritePlan(WriteResult(fact.id, waiting.rel_path, "unchanged", fact.text))
            place = self._vault.layout
            edit, message = disputes.plan_question(fact, data, why, datetime.now(UTC), place)
            written = WriteResult(fact.id, edit.rel_path, "disputed", fact.text)
            return WritePlan(written, (edit,), message)

        return Writer(self._vault).write(f"dispute {reference} {why}", plan, by_owner=True).written

    def runs(self, limit: int) -> list[Run]:
        """Return the last runs, newest first."""
        return self._runs.list(limit)

    def find_run(self, run: str) -> Run | None:
        """Return the run with this id, if this machine has recorded it."""
        found = self._runs.get(run)
        return found if found and found.run == run else None

    def _record(self, began: Run, report: RunReport, options: RunOptions, last: Run | None) -> None:
        """Record the run with a snapshot of the memory; send the news of it and of what was learned since `last`."""
        # A run of some tasks says nothing about what the others have set aside.
        before = (one for run in self._runs.list(2)[1:] for one in run.decisions if options.tasks)
        left = [one for one in before if one.get("kind") == SET_ASIDE and one.get("task") not in options.tasks]
        outcomes = [
            *((decision, "done") for decision in report.done),
            *((decision, "asked") for decision in report.asked),
            *report.held_back,
        ]
        names = ("task", "kind", "key", "subject", "facts")
        decided = [json_object(decision, *names, outcome=outcome) for decision, outcome in outcomes]
        waiting, cost = len(self.open_questions()), report.usage.cost_usd
        run = began._replace(
            outcome="stopped" if report.lost else "failed" if report.failed else "done",
            ended=datetime.now(UTC).isoformat(),
            commit=report.commit,
            decisions=(*left, *decided),
            waiting=waiting,
            cost_usd=cost,
            notes_after=report.notes,
            degraded=tuple(report.waiting),
            problem="; ".join([*(f"{task}: {why}" for task, why in report.failed.items()), *report.lost]) or None,
        )
        self._runs.finish(run)
        index = self._vault.whole_index()
        taken = take_snapshot(self._root, index, datetime.now(UTC), waiting=waiting, cost_usd=cost)
        HealthLog(self._state / LOCAL_FILE).add(taken)
        notifications = self._settings.notifications
        news = render_news(report, level_of(notifications, "janitor"), questions=waiting)
        docs_news = render_docs_news(report, level_of(notifications, "docs"))
        since = last.started if last else ""
        newest = documents.list_latest_facts(index, EVERYTHING, MAX_LISTED, began.started[:10])
        learned = [(created, text) for created, text in newest if created >= since]
        digest = render_digest(learned, level_of(notifications, "digest"))
        report.remarks += [*self._deliver(news), *self._deliver(docs_news, "docs"), *self._deliver(digest, "digest")]

    def _deliver(self, text: str, feature: Feature = "janitor") -> list[str]:
        return deliver(self._root, self._settings.notifications, feature, text)


# -- the numbers of `quaid stats --health` -----------------------------------------------------------------------------

_MAX_RECALLS = 2_000


def take_snapshot(
    root: Path, index: IndexConnection, now: datetime, *, waiting: int = 0, cost_usd: float | None = 0.0
) -> Snapshot:
    """The memory at `root` as its index and this machine's books have it. `waiting` and `cost_usd` are of the run.

    Raises:
        DiskFullError, StateDamagedError, LockedError, VaultReadOnlyError: local.db cannot be opened.
    """
    from quaid.local.database import open_local, translated

    counts = graph.counts(index)
    superseded, chunks, embedded = index.execute(
        "SELECT (SELECT count(*) FROM documents WHERE superseded_by IS NOT NULL), count(*), "
        "coalesce(sum(embedded = 'ready'), 0) FROM chunks"
    ).fetchone() or (0, 0, 0)
    state = state_folder(root)
    since = f"{now.astimezone(UTC) - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    with closing(open_local(state / LOCAL_FILE, recall_log.SCHEMA)) as local, translated(local):
        recent = recall_log.list_entries(local, _MAX_RECALLS)
        took_ms = [entry.took_ms for entry in recent if entry.at >= since]
        open_gaps = recall_log.count_gaps(local)
    repository = find_repository(root)
    return Snapshot(
        at=f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}",
        kinds=documents.count_by(index, "kind"),
        statuses=documents.count_by(index, "status"),
        superseded=int(superseded),
        entities=counts["entities"],
        edges=counts["edges"],
        chunks=int(chunks),
        embedded=int(embedded),
        index_bytes=_size_of(state / INDEX_FILE),
        repository_bytes=_size_of(repository.common_dir / "objects") if repository else 0,
        recall_p50_ms=measure(took_ms).p50_ms if took_ms else None,
        gaps=open_gaps,
        waiting=waiting,
        cost_usd=cost_usd,
    )


def _size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder; a file that vanishes counts nothing."""
    if not path.is_dir():
        return path.stat().st_size if path.exists() else 0
    found = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)  # noqa: PTH118 - quick
    return sum(os.lstat(name).st_size for name in found if os.path.lexists(name))
