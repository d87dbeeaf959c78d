"""`quaid extract`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.capture_output import MOST_SHOWN, listed, remark_on_learned, rows_of_learned, shape_of_learned
from quaid.cli.invocation import Invocation, complain
from quaid.cli.terminal import columns, count, styled
from quaid.errors import TROUBLE_FOR_ALL, BadInputError, NoteBrokenError, QuaidError, UsageError
from quaid.llm.discovery import AGREE

if TYPE_CHECKING:
    from quaid.capture.extractor import ExtractResult
    from quaid.memory import Memory

NO_MODEL = "No model was found, so no facts can be drawn; conversations are kept and recalled as they are."


def run_extract(
    ctx: typer.Context,
    file: Annotated[
        list[str] | None, typer.Argument(metavar="FILE…", help="Transcripts or exports; - reads from stdin.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Its session id, if the transcript names none.")
    ] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Learn from the conversations that wait.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, write nothing.")] = False,
    no_facts: Annotated[bool, typer.Option("--no-facts", help="Keep the conversation, ask no model.")] = False,
    trigger: Annotated[
        str, typer.Option(metavar="NAME", help="The occasion, as snippets and journal name it.")
    ] = "Session",
) -> int:
    """Take in conversations: keep what was said, and let a model draw facts, names and observations from it.

    Known are sessions of Claude Code, Codex, Gemini and OpenClaw, exports of ChatGPT and Claude.ai (JSON or zip), JSON
    lines with role and content, and plain text ("Name: what was said"). System text, tool output, thinking and recalled
    memories are left out, secrets are replaced. The same session is never taken in twice: when it has grown, only its
    new turns are. Without a model, or while none answers, the conversation is kept, can be recalled, and waits.

    Examples:
      quaid extract chat.jsonl
      quaid extract ~/.claude/projects/my-project/*.jsonl
      quaid extract chatgpt-export.zip --dry-run
      pbpaste | quaid extract - --session standup-friday
      quaid extract --pending
    """
    invocation: Invocation = ctx.obj
    how = {"facts": not no_facts, "dry_run": dry_run, "trigger": _trigger(trigger)}
    if pending:
        if file:
            raise UsageError("--pending takes no files: it learns from the conversations that are kept already.")
        return _work_off(invocation, how)
    if not file:
        raise UsageError("Which transcript? Give a file, or - for stdin: quaid extract chat.jsonl")
    refused: dict[str, QuaidError] = {}
    with invocation.open() as memory, invocation.progress(memory):
        found = []
        for done in _take_in(memory, file, session, how, refused):
            found.append(done)
            if not invocation.as_json:
                invocation.print(render_extracted(done))
            _remark(invocation, done)
        if any(done.new_turns and done.waiting for done in found) and not memory.settings.models.provider:
            invocation.say(f"No model is asked before you have agreed to it. {AGREE}")
    if invocation.as_json:
        shapes = [as_shape(done) for done in found]
        several = {"sessions": shapes, "refused": {name: _as_error(error) for name, error in refused.items()}}
        invocation.answer(**shapes[0] if len(shapes) == 1 and not refused else several)
    return 1 if refused or any(done.problem for done in found) else 0


def _take_in(
    memory: Memory, names: list[str], session: str | None, how: dict[str, Any], refused: dict[str, QuaidError]
) -> Iterator[ExtractResult]:
    """What was done with each conversation. A file of several that cannot be used is `refused`, and named at once."""
    for name in names:
        source = sys.stdin.buffer if name == "-" else Path(name).expanduser()
        try:
            for done in memory.extract_each(source, session=session, **how):
                yield done
                if isinstance(done.problem, TROUBLE_FOR_ALL):
                    how = {**how, "facts": False}
        except (BadInputError, NoteBrokenError) as error:
            if len(names) == 1:
                raise
            refused[name] = error
            complain(f"{error}")


def _work_off(invocation: Invocation, how: dict[str, Any]) -> int:
    with invocation.open() as memory, invocation.progress(memory):
        waiting = memory.list_waiting()
        if not waiting:
            invocation.tell(lambda: "", waiting=[], sessions=[])
            invocation.say("No conversation is waiting.")
            return 0
        if not how["facts"] or not memory.extractor.reader.is_able():
            shape: dict[str, object] = {
                "waiting": list(waiting), "sessions": [], "error": {"code": "no_model", "message": NO_MODEL},
            }  # fmt: skip
            invocation.tell(lambda: "\n".join(waiting), **shape)
            complain(f"{NO_MODEL} See: quaid doctor")
            return 1
        found: list[ExtractResult] = []
        for done in memory.extract_waiting(**how):
            found.append(done)
            if not invocation.as_json:
                invocation.print(render_extracted(done))
            _remark(invocation, done)
            if isinstance(done.problem, TROUBLE_FOR_ALL):
                break
        memory.sync()
        left = memory.list_waiting()
    if invocation.as_json:
        invocation.answer(waiting=list(left), sessions=[as_shape(done) for done in found])
    return 1 if any(done.problem for done in found) else 0


def _trigger(name: str) -> str:
    """One line without what would end a heading.

    Raises:
        UsageError: nothing is left of it.
    """
    trigger = " ".join(name.replace("#", " ").split())[:60]
    if not trigger:
        raise UsageError("--trigger is empty. Name the occasion, such as Compaction or Reset.")
    return trigger


def _remark(invocation: Invocation, done: ExtractResult) -> None:
    remark_on_learned(invocation, done, done.redacted)
    if done.problem is not None:
        kept = "nothing was written" if done.is_dry_run else "the conversation is kept and waits"
        complain(f"{done.problem} ({kept}; later: quaid extract --pending)")
    elif done.new_turns and done.waiting:
        invocation.say("It can be recalled now. No model was asked, so no facts were drawn from it.")
    if done.quarantined:
        invocation.say(f"What could not be used is kept in {done.quarantined}")


def as_shape(done: ExtractResult) -> dict[str, object]:
    """`ExtractResult` as JSON."""
    shape: dict[str, object] = {
        "session": done.session,
        "path": done.path,
        "turns": done.turns,
        "new_turns": done.new_turns,
        "waiting": done.waiting,
        "skipped": done.skipped,
        "redacted": dict(Counter(done.redacted)),
        **shape_of_learned(done),
        "snippets": done.snippets,
        "journal": list(done.journal),
        "quarantined": done.quarantined,
    }
    if done.problem is not None:
        shape["error"] = _as_error(done.problem)
    return shape


def _as_error(problem: QuaidError) -> dict[str, str]:
    return {"code": problem.code, "message": str(problem)}


def render_extracted(done: ExtractResult) -> str:
    """What was done with one conversation, for a person."""
    marks = {"created": "", "confirmed": " (said again)", "known": " (known)"}
    facts = [f"{fact.text}{marks[fact.outcome]}" for fact in done.facts]
    snippets = ", ".join(f"{number} for {file}" for file, number in done.snippets.items())
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in done.skipped.items())
    rows = [
        ("path", done.path),
        *listed("facts", facts, None if done.is_dry_run else MOST_SHOWN),
        *([("snippets", snippets)] if snippets else []),
        *([("journal", ", ".join(done.journal))] if done.journal else []),
        *([("left out", left_out)] if left_out else []),
        *rows_of_learned(done),
    ]
    return "\n".join([_head(done), *(f"  {line}" for line in columns(rows).splitlines())])


def _head(done: ExtractResult) -> str:
    of_session = f"of session {done.session}"
    new = sum(fact.outcome == "created" for fact in done.facts)
    again = sum(fact.outcome == "confirmed" for fact in done.facts)
    if done.facts or (done.model and not done.waiting):
        learned = count(new, "new fact") + (f", {again} said again" if again else "")
        verb = "Would learn" if done.is_dry_run else "Learned"
        turns = f" from {count(done.new_turns, 'new turn')}" if done.new_turns else ""
        return f"{styled(verb, 'green')}: {learned}{turns} {of_session}"
    if done.new_turns:
        verb = "Would keep" if done.is_dry_run else "Kept"
        return f"{styled(verb, 'green')}: {count(done.new_turns, 'new turn')} {of_session}"
    return f"Nothing new: session {done.session} is kept already, {count(done.turns, 'turn')}"
