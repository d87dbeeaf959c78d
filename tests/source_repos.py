"""Real git repositories of source code: small ones made by hand, and large ones that know which of their docs are stale."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from source_docs import Doc
from source_history import SIGNIFICANT, VENDORED, Commit, History, meanings

BEGINNING = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
AUTHOR = ("Ines Rossi", "ines@example.org")
# What this machine or the repository itself configures must not decide what a test sees.
_OPTIONS = (
    "commit.gpgSign=false", "core.hooksPath=/dev/null", "core.autocrlf=false", "core.quotePath=false", "maintenance.auto=false",
    "protocol.file.allow=always", "advice.detachedHead=false",
)  # fmt: skip


class SourceRepo:
    """A repository and its developer: one hour passes between two of their commits.

    The folder is made a repository where it is none. Files are changed on the disk; `commit` takes in all of them.
    """

    def __init__(self, path: Path, clock: Iterator[datetime] | None = None) -> None:
        self.path = path
        self._clock = clock or _hours(BEGINNING)
        if not (path / ".git").exists():
            path.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "-b", "main", "--template=")

    def git(self, *args: str, when: datetime | None = None, check: bool = True) -> str:
        """What git prints."""
        return run_git(self.path, *args, when=when, check=check).decode("utf-8", "surrogateescape").strip()

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def write(self, rel: str, text: str | bytes) -> Path:
        path = self.path / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def read(self, rel: str) -> str:
        return (self.path / rel).read_bytes().decode()

    def edit(self, rel: str, old: str, new: str) -> None:
        text = self.read(rel)
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {rel}"
        self.write(rel, text.replace(old, new))

    def rename(self, old: str, new: str) -> None:
        target = self.path / new
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.path / old).rename(target)

    def remove(self, rel: str) -> None:
        """A file or a folder."""
        path = self.path / rel
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def commit(self, subject: str, when: datetime | None = None) -> str:
        """All there is, changed or not; its id. `subject` may go on with a body."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject, when=when or next(self._clock))
        return self.head

    def save(self, rel: str, text: str | bytes, when: datetime | None = None) -> str:
        """Write one file and commit it."""
        self.write(rel, text)
        return self.commit(f"{rel}: changed", when)

    def branch(self, name: str, at: str = "HEAD") -> None:
        """A new branch, without switching to it."""
        self.git("branch", "-q", name, at)

    def switch(self, name: str) -> None:
        self.git("switch", "-q", name)

    def merge(self, name: str, when: datetime | None = None) -> str:
        """A merge commit even where a fast-forward would do; its id."""
        self.git("merge", "-q", "--no-ff", "-m", f"Merge branch '{name}'", name, when=when or next(self._clock))
        return self.head

    def worktree(self, path: Path, branch: str | None = None) -> SourceRepo:
        """Another work tree of this repository, on a new branch or on none."""
        self.git("worktree", "add", "-q", *(("-b", branch) if branch else ("--detach",)), str(path))
        return SourceRepo(path, self._clock)

    def submodule(self, other: SourceRepo, rel: str) -> SourceRepo:
        """`other` as a submodule in the folder `rel`; the next commit takes it in."""
        self.git("submodule", "--quiet", "add", str(other.path), rel)
        return SourceRepo(self.path / rel, self._clock)

    def clone(self, path: Path) -> SourceRepo:
        self.git("clone", "-q", str(self.path), str(path))
        return SourceRepo(path, self._clock)

    def shallow_clone(self, path: Path, depth: int = 1) -> SourceRepo:
        """A clone that has only the last `depth` commits."""
        self.git("clone", "-q", f"--depth={depth}", self.path.as_uri(), str(path))
        return SourceRepo(path, self._clock)


def _hours(start: datetime) -> Iterator[datetime]:
    return (start + timedelta(hours=n) for n in range(1 << 20))


def run_git(
    path: Path, *args: str, when: datetime | None = None, given: bytes | None = None, check: bool = True
) -> bytes:
    """What git prints, whatever this machine configures and whatever time it is. `given` goes to its stdin."""
    moment = (when or BEGINNING).isoformat()
    name, email = AUTHOR
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": moment,
        "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email, "GIT_COMMITTER_DATE": moment,
    }  # fmt: skip
    options = [word for option in _OPTIONS for word in ("-c", option)]
    done = subprocess.run(
        ["git", *options, *args], cwd=path, env=environment, input=given, capture_output=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@dataclass(frozen=True, slots=True)
class DocTruth:
    """What is known of one doc because it was made: a guide, runbook, reference or readme.

    `verdict` compares its sources in `changed_in` with those at HEAD, without comments and formatting: "stale" where code
    differs or is gone, "current" where it does not, "arguable" where all that happened is that a source was renamed as it
    was, or that the folder which is its source got another file. `causes` are (commit, path, what happened to it).
    """

    path: str
    form: str
    manner: str
    sources: list[str]
    changed_in: str
    verdict: str
    causes: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated repository and the truth about it. Nothing under `excluded` is a doc of anybody's."""

    path: Path
    files: int
    commits: list[Commit]
    docs: dict[str, DocTruth]
    questions: list[tuple[str, str]]
    """(what is asked, path of the one doc that answers it): the thing has its name, the rest is said in other words"""
    hard_questions: list[tuple[str, str]]
    """The same without the name of the thing: no word of the doc but by chance"""
    excluded: tuple[str, ...] = VENDORED

    @property
    def repo(self) -> SourceRepo:
        return SourceRepo(self.path, _hours(datetime(2027, 1, 4, 9, 0, tzinfo=UTC)))

    @property
    def kinds(self) -> Counter[str]:
        """How many commits there are of each kind."""
        return Counter(commit.kind for commit in self.commits)

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(doc.verdict for doc in self.docs.values())

    @classmethod
    def load(cls, path: Path) -> Generated:
        """That which `generate` has left in `path`, as long as nobody has committed to it since."""
        told = json.loads((path / ".git" / _TRUTH).read_text(encoding="utf-8"))
        commits = [Commit(**each) for each in told["commits"]]
        docs = {
            name: DocTruth(**each | {"causes": [tuple(cause) for cause in each["causes"]]})
            for name, each in told["docs"].items()
        }
        asked = [[tuple(pair) for pair in told[key]] for key in ("questions", "hard_questions")]
        return cls(path, told["files"], commits, docs, *asked)


_TRUTH = "generated.json"


def generate(path: Path, files: int = 5000, commits: int = 2000, docs: int = 150, seed: int = 7) -> Generated:
    """A repository of packages in five languages, with readmes and `docs` guides; equal for equal arguments.

    Needs at least some 60 files, 40 commits and 3 docs. What it tells is kept inside `.git` for `Generated.load`.
    """
    start = BEGINNING - timedelta(days=400)
    history = History(files, commits, docs, seed, "{} <{}>".format(*AUTHOR), start)
    repo = SourceRepo(path)
    marks = repo.path / ".git" / "marks"
    run_git(path, "fast-import", "--quiet", f"--export-marks={marks}", given=b"".join(history.stream))
    for line in marks.read_text().splitlines():
        number, commit = line.split()
        history.commits[int(number[1:]) - 1].id = commit
    marks.unlink()
    work = repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/work-*").split()
    if work:
        repo.git("branch", "-q", "-D", *work)
    repo.git("reset", "-q", "--hard")
    truths = {name: _judge(history, doc) for name, doc in history.files.items() if isinstance(doc, Doc)}
    made = Generated(path, len(history.files), history.commits, truths, *_questions(history, seed))
    told = asdict(made) | {"path": ""}
    (path / ".git" / _TRUTH).write_text(json.dumps(told), encoding="utf-8")
    return made


def _judge(history: History, doc: Doc) -> DocTruth:
    base = history.bases[doc.path]
    now = meanings(doc, history.files)
    happened, watched = set(), set(base.meanings) | set(now)
    for path, meaning in base.meanings.items():
        if path in now:
            happened |= {"logic"} if now[path] != meaning else set()
            continue
        name = path
        while name not in history.files and name in history.renamed:
            name = history.renamed[name]
            watched.add(name)
        found = history.files.get(name)
        happened.add("delete" if found is None else "rename" if found.meaning == meaning else "logic")
    if set(now) - set(base.meanings):
        happened.add("new")
    verdict = "stale" if happened & {"logic", "delete"} else "arguable" if happened else "current"
    causes = [
        (commit.id, path, what)
        for commit in history.came_after(base.commit)
        for path, what in commit.what.items()
        if path in watched and what in SIGNIFICANT
    ]
    changed_in = history.commits[base.commit].id
    return DocTruth(doc.path, doc.form, doc.manner, list(doc.sources), changed_in, verdict, causes if happened else [])


def _questions(history: History, seed: int, most: int = 50) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Up to `most`, with the thing's name and without."""
    docs = [doc for _, doc in sorted(history.files.items()) if isinstance(doc, Doc)]
    found = [(fact.asked, doc) for doc in docs if doc.form == "guide" for fact in doc.package.side.facts]
    found += [(doc.package.side.asked_trouble, doc) for doc in docs if doc.form == "runbook"]
    chosen = random.Random(seed).sample(found, min(most, len(found)))
    hard = [(doc.package.say(asked), doc.path) for asked, doc in chosen]
    named = [
        (doc.package.say(asked, asked_thing=doc.package.trade.thing, asked_actor=doc.package.trade.actor), doc.path)
        for asked, doc in chosen
    ]
    return named, hard
