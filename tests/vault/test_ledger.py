"""usage/<device>.tsv: what is written is read again, broken lines cost only themselves, merging loses nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.model import Use
from quaid.vault.ledger import (
    later,
    ledger_path,
    list_ledgers,
    merge_versions,
    parse_ledger,
    read_ledger,
    render_ledger,
)

IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
MOMENTS = st.datetimes().map(lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0"))
USES = st.builds(
    Use,
    accesses=st.integers(0, 10**9),
    last_access=st.none() | MOMENTS,
    strength=st.integers(-(10**6), 10**9).map(lambda units: units / 10_000),
)
ROWS = st.dictionaries(IDS, USES, max_size=8)


class Device:
    """One machine that counts, and the states its ledger has gone through."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows: dict[str, Use] = {}
        self.states: list[dict[str, Use]] = [{}]

    def live(self, steps: int) -> None:
        for second in range(steps):
            note_id = self.rng.choice("abc")
            use = self.rows.get(note_id, Use())
            if self.rng.random() < 0.7:
                at = f"2026-11-20T14:{second // 60:02}:{second % 60:02}Z"
                use = Use(use.accesses + 1, at, round(use.strength + self.rng.randrange(500, 2000) / 10_000, 4))
            else:
                use = Use(use.accesses, use.last_access, round(use.strength - 0.02, 4))
            self.rows = {**self.rows, note_id: use}
            self.states.append(self.rows)


class TestFile:
    def test_a_line_is_what_the_docs_say(self):
        rows = {"b": Use(2, "2026-11-20T14:30:00Z", 0.125), "a": Use(0, None, -0.02)}
        assert render_ledger(rows) == b"a\t0\t\t-0.0200\nb\t2\t2026-11-20T14:30:00Z\t0.1250\n"

    @given(ROWS)
    def test_what_is_written_is_read_again(self, rows):
        written = render_ledger(rows)
        assert parse_ledger(written) == (rows, 0)
        assert render_ledger(parse_ledger(written)[0]) == written

    @given(ROWS)
    def test_line_endings_and_a_mark_of_an_editor_do_not_matter(self, rows):
        written = render_ledger(rows)
        assert parse_ledger(b"\xef\xbb\xbf" + written.replace(b"\n", b"\r\n")) == (rows, 0)

    @given(st.binary(max_size=200))
    def test_any_bytes_are_read(self, data):
        found = parse_ledger(data)
        assert parse_ledger(render_ledger(found[0])) == (found[0], 0)

    @for_each("line", [
        b"a\t1\t2026-11-20T14:30:00Z", b"a\tone\t\t0.1", b"a\t1\tyesterday\t0.1", b"a\t1\t\tnan", b"a\t-1\t\t0.1", b"\t1\t\t0.1",
        b"<<<<<<< HEAD", b"=======", b"\xff\t1\t\t0.1", b"a\\x\t1\t\t0.1", b"a\t1\t\t1e400", b"a\t99999999999999999999\t\t0",
    ])  # fmt: skip
    def test_a_broken_line_costs_only_itself_and_is_counted(self, line):
        sound = render_ledger({"z": Use(1, "2026-11-20T14:30:00Z", 0.05)})
        assert parse_ledger(line + b"\n" + sound) == ({"z": Use(1, "2026-11-20T14:30:00Z", 0.05)}, 1)

    def test_a_listing_tells_a_changed_ledger_without_opening_it(self, tmp_path: Path):
        assert list_ledgers(tmp_path) == {}
        path = tmp_path / ledger_path("maya-7k3q")
        path.parent.mkdir()
        path.write_bytes(render_ledger({"a": Use(1)}))
        (path.parent / "readme.md").write_text("x")
        (path.parent / ".hidden.tsv").write_text("x")
        (path.parent / "link.tsv").symlink_to(path)
        before = list_ledgers(tmp_path)
        assert list(before) == ["maya-7k3q"]
        assert list_ledgers(tmp_path) == before
        other = path.with_suffix(".new")
        other.write_bytes(render_ledger({"a": Use(2)}))
        other.replace(path)
        assert list_ledgers(tmp_path) != before
        assert read_ledger(tmp_path, "maya-7k3q") == ({"a": Use(2)}, 0)
        assert read_ledger(tmp_path, "gone") == ({}, 0)


class TestMerge:
    @pytest.mark.slow
    @given(ROWS, ROWS, ROWS)
    def test_versions_merge_in_any_order_and_more_than_once(self, one, two, three):
        merged = merge_versions(merge_versions(one, two), three)
        assert merged == merge_versions(three, merge_versions(two, one))
        assert merged == merge_versions(merged, two)

    @given(st.integers(0, 10**6), st.lists(st.integers(0, 30), min_size=1, max_size=4))
    def test_of_the_states_of_one_device_the_last_wins_whoever_met_whom(self, seed, met):
        device = Device(random.Random(seed))
        device.live(30)
        merged: dict[str, Use] = {}
        for index in met:
            merged = merge_versions(merged, device.states[index])
        assert merged == device.states[max(met)]

    @given(st.integers(0, 10**6), st.integers(0, 30), st.integers(0, 30))
    def test_a_git_merge_that_keeps_all_lines_reads_right(self, seed, ours, theirs):
        device = Device(random.Random(seed))
        device.live(30)
        both = render_ledger(device.states[ours]) + render_ledger(device.states[theirs])
        assert parse_ledger(both) == (device.states[max(ours, theirs)], 0)

    def test_between_two_recalls_strength_can_only_have_gone_down(self):
        strong, weakened = Use(3, "2026-11-20T14:30:00Z", 0.5), Use(3, "2026-11-20T14:30:00Z", 0.48)
        assert later(strong, weakened) == later(weakened, strong) == weakened
