"""What status, stats and doctor tell, and what a bug report keeps.

May import Memory and every room below it.
Begin with status.py.
"""
