"""Memories of other programs -> facts, entities, edges and notes. No model is prompted and nothing is guessed."""
