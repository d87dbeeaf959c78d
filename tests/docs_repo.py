"""The repository that the tests of documentation check: a function, the page that tells of it, and a page beside it."""

CODE = "def reach(limit=10):\n    return limit * 2\n"
DOC = "# Reach\n\n`reach` doubles its limit, which is 10. See [the code](../src/reach.py).\n"


def statuses(found):
    return {doc: freshness.status for doc, freshness in found.items()}
