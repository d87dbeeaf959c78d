"""From a conversation, a file or an export to memories: transcripts, importers, extraction, storing, writing.

May import all that recall may, and recall.
Begin with writer.py and extractor.py.
"""
