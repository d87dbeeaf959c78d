"""The command line: one module per command, loaded when it is called.

May import Memory, report and every room below them.
Begin with main.py.
"""
