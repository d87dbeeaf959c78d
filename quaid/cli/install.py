"""`quaid install` and `quaid uninstall`, and the question before anything is sent to a model."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from quaid.agents import installation
from quaid.agents.hosts import InstallOptions
from quaid.agents.installation import ConfigChange, HostStatus, InstallResult
from quaid.cli.invocation import Invocation
from quaid.cli.options import DryRun, argument, can_answer, flag, require_installation
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
_PROJECT = flag("claude-code: change the config of this folder instead of your own.", "--project")


def run_install(
    invocation: Invocation,
    host: Annotated[str | None, _HOST] = None,
    dry_run: DryRun = False,
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
    if host and not dry_run:
        require_installation()
    if host == _GIT_HOOK:
        _change_git_hook(invocation, installed=True, dry_run=dry_run, others=project or plugin)
        return
    machine = installation.this_machine()
    if host is None:
        _list_hosts(invocation, installation.list_hosts(machine))
        return
    # The vault is written into the host's config: no folder that an agent works in can choose another.
    vault, remark = locate_vault(invocation.vault)
    if remark:
        invocation.notify(remark)
    if invocation.vault:
        vault_guard.check(vault)
    wanted = InstallOptions(installation.our_command(), vault, project, plugin)
    done = installation.install(machine, installation.find_host(host), wanted, dry_run=dry_run)
    _respond(invocation, done, dry_run=dry_run, is_removed=False)
    if not (vault / CONFIG_FILE).is_file():
        invocation.notify(f"There is no vault at {vault} yet. Make one with: quaid init {shlex.quote(str(vault))}")
    elif not dry_run:
        tell_about_models(invocation, load_settings(vault).models)


def run_uninstall(
    invocation: Invocation,
    host: Annotated[str, _HOST],
    dry_run: DryRun = False,
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
    _respond(invocation, done, dry_run=dry_run, is_removed=True)


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


def _list_hosts(invocation: Invocation, hosts: Sequence[HostStatus]) -> None:
    """Show the programs that agents run in, a line for each."""
    rows, shapes = [], []
    for one in hosts:
        state = "found" if one.found else styled("not found", "dim")
        if one.problem or one.installed:
            state = styled("cannot be read", "red") if one.problem else styled("installed", "green")
        is_open = one.found and not (one.problem or one.installed)
        step = f"quaid install {one.host.name}" if is_open else one.problem
        rows.append((one.host.name, state, step))
        shape = json_object(one.host, "name", "title") | json_object(one, "found", "installed", files=one.paths)
        shapes.append({**shape, "problem": one.problem or None, "next_step": step})
    ending = "" if any(one.found for one in hosts) else "None of them was found on this machine."
    if any(one.installed for one in hosts):
        ending = "Prove what is installed with: quaid doctor --hooks"
    invocation.respond(lines(columns(rows), ending), hosts=shapes)


def _respond(invocation: Invocation, done: InstallResult, *, dry_run: bool, is_removed: bool) -> None:
    """Show what was done to a program's configs, and what is left to the user."""
    title, state = done.host.title, "taken out of" if is_removed else "installed in"
    if not done.changes:
        text = f"Nothing to do: Quaid is {'not ' * is_removed}installed in {title}."
    elif dry_run:
        most = 2 * line_width()  # a config of one line would fill the screen
        rows = [row for change in done.changes for row in change.diff().splitlines()]
        diff = "\n".join(coloured(row if len(row) <= most else clipped(row, most), "") for row in rows)
        steps = ["", "Then left to you:", *_render_steps(done)] if done.next_steps and not is_removed else []
        text = "\n".join([f"Quaid would be {state} {title}. Nothing was changed.", "", diff, *steps])
    elif is_removed:
        parts = [f"{styled(f'Quaid is {state} {title}', 'bold')}. Your memory stays.", *_render_changes(done)]
        if altered := [name for change in done.changes for name in change.altered]:
            parts.append(f"  Not as Quaid had left it, and taken out all the same: {'; '.join(_join_hooks(altered))}")
        parts += ["", f"{title} notices when it is started again."]
        parts += [f"  {line}" for step in done.next_steps for line in step.splitlines()]
        text = "\n".join(parts)
    else:
        parts = [f"{styled(f'Quaid is {state} {title}', 'bold')}.", *_render_changes(done), "", "Left to you:"]
        parts += [*_render_steps(done), "", "Prove that it works with: quaid doctor --hooks"]
        text = "\n".join(parts)
    files = [
        json_object(
            change,
            "path",
            "altered",
            entries=change.names,
            backup=_backup(change),
            removed=change.after is None,
            diff=change.diff(),
        )
        for change in done.changes
    ]
    shape = {"host": done.host.name, "dry_run": dry_run, "changed": bool(files), "files": files}
    invocation.respond(text, **shape, still_to_do=done.next_steps)


def _render_steps(done: InstallResult) -> Iterator[str]:
    for number, step in enumerate(done.next_steps, 1):
        # A sentence, and below it the command to type, if there is one, in one piece.
        sentence, _, command = step.partition("\n")
        yield wrapped(sentence, "     ").replace("     ", f"  {number}. ", 1)
        if command:
            yield f"     {command}"


def _backup(change: ConfigChange) -> Path | None:
    """Return the copy of a config as it was before, if it is still there."""
    return change.backup if change.backup and change.backup.exists() else None


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
