"""The news of a run for its owner, and the warning that there has been no run for long."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from quaid.errors import QuaidError, count
from quaid.history.authorship import JANITOR
from quaid.history.vault_history import History
from quaid.janitor.commits import HOUSEKEEPING, in_words
from quaid.janitor.decision import RunReport
from quaid.local.notifications import Level
from quaid.local.runs import Runs
from quaid.place import CONFIG_FILE, LOCAL_FILE

OVERDUE = timedelta(hours=48)
GRACE = timedelta(days=7)
MAX_LISTED = 100
DOCS_TASKS = ("docs_staleness", "docs_cleanup")


def render_news(report: RunReport, level: Level, *, questions: int = 0) -> str:
    """Return a run as a message; empty when `level` is off. `questions` is the number of open questions.

    A summary is a few sentences; in full every decision has its line.
    """
    if report.lost and not report.is_dry_run:
        lost = count(len(report.lost), "answer")
        sentences = [f"Quaid's janitor merged nothing: {lost} would have been lost."]
    else:
        begin = "Quaid's janitor would do this" if report.is_dry_run else "Quaid's janitor"
        kinds = Counter(decision.kind for decision in report.done if decision.kind not in HOUSEKEEPING)
        parts = [in_words(kinds)] if kinds else []
        parts += [f"carried out {count(len(report.answered), 'answer')} of yours"] if report.answered else []
        sentences = [f"{begin}: {', '.join(parts) or 'nothing to do'}."]
    if questions:
        new = f", {len(report.asked):,} of them new" if report.asked else ""
        verb = "waits" if questions == 1 else "wait"
        sentences.append(f"{count(questions, 'question')} {verb} for you in review/{new}.")
    if report.held_back:
        sentences.append(f"{count(len(report.held_back), 'decision')} held back.")
    if report.waiting:
        sentences.append(f"Waiting for a model: {', '.join(report.waiting)}.")
    if report.failed:
        sentences.append(f"Failed: {', '.join(report.failed)}.")
    if report.usage.calls:
        cost = report.usage.cost_usd
        dollars = "an unknown price" if cost is None else f"${cost:.2f}" if cost >= 0.01 else "less than $0.01"
        sentences.append(f"{count(report.usage.calls, 'call')} of models for {dollars}.")
    if report.commit:
        sentences.append(f"See it with: quaid janitor show {report.run[-6:]}")
    lists = {
        "Done": [decision.subject for decision in report.done],
        "Asked": [f"{decision.subject}: {decision.why}" for decision in report.asked],
        "Held back": [f"{decision.subject}: {reason}" for decision, reason in report.held_back],
        "Would be lost": report.lost,
        "Failed": [f"{task}: {problem}" for task, problem in report.failed.items()],
        "Remarks": report.remarks,
    }
    return _message(" ".join(sentences), lists, level)


def render_docs_news(report: RunReport, level: Level) -> str:
    """Return the news of the documents of projects as a message; empty when `level` is off or there is none.

    A summary is a sentence or two; in full every document has its line.
    """
    done = [decision for decision in report.done if decision.task in DOCS_TASKS]
    reasoned = [f"{each.subject}: {each.why}" for each in done if each.branch is not None]
    changed = [decision.subject for decision in done if decision.branch is None]
    asked = [f"{decision.subject}: {decision.why}" for decision in report.asked if decision.task in DOCS_TASKS]
    held = [f"{decision.subject}: {reason}" for decision, reason in report.held_back if decision.task in DOCS_TASKS]
    lists = {
        ("changed", "Changed"): changed,
        ("put on a branch for you to merge", "On a branch"): reasoned,
        ("to ask you about", "Asked"): asked,
        ("held back", "Held back"): held,
        ("stale", "Stale"): report.stale,
    }
    parts = [f"{len(lines):,} {what}" for (what, _), lines in lists.items() if lines]
    if not parts or report.lost:
        return ""
    see = " See why with: quaid docs check" if report.stale else ""
    titled = {title: lines for (_, title), lines in lists.items()}
    return _message(f"Documents: {', '.join(parts)}.{see}", titled, level)


def render_digest(learned: Sequence[tuple[str, str]], level: Level) -> str:
    """Return the daily digest: how many facts were learned since the last run, in full with their texts. `learned` are
    (day, text), newest first.
    """
    if not learned:
        return ""
    return _message(f"Quaid learned {count(len(learned), 'fact')}.", {"Learned": [text for _, text in learned]}, level)


def overdue(state: Path, now: datetime, history: History | None = None) -> str | None:
    """Return a warning if no run has succeeded for 48 hours, by the vault's `state` folder, or if there was none on any
    machine in a vault that, by its `history`, is older than a week.
    """
    runs = Runs(state / LOCAL_FILE)
    try:
        last, newest = runs.last_success(), runs.list(1)
    except QuaidError as error:
        return f"Whether the janitor has run is not known: {error}"
    steps = "Run it with: quaid janitor run; every night with: quaid janitor install"
    if not newest and history is not None:
        with suppress(QuaidError):  # trouble with git has a separate warning
            made = history.log(paths=[CONFIG_FILE], limit=1_000)[-1:]
            is_old = any(now - datetime.fromisoformat(commit.when) > GRACE for commit in made)
            if is_old and not history.log(author=JANITOR[1], limit=1):
                return f"The janitor has never run in this vault. {steps}"
    if not newest or (last is not None and now - datetime.fromisoformat(last.started) <= OVERDUE):
        return None
    well = "well " if last and newest[0].run != last.run else ""  # a limit, or a model, may have stopped a part of it
    since = f"{well}for {(now - datetime.fromisoformat(last.started)).days} days" if last else "to its end yet"
    problem = f" The last time: {newest[0].problem}" if newest[0].problem else ""
    return f"The janitor has not run {since}.{problem} {steps}"


def _message(summary: str, lists: Mapping[str, Sequence[str]], level: Level) -> str:
    parts = [summary]
    for title, lines in lists.items() if level == "full" else ():
        shown = [f"- {' '.join(line.split())}" for line in lines[:MAX_LISTED]]
        more = [f"- … and {len(lines) - len(shown):,} more"] if len(lines) > len(shown) else []
        parts += ["\n".join([f"{title}:", *shown, *more])] if lines else []
    return "\n\n".join(parts) if level != "off" else ""
