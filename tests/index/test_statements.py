"""Statements of the port, as PostgreSQL is asked them."""

from __future__ import annotations

import json

import pytest

from quaid.index.postgres.connection import MAX_KEY, bind, shorten, translate


@pytest.mark.parametrize(("asked", "sent"), [
    ("SELECT a FROM t WHERE a = ? AND b = ?", "SELECT a FROM t WHERE a = %s AND b = %s"),
    ("SELECT ?1, ?2, ?1", "SELECT %(p1)s, %(p2)s, %(p1)s"),
    ("SELECT :name, ':name ? 100%' || :name", "SELECT %(name)s, ':name ? 100%%' || %(name)s"),
    ("SELECT 'it''s ?', a::text, a % ?", "SELECT 'it''s ?', a::text, a %% %s"),
    ("FROM a CROSS JOIN b USING (c)", "FROM a JOIN b USING (c)"),
])  # fmt: skip
def test_parameters_are_those_of_psycopg_and_texts_stay_as_they_are(asked, sent):
    assert translate(asked).sql == sent


@pytest.mark.parametrize(("asked", "writes"), [
    ("INSERT INTO a VALUES (?)", True), ("UPDATE a SET b = 1", True), ("DELETE FROM a", True), ("SELECT 1", False),
    ("WITH a AS (SELECT 1) SELECT 1", False),
])  # fmt: skip
def test_what_writes_is_known(asked, writes):
    assert translate(asked).writes is writes


def test_what_is_no_text_is_marked():
    statement = translate("SELECT ?, ?")
    assert bind(statement, ["a\0b", "\ud800é"]) == ["a\ufffdb", "\ufffdé"]
    assert bind(statement, [True, None]) == [1, None]


def test_a_list_is_cleaned_inside_and_a_text_that_looks_like_one_is_not():
    statement = translate("SELECT value FROM json_each(:list) WHERE value = :text")
    given = json.dumps(["a\0", ["\ud800", 1], "\\u0000"])
    found = bind(statement, {"list": given, "text": given})
    assert json.loads(found["list"]) == ["a\ufffd", ["\ufffd", 1], "\\u0000"]
    assert found["text"] == given


def test_what_an_index_could_not_keep_is_cut():
    assert shorten(["x" * 9_000, 1, None]) == ["x" * MAX_KEY, 1, None]
