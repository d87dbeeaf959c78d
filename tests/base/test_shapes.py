"""Records become the values that JSON has."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from matrices import for_each

from quaid.shapes import json_object, json_value


class Colour(StrEnum):
    RED = "red"


class Level(Enum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: float


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    corners: tuple[Point, ...] = ()
    notes: Any = None


@for_each(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Path("a/b"), "a/b"),
        (date(2026, 3, 1), "2026-03-01"),
        (datetime(2026, 3, 1, 9, tzinfo=UTC), "2026-03-01T09:00:00+00:00"),
        ({"b", "a"}, ["a", "b"]),
        (("a", ["b", ("c",)]), ["a", ["b", ["c"]]]),
        (Counter("aab"), {"a": 2, "b": 1}),
        ({Colour.RED: Point(1, 2), 3: None}, {"red": {"x": 1, "y": 2}, "3": None}),
        (Shape("square", (Point(0, 0),)), {"name": "square", "corners": [{"x": 0, "y": 0}], "notes": None}),
        ([Shape], [str(Shape)]),
    ],
)
def test_each_value_has_its_form(value, expected):
    assert json_value(value) == expected
    assert type(json_value(value)) is type(expected)


def test_an_object_has_the_fields_that_are_wanted():
    shape = Shape("square", (Point(0, 1),), {"a": Level.HIGH})

    assert json_object(shape) == json_value(shape)
    assert list(json_object(shape, "notes", "name")) == ["notes", "name"]
    assert json_object(shape, without={"corners"}) == {"name": "square", "notes": {"a": 3}}
    assert json_object(Point(1, 2), "x", z=Path("c")) == {"x": 1, "z": "c"}
    assert json_object(Point(1, 2), y=round(2.4)) == {"x": 1, "y": 2}
