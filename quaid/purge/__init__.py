"""Forgetting for real: a text leaves the history, the files, the index and all that this machine keeps of it.

May import what the command line may, but for doors: `memory`, `resident` and all that stands above them.
Begin with purging.py; what a text looks like in an encoding is in wording.py, what git has of it in
history/rewriting.py.
"""
