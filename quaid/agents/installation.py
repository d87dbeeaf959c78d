"""Putting Quaid into the programs agents live in, and taking it out: plans from `hosts`, carried out here.

All configs of a host are read and planned before the first is written, and what was written is put back when a later
one cannot be: a host has Quaid wholly or not at all.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files as package_files
from pathlib import Path

from quaid import trust
from quaid.agents import config_entries, config_files, receipts
from quaid.agents.config_entries import ConfigTextError
from quaid.agents.hosts import HOSTS, Host, InstallOptions, Machine, Target, leftovers
from quaid.agents.receipts import Receipt
from quaid.errors import HostConfigError, HostNotFoundError, QuaidError, UsageError
from quaid.place import CONFIG_FILE


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """What becomes of one config. `after` is None where the file goes away, `exact` where it is as it once was."""

    path: Path
    names: tuple[str, ...]
    before: bytes | None
    after: bytes | None
    altered: tuple[str, ...] = ()
    exact: bool = False
    backup: Path | None = None

    def diff(self) -> str:
        """What changes, line by line, as `diff -u` shows it."""
        before, after = ((data or b"").decode("utf-8", "replace") for data in (self.before, self.after))
        name = str(self.path)
        lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class InstallResult:
    """What was done to a host, or would be, and what is left to its user."""

    host: Host
    changes: tuple[ConfigChange, ...]
    still_to_do: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostStatus:
    """How a host is on this machine. `problem` is why that cannot be told."""

    host: Host
    found: bool
    installed: bool
    paths: tuple[Path, ...]
    problem: str = ""


def this_machine(folder: Path | None = None) -> Machine:
    """The machine this runs on, seen from `folder` (the working one)."""
    packaged = Path(str(package_files("quaid"))) / "data" / "hooks"
    plugins = packaged if packaged.is_dir() else Path(__file__).parents[1] / "hooks"
    return Machine(Path.home(), sys.platform, os.environ, folder or Path.cwd(), plugins)


def our_command() -> tuple[str, ...]:
    """What starts this installation from anywhere, without a PATH: its script, else its interpreter."""
    script = Path(sys.executable).with_name("quaid")
    return (str(script),) if os.access(script, os.X_OK) else (sys.executable, "-P", "-m", "quaid")


def find_host(name: str) -> Host:
    """The host of that name.

    Raises:
        UsageError: there is none.
    """
    if name in HOSTS:
        return HOSTS[name]
    near = difflib.get_close_matches(name, HOSTS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"There is no host {name!r}.{hint} There are: {', '.join(HOSTS)}.")


def install(machine: Machine, host: Host, wanted: InstallOptions, *, dry_run: bool = False) -> InstallResult:
    """Put Quaid into a host's configs; where it is already nothing changes.

    Raises:
        UsageError: the host knows no projects or no plugins.
        HostNotFoundError: it is not on this machine.
        UntrustedVaultError, ForeignVaultError: the vault may not be read.
        HostConfigError, LockedError: a config cannot be changed; none was.
    """
    wanted = _checked(machine, host, wanted)
    known = receipts.load(receipts_file(machine))
    changes = []
    for target in host.targets(machine, wanted):
        held = config_files.read(target.path)
        left = known.get(str(target.path))
        # What an earlier call wanted and this one does not: QUAID_HOME for a plugin, say.
        names = {(entry.path, entry.kind) for entry in target.wanted}
        former = tuple(entry for entry in (left.entries if left else ()) if (entry.path, entry.kind) not in names)
        try:
            merged = config_entries.merge(held.text, target.syntax, target.wanted, (*target.unwanted, *former))
        except ConfigTextError as error:
            raise HostConfigError(target.path, str(error)) from error
        if merged.changed:
            is_empty = left is not None and left.backup is None and _is_blank(merged.text)
            after = None if is_empty else merged.text.encode()
            changes.append((target, held, ConfigChange(target.path, merged.changed, held.data, after)))
    done = changes if dry_run else _apply(machine, changes)
    return InstallResult(host, tuple(change for _, _, change in done), host.still_to_do(wanted))


def uninstall(machine: Machine, host: Host, *, project: bool = False, dry_run: bool = False) -> InstallResult:
    """Take Quaid out of a host's configs, in whichever way it was put in.

    A config that nobody has touched since becomes what it was, byte by byte.

    Raises:
        UsageError: the host knows no projects.
        HostConfigError, LockedError: a config cannot be changed; none was.
    """
    if project and not host.has_projects:
        raise UsageError(f"{host.title} has one config for all projects. Leave --project out.")
    known = receipts.load(receipts_file(machine))
    changes = []
    for target in _all_targets(machine, host, project=project):
        held = config_files.read(target.path)
        if held.data is None:
            continue
        change = _plan_removal(target, held, known.get(str(target.path)))
        if change.names:
            changes.append((target, held, change))
    done = changes if dry_run else _apply(machine, changes)
    still_to_do = leftovers(name for _, _, change in done for name in change.names)
    return InstallResult(host, tuple(change for _, _, change in done), still_to_do)


def list_hosts(machine: Machine) -> tuple[HostStatus, ...]:
    """All hosts: which are on this machine, and which have Quaid."""
    return tuple(_status_of(machine, host) for host in HOSTS.values())


def receipts_file(machine: Machine) -> Path:
    """Where it is kept what was written where."""
    default = machine.home / ".local" / "share"
    if machine.platform == "darwin":
        default = machine.application_folder()
    return machine.setting("XDG_DATA_HOME", default) / "quaid" / "installed.json"


def _all_targets(machine: Machine, host: Host, *, project: bool) -> tuple[Target, ...]:
    """The host's configs with all that Quaid may have put there, in whichever way."""
    ways = [InstallOptions(our_command(), project=project, plugin=plugin) for plugin in {False, bool(host.plugin)}]
    found: dict[Path, Target] = {}
    for target in (target for way in ways for target in host.targets(machine, way)):
        other = found.get(target.path)
        both = (*other.wanted, *target.wanted) if other else target.wanted
        found[target.path] = replace(target, wanted=both, unwanted=())
    return tuple(found.values())


def _status_of(machine: Machine, host: Host) -> HostStatus:
    targets = _all_targets(machine, host, project=False)
    found = any(mark.exists() for mark in host.marks(machine))
    paths = tuple(target.path for target in targets)
    try:
        installed = any(
            next(
                config_entries.find_places(
                    config_entries.read(config_files.read(target.path).text, target.syntax), entry
                ),
                None,
            )
            for target in targets
            for entry in target.wanted
            if entry.kind != "item"
        )
    except ConfigTextError as error:
        return HostStatus(host, found, installed=False, paths=paths, problem=str(error))
    except HostConfigError as error:
        return HostStatus(host, found, installed=False, paths=paths, problem=str(error))
    return HostStatus(host, found, installed, paths)


def _checked(machine: Machine, host: Host, wanted: InstallOptions) -> InstallOptions:
    """What is wanted, as far as the host can have it."""
    brings_plugin = (machine.plugins / host.name).is_dir()
    if wanted.project and not host.has_projects:
        raise UsageError(f"{host.title} has one config for all projects. Leave --project out.")
    if wanted.plugin and host.plugin != "asked":
        raise UsageError(f"{host.title} has no plugin to choose. Leave --plugin out.")
    if wanted.plugin and not brings_plugin:
        raise UsageError(f"This installation of Quaid brings no plugin for {host.title}. Leave --plugin out.")
    if wanted.vault and (wanted.vault / CONFIG_FILE).exists():
        trust.check(wanted.vault)
    if not wanted.project and not any(mark.exists() for mark in host.marks(machine)):
        raise HostNotFoundError(host.title, host.marks(machine)[0])
    return replace(wanted, plugin=brings_plugin) if host.plugin == "always" else wanted


def _plan_removal(target: Target, held: config_files.ConfigFile, left: Receipt | None) -> ConfigChange:
    written = left.entries if left else ()
    wanted = (*target.wanted, *(entry for entry in written if entry.kind == "key"))
    try:
        removed = config_entries.remove(held.text, target.syntax, wanted, written)
    except ConfigTextError as error:
        raise HostConfigError(target.path, str(error)) from error
    change = ConfigChange(target.path, removed.taken, held.data, removed.text.encode(), removed.altered)
    if left is None:
        return change
    if left.backup is None and _is_blank(removed.text):
        return replace(change, after=None, exact=True)
    backup = target.path.with_name(left.backup) if left.backup else None
    if _is_untouched(held, left) and backup is not None and backup.is_file():
        with suppress(QuaidError):
            return replace(change, after=config_files.read(backup).data, exact=True, backup=backup)
    return change


def _apply(
    machine: Machine, changes: Sequence[tuple[Target, config_files.ConfigFile, ConfigChange]]
) -> list[tuple[Target, config_files.ConfigFile, ConfigChange]]:
    """Back up, write, remember. Whatever fails, what was written before is put back."""
    done: list[tuple[Target, config_files.ConfigFile, ConfigChange]] = []
    known = receipts.load(receipts_file(machine))
    try:
        for target, held, change in changes:
            # As we left it, its backup is there already, or there was nothing to keep.
            is_kept = change.exact or _is_untouched(held, known.get(str(target.path)))
            kept = change if is_kept else replace(change, backup=config_files.back_up(held))
            done.append((target, held, kept))
            config_files.replace(held, change.after)
        if done:
            _save_receipts(machine, done)
    except QuaidError:
        for _, held, change in done:
            with suppress(QuaidError):
                config_files.replace(replace(held, data=change.after), held.data)
            if change.backup and not change.exact:
                change.backup.unlink(missing_ok=True)
        raise
    for _, _, change in done:
        if change.exact and change.backup:  # it stands in its place again
            change.backup.unlink(missing_ok=True)
    return done


def _save_receipts(machine: Machine, done: Sequence[tuple[Target, config_files.ConfigFile, ConfigChange]]) -> None:
    path = receipts_file(machine)
    known = receipts.load(path)
    for target, held, change in done:
        name = str(target.path)
        before = known.pop(name, None)
        if not _is_installed(target, change):
            continue
        after, backup = receipts.fingerprint(change.after), change.backup.name if change.backup else None
        if before is not None and _is_untouched(held, before):
            backup = before.backup
        elif before is not None:
            after = ""  # somebody was: no backup is what it would be without Quaid
        known[name] = Receipt(after, backup, target.wanted)
    receipts.save(path, known)


def _is_blank(text: str) -> bool:
    """Whether nobody would miss it: no entry and no comment."""
    return "".join(text.removeprefix("\ufeff").split()) in {"", "{}"}


def _is_untouched(held: config_files.ConfigFile, left: Receipt | None) -> bool:
    return left is not None and left.after == receipts.fingerprint(held.data)


def _is_installed(target: Target, change: ConfigChange) -> bool:
    if change.after is None or change.exact:
        return False
    plain = config_entries.read(change.after.decode(), target.syntax)
    return any(next(config_entries.find_places(plain, entry), None) for entry in target.wanted)
