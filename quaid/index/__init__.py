"""The derived index: schema, documents, words, vectors, graph. It opens no note.

May import the base only.
Begin with schema.sql and documents.py.
"""
