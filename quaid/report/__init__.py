"""The data behind `status`, `stats` and `doctor`, and bug reports.

May import Memory and every room below it.
Begin with status.py.
"""
