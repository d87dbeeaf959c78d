"""The programs through which git puts files on their way in and out of its objects, as a repository configures them.

A write runs them, as what the owner has encrypted must stay so. A read runs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quaid.errors import GitError
from quaid.history.git_output import join_items, split_items
from quaid.history.staging import RunGit

_PROGRAMS = ("clean", "smudge", "process")


def list_configured(run: RunGit) -> list[str]:
    """The names of the filters that any configuration of the repository knows."""
    args = ("config", "--includes", "--name-only", "-z", "--get-regexp", r"^filter\.")
    keys = split_items(run("read the configuration", *args, accept=(0, 1))[1])
    names = (key.removeprefix("filter.").rpartition(".")[0] for key in keys)
    return list(dict.fromkeys(name for name in names if name))


def without(names: Sequence[str]) -> list[str]:
    """Options of git with which it runs none of the filters `names`, and still turns line ends.

    Raises:
        GitError: one is called so that no option can name it.
    """
    for name in names:
        if "=" in name:
            raise GitError("read the repository", f"it has a filter called {name!r}. Remove it from its configuration")
    settings = [f"filter.{name}.{program}=" for name in names for program in _PROGRAMS]
    settings += [f"filter.{name}.required=false" for name in names]
    return [word for setting in settings for word in ("-c", setting)]


def list_filtered(run: RunGit, names: Sequence[str], paths: Iterable[str]) -> set[str]:
    """Return those of `paths`, as git knows them, that go through one of the filters `names`."""
    if not names:
        return set()
    told = run("read .gitattributes", "check-attr", "-z", "--stdin", "filter", stdin=join_items(paths))[1]
    items = [item.decode("utf-8", "surrogateescape") for item in told.split(b"\0")]
    return {path for path, value in zip(items[::3], items[2::3], strict=False) if value in names}
