"""The programs agents live in: where each keeps its config, what Quaid wants there, and how that text is edited.

All of it is pure text in, text out; `files` alone touches the disk and `probe` alone starts a process.
"""
