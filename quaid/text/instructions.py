"""Standing instructions: what somebody asks an assistant to do from now on, in a dozen languages."""

import re

_START = (
    r"(?:^|[.!?;:\n。]\s*)"
    r"(?:(?:please|and|also|but|so|ok(?:ay)?|bitte|por favor|s'il te pla[iî]t|per favore),?\s+)*"
)
_INSTRUCTION = (
    # "Always give dates as …", "Never use …", and "Antworte immer …", but not "I always …" or "Ich gehe immer …".
    rf"{_START}(?:always|never|immer|niemals|toujours|jamais|siempre|nunca|sempre|altijd|nooit|zawsze|nigdy|всегда"
    r"|никогда)\s"
    rf"|{_START}(?!i\b|we\b|ich\b|wir\b|je\b|yo\b|eu\b|io\b|ik\b)[^\W\d_]{{3,}}\s(?:(?:mir|me|mi|moi|bitte)\s)?"
    r"(?:immer|niemals|toujours|siempre|sempre|altijd|zawsze|всегда)\s"
    r"|\b(?:from now on|going forward|whenever i ask|every time i ask|when i ask (?:you )?(?:about|for|to))\b"
    r"|\b(?:ab jetzt|von nun an|künftig|in zukunft|wenn ich nach|désormais|dorénavant|à partir de maintenant)\b"
    r"|\b(?:quand je (?:te )?demande|d'ora in poi|quando (?:ti )?chiedo|a partir de ahora|de ahora en adelante)\b"
    r"|\b(?:cuando (?:te )?pregunte|a partir de agora|de agora em diante|voortaan|od teraz|отныне)\b"
    r"|从现在起|以后(?:请|都)|每次(?:我|请)|总是|永远|今後(?:は|、)|これから(?:は|、)|必ず"
)


def is_instruction(text: str) -> bool:
    """Return whether `text` has a standing instruction: `Always give prices with tax when I ask about costs.`"""
    return re.search(_INSTRUCTION, text.lower()) is not None
