"""`quaid project` and `quaid docs`, as a user sees them, over a repository with documents."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from command_line import quaid, section_of
from model_service import Service
from source_repos import SourceRepo
from transcript import act_out

from quaid import Memory
from quaid.history.vault_history import History

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "transcripts" / "projects").glob("*.txt"))
RUDDER = "MOST_DEGREES = {}\n\n\ndef turn(degrees):\n    return min(degrees, MOST_DEGREES)\n"
FILES = {
    "README.md": "# Boat\n\nThe software that steers a boat.\n",
    "docs/helm.md": "# The helm\n<!-- SOURCES: helm/rudder.py -->\n\nThe rudder turns 30 degrees at most.\n",
    "docs/trim.md": "# How to trim the sails\n\nSee [the code](../sails/trim.py). After each tack, both sheets are hauled.\n",
    "docs/crew.md": "# The crew\n\nWho is aboard, and what each of them does.\n",
    "docs/decisions/2025-03-01-a-tiller.md": "# A tiller, no wheel\n\n`helm/rudder.py` stays small.\n",
    "docs/old/mast.md": "# The old mast\n\nIt is gone.\n",
    "CHANGELOG.md": "# Changelog\n\n- The rudder turns.\n",
    "helm/rudder.py": RUDDER.format(30),
    "sails/trim.py": "def trim(wind):\n    return wind / 2\n",
    "crew/list.py": "CREW = ['Ines', 'Tom']\n",
}


@pytest.fixture
def boat(tmp_path: Path) -> SourceRepo:
    """The helm's page is stale; of the source of the sails' page only a comment has changed."""
    repo = SourceRepo(tmp_path / "boat")
    for name, text in FILES.items():
        repo.write(name, text)
    repo.commit("boat: begin")
    repo.write("sails/trim.py", "# Half of it will do.\n" + FILES["sails/trim.py"])
    repo.commit("sails: say why")
    repo.write("helm/rudder.py", RUDDER.format(35))
    repo.commit("helm: the rudder turns further")
    return repo


@pytest.mark.matrix
@pytest.mark.usefixtures("boat")
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_session_goes_as_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    act_out(path, tmp_path, monkeypatch, request)


# -- updating ----------------------------------------------------------------------------------------------------------

UPDATED = {
    "still_true": False,
    "summary": "The rudder turns 35 degrees.",
    "edits": [{"section": "The helm", "find": "30 degrees", "replace": "35 degrees", "reason": "MOST_DEGREES is 35"}],
}
STILL_TRUE = {"still_true": True, "summary": "The page speaks of no number.", "edits": []}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A model's service; what it answers next is in its `script`."""
    made = Service()
    for name, value in {
        "PROVIDER": "openai",
        "URL": f"{made.url}/v1",
        "FAST": "quick",
        "DEEP": "wise",
        "API_KEY_ENV": "QUAID_API_KEY",
    }.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name}", value)
    monkeypatch.setenv("QUAID_API_KEY", "sk-nobody")
    yield made
    made.close()


@pytest.fixture
def vault(tmp_path: Path, boat: SourceRepo, monkeypatch: pytest.MonkeyPatch) -> SourceRepo:
    """A vault with the boat as its project."""
    for name, value in {
        "HOME": str(tmp_path),
        "QUAID_HOME": str(tmp_path / "vault"),
        "QUAID_EMBEDDING_PROVIDER": "none",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }.items():
        monkeypatch.setenv(name, value)
    Memory.create(tmp_path / "vault")[0].close()
    quaid("project", "create", "boat", "--root", str(boat.path))
    return SourceRepo(tmp_path / "vault")


def say(service: Service, *answers: object) -> None:
    service.script = [json.dumps(answer) for answer in answers]


@pytest.mark.usefixtures("vault")
class TestUpdate:
    def test_what_a_model_proposes_is_shown_and_nothing_is_changed(self, boat: SourceRepo, service: Service) -> None:
        say(service, UPDATED)
        before = boat.git("for-each-ref"), boat.git("status", "--porcelain")
        code, out, err = quaid("docs", "update")
        assert code == 0
        assert out.splitlines() == [
            "boat:docs/helm.md: The rudder turns 35 degrees.",
            "    @@ -1,4 +1,4 @@",
            "     # The helm",
            "     <!-- SOURCES: helm/rudder.py -->",
            "",
            "    -The rudder turns 30 degrees at most.",
            "    +The rudder turns 35 degrees at most.",
        ]
        assert "quaid docs update --yes" in err
        assert (boat.git("for-each-ref"), boat.git("status", "--porcelain")) == before

    def test_a_patch_is_one_that_git_takes(self, boat: SourceRepo, service: Service) -> None:
        say(service, UPDATED)
        _, patch, _ = quaid("docs", "update", "helm", "--patch")
        subprocess.run(["git", "apply", "-"], cwd=boat.path, input=patch.encode(), check=True)
        assert "35 degrees" in boat.read("docs/helm.md")
        assert boat.git("status", "--porcelain") == "M docs/helm.md"

    def test_yes_makes_a_branch_and_leaves_all_else_alone(self, boat: SourceRepo, service: Service) -> None:
        boat.write("sails/trim.py", "work that is not done")
        boat.write("crew/list.py", "CREW = []\n")
        boat.git("add", "crew/list.py")
        before = boat.head, boat.git("status", "--porcelain"), boat.git("write-tree")
        say(service, UPDATED)
        quaid("docs", "update")
        code, out, err = quaid("docs", "update", "--yes")
        branch = boat.git("for-each-ref", "--format=%(refname:short)", "refs/heads/quaid")
        assert (code, out) == (0, f"Updated: boat:docs/helm.md, 1 passage\n  branch  {branch}\n")
        assert err == f"Look at it and merge it: git -C {boat.path} merge {branch}\n"
        assert (boat.head, boat.git("status", "--porcelain"), boat.git("write-tree")) == before
        assert "35 degrees" in boat.git("show", f"{branch}:docs/helm.md")
        assert boat.git("diff", "--name-only", f"main...{branch}") == "docs/helm.md"
        assert len(service.asked) == 1  # what it said before is not asked again

    def test_a_merged_update_makes_the_document_true(self, boat: SourceRepo, service: Service) -> None:
        say(service, UPDATED)
        (shape,) = json.loads(quaid("docs", "update", "--yes", "--json")[1])["docs"]
        assert shape["branch"].startswith("quaid/docs/helm-md-")
        assert (shape["commit"], shape["still_true"]) == (None, False)
        assert shape["edits"] == [{"find": "30 degrees", "replace": "35 degrees", "reason": "MOST_DEGREES is 35"}]
        boat.merge(shape["branch"])
        assert quaid("docs", "check", "helm")[1] == "1 document: ● 1 true\n"
        assert quaid("docs", "update")[1] == "Nothing to do: no document is stale.\n"

    def test_work_of_the_owner_in_the_way_is_said_and_nothing_is_made(self, boat: SourceRepo, service: Service) -> None:
        boat.write("docs/helm.md", boat.read("docs/helm.md") + "\nStill writing.\n")
        say(service, UPDATED)
        code, out, err = quaid("docs", "update", "--yes")
        assert (code, out) == (1, "")
        assert "docs/helm.md holds what HEAD does not" in err
        assert boat.git("branch", "--list", "quaid/*") == ""
        code, out, _ = quaid("docs", "update", "--yes", "--json")
        assert code == 1
        assert json.loads(out)["docs"][0]["error"]["code"] == "proposal"

    def test_a_document_of_the_vault_becomes_a_commit(
        self, boat: SourceRepo, vault: SourceRepo, service: Service
    ) -> None:
        vault.write("projects/boat/helm-notes.md", "---\nsources: [helm/rudder.py]\n---\n" + FILES["docs/helm.md"])
        vault.commit("notes on the helm", datetime(2025, 3, 3, 9, 30, tzinfo=UTC))
        say(service, UPDATED)
        code, out, _ = quaid("docs", "update", "helm-notes", "--yes")
        assert (code, out) == (
            0,
            f"Updated: projects/boat/helm-notes.md, 1 passage\n  commit  {vault.head[:10]}\n",
        )
        text = vault.read("projects/boat/helm-notes.md")
        assert "35 degrees" in text
        assert f"true_at: {boat.head}\n" in text
        assert vault.git("show", "--name-only", "--format=%s").split("\n") == [
            "docs: update projects/boat/helm-notes.md", "", "projects/boat/helm-notes.md",
        ]  # fmt: skip
        vault.git("revert", "--no-edit", "HEAD")
        assert "30 degrees" in vault.read("projects/boat/helm-notes.md")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_one_that_was_killed_before_its_commit_is_finished_by_the_next(
        self, vault: SourceRepo, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vault.write("projects/boat/helm-notes.md", "---\nsources: [helm/rudder.py]\n---\n" + FILES["docs/helm.md"])
        vault.commit("notes on the helm", datetime(2025, 3, 3, 9, 30, tzinfo=UTC))
        say(service, UPDATED)
        if not (child := os.fork()):
            monkeypatch.setattr(History, "commit", lambda *_, **__: os._exit(9))
            quaid("docs", "update", "helm-notes", "--yes")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert "35 degrees" in vault.read("projects/boat/helm-notes.md")
        assert quaid("docs", "update", "helm-notes", "--yes")[0] == 0
        assert vault.git("log", "-1", "--format=%s") == "docs: update projects/boat/helm-notes.md"
        assert vault.git("status", "--porcelain") == ""

    def test_a_check_names_the_symbol_the_commit_and_the_line_and_asks_no_model(self, service: Service) -> None:
        out = quaid("docs", "check", "helm")[1]
        assert "1 document: ○ 1 stale" in out
        assert "MOST_DEGREES changed" in out
        (doc,) = json.loads(quaid("docs", "check", "helm", "--json")[1])["docs"]
        (doubt,) = doc["doubts"]
        assert (doubt["symbol"], doubt["path"], doubt["part"]) == ("MOST_DEGREES", "helm/rudder.py", "signature")
        assert doubt["commit"]["id"] == doc["since"]["id"]
        assert service.asked == []

    def test_a_repository_that_git_cannot_read_is_named_once(self, boat: SourceRepo, service: Service) -> None:
        (boat.path / ".git/HEAD").write_text("garbage\n")
        told = f"quaid: git could not read HEAD of {boat.path}: it names no commit\n"
        assert quaid("docs", "update") == (1, "", told)
        assert service.asked == []

    def test_a_document_that_is_empty_label_wrong_is_true_from_then_on(self, service: Service) -> None:
        say(service, STILL_TRUE)
        assert quaid("docs", "update") == (0, "boat:docs/helm.md: The page speaks of no number.\n", "")
        assert "1 true" in quaid("docs", "check", "helm")[1]


@pytest.mark.usefixtures("vault")
class TestSearch:
    def test_of_a_long_table_the_row_that_answers_is_shown(self, boat: SourceRepo) -> None:
        rows = "".join(f"| `option.{number}` | says how much of it is wanted there |\n" for number in range(60))
        boat.write("docs/options.md", f"# Options\n\n| a | b |\n|---|---|\n{rows}| `reef.at` | the wind to reef at |\n")
        shown = quaid("docs", "search", "at which wind do we reef", "-n", "1")[1]
        assert shown.endswith("      | `reef.at` | the wind to reef at |\n")
        assert "\n      …\n" in shown
        assert len(shown) < 1200


@pytest.mark.usefixtures("vault")
class TestShapes:
    """Each JSON shape holds what docs/reference/commands.md says, and nothing more."""

    @pytest.mark.matrix
    @pytest.mark.parametrize(
        ("line", "number"),
        [
            ("project list", 0),
            ("project show boat", 1),
            ("project find boat/helm/rudder.py", 2),
            ("project discover . --dry-run", 3),
            ("docs list", 0),
            ("docs search rudder", 1),
            ("docs read helm", 2),
            ("docs check helm --diff", 3),
            ("docs update helm", 4),
            ("docs sync", 5),
        ],
    )
    def test_fields_are_those_documented(
        self, line: str, number: int, tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "dinghy").mkdir()
        (tmp_path / "dinghy" / "AGENTS.md").write_text("# The dinghy\n", encoding="utf-8")
        say(service, UPDATED)
        blocks = re.findall(r"```json\n(.*?)```", section_of(line.partition(" ")[0]), re.DOTALL)
        written, told = json.loads(blocks[number]), json.loads(quaid(*line.split(), "--json", "-q")[1])
        assert _fields(written) == _fields(told)


def _fields(shape: dict[str, Any]) -> dict[str, object]:
    """The fields of an answer, and of the first of each list in it."""
    lists = {key: value for key, value in shape.items() if isinstance(value, list)}
    inner = {key: sorted(value[0]) for key, value in lists.items() if value and isinstance(value[0], dict)}
    return {"": sorted(shape), "project": sorted(shape["project"]) if "project" in shape else None, **inner}
