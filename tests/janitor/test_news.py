"""What the owner is told of a run, and when there has been none for long."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from vaults import mounted

from quaid.janitor.decision import RunReport
from quaid.janitor.news import overdue, render_news
from quaid.local.runs import Decision, Run, Runs
from quaid.model import ModelUsage
from quaid.place import state_folder
from quaid.report.checks import examine
from quaid.report.status import status_of

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def decision(kind: str, subject: str = "x", why: str = "Both say the same.") -> Decision:
    return Decision("task", kind, "k" * 16, (), subject, why)


def report(**fields) -> RunReport:
    return replace(RunReport("01kagx3m7r9q2d5w8t0v7k3qd", NOW, commit="4fea"), **fields)


BUSY = report(
    done=[
        *(decision("approve", f"approve {n}") for n in range(12)),
        decision("merge", "merge a into b"),
        decision("digest"),
    ],
    asked=[decision("reject", "reject c", "Nobody said so.")],
    held_back=[(decision("rewrite", "rewrite d"), "the budget is used up")],
    answered=["forget e"],
    waiting=["resolve", "journal"],
    usage=ModelUsage(1000, 100, cost_usd=0.214, calls=3),
)


class TestText:
    def test_a_night_in_a_few_sentences(self):
        assert render_news(BUSY, "summary", questions=4) == (
            "Quaid's janitor: approved 12 facts, merged 1, carried out 1 answer of yours. "
            "4 questions wait for you in review/, 1 of them new. 1 decision held back. "
            "Waiting for a model: resolve, journal. 3 calls of models for $0.21. "
            "See it with: quaid janitor show v7k3qd"
        )

    def test_in_full_every_decision_has_its_line(self):
        text = render_news(BUSY, "full", questions=1)
        assert text.startswith(render_news(BUSY, "summary", questions=1) + "\n\nDone:\n- approve 0\n")
        assert "- merge a into b\n" in text
        assert "Asked:\n- reject c: Nobody said so.\n" in text
        assert "Held back:\n- rewrite d: the budget is used up" in text

    def test_a_night_without_anything_to_do_and_news_that_are_off(self):
        for level in ("summary", "full"):
            assert render_news(report(commit=None), level) == "Quaid's janitor: nothing to do."
        assert render_news(BUSY, "off") == ""

    def test_a_run_that_the_gate_has_stopped(self):
        stopped = replace(BUSY, lost=["'what milk?' would no longer find 01oat: oat milk"], commit=None)
        assert render_news(stopped, "summary").startswith(
            "Quaid's janitor merged nothing: 1 answer would have been lost."
        )
        assert "approved" not in render_news(stopped, "summary")
        assert "Would be lost:\n- 'what milk?'" in render_news(stopped, "full")

    def test_a_run_with_failures_and_one_that_only_looked(self):
        failed = report(failed={"review": "No key."}, remarks=["a remark"])
        assert "Failed: review." in render_news(failed, "summary")
        assert "Failed:\n- review: No key.\n\nRemarks:\n- a remark" in render_news(failed, "full")
        assert render_news(report(is_dry_run=True, done=[decision("date")]), "summary").startswith(
            "Quaid's janitor would do this: dated 1 fact."
        )

    def test_a_long_list_is_cut_and_a_subject_stays_on_its_line(self):
        long = report(done=[decision("merge", f"merge\n{n}") for n in range(130)])
        text = render_news(long, "full")
        assert "- merge 99\n- … and 30 more" in text

    @pytest.mark.parametrize(
        ("cost", "said"), [(None, "an unknown price"), (0.0001, "less than $0.01"), (12.345, "$12.35")]
    )
    def test_what_it_cost(self, cost, said):
        assert f"1 call of models for {said}." in render_news(
            report(usage=ModelUsage(cost_usd=cost, calls=1)), "summary"
        )


class TestOverdue:
    @pytest.fixture
    def state(self, tmp_path):
        return state_folder(tmp_path)

    @pytest.fixture
    def runs(self, state):
        return Runs(state / "local.db")

    def test_where_it_never_ran_it_is_overdue_a_week_after_the_vault_was_made(self, vault):
        def find_warning(days):
            with vault.memory() as memory:
                return overdue(state_folder(vault.root), datetime.now(UTC) + timedelta(days=days), memory.git)

        assert (find_warning(0), find_warning(6)) == (None, None)
        for days in (8, 400):
            warning = find_warning(days)
            assert warning.startswith("The janitor has never run in this vault. Run it with: quaid janitor run;")
        author = ("-c", "user.name=Quaid Janitor", "-c", "user.email=janitor@localhost")
        vault.run(*author, "commit", "-q", "--allow-empty", "-m", "janitor: a run of another machine")
        assert find_warning(400) is None

    def test_an_old_vault_in_which_it_never_ran_is_named_by_status_and_doctor(self, vault, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
            vault.run("commit", "-q", "--amend", "--no-edit", "--date", "2026-01-01T00:00:00Z")
        with vault.memory() as memory:
            assert any("never run" in item.what for item in status_of(memory).attention)
            assert [check.level for check in examine(vault.root) if check.name == "janitor"] == ["warning"]

    def test_after_two_days(self, runs, state):
        assert overdue(state, NOW) is None
        runs.add(Run("01", NOW.isoformat(), "done"))
        for hours in (0, 47, 48):
            assert overdue(state, NOW + timedelta(hours=hours)) is None
        for hours in (49, 24 * 9):
            warning = overdue(state, NOW + timedelta(hours=hours))
            assert f"for {hours // 24} days" in warning
            assert "quaid janitor install" in warning

    def test_runs_that_failed_do_not_count_and_say_why(self, runs, state):
        runs.add(Run("02", "2026-11-20T03:30:00Z", "failed", problem="review: there is no key."))
        assert overdue(state, NOW).startswith("The janitor has not run to its end yet.")
        runs.add(Run("01", "2026-11-10T03:30:00Z", "done"))
        warning = "The janitor has not run well for 10 days. The last time: review: there is no key."
        assert overdue(state, NOW).startswith(warning)

    def test_books_that_cannot_be_read_are_a_warning_and_no_error(self, tmp_path):
        with mounted(tmp_path / "state", "-t", "tmpfs", "-o", "size=1m", "none") as folder:
            (folder / "local.db").mkdir()
            with mounted(folder, "-o", "remount,ro"):  # it cannot be set aside
                assert "not known" in overdue(folder, NOW)
