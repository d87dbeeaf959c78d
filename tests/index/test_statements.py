"""Statements of the port, as PostgreSQL is asked them."""

from __future__ import annotations

import json

import pytest

from quaid.index.postgres.connection import bind, translate


@pytest.mark.parametrize(("asked", "sent"), [
    ("SELECT a FROM t WHERE a = ? AND b = ?", "SELECT a FROM t WHERE a = $1 AND b = $2"),
    ("SELECT ?1, ?2, ?1", "SELECT $1, $2, $1"),
    ("SELECT :name, ':name ? 100%' || :name", "SELECT $1, ':name ? 100%' || $1"),
    ("SELECT 'it''s ?', a::text, a % ?", "SELECT 'it''s ?', a::text, a % $1"),
    ("FROM a CROSS JOIN b USING (c)", "FROM a JOIN b USING (c)"),
    ("a IN (SELECT value FROM json_each(:a)) AND b = :a", "a = ANY ($1::text[]) AND b = $2"),
    ("a NOT IN (SELECT CAST(value AS INTEGER) FROM json_each(?))", "a <> ALL ($1::int[])"),
])  # fmt: skip
def test_parameters_have_numbers_and_texts_stay_as_they_are(asked, sent):
    assert translate(asked).sql.decode() == sent


@pytest.mark.parametrize(("asked", "writes"), [
    ("INSERT INTO a VALUES (?)", True), ("UPDATE a SET b = 1", True), ("DELETE FROM a", True), ("SELECT 1", False),
    ("WITH a AS (SELECT 1) SELECT 1", False),
])  # fmt: skip
def test_what_writes_is_known(asked, writes):
    assert translate(asked).writes is writes


def test_what_is_no_text_is_marked():
    assert bind(translate("SELECT ?, ?"), ["a\0b", "\ud800é"]) == ["a\ufffdb".encode(), "\ufffdé".encode()]
    assert bind(translate("SELECT ?, ?"), [True, None]) == [b"1", None]


def test_a_list_is_cleaned_inside_and_a_text_that_looks_like_one_is_not():
    statement = translate("SELECT value FROM json_each(:list) WHERE value = :text")
    given = json.dumps(["a\0", ["\ud800", 1], "\\u0000"])
    found = bind(statement, {"list": given, "text": given})
    assert json.loads(found[0]) == ["a\ufffd", ["\ufffd", 1], "\\u0000"]
    assert found[1].decode() == given


def test_a_list_to_be_in_is_an_array():
    statement = translate(
        "a IN (SELECT value FROM json_each(?)) OR b IN (SELECT CAST(value AS INTEGER) FROM json_each(?))"
    )
    given = json.dumps(["x\0", 'a"b\\', "NULL", "ü"]), "[1, 2]"
    assert bind(statement, given) == ['{"x\ufffd","a\\"b\\\\","NULL","ü"}'.encode(), b'{"1","2"}']
