"""A day or a month without its year is the latest one of what has happened, and the next one of a plan."""

from __future__ import annotations

from datetime import UTC, datetime

from matrices import for_each

from quaid.text.relative_dates import with_dates

THURSDAY = datetime(2026, 11, 26, 15, tzinfo=UTC)
NEW_YEAR = datetime(2027, 1, 1, 0, 30, tzinfo=UTC)


@for_each(("kind", "said", "day"), [
    ("event", "The bike was stolen on Monday.", "23 November 2026"), ("fact", "The bike was stolen on Monday.", "23 November 2026"),
    ("experience", "Mia ran a marathon on Sunday.", "22 November 2026"), ("event", "On Monday the bike was stolen.", "23 November 2026"),
    ("event", "The exam is on Monday.", "30 November 2026"), ("fact", "The exam is on Monday.", "30 November 2026"),
    ("event", "Ana flies to Lisbon on Friday.", "27 November 2026"), ("decision", "Ana will fly to Lisbon on Friday.", "27 November 2026"),
    ("event", "They married in March.", "March 2026"), ("fact", "Ana will move in March.", "March 2027"),
    ("event", "The party is on 5 March.", "5 March 2027"), ("event", "Ben broke his arm on 20 November.", "20 November 2026"),
    ("event", "Das Rad wurde am Montag gestohlen.", "2026-11-23"), ("event", "Die Prüfung ist am Montag.", "2026-11-30"),
    ("event", "Das Rad wurde letzten Montag gestohlen.", "2026-11-23"), ("event", "Das Rad wurde gestern gestohlen.", "2026-11-25"),
    ("event", "Le vélo a été volé lundi.", "2026-11-23"), ("event", "L'examen est lundi.", "2026-11-30"),
    ("event", "L'examen est lundi prochain.", "2026-11-30"), ("event", "La bici fue robada el lunes.", "2026-11-23"),
    ("event", "El examen es el lunes.", "2026-11-30"), ("event", "A bicicleta foi roubada na segunda-feira.", "2026-11-23"),
    ("event", "A prova é na segunda.", "2026-11-30"), ("event", "自行车周一被偷了。", "2026-11-23"), ("event", "考试是下周一。", "2026-11-30"),
    ("event", "Petra zieht am Freitag nach Graz.", "2026-11-27"), ("event", "Jun gibt am Samstag einen Abschied.", "2026-11-28"),
    ("event", "Inés firma el jueves que viene.", "2026-12-03"), ("event", "Am Montag ging Ana nach Rom.", "2026-11-23"),
    ("fact", "Inés ya no es alérgica, le dijo la doctora el miércoles.", "2026-11-25"),
    ("event", "自転車は月曜日に盗まれた。", "2026-11-23"), ("event", "試験は来週の月曜日です。", "2026-11-30"),
])  # fmt: skip
def test_a_day_without_its_year_is_behind_or_ahead_by_its_words_and_kind(kind, said, day):
    assert f"({day})" in with_dates(said, THURSDAY, kind=kind)


def test_the_day_that_the_model_gives_decides():
    assert "(30 November 2026)" in with_dates(
        "The bike race: Monday, on Monday.", THURSDAY, kind="fact", days=["2026-11-30"]
    )
    assert "(23 November 2026)" in with_dates("The exam on Monday.", THURSDAY, kind="fact", days=["2026-11-23"])


def test_over_new_year_the_year_changes():
    assert "(31 December 2026)" in with_dates("Kai fell on 31 December.", NEW_YEAR, kind="event")
    assert "(31 December 2026)" in with_dates("Kai fell on Thursday.", NEW_YEAR, kind="event")
    assert "(December 2026)" in with_dates("Kai fell in December.", NEW_YEAR, kind="event")


@for_each("said", [
    "The shop is closed on Monday.", "Maya swims on Mondays.", "Maya swims every Monday.", "Tom was born in August.",
    "Dan met her on Monday, 23 November 2026.", "Dan met her on 2026-11-23, a Monday.", "She lives in Porto since March.",
    "Her birthday is on 5 March.", "Kai fell in the week before 25 August 2026 (14-20 August).", "Mia ran on Thursday.", "Le lundi, elle nage.",
    "The dinner is in two weeks, on Saturday.", "Ana flies on Saturday in a week.", "Das Fest ist in zwei Wochen am Samstag.",
    "La cena es en dos semanas, el sábado.",
])  # fmt: skip
def test_what_recurs_or_is_unclear_or_has_its_date_gets_none(said):
    assert with_dates(said, THURSDAY, kind="event" if "Mia" in said else "fact") == said


def test_a_weekday_that_is_dated_with_its_day_has_one_date():
    assert with_dates("Dan met her on Monday 9 November.", THURSDAY, kind="event") == (
        "Dan met her on Monday 9 November (9 November 2026)."
    )


def test_without_a_kind_no_direction_is_guessed():
    assert with_dates("The bike was stolen on Monday.", THURSDAY) == "The bike was stolen on Monday."
