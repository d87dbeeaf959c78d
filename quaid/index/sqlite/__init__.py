"""The index in a file of one machine: SQLite with FTS5 and sqlite-vec.

May import the base only.
Begin with database.py and schema.sql.
"""
