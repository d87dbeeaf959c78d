"""The `quaid` command: a thin door onto `Memory`. One module per command, loaded when that command is called."""
