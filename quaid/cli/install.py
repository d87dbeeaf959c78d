"""`quaid install` and `quaid uninstall`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quaid.cli.invocation import Invocation
from quaid.cli.terminal import clipped, columns, count, line_width, styled, wrapped

if TYPE_CHECKING:
    from quaid.agents.installation import ConfigChange, HostStatus, InstallResult

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_HOST = typer.Argument(
    metavar="HOST", help="claude-code, claude-desktop, cursor, windsurf, vscode, codex, gemini or openclaw."
)
_DRY_RUN = typer.Option("--dry-run", help="Show what would change, and change nothing.")
_PROJECT = typer.Option("--project", help="claude-code: this folder's own config, not yours for all folders.")


def run_install(
    ctx: typer.Context,
    host: Annotated[str | None, _HOST] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    project: Annotated[bool, _PROJECT] = False,
    plugin: Annotated[
        bool, typer.Option("--plugin", help="claude-code: switch on the plugin, with its skill and commands.")
    ] = False,
) -> None:
    """Put Quaid into the program your agent lives in; without a name, list them.

    Its config is edited, not rewritten: comments, order and everything else in it stay, a backup is kept beside it, and
    `quaid uninstall` takes back just what was put in. The host is given the vault that you name now, or that is used
    here without a name.

    Examples:
      quaid install
      quaid install claude-code --dry-run
      quaid install claude-code --project
      quaid install cursor --vault ~/work-memory
    """
    from quaid.agents import installation
    from quaid.agents.hosts import InstallOptions
    from quaid.cli.consent import ask_about_models
    from quaid.config import load_settings
    from quaid.place import CONFIG_FILE
    from quaid.trust import check, locate_vault

    invocation: Invocation = ctx.obj
    machine = installation.this_machine()
    if host is None:
        standings = installation.list_hosts(machine)
        invocation.tell(lambda: _render_survey(standings), hosts=[_shape_of_standing(one) for one in standings])
        return
    # The vault is written into the host's config: no folder that an agent works in can choose another.
    vault, remark = locate_vault(invocation.vault)
    if remark:
        invocation.say(remark)
    if invocation.vault:
        check(vault)
    wanted = InstallOptions(installation.our_command(), vault, project, plugin)
    done = installation.install(machine, installation.find_host(host), wanted, dry_run=dry_run)
    invocation.tell(lambda: _render_installed(done, dry_run=dry_run), **_shape(done, dry_run=dry_run))
    if not (vault / CONFIG_FILE).is_file():
        invocation.say(f"There is no vault at {vault} yet. Make one with: quaid init {vault}")
    elif not dry_run:
        ask_about_models(invocation, load_settings(vault).models)


def run_uninstall(
    ctx: typer.Context,
    host: Annotated[str, _HOST],
    dry_run: Annotated[bool, _DRY_RUN] = False,
    project: Annotated[bool, _PROJECT] = False,
) -> None:
    """Take Quaid out of a program again; the memory itself stays where it is.

    A config that nobody has touched since becomes what it was, byte by byte; from any other, what is Quaid's is taken.

    Examples:
      quaid uninstall claude-code --dry-run
      quaid uninstall cursor
    """
    from quaid.agents import installation

    invocation: Invocation = ctx.obj
    done = installation.uninstall(
        installation.this_machine(), installation.find_host(host), project=project, dry_run=dry_run
    )
    invocation.tell(lambda: _render_uninstalled(done, dry_run=dry_run), **_shape(done, dry_run=dry_run))


def _shape(done: InstallResult, *, dry_run: bool) -> dict[str, object]:
    return {
        "host": done.host.name,
        "dry_run": dry_run,
        "changed": bool(done.changes),
        "files": [
            {
                "path": change.path,
                "entries": list(change.names),
                "altered": list(change.altered),
                "backup": change.backup if change.backup and change.backup.exists() else None,
                "removed": change.after is None,
                "diff": change.diff(),
            }
            for change in done.changes
        ],
        "still_to_do": list(done.next_steps),
    }


def _shape_of_standing(standing: HostStatus) -> dict[str, object]:
    return {
        "name": standing.host.name,
        "title": standing.host.title,
        "found": standing.found,
        "installed": standing.installed,
        "files": list(standing.paths),
        "problem": standing.problem or None,
        "next_step": _next_step(standing),
    }


def _render_survey(standings: tuple[HostStatus, ...]) -> str:
    rows = [(one.host.name, _state(one), _next_step(one)) for one in standings]
    known = any(one.found or one.installed for one in standings)
    ending = "Prove what is installed with: quaid doctor --hooks" if any(one.installed for one in standings) else ""
    if not known:
        ending = "None of them was found on this machine."
    return "\n".join(filter(None, [columns(rows), "", ending]))


def _state(standing: HostStatus) -> str:
    if standing.problem:
        return styled("cannot be read", "red")
    if standing.installed:
        return styled("installed", "green")
    return "found" if standing.found else styled("not found", "dim")


def _next_step(standing: HostStatus) -> str:
    if standing.problem:
        return standing.problem
    if standing.installed:
        return ""
    return f"quaid install {standing.host.name}" if standing.found else ""


def _render_installed(done: InstallResult, *, dry_run: bool) -> str:
    title = done.host.title
    if not done.changes:
        return f"Nothing to do: Quaid is installed in {title}."
    if dry_run:
        return f"Quaid would be installed in {title}. Nothing was changed.\n\n{_render_diffs(done)}"
    lines = [f"{styled('Quaid is installed in ' + title, 'bold')}.", *_render_changes(done), "", "Left to you:"]
    lines += [_render_step(number, step) for number, step in enumerate(done.next_steps, 1)]
    return "\n".join([*lines, "", "Prove that it works with: quaid doctor --hooks"])


def _render_step(number: int, step: str) -> str:
    """A sentence, and below it the command to type, if there is one, in one piece."""
    sentence, _, command = step.partition("\n")
    said = wrapped(sentence, "     ").replace("     ", f"  {number}. ", 1)
    return f"{said}\n     {command}" if command else said


def _render_uninstalled(done: InstallResult, *, dry_run: bool) -> str:
    title = done.host.title
    if not done.changes:
        return f"Nothing to do: Quaid is not installed in {title}."
    if dry_run:
        return f"Quaid would be taken out of {title}. Nothing was changed.\n\n{_render_diffs(done)}"
    lines = [f"{styled('Quaid is taken out of ' + title, 'bold')}. Your memory stays.", *_render_changes(done)]
    altered = [name for change in done.changes for name in change.altered]
    if altered:
        lines.append(f"  Not as Quaid had left it, and taken out all the same: {'; '.join(_summed(tuple(altered)))}")
    lines += ["", f"{title} notices when it is started again."]
    lines += [f"  {line}" for step in done.next_steps for line in step.splitlines()]
    return "\n".join(lines)


def _render_changes(done: InstallResult) -> list[str]:
    lines = []
    for change in done.changes:
        lines.append(f"  {_short(change.path)}{_outcome(change)}")
        lines += [f"    {name}" for name in _summed(change.names)]
        if change.backup and change.backup.exists():
            lines.append(styled(f"    as it was: {change.backup.name}", "dim"))
    return lines


def _outcome(change: ConfigChange) -> str:
    if change.after is None:
        return " (removed: there was none before)"
    return " (as it was before, byte by byte)" if change.exact else ""


def _summed(names: tuple[str, ...]) -> list[str]:
    """The six hooks as one line."""
    hooks = [name.removeprefix("hooks.") for name in names if name.startswith("hooks.")]
    others = [name for name in names if not name.startswith("hooks.")]
    return [*([f"{count(len(hooks), 'hook')}: {', '.join(hooks)}"] if hooks else []), *others]


def _render_diffs(done: InstallResult) -> str:
    lines = [clipped_line for change in done.changes for clipped_line in change.diff().splitlines()]
    return "\n".join(styled(shown, _COLOURS[line[0]]) if line[:1] in _COLOURS else shown for line, shown in _cut(lines))


def _cut(lines: list[str]) -> list[tuple[str, str]]:
    """A config of one line would fill the screen: lines are shown as far as they fit."""
    return [(line, line if len(line) <= 2 * line_width() else clipped(line, 2 * line_width())) for line in lines]


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
