"""One process that has the memory open answers for others: a command line, a hook, an editor's plugin ask it.

May import the base, local and memory; what answers a command line or an event is given by the doors above.
Begin with call.py, the caller's half, which imports next to nothing; listener.py is the half that answers.
"""
