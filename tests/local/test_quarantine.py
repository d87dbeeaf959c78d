"""What models said and nobody can use is kept as it came, a while."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from extraction_runs import read_quarantine

from quaid.janitor import cleanup
from quaid.local import quarantine
from quaid.local.quarantine import Quarantined, put
from quaid.place import state_folder

HALF = Quarantined("2026-11-20T14:02:03+00:00", "2f1c9a", "refused", raw="I can't \ud83d")
FOUND = Quarantined("2026-11-20T14:02:03.123456+00:00", "2f1c9a", "it holds no JSON object", "wise", "extract@1", 'I\nam "sorry" \u2028 é\x00',
                    (("Maya sings.", "it rests on no turn"),))  # fmt: skip


def test_what_is_put_is_read_back(tmp_path):
    path = put(state_folder(tmp_path), FOUND)
    assert path.parent == state_folder(tmp_path) / "quarantine"
    assert path.name.startswith("20261120-140203-")
    assert read_quarantine(state_folder(tmp_path)) == [FOUND]


def test_half_a_character_is_kept_as_it_came(tmp_path):
    put(tmp_path, HALF)
    assert read_quarantine(tmp_path) == [HALF]


def test_nothing_is_there_at_first(tmp_path):
    assert read_quarantine(tmp_path) == []


def test_two_at_the_same_moment_are_two_and_the_oldest_comes_first(tmp_path):
    for day in ("22", "20", "21", "20"):
        put(tmp_path, Quarantined(f"2026-11-{day}T00:00:00+00:00", day, "no"))
    assert [found.about for found in read_quarantine(tmp_path)] == ["20", "20", "21", "22"]


def test_the_oldest_go_in_a_night_that_says_so_and_not_before(tmp_path, monkeypatch):
    monkeypatch.setattr(cleanup, "MAX_QUARANTINED", 3)
    for day in range(10, 20):
        put(tmp_path, Quarantined(f"2026-11-{day}T00:00:00+00:00", str(day), "no"))
    assert quarantine.count(tmp_path) == 10
    assert "old answers from quarantine: 7" in "".join(cleanup.clean(tmp_path, datetime.now(UTC)))
    assert [found.about for found in read_quarantine(tmp_path)] == ["17", "18", "19"]


def test_only_its_owner_reads_it(tmp_path):
    assert put(tmp_path, FOUND).stat().st_mode & 0o777 == 0o600


def test_a_file_is_plain_json_for_people(tmp_path):
    text = put(tmp_path, FOUND).read_text("utf-8")
    assert "é" in text
    assert json.loads(text)["problem"] == "it holds no JSON object"
