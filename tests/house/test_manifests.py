"""What registries, programs and shops read of Quaid: written from pyproject.toml, and valid by their own schemas."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import jsonschema
import pytest
import yaml
from claude_code import find_claude
from mcp_host import HELLO

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "manifests"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="manifests are written in a checkout")
SCHEMAS = {
    "server.json": "server",
    "plugin.json": "plugin",
    "mcp.json": "mcp",
    "packaging/mcpb/manifest.json": "mcpb",
}
SKILLS = ("skills/quaid-memory/SKILL.md", ".agents/skills/quaid-memory/SKILL.md")
FIELDS_OF_A_SKILL = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


@pytest.fixture(scope="module")
def manifests():
    """The script that writes them, as a module."""
    spec = spec_from_loader("manifests", SourceFileLoader("manifests", str(SCRIPT)))
    module = module_from_spec(spec)
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # it has no suffix: its cache would lie in .ci
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = compiled
    return module


def load(name):
    return json.loads((ROOT / name).read_text("utf-8"))


def test_every_manifest_is_as_pyproject_says(manifests):
    written = manifests.render()
    assert set(written) >= {*SCHEMAS, *SKILLS, ".claude-plugin/marketplace.json", "hooks/openclaw/package.json"}
    stale = [name for name, text in written.items() if (ROOT / name).read_text("utf-8") != text]
    assert stale == [], "write them with: python .ci/manifests"


def test_a_manifest_that_drifts_is_named(manifests, monkeypatch, tmp_path, capsys):
    for name, text in manifests.render().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / manifests.SKILL).parent.mkdir(parents=True)
    (tmp_path / manifests.SKILL).write_bytes((ROOT / manifests.SKILL).read_bytes())
    (tmp_path / "plugin.json").write_text("{}\n", "utf-8")
    monkeypatch.setattr(manifests, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["manifests", "--check"])
    with pytest.raises(SystemExit, match=r"^Not as pyproject\.toml says: plugin\.json\."):
        manifests.main()
    monkeypatch.setattr(sys, "argv", ["manifests"])
    manifests.main()
    assert capsys.readouterr().out == "plugin.json\n"
    monkeypatch.setattr(sys, "argv", ["manifests", "--check"])
    manifests.main()


@pytest.mark.parametrize(("name", "schema"), SCHEMAS.items())
def test_a_manifest_is_valid_by_its_published_schema(name, schema):
    schema = load(f"tests/house/schemas/{schema}.schema.json")
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    manifest = load(name)
    assert list(validator(schema).iter_errors(manifest)) == []
    assert not validator(schema).is_valid(
        {key: value for key, value in manifest.items() if key != "name" and key != "mcpServers"}
    )


def test_the_readme_proves_to_the_registry_whose_the_package_is():
    marks = re.findall(r"^<!-- mcp-name: (\S+) -->$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert marks == [load("server.json")["name"]]


def test_marketplaces_offer_the_plugin_where_it_is():
    for name in (".claude-plugin/marketplace.json", "hooks/claude-code/.claude-plugin/marketplace.json"):
        (offered,) = load(name)["plugins"]
        plugin = ROOT / Path(name).parents[1] / offered["source"] / ".claude-plugin" / "plugin.json"
        assert json.loads(plugin.read_text("utf-8"))["name"] == offered["name"] == load(name)["name"] == "quaid"


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_is_as_the_specification_of_agent_skills_says(name):
    _, head, body = (ROOT / name).read_text("utf-8").split("---\n", 2)
    fields = yaml.safe_load(head)
    assert fields.keys() <= FIELDS_OF_A_SKILL
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert fields["name"] == Path(name).parent.name
    assert 0 < len(fields["description"]) <= 1024
    assert len(fields["compatibility"]) <= 500
    assert "memory_recall" in body


def test_the_bundle_and_the_formula_are_of_this_release(manifests, tmp_path):
    archive = tmp_path / f"quaid-{manifests.VERSION}.tar.gz"
    archive.write_bytes(b"of a release")
    manifests.make_release_files(tmp_path)
    bundle = (tmp_path / manifests.BUNDLE).read_bytes()
    manifests.make_release_files(tmp_path)
    assert (tmp_path / manifests.BUNDLE).read_bytes() == bundle
    with zipfile.ZipFile(tmp_path / manifests.BUNDLE) as opened:
        assert opened.namelist() == ["LICENSE", "manifest.json", "pyproject.toml", "server.py"]
        manifest = json.loads(opened.read("manifest.json"))
        assert manifest["server"]["entry_point"] in opened.namelist()
        assert f'"quaid=={manifest["version"]}"' in opened.read("pyproject.toml").decode()
    formula = (tmp_path / "quaid.rb").read_text("utf-8")
    assert hashlib.sha256(b"of a release").hexdigest() in formula
    assert f"/v{manifests.VERSION}/{archive.name}" in formula


@pytest.mark.slow
def test_claude_code_finds_nothing_wrong_with_the_marketplaces(tmp_path):
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    for folder in (ROOT, ROOT / "hooks" / "claude-code"):
        command = [find_claude(), "plugin", "validate", "--strict", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_tool_of_bundles_finds_nothing_wrong_with_the_manifest():
    if shutil.which("mcpb") is None:
        pytest.skip("needs mcpb on PATH: npm install --global @anthropic-ai/mcpb")
    done = subprocess.run(
        ["mcpb", "validate", ROOT / "packaging/mcpb/manifest.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_server_of_the_bundle_makes_a_vault_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")
    for vault in (tmp_path / "vault", tmp_path / "vault"):  # the second time it is there
        command = [sys.executable, ROOT / "packaging" / "mcpb" / "server.py", vault]
        done = subprocess.run(
            command, input=json.dumps(HELLO) + "\n", capture_output=True, text=True, timeout=120, check=False
        )
        answer = json.loads(done.stdout.splitlines()[0])
        assert answer["result"]["serverInfo"]["name"] == "quaid", done.stderr
        assert (vault / "quaid.toml").is_file()


def test_workflows_pin_what_they_run_and_may_do_little():
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow["permissions"] in ({}, {"contents": "read"}), path.name
        for job, steps in ((job, job["steps"]) for job in workflow["jobs"].values()):
            assert set(job.get("permissions", {})) <= {"contents", "id-token", "attestations"}, path.name
            used = [step["uses"] for step in steps if "uses" in step]
            assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == [], path.name
            if "id-token" in job.get("permissions", {}):  # what may sign runs nothing that a package could have changed
                assert not [step for step in steps if "pip install" in step.get("run", "")], path.name
