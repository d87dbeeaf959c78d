"""The record: notes as files. Formats, reading, guarded writing, and the one order of a write.

May import the base only, and runs no git.
Begin with transaction.py: lock, recover, plan, guard, commit.
"""
