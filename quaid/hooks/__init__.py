"""The commands that agents call at the events of a session.

May import Memory and every room below it.
Begin with entry.py.
"""
