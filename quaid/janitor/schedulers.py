"""Schedulers that can run a program every day, each in its own files: systemd, launchd, cron.

A scheduler plans steps and does nothing itself. What it has made is found again by a name that is a hash of the vault's
path. What was not made here is not touched.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quaid.errors import QuaidError

TIMEOUT_S = 30
RETRY_S = 0.5
_LINGER = "/var/lib/systemd/linger"
_NO_CRONTAB = ("no crontab", "no such file")
"""The message of `crontab -l` for a user who has none. If it fails with another, the crontab stays as it is."""
_ON_CALENDAR = re.compile(rb"^OnCalendar=\*-\*-\* (\d\d:\d\d):00$", re.MULTILINE)


class NoSchedulerError(QuaidError):
    """Nothing here could run the janitor by itself."""

    code = "no_scheduler"

    def __init__(self, missing: str) -> None:
        super().__init__(f"{missing}. Have your own scheduler run this daily: quaid janitor run -q --vault PATH")


class ScheduleError(QuaidError):
    """The machine's own scheduler refused."""

    code = "schedule"

    def __init__(self, argv: Sequence[str], said: str) -> None:
        super().__init__(
            f"{shlex.join(argv)} failed ({said}): the schedule is not as you want it. See what would be done with: "
            "quaid janitor install --dry-run"
        )


@dataclass(frozen=True, slots=True)
class Job:
    """`command` is run daily at `hour`:`minute`, with `path` as its PATH: those of schedulers are short."""

    root: Path
    hour: int
    minute: int
    command: tuple[str, ...]
    path: str

    @property
    def at(self) -> str:
        return f"{self.hour:02d}:{self.minute:02d}"


@dataclass(frozen=True, slots=True)
class ScheduleStep:
    """One thing to do: a sentence for when it is done and one for when it would be, and the doing."""

    done: str
    planned: str
    do: Callable[[], object]


class Systemd:
    """A timer of the user's systemd. It makes up for a night on which the machine was off."""

    title = "a systemd timer"

    def is_there(self) -> bool:
        if not sys.platform.startswith("linux") or shutil.which("systemctl") is None:
            return False
        return _run(("systemctl", "--user", "show", "--property=Version"))[0] == 0

    def install(self, job: Job) -> list[ScheduleStep]:
        service, timer = self._units(job.root)
        program, *arguments = (_systemd_word(word) for word in job.command)
        # In arguments, and only there, $ begins a variable.
        command = " ".join([program, *(word.replace("$", "$$") for word in arguments)])
        what = f"Description=Quaid's janitor tidies the memory in {job.root}".replace("%", "%%")
        # A popup with the news is a process that is not to end with the run: hence KillMode.
        unit = f"""[Unit]
{what}

[Service]
Type=oneshot
ExecStart={command}
Environment={_systemd_word(f"PATH={job.path}")}
EnvironmentFile=-{str(environment_file()).replace("%", "%%")}
KillMode=process
Nice=10
"""
        when = f"""[Unit]
{what}

[Timer]
OnCalendar=*-*-* {job.at}:00
Persistent=true

[Install]
WantedBy=timers.target
"""
        return [
            *_write(service, unit.encode()),
            *_write(timer, when.encode()),
            _systemctl("daemon-reload"),
            _systemctl("enable", timer.name),
            _systemctl("restart", timer.name),  # one that is active would keep its old time
        ]

    def uninstall(self, root: Path) -> list[ScheduleStep]:
        units = self._units(root)
        files = [_delete(path) for path in units if path.exists()]
        if not files or not self.is_there():
            return files
        stop = _systemctl("disable", "--now", units[1].name, may_fail=True)
        return [stop, *files, _systemctl("daemon-reload", may_fail=True)]

    def find(self, root: Path) -> str | None:
        """The time at which the job of `root` runs, as HH:MM; None when there is no job."""
        timer = self._units(root)[1]
        found = _ON_CALENDAR.search(timer.read_bytes()) if timer.is_file() else None
        return found[1].decode() if found else None

    def remarks(self) -> list[str]:
        is_lingering = Path(_LINGER, os.environ.get("USER", "")).is_file()
        return (
            [] if is_lingering else ["It runs while you are logged in; to have it run always: loginctl enable-linger"]
        )

    def _units(self, root: Path) -> tuple[Path, Path]:
        folder = _config_home() / "systemd" / "user"
        return folder / f"{_name(root)}.service", folder / f"{_name(root)}.timer"


class Launchd:
    """An agent of macOS. It makes up for a night on which the machine slept."""

    title = "a launchd agent"

    def is_there(self) -> bool:
        return sys.platform == "darwin" and shutil.which("launchctl") is not None

    def install(self, job: Job) -> list[ScheduleStep]:
        path = self._path(job.root)
        agent = {
            "Label": path.stem,
            "ProgramArguments": ["/bin/sh", "-c", _shell_command(job)],
            "StartCalendarInterval": {"Hour": job.hour, "Minute": job.minute},
            "ProcessType": "Background",
            "StandardErrorPath": str(Path.home() / "Library" / "Logs" / f"{_name(job.root)}.log"),
        }
        return [
            *_write(path, plistlib.dumps(agent)),
            _call("launchctl", "bootout", f"{_domain()}/{path.stem}", may_fail=True),
            _call("launchctl", "bootstrap", _domain(), str(path), tries=6),  # what was booted out takes a moment to go
        ]

    def uninstall(self, root: Path) -> list[ScheduleStep]:
        path = self._path(root)
        if not path.exists():
            return []
        return [_call("launchctl", "bootout", f"{_domain()}/{path.stem}", may_fail=True), _delete(path)]

    def find(self, root: Path) -> str | None:
        """The time at which the job of `root` runs, as HH:MM; None when there is no job."""
        try:
            when = plistlib.loads(self._path(root).read_bytes())["StartCalendarInterval"]
            return f"{when['Hour']:02d}:{when['Minute']:02d}"
        except (OSError, plistlib.InvalidFileException, KeyError, TypeError, ValueError):
            return None

    def remarks(self) -> list[str]:
        return []

    def _path(self, root: Path) -> Path:
        return Path.home() / "Library" / "LaunchAgents" / f"localhost.{_name(root)}.plist"


class Cron:
    """A line of the owner's crontab, found again by the comment at its end."""

    title = "cron"

    def is_there(self) -> bool:
        return shutil.which("crontab") is not None

    def install(self, job: Job) -> list[ScheduleStep]:
        # A bare % would end the command, and the rest of the line would be its input.
        command = _shell_command(job).replace("%", r"\%")
        line = f"{job.minute} {job.hour} * * * {command} {_mark(job.root)}"
        now, others = self._lines(job.root)
        wanted = [*others, line.encode()]
        if now == wanted:
            return []
        done, planned = f"Put this line into your crontab: {line}", f"Would put it into your crontab: {line}"
        return [_write_crontab(wanted, done, planned)]

    def uninstall(self, root: Path) -> list[ScheduleStep]:
        try:
            now, others = self._lines(root)
        except ScheduleError:  # what may not even be read was not written here
            return []
        if now == others:
            return []
        return [_write_crontab(others, "Took its line out of your crontab", "Would take its line out of your crontab")]

    def find(self, root: Path) -> str | None:
        """The time at which the job of `root` runs, as HH:MM; None when there is no job."""
        try:
            now, others = self._lines(root)
        except ScheduleError:
            return None
        own = next((line.split() for line in now if line not in others), [b"", b""])
        return f"{int(own[1]):02d}:{int(own[0]):02d}" if own[0].isdigit() and own[1].isdigit() else None

    def remarks(self) -> list[str]:
        return ["cron does not make up for a night on which the machine is off."]

    def _lines(self, root: Path) -> tuple[list[bytes], list[bytes]]:
        """The lines of the crontab, and those of them that are not about `root`."""
        if not self.is_there():
            return [], []
        argv = ("crontab", "-l")
        code, out, said = _run(argv)
        if code and not any(word in said.lower() for word in _NO_CRONTAB):
            raise ScheduleError(argv, said or f"exit code {code}")
        lines = out.removesuffix(b"\n").split(b"\n") if out and not code else []
        return lines, [line for line in lines if not line.rstrip().endswith(_mark(root).encode())]


Scheduler = Systemd | Launchd | Cron
SCHEDULERS: tuple[Scheduler, ...] = (Systemd(), Launchd(), Cron())
"""The first that is there is used."""


def environment_file() -> Path:
    """The file in which the owner may keep what the job needs to know, keys of models above all."""
    return _config_home() / "quaid" / "janitor.env"


def _name(root: Path) -> str:
    return f"quaid-janitor-{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:8]}"


def _mark(root: Path) -> str:
    return f"# {_name(root)}"


def _config_home() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _write(path: Path, data: bytes) -> Iterator[ScheduleStep]:
    """The step that writes a file; none where it is as it should be."""

    def write() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(data)
        temporary.replace(path)

    if not path.is_file() or path.read_bytes() != data:
        yield ScheduleStep(f"Wrote {path}", f"Would write {path}:\n{data.decode().rstrip()}", write)


def _delete(path: Path) -> ScheduleStep:
    return ScheduleStep(f"Removed {path}", f"Would remove {path}", lambda: path.unlink(missing_ok=True))


def _call(*argv: str, stdin: bytes = b"", may_fail: bool = False, tries: int = 1) -> ScheduleStep:
    """The step that runs a command, up to `tries` times."""

    def call() -> None:
        code, _, said = _run(argv, stdin)
        for _ in range(tries - 1):
            if code:
                time.sleep(RETRY_S)
                code, _, said = _run(argv, stdin)
        if code and not may_fail:
            raise ScheduleError(argv, said or f"exit code {code}")

    return ScheduleStep(f"Ran: {shlex.join(argv)}", f"Would run: {shlex.join(argv)}", call)


def _systemctl(*args: str, may_fail: bool = False) -> ScheduleStep:
    return _call("systemctl", "--user", *args, may_fail=may_fail)


def _write_crontab(lines: Sequence[bytes], done: str, planned: str) -> ScheduleStep:
    step = _call("crontab", "-", stdin=b"".join(line + b"\n" for line in lines))
    return replace(step, done=done, planned=planned)


def _systemd_word(text: str) -> str:
    """One word of a unit file."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%"))


def _shell_command(job: Job) -> str:
    """The command for a shell, with what the owner has put into the file of keys in its environment."""
    keys = shlex.quote(str(environment_file()))
    return f"set -a; [ -r {keys} ] && . {keys}; PATH={shlex.quote(job.path)}; set +a; {shlex.join(job.command)}"


def _run(argv: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
    """Exit code, stdout, and what it said on stderr, on one line."""
    environ = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False, env=environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, b"", str(error)
    return done.returncode, done.stdout, " ".join(done.stderr.decode("utf-8", "replace").split())
