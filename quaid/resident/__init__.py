"""One process with an open memory answers for others: command lines, hooks, plugins of editors.

May import the base, local and memory; a subclass of `Listener` in a package above answers a command line or an event.
Begin with call.py, the client side, which imports next to nothing; listener.py is the server side.
"""
