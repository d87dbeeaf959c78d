"""The derived index: the port, documents, words, vectors, graph; an engine keeps it. It opens no note.

May import the base only.
Begin with port.py and documents.py.
"""
