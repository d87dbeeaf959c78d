"""One vault on several machines: which remotes are trusted, pull and push, the lease of the janitor.

May import the base, vault, history, local and sync.
Begin with exchange.py.
"""
