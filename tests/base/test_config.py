"""Every setting has a default, a type, a place in quaid.toml and a name in the environment."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.config import (
    list_settings,
    load_settings,
    parse_value,
    render_setting,
    render_value,
    settings_for_reading,
)
from quaid.errors import ConfigError
from quaid.place import CONFIG_FILE
from quaid.settings import Settings

ROOT = Path(__file__).parents[2]
ALL = dict(list_settings(Settings()))


def load(tmp_path, text, **environ):
    (tmp_path / CONFIG_FILE).write_text(text, encoding="utf-8")
    return load_settings(tmp_path, environ)


def test_without_a_file_all_is_default(tmp_path):
    assert load_settings(tmp_path, {}) == Settings()
    assert load(tmp_path, "") == Settings()


def test_a_file_sets_what_it_names(tmp_path):
    settings = load(tmp_path, 'owner = "maya"\n[recall]\nlimit = 5\n[git]\nwait_s = 1\n[sync]\npoll = true\n')
    assert (settings.owner, settings.recall.limit, settings.git.wait_s, settings.sync.poll) == (
        "maya",
        5,
        1.0,
        True,
    )
    assert isinstance(settings.git.wait_s, float)
    assert settings.hooks == Settings().hooks


@pytest.mark.parametrize(("text", "word"), [
    ("colour = 1", "colour is not a setting"),
    ("[recall]\ncolour = 1", "recall.colour is not a setting"),
    ("[colour]\na = 1", "colour is not a setting"),
    ("recall = 5", "recall must be a table"),
    ("[owner]\na = 1", "owner is"),
    ("[recall]\nlimit = '5'", "recall.limit is '5', must be a whole number"),
    ("[recall]\nlimit = 5.0", "must be a whole number"),
    ("[recall]\nlimit = true", "must be a whole number"),
    ("[git]\nwait_s = 'x'", "must be a number"),
    ("[sync]\npoll = 1", "must be true or false"),
    ("owner = 1", "must be text"),
    ("[recall]\nprofile = 'magic'", "must be one of default, classic"),
    ("[recall]\nprofile = 1", "must be one of default"),
    ("[recall", "quaid.toml"),
    ('a = "\\q"', "quaid.toml"),
])  # fmt: skip
def test_an_unknown_key_or_a_wrong_type_is_named(tmp_path, text, word):
    with pytest.raises(ConfigError, match=re.escape(word)) as caught:
        load(tmp_path, text)
    assert "quaid config" in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfeowner", b"owner = '\xe9'", b"\0\0\0"])
def test_a_file_that_is_no_text_is_an_expected_failure(tmp_path, data):
    (tmp_path / CONFIG_FILE).write_bytes(data)
    with pytest.raises(ConfigError):
        load_settings(tmp_path, {})


def test_a_folder_in_the_files_place_is_an_expected_failure(tmp_path):
    (tmp_path / CONFIG_FILE).mkdir()
    with pytest.raises(ConfigError):
        load_settings(tmp_path, {})


def test_a_byte_order_mark_is_borne(tmp_path):
    (tmp_path / CONFIG_FILE).write_bytes(b'\xef\xbb\xbfowner = "maya"\r\n')
    assert load_settings(tmp_path, {}).owner == "maya"
    changed = render_setting((tmp_path / CONFIG_FILE).read_bytes().decode(), "owner", "tom")
    assert changed == '\ufeffowner = "tom"\r\n'


def test_every_setting_can_be_overridden_by_the_environment(tmp_path):
    for key, value in ALL.items():
        other = {bool: "yes", int: "7", float: "0.25"}.get(type(value), "other")
        if not isinstance(value, (bool, int, float)):
            other = next((choice for choice in _choices(key) if choice != value), other)
        if key == "timezone":
            other = "Europe/Berlin"
        if key.endswith("api_key_env"):
            other = "QUAID_OTHER_API_KEY"
        environ = {"QUAID_" + key.replace(".", "_").upper(): other}
        changed = dict(list_settings(load_settings(tmp_path, environ)))
        assert changed[key] == parse_value(key, other) != value or value == parse_value(key, other)
        follows = {key, "models.offline", "embedding.offline"} if key == "offline" else {key}
        assert {k: v for k, v in changed.items() if k not in follows} == {
            k: v for k, v in ALL.items() if k not in follows
        }


def _choices(key):
    cls = Settings
    *sections, name = key.split(".")
    for section in sections:
        cls = get_type_hints(cls)[section]
    return get_args(get_type_hints(cls)[name])


def test_the_environment_wins_over_the_file(tmp_path):
    assert load(tmp_path, "[recall]\nlimit = 5\n", QUAID_RECALL_LIMIT="6").recall.limit == 6
    assert load(tmp_path, "", QUAID_HOME="/x", QUAID_UNKNOWN="1") == Settings()


@pytest.mark.parametrize(("name", "raw"), [
    ("QUAID_RECALL_LIMIT", "many"), ("QUAID_RECALL_LIMIT", ""), ("QUAID_SYNC_POLL", "perhaps"), ("QUAID_RECALL_PROFILE", "magic"),
    ("QUAID_GIT_WAIT_S", "1,5"),
])  # fmt: skip
def test_a_wrong_override_is_named_by_its_key(tmp_path, name, raw):
    with pytest.raises(ConfigError, match=name.removeprefix("QUAID_").split("_")[0].lower()):
        load_settings(tmp_path, {name: raw})


@pytest.mark.parametrize(("key", "raw", "value"), [
    ("recall.limit", "5", 5), ("git.wait_s", "1", 1.0), ("sync.poll", "On", True), ("sync.poll", "0", False), ("owner", "", ""),
    ("owner", "007", "007"), ("recall.profile", "classic", "classic"),
])  # fmt: skip
def test_a_value_typed_in_a_shell_takes_the_settings_type(key, raw, value):
    assert parse_value(key, raw) == value
    assert type(parse_value(key, raw)) is type(value)


@for_each(
    "key",
    ["", ".", "recall", "recall.", "recall.colour", "colour", "owner.name", "recall.limit.x", "a.b.c", "__class__"],
)
def test_what_is_no_setting_is_refused(key):
    with pytest.raises(ConfigError, match="no such setting"):
        parse_value(key, "1")


TEMPLATE = (ROOT / "vault-template" / CONFIG_FILE).read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [
    "", TEMPLATE, "# mine\nowner = 'x' # why\n\n[recall]\nlimit = 3 # few\n[git]\n",
    "[recall]\nlimit = 3\n\n[sync]\npoll = true\n\n# apart\n[janitor.policies]\nmerge = 'ask' # mine\n",
    "[janitor.policies]\nforget = 'off'\n", "[janitor]\npolicies.merge = 'ask'\n",
])  # fmt: skip
def test_setting_one_key_keeps_every_other_line(tmp_path, text):
    for key, value in ALL.items():
        changed = render_setting(text, key, value)
        assert dict(list_settings(load(tmp_path, changed)))[key] == value
        kept = [
            line
            for line in text.splitlines()
            if line.strip() and not re.match(rf"(?:\w+\.)*{key.rpartition('.')[2]}\s*=", line)
        ]
        lines = iter(changed.splitlines())
        assert all(any(line == other for other in lines) for line in kept), key


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
def test_any_text_can_be_a_setting(text):
    assert tomllib.loads(render_setting("", "owner", text))["owner"] == text
    assert tomllib.loads("x = " + render_value(text.replace("\x7f", "")))["x"] == text.replace("\x7f", "")


def test_the_template_is_the_defaults(tmp_path):
    assert load(tmp_path, TEMPLATE) == Settings()
    named = re.findall(r"^# (\w+) = ([^#\n]+)", TEMPLATE, re.MULTILINE)
    uncommented = re.sub(r"^# (?=\w+ = )", "", TEMPLATE, flags=re.MULTILINE)
    assert load(tmp_path, uncommented) == Settings()
    assert len(named) > 8


def test_every_setting_is_typed_by_what_a_file_can_hold():
    def walk(cls):
        for item in fields(cls):
            default = getattr(cls(), item.name)
            if is_dataclass(default):
                walk(type(default))
            else:
                assert type(default) in {str, int, float, bool}, item.name

    walk(Settings)


@pytest.mark.parametrize(("text", "said"), [
    ("[recall]\n# few\nlimit = -3\n", "quaid.toml, line 3: recall.limit is -3, must be 0 or more"),
    ("owner = 'x'\nrecall.limit = -3\n", "quaid.toml, line 2: recall.limit is -3"),
    ("recall = { limit = -3 }\n", "quaid.toml, line 1: recall.limit is -3"),
    ("[janitor]\nchange_budget = 1.5\n", "line 2: janitor.change_budget is 1.5, must be from 0 to 1"),
    ("[janitor]\nchange_budget = nan\n", "line 2: janitor.change_budget is nan, must be from 0 to 1"),
    ("[janitor]\n\ngate = 1\n", "line 3: janitor.gate is 1, must be true or false"),
    ("[ recall ]\nlimt = 5\n", "line 2: recall.limt is not a setting (did you mean recall.limit?)"),
    ("[recal]\nlimit = 5\n", "line 1: recal is not a setting"),
    ("limit = 5\n[recall]\n", "line 1: limit is not a setting"),
    ("zzz = 5\n", "line 1: zzz is not a setting. Set"),
    ("[git]\nwait_s = -1\ntimeout_s = 0\n", "line 2: git.wait_s is -1.0, must be 0 or more; quaid.toml, line 3: git.timeout_s"),
])  # fmt: skip
def test_what_cannot_be_used_is_named_with_its_line(tmp_path, text, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        load(tmp_path, text)


@pytest.mark.parametrize(("key", "raw", "said"), [
    ("recall.limit", "-3", "must be 0 or more"), ("janitor.change_budget", "70", "from 0 to 1"),
    ("recall.limt", "3", "did you mean recall.limit?"), ("git.wait", "3", "did you mean git.wait_s?"),
    ("owner_nam", "x", "did you mean owner_name?"), ("janitor.change_budget", "nan", "from 0 to 1"),
])  # fmt: skip
def test_a_value_out_of_range_and_a_mistyped_key_are_refused(key, raw, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        parse_value(key, raw)


def test_the_rest_of_the_settings_is_used(tmp_path, monkeypatch):
    (tmp_path / CONFIG_FILE).write_text(
        'owner = "maya"\n[recall]\nlimit = -3\nk_most = 9\ndepth = "deep"\n', encoding="utf-8"
    )
    monkeypatch.setenv("QUAID_GIT_WAIT_S", "high")
    settings, problem = settings_for_reading(tmp_path)
    assert (settings.owner, settings.recall.limit, settings.recall.depth, settings.git.wait_s) == (
        "maya",
        0,
        "deep",
        10,
    )
    assert "line 3: recall.limit is -3" in str(problem)
    assert "QUAID_GIT_WAIT_S: git.wait_s is 'high', must be a number" in str(problem)


def test_what_keeps_things_private_is_taken_to_be_meant(tmp_path, monkeypatch):
    text = "[recall]\nlog = 'none'\ngaps = false\n[capture]\nredact_numbers = 'no'\n"
    (tmp_path / CONFIG_FILE).write_text(text, encoding="utf-8")
    monkeypatch.setenv("QUAID_OFFLINE", "please")
    settings, _ = settings_for_reading(tmp_path)
    assert (settings.recall.log, settings.recall.gaps, settings.capture.redact_numbers) == ("off", "off", True)
    assert settings.offline
    assert settings.models.offline


def test_every_default_is_in_its_range(tmp_path):
    for key, value in ALL.items():
        if not isinstance(value, str):
            assert parse_value(key, str(value)) == value
