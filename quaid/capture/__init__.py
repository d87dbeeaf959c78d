"""From a conversation, a file or an export to memories: transcripts, importers, extraction, storing, writing.

May import all that recall may, and recall.
Begin with extractor.py (a conversation), files/analyzer.py (a file), importer.py (an export), writer.py (every write).
"""
