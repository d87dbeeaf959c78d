"""The memory over time: the log in words, two states compared, undo, the commit that lost an answer, branches.

May import all that janitor may, and janitor.
Begin with timeline.py, the façade; changes.py says what a change of files means.
"""
