"""What only this machine knows and may lose: local.db, the queue, runs, logs, notifications.

May import the base only.
Begin with database.py.
"""
