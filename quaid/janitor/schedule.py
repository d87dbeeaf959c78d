"""The janitor on a schedule: a systemd user timer, a launchd agent, else a line in the owner's crontab.

There is one schedule for each vault. Nothing here asks for more rights than the owner has. A scheduler only plans
steps, so that a dry run shows the very files and commands. What it has made is found again by a name that is a hash of
the vault's path; nothing else is touched.
"""

from __future__ import annotations

import hashlib
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.errors import BadInputError, QuaidError, UsageError, VaultReadOnlyError

TIMEOUT_S = 30
RETRY_S = 0.5
_LINGER = "/var/lib/systemd/linger"
_NO_CRONTAB = ("no crontab", "no such file")
"""The message of `crontab -l` for a user who has none. If it fails with another, the crontab stays as it is."""
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_ON_CALENDAR = re.compile(rb"^OnCalendar=\*-\*-\* (\d\d:\d\d):00$", re.MULTILINE)


class NoSchedulerError(QuaidError):
    """This machine has no scheduler that could run the janitor."""

    code = "no_scheduler"

    def __init__(self, missing: str) -> None:
        super().__init__(f"{missing}. Have your own scheduler run this daily: quaid janitor run -q --vault PATH")


class ScheduleError(QuaidError):
    """The machine's scheduler refused."""

    code = "schedule"

    def __init__(self, argv: Sequence[str], problem: str) -> None:
        super().__init__(
            f"{shlex.join(argv)} failed ({problem}): the schedule is not as you want it. See what would be done with: "
            "quaid janitor install --dry-run"
        )


class _Step(NamedTuple):
    """One thing to do, with a sentence for when it is done and one for when it would be: run `argv` with `data` as its
    input, else write `data` to `path`, else delete `path`.
    """

    done: str
    planned: str
    argv: tuple[str, ...] = ()
    path: Path | None = None
    data: bytes | None = None
    may_fail: bool = False
    tries: int = 1


# -- schedulers ------------------------------------------------------------------------------------------------------


class _Systemd:
    """A timer of the user's systemd. It catches up after a time at which the machine was off."""

    title = "a systemd timer"

    def is_available(self) -> bool:
        if not sys.platform.startswith("linux") or shutil.which("systemctl") is None:
            return False
        return _run(("systemctl", "--user", "show", "--property=Version"))[0] == 0

    def plan_install(self, root: Path, at: str, command: Sequence[str]) -> list[_Step]:
        service, timer = self._units(root)
        program, *arguments = map(_systemd_word, command)
        # In arguments, and only there, $ begins a variable.
        line = " ".join([program, *(word.replace("$", "$$") for word in arguments)])
        what = f"Description=Quaid's janitor tidies the memory in {root}".replace("%", "%%")
        # A popup with the news is a process that must not end with the run: hence KillMode.
        unit = f"""[Unit]
{what}

[Service]
Type=oneshot
ExecStart={line}
Environment={_systemd_word(f"PATH={_path_variable()}")}
EnvironmentFile=-{str(environment_file()).replace("%", "%%")}
KillMode=process
Nice=10
"""
        when = f"""[Unit]
{what}

[Timer]
OnCalendar=*-*-* {at}:00
Persistent=true

[Install]
WantedBy=timers.target
"""
        return [
            *_write(service, unit.encode()),
            *_write(timer, when.encode()),
            _systemctl("daemon-reload"),
            _systemctl("enable", timer.name),
            _systemctl("restart", timer.name),  # an active timer would keep its old time
        ]

    def plan_uninstall(self, root: Path) -> list[_Step]:
        units = self._units(root)
        files = [_delete(path) for path in units if path.exists()]
        if not files or not self.is_available():
            return files
        stop = _systemctl("disable", "--now", units[1].name, may_fail=True)
        return [stop, *files, _systemctl("daemon-reload", may_fail=True)]

    def find(self, root: Path) -> str | None:
        timer = self._units(root)[1]
        found = _ON_CALENDAR.search(timer.read_bytes()) if timer.is_file() else None
        return found[1].decode() if found else None

    def remarks(self) -> list[str]:
        if Path(_LINGER, os.environ.get("USER", "")).is_file():
            return []
        return ["It runs while you are logged in; to have it run always: loginctl enable-linger"]

    def _units(self, root: Path) -> tuple[Path, Path]:
        folder = _config_home() / "systemd" / "user"
        return folder / f"{_name(root)}.service", folder / f"{_name(root)}.timer"


class _Launchd:
    """An agent of macOS. It catches up after a time at which the machine slept."""

    title = "a launchd agent"

    def is_available(self) -> bool:
        return sys.platform == "darwin" and shutil.which("launchctl") is not None

    def plan_install(self, root: Path, at: str, command: Sequence[str]) -> list[_Step]:
        path, domain = self._path(root), f"gui/{os.getuid()}"
        agent = {
            "Label": path.stem,
            "ProgramArguments": ["/bin/sh", "-c", _shell_command(command)],
            "StartCalendarInterval": {"Hour": int(at[:2]), "Minute": int(at[3:])},
            "ProcessType": "Background",
            "StandardErrorPath": str(Path.home() / "Library" / "Logs" / f"{_name(root)}.log"),
        }
        return [
            *_write(path, plistlib.dumps(agent)),
            _call("launchctl", "bootout", f"{domain}/{path.stem}", may_fail=True),
            _call("launchctl", "bootstrap", domain, str(path), tries=6),  # the old agent takes a moment to go
        ]

    def plan_uninstall(self, root: Path) -> list[_Step]:
        path = self._path(root)
        if not path.exists():
            return []
        return [_call("launchctl", "bootout", f"gui/{os.getuid()}/{path.stem}", may_fail=True), _delete(path)]

    def find(self, root: Path) -> str | None:
        try:
            when = plistlib.loads(self._path(root).read_bytes())["StartCalendarInterval"]
            return f"{when['Hour']:02d}:{when['Minute']:02d}"
        except (OSError, plistlib.InvalidFileException, KeyError, TypeError, ValueError):
            return None

    def remarks(self) -> list[str]:
        return []

    def _path(self, root: Path) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"localhost.{_name(root)}.plist"


class _Cron:
    """A line of the owner's crontab, found again by the comment at its end."""

    title = "cron"

    def is_available(self) -> bool:
        return shutil.which("crontab") is not None

    def plan_install(self, root: Path, at: str, command: Sequence[str]) -> list[_Step]:
        # A bare % would end the command, and the rest of the line would be its input.
        escaped = _shell_command(command).replace("%", r"\%")
        line = f"{int(at[3:])} {int(at[:2])} * * * {escaped} # {_name(root)}"
        now, others = self._lines(root)
        wanted = [*others, line.encode()]
        if now == wanted:
            return []
        done, planned = f"Put this line into your crontab: {line}", f"Would put it into your crontab: {line}"
        return [_write_crontab(wanted, done, planned)]

    def plan_uninstall(self, root: Path) -> list[_Step]:
        try:
            now, others = self._lines(root)
        except ScheduleError:  # nothing was written to a crontab that cannot even be read
            return []
        if now == others:
            return []
        return [_write_crontab(others, "Took its line out of your crontab", "Would take its line out of your crontab")]

    def find(self, root: Path) -> str | None:
        try:
            now, others = self._lines(root)
        except ScheduleError:
            return None
        own = next((line.split() for line in now if line not in others), [b"", b""])
        return f"{int(own[1]):02d}:{int(own[0]):02d}" if own[0].isdigit() and own[1].isdigit() else None

    def remarks(self) -> list[str]:
        return ["cron does not make up for a night on which the machine is off."]

    def _lines(self, root: Path) -> tuple[list[bytes], list[bytes]]:
        """Return the lines of the crontab, and those of them that are not about `root`."""
        if not self.is_available():
            return [], []
        argv = ("crontab", "-l")
        code, out, error = _run(argv)
        if code and not any(word in error.lower() for word in _NO_CRONTAB):
            raise ScheduleError(argv, error or f"exit code {code}")
        lines = out.removesuffix(b"\n").split(b"\n") if out and not code else []
        return lines, [line for line in lines if not line.rstrip().endswith(f"# {_name(root)}".encode())]


_SCHEDULERS = (_Systemd(), _Launchd(), _Cron())
"""The first that is available is used."""

# -- commands --------------------------------------------------------------------------------------------------------


def install(root: Path, at: str = "03:30", *, dry_run: bool = False) -> list[str]:
    """Run the janitor every day `at` HH:MM, local time. Return a sentence for each step that was done.

    A second call changes what is there. With `dry_run` nothing is done, and the sentences describe the plan.

    Raises:
        UsageError: `at` is not a time of the day.
        BadInputError: the vault's path cannot be written in a schedule.
        NoSchedulerError: this machine has no scheduler that can be used.
        ScheduleError, VaultReadOnlyError: its scheduler refused: nothing is scheduled.
    """
    found = _TIME.fullmatch(at.strip())
    if found is None:
        raise UsageError(f"{at!r} is not a time of the day. Give hours and minutes: --at 03:30")
    at, command = f"{int(found[1]):02d}:{found[2]}", _find_command(root)
    chosen = next((scheduler for scheduler in _SCHEDULERS if scheduler.is_available()), None)
    if chosen is None:
        raise NoSchedulerError("This machine has neither systemd for users nor launchd nor cron")
    elsewhere = [step for other in _SCHEDULERS if other is not chosen for step in other.plan_uninstall(root)]
    steps = [*elsewhere, *chosen.plan_install(root, at, command)]
    if not dry_run:
        try:
            _carry_out(steps)
        except QuaidError:
            with suppress(QuaidError):
                _carry_out(chosen.plan_uninstall(root))
            raise
    verb = "would tidy" if dry_run else "tidies"
    return [
        *(step.planned if dry_run else step.done for step in steps),
        f"The janitor {verb} {root} every day at {at}, by {chosen.title}.",
        *chosen.remarks(),
        f"Keys that only your shell knows are not known there: put them, as NAME=key, into {environment_file()}",
    ]


def uninstall(root: Path, *, dry_run: bool = False) -> list[str]:
    """Undo what `install` did, by whichever scheduler. Return a sentence for each step.

    Raises:
        ScheduleError, VaultReadOnlyError: a scheduler refused.
    """
    steps = [step for scheduler in _SCHEDULERS for step in scheduler.plan_uninstall(root)]
    if not dry_run:
        _carry_out(steps)
    sentences = [step.planned if dry_run else step.done for step in steps]
    return sentences or [f"The janitor is not scheduled for {root}."]


def describe(root: Path) -> str | None:
    """Return a sentence on when the janitor runs automatically, and by what; None when it does not."""
    for scheduler in _SCHEDULERS:
        at = scheduler.find(root)
        if at is not None:
            return f"The janitor runs every day at {at}, by {scheduler.title}."
    return None


def environment_file() -> Path:
    """Return the file in which the owner can set variables for the job, keys of models above all."""
    return _config_home() / "quaid" / "janitor.env"


def _find_command(root: Path) -> tuple[str, ...]:
    # The program of this installation, else the one on the PATH.
    own = Path(sys.executable).with_name("quaid")
    program = str(own) if os.access(own, os.X_OK) else shutil.which("quaid")
    if program is None:
        raise NoSchedulerError("The program quaid is not on the PATH, so nothing could run it")
    command = (program, "janitor", "run", "-q", "--vault", str(root))
    for text in (*command, _path_variable()):
        if not text.isprintable():
            raise BadInputError(f"{text!r} cannot be written in a schedule. Rename the folder to printable characters.")
    return command


def _name(root: Path) -> str:
    return f"quaid-janitor-{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:8]}"


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _path_variable() -> str:
    """Return the PATH of this process: those of schedulers are short."""
    return os.environ.get("PATH", os.defpath)


def _systemd_word(text: str) -> str:
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%"))


def _shell_command(command: Sequence[str]) -> str:
    """Return the command for a shell, with the owner's file of variables in its environment."""
    keys = shlex.quote(str(environment_file()))
    path = shlex.quote(_path_variable())
    return f"set -a; [ -r {keys} ] && . {keys}; PATH={path}; set +a; {shlex.join(command)}"


# -- steps -----------------------------------------------------------------------------------------------------------


def _write(path: Path, data: bytes) -> Iterator[_Step]:
    """Yield the step that writes a file; none where it is as it should be."""
    if not path.is_file() or path.read_bytes() != data:
        yield _Step(f"Wrote {path}", f"Would write {path}:\n{data.decode().rstrip()}", path=path, data=data)


def _delete(path: Path) -> _Step:
    return _Step(f"Removed {path}", f"Would remove {path}", path=path)


def _call(*argv: str, may_fail: bool = False, tries: int = 1) -> _Step:
    command = shlex.join(argv)
    return _Step(f"Ran: {command}", f"Would run: {command}", argv, may_fail=may_fail, tries=tries)


def _systemctl(*args: str, may_fail: bool = False) -> _Step:
    return _call("systemctl", "--user", *args, may_fail=may_fail)


def _write_crontab(lines: Sequence[bytes], done: str, planned: str) -> _Step:
    return _Step(done, planned, ("crontab", "-"), data=b"".join(line + b"\n" for line in lines))


def _carry_out(steps: Sequence[_Step]) -> None:
    for step in steps:
        try:
            if step.argv:
                _run_patiently(step)
            elif step.path is not None and step.data is not None:
                step.path.parent.mkdir(parents=True, exist_ok=True)
                temporary = step.path.with_name(f".{step.path.name}.tmp")
                temporary.write_bytes(step.data)
                temporary.replace(step.path)
            elif step.path is not None:
                step.path.unlink(missing_ok=True)
        except OSError as error:
            raise VaultReadOnlyError(error.filename, error.strerror or str(error)) from error


def _run_patiently(step: _Step) -> None:
    code, _, problem = _run(step.argv, step.data or b"")
    for _ in range(step.tries - 1):
        if code:
            time.sleep(RETRY_S)
            code, _, problem = _run(step.argv, step.data or b"")
    if code and not step.may_fail:
        raise ScheduleError(step.argv, problem or f"exit code {code}")


def _run(argv: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Return the exit code, stdout, and stderr on one line."""
    environ = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False, env=environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, b"", str(error)
    return done.returncode, done.stdout, " ".join(done.stderr.decode("utf-8", "replace").split())
