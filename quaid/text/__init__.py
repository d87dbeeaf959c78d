"""The functions that need only strings: dates, stop words, invisible characters, quoting for agents.

May import `errors` and `model`.
Begin with dates.py for questions, quoting.py for answers.
"""
