"""The index that many stateless servers share: PostgreSQL with pgvector, one set of rows per vault.

May import the base only.
Begin with server.py and schema.sql.
"""
