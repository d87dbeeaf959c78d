"""`quaid doctor --repo`: what the repository takes, and what to do about it; nothing is fetched or changed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from command_line import quaid
from vaults import Vault

from quaid.history.maintenance import LEFTOVER_S, maintain
from quaid.history.repository import Repository, find_repository
from quaid.report import repository_size
from quaid.report.repository_size import RepositorySize, examine_size, measure

NOISE = os.urandom(30_000)
"""What git cannot make smaller."""


def repository_of(root: Path) -> Repository:
    found = find_repository(root)
    assert found is not None
    return found


def steps_of(repository: Repository, found: RepositorySize) -> dict[str, str]:
    """The findings that say what to do."""
    findings = examine_size(repository, found)
    assert all((finding.level == "ok") == (not finding.next_step) for finding in findings)
    return {finding.name: finding.next_step for finding in findings if finding.next_step}


@pytest.fixture
def grown(vault: Vault) -> Vault:
    """A file that is gone, one that is there, and a blob that no branch has."""
    vault.write("Notes/scan ö.pdf", NOISE)
    vault.save()
    (vault.root / "Notes/scan ö.pdf").unlink()
    vault.write("Notes/garden.md", b"Tomatoes need water every day.\n" * 2_000)
    vault.save()
    vault.write("unreached", NOISE[:20_000])
    vault.run("hash-object", "-w", "unreached")
    (vault.root / "unreached").unlink()
    return vault


def test_what_is_there_and_what_is_gone_are_named_by_path_and_bytes(grown: Vault) -> None:
    found = measure(repository_of(grown.root))
    first, (gone, unreached, *_) = found.biggest_today[0], found.biggest_past
    assert (first.path, first.bytes) == ("Notes/garden.md", 62_000)
    assert 0 < first.disk_bytes < 1_000
    assert (gone.path, gone.bytes) == ("Notes/scan ö.pdf", 30_000)
    assert gone.disk_bytes >= 30_000
    assert (unreached.path, unreached.bytes) == ("", 20_000)
    assert found.commits == int(grown.git("rev-list", "--all", "--count"))
    assert found.today_files == len(grown.git("ls-files").splitlines())
    stored = found.today_bytes + found.past_bytes + found.other_bytes
    assert 50_000 < stored < found.folder_bytes
    assert found.files.packs == 0
    assert found.files.loose == int(grown.git("count-objects").split()[0])


def test_each_finding_ends_with_what_to_do(grown: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = repository_of(grown.root)
    assert steps_of(repository, measure(repository)) == {}
    lock = grown.root / ".git/objects/maintenance.lock"
    lock.touch()
    os.utime(lock, (time.time() - LEFTOVER_S - 60,) * 2)
    for name in ("MAX_LOOSE", "MIN_COMMITS_OF_GRAPH", "MIN_LARGE_BYTES", "MAX_MERGED"):
        monkeypatch.setattr(repository_size, name, 1)
    steps = steps_of(repository, measure(repository))
    assert [*steps] == ["loose objects", "commit graph", "leftovers", "history", "notes"]
    assert steps["commit graph"] == steps["leftovers"] == "quaid janitor run --task cleanup"
    off = measure(repository, is_off=True)
    assert steps_of(repository, off)["commit graph"] == "quaid config git.maintenance auto"
    for task in ("loose-objects", "commit-graph"):
        grown.run("config", f"maintenance.{task}.auto", "1")
    assert measure(repository).last_maintained is None
    for _ in range(2):
        maintain(repository)
    now = measure(repository)
    assert (now.files.loose, now.files.packs, now.commit_graph, now.leftovers) == (0, 1, True, ())
    assert now.last_maintained is not None
    assert not {"loose objects", "commit graph", "leftovers"} & steps_of(repository, now).keys()


def test_a_vault_inside_a_larger_repository_is_told_so(grown: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_size, "MAX_LOOSE", 1)
    repository = repository_of(grown.root / "Notes")
    found = measure(repository)
    assert f"a part of the larger repository {grown.root}" in examine_size(repository, found)[0].sentence
    assert all(file.path.startswith("Notes/") for file in found.biggest_today)
    step = steps_of(repository, found)["loose objects"]
    subprocess.run(step, shell=True, check=True)  # the step as it is shown
    assert measure(repository).files.packs == 1


def test_a_partial_clone_fetches_nothing(grown: Vault, tmp_path: Path) -> None:
    grown.run("config", "uploadpack.allowFilter", "true")
    part = Vault(tmp_path / "part")
    subprocess.run(["git", "clone", "-q", "--filter=blob:none", grown.root.as_uri(), part.root], check=True)
    part.run("config", "remote.origin.uploadpack", f"touch {tmp_path / 'asked'}; git-upload-pack")
    before = part.git("count-objects", "-v")
    found = measure(repository_of(part.root))
    assert (found.partial, found.shallow, found.biggest_past) == (True, False, ())
    assert found.biggest_today[0].path == "Notes/garden.md"
    assert not (tmp_path / "asked").exists()
    assert part.git("count-objects", "-v") == before


def test_before_the_first_commit_there_is_nothing(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    found = measure(repository_of(tmp_path))
    assert (found.commits, found.today_files, found.biggest_today, found.biggest_past) == (0, 0, (), ())


def test_the_command_answers_people_and_programs(grown: Vault) -> None:
    grown.open().close()  # trusted from now on
    here = ("--vault", str(grown.root))
    code, out, _ = quaid("doctor", "--repo", *here)
    assert code == 0
    assert "Notes/scan ö.pdf" in out
    assert "no branch has it" in out
    code, out, _ = quaid("doctor", "--repo", "--json", *here)
    shape = json.loads(out)
    assert (code, shape["ok"], shape["biggest_today"][0]["path"]) == (0, True, "Notes/garden.md")
    assert {finding["name"] for finding in shape["findings"]} > {"maintenance", "loose objects", "leftovers"}
    assert quaid("doctor", "--repo", "--secrets", *here)[0] == 2
