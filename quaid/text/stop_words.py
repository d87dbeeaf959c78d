"""Words that say nothing about what a text is about. Apart, because a hook asks for them and needs no SQLite."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    for from had has have having he her here hers him his how i if in into is it its just me more most my no not of on
    or our out over own s she should so some such t than that the their them then there these they this those to too
    under until up very was we were what when where which while who whom whose why will with would you your
    """.split()  # noqa: SIM905 - a list would be a screen long
)
