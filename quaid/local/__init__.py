"""State that only this machine has and may lose: local.db, the queue, runs, logs, notifications.

May import the base only.
Begin with database.py.
"""
