"""`quaid merge-driver`, which git calls file by file, and waits for: it imports what merging takes and no more."""

import sys
from collections.abc import Sequence

from quaid.history.merge_driver import merge_files

_USAGE = "quaid merge-driver is for git to call: quaid merge-driver %O %A %B %L %P. Set it up with: quaid doctor"


def main(arguments: Sequence[str]) -> int:
    """Merge three versions of one file into the second one, and return the exit code that git expects."""
    if len(arguments) != 5:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        return merge_files(*arguments)
    except OSError as error:
        print(f"quaid: {error.filename or arguments[4]} could not be merged ({error.strerror}).", file=sys.stderr)
        return 2
