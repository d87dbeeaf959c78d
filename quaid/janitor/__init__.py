"""All of a night: plan, run, gate, questions, report; a module for each task in tasks/.

May import all that docs may, and docs.
Begin with janitor.py, the façade, then runner.py; vetoes.py, gate.py and policy.py hold one thing each.
"""
