"""Forgetting for real: a text leaves the history, the files, the index and all that this machine keeps of it.

May import `memory`, `embed`, `resident` and what `memory` may; no door.
Begin with purging.py; what git does for it is in history/rewriting.py and history/moving.py.
"""
