"""Date expressions of German, French, Spanish, Portuguese, Chinese and Japanese, as `date_patterns.py` has those of
English.

The patterns of a language are compiled by the first text in it that looks dated.
"""

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial

from quaid.text.date_patterns import Window, month_of, nearest, shift, unit_of

Rules = list[tuple[re.Pattern[str], Callable[[re.Match[str], date], Window | None]]]
Leads = list[tuple[re.Pattern[str], Callable[[re.Match[str], Window], Window | None]]]

MONTHS = {
    "de": "januar februar märz april mai juni juli august september oktober november dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
_IN = {
    "de": r"(?:im|anfang|mitte|ende|letzten)\s+",
    "fr": r"(?:en|début|fin|mi-|au mois de|au mois d')\s*",
    "es": r"(?:en|a principios de|a mediados de|a finales de)\s+",
    "pt": r"(?:em|no mês de|no início de|no fim de)\s+",
}
"""The words before a month without a day or a year: `August` and `Mars` are names too."""
_DAYS = {
    "de": {"vorgestern": -2, "gestern": -1, "heute": 0, "(?<!heute )(?<!gestern )(?-i:morgen)": 1, "übermorgen": 2},
    "fr": {"avant-hier": -2, "(?<!avant-)hier": -1, "aujourd['’]hui": 0, "(?<!après-)demain": 1, "après-demain": 2},  # noqa: RUF001
    "es": {"anteayer": -2, "ayer": -1, "hoy": 0, "(?<!la )(?<!esta )(?<!pasado )mañana": 1, "pasado mañana": 2},
    "pt": {"anteontem": -2, "ontem": -1, "hoje": 0, "(?<!depois de )amanhã": 1, "depois de amanhã": 2},
    "zh": {"前天": -2, "昨[天晚日]": -1, "今[天晚早日]": 0, "明[天晚早日]": 1, "后天": 2},
    "ja": {
        "一昨日|おととい": -2,
        "(?<!一)昨日|昨夜|きのう": -1,
        "今日|今朝|今夜": 0,
        "(?<!説)明日|あした": 1,
        "明後日|あさって": 2,
    },
}
_UNITS = {
    "de": {r"letzte\w?|vorige\w?|vergangene\w?": -1, r"diese\w?": 0, r"nächste\w?|kommende\w?": 1},
    "fr": {r"dernier|dernière|passée?": -1, r"cette|ce|cet": 0, r"prochaine?": 1},
    "es": {r"pasad[oa]": -1, r"est[ea]": 0, r"próxim[oa]|que viene": 1},
    "pt": {r"passad[oa]": -1, r"est[ea]|ess[ea]": 0, r"próxim[oa]|que vem": 1},
    "zh": {"上个?": -1, "这个?|本": 0, "下个?": 1},
    "ja": {"先|昨": -1, "今": 0, "来": 1},
}
"""Words next to the name of a unit -> how many units later than now."""
_NAMES = {
    "de": {"tage?n?": "day", "wochenende": "weekend", "wochen?": "week", "monate?n?": "month", "jahre?n?": "year"},
    "fr": {"jours?": "day", "week-end": "weekend", "semaines?": "week", "mois": "month", "ans?|années?": "year"},
    "es": {"días?": "day", "fin de semana": "weekend", "semanas?": "week", "mes(?:es)?": "month", "años?": "year"},
    "pt": {"dias?": "day", "fim de semana": "weekend", "semanas?": "week", "m[êe]s(?:es)?": "month", "anos?": "year"},
    "zh": {"天": "day", "周末": "weekend", "周|星期|礼拜": "week", "月": "month", "年": "year"},
    "ja": {"日": "day", "週末": "weekend", "週間?": "week", "か?月": "month", "年": "year"},
}
_NUMBERS = {
    "de": "einem|einer zwei drei vier fünf sechs sieben acht neun zehn",
    "fr": "une? deux trois quatre cinq six sept huit neuf dix",
    "es": "una? dos tres cuatro cinco seis siete ocho nueve diez",
    "pt": "uma? dois|duas três quatro cinco seis sete oito nove dez",
    "zh": "一 两|二 三 四 五 六 七 八 九 十",
    "ja": "一 二 三 四 五 六 七 八 九 十",
}
_AGO = {
    "de": r"\bvor\s+{}\s+{}\b", "fr": r"\bil y a\s+{}\s+{}\b", "es": r"\bhace\s+{}\s+{}\b", "pt": r"\bhá\s+{}\s+{}\b",
    "zh": "{}个?{}(?:以?前)", "ja": "{}{}(?:間)?前",
}  # fmt: skip
_WEEKDAYS = {
    "de": (
        r"\b(?:am\s+|(?<=seit )|(?<=bis )|(?<=ab )|(?:letzten|vorigen|vergangenen|diesen|nächsten|kommenden)\s+){}\b",
        "montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
    ),
    "fr": (
        r"(?<!le )(?<!les )(?<!chaque )\b(?:ce\s+)?{}(?:\s+(?:dernier|prochain))?\b",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
    ),
    "es": (
        r"\b(?:el|este)\s+(?:(?:pasado|próximo)\s+)?{}(?:\s+(?:pasado|próximo|que\s+viene))?\b",
        "lunes martes miércoles jueves viernes sábado domingo",
    ),
    "pt": (
        r"\b(?:n[ao]|n?est[ae]|n?ess[ae])\s+(?:(?:passad|próxim)[ao]\s+)?{}"  # noqa: ISC004
        r"(?:-feira|(?<=o)|(?=\s+(?:passad|próxim|que vem))|(?=\s*(?:\Z|[.,;!?])))"
        r"(?:\s+(?:passad[ao]|próxim[ao]|que\s+vem))?\b",
        "segunda terça quarta quinta sexta sábado domingo",
    ),
    "zh": ("(?<!每)(?:[上下这本]个?)?(?:周|星期|礼拜){}", "一 二 三 四 五 六 日|天"),
    "ja": ("(?:[先今来]週の?)?(?<!毎週)(?<!毎週の){}曜日?", "月 火 水 木 金 土 日"),
}
"""The pattern of a weekday, which recurs in other forms, and the names from Monday."""
_LEADS = {
    # before, after, since, until
    "de": ("vor", "nach", "seit|ab", "bis"),
    "fr": ("avant", "après", "depuis", "jusqu(?:'à|’en|'en|’à)"),  # noqa: RUF001
    "es": ("antes de", "después de", "desde", "hasta"),
    "pt": ("antes de", "depois de", "desde", "até"),
}
_LEAD = r"\b(?:({})|({})|({})|({}))\s+(?:(?:dem|den|der|zum|anfang|mitte|ende|le|la|el|o|a)\s+)?$"
_YEAR = r"(?:19|20)[0-9]{2}"
_HAN_DIGITS = "〇一二三四五六七八九"
_HAN_NUMBER = f"[0-9０-９{_HAN_DIGITS}十]{{1,3}}"  # noqa: RUF001
_HAN_DATE = (
    rf"(?:({_YEAR})年\s?|(去年|昨年|今年|明年|来年)の?)?"
    rf"(?<![0-9])({_HAN_NUMBER})月(?:\s?({_HAN_NUMBER})[日号號])?(?!间|間|前)"
)
_HAN_YEAR = rf"({_YEAR})年(?!\s?[0-9〇一二三四五六七八九十前])|(去年|昨年|今年|明年|来年)(?!の?{_HAN_NUMBER}月)"  # noqa: RUF001
_HAN_YEARS = {"去年": -1, "昨年": -1, "今年": 0, "明年": 1, "来年": 1}


@cache
def rules_of(language: str | None) -> Rules:
    """Return the patterns of dates by themselves; none for a language that is not known here."""
    if language not in _DAYS:
        return []
    is_han = language not in MONTHS
    edge = "" if is_han else r"\b"
    rules: Rules = [
        (re.compile(f"(?i){edge}(?:{words}){edge}"), partial(_unit, offset, "day"))
        for words, offset in _DAYS[language].items()
    ]
    for name, unit in _NAMES[language].items():
        for words, step in _UNITS[language].items():
            if is_han:
                pattern = f"(?:{words})(?:{name})"
            else:
                pattern = rf"(?i)\b(?:(?:{words})\s+(?:{name})|(?:{name})\s+(?:{words}))\b"
            if unit != "day" and not (is_han and unit == "year"):
                rules.append((re.compile(pattern), partial(_unit, step, unit)))
        numbers = f"([0-9]{{1,3}}|{_NUMBERS[language].replace(' ', '|')})"
        rules.append(
            (re.compile(f"(?i){_AGO[language].format(numbers, f'(?:{name})')}"), partial(_ago, language, unit))
        )
    pattern, weekdays = _WEEKDAYS[language]
    day = f"(?P<weekday>{weekdays.replace(' ', '|')})"
    rules.append((re.compile(f"(?i){pattern.format(day)}"), partial(_weekday, language)))
    if is_han:
        return [*rules, (re.compile(_HAN_DATE), _han_date), (re.compile(_HAN_YEAR), _han_year)]
    months = f"(?P<month>{MONTHS[language].replace(' ', '|')})"
    of = r"(?:(?:de|del|d['’])\s*)?"  # noqa: RUF001
    named = rf"(?i)\b(?:(?P<day>[0-9]{{1,2}})(?:\.|er|º)?\s*{of})?{months}(?:\s+{of}(?P<year>{_YEAR}))?\b"
    alone = rf"(?i)\b{_IN[language]}(?P<date>{months})\b(?!\s+{of}{_YEAR})"
    return [*rules, *((re.compile(pattern), partial(_in_month, language)) for pattern in (named, alone))]


@cache
def leads_of(language: str | None) -> Leads:
    """Return the patterns that change the window of the date that they precede."""
    if language not in _LEADS:
        return []
    return [(re.compile(f"(?i){_LEAD.format(*_LEADS[language])}"), _open_ended)]


def _unit(step: int, unit: str, _match: re.Match[str], today: date) -> Window:
    return unit_of(shift(today, step, unit), unit)


def _ago(language: str, unit: str, match: re.Match[str], today: date) -> Window:
    words = _NUMBERS[language].split()
    named = (place for place, word in enumerate(words, 1) if re.fullmatch(word, match[1].lower()))
    count = int(match[1]) if match[1].isdecimal() else next(named)
    return unit_of(shift(today, -count, unit), unit)


def _weekday(language: str, match: re.Match[str], today: date) -> Window:
    """Without a direction the latest one that has begun."""
    names = _WEEKDAYS[language][1].split()
    weekday = next(place for place, name in enumerate(names) if re.fullmatch(name, match["weekday"].lower()))
    steps = (step for words, step in _UNITS[language].items() if re.search(f"(?i){words}", match[0]))
    step = next(steps, None)
    if step == 0 or (step is not None and language not in MONTHS):  # of a week
        day = today + timedelta(days=7 * step + weekday - today.weekday())
    elif step == 1:
        day = nearest(today + timedelta(days=1), weekday, 1)
    else:
        day = nearest(today - timedelta(days=step is not None), weekday, -1)
    return day, day


def _in_month(language: str, match: re.Match[str], today: date) -> Window | None:
    """A month alone needs one of the words of `_IN` before it."""
    parts = match.groupdict()
    day, year = parts.get("day"), parts.get("year")
    if not (day or year or "date" in parts):
        return None
    month = MONTHS[language].split().index(parts["month"].lower()) + 1
    return _days(int(year) if year else None, month, int(day) if day else None, today)


def _days(year: int | None, month: int, day: int | None, today: date) -> Window:
    """Return the day or the month; without a year the latest that has begun."""
    if day is None:
        return month_of(year or today.year - (month > today.month), month)
    at = date(year or today.year, month, day)
    at = at.replace(year=at.year - 1) if year is None and at > today else at
    return at, at


def _han_date(match: re.Match[str], today: date) -> Window:
    year = int(match[1]) if match[1] else today.year + _HAN_YEARS[match[2]] if match[2] else None
    return _days(year, _han_number(match[3]), _han_number(match[4]) if match[4] else None, today)


def _han_year(match: re.Match[str], today: date) -> Window:
    year = int(match[1]) if match[1] else today.year + _HAN_YEARS[match[2]]
    return date(year, 1, 1), date(year, 12, 31)


def _han_number(digits: str) -> int:
    """Return 11 for `11` and `十一`, 31 for `三十一`."""
    if digits.isdecimal():
        return int(digits)
    tens, ten, ones = digits.rpartition("十")
    return (_HAN_DIGITS.index(tens) if tens else 1) * 10 * bool(ten) + (_HAN_DIGITS.index(ones) if ones else 0)


def _open_ended(match: re.Match[str], anchor: Window) -> Window:
    before, after, since, _until = match.groups()
    if before:
        return date.min, anchor[0] - timedelta(days=1)
    if after:
        return anchor[1] + timedelta(days=1), date.max
    return (anchor[0], date.max) if since else (date.min, anchor[1])
