"""The OpenClaw plugin's own type check and unit tests, where Node and its packages are at hand.

cd hooks/openclaw && npm install        # once
QUAID_BIN=$(command -v quaid) npm test  # with the real quaid too
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "hooks" / "openclaw"
LEAST_NODE = (24, 16)


@pytest.fixture(scope="module")
def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not on the PATH")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(int(part) for part in version.strip().lstrip("v").split(".")[:2]) < LEAST_NODE:
        pytest.skip(f"OpenClaw needs node {'.'.join(map(str, LEAST_NODE))} or later, and this is {version.strip()}")
    if not (PLUGIN / "node_modules" / "openclaw").is_dir():
        pytest.skip("the plugin's packages are not installed: cd hooks/openclaw && npm install")
    return found


def run(*command):
    return subprocess.run(command, cwd=PLUGIN, capture_output=True, text=True, timeout=120, check=False)


def test_types_fit_the_sdk(node):
    done = run(node, "node_modules/typescript/bin/tsc", "--noEmit")
    assert done.returncode == 0, done.stdout


def test_unit_tests_pass(node):
    done = run(node, "--test", *sorted(str(path) for path in PLUGIN.glob("test/*.test.ts")))
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_manifest_takes_no_slot_and_says_the_packages_version():
    manifest = json.loads((PLUGIN / "openclaw.plugin.json").read_text("utf-8"))
    package = json.loads((PLUGIN / "package.json").read_text("utf-8"))
    assert "kind" not in manifest
    assert manifest["id"] == "quaid"
    assert manifest["version"] == package["version"]
    assert package["openclaw"]["compat"]["pluginApi"] == f">={package['devDependencies']['openclaw']}"
    assert "dependencies" not in package
