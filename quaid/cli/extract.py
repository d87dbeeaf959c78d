"""`quaid extract`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quaid.cli.extraction_output import MAX_SHOWN, listed, remark_on_learned, rows_of_learned, shape_of_learned
from quaid.cli.invocation import Invocation, fields, print_error
from quaid.cli.terminal import count, known, styled, titled
from quaid.errors import TROUBLE_FOR_ALL, BadInputError, NoteBrokenError, QuaidError, UsageError
from quaid.llm.discovery import AGREE

if TYPE_CHECKING:
    from quaid.capture.extractor import ExtractResult
    from quaid.memory import Memory

NO_MODEL = "No model was found, so no facts can be drawn; conversations are kept and recalled as they are."


def run_extract(
    ctx: typer.Context,
    file: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE…", help="Transcripts, exports or folders of them; - reads stdin."),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="The session id, when the transcript has none.")
    ] = None,
    pending: Annotated[
        bool, typer.Option("--pending", help="Draw facts from the conversations that wait for a model.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written; write nothing.")] = False,
    no_facts: Annotated[bool, typer.Option("--no-facts", help="Keep the conversation without asking a model.")] = False,
    trigger: Annotated[
        str, typer.Option(metavar="NAME", help="The occasion, used as a heading in snippets and journal.")
    ] = "Session",
) -> int:
    """Store conversations, and let a model draw facts, names and observations from them.

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
    occasion = " ".join(trigger.replace("#", " ").split())[:60]  # one line that goes into a heading
    if not occasion:
        raise UsageError("--trigger is empty. Name the occasion, such as Compaction or Reset.")
    how = {"facts": not no_facts, "dry_run": dry_run, "trigger": occasion}
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
            invocation.notify(f"No model is asked before you have agreed to it. {AGREE}")
    if invocation.as_json:
        shapes = [shape_of_extracted(done) for done in found]
        several = {"sessions": shapes, "refused": {name: _as_error(error) for name, error in refused.items()}}
        invocation.print_json(**shapes[0] if len(shapes) == 1 and not refused else several)
    return 1 if refused or any(done.problem for done in found) else 0


def _take_in(
    memory: Memory, names: list[str], session: str | None, how: dict[str, Any], refused: dict[str, QuaidError]
) -> Iterator[ExtractResult]:
    """Yield what was done with each conversation; one file of several that cannot be used goes to `refused`."""
    files = list(_list_files(names))
    for name in files:
        source = sys.stdin.buffer if name == "-" else Path(name).expanduser()
        try:
            for done in memory.extract_each(source, session=session, **how):
                yield done
                if isinstance(done.problem, TROUBLE_FOR_ALL):
                    how = {**how, "facts": False}
        except (BadInputError, NoteBrokenError) as error:
            if len(files) == 1:
                raise _hinted(error, name) from error
            refused[name] = error
            print_error(f"{_hinted(error, name)}")


def _list_files(names: list[str]) -> Iterator[str]:
    """Yield the files of `names`; of a folder those in it that hold conversations.

    Raises:
        BadInputError: a folder holds none.
    """
    from quaid.capture.right_command import hint_for, list_transcripts

    for name in names:
        path = Path(name).expanduser()
        if name == "-" or not path.is_dir():
            yield name
        elif found := list_transcripts(path):
            yield from map(str, found)
        else:
            raise BadInputError(f"{name} holds no transcript that Quaid knows.{hint_for(path, 'extract')}")


def _hinted(error: BadInputError | NoteBrokenError, name: str) -> QuaidError:
    """`error`, with the command that takes the file where that is another one."""
    from quaid.capture.right_command import hint_for

    hint = hint_for(Path(name).expanduser(), "extract") if isinstance(error, BadInputError) and name != "-" else ""
    return BadInputError(f"{error}{hint}") if hint else error


def _work_off(invocation: Invocation, how: dict[str, Any]) -> int:
    with invocation.open() as memory, invocation.progress(memory):
        waiting = memory.list_waiting()
        if not waiting:
            invocation.respond("", waiting=[], sessions=[])
            invocation.notify("No conversation is waiting.")
            return 0
        if not how["facts"] or not memory.extractor.reader.is_able():
            shape: dict[str, object] = {
                "waiting": list(waiting), "sessions": [], "error": {"code": "no_model", "message": NO_MODEL},
            }  # fmt: skip
            invocation.respond("\n".join(waiting), **shape)
            print_error(f"{NO_MODEL} See: quaid doctor")
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
        invocation.print_json(waiting=list(left), sessions=[shape_of_extracted(done) for done in found])
    return 1 if any(done.problem for done in found) else 0


def _remark(invocation: Invocation, done: ExtractResult) -> None:
    remark_on_learned(invocation, done, done.redacted)
    if done.problem is not None:
        kept = "nothing was written" if done.is_dry_run else "the conversation is kept and waits"
        print_error(f"{done.problem} ({kept}; later: quaid extract --pending)")
    elif done.new_turns and done.waiting:
        invocation.notify("It can be recalled now. No model was asked, so no facts were drawn from it.")
    if done.quarantined:
        invocation.notify(f"What could not be used is kept in {done.quarantined}")


def shape_of_extracted(done: ExtractResult) -> dict[str, object]:
    """`ExtractResult` as JSON."""
    shape: dict[str, object] = {
        **fields(done, "session", "path", "turns", "new_turns", "waiting", "skipped"),
        "redacted": Counter(done.redacted),
        **shape_of_learned(done),
        **fields(done, "snippets", "journal", "quarantined"),
    }
    if done.problem is not None:
        shape["error"] = _as_error(done.problem)
    return shape


def _as_error(problem: QuaidError) -> dict[str, str]:
    return {"code": problem.code, "message": str(problem)}


def render_extracted(done: ExtractResult) -> str:
    """One conversation and what was done with it, for a person."""
    marks = {"created": "", "confirmed": " (said again)", "known": " (known)"}
    facts = [f"{fact.text}{marks[fact.outcome]}" for fact in done.facts]
    snippets = ", ".join(f"{number} for {file}" for file, number in done.snippets.items())
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in done.skipped.items())
    rows = [
        ("path", done.path),
        *listed("facts", facts, None if done.is_dry_run else MAX_SHOWN),
        *known(("snippets", snippets), ("journal", ", ".join(done.journal)), ("left out", left_out)),
        *rows_of_learned(done),
    ]
    return titled(_head(done), rows)


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
