"""Sessions of the command line, as a user would see them: tests/transcript.py says how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcript import act_out

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "transcripts").glob("*.txt"))


@pytest.mark.matrix
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_session_goes_as_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    act_out(path, tmp_path, monkeypatch, request)
