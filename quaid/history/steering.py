"""Everything in a repository that can run a program or say where data goes, read from its files without starting git:
its configuration with all that it includes, its hooks, attributes and borrowed objects.

A list of dangerous keys would never be complete: every key counts that is not known to be harmless.
"""

import hashlib
import os
import re
import shlex
import stat
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from quaid.errors import GitError, QuaidError, name_first
from quaid.history.addresses import hide_password, hide_passwords
from quaid.history.repository import Repository, find_repository
from quaid.text.invisible import escaped

_READ_BY_GIT = (
    *("HEAD", "config", "config.worktree", "index", "packed-refs", "shallow", "info/exclude", "info/attributes"),
    *("info/sparse-checkout", "objects/info/alternates"),
)
_READ_IN_TREE = (".gitignore", ".gitattributes", ".gitmodules", ".mailmap")
_BESIDE_CONFIG = ("info/attributes", "objects/info/alternates", "objects/info/http-alternates")
_TOKEN = re.compile(
    r"""[ \t\r\n]+ | [#;][^\n]*
    | \[ (?P<section>[a-zA-Z0-9.-]+) (?: [ \t\r]+ "(?P<subsection>(?:[^"\\\n]|\\.)*+)" )? \]
    | (?P<key>[a-zA-Z][a-zA-Z0-9-]*) [ \t]*+
      (?: = (?P<value> (?: [^"\\\n#;] | \\(?:\n|.) | "(?:[^"\\\n]|\\(?:\n|.))*+" )*+ ) )?""",
    re.VERBOSE,
)
_QUOTING = re.compile(r'\\(\n|.)|"')
_ESCAPES = {"\n": "", "n": "\n", "t": "\t", "b": "\b", None: ""}
_HARMLESS = {
    "core": "repositoryformatversion filemode bare ignorecase symlinks precomposeunicode logallrefupdates autocrlf eol"
    " safecrlf quotepath compression loosecompression bigfilethreshold abbrev untrackedcache preloadindex fscache"
    " longpaths splitindex sparsecheckout sparsecheckoutcone multipackindex commitgraph hidedotfiles trustctime"
    " checkstat whitespace commentchar fsync fsyncmethod fsmonitor=true|false|",
    "extensions": "worktreeconfig objectformat compatobjectformat noop refstorage=files|reftable",
    "user": "name email signingkey useconfigonly",
    "commit": "gpgsign",
    "tag": "gpgsign",
    "init": "defaultbranch",
    "branch": "autosetupmerge autosetuprebase sort",
    "branch.*": r"remote=\.|\w[\w.-]* pushremote=\w[\w.-]* merge rebase description base vscode-merge-base"
    " gh-merge-base github-pr-owner-number",
    "remote": r"pushdefault=\w[\w.-]*",
    "remote.*": "fetch tagopt prune prunetags gh-resolved skipfetchall skipdefaultupdate followremotehead",
    "push": "default autosetupremote followtags",
    "pull": "rebase ff",
    "fetch": "prune prunetags parallel",
    "rebase": "autostash autosquash updaterefs stat",
    "merge": "ff conflictstyle renames renamelimit stat autostash",
    "merge.*": "name",
    "diff": "algorithm renames renamelimit colormoved mnemonicprefix noprefix context",
    "color": "ui diff status branch interactive grep",
    "status": "showuntrackedfiles short branch relativepaths",
    "log": "date decorate follow",
    "gc": "auto autopacklimit autodetach pruneexpire reflogexpire reflogexpireunreachable worktreepruneexpire",
    "feature": "manyfiles experimental",
    "maintenance": "auto strategy",
    "maintenance.*": "enabled schedule",
    "rerere": "enabled autoupdate",
    "lfs": "repositoryformatversion",
    "lfs.*": "access locksverify",
    "submodule": "active",
    "submodule.*": "active url",
}
"""The keys that neither run anything nor say where data goes, by their section; `*` is any subsection. After `=` is the
form of the values that do not.
"""
_ADDRESS = re.compile(r"remote\..*\.(url|pushurl)", re.DOTALL | re.IGNORECASE)
"""Shown with the rest; a change of one is asked about by remotes/trusted.py, before anything goes there."""
DRIVER = "merge.quaid.driver"
"""Quaid sets it itself. That of another installation, which the owner had before, was recorded with the rest."""
_SECRET = re.compile(r"extraheader|password|token|secret", re.IGNORECASE)
_MAX_SHOWN = 200
_trusted: dict[Path, tuple[Path, dict[str, str]]] = {}
"""The vaults that this process has open, perhaps for days, by the common directory of their repository, with the
digests that their owner has accepted.
"""


class SteeringChangedError(QuaidError):
    """A repository says other things of what runs and where data goes than when its owner trusted it."""

    code = "repository_changed"

    def __init__(self, root: Path, changes: list[str]) -> None:
        super().__init__(
            f"What git may run in {root}, or where it may send data, has changed: {name_first(changes)}. "
            f"Nothing was done. If you changed that: quaid trust {shlex.quote(str(root))}"
        )


def list_steering(repository: Repository | None) -> dict[str, str]:
    """Return what can run a program or say where data goes, as name -> values, with a NUL between them."""
    if repository is None:
        return {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    common = str(repository.common_dir)
    if {repository.git_dir, repository.common_dir} != {repository.top / ".git"}:
        found["git directory"] |= {str(repository.git_dir), common}
    linked = map(str, repository.common_dir.glob("worktrees/*/config.worktree"))
    files, hooks = [f"{common}/config", f"{common}/config.worktree", *linked], [f"{common}/hooks"]
    for path in files:  # which grow by all that one may include, under whatever condition
        for name, value in _parse(_read(path)):
            found[name].add(value)
            key, target = name.lower(), _resolve(path.rpartition("/")[0], value)
            if key == "core.hookspath":
                hooks.append(_resolve(str(repository.top), value))
            elif key.startswith("include") and key.endswith(".path") and target not in files:
                files.append(target)
    for name in _BESIDE_CONFIG:
        if text := _read(f"{common}/{name}").decode("utf-8", "surrogateescape").strip():
            found[name].add(text)
    for name, value in (hook for folder in hooks for hook in _list_hooks(folder)):
        found[f"hook {name}"].add(value)
    return {name: "\0".join(sorted(values)) for name, values in found.items()}


def digest(steering: dict[str, str]) -> dict[str, str]:
    """Return what of `list_steering` is confirmed as a whole, as name -> digest: it may hold passwords."""
    return {
        name: hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
        for name, value in steering.items()
        if not _ADDRESS.fullmatch(name)
    }


def describe(steering: Mapping[str, str]) -> list[str]:
    """Return a line for each, for people: no escape of a terminal acts, and no password is shown."""
    return [
        _shown(hide_passwords(f"{name} = {'…' if _SECRET.search(name) else hide_password(value)}"))
        for name, value in sorted(steering.items())
        if name != DRIVER or value not in own_drivers()
    ]


def find_changes(steering: dict[str, str], known: dict[str, str]) -> list[str]:
    """Return what differs from the digests `known`, a clause for each. A hook that is gone runs nothing."""
    now = digest(steering)
    changed = {name: value for name, value in steering.items() if name in now and now[name] != known.get(name)}
    gone = [name for name in sorted(known.keys() - now.keys()) if name != DRIVER and not name.startswith("hook ")]
    return [*describe(changed), *(_shown(f"{name} is gone") for name in gone)]


def keep_watch(vault: Path, repository: Repository, known: dict[str, str]) -> None:
    """Have `check` refuse this repository in this process from now on when it differs from the digests `known`."""
    _trusted[repository.common_dir] = vault, known


def check(repository: Repository) -> None:
    """Make sure that git may run in a repository; each call of git is preceded by it.

    Raises:
        GitError: a pipe or a device is where git reads a file: git would wait for ever.
        SteeringChangedError: it is a vault's, and has changed since this process has opened the vault.
    """
    of_git = (f"{folder}/{name}" for folder in {repository.git_dir, repository.common_dir} for name in _READ_BY_GIT)
    for path in (*of_git, *(f"{repository.top}/{name}" for name in _READ_IN_TREE)):
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - before every call of git
        except OSError:  # not there, or git sees for itself
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise GitError("read the repository", f"{path} is not a file. Remove it")
    if repository.common_dir in _trusted:
        vault, known = _trusted[repository.common_dir]
        # Found anew: where .git leads to may have changed too.
        if changes := find_changes(list_steering(find_repository(vault)), known):
            raise SteeringChangedError(vault, changes)


def own_drivers() -> tuple[str, str, str]:
    """Return the commands by which Quaid has git call its merge driver: `quaid`, this installation's script, its
    Python.
    """
    files = "merge-driver %O %A %B %L %P || { test $? -gt 1 && git merge-file --marker-size=%L %A %O %B; }"
    script, python = shlex.quote(str(Path(sys.executable).with_name("quaid"))), shlex.quote(sys.executable)
    named, called, run = (each.replace("%", "%%") for each in ("quaid", script, f"{python} -P -m quaid"))
    return f"{named} {files}", f"{called} {files}", f"{run} {files}"


@lru_cache(maxsize=32)
def _parse(data: bytes) -> tuple[tuple[str, str], ...]:
    """Parse a file in git's format; the settings that are not harmless. From where git would refuse it, the rest is one
    value.
    """
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")
    settings: list[tuple[str, str]] = []
    position, section, subsection = 0, "", None
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            return (*settings, ("text that is not configuration", text[position:]))
        position = found.end()
        if found["section"]:
            section, inner = found["section"], found["subsection"]
            subsection = None if inner is None else re.sub(r"\\(.)", r"\1", inner)
        elif key := found["key"]:
            value = _QUOTING.sub(lambda each: _ESCAPES.get(each[1], each[1]), (found["value"] or "").strip(" \t\r\n"))
            harmless = _HARMLESS.get(section.lower() if subsection is None else f"{section.lower()}.*", "").split()
            forms = dict(each.partition("=")[::2] for each in harmless)
            form = forms.get(key.lower())
            if form is None or (form and not re.fullmatch(form, value)):
                settings.append((".".join(part for part in (section, subsection, key) if part is not None), value))
    return tuple(settings)


def _list_hooks(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the name and digest of each hook in a folder, without git's samples."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - before every call of git
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return
    except OSError:  # git needs no right to list a folder in order to run what is in it
        yield "that nobody can list", folder
        return
    for name in names:
        path = f"{folder}/{name}"
        if not name.endswith(".sample") and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            data = _read(path)
            yield name, f"{len(data):,} bytes, SHA-256 {hashlib.sha256(data).hexdigest()[:40]}"


def _resolve(folder: str, path: str) -> str:
    return os.path.join(folder, os.path.expanduser(path))  # noqa: PTH111, PTH118 - ~nobody stays as it is


def _read(path: str) -> bytes:
    """Return what a file holds; nothing where it is missing, and of a pipe, which would keep us waiting."""
    with suppress(OSError, ValueError):  # a value need not be a path
        if stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            with open(path, "rb") as file:  # noqa: PTH123
                return file.read()
    return b""


def _shown(text: str) -> str:
    text = escaped(text.replace("\0", "; ")).replace("\n", "\\n")
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
