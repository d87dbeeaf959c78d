"""A run of the janitor: plan, carry out, gate, questions, report; the tasks are in tasks/.

May import all that docs may, and docs.
Begin with janitor.py, then runner.py; vetoes.py, guards.py and policy.py have one purpose each.
"""
