"""The janitor every night by itself: what is written, run, found again and taken back, on machines of three kinds."""

from __future__ import annotations

import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from vaults import refused

from quaid.errors import BadInputError, UsageError, VaultReadOnlyError
from quaid.janitor import schedule
from quaid.janitor.schedule import NoSchedulerError, ScheduleError

CRONTAB = """#!/bin/sh
echo "crontab $*" >> "$CALLS"
[ -e "$HOME/forbidden" ] && { echo "You (maya) are not allowed to use this program" >&2; exit 1; }
if [ "$1" = -l ]; then
  [ -e "$HOME/crontab" ] || { echo "no crontab for maya" >&2; exit 1; }
  exec /bin/cat "$HOME/crontab"
fi
exec /bin/cat > "$HOME/crontab"
"""
SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> "$CALLS"
[ -e "$HOME/refuses" ] && [ "$2" = "$(/bin/cat "$HOME/refuses")" ] && { echo "Access denied" >&2; exit 1; }
exit 0
"""
LAUNCHCTL = """#!/bin/sh
echo "launchctl $*" >> "$CALLS"
[ "$1" = bootout ] && exit 3
[ -e "$HOME/busy" ] && /bin/rm "$HOME/busy" && { echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; }
exit 0
"""


class Machine:
    """A home, programs, and what they were called with."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "my vault"
        self.root.mkdir()
        self.programs = home / "bin"
        self.programs.mkdir()

    def has(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(script)
        path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        path = self.home / "calls"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    @property
    def crontab(self) -> Path:
        return self.home / "crontab"

    def units(self) -> list[Path]:
        return sorted((self.home / ".config/systemd/user").glob("*"))

    def files(self) -> set[str]:
        return {path.relative_to(self.home).as_posix() for path in self.home.rglob("*") if path.is_file()}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    home = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(home.programs))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "executable", str(home.programs / "python3"))
    monkeypatch.setattr(schedule, "RETRY_S", 0)
    home.has("quaid", '#!/bin/sh\necho "$KEY: $*" > "$HOME/ran"\n')
    return home


@pytest.fixture
def linux(machine):
    machine.has("systemctl", SYSTEMCTL)
    return machine


@pytest.fixture
def plain(machine):
    """A machine with cron alone."""
    machine.has("crontab", CRONTAB)
    return machine


@pytest.fixture
def mac(machine, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    machine.has("launchctl", LAUNCHCTL)
    machine.has("crontab", CRONTAB)
    return machine


class TestSystemd:
    def test_a_service_and_a_timer_are_written_enabled_changed_and_taken_back(self, linux):
        before = linux.files()
        told = schedule.install(linux.root, "4:05")
        service, timer = linux.units()
        assert [service.suffix, timer.suffix] == [".service", ".timer"]
        program = linux.programs / "quaid"
        assert f'ExecStart="{program}" "janitor" "run" "-q" "--vault" "{linux.root}"\n' in service.read_text()
        assert f'Environment="PATH={linux.programs}"\n' in service.read_text()
        assert "OnCalendar=*-*-* 04:05:00\nPersistent=true\n" in timer.read_text()
        assert linux.calls[1:] == [
            "systemctl --user daemon-reload",
            f"systemctl --user enable {timer.name}",
            f"systemctl --user restart {timer.name}",
        ]
        assert told[0] == f"Wrote {service}"
        assert f"The janitor tidies {linux.root} every day at 04:05, by a systemd timer." in told
        assert schedule.describe(linux.root) == "The janitor runs every day at 04:05, by a systemd timer."

        for at, written in (("4:05", []), ("23:59", [f"Wrote {timer}"])):
            assert [line for line in schedule.install(linux.root, at) if line.startswith("Wrote")] == written
        assert "23:59" in schedule.describe(linux.root)

        assert schedule.uninstall(linux.root)[1].startswith("Removed ")
        assert linux.files() - {"calls"} == before
        assert f"systemctl --user disable --now {timer.name}" in linux.calls
        assert schedule.describe(linux.root) is None
        assert schedule.uninstall(linux.root) == [f"The janitor is not scheduled for {linux.root}."]

    def test_its_files_go_though_systemd_is_no_longer_there(self, linux):
        schedule.install(linux.root)
        (linux.programs / "systemctl").unlink()
        schedule.uninstall(linux.root)
        assert linux.units() == []

    @pytest.mark.parametrize("step", ["daemon-reload", "enable", "restart"])
    def test_when_it_refuses_nothing_is_scheduled(self, linux, step):
        (linux.home / "refuses").write_text(step)
        assert "Access denied" in str(refused(lambda: schedule.install(linux.root), ScheduleError))
        assert linux.units() == []

    def test_a_dry_run_shows_all_and_does_nothing(self, linux):
        before = linux.files()
        told = "\n".join(schedule.install(linux.root, dry_run=True))
        assert linux.files() - {"calls"} == before
        assert "OnCalendar=*-*-* 03:30:00" in told
        assert "Would run: systemctl --user daemon-reload" in told
        assert linux.calls == ["systemctl --user show --property=Version"]
        schedule.install(linux.root)
        kept = linux.files()
        assert "Would remove" in "\n".join(schedule.uninstall(linux.root, dry_run=True))
        assert linux.files() == kept

    def test_each_vault_has_its_own(self, linux):
        other = linux.home / "other"
        other.mkdir()
        schedule.install(linux.root)
        schedule.install(other)
        assert len(linux.units()) == 4
        schedule.uninstall(other)
        assert schedule.describe(linux.root)
        assert schedule.describe(other) is None

    def test_a_folder_that_cannot_be_written_is_named(self, linux):
        (linux.home / ".config").write_text("a file")
        assert ".config" in str(refused(lambda: schedule.install(linux.root), VaultReadOnlyError))

    @pytest.mark.parametrize("name", ['100% "mine" $HOME', "back\\slash 'q'", "Größe ❤"])
    def test_systemd_itself_understands_the_units(self, linux, name):
        verify = shutil.which("systemd-analyze", path=os.defpath + ":/usr/bin")
        if verify is None:
            pytest.skip("needs systemd-analyze")
        root = linux.home / name
        root.mkdir()
        schedule.install(root)
        service, timer = linux.units()
        environ = {**os.environ, "XDG_RUNTIME_DIR": str(linux.home)}
        done = subprocess.run(
            [verify, "--user", "--man=no", "verify", service, timer], capture_output=True, check=False, env=environ
        )
        said = done.stderr.decode()
        assert not [line for line in said.splitlines() if "quaid-janitor" in line], said


class TestCron:
    def test_one_line_comes_and_goes_and_the_others_stay(self, plain):
        mine = b'# mine \xff\r\n\n*/5 * * * * backup # quaid\nMAILTO=""'
        plain.crontab.write_bytes(mine)
        told = schedule.install(plain.root)
        now = plain.crontab.read_bytes()
        assert now.startswith(mine + b"\n30 3 * * * ")
        assert now.count(b"\n") == mine.count(b"\n") + 2
        assert told[0].startswith("Ran: crontab -, which adds this line: 30 3 * * * ")
        assert schedule.describe(plain.root) == "The janitor runs every day at 03:30, by cron."
        schedule.install(plain.root, "22:15")
        assert plain.crontab.read_bytes().startswith(mine + b"\n15 22 * * * ")
        assert plain.crontab.read_bytes().count(b"\n") == now.count(b"\n")
        assert schedule.uninstall(plain.root) == ["Ran: crontab -, which takes its line out"]
        assert plain.crontab.read_bytes() == mine + b"\n"

    def test_what_cron_runs_is_the_janitor_of_that_vault(self, plain):
        root = plain.home / "100% 'mine' $HOME"
        root.mkdir()
        keys = plain.home / ".config/quaid/janitor.env"
        keys.parent.mkdir(parents=True)
        keys.write_text("KEY=secret\n")
        schedule.install(root)
        line = plain.crontab.read_text().removesuffix("\n")
        command = line.split(" ", 5)[5].replace("\\%", "%")  # as cron does
        subprocess.run(["/bin/sh", "-c", command], check=True, env={"HOME": str(plain.home), "PATH": "/bin"})
        assert (plain.home / "ran").read_text() == f"secret: janitor run -q --vault {root}\n"

    def test_a_crontab_that_cannot_be_read_is_never_written(self, plain):
        plain.crontab.write_bytes(b"* * * * * mine\n")
        (plain.home / "forbidden").touch()
        assert "not allowed" in str(refused(lambda: schedule.install(plain.root), ScheduleError))
        assert schedule.describe(plain.root) is None
        assert "crontab -" not in plain.calls
        assert plain.crontab.read_bytes() == b"* * * * * mine\n"

    def test_a_line_that_its_owner_has_switched_off_is_no_schedule(self, plain):
        for written in (1, 0):  # a second time nothing is done
            schedule.install(plain.root)
            assert plain.calls.count("crontab -") == written
        assert plain.crontab.read_text().count("\n") == 1
        plain.crontab.write_bytes(b"#" + plain.crontab.read_bytes())
        assert schedule.describe(plain.root) is None

    def test_its_line_goes_when_systemd_takes_over(self, plain):
        schedule.install(plain.root)
        plain.has("systemctl", SYSTEMCTL)
        assert "takes its line out" in schedule.install(plain.root)[0]
        assert plain.crontab.read_bytes() == b""
        assert schedule.describe(plain.root).endswith("by a systemd timer.")

    def test_systemd_that_is_not_running_is_passed_over(self, plain):
        plain.has("systemctl", "#!/bin/sh\necho Failed to connect to bus >&2; exit 1\n")
        schedule.install(plain.root)
        assert schedule.describe(plain.root).endswith("by cron.")


class TestLaunchd:
    def test_an_agent_is_written_loaded_and_taken_back(self, mac):
        before = mac.files()
        (mac.home / "busy").touch()
        schedule.install(mac.root, "03:30")
        (path,) = (mac.home / "Library/LaunchAgents").glob("*.plist")
        agent = plistlib.loads(path.read_bytes())
        assert agent["Label"] == path.stem
        assert agent["StartCalendarInterval"] == {"Hour": 3, "Minute": 30}
        assert agent["ProgramArguments"][:2] == ["/bin/sh", "-c"]
        assert agent["ProgramArguments"][2].endswith(
            shlex.join([str(mac.programs / "quaid"), "janitor", "run", "-q", "--vault", str(mac.root)])
        )
        domain = f"gui/{os.getuid()}"
        calls = [call for call in mac.calls if call.startswith("launchctl")]
        assert calls[0] == f"launchctl bootout {domain}/{path.stem}"
        assert calls[-1] == f"launchctl bootstrap {domain} {path}"
        assert len([call for call in calls if "bootstrap" in call]) == 2  # the first time it was busy
        assert schedule.describe(mac.root) == "The janitor runs every day at 03:30, by a launchd agent."
        schedule.uninstall(mac.root)
        assert mac.files() - {"calls"} == before

    def test_a_broken_agent_is_no_schedule(self, mac):
        schedule.install(mac.root)
        (path,) = (mac.home / "Library/LaunchAgents").glob("*.plist")
        for data in (b"", b"no plist", plistlib.dumps({"StartCalendarInterval": 5}), plistlib.dumps([])):
            path.write_bytes(data)
            assert schedule.describe(mac.root) is None


class TestRefusals:
    def test_without_any_scheduler_the_owner_is_told_what_to_run(self, machine):
        assert "quaid janitor run" in str(refused(lambda: schedule.install(machine.root), NoSchedulerError))
        assert schedule.describe(machine.root) is None
        assert schedule.uninstall(machine.root) == [f"The janitor is not scheduled for {machine.root}."]

    def test_without_its_program_nothing_is_scheduled(self, linux):
        (linux.programs / "quaid").unlink()
        assert "PATH" in str(refused(lambda: schedule.install(linux.root), NoSchedulerError))
        assert linux.units() == []

    @pytest.mark.parametrize("at", ["", "24:00", "3", "03:60", "3:5", "noon", "03:30:00", "-1:30", "٠٣:٣٠"])
    def test_what_is_no_time_is_refused(self, linux, at):
        refused(lambda: schedule.install(linux.root, at), UsageError)

    @pytest.mark.parametrize("name", ["two\nlines", "tab\t", "bad\udcff"])
    def test_a_path_that_no_schedule_can_hold_is_refused(self, linux, name):
        refused(lambda: schedule.install(linux.home / name), BadInputError)
        assert linux.units() == []
