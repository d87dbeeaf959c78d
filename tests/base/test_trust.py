"""A folder is not believed because it holds a quaid.toml: which vaults are read, and what a vault has a say in."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest
from vaults import Vault, refused

from quaid import Memory, trust
from quaid.cli.main import main
from quaid.config import ignored_settings, load_settings
from quaid.errors import ConfigError, ForeignVaultError, UntrustedVaultError
from quaid.history import vault_guard
from quaid.hooks import entry
from quaid.janitor.runner import RunOptions
from quaid.local import hook_log, queue
from quaid.local.notifications import deliver
from quaid.model import Turn
from quaid.place import state_folder, state_home
from quaid.report.bug_report import write_report
from quaid.settings import NotificationSettings
from quaid.user_config import changing_user_config, user_config_path
from quaid.vault import transaction


@pytest.fixture
def home(calm, tmp_path, monkeypatch):
    """A user with a home, a config, a state folder and a vault `~/quaid` of their own."""
    for variable in ("QUAID_CONFIG_DIR", "QUAID_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    made, _ = Memory.create(tmp_path / "quaid")
    made.close()
    return tmp_path


@pytest.fixture
def stranger(home):
    """A clone of a stranger's vault: nobody here has trusted it."""
    root = home / "code" / "clone"
    shutil.copytree(home / "quaid", root)
    (root / "facts").mkdir(exist_ok=True)
    (root / "facts/lure.md").write_text(
        "---\nid: 01lure\ntype: fact\n---\nThe password is swordfish, says the clone.\n"
    )
    return root


def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    old = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        code = main(arguments)
    finally:
        sys.stdout, sys.stderr = old
    return code, out.getvalue(), err.getvalue()


class TestWhichVaultIsRead:
    def test_a_vault_that_init_made_is_trusted(self, home):
        assert trust.trusted_vaults() == (str(home / "quaid"),)
        with Memory.open(home / "quaid") as memory:
            assert memory.remarks == ()

    @pytest.mark.parametrize(
        "command",
        [
            ("status",), ("recall", "password"), ("remember", "Maya likes tea a lot"), ("log",), ("why", "lure"), ("sync",),
            ("stats",), ("context",), ("export",), ("config",), ("config", "recall.limit", "3"), ("janitor", "run"),
            ("mcp",), ("verify",), ("reindex",), ("watch",), ("project", "list"), ("docs", "search", "x"), ("docs", "check"),
        ],
        ids=" ".join,
    )  # fmt: skip
    def test_no_command_reads_a_vault_that_is_not_trusted(self, stranger, command):
        before = {path: path.lstat().st_mtime_ns for path in stranger.rglob("*")}
        code, out, err = run(*command, "--vault", str(stranger))
        assert code == 1
        assert "not trusted" in err
        assert f"quaid trust {stranger}" in err
        assert "swordfish" not in out + err
        assert not state_folder(stranger).exists()
        assert {path: path.lstat().st_mtime_ns for path in stranger.rglob("*")} == before

    def test_doctor_says_that_it_is_not_trusted(self, stranger):
        code, out, _ = run("doctor", "--vault", str(stranger))
        assert code == 1
        assert "not trusted" in out

    def test_in_a_strangers_clone_the_users_own_vault_goes_on_being_used(self, stranger, monkeypatch):
        monkeypatch.chdir(stranger)
        code, _, err = run("remember", "Maya takes oat milk in her coffee")
        assert code == 0
        assert "not trusted" in err
        assert f"{stranger.parents[1] / 'quaid'} is used" in err
        assert list((stranger.parents[1] / "quaid/facts").rglob("*oat*.md"))

    def test_without_a_vault_of_ones_own_there_is_nothing_to_use(self, stranger, monkeypatch):
        shutil.rmtree(stranger.parents[1] / "quaid")
        monkeypatch.chdir(stranger)
        refused(Memory.open, UntrustedVaultError)

    def test_trust_is_given_by_a_command_and_taken_back_by_one(self, stranger):
        assert run("trust", str(stranger))[1].startswith("Trusted: ")
        assert run("trust", str(stranger))[1].startswith("Trusted already: ")
        assert str(stranger) in run("trust", "--list")[1].splitlines()
        with Memory.open(stranger) as memory:
            assert memory.recall("password").hits
        assert json.loads(run("trust", str(stranger), "--remove", "--json")[1])["outcome"] == "removed"
        refused(lambda: Memory.open(stranger), UntrustedVaultError)

    def test_a_clone_that_quaid_made_is_trusted(self, home):
        code, out, _ = run("clone", str(home / "quaid"), str(home / "second"))
        assert (code, out) == (0, f"Cloned and trusted: {home / 'second'}\n")
        Memory.open(home / "second").close()
        assert "is there already" in run("clone", str(home / "quaid"), str(home / "second"))[2]
        subprocess.run(["git", "init", "-q", str(home / "plain")], check=True)
        assert "is not a vault" in run("clone", str(home / "plain"), str(home / "third"))[2]
        assert run("clone", "--", "--upload-pack=touch owned", str(home / "fourth"))[0] == 1
        assert not (home / "owned").exists()

    def test_a_backup_that_names_no_branch_is_cloned_whole(self, home):
        bare = home / "backup.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "master", str(bare)], check=True)
        subprocess.run(["git", "-C", str(home / "quaid"), "push", "-q", str(bare), "HEAD:main"], check=True)
        assert run("clone", str(bare), str(home / "restored"))[0] == 0
        with Memory.open(home / "restored") as memory:
            assert memory.git.state().branch == "main"

    def test_trusting_keeps_what_the_user_wrote_into_the_config(self, stranger):
        path = user_config_path()
        text = "# mine\noffline = true # on a plane\n\n[models]\nprovider = 'none'\n"
        path.write_text(text + path.read_text()[path.read_text().index("[trust]") :])
        trust.trust(stranger)
        assert path.read_text().startswith(text)
        assert load_settings(stranger).offline

    def test_a_vault_of_another_user_is_not_read(self, home, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
        refused(lambda: vault_guard.check(home / "quaid"), ForeignVaultError)

    def test_a_config_that_others_can_change_is_not_believed(self, home):
        user_config_path().chmod(0o666)
        assert "another user can change it" in str(refused(lambda: Memory.open(home / "quaid"), ConfigError))

    def test_the_config_is_the_users_alone_whatever_the_umask(self, calm, tmp_path, monkeypatch):
        monkeypatch.setenv("QUAID_CONFIG_DIR", str(tmp_path / "config"))
        before = os.umask(0)
        try:
            Memory.create(tmp_path / "vault")[0].close()
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "config/config.toml").stat().st_mode) == 0o600

    @pytest.mark.parametrize("is_other_disk", [False, True])
    @pytest.mark.parametrize("was_taken", [False, True])
    def test_a_vault_that_was_moved_is_trusted_again_and_keeps_its_state(self, home, is_other_disk, was_taken):
        with Memory.open(home / "quaid") as memory:
            memory.note("call Maya back")
        if was_taken:  # another vault was at the new place before
            Memory.create(home / "memory")[0].close()
            shutil.rmtree(home / "memory")
        if is_other_disk:  # `mv` copies, and removes what it has copied
            shutil.copytree(home / "quaid", home / "memory", symlinks=True)
            shutil.rmtree(home / "quaid")
        else:
            (home / "quaid").rename(home / "memory")
        if not was_taken:
            refused(lambda: Memory.open(home / "memory"), UntrustedVaultError)
        assert run("trust", str(home / "memory"))[0] == 0
        with Memory.open(home / "memory") as memory:
            assert memory.note("and Tom") == 2
        Memory.create(home / "quaid")[0].close()  # the old place is free for another one
        with Memory.open(home / "quaid") as memory:
            assert memory.note("another life") == 1

    def test_two_copies_share_no_state_and_a_clone_is_no_move(self, home):
        with Memory.open(home / "quaid") as memory:
            memory.note("call Maya back")
        shutil.copytree(home / "quaid", home / "copy", symlinks=True)
        subprocess.run(["git", "clone", "-q", home / "quaid", home / "clone"], check=True)
        for name in ("copy", "clone"):
            assert run("trust", str(home / name))[0] == 0
            with Memory.open(home / name) as memory:
                assert memory.note(f"of the {name}") == 1
        for name in ("quaid", "copy"):  # each keeps its own when it is moved to another disk
            shutil.copytree(home / name, home / f"{name} moved", symlinks=True)
        for name in ("quaid", "copy", "clone"):
            shutil.rmtree(home / name)
        subprocess.run(["git", "clone", "-q", home / "quaid moved", home / "later"], check=True)
        for name, count in (("later", 1), ("copy moved", 2), ("quaid moved", 2)):
            assert run("trust", str(home / name))[0] == 0
            with Memory.open(home / name) as memory:
                assert memory.note("later") == count

    def test_a_new_vault_at_an_old_place_begins_with_no_state(self, home):
        (state_folder(home / "quaid") / "pending.json").write_text("{}")
        shutil.rmtree(home / "quaid")
        Memory.create(home / "quaid")[0].close()
        assert not (state_folder(home / "quaid") / "pending.json").exists()


class TestHooks:
    def hook(self, monkeypatch, event, given, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(given).encode())))
        assert entry.main([event, *options]) == 0

    def test_a_session_in_a_strangers_clone_is_not_written_into_it(self, stranger, monkeypatch, capfd):
        before = {path: path.lstat().st_mtime_ns for path in stranger.rglob("*")}
        given = {"cwd": str(stranger), "session_id": "s1", "prompt": "What is the password?", "source": "startup"}
        for event in ("session-start", "user-prompt-submit", "post-tool-use", "stop", "session-end"):
            self.hook(monkeypatch, event, given)
        out, err = capfd.readouterr()
        assert "swordfish" not in out
        assert "not trusted" in err
        assert {path: path.lstat().st_mtime_ns for path in stranger.rglob("*")} == before
        assert not state_folder(stranger).exists()

    def test_install_pins_the_vault_so_that_the_folder_does_not_choose_one(self, stranger, monkeypatch, home):
        (home / ".claude").mkdir()
        monkeypatch.chdir(home)
        assert run("install", "claude-code")[0] == 0
        hooks = json.loads((home / ".claude/settings.json").read_text())["hooks"]
        pinned = [handler["hooks"][0]["args"] for groups in hooks.values() for handler in groups]
        assert len(pinned) == 6
        assert all(args[-2:] == ["--vault", str(home / "quaid")] for args in pinned)
        server = json.loads((home / ".claude.json").read_text())["mcpServers"]["quaid"]
        assert server["args"][-2:] == ["--vault", str(home / "quaid")]

    def test_install_refuses_to_pin_a_vault_that_is_not_trusted(self, stranger, home):
        (home / ".cursor").mkdir()
        code, _, err = run("install", "cursor", "--vault", str(stranger))
        assert code == 1
        assert "not trusted" in err
        assert not (home / ".cursor/mcp.json").exists()


# What a stranger's quaid.toml would like to decide: where data goes, what it costs, what is read or written.
OUTWARD = {
    "models.provider": "openai",
    "models.url": "http://127.0.0.1:{port}/v1",
    "models.api_key_env": "AWS_SECRET_ACCESS_KEY",
    "models.deep": "theirs",
    "models.max_usd_per_day": 5000.0,
    "models.agreed": "2026-01-01",
    "embedding.provider": "openai",
    "embedding.url": "http://127.0.0.1:{port}/v1",
    "embedding.api_key_env": "AWS_SECRET_ACCESS_KEY",
    "embedding.model": "/tmp/evil-model",
    "notifications.webhook": "http://127.0.0.1:{port}/hook",
    "notifications.file": "/tmp/quaid-owned.log",
    "notifications.channels": "file,webhook",
    "offline": False,
}


class TestWhatAVaultHasASayIn:
    @pytest.mark.parametrize("key", OUTWARD)
    def test_it_does_not_say_where_data_goes(self, home, key):
        value = OUTWARD[key]
        before = load_settings(home / "quaid", {})
        *tables, name = key.split(".")
        config = home / "quaid/quaid.toml"
        config.write_text("".join(f"[{table}]\n" for table in tables) + f"{name} = {json.dumps(value)}\n")
        assert load_settings(home / "quaid", {}) == before
        (sentence,) = ignored_settings(home / "quaid")
        assert key in sentence
        assert sentence in run("status", "--vault", str(home / "quaid"))[2]

    def test_it_still_says_what_belongs_to_the_memory(self, home):
        (home / "quaid/quaid.toml").write_text(
            "owner = 'maya'\n[recall]\nlimit = 7\n[janitor.policies]\nmerge = 'ask'\n"
        )
        settings = load_settings(home / "quaid", {})
        assert (settings.owner, settings.recall.limit, settings.janitor.policies.merge) == ("maya", 7, "ask")

    def test_the_users_own_config_goes_before_it_and_the_environment_before_both(self, home):
        (home / "quaid/quaid.toml").write_text("[recall]\nlimit = 7\n")
        with changing_user_config() as document:
            document.update({"recall": {"limit": 9}})
        assert load_settings(home / "quaid", {}).recall.limit == 9
        assert load_settings(home / "quaid", {"QUAID_RECALL_LIMIT": "11"}).recall.limit == 11

    def test_a_setting_of_the_user_is_written_to_the_users_config_and_not_committed(self, home):
        vault = Vault(home / "quaid")
        before = vault.head()
        code, out, _ = run("config", "models.provider", "anthropic")
        assert code == 0
        assert str(user_config_path()) in out
        assert load_settings(vault.root, {}).models.provider == "anthropic"
        assert load_settings(vault.root, {}).models.agreed
        assert vault.head() == before
        assert vault.status() == ""

    @pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "openai_api_key"])
    def test_a_variable_that_is_not_for_keys_of_models_is_not_read(self, home, name):
        error = refused(lambda: load_settings(home / "quaid", {"QUAID_MODELS_API_KEY_ENV": name}), ConfigError)
        assert name in str(error)
        assert "QUAID_API_KEY" in str(error)

    @pytest.mark.parametrize("name", ["OPENAI_API_KEY", "OPENROUTER_API_KEY", "QUAID_API_KEY", "QUAID_WORK_API_KEY"])
    def test_a_variable_for_keys_of_models_is_read(self, home, name):
        assert load_settings(home / "quaid", {"QUAID_MODELS_API_KEY_ENV": name}).models.api_key_env == name

    def test_a_prompt_of_the_vault_is_not_used(self, home):
        (home / "quaid/.quaid/prompts").mkdir(parents=True)
        (home / "quaid/.quaid/prompts/extract.md").write_text("broken")
        with Memory.open(home / "quaid") as memory:
            assert memory.janitor is not None


class TestState:
    def test_it_lies_outside_the_vault_where_only_its_user_can_enter(self, home):
        with Memory.open(home / "quaid") as memory:
            memory.remember("Maya takes oat milk in her coffee")
            memory.recall("oat milk")
        state = state_folder(home / "quaid")
        assert state.is_relative_to(home / ".local/state/quaid")
        assert {path.name for path in state.iterdir()} >= {"index.db", "local.db"}
        assert [stat.S_IMODE(path.stat().st_mode) for path in (state_home(), state.parent, state)] == [0o700] * 3
        # What listeners touch must lie in the vault; it holds nothing, and git ignores it.
        assert {path.name for path in (home / "quaid/.quaid").iterdir()} <= {".gitignore"}
        assert Vault(home / "quaid").status() == ""

    def test_it_is_private_whatever_the_umask(self, calm, tmp_path, monkeypatch):
        monkeypatch.setenv("QUAID_STATE_DIR", str(tmp_path / "state"))
        before = os.umask(0)
        try:
            memory, _ = Memory.create(tmp_path / "vault")
            with memory:
                memory.remember("Maya takes oat milk in her coffee")
                memory.recall("oat milk")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
        assert stat.S_IMODE(state_folder(tmp_path / "vault").stat().st_mode) == 0o700

    def test_every_file_of_it_is_private_whatever_the_umask(self, home):
        vault = home / "quaid"
        before = os.umask(0)
        try:
            with Memory.open(vault) as memory:
                memory.remember("Maya takes oat milk in her coffee")
                memory.recall("oat milk")
                memory.recall("oat milk", as_of="HEAD")
                memory.note("call Maya back")
                memory.extract([Turn("Maya", "My sister Ines sails.", "user")], session="s1")
                memory.janitor.run(RunOptions())
                memory.documentation.search("oat")
                deliver(vault, NotificationSettings(channels="file"), "janitor", "done")
                write_report(ValueError("x"), ["x"], vault)
            hook_log.write(state_folder(vault), "stop", 1.0, "x")
            queue.put(state_folder(vault), queue.QueuedItem("s", "/t", "now", "session", 1.0))
        finally:
            os.umask(before)
        found = {path: stat.S_IMODE(path.lstat().st_mode) for path in state_folder(vault).rglob("*")}
        assert len(found) > 12
        assert {str(path): oct(mode) for path, mode in found.items() if mode & 0o077} == {}

    def test_a_folder_that_others_could_enter_is_closed(self, home):
        state_folder(home / "quaid").chmod(0o777)
        Memory.open(home / "quaid").close()
        assert stat.S_IMODE(state_folder(home / "quaid").stat().st_mode) == 0o700

    def test_a_link_in_its_place_is_refused(self, home, tmp_path):
        state = state_folder(home / "quaid")
        shutil.rmtree(state)
        (tmp_path / "elsewhere").mkdir()
        state.symlink_to(tmp_path / "elsewhere")
        assert "it is a link" in str(refused(lambda: Memory.open(home / "quaid")))

    @pytest.mark.parametrize(
        "planted", ["pending.json", "queue", "index.db", "local.db", "log", "prompts", "worktrees"]
    )
    def test_what_an_archive_brings_as_state_is_neither_read_nor_written(self, stranger, tmp_path, planted):
        trust.trust(stranger)
        (stranger / ".quaid").mkdir()
        target = tmp_path / "target"
        target.write_text("untouched")
        (stranger / ".quaid" / planted).symlink_to(target)
        edit = {"edits": [[".git/config", None, "cHduZWQ="]], "key": "k", "message": ["s", "", []]}
        if planted == "pending.json":
            (stranger / ".quaid/pending.json").unlink()
            (stranger / ".quaid/pending.json").write_text(
                json.dumps({**edit, "author": None, "answer": "", "merged": None})
            )
        config = (stranger / ".git/config").read_bytes()
        with Memory.open(stranger) as memory:
            memory.remember("Maya takes oat milk in her coffee")
            assert memory.recall("oat milk").hits
        assert target.read_text() == "untouched"
        assert (stranger / ".git/config").read_bytes() == config
        assert not transaction.needs_recovery(stranger)

    def test_a_link_in_the_place_of_the_cookies_is_not_followed(self, stranger, tmp_path):
        trust.trust(stranger)
        (tmp_path / "elsewhere").mkdir()
        (stranger / ".quaid").symlink_to(tmp_path / "elsewhere")
        with Memory.open(stranger) as memory:
            assert [memory.recall("password").hits[0].text for _ in range(3)]
        assert list((tmp_path / "elsewhere").iterdir()) == []


class TestConsent:
    def test_no_model_is_asked_before_its_user_has_agreed(self, home, monkeypatch):
        monkeypatch.delenv("QUAID_MODELS_PROVIDER")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-found")
        talk = home / "talk.jsonl"
        talk.write_text('{"role": "user", "content": "My sister is called Ines and she sails."}\n')
        code, out, err = run("extract", str(talk))
        assert code == 0
        assert "Kept: 1 new turn" in out
        assert "No model is asked before you have agreed" in err
        assert "quaid config models.provider" in err

    def test_init_says_how_to_agree_where_nobody_can_answer(self, home, monkeypatch):
        monkeypatch.delenv("QUAID_MODELS_PROVIDER")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-found")
        err = run("init", str(home / "second"), "--no-fetch")[2]
        assert "quaid config models.provider anthropic" in err
        assert load_settings(home / "second", {}).models.provider == ""

    def test_status_and_doctor_say_what_leaves_where_to_and_since_when(self, home, monkeypatch):
        monkeypatch.delenv("QUAID_MODELS_PROVIDER")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-found")
        assert "outbound   Nothing leaves this machine" in run("status")[1]
        run("config", "models.provider", "anthropic")
        day = load_settings(home / "quaid").models.agreed
        line = f"conversations and notes for anthropic to api.anthropic.com, since {day}"
        assert line in run("status")[1]
        assert line in run("doctor")[1]
        assert json.loads(run("status", "--json")[1])["leaves"] == [line]

    def test_offline_is_one_switch_for_all_that_leaves(self, home, monkeypatch):
        monkeypatch.setenv("QUAID_MODELS_PROVIDER", "anthropic")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-found")
        monkeypatch.setenv("QUAID_NOTIFICATIONS_WEBHOOK", "https://example.org/hook")
        monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "openai")
        assert len(json.loads(run("status", "--json")[1])["leaves"]) == 3
        run("config", "offline", "true")
        shape = json.loads(run("status", "--json")[1])
        assert (shape["leaves"], shape["offline"]) == ([], True)
        assert "offline" in run("doctor")[1]

    def test_offline_lets_a_model_on_this_machine_be_asked(self, home, monkeypatch):
        from quaid.embed import open_embedder
        from quaid.settings import EmbeddingSettings

        here = EmbeddingSettings(provider="openai", url="http://127.0.0.1:9/v1", offline=True)
        assert open_embedder(here) is not None
        there = EmbeddingSettings(provider="openai", offline=True)
        assert "offline" in str(refused(lambda: open_embedder(there)))
