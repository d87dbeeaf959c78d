"""The commands that agents call at the events of a session.

May import Memory and every package below it.
Begin with entry.py.
"""
