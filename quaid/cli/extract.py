"""`quaid extract` and `quaid analyze`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from quaid.capture.extractor import ExtractResult
from quaid.capture.files.analyzer import AnalyzeResult
from quaid.capture.right_command import hint_for, list_transcripts
from quaid.cli.change_output import warn_left, warn_redacted
from quaid.cli.invocation import Invocation, print_error
from quaid.cli.options import argument, flag, option
from quaid.cli.terminal import clipped, count, known, line_width, short, size, styled, titled
from quaid.errors import (
    TROUBLE_FOR_ALL,
    BadInputError,
    ModelAnswerError,
    ModelRefusedError,
    NoteBrokenError,
    QuaidError,
    UsageError,
)
from quaid.llm.discovery import AGREE
from quaid.memory import Memory
from quaid.shapes import json_object

MAX_SHOWN = 10
MARGIN = 12
"""The columns before a line."""
NO_MODEL = "No model was found, so no facts can be drawn; conversations are kept and recalled as they are."
ERRORS_OF_ONE_FILE = (BadInputError, NoteBrokenError, ModelAnswerError, ModelRefusedError)
"""Errors that the next file need not have."""
DryRun = Annotated[bool, flag("Show what would be written; write nothing.", "--dry-run")]


def run_extract(
    invocation: Invocation,
    file: Annotated[
        list[str] | None,
        argument("FILE…", "Transcripts, exports or folders of them; - reads stdin."),
    ] = None,
    session: Annotated[str | None, option("ID", "The session id, when the transcript has none.")] = None,
    pending: Annotated[bool, flag("Draw facts from the conversations that wait for a model.", "--pending")] = False,
    dry_run: DryRun = False,
    no_facts: Annotated[bool, flag("Keep the conversation without asking a model.", "--no-facts")] = False,
    trigger: Annotated[str, option("NAME", "The occasion, used as a heading in snippets and journal.")] = "Session",
) -> int:
    """Store conversations, and let a model draw facts, names and observations from them.

    Known are sessions of Claude Code, Codex, Gemini and OpenClaw, exports of ChatGPT and Claude.ai (JSON or zip), JSON
    lines with role and content, and plain text ("Name: some words"). System text, tool output, thinking and recalled
    memories are left out, secrets are replaced. The same session is never taken in twice: when it has grown, only its
    new turns are. Without a model, or while none answers, the conversation is kept, can be recalled, and waits.

    Examples:
      quaid extract chat.jsonl
      quaid extract ~/.claude/projects/my-project/*.jsonl
      quaid extract chatgpt-export.zip --dry-run
      pbpaste | quaid extract - --session standup-friday
      quaid extract --pending
    """
    occasion = " ".join(trigger.replace("#", " ").split())[:60]  # one line that goes into a heading
    if not occasion:
        raise UsageError("--trigger is empty. Name the occasion, such as Compaction or Reset.")
    options = {"facts": not no_facts, "dry_run": dry_run, "trigger": occasion}
    if pending:
        if file:
            raise UsageError("--pending takes no files: it learns from the conversations that are kept already.")
        return _extract_pending(invocation, options)
    if not file:
        raise UsageError("Which transcript? Give a file, or - for stdin: quaid extract chat.jsonl")
    refused: dict[str, QuaidError] = {}
    with invocation.open() as memory, invocation.progress(memory):
        results = []
        for done in _extract_files(memory, file, session, options, refused):
            results.append(done)
            _show_extracted(invocation, done)
        if any(done.new_turns and done.waiting for done in results) and not memory.settings.models.provider:
            invocation.notify(f"No model is asked before you have agreed to it. {AGREE}")
    if invocation.as_json:
        shapes = [_extract_shape(done) for done in results]
        several = {"sessions": shapes, "refused": {name: _error_shape(error) for name, error in refused.items()}}
        invocation.print_json(**shapes[0] if len(shapes) == 1 and not refused else several)
    return 1 if refused or any(done.problem for done in results) else 0


def _extract_files(
    memory: Memory, names: list[str], session: str | None, options: dict[str, Any], refused: dict[str, QuaidError]
) -> Iterator[ExtractResult]:
    """Yield the result of each conversation; a file of several that cannot be used goes to `refused`."""
    files = list(_list_files(names))
    for name in files:
        source = sys.stdin.buffer if name == "-" else Path(name).expanduser()
        try:
            for done in memory.extract_each(source, session=session, **options):
                yield done
                if isinstance(done.problem, TROUBLE_FOR_ALL):
                    options = {**options, "facts": False}
        except (BadInputError, NoteBrokenError) as error:
            hint = isinstance(error, BadInputError) and name != "-" and hint_for(Path(name).expanduser(), "extract")
            hinted = BadInputError(f"{error}{hint}") if hint else error
            if len(files) == 1:
                raise hinted from error
            refused[name] = error
            print_error(f"{hinted}")


def _list_files(names: list[str]) -> Iterator[str]:
    """Yield the files of `names`, and of a folder those in it that hold conversations."""
    for name in names:
        path = Path(name).expanduser()
        if name == "-" or not path.is_dir():
            yield name
        elif found := list_transcripts(path):
            yield from map(str, found)
        else:
            raise BadInputError(f"{name} holds no transcript that Quaid knows.{hint_for(path, 'extract')}")


def _extract_pending(invocation: Invocation, options: dict[str, Any]) -> int:
    with invocation.open() as memory, invocation.progress(memory):
        waiting = memory.list_waiting()
        if not waiting:
            invocation.respond("", waiting=[], sessions=[])
            invocation.notify("No conversation is waiting.")
            return 0
        if not options["facts"] or not memory.extractor.reader.is_able():
            error = {"code": "no_model", "message": NO_MODEL}
            invocation.respond("\n".join(waiting), waiting=waiting, sessions=[], error=error)
            print_error(f"{NO_MODEL} See: quaid doctor")
            return 1
        results: list[ExtractResult] = []
        for done in memory.extract_waiting(**options):
            results.append(done)
            _show_extracted(invocation, done)
            if isinstance(done.problem, TROUBLE_FOR_ALL):
                break
        memory.sync()
        left = memory.list_waiting()
    if invocation.as_json:
        invocation.print_json(waiting=left, sessions=[_extract_shape(done) for done in results])
    return 1 if any(done.problem for done in results) else 0


def _show_extracted(invocation: Invocation, done: ExtractResult) -> None:
    """Print one conversation for a person, and notify of what the owner should know."""
    if not invocation.as_json:
        invocation.print(_render_extracted(done))
    _notify_learned(invocation, done, done.redacted)
    if done.problem is not None:
        outcome = "nothing was written" if done.is_dry_run else "the conversation is kept and waits"
        print_error(f"{done.problem} ({outcome}; later: quaid extract --pending)")
    elif done.new_turns and done.waiting:
        invocation.notify("It can be recalled now. No model was asked, so no facts were drawn from it.")
    if done.quarantined:
        invocation.notify(f"What could not be used is kept in {done.quarantined}")


def _render_extracted(done: ExtractResult) -> str:
    marks = {"created": "", "confirmed": " (said again)", "known": " (known)"}
    facts = [f"{fact.text}{marks[fact.outcome]}" for fact in done.facts]
    snippets = ", ".join(f"{number} for {file}" for file, number in done.snippets.items())
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in done.skipped.items())
    outcomes = Counter(fact.outcome for fact in done.facts)
    turns = count(done.new_turns, "new turn")
    if done.facts or (done.model and not done.waiting):
        verb = styled("Would learn" if done.is_dry_run else "Learned", "green")
        repeated = f", {outcomes['confirmed']} said again" if outcomes["confirmed"] else ""
        learned = f"{count(outcomes['created'], 'new fact')}{repeated}"
        head = f"{verb}: {learned}{f' from {turns}' if done.new_turns else ''} of session {done.session}"
    elif done.new_turns:
        verb = styled("Would keep" if done.is_dry_run else "Kept", "green")
        head = f"{verb}: {turns} of session {done.session}"
    else:
        head = f"Nothing new: session {done.session} is kept already, {count(done.turns, 'turn')}"
    rows = [
        ("path", done.path),
        *_list_rows("facts", facts, None if done.is_dry_run else MAX_SHOWN),
        *known(("snippets", snippets), ("journal", ", ".join(done.journal)), ("left out", left_out)),
        *_learned_rows(done),
    ]
    return titled(head, rows)


def _extract_shape(done: ExtractResult) -> dict[str, Any]:
    error = {"error": _error_shape(done.problem)} if done.problem else {}
    return {
        **json_object(done, "session", "path", "turns", "new_turns", "waiting", "skipped"),
        "redacted": Counter(done.redacted),
        **_learned_shape(done),
        **json_object(done, "snippets", "journal", "quarantined", **error),
    }


def _error_shape(problem: QuaidError) -> dict[str, str]:
    return {"code": problem.code, "message": str(problem)}


def run_analyze(
    invocation: Invocation,
    paths: Annotated[list[str], argument("PATH…", "Text, markdown or PDF files.")],
    focus: Annotated[str, option("TEXT", "What the model should look for above all.")] = "",
    project: Annotated[str | None, option("NAME", "The project its facts belong to.")] = None,
    again: Annotated[bool, flag("Ask the model even when nothing has changed.", "--again")] = False,
    dry_run: DryRun = False,
) -> int:
    """Learn from files: a model draws facts and names from them, each with its page or heading.

    The file stays where it is; a note in sources/ names it with its checksum, what git knows of it, a summary and its
    facts. A file that has not changed since costs nothing. When it has, new facts are added, known ones stay as they
    are, and those that it no longer says are named, never removed.

    Examples:
      quaid analyze lease.pdf --focus "deadlines and amounts"
      quaid analyze docs/*.md --project quaid
      quaid analyze minutes.txt --dry-run
    """
    shapes: list[dict[str, object]] = []
    exit_code = 0
    with invocation.open() as memory, invocation.progress(memory):
        for name in dict.fromkeys(paths):
            path = Path(name).expanduser()
            try:
                if path.is_dir() and (hint := hint_for(path, "analyze")):
                    raise BadInputError(f"{name} is a folder. Give its files one by one: quaid analyze {name}/*.{hint}")
                done = memory.analyze(path, focus=focus, project=project, again=again, dry_run=dry_run)
            except QuaidError as error:
                if len(paths) == 1:
                    raise
                shapes.append({"file": name, "error": _error_shape(error)})
                exit_code = max(exit_code, error.exit_code)
                print_error(f"{error}")
                if isinstance(error, ERRORS_OF_ONE_FILE):
                    continue
                break
            shapes.append(_analyze_shape(name, done))
            if not invocation.as_json:
                invocation.print(_render_analyzed(done))
            for remark in done.file.remarks:
                invocation.notify(remark)
            _notify_learned(invocation, done, done.file.redacted if done.outcome != "unchanged" else ())
            if done.missing:
                invocation.notify("What the file no longer says is kept. Forget it with: quaid forget REF")
    if invocation.as_json:
        invocation.print_json(files=shapes)
    return exit_code


def _analyze_shape(name: str, done: AnalyzeResult) -> dict[str, object]:
    file, checkout = done.file, done.request.checkout
    return {
        "file": name,
        "outcome": done.outcome,
        "note": done.note,
        **json_object(file, "title", "media", "size", "pages", "checksum"),
        "repository": done.request.repository,
        "branch": checkout.branch if checkout else None,
        "file_commit": checkout.commit if checkout else None,
        "uncommitted": checkout.is_changed if checkout else None,
        "focus": done.request.focus or None,
        "summary": done.summary or None,
        "missing": [json_object(fact, "id", "text") for fact in done.missing],
        **_learned_shape(done),
        "redacted": Counter(file.redacted),
        "remarks": file.remarks,
        "pieces": done.pieces,
    }


def _render_analyzed(done: AnalyzeResult) -> str:
    file, checkout = done.file, done.request.checkout
    if done.outcome == "unchanged":
        return f"Nothing to do: {file.path.name} is as it was when it was analyzed ({done.note}). --again asks anew."
    new = [fact for fact in done.facts if fact.outcome == "created"]
    repeated = len(done.facts) - len(new)
    verb = styled("Would learn" if done.is_dry_run else "Learned", "green")
    learned = f"{count(len(new), 'new fact')}{f', {repeated} known already' if repeated else ''}"
    details = (file.media, count(file.pages, "page") if file.pages else "", size(file.size), file.title)
    git = None
    if checkout:
        commit = f" at {short(checkout.commit)}" if checkout.commit else ""
        git = f"{checkout.repository}{commit}{', with uncommitted changes' if checkout.is_changed else ''}"
    rows = [
        *known(("note", done.note), ("file", ", ".join(filter(None, details))), ("git", git)),
        *_list_rows("summary", [done.summary] if done.summary else []),
        *_list_rows("facts", [fact.text for fact in new], None if done.is_dry_run else MAX_SHOWN),
        *_list_rows("missing", [f"{fact.text} ({fact.id[-5:]})" for fact in done.missing], MAX_SHOWN),
        *_learned_rows(done),
    ]
    return titled(f"{verb}: {learned} from {file.path.name}", rows)


def _learned_shape(done: ExtractResult | AnalyzeResult) -> dict[str, object]:
    """Return the keys that both answers have. Facts that a dry run would make have no id and path yet."""
    facts = []
    for fact in done.facts:
        exists = not done.is_dry_run or fact.outcome != "created"
        place = {"id": fact.id, "path": fact.path} if exists else {"id": None, "path": None}
        facts.append({**place, "text": fact.text, "outcome": fact.outcome})
    return {
        "dry_run": done.is_dry_run,
        "facts": facts,
        "entities": done.entities,
        "edges": done.edges,
        "left_out": [json_object(item, "text", "reason") for item in done.left_out],
        "model": done.model,
        "prompt": done.prompt,
        "usage": json_object(done.usage, "calls", "input_tokens", "output_tokens", "cached_tokens", "cost_usd"),
        **json_object(done, "degraded", "commit", "left"),
    }


def _learned_rows(done: ExtractResult | AnalyzeResult) -> list[tuple[str, str]]:
    """Return rows for what was left out, new names, the model's usage and the commit."""
    rows = _list_rows("not kept", [f"{item.text}: {item.reason}" for item in done.left_out], MAX_SHOWN)
    rows += _list_rows("names", [", ".join(done.entities)] if done.entities else [])
    if done.model and done.usage.calls:
        cost = f", ${done.usage.cost_usd:.4f}" if done.usage.cost_usd else ""
        rows.append(("model", f"{done.model}, {done.usage.tokens:,} tokens{cost}"))
    return rows + known(("commit", short(done.commit)))


def _list_rows(title: str, texts: Sequence[str], most: int | None = None) -> list[tuple[str, str]]:
    """Return a row for each of the first `most` texts, and for how many more there are."""
    shown = texts if most is None else texts[:most]
    rows = [("" if number else title, clipped(text, line_width() - MARGIN)) for number, text in enumerate(shown)]
    return rows + ([("", f"and {len(texts) - len(shown)} more")] if len(texts) > len(shown) else [])


def _notify_learned(invocation: Invocation, done: ExtractResult | AnalyzeResult, redacted: Sequence[str]) -> None:
    warn_redacted(invocation, redacted)
    if "relations" in done.degraded:
        invocation.notify("New relations were stored as they were said: the fast model did not answer.")
    warn_left(invocation, done.left)
