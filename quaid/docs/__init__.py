"""Documentation of projects: registry, sources, symbols, staleness, updates, search.

May import all that capture may, and capture.
Begin with documentation.py.
"""
