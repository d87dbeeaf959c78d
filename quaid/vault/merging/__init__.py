"""Three versions of a note into one, so that machines agree in whatever order they meet.

Pure. Of each part that only one side has changed, that side's version stands. Where both have changed a part, the
greater of the two in an order in which the base is the least stands: such a join is commutative, associative and
idempotent (Shapiro, Preguiça, Baquero & Zawirski, "Conflict-free replicated data types", 2011). Begin with texts.py.
"""
