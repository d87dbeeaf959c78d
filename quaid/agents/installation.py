"""Install Quaid in the programs that agents live in, and uninstall it: edit their configs as hosts.py says.

All configs of a host are planned before the first is written, and restored if a later one cannot be written: Quaid is
installed in a host completely or not at all.
"""

import difflib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from quaid.agents import config_entries, config_files, config_text
from quaid.agents.config_files import ConfigFile, Receipt, fingerprint, load_receipts, save_receipts
from quaid.agents.hosts import HOSTS, Host, InstallOptions, Machine, Target, leftovers
from quaid.errors import HostConfigError, QuaidError, UsageError
from quaid.history import vault_guard
from quaid.place import CONFIG_FILE, data_folder

COMMAND_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of one config. `names` are its entries, `altered` those that the user had changed.

    `after` is None if the file is removed. `exact`: it becomes what it was before Quaid, from `backup` if set.
    """

    target: Target
    file: ConfigFile
    names: tuple[str, ...]
    after: bytes | None
    altered: tuple[str, ...] = ()
    exact: bool = False
    backup: Path | None = None

    @property
    def path(self) -> Path:
        return self.target.path

    def diff(self) -> str:
        """The change line by line, as `diff -u` shows it."""
        before, after = ((data or b"").decode("utf-8", "replace") for data in (self.file.data, self.after))
        name = str(self.path)
        lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


class InstallResult(NamedTuple):
    """The changes of a host's configs, made or planned, and the next steps of its user."""

    host: Host
    changes: tuple[ConfigChange, ...]
    next_steps: tuple[str, ...] = ()


class HostStatus(NamedTuple):
    """Whether a host is on this machine and has Quaid. `problem` is why that is not known."""

    host: Host
    found: bool
    installed: bool
    paths: tuple[Path, ...]
    problem: str = ""


def this_machine() -> Machine:
    """Return this machine, with the working folder for the configs of a project."""
    return Machine(Path.home(), sys.platform, os.environ, Path.cwd(), data_folder("hooks"))


def our_command() -> tuple[str, ...]:
    """Return the command that starts this installation without a PATH: its script, else its interpreter."""
    script = Path(sys.executable).with_name("quaid")
    return (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-P", "-m", "quaid")


def find_host(name: str) -> Host:
    """Return the host of that name.

    Raises:
        UsageError: there is none.
    """
    if name in HOSTS:
        return HOSTS[name]
    near = difflib.get_close_matches(name, HOSTS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"There is no host {name!r}.{hint} There are: {', '.join(HOSTS)}.")


def install(machine: Machine, host: Host, options: InstallOptions, *, dry_run: bool = False) -> InstallResult:
    """Add Quaid to a host's configs. A second time nothing changes.

    Raises:
        UsageError: the host has no projects or no plugin.
        QuaidError: it is not on this machine.
        UntrustedVaultError, ForeignVaultError: the vault may not be read.
        HostConfigError, LockedError: a config cannot be changed; none was.
    """
    has_plugin = (machine.plugins / host.name).is_dir()
    if options.project and not host.has_projects:
        raise UsageError(f"{host.title} has one config for all projects. Leave --project out.")
    if options.plugin and host.plugin != "asked":
        raise UsageError(f"{host.title} has no plugin to choose. Leave --plugin out.")
    if options.plugin and not has_plugin:
        raise UsageError(f"This installation of Quaid has no plugin for {host.title}. Leave --plugin out.")
    if options.vault and (options.vault / CONFIG_FILE).exists():
        vault_guard.check(options.vault)
    steps: tuple[str, ...] = ()
    if not options.project and not any(mark.exists() for mark in host.marks(machine)):
        absent = f"{host.title} was not found here: there is no {host.marks(machine)[0]}."
        if not dry_run:
            raise QuaidError(f"{absent} Install it, start it once, try again.", code="host_not_found")
        steps = (f"{absent} Install it and start it once first.",)
    options = replace(options, plugin=has_plugin) if host.plugin == "always" else options
    known = load_receipts(receipts_file(machine))
    changes = []
    for target in host.targets(machine, options):
        file = config_files.read(target.path)
        receipt = known.get(str(target.path))
        if target.syntax == "file" and target.wanted and file.data and not _is_untouched(file, receipt):
            continue  # the user has changed it
        # Entries of an earlier call that this one does not have, such as QUAID_HOME for a plugin.
        wanted = {(entry.path, entry.kind) for entry in target.wanted}
        former = [entry for entry in (receipt.entries if receipt else ()) if (entry.path, entry.kind) not in wanted]
        target = replace(target, unwanted=(*target.unwanted, *former))  # noqa: PLW2901 - with what is there
        text, names = _merge(target, file)
        if names:
            is_own = target.syntax == "file" or (receipt is not None and receipt.backup is None)
            after = None if is_own and _is_blank(text) else text.encode()
            changes.append(ConfigChange(target, file, names, after))
    done = changes if dry_run else _apply(machine, changes)
    return InstallResult(host, tuple(done), (*steps, *host.next_steps(options)))


def uninstall(machine: Machine, host: Host, *, project: bool = False, dry_run: bool = False) -> InstallResult:
    """Remove Quaid from a host's configs, however it was installed.

    A config that has not changed since becomes what it was, byte by byte.

    Raises:
        UsageError: the host has no projects.
        HostConfigError, LockedError: a config cannot be changed; none was.
    """
    if project and not host.has_projects:
        raise UsageError(f"{host.title} has one config for all projects. Leave --project out.")
    known = load_receipts(receipts_file(machine))
    changes = []
    for target in _all_targets(machine, host, project=project):
        file, receipt = config_files.read(target.path), known.get(str(target.path))
        if file.data is None:
            continue
        written = receipt.entries if receipt else ()
        wanted = (*target.wanted, *(entry for entry in written if entry.kind == "key"))
        try:
            text, removed, altered = config_entries.remove(file.text, target.syntax, wanted, written)
        except config_text.ConfigTextError as error:
            raise HostConfigError(target.path, str(error)) from error
        if not removed:
            continue
        change = ConfigChange(target, file, removed, text.encode(), altered)
        backup = target.path.with_name(receipt.backup) if receipt and receipt.backup else None
        if target.syntax == "file":
            change = replace(change, after=None, exact=_is_untouched(file, receipt))
        elif receipt and receipt.backup is None and _is_blank(text):
            change = replace(change, after=None, exact=True)
        elif _is_untouched(file, receipt) and backup is not None and backup.is_file():
            with suppress(QuaidError):
                change = replace(change, after=config_files.read(backup).data, exact=True, backup=backup)
        changes.append(change)
    done = changes if dry_run else _apply(machine, changes)
    return InstallResult(host, tuple(done), leftovers(name for change in done for name in change.names))


def list_hosts(machine: Machine) -> tuple[HostStatus, ...]:
    """Return for each host whether it is on this machine and has Quaid."""
    statuses = []
    for host in HOSTS.values():
        targets = _all_targets(machine, host, project=False)
        installed, problem = False, ""
        try:
            installed = any(
                any(config_entries.find_places(plain, entry))
                for target in targets
                for plain in [config_text.read(config_files.read(target.path).text, target.syntax)]
                for entry in target.wanted
                if entry.kind != "item"
            )
        except (config_text.ConfigTextError, HostConfigError) as error:
            problem = str(error)
        found = any(mark.exists() for mark in host.marks(machine))
        statuses.append(HostStatus(host, found, installed, tuple(target.path for target in targets), problem))
    return tuple(statuses)


def receipts_file(machine: Machine) -> Path:
    """Return the path of the receipts."""
    default = machine.home / ".local" / "share"
    if machine.platform == "darwin":
        default = machine.application_folder()
    return machine.setting("XDG_DATA_HOME", default) / "quaid" / "installed.json"


def _all_targets(machine: Machine, host: Host, *, project: bool) -> tuple[Target, ...]:
    """Return the host's configs with all entries of Quaid, however it was installed."""
    ways = [InstallOptions(our_command(), project=project, plugin=plugin) for plugin in {False, bool(host.plugin)}]
    found: dict[Path, Target] = {}
    for target in (target for way in ways for target in host.targets(machine, way)):
        other = found.get(target.path)
        both = (*other.wanted, *target.wanted) if other else target.wanted
        found[target.path] = replace(target, wanted=both, unwanted=(), command=())
    return tuple(found.values())


def _apply(machine: Machine, changes: Sequence[ConfigChange]) -> list[ConfigChange]:
    """Back up, write and save receipts. If anything fails, restore what was written before."""
    done: list[ConfigChange] = []
    known = load_receipts(receipts_file(machine))
    try:
        for change in changes:
            # A file as Quaid left it has its backup already, or there was no file.
            has_backup = change.exact or _is_untouched(change.file, known.get(str(change.path)))
            done.append(change if has_backup else replace(change, backup=config_files.back_up(change.file)))
            done[-1] = _write(machine, done[-1])
        if done:
            _save_receipts(machine, done)
    except QuaidError:
        for change in done:
            with suppress(QuaidError):
                config_files.replace(replace(change.file, data=change.after), change.file.data)
            if change.backup and not change.exact:
                change.backup.unlink(missing_ok=True)
        raise
    for change in done:
        if change.exact and change.backup:  # the config is equal to it again
            change.backup.unlink(missing_ok=True)
        if change.target.syntax == "file" and change.after is None:
            with suppress(OSError):  # the user has other files in it
                change.path.parent.rmdir()
    return done


def _write(machine: Machine, change: ConfigChange) -> ConfigChange:
    """Write a change, by the program's own command if there is one; what that leaves undone, into the file."""
    target, file, after = change.target, change.file, change.after
    program = shutil.which(target.command[0], path=machine.environ.get("PATH", "")) if target.command else None
    if program is not None:
        environ = {**machine.environ, "HOME": str(machine.home)}
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                [program, *target.command[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=machine.folder,
                env=environ,
                timeout=COMMAND_TIMEOUT_S,
                check=False,
            )
        file = config_files.read(target.path)
        after = _merge(target, file)[0].encode()
    if after != file.data:
        config_files.replace(file, after)
    return replace(change, after=after)


def _merge(target: Target, file: ConfigFile) -> tuple[str, tuple[str, ...]]:
    try:
        return config_entries.merge(file.text, target.syntax, target.wanted, target.unwanted)
    except config_text.ConfigTextError as error:
        snippet = config_entries.render_snippet(target.syntax, target.wanted)
        raise HostConfigError(target.path, str(error), snippet) from error


def _save_receipts(machine: Machine, done: Sequence[ConfigChange]) -> None:
    path = receipts_file(machine)
    known = load_receipts(path)
    for change in done:
        target = change.target
        before = known.pop(str(target.path), None)
        if change.after is None or change.exact:
            continue
        plain = config_text.read(change.after.decode(), target.syntax)
        if not any(any(config_entries.find_places(plain, entry)) for entry in target.wanted):
            continue
        after, backup = fingerprint(change.after), change.backup.name if change.backup else None
        if before is not None and _is_untouched(change.file, before):
            backup = before.backup
        elif before is not None:
            after = ""  # the user has changed it: no backup equals the file without Quaid
        known[str(target.path)] = Receipt(after, backup, target.wanted)
    save_receipts(path, known)


def _is_blank(text: str) -> bool:
    """Return whether the text holds no entry and no comment."""
    return "".join(text.removeprefix("\ufeff").split()) in {"", "{}"}


def _is_untouched(file: ConfigFile, receipt: Receipt | None) -> bool:
    return receipt is not None and receipt.after == fingerprint(file.data)
