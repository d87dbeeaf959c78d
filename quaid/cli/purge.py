"""`quaid purge`."""

import sys
from typing import Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.options import DryRun, Yes, argument, can_answer, flag, option
from quaid.cli.terminal import first
from quaid.errors import QuaidError, UsageError
from quaid.memory import Memory
from quaid.purge import purging
from quaid.purge.purging import Plan
from quaid.purge.wording import Wording
from quaid.shapes import json_object

_SHOWN = 10


def run_purge(
    invocation: Invocation,
    ref: Annotated[str | None, argument("[REF]", "The note to purge, in all its versions.")] = None,
    text: Annotated[
        str | None, option("TEXT", "Purge this text wherever it stands; - reads it from stdin.", "--text")
    ] = None,
    regex: Annotated[bool, flag("TEXT is a regular expression.", "--regex")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    drop_signatures: Annotated[
        bool, flag("Commits that are made again may lose their signatures.", "--drop-signatures")
    ] = False,
    disown: Annotated[
        str | None, option("OBJECT", "Purge nothing; ignore the lists in purged/ that name OBJECT.", "--disown")
    ] = None,
) -> None:
    """Forget for real: rewrite the history without a note or a text, and prove that nothing here holds it.

    A fact that says it loses its note; elsewhere it becomes [purged]. Every commit from the first that held it on gets
    a new id. Without REF and --text an interrupted purge is completed. A list of what was purged goes to purged/, for
    the other machines: none of them pulls or pushes it again.

    Examples:
      quaid purge 7k3qd --dry-run
      quaid purge --text "hunter2-swordfish"
      pass show old/token | quaid purge --text -
    """
    if disown is not None:
        with invocation.open() as memory:
            memory.git.purges.disown(disown)
        return invocation.respond(f"Ignored here from now on: lists in purged/ that name {disown}", purged=False)
    with invocation.open() as memory, invocation.progress(memory):
        asked = _what_is_asked(memory, ref, text, is_regex=regex)
        plan, _ = purging.look(memory, asked)
        remotes = [{"name": name, "url": url} for name, url in plan.remotes]
        shape = json_object(plan, texts=len(asked.texts), remotes=remotes)
        if not (dry_run or yes):
            if not can_answer(invocation):
                step = "See what goes with --dry-run, and agree with --yes."
                raise UsageError(f"A purge cannot be undone, so it asks. {step}")
            invocation.notify("\n".join(_render_plan(plan, asked)))
            yes = not plan.obstacles and typer.confirm("Purge it? This cannot be undone", default=False, err=True)
        if dry_run or not yes:
            return invocation.respond("\n".join(_render_plan(plan, asked)) if dry_run else "", purged=False, **shape)
        plan, proof = purging.purge(memory, asked, may_drop_signatures=drop_signatures)
    if not proof.holds:
        places = ", ".join(first(proof.places, _SHOWN))
        raise QuaidError(
            f"The text is still in, or cannot be looked for in: {places}. Run the same "
            "command again; what it names then, move out of the vault or delete yourself.",
            code="not_proved",
        )
    gone, changed = len(plan.notes), len(plan.changed)
    rows = [
        f"Purged: {plan.commits:,} commits made again, {gone:,} notes gone, {changed:,} changed",
        f"Proved: none of {proof.objects:,} objects, {proof.files:,} files and {proof.rows:,} values of tables has it",
    ]
    rows += [
        f"{note} has the same words, otherwise written. Look at it: quaid get {note}" for note in sorted(proof.similar)
    ]
    invocation.respond(
        "\n".join([*rows, *_render_elsewhere(plan)]),
        purged=True,
        **shape,
        proof=json_object(proof, "objects", "files", "rows", "similar"),
    )
    return None


def _what_is_asked(memory: Memory, ref: str | None, text: str | None, *, is_regex: bool) -> Wording:
    interrupted = purging.find_interrupted(memory)
    if ref is not None and text is not None:
        raise UsageError("REF and --text are two purges. Give one of them.")
    if text is not None:
        text = sys.stdin.read().strip("\r\n") if text == "-" else text
        return purging.join(purging.find_text(memory, text, is_regex=is_regex), interrupted)
    if ref is not None:
        return purging.join(purging.find_note(memory, ref), interrupted)
    if interrupted is None:
        raise UsageError("Nothing to purge was named. Give the reference of a note, or --text TEXT.")
    if not interrupted.versions:
        raise UsageError("The purge that was interrupted was told a text, which is not kept. Give --text again.")
    return interrupted


def _render_plan(plan: Plan, asked: Wording) -> list[str]:
    return [
        *[f"{path} has work that is not committed and holds the text" for path in plan.uncommitted],
        f"Notes that go: {len(plan.notes):,}{_names(plan.notes)}",
        f"Files in which [purged] stands for it: {len(plan.changed):,}{_names(plan.changed)}",
        f"History: {plan.blobs:,} old files and {plan.messages:,} messages hold it",
        f"Commits that are made again: {plan.commits:,}",
        *([f"{plan.signed:,} of them are signed and lose that: --drop-signatures"] if plan.signed else []),
        f"Texts looked for: {len(asked.texts):,}, in each encoding",
        *_render_elsewhere(plan),
        *[f"Not possible yet: {obstacle}" for obstacle in plan.obstacles],
    ]


def _names(paths: tuple[str, ...]) -> str:
    return f" ({', '.join(paths[:3])}{' …' if len(paths) > 3 else ''})" if paths else ""


def _render_elsewhere(plan: Plan) -> list[str]:
    """What this purge does not reach."""
    return [
        *[f"{name} ({url}) may hold it still: quaid push {name} says how to replace it" for name, url in plan.remotes],
        *(["On each other machine quaid pull says what to do there"] if plan.remotes else []),
        *[f"{clone} is a clone that may hold it still. There: quaid purge --vault {clone} …" for clone in plan.clones],
    ]
