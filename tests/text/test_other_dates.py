"""Dates in German, French, Spanish, Portuguese, Chinese and Japanese, and words that only look like them."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st
from matrices import for_each

from quaid.text.dates import find_dates
from quaid.text.other_dates import leads_of, rules_of

FRIDAY = datetime(2026, 11, 20, 14, 30)  # noqa: DTZ001 - the asker's clock


def windows(text):
    return [(each.start.isoformat(), each.end.isoformat()) for each in find_dates(text, FRIDAY)]


@for_each(("text", "start", "end"), [
    ("Was war am 3. Mai 2023?", "2023-05-03", "2023-05-03"), ("Wo waren wir im August?", "2026-08-01", "2026-08-31"),
    ("Was habe ich gestern gesagt?", "2026-11-19", "2026-11-19"), ("Wer kommt morgen?", "2026-11-21", "2026-11-21"),
    ("Was haben wir letzte Woche gemacht?", "2026-11-09", "2026-11-15"), ("Was war vor zwei Monaten?", "2026-09-01", "2026-09-30"),
    ("Was ist seit März 2024 neu?", "2024-03-01", "9999-12-31"), ("Wo war ich im Dezember 2022?", "2022-12-01", "2022-12-31"),
    ("Qu'est-ce que nous avons fait hier ?", "2026-11-19", "2026-11-19"), ("Où étais-je le 1er mai 2024 ?", "2024-05-01", "2024-05-01"),
    ("Que s'est-il passé la semaine dernière ?", "2026-11-09", "2026-11-15"), ("Qui est venu il y a trois jours ?", "2026-11-17", "2026-11-17"),
    ("Où étions-nous en août ?", "2026-08-01", "2026-08-31"),
    ("¿Qué dijo ella ayer?", "2026-11-19", "2026-11-19"), ("¿Dónde estaba el 3 de mayo de 2023?", "2023-05-03", "2023-05-03"),
    ("¿Qué hicimos el mes pasado?", "2026-10-01", "2026-10-31"), ("¿Qué hicimos hace dos semanas?", "2026-11-02", "2026-11-08"),
    ("O que ela disse ontem?", "2026-11-19", "2026-11-19"), ("Onde eu estava em 3 de maio de 2023?", "2023-05-03", "2023-05-03"),
    ("O que fizemos no ano passado?", "2025-01-01", "2025-12-31"),
    ("我们昨天说了什么？", "2026-11-19", "2026-11-19"), ("2023年5月3日我在哪里？", "2023-05-03", "2023-05-03"), ("上周我们做了什么", "2026-11-09", "2026-11-15"),
    ("去年她住在哪里？", "2025-01-01", "2025-12-31"), ("三天前谁来了", "2026-11-17", "2026-11-17"), ("去年十二月我在哪里", "2025-12-01", "2025-12-31"),
    ("昨日は何を食べましたか", "2026-11-19", "2026-11-19"), ("十一月三日の予定は", "2026-11-03", "2026-11-03"), ("先週どこに行った", "2026-11-09", "2026-11-15"),
    ("Was war am Montag?", "2026-11-16", "2026-11-16"), ("Was ist nächsten Montag?", "2026-11-23", "2026-11-23"),
    ("Qu'avons-nous fait mardi dernier ?", "2026-11-17", "2026-11-17"), ("¿Qué hicimos el viernes pasado?", "2026-11-13", "2026-11-13"),
    ("O que fizemos na terça-feira?", "2026-11-17", "2026-11-17"), ("上周一我们做了什么", "2026-11-09", "2026-11-09"), ("先週の月曜日は何をした", "2026-11-09", "2026-11-09"),
    ("去年の夏はどこにいた", "2025-01-01", "2025-12-31"), ("2024年に何をした", "2024-01-01", "2024-12-31"),
])  # fmt: skip
def test_a_date_is_as_wide_as_it_was_meant(text, start, end):
    assert windows(text) == [(start, end)]


@for_each("text", [
    "Was trinke ich am Morgen?", "Hier ist der Schlüssel.", "Wer ist August?", "La planète Mars est rouge et froide.",
    "¿Qué tomo por la mañana?", "the hier file of an app", "他每天早上打太极拳", "日本語を話しますか", "明子は来ますか", "先生はだれですか", "一个月多少钱",
    "How old is he today in an? hier".replace("today ", ""),
])  # fmt: skip
def test_what_only_looks_like_a_date_is_none(text):
    assert windows(text) == []


@given(st.text("昨今明年月日0123一二三十前天週周上个 ") | st.text("morgen vor zwei 31. mai hier de 2024 "))
def test_any_text_has_windows_in_order(text):
    assert all(start <= end for start, end in windows(text))


def test_a_language_that_is_not_known_has_no_patterns():
    assert rules_of(None) == rules_of("en") == leads_of("ja") == []
