"""`quaid install` and `quaid uninstall`, and the question before anything is sent to a model."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from quaid.agents import installation
from quaid.agents.hosts import InstallOptions
from quaid.agents.installation import ConfigChange, HostStatus, InstallResult
from quaid.cli.invocation import Invocation
from quaid.cli.options import argument, can_answer, flag
from quaid.cli.terminal import clipped, coloured, columns, count, line_width, lines, styled, wrapped
from quaid.config import load_settings, set_users_own
from quaid.errors import UsageError
from quaid.history import commit_hook, vault_guard
from quaid.llm import Models
from quaid.llm.discovery import Description
from quaid.llm.prices import USUAL_DAY, cost_of_day
from quaid.place import CONFIG_FILE
from quaid.settings import ModelSettings
from quaid.shapes import json_object
from quaid.trust import locate_vault

_GIT_HOOK = "git-hook"
_HOST = argument("HOST", "claude-code, claude-desktop, cursor, windsurf, vscode, codex, gemini, openclaw or git-hook.")
_DRY_RUN = flag("Show what would change; change nothing.", "--dry-run")
_PROJECT = flag("claude-code: change the config of this folder instead of your own.", "--project")


def run_install(
    invocation: Invocation,
    host: Annotated[str | None, _HOST] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    project: Annotated[bool, _PROJECT] = False,
    plugin: Annotated[bool, flag("claude-code: enable the plugin, with its skill and commands.", "--plugin")] = False,
) -> None:
    """Install Quaid in the program that your agent runs in; without a name, list the programs. git-hook has git refuse
    commits of yours that bring a new secret into the vault's repository.

    Its config is edited, not rewritten: comments, order and everything else in it stay, a backup is kept beside it, and
    `quaid uninstall` removes just what was added. The program is given the vault of --vault, or the one that is used
    here without it.

    Examples:
      quaid install
      quaid install claude-code --dry-run
      quaid install claude-code --project
      quaid install cursor --vault ~/work-memory
      quaid install git-hook
    """
    if host == _GIT_HOOK:
        _change_git_hook(invocation, installed=True, dry_run=dry_run, others=project or plugin)
        return
    machine = installation.this_machine()
    if host is None:
        standings = installation.list_hosts(machine)
        invocation.respond(render_survey(standings), hosts=[shape_of_standing(one) for one in standings])
        return
    # The vault is written into the host's config: no folder that an agent works in can choose another.
    vault, remark = locate_vault(invocation.vault)
    if remark:
        invocation.notify(remark)
    if invocation.vault:
        vault_guard.check(vault)
    wanted = InstallOptions(installation.our_command(), vault, project, plugin)
    done = installation.install(machine, installation.find_host(host), wanted, dry_run=dry_run)
    invocation.respond(render_installed(done, dry_run=dry_run), **shape_of_done(done, dry_run=dry_run))
    if not (vault / CONFIG_FILE).is_file():
        invocation.notify(f"There is no vault at {vault} yet. Make one with: quaid init {shlex.quote(str(vault))}")
    elif not dry_run:
        tell_about_models(invocation, load_settings(vault).models)


def run_uninstall(
    invocation: Invocation,
    host: Annotated[str, _HOST],
    dry_run: Annotated[bool, _DRY_RUN] = False,
    project: Annotated[bool, _PROJECT] = False,
) -> None:
    """Remove Quaid from a program; the memory itself stays where it is.

    A config that has not changed since becomes what it was, byte by byte; from any other, Quaid's entries are removed.

    Examples:
      quaid uninstall claude-code --dry-run
      quaid uninstall cursor
      quaid uninstall git-hook
    """
    if host == _GIT_HOOK:
        _change_git_hook(invocation, installed=False, dry_run=dry_run, others=project)
        return
    done = installation.uninstall(
        installation.this_machine(), installation.find_host(host), project=project, dry_run=dry_run
    )
    invocation.respond(render_uninstalled(done, dry_run=dry_run), **shape_of_done(done, dry_run=dry_run))


def _change_git_hook(invocation: Invocation, *, installed: bool, dry_run: bool, others: bool) -> None:
    """Have git ask Quaid before commits in the vault's repository, or no longer; `others` are options of programs."""
    if others:
        raise UsageError("git-hook belongs to the vault's repository. Leave --project and --plugin out.")
    with invocation.open() as memory:
        if installed:
            path, changed = commit_hook.install(memory.root, installation.our_command(), dry_run=dry_run)
        else:
            path, changed = commit_hook.uninstall(memory.root, dry_run=dry_run)
    does = ("would look" if dry_run else "looks") if installed else ("would not look" if dry_run else "no longer looks")
    sentence = f"git {does} for new secrets before each commit of yours"
    if not changed:
        sentence = "Nothing to do: git looks for secrets" if installed else "Nothing to do: there is no hook of Quaid's"
    invocation.respond(f"{sentence}: {path}", host=_GIT_HOOK, dry_run=dry_run, changed=changed, files=[{"path": path}])


def shape_of_done(done: InstallResult, *, dry_run: bool) -> dict[str, object]:
    """Return what was done to a program's configs, as JSON."""
    return {
        "host": done.host.name,
        "dry_run": dry_run,
        "changed": bool(done.changes),
        "files": [
            {
                "path": change.path,
                "entries": change.names,
                "altered": change.altered,
                "backup": _backup(change),
                "removed": change.after is None,
                "diff": change.diff(),
            }
            for change in done.changes
        ],
        "still_to_do": done.next_steps,
    }


def shape_of_standing(standing: HostStatus) -> dict[str, object]:
    """A program that agents run in, as JSON."""
    return {
        "name": standing.host.name,
        "title": standing.host.title,
        **json_object(standing, "found", "installed"),
        "files": standing.paths,
        "problem": standing.problem or None,
        "next_step": _next_step(standing),
    }


def _backup(change: ConfigChange) -> Path | None:
    """The copy of a config as it was before, if it is still there."""
    return change.backup if change.backup and change.backup.exists() else None


def render_survey(standings: tuple[HostStatus, ...]) -> str:
    """One line a program that agents run in."""
    rows = []
    for one in standings:
        state = "found" if one.found else styled("not found", "dim")
        if one.problem or one.installed:
            state = styled("cannot be read", "red") if one.problem else styled("installed", "green")
        rows.append((one.host.name, state, _next_step(one)))
    ending = "" if any(one.found for one in standings) else "None of them was found on this machine."
    if any(one.installed for one in standings):
        ending = "Prove what is installed with: quaid doctor --hooks"
    return lines(columns(rows), ending)


def _next_step(standing: HostStatus) -> str:
    if standing.problem or standing.installed or not standing.found:
        return standing.problem
    return f"quaid install {standing.host.name}"


def render_installed(done: InstallResult, *, dry_run: bool) -> str:
    """Return what `quaid install` did, and what is left to the user."""
    title = done.host.title
    if not done.changes:
        return f"Nothing to do: Quaid is installed in {title}."
    if dry_run:
        return f"Quaid would be installed in {title}. Nothing was changed.\n\n{_render_diffs(done)}"
    parts = [f"{styled('Quaid is installed in ' + title, 'bold')}.", *_render_changes(done), "", "Left to you:"]
    for number, step in enumerate(done.next_steps, 1):
        # A sentence, and below it the command to type, if there is one, in one piece.
        sentence, _, command = step.partition("\n")
        parts.append(wrapped(sentence, "     ").replace("     ", f"  {number}. ", 1))
        parts += [f"     {command}"] if command else []
    return "\n".join([*parts, "", "Prove that it works with: quaid doctor --hooks"])


def render_uninstalled(done: InstallResult, *, dry_run: bool) -> str:
    """Return what `quaid uninstall` did."""
    title = done.host.title
    if not done.changes:
        return f"Nothing to do: Quaid is not installed in {title}."
    if dry_run:
        return f"Quaid would be taken out of {title}. Nothing was changed.\n\n{_render_diffs(done)}"
    parts = [f"{styled('Quaid is taken out of ' + title, 'bold')}. Your memory stays.", *_render_changes(done)]
    if altered := [name for change in done.changes for name in change.altered]:
        parts.append(f"  Not as Quaid had left it, and taken out all the same: {'; '.join(_join_hooks(altered))}")
    parts += ["", f"{title} notices when it is started again."]
    parts += [f"  {line}" for step in done.next_steps for line in step.splitlines()]
    return "\n".join(parts)


def _render_changes(done: InstallResult) -> list[str]:
    parts = []
    for change in done.changes:
        home = Path.home()
        path = f"~/{change.path.relative_to(home)}" if change.path.is_relative_to(home) else f"{change.path}"
        outcome = " (as it was before, byte by byte)" if change.exact else ""
        parts.append(f"  {path}{' (removed: there was none before)' if change.after is None else outcome}")
        parts += [f"    {name}" for name in _join_hooks(change.names)]
        if backup := _backup(change):
            parts.append(styled(f"    as it was: {backup.name}", "dim"))
    return parts


def _join_hooks(names: Sequence[str]) -> list[str]:
    """The names, all hooks as one."""
    hooks = [name.removeprefix("hooks.") for name in names if name.startswith("hooks.")]
    others = [name for name in names if not name.startswith("hooks.")]
    return [*([f"{count(len(hooks), 'hook')}: {', '.join(hooks)}"] if hooks else []), *others]


def _render_diffs(done: InstallResult) -> str:
    """The diffs; a config of one line would fill the screen, so lines are cut."""
    most = 2 * line_width()
    rows = [row for change in done.changes for row in change.diff().splitlines()]
    return "\n".join(coloured(row if len(row) <= most else clipped(row, most), "") for row in rows)


def tell_about_models(invocation: Invocation, settings: ModelSettings) -> None:
    """Say what a day costs with the models that the user has chosen, else ask about those that are there."""
    found = Models(settings).describe() if settings.provider else None
    if found is None:
        ask_about_models(invocation, settings)
    elif found.provider is not None:
        invocation.notify(describe_cost(found, settings))


def describe_cost(found: Description, settings: ModelSettings) -> str:
    """What a usual day costs with the models found, as a sentence."""
    models = " and ".join(dict.fromkeys([found.deep, found.fast]))
    if not found.goes_to:
        return f"With {models} on this machine a day costs nothing."
    cost = cost_of_day({"deep": found.deep, "fast": found.fast}, settings)
    if cost is None:
        return f"What a day costs with {models} is not known. Say it: quaid config models.deep_price IN/OUT"
    plan = ", unless a plan of yours covers it" if found.provider == "claude-code" else ""
    return f"A day ({USUAL_DAY}) costs about ${cost:.2f} with {models}{plan}."


def ask_about_models(invocation: Invocation, settings: ModelSettings, *, asks: bool = True) -> None:
    """Ask, or say how to agree where nobody can answer or, without `asks`, is to be asked; do nothing when the user has
    decided or there is no model.
    """
    found = None if settings.provider else Models(replace(settings, provider="auto")).describe()
    if found is None or found.provider is None:
        return
    invocation.notify(describe_cost(found, settings))
    where = f"sends them to {found.goes_to}" if found.goes_to else "stays on this machine"
    if not asks or not can_answer(invocation):
        invocation.notify(
            f"{found.provider} could draw facts from your conversations ({where}). Nothing is sent before you agree: "
            f"quaid config models.provider {found.provider}"
        )
        return
    question = f"May {found.provider} read your conversations and notes, to draw facts from them? That {where}"
    agreed = typer.confirm(question, default=False, err=True)
    path = set_users_own("models.provider", found.provider if agreed else "none")
    invocation.notify(f"Noted in {path}. Change it with: quaid config models.provider {'none' if agreed else 'auto'}")
