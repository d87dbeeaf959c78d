"""Memories that another program kept -> facts, entities, edges and notes: one module per format.

No model is asked and nothing is guessed that the source does not say: a reader gathers what states something and counts
what it leaves out, by reason. What becomes of it is planned in `planning`.
"""
