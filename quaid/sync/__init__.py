"""From the record to the index, one way: listing, diff, indexing, watching, freshness.

May import the base, vault, history, index and embed.
Begin with indexer.py.
"""
