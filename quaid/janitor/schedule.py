"""The janitor on a schedule: a systemd user timer, a launchd agent, else a line in the owner's crontab.

Each vault has its own schedule, found again by a name that is a hash of the vault's path. Nothing here needs more
rights than the owner has. A scheduler only plans steps, so that a dry run shows the exact files and commands.
"""

import hashlib
import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from quaid.errors import BadInputError, QuaidError, UsageError, VaultReadOnlyError
from quaid.place import write_private

TIMEOUT_S = 30
RETRY_S = 0.5
_LINGER = "/var/lib/systemd/linger"
_NO_CRONTAB = ("no crontab", "no such file")
"""The message of `crontab -l` for a user who has none. If it fails with another, the crontab stays as it is."""
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_ON_CALENDAR = re.compile(rb"^OnCalendar=\*-\*-\* (\d\d:\d\d):00$", re.MULTILINE)
_SERVICE = """[Unit]
{what}

[Service]
Type=oneshot
ExecStart={command}
Environment={path}
EnvironmentFile=-{keys}
KillMode=process
Nice=10
"""  # A popup with the news is a process that must not end with the run: hence KillMode.
_TIMER = """[Unit]
{what}

[Timer]
OnCalendar=*-*-* {at}:00
Persistent=true

[Install]
WantedBy=timers.target
"""


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
    """Run `argv` with `data` as its input, else write `data` to `path`, else delete `path`."""

    argv: tuple[str, ...] = ()
    path: Path | None = None
    data: bytes | None = None
    note: str = ""
    may_fail: bool = False
    tries: int = 1

    def describe(self, *, is_plan: bool) -> str:
        if self.argv:
            return f"{'Would run' if is_plan else 'Ran'}: {shlex.join(self.argv)}{self.note}"
        if self.data is None:
            return f"{'Would remove' if is_plan else 'Removed'} {self.path}"
        return f"Would write {self.path}:\n{self.data.decode().rstrip()}" if is_plan else f"Wrote {self.path}"

    @property
    def is_done(self) -> bool:
        """Return whether the file to write is as it should be."""
        return self.path is not None and self.path.is_file() and self.path.read_bytes() == self.data

    def carry_out(self) -> None:
        try:
            if self.path is None:
                code, _, problem = _run(self.argv, self.data or b"")
                for _ in range(self.tries - 1):
                    if code:
                        time.sleep(RETRY_S)
                        code, _, problem = _run(self.argv, self.data or b"")
                if code and not self.may_fail:
                    raise ScheduleError(self.argv, problem or f"exit code {code}")
            elif self.data is None:
                self.path.unlink(missing_ok=True)
            else:
                write_private(self.path, self.data)
        except OSError as error:
            raise VaultReadOnlyError(error.filename, error.strerror or str(error)) from error


class _Systemd:
    """A timer of the user's systemd. It catches up after a time at which the machine was off."""

    title = "a systemd timer"

    def is_available(self) -> bool:
        if not sys.platform.startswith("linux") or shutil.which("systemctl") is None:
            return False
        return _run(("systemctl", "--user", "show", "--property=Version"))[0] == 0

    @property
    def remark(self) -> str:
        if Path(_LINGER, os.environ.get("USER", "")).is_file():
            return ""
        return "It runs while you are logged in; to have it run always: loginctl enable-linger"

    def plan_install(self, root: Path, at: str, command: Sequence[str]) -> list[_Step]:
        def word(text: str) -> str:
            return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%"))

        service, timer = self._units(root)
        program, *arguments = map(word, command)
        unit = {
            "what": f"Description=Quaid's janitor tidies the memory in {root}".replace("%", "%%"),
            # In arguments, and only there, $ begins a variable.
            "command": " ".join([program, *(argument.replace("$", "$$") for argument in arguments)]),
            "path": word(f"PATH={os.environ.get('PATH', os.defpath)}"),
            "keys": str(environment_file()).replace("%", "%%"),
        }
        return [
            _Step(path=service, data=_SERVICE.format(**unit).encode()),
            _Step(path=timer, data=_TIMER.format(**unit, at=at).encode()),
            _Step(("systemctl", "--user", "daemon-reload")),
            _Step(("systemctl", "--user", "enable", timer.name)),
            _Step(("systemctl", "--user", "restart", timer.name)),  # an active timer would keep its old time
        ]

    def plan_uninstall(self, root: Path) -> list[_Step]:
        units = self._units(root)
        files = [_Step(path=path) for path in units if path.exists()]
        if not files or not self.is_available():
            return files
        stop = _Step(("systemctl", "--user", "disable", "--now", units[1].name), may_fail=True)
        return [stop, *files, _Step(("systemctl", "--user", "daemon-reload"), may_fail=True)]

    def find_time(self, root: Path) -> str | None:
        timer = self._units(root)[1]
        found = _ON_CALENDAR.search(timer.read_bytes()) if timer.is_file() else None
        return found[1].decode() if found else None

    def _units(self, root: Path) -> tuple[Path, Path]:
        folder = _config_home() / "systemd" / "user"
        return folder / f"{_name(root)}.service", folder / f"{_name(root)}.timer"


class _Launchd:
    """An agent of macOS. It catches up after a time at which the machine slept."""

    title = "a launchd agent"
    remark = ""

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
            _Step(path=path, data=plistlib.dumps(agent)),
            _Step(("launchctl", "bootout", f"{domain}/{path.stem}"), may_fail=True),
            _Step(("launchctl", "bootstrap", domain, str(path)), tries=6),  # the old agent takes a moment to go
        ]

    def plan_uninstall(self, root: Path) -> list[_Step]:
        path = self._path(root)
        stop = _Step(("launchctl", "bootout", f"gui/{os.getuid()}/{path.stem}"), may_fail=True)
        return [stop, _Step(path=path)] if path.exists() else []

    def find_time(self, root: Path) -> str | None:
        try:
            when = plistlib.loads(self._path(root).read_bytes())["StartCalendarInterval"]
            return f"{when['Hour']:02d}:{when['Minute']:02d}"
        except (OSError, plistlib.InvalidFileException, KeyError, TypeError, ValueError):
            return None

    def _path(self, root: Path) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"localhost.{_name(root)}.plist"


class _Cron:
    """A line of the owner's crontab, found again by the comment at its end."""

    title = "cron"
    remark = "cron does not make up for a night on which the machine is off."

    def is_available(self) -> bool:
        return shutil.which("crontab") is not None

    def plan_install(self, root: Path, at: str, command: Sequence[str]) -> list[_Step]:
        # A bare % would end the command, and the rest of the line would be its input.
        escaped = _shell_command(command).replace("%", r"\%")
        line = f"{int(at[3:])} {int(at[:2])} * * * {escaped} # {_name(root)}"
        return self._plan(root, [line.encode()], f", which adds this line: {line}")

    def plan_uninstall(self, root: Path) -> list[_Step]:
        try:
            return self._plan(root, [], ", which takes its line out")
        except ScheduleError:  # nothing was written to a crontab that cannot even be read
            return []

    def find_time(self, root: Path) -> str | None:
        with suppress(ScheduleError):
            now, others = self._lines(root)
            own = next((line.split() for line in now if line not in others), [b"", b""])
            return f"{int(own[1]):02d}:{int(own[0]):02d}" if own[0].isdigit() and own[1].isdigit() else None
        return None

    def _plan(self, root: Path, own: list[bytes], note: str) -> list[_Step]:
        now, others = self._lines(root)
        wanted = [*others, *own]
        text = b"".join(line + b"\n" for line in wanted)
        return [_Step(("crontab", "-"), data=text, note=note)] if now != wanted else []

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
    at = f"{int(found[1]):02d}:{found[2]}"
    own = Path(sys.executable).with_name("quaid")  # the program of this installation, else the one on the PATH
    program = str(own) if os.access(own, os.X_OK) else shutil.which("quaid")
    if program is None:
        raise NoSchedulerError("The program quaid is not on the PATH, so nothing could run it")
    command = (program, "janitor", "run", "-q", "--vault", str(root))
    for text in (*command, os.environ.get("PATH", os.defpath)):
        if not text.isprintable():
            raise BadInputError(f"{text!r} cannot be written in a schedule. Rename the folder to printable characters.")
    chosen = next((scheduler for scheduler in _SCHEDULERS if scheduler.is_available()), None)
    if chosen is None:
        raise NoSchedulerError("This machine has neither systemd for users nor launchd nor cron")
    elsewhere = [step for other in _SCHEDULERS if other is not chosen for step in other.plan_uninstall(root)]
    steps = [*elsewhere, *(step for step in chosen.plan_install(root, at, command) if not step.is_done)]
    if not dry_run:
        try:
            for step in steps:
                step.carry_out()
        except QuaidError:
            with suppress(QuaidError):
                for step in chosen.plan_uninstall(root):
                    step.carry_out()
            raise
    sentences = [
        *(step.describe(is_plan=dry_run) for step in steps),
        f"The janitor {'would tidy' if dry_run else 'tidies'} {root} every day at {at}, by {chosen.title}.",
        chosen.remark,
        f"Keys that only your shell knows are not known there: put them, as NAME=key, into {environment_file()}",
    ]
    return list(filter(None, sentences))


def uninstall(root: Path, *, dry_run: bool = False) -> list[str]:
    """Undo what `install` did, by whichever scheduler. Return a sentence for each step.

    Raises:
        ScheduleError, VaultReadOnlyError: a scheduler refused.
    """
    steps = [step for scheduler in _SCHEDULERS for step in scheduler.plan_uninstall(root)]
    for step in steps if not dry_run else ():
        step.carry_out()
    sentences = [step.describe(is_plan=dry_run) for step in steps]
    return sentences or [f"The janitor is not scheduled for {root}."]


def describe(root: Path) -> str | None:
    """Return a sentence on when the janitor runs automatically, and by what; None when it does not."""
    for scheduler in _SCHEDULERS:
        if (at := scheduler.find_time(root)) is not None:
            return f"The janitor runs every day at {at}, by {scheduler.title}."
    return None


def environment_file() -> Path:
    """Return the file in which the owner can set variables for the job, keys of models above all."""
    return _config_home() / "quaid" / "janitor.env"


def _name(root: Path) -> str:
    return f"quaid-janitor-{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:8]}"


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _shell_command(command: Sequence[str]) -> str:
    """Return the command for a shell, with the owner's variables and this process's PATH."""
    keys, path = shlex.quote(str(environment_file())), shlex.quote(os.environ.get("PATH", os.defpath))
    return f"set -a; [ -r {keys} ] && . {keys}; PATH={path}; set +a; {shlex.join(command)}"


def _run(argv: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Return the exit code, stdout, and stderr on one line."""
    environ = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False, env=environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, b"", str(error)
    return done.returncode, done.stdout, " ".join(done.stderr.decode("utf-8", "replace").split())
