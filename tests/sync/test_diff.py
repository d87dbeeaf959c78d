"""What a sweep finds is told by one look at the rows, comes to the same as the whole difference, and takes little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from quaid.index.documents import KnownFile
from quaid.sync import diff
from quaid.vault.files import FileStat

READ_NS = 1_700_000_005_000_000_000
TIMES = st.sampled_from([0, 1, 20_000_000, 20_000_001, 1_999_999_999, 2_000_000_000, 2_000_000_001, 5_000_000_000, -1])
STATS = st.builds(
    FileStat, st.integers(0, 1), TIMES.map(READ_NS.__sub__), TIMES.map(READ_NS.__sub__), st.integers(0, 1)
)
FILES = st.dictionaries(st.sampled_from("abc"), STATS)
COUNT = 5_000


@given(FILES, FILES, st.booleans())
def test_a_quick_look_finds_a_difference_where_there_is_one(listed, known, is_as_known):
    listed = dict(known) if is_as_known else listed
    rows = [(path, KnownFile(*found, READ_NS, "")) for path, found in known.items()]
    stats = [(path, *found, READ_NS) for path, found in known.items()]
    assert diff.is_same(listed, stats) is not bool(diff.compare(listed, rows))


def stat_of(number: int) -> FileStat:
    return FileStat(100 + number, 10**18 + number, 10**18 + number, number)


def list_known(numbers: range) -> Iterator[tuple[str, KnownFile]]:
    for number in numbers:
        yield f"facts/{number:06}.md", KnownFile(*stat_of(number), READ_NS + number, f"{number:064x}")


def test_each_file_is_new_gone_suspect_or_as_it_was() -> None:
    listed = {f"facts/{number:06}.md": stat_of(number) for number in range(1, 4)}
    listed["facts/000002.md"] = stat_of(7)
    found = diff.compare(listed, list_known(range(3)))
    assert found == diff.Diff(("facts/000003.md",), {"facts/000002.md": f"{2:064x}"}, {"facts/000000.md": f"{0:064x}"})
    untrusted = diff.compare(listed, list_known(range(3)), trust_times=False)
    assert list(untrusted.suspects) == ["facts/000001.md", "facts/000002.md"]


def test_what_the_index_knows_is_not_held_beside_the_listing() -> None:
    listed = {f"facts/{number:06}.md": stat_of(number) for number in range(COUNT)}
    tracemalloc.start()
    try:
        assert not diff.compare(listed, list_known(range(COUNT)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / COUNT < 150, "bytes for each file"
