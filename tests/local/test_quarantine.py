"""What models said and nobody can use is kept as it came, a while."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from extraction_runs import read_quarantine

from quaid.janitor import cleanup
from quaid.local import quarantine

HALF = ("2026-11-20T14:02:03+00:00", "2f1c9a", "refused", "", "", "I can't \ud83d")
FOUND = ("2026-11-20T14:02:03.123456+00:00", "2f1c9a", "it holds no JSON object", "wise", "extract@1", 'I\nam "sorry" \u2028 é\x00',
         (("Maya sings.", "it rests on no turn"),))  # fmt: skip


def test_what_is_put_is_read_back_as_it_came_and_is_plain_json_that_only_its_owner_reads(tmp_path):
    assert read_quarantine(tmp_path) == []
    for found in (HALF, FOUND):
        path = quarantine.put(tmp_path, *found)
        (read,) = read_quarantine(tmp_path)
        assert tuple(vars(read).values())[: len(found)] == found
        assert path.parent == tmp_path / "quarantine"
        assert path.name.startswith("20261120-140203-")
        assert path.stat().st_mode & 0o777 == 0o600
        text = path.read_text("utf-8", "surrogatepass")
        path.unlink()
    assert "é" in text
    assert json.loads(text)["problem"] == "it holds no JSON object"


def test_the_oldest_go_in_a_night_that_says_so_and_not_before(tmp_path, monkeypatch):
    monkeypatch.setattr(cleanup, "MAX_QUARANTINED", 3)
    for day in (*range(10, 20), 10):
        quarantine.put(tmp_path, f"2026-11-{day}T00:00:00+00:00", str(day), "no")
    assert quarantine.count(tmp_path) == 11
    assert "old answers from quarantine: 8" in "".join(cleanup.clean(tmp_path, datetime.now(UTC)))
    assert [found.about for found in read_quarantine(tmp_path)] == ["17", "18", "19"]
