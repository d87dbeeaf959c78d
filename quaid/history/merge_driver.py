"""The merge driver that git calls for a file which both sides have changed, and the line of git's config that names it.

In a clone where Quaid is not installed, or fails, git merges the text, as it does everywhere.
"""

import os
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from quaid.errors import QuaidError
from quaid.history.repository import find_repository
from quaid.history.steering import DRIVER, list_steering, own_drivers
from quaid.vault.merging import MAX_BYTES, merge_note

COMMAND = "merge-driver"
KEY = DRIVER
ATTRIBUTE = "merge=quaid"
"""What .gitattributes says of the files that the driver is called for."""


def merge_files(base: str, ours: str, theirs: str, marker_size: str, path: str) -> int:
    """Merge three files into `ours`; 0 when all is solved, 1 when it has conflict markers. `path` is only its name."""
    files = [Path(name) for name in (base, ours, theirs)]
    merged = None
    if max(file.stat().st_size for file in files) <= MAX_BYTES:
        with suppress(Exception):  # whatever a file holds, git's own merge can do with it
            merged = merge_note(files[0].read_bytes(), files[1].read_bytes(), files[2].read_bytes(), path)
    if merged is None:
        labels = ("-L", "ours", "-L", "base", "-L", "theirs")
        command = ("git", "merge-file", *labels, f"--marker-size={marker_size}", "--", ours, base, theirs)
        return int(os.spawnvp(os.P_WAIT, command[0], command) != 0)  # noqa: S606
    draft = Path(f"{ours}.quaid")
    draft.write_bytes(merged)
    draft.replace(ours)
    return 0


def command_line() -> str:
    """Return the command that git is to run: `quaid`, or the one of this installation where PATH has none. Where it is
    gone or fails, git's own merge of the text takes its place.
    """
    named, script, module = own_drivers()
    if shutil.which("quaid"):
        return named
    return script if os.access(Path(sys.executable).with_name("quaid"), os.X_OK) else module


def is_set_up(root: Path) -> bool:
    """Return whether git calls the driver in the repository of the vault at `root`, and finds it. Starts no process."""
    program = list_steering(find_repository(root)).get(KEY, "").rpartition(f" {COMMAND} ")[0]
    with suppress(ValueError, IndexError):  # none of Quaid's, or none that a shell reads
        return shutil.which(shlex.split(program)[0].replace("%%", "%")) is not None
    return False


def set_up(root: Path) -> bool:
    """Have git call the driver in the repository of the vault at `root`; whether it does so only from now on.

    A repository that takes no change is left as it is: git merges the text there.
    """
    from quaid.history import vault_guard
    from quaid.history.git import Git

    repository = find_repository(root)
    if repository is None or is_set_up(root):
        return False
    settings = {"merge.quaid.name": "notes of Quaid, by their parts", KEY: command_line()}
    try:
        is_done = all(Git(repository).query("config", "--local", *each) is not None for each in settings.items())
        vault_guard.accept(root)
    except QuaidError:
        return False
    return is_done
