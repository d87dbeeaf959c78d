"""Documentation of projects: registry, sources, staleness, significance, updates, search.

May import all that capture may, and capture.
Begin with documentation.py.
"""
