"""What a sweep finds is told by one look at the rows, and comes to the same as the whole difference."""

from __future__ import annotations

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


@given(FILES, FILES, st.booleans())
def test_a_quick_look_finds_a_difference_where_there_is_one(listed, known, is_as_known):
    listed = dict(known) if is_as_known else listed
    rows = {path: KnownFile(*found, READ_NS, "") for path, found in known.items()}
    stats = [(path, *found, READ_NS) for path, found in known.items()]
    assert diff.is_same(listed, stats) is not bool(diff.compare(listed, rows))
