"""One module a task, each with a pure `plan(context)`: what it would change, and why. `registry` has their order."""
