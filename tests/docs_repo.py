"""The repository that the tests of documentation check: a function, the page that tells of it, and a page beside it."""

from source_repos import SourceRepo

CODE = "def reach(limit=10):\n    return limit * 2\n"
DOC = "# Reach\n\n`reach` doubles its limit, which is 10. See [the code](../src/reach.py).\n"


def statuses(found):
    return {doc: freshness.status for doc, freshness in found.items()}


def write_repo(folder, more=()):
    """The repository at `folder`, with `more` files: (path, text)."""
    found = SourceRepo(folder)
    found.write("src/reach.py", CODE)
    found.write("src/other.py", "OTHER = 1\n")
    found.write("docs/reach.md", DOC)
    found.write("docs/other.md", "# Other\n\nAll about `src/other.py`.\n")
    for path, text in more:
        found.write(path, text)
    found.commit("begin")
    return found
