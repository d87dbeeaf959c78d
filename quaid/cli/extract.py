"""`quaid extract`, `analyze`, `import` and `export`."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from quaid.capture.export import write_export
from quaid.capture.extraction import Learned
from quaid.capture.extractor import ExtractResult
from quaid.capture.files.analyzer import AnalyzeResult
from quaid.capture.importer import KINDS, ImportResult, phrase_counts
from quaid.capture.importers.programs import Program, find_programs, name_program
from quaid.capture.right_command import hint_for, list_transcripts
from quaid.cli.change_output import warn_left, warn_redacted
from quaid.cli.invocation import Invocation, error_shape, print_error
from quaid.cli.options import DryRun, Yes, argument, can_answer, flag, option
from quaid.cli.terminal import clipped, count, first, known, line_width, lines, section, short, size, styled, titled
from quaid.errors import (
    TROUBLE_FOR_ALL,
    BadInputError,
    ModelAnswerError,
    ModelRefusedError,
    NoteBrokenError,
    QuaidError,
    UsageError,
    name_first,
)
from quaid.index import documents
from quaid.janitor.following import begin_following, end_following
from quaid.llm.discovery import AGREE
from quaid.memory import Memory
from quaid.shapes import json_object

MAX_SHOWN = 10
MARGIN = 12
"""The columns before a line."""
NO_MODEL = "No model was found, so no facts can be drawn; conversations are kept and recalled as they are."
ERRORS_OF_ONE_FILE = (BadInputError, NoteBrokenError, ModelAnswerError, ModelRefusedError)
"""Errors that the next file need not have."""


def run_extract(
    invocation: Invocation,
    file: Annotated[
        list[str] | None, argument("FILE…", "Transcripts, exports or folders of them; - reads stdin.")
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
        several = {"sessions": shapes, "refused": {name: error_shape(error) for name, error in refused.items()}}
        invocation.print_json(**shapes[0] if len(shapes) == 1 and not refused else several)
    return 1 if refused or any(done.problem for done in results) else 0


def _extract_files(
    memory: Memory, names: list[str], session: str | None, options: dict[str, Any], refused: dict[str, QuaidError]
) -> Iterator[ExtractResult]:
    """Yield the result of each conversation; a file of several that cannot be used goes to `refused`."""
    files: list[str] = []
    for name in names:
        path = Path(name).expanduser()
        found = list_transcripts(path) if name != "-" and path.is_dir() else [name]
        if not found:
            raise BadInputError(f"{name} holds no transcript that Quaid knows.{hint_for(path, 'extract')}")
        files += map(str, found)
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
    kept, learned = ("Would keep", "Would learn") if done.is_dry_run else ("Kept", "Learned")
    turns = count(done.new_turns, "new turn")
    if done.facts or (done.model and not done.waiting):
        source = f" from {turns}" if done.new_turns else ""
        facts = f"{_phrase_learned(done, 'said again')}{source}"
        head = f"{styled(learned, 'green')}: {facts} of session {done.session}"
    elif done.new_turns:
        head = f"{styled(kept, 'green')}: {turns} of session {done.session}"
    else:
        head = f"Nothing new: session {done.session} is kept already, {count(done.turns, 'turn')}"
    marks = {"created": "", "confirmed": " (said again)", "known": " (known)", "replaced": " (no longer true)"}
    details = known(
        ("snippets", ", ".join(f"{number} for {file}" for file, number in done.snippets.items())),
        ("journal", ", ".join(done.journal)),
        ("left out", ", ".join(f"{number:,} {reason}" for reason, number in done.skipped.items())),
    )
    texts = [f"{fact.text}{marks[fact.outcome]}" for fact in done.facts]
    _show_learned(invocation, done, head, [("path", done.path)], {"facts": texts}, details)
    warn_redacted(invocation, done.redacted)
    if done.problem is not None:
        outcome = "nothing was written" if done.is_dry_run else "the conversation is kept and waits"
        print_error(f"{done.problem} ({outcome}; later: quaid extract --pending)")
    elif done.new_turns and done.waiting:
        invocation.notify("It can be recalled now. No model was asked, so no facts were drawn from it.")
    if done.quarantined:
        invocation.notify(f"What could not be used is kept in {done.quarantined}")


def _extract_shape(done: ExtractResult) -> dict[str, Any]:
    error = {"error": error_shape(done.problem)} if done.problem else {}
    return {
        **json_object(done, "session", "path", "turns", "new_turns", "waiting", "skipped"),
        "redacted": Counter(done.redacted),
        **_learned_shape(done),
        **json_object(done, "snippets", "journal", "quarantined", **error),
    }


def run_analyze(
    invocation: Invocation,
    paths: Annotated[list[str], argument("PATH…", "Text, markdown, PDF, Office, EPUB or HTML files.")],
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
                shapes.append({"file": name, "error": error_shape(error)})
                exit_code = max(exit_code, error.exit_code)
                print_error(f"{error}")
                if isinstance(error, ERRORS_OF_ONE_FILE):
                    continue
                break
            shapes.append(_analyze_shape(name, done))
            _show_analyzed(invocation, done)
    if invocation.as_json:
        invocation.print_json(files=shapes)
    return exit_code


def _analyze_shape(name: str, done: AnalyzeResult) -> dict[str, object]:
    file, checkout = done.file, done.request.checkout
    return {
        "file": name,
        **json_object(done, "outcome", "note"),
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


def _show_analyzed(invocation: Invocation, done: AnalyzeResult) -> None:
    """Print one file for a person, and notify of what the owner should know."""
    file, checkout = done.file, done.request.checkout
    if done.outcome == "unchanged":
        if not invocation.as_json:
            how = f"is as it was when it was analyzed ({done.note}). --again asks anew."
            invocation.print(f"Nothing to do: {file.path.name} {how}")
    else:
        verb = styled("Would learn" if done.is_dry_run else "Learned", "green")
        git = None
        if checkout:
            commit = f" at {short(checkout.commit)}" if checkout.commit else ""
            changed = ", with uncommitted changes" if checkout.is_changed else ""
            git = f"{checkout.repository}{commit}{changed}"
        details = (file.media, count(file.pages, "page") if file.pages else "", size(file.size), file.title)
        rows = known(("note", done.note), ("file", ", ".join(filter(None, details))), ("git", git))
        lists = {
            "summary": [done.summary] if done.summary else [],
            "facts": [fact.text for fact in done.facts if fact.outcome == "created"],
            "missing": [f"{fact.text} ({fact.id[-5:]})" for fact in done.missing],
        }
        head = f"{verb}: {_phrase_learned(done, 'known already')} from {file.path.name}"
        _show_learned(invocation, done, head, rows, lists)
        warn_redacted(invocation, file.redacted)
    for remark in file.remarks:
        invocation.notify(remark)
    if done.missing:
        invocation.notify("What the file no longer says is kept. Forget it with: quaid forget REF")


def _phrase_learned(done: Learned, repeated: str) -> str:
    """Return the number of new facts, and of those that were `repeated`."""
    outcomes = Counter(fact.outcome for fact in done.facts)
    again = outcomes["confirmed"] + (outcomes["known"] if isinstance(done, AnalyzeResult) else 0)
    return f"{count(outcomes['created'], 'new fact')}{f', {again} {repeated}' if again else ''}"


def _learned_shape(done: Learned) -> dict[str, object]:
    """Return the keys that both answers have. Facts that a dry run would make have no id and path yet."""
    facts = []
    for fact in done.facts:
        is_new = done.is_dry_run and fact.outcome == "created"
        place = {"id": None, "path": None} if is_new else json_object(fact, "id", "path")
        facts.append({**place, "text": fact.text, "outcome": fact.outcome})
    return {
        "dry_run": done.is_dry_run,
        "facts": facts,
        **json_object(done, "entities", "edges", "left_out", "model", "prompt"),
        "usage": json_object(done.usage, "calls", "input_tokens", "output_tokens", "cached_tokens", "cost_usd"),
        "degraded": [],  # a reading is one call of a model: it has no parts that could be missing
        **json_object(done, "commit", "left"),
    }


def _show_learned(
    invocation: Invocation,
    done: Learned,
    head: str,
    rows: list[tuple[str, str]],
    lists: dict[str, list[str]],
    details: Sequence[tuple[str, str]] = (),
) -> None:
    """Print what was learned below `head`: first `rows`, then texts by title, then `details`."""

    def add(title: str, texts: Sequence[str]) -> None:
        most = None if done.is_dry_run and title == "facts" else MAX_SHOWN
        for number, text in enumerate(first(texts, most)):
            rows.append(("" if number else title, clipped(text, line_width() - MARGIN)))

    for title, texts in lists.items():
        add(title, texts)
    rows += details
    add("not kept", [f"{item.text}: {item.reason}" for item in done.left_out])
    add("names", [", ".join(done.entities)] if done.entities else [])
    if done.model and done.usage.calls:
        cost = f", ${done.usage.cost_usd:.4f}" if done.usage.cost_usd else ""
        rows.append(("model", f"{done.model}, {done.usage.tokens:,} tokens{cost}"))
    if not invocation.as_json:
        invocation.print(titled(head, [*rows, *known(("commit", short(done.commit)))]))
    warn_left(invocation, done.left)


MAX_NAMED = 10
_WIDTH = 100


def run_import(
    invocation: Invocation,
    path: Annotated[str | None, argument("PATH", "A file or a folder; - reads a file from stdin.")] = None,
    format_: Annotated[
        str | None,
        option(
            "NAME",
            "The program, or with PATH the format, when the content does not tell: quaid, mem0, basic-memory, "
            "markdown, notes.",
            "--from",
        ),
    ] = None,
    follow: Annotated[
        str | None, option("NAME", "Take in a program, or PATH under this name, and ask about each later change.")
    ] = None,
    unfollow: Annotated[str | None, option("NAME", "Ask about its changes no more.")] = None,
    owner: Annotated[str | None, option("NAME", "The owner of the facts.")] = None,
    keep_owners: Annotated[bool, flag("Keep each user_id of mem0 as the owner.", "--keep-owners")] = False,
    project: Annotated[str | None, option("NAME", "The project the facts belong to.")] = None,
    into: Annotated[
        str | None, option("FOLDER", "The folder of the vault for imported notes; the default is notes/NAME.")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Import other memories. Without PATH, find those that programs store on this machine: Codex, Claude Code,
    OpenClaw, Gemini CLI, Cursor, Windsurf, basic-memory, and an export of Claude.ai.

    With PATH: markdown memories (MEMORY.md, daily notes, a list with a memory on each line), an export of Claude.ai,
    ChatGPT or mem0, a basic-memory project, a folder of notes such as an Obsidian vault, or what `quaid export` wrote.
    The format is recognised by the content. No model is asked. Importing again adds only what is new.

    Examples:
      quaid import --dry-run
      quaid import --from codex
      quaid import --follow claude-code
      quaid import ~/basic-memory
      quaid import mem0.json --owner maya
    """
    if follow is not None and (path == "-" or len(follow.split()) != 1):
        raise UsageError("--follow takes the name of a program, or a name in one word for a file or folder.")
    programs = {program.name: program for program in find_programs(Path.home(), os.environ)}
    options = {"project": project, "keep_owners": keep_owners, "into": into, "dry_run": dry_run}
    with invocation.open(owner=owner) as memory:
        if unfollow is not None:
            end_following(memory.root, unfollow)
            invocation.respond(f"Not followed any more: {unfollow}", unfollowed=unfollow)
            return
        name, given = follow or format_, Path(path or "").expanduser().absolute()
        if path is None and name is None:
            import_found(invocation, memory, list(programs.values()), yes=yes, **options)
            return
        if path is None and name not in programs:
            known = f"Found were: {', '.join(programs)}. " if programs else ""
            raise BadInputError(
                f"No memories of {name!r} were found on this machine. {known}Or give a file or a folder."
            )
        source: Path | IO[bytes] | Program = sys.stdin.buffer
        if path is None:
            source = programs[str(name)]
        elif path != "-":
            whole = [each for each in programs.values() if each.places == (given,) and not format_]
            source = name_program(follow, given) if follow else next(iter(whole), given)
        try:
            with invocation.progress(memory):
                imported = memory.import_from(source, format=format_ if path else None, **options)
        except BadInputError as error:
            hint = hint_for(given, "import") if path not in {None, "-"} and not (format_ or into) else ""
            raise BadInputError(f"{error}{hint}") from error
        if follow and not dry_run:
            begin_following(memory.root, follow, str(given) if path else "")
    invocation.respond(render_imported(imported), **_import_shape(imported))
    remark_on_imported(invocation, imported)
    if follow and not dry_run:
        invocation.notify(
            f"Each night asks about what has changed in it. End that with: quaid import --unfollow {follow}"
        )


def import_found(
    invocation: Invocation, memory: Memory, programs: Sequence[Program], *, yes: bool = False, **options: Any
) -> None:
    """Show the memories that programs store on this machine, and take in those that are wanted."""
    found: list[dict[str, Any]] = []
    taken: list[ImportResult] = []
    asks, takes = can_answer(invocation) and not yes, not options.get("dry_run")
    for program in programs:
        try:
            with invocation.progress(memory):
                would = memory.import_from(program, **{**options, "dry_run": True})
            found.append({**json_object(program, "name", "title", "places"), **_import_shape(would)})
            if not invocation.as_json:
                total = count(would.counts.get("facts", 0) + would.known, "memory", "memories")
                head = f"{program.title} ({program.name}), {total} in {program.folder}"
                invocation.print(lines(head, render_imported(would)))
            if takes and would.counts and (yes or (asks and typer.confirm("Take it in?", default=True, err=True))):
                with invocation.progress(memory):
                    taken.append(memory.import_from(program, **options))
                remark_on_imported(invocation, taken[-1])
                invocation.notify(f"Imported: {phrase_counts(taken[-1].counts)} from {taken[-1].format}")
        except QuaidError as error:  # a problem with one ends nothing else
            invocation.notify(f"{program.title}: {error}")
    if not found:
        invocation.notify("No memories of other programs were found on this machine. Give a file or a folder.")
    elif takes and not (yes or asks):
        invocation.notify(f"Take one in with: quaid import --from {found[0]['name']}; all of them: quaid import --yes")
    if invocation.as_json:
        invocation.print_json(found=found, imported=[_import_shape(imported) for imported in taken])


def _import_shape(imported: ImportResult) -> dict[str, Any]:
    return {
        **json_object(imported, "source", "format", "dry_run"),
        "counts": {**dict.fromkeys(KINDS, 0), **imported.counts},
        **json_object(imported, "known", "left_out", "redacted", "clashes"),
        "namesakes": [{"path": path, "other": other} for path, other in imported.namesakes],
        **{"examples" if kind == "new" else kind: texts for kind, texts in imported.texts.items()},
        **json_object(imported, "commit", "left"),
    }


def render_imported(imported: ImportResult) -> str:
    """The counts of an import, and what was left out."""
    head = f"Nothing new in {imported.source} ({imported.format})"
    if imported.counts:
        verb = "Would import" if imported.dry_run else styled("Imported", "green")
        head = f"{verb}: {phrase_counts(imported.counts)} from {imported.format}"
    repeated = f"{imported.known:,}" if imported.known else None
    new, newer, missing, _ = ([(clipped(text, _WIDTH),) for text in texts] for texts in imported.texts.values())
    reasons = sorted(imported.left_out.items(), key=lambda pair: (-pair[1], pair[0]))
    return lines(
        titled(head, known(("known already", repeated), ("commit", short(imported.commit)))),
        section("First of them", new if imported.dry_run else []),
        section("Newer than before", newer[:MAX_SHOWN]),
        section("No longer in the source; nothing was removed here", missing[:MAX_SHOWN]),
        section("Left out", [(f"{number:,}", reason) for reason, number in reasons]),
    )


def remark_on_imported(invocation: Invocation, imported: ImportResult) -> None:
    """Notify of what was redacted, left as it was or left uncommitted."""
    if imported.redacted:
        places = [f"{place} ({', '.join(secrets)})" for place, secrets in imported.redacted.items()]
        invocation.notify(f"Secrets were taken out of {name_first(places, MAX_NAMED)}.")
    if imported.clashes:
        many = count(len(imported.clashes), "path holds", "paths hold")
        invocation.notify(f"{many} something else already and stayed: {name_first(imported.clashes, MAX_NAMED)}.")
    if imported.namesakes:
        pairs = [f"{path} and {other}" for path, other in imported.namesakes]
        invocation.notify(f"Of one name, so that a link to it may mean either: {name_first(pairs, MAX_NAMED)}.")
    warn_left(invocation, imported.left)


def run_export(
    invocation: Invocation,
    file: Annotated[str | None, argument("FILE", "The file to write; the default, -, is stdout.")] = None,
    kind: Annotated[
        list[str] | None, option("KIND", "Only this kind: fact, entity, episode, core, note …; repeatable.")
    ] = None,
) -> None:
    """Write the memory as JSON lines, a note each: its text and what it says of itself, and the whole file.

    `quaid import` brings it back byte for byte. Settings, attachments and the history are not in it.

    Examples:
      quaid export memory.jsonl
      quaid export --kind fact | jq -r .text
      quaid export | quaid import - --vault ~/other
    """
    with invocation.open() as memory:
        if documents.count(memory.whole_index()) > documents.count(memory.visible_index()):
            invocation.notify("Notes that others keep private are left out. Who asks is $QUAID_OWNER.")
        # ASCII alone: whatever reads the file line by line finds the lines that were written.
        rows = (json.dumps(row) for row in memory.export(kind or ()))
        if file is None or file == "-":
            for row in rows:
                print(row)
            return
        path = Path(file).expanduser().absolute()
        number = write_export(rows, path)
    invocation.respond(f"{styled('Exported', 'green')}: {count(number, 'note')} to {path}", path=path, notes=number)
