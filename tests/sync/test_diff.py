"""What a sweep finds, and how little memory that takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from matrices import for_each

from quaid.index.documents import KnownFile
from quaid.sync import diff
from quaid.vault.files import FileStat

READ_NS = 1_700_000_005_000_000_000
COUNT = 5_000


def stat_of(number: int) -> FileStat:
    return FileStat(100 + number, 10**18 + number, 10**18 + number, number)


def list_known(numbers: range) -> Iterator[tuple[str, KnownFile]]:
    for number in numbers:
        yield f"facts/{number:06}.md", KnownFile(*stat_of(number), READ_NS + number, f"{number:064x}")


def test_each_file_is_new_gone_suspect_or_as_it_was() -> None:
    listed = {f"facts/{number:06}.md": stat_of(number) for number in range(1, 4)}
    listed["facts/000002.md"] = stat_of(7)
    found = diff.compare(listed, list_known(range(3)))
    assert found == (["facts/000003.md"], {"facts/000002.md": f"{2:064x}"}, {"facts/000000.md": f"{0:064x}"})
    _, suspects, _ = diff.compare(listed, list_known(range(3)), trust_times=False)
    assert list(suspects) == ["facts/000001.md", "facts/000002.md"]


S = 1_000_000_000


@for_each(("modified", "changed", "is_suspect"), [
    (-10 * S + 1, -10 * S + 1, False), (-20_000_001, -10 * S + 1, False),  # longer ago than a tick
    (-20_000_000, -10 * S + 1, True), (-10 * S + 1, -20_000_000, True), (-1, -10 * S + 1, True),
    (-3 * S, -10 * S + 1, False),  # whole seconds: a coarse clock, whose tick is two of them
    (-2 * S, -10 * S + 1, True), (-2 * S + 1, -10 * S + 1, False),
    (1, -10 * S + 1, False),  # set by hand to a time to come
    (1, -1, True), (0, -10 * S + 1, True),
])  # fmt: skip
def test_a_file_that_may_have_been_written_after_it_was_read_is_read_again(modified, changed, is_suspect) -> None:
    stat = FileStat(1, READ_NS + modified, READ_NS + changed, 7)
    _, suspects, _ = diff.compare({"a.md": stat}, [("a.md", KnownFile(*stat, READ_NS, "hash"))])
    assert list(suspects) == ["a.md"] * is_suspect


@pytest.mark.parametrize(("added", "removed", "pairs"), [
    ({"b/x.md": "1", "b/y.md": "1"}, {"a/y.md": "1", "a/x.md": "1"}, {"a/x.md": "b/x.md", "a/y.md": "b/y.md"}),
    ({"b/x.md": "2", "b/y.md": "1"}, {"a/x.md": "1"}, {"a/x.md": "b/y.md"}),  # what it says goes before its name
    ({"b/x.md": "2", "b/z.md": "3"}, {"a/x.md": "1", "a/y.md": "4"}, {"a/x.md": "b/x.md"}),
    ({"c/x.md": "2"}, {"a/x.md": "1", "b/x.md": "1"}, {"a/x.md": "c/x.md"}),  # the first of several
    ({"x.md": "2"}, {"b/ax.md": "1"}, {}), ({}, {"a/x.md": "1"}, {}),
])  # fmt: skip
def test_a_file_moved_to_where_the_same_is_said_or_else_to_its_name(added, removed, pairs) -> None:
    assert diff.pair_renames(added, removed) == pairs


def test_what_the_index_knows_is_not_held_beside_the_listing() -> None:
    listed = {f"facts/{number:06}.md": stat_of(number) for number in range(COUNT)}
    tracemalloc.start()
    try:
        assert not any(diff.compare(listed, list_known(range(COUNT))))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / COUNT < 150, "bytes for each file"
