"""Questions: few, the useful ones first, and none that outlives what it is about. Tasks are made up, all else is real."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from janitor_nights import decide, remember

from quaid.capture.facts import supersede
from quaid.janitor import runner
from quaid.janitor.asking import MAX_A_WEEK, WAIT_DAYS
from quaid.janitor.fact_edits import rewrite
from quaid.janitor.runner import RunOptions
from quaid.vault import notes

NIGHT = datetime(2027, 1, 1, 3, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _without_vectors(monkeypatch):
    monkeypatch.setenv("QUAID_EMBEDDING_PROVIDER", "none")


@pytest.fixture
def live(vault, monkeypatch):
    """`live(plan, days)` runs a night so many days after the first; it gives the report."""

    def run(plan, days=0, hours=0, **options):
        row = SimpleNamespace(name="task0", needs_model=False, module="made_up", switch="memory", plan=plan)
        monkeypatch.setattr(runner, "TASKS", (row,))
        with vault.memory() as memory:
            return memory.janitor.run(RunOptions(**options), NIGHT + timedelta(days=days, hours=hours))

    return run


def titles(vault):
    texts = [path.read_text() for path in sorted((vault.root / "review").glob("*.md"))]
    return sorted(line[2:] for text in texts for line in text.splitlines() if line.startswith("# "))


def rejecting(*paths, kind="reject", **fields):
    def plan(context):
        for path in paths:
            data = context.read(path)
            if data is not None:
                fact = notes.parse_fact(path, data)
                yield decide(
                    context, path, None, kind=kind, evidence=fact.text, facts=(fact.id,), always_asks=True, **fields
                )

    return plan


def test_three_questions_a_week_and_the_rest_waits_for_its_turn(vault, live):
    paths = remember(vault, *(f"Maya has the bowl number {n}" for n in range(8)))
    plan = rejecting(*paths)
    first = live(plan)
    assert len(first.asked) == len(titles(vault)) == MAX_A_WEEK
    assert [reason for _, reason in first.held_back] == [
        "it waits: 3 questions a week are asked, one about a note, the most useful first"
    ] * 5
    assert not live(plan, 1).asked
    with vault.memory() as memory:
        memory.janitor.answer("all", "no")
    assert not live(plan, 2).asked, "an answer makes no room in the same week"
    assert len(live(plan, 7).asked) == MAX_A_WEEK


def test_a_week_is_seven_days_of_the_owner(vault, live, monkeypatch):
    paths = remember(vault, *(f"Maya has the bowl number {n}" for n in range(4)))
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        assert len(live(rejecting(*paths), hours=23).asked) == 3, "it is the evening of New Year's Day there"
        assert not live(rejecting(*paths), days=6, hours=23).asked
        assert len(live(rejecting(*paths), days=7, hours=12).asked) == 1, "it is the morning of the eighth"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_most_useful_questions_are_asked_first(vault, live):
    paths = remember(vault, *(f"Maya has the bowl number {n}" for n in range(5)))
    kinds = ("forget", "trim", "merge", "supersede", "reject")

    def plan(context):
        for path, kind in zip(paths, kinds, strict=True):
            yield from rejecting(path, kind=kind)(context)

    assert [decision.kind for decision in live(plan).asked] == ["supersede", "reject", "merge"]


def test_one_question_of_a_kind_is_open_about_a_note(vault, live):
    def shortening(number):
        def plan(context):
            yield decide(context, "USER.md", f"# {number}\n".encode(), kind="trim", evidence=number, always_asks=True)

        return plan

    assert len(live(shortening(1)).asked) == 1
    assert not live(shortening(2), 1).asked
    assert len(titles(vault)) == 1


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_question_closes_when_its_fact_says_something_else_and_a_late_yes_does_nothing(vault, live, is_answered):
    path, other = remember(vault, "Maya lives in Leeds", "Maya lives in Hull")

    def plan(context):
        if b"superseded" not in context.read(path):
            fact = notes.parse_fact(path, context.read(path))
            after = context.read("USER.md") + b"\n- Lives in Leeds\n"
            yield decide(context, "USER.md", after, kind="promote", facts=(fact.id,), always_asks=True)

    live(plan)
    assert len(titles(vault)) == 1
    if is_answered:
        with vault.memory() as memory:
            memory.janitor.answer("all", "yes")
    vault.write(path, supersede(path, (vault.root / path).read_bytes(), other, "2027-01-01").after)
    vault.save()
    report = live(plan, 1)
    assert report.closed == 1
    assert titles(vault) == []
    assert "Leeds" not in (vault.root / "USER.md").read_text()
    assert any("came too late" in remark for remark in report.remarks) == is_answered


def test_a_yes_is_carried_out_though_the_note_was_confirmed_meanwhile(vault, live):
    (path,) = remember(vault, "Maya lives in Leeds")
    live(rejecting(path, kind="supersede"))
    with vault.memory() as memory:
        memory.remember("Maya lives in Leeds")
        memory.janitor.answer("all", "yes")
    live(rejecting(), 1)
    assert not (vault.root / path).exists()


def test_what_nobody_answered_for_sixty_days_stays_as_it_is_and_is_listed(vault, live):
    (path,) = remember(vault, "Maya lives in Leeds")
    plan = rejecting(path)
    live(plan)
    assert not live(plan, WAIT_DAYS - 1).closed
    report = live(plan, WAIT_DAYS)
    assert report.closed == 1
    assert report.remarks[0].startswith("Nobody answered for 60 days, so it is no: reject facts/")
    assert titles(vault) == []
    assert (vault.root / path).exists()
    assert not live(plan, WAIT_DAYS + 1).asked, "it is not asked again"
    assert not live(rejecting(), WAIT_DAYS + 2).remarks


def test_what_had_no_room_for_sixty_days_stays_as_it_is_and_is_listed_once(vault, live):
    paths = remember(vault, *(f"Maya has the bowl number {n}" for n in range(4)))
    first = live(rejecting(*paths))
    (left,) = set(paths) - {decision.paths[0] for decision in first.asked}
    with vault.memory() as memory:
        memory.janitor.answer("all", "no")
    busy = remember(vault, *(f"Tom has the boat number {n}" for n in range(3)))

    def plan(context):
        yield from rejecting(*busy, kind="supersede")(context)
        yield from rejecting(left)(context)

    report = live(plan, WAIT_DAYS)
    assert [remark for remark in report.remarks if "no room" in remark] == [
        f"There was no room to ask for 60 days, so it is no: reject {left}"
    ]
    report = live(plan, WAIT_DAYS + 8)
    assert not report.asked
    assert not report.remarks
    assert (vault.root / left).exists()


def test_a_question_about_what_is_over_closes(vault, live):
    (path,) = remember(vault, "Maya is on leave until 4 January 2027")
    data = (vault.root / path).read_bytes().replace(b"status:", b"valid_until: 2027-01-04\nstatus:", 1)
    vault.write(path, data)
    vault.save()

    def plan(context):
        fact = notes.parse_fact(path, context.read(path))
        after = rewrite(path, context.read(path), "Maya is away until 4 January 2027")
        yield decide(context, path, after.after, facts=(fact.id,), evidence=fact.text, always_asks=True)

    live(plan)
    assert len(titles(vault)) == 1
    assert not live(rejecting(), 2).closed
    assert live(rejecting(), 3).closed == 1
