"""What the git repository of a vault takes on the disk, who maintains it, and what to do about it."""

from collections import Counter
from datetime import UTC, datetime
from heapq import heappush, heappushpop, nlargest
from shlex import quote
from typing import NamedTuple

from quaid.history import maintenance
from quaid.history.repository import Repository, read_boundary
from quaid.model import Finding
from quaid.sync.embedding import Progress, ignore_progress
from quaid.vault.merging import MAX_BYTES as MAX_MERGED

SHOWN = 10
MAX_LOOSE, MAX_PACKS = 6_700, 50
"""What git's own gc takes for too many."""
MIN_COMMITS_OF_GRAPH = 1_000
MIN_LARGE_BYTES = 10_000_000
"""What an old version must take on the disk to be worth a word."""


class BigFile(NamedTuple):
    """A version of a file: `path` is from the top of the repository, empty where no branch or tag reaches it."""

    path: str
    blob: str
    bytes: int
    disk_bytes: int


class RepositorySize(NamedTuple):
    """The figures of a repository. `folder_bytes` is all of the git directory; `today_bytes`, `past_bytes` and
    `other_bytes` are what the objects take: the files of the checked-out commit, all other versions, and commits,
    folders and tags. `last_maintained` is when git's maintenance or gc last wrote, in UTC.
    """

    folder: str
    folder_bytes: int
    today_files: int
    today_bytes: int
    past_bytes: int
    other_bytes: int
    commits: int
    files: maintenance.ObjectFiles
    commit_graph: bool
    last_maintained: str | None
    unmaintained: str
    """Why the janitor does not maintain it, as a clause; empty where it does."""
    partial: bool
    shallow: bool
    leftovers: tuple[str, ...]
    biggest_today: tuple[BigFile, ...]
    """Those in the vault, by their bytes."""
    biggest_past: tuple[BigFile, ...]
    """Versions that the checked-out commit does not have, by what they take on the disk."""


def measure(repository: Repository, *, is_off: bool = False, progress: Progress = ignore_progress) -> RepositorySize:
    """Look at every object's size; `is_off` says that the settings have the janitor leave git alone.

    Raises:
        GitError: git refused.
    """
    files, today = maintenance.count_files(repository), maintenance.list_today(repository)
    blobs, stored, past = {blob for _, blob in today}, dict[str, tuple[int, int]](), list[tuple[int, str, int]]()
    taken: Counter[str] = Counter()
    for name, kind, size, disk_size in maintenance.iterate_stored(repository):
        if name in blobs:
            stored[name] = size, disk_size
        elif kind == "blob":
            (heappush if len(past) < SHOWN else heappushpop)(past, (disk_size, name, size))
        taken["today" if name in blobs else kind] += disk_size
    total = files.loose + files.packed
    found = {name for _, name, _ in past}
    commits, paths = maintenance.find_paths(repository, found, total, progress)
    here = ((stored[blob], path, blob) for path, blob in today if blob in stored and repository.is_in_vault(path))
    written = maintenance.find_last_write(repository)
    return RepositorySize(
        folder=str(repository.common_dir),
        folder_bytes=maintenance.measure_folder(repository.common_dir),
        today_files=len(today),
        today_bytes=taken["today"],
        past_bytes=taken["blob"],
        other_bytes=taken["commit"] + taken["tree"] + taken["tag"],
        commits=commits,
        files=files,
        commit_graph=maintenance.has_commit_graph(repository),
        last_maintained=datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds") if written else None,
        unmaintained=maintenance.why_not(repository) or ("git.maintenance is off" if is_off else ""),
        partial=maintenance.is_partial(repository),
        shallow=bool(read_boundary(repository)),
        leftovers=tuple(map(str, maintenance.list_leftovers(repository, maintenance.LEFTOVER_S))),
        biggest_today=tuple(BigFile(path, blob, *sizes) for sizes, path, blob in nlargest(SHOWN, here)),
        biggest_past=tuple(
            BigFile(paths.get(name, ""), name, size, disk_size) for disk_size, name, size in sorted(past, reverse=True)
        ),
    )


def examine_size(repository: Repository, found: RepositorySize) -> tuple[Finding, ...]:
    """Return what is well and what is not with these figures, and what to do about it."""
    files, is_foreign = found.files, bool(maintenance.why_not(repository))
    maintain = "quaid config git.maintenance auto" if found.unmaintained else "quaid janitor run --task cleanup"
    by_hand = f"git -C {quote(str(repository.top))} maintenance run --task="
    who = f"The janitor leaves it alone: {found.unmaintained}" if found.unmaintained else "The janitor maintains it"
    last = f"last wrote on {found.last_maintained[:10]}" if found.last_maintained else "has written nothing yet"
    graph = "There is one." if found.commit_graph else f"There is none for {found.commits:,} commits."
    remains = f"{len(found.leftovers):,} files that killed processes left, such as {''.join(found.leftovers[:1])}."
    large = sum(file.disk_bytes >= MIN_LARGE_BYTES for file in found.biggest_past)
    heavy = f"Older versions of more than {MIN_LARGE_BYTES / 1e6:.0f} MB each: {large or 'none'}."
    unmerged = [file.path for file in found.biggest_today if file.path.endswith(".md") and file.bytes > MAX_MERGED]
    long = f"Too large to be merged with another machine's: {', '.join(unmerged) or 'none'}."
    clean_up = "remove them when no git is at work there" if is_foreign else maintain
    outside = "keep large files outside the vault; a note leaves the history with: quaid purge REF"
    no_graph = not found.commit_graph and found.commits >= MIN_COMMITS_OF_GRAPH
    many_packs = files.packs > MAX_PACKS and not found.partial
    checks = (
        ("maintenance", False, f"{who}; git's maintenance {last}.", ""),
        ("loose objects", files.loose > MAX_LOOSE, f"{files.loose:,}.", f"{by_hand}loose-objects" * is_foreign),
        ("packs", many_packs, f"{files.packs:,}.", f"{by_hand}incremental-repack" * is_foreign),
        ("commit graph", no_graph, graph, f"{by_hand}commit-graph" * is_foreign),
        ("leftovers", bool(found.leftovers), remains if found.leftovers else "None.", clean_up),
        ("history", bool(large), heavy, outside),
        ("notes", bool(unmerged), long, "split them into smaller notes"),
    )
    return tuple(
        Finding(name, "warning", text, step or maintain) if is_bad else Finding(name, "ok", text)
        for name, is_bad, text, step in checks
    )
