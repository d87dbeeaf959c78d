"""`quaid recall` and `quaid search`: every option does what it says, and an answer can be read and understood."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import command_line
import pytest
from command_line import parameters_of
from hypothesis import given
from hypothesis import strategies as st
from vaults import copy_vault

from quaid import Memory
from quaid.cli.explanation import FILLS, REST, render_explanation
from quaid.cli.recall import render_answer
from quaid.model import ChannelRank, Hit, Recall
from quaid.recall.cutoff import tokens


@pytest.fixture(autouse=True)
def a_plain_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def shown_on_a_terminal(monkeypatch):
    monkeypatch.setattr("quaid.cli.recall.has_terminal", lambda: True)


def quaid(vault, *arguments):
    return command_line.quaid(*arguments, "--vault", str(vault.root))


def write(vault, name, text="A heron stands in the river.", **head):
    lines = "".join(f"{key}: {value}\n" for key, value in {"id": f"01{name}", "type": "fact", **head}.items())
    vault.write(f"facts/{name}.md", f"---\n{lines}---\n{text}\n")


@pytest.fixture
def herons(vault):
    """The same said in all circumstances."""
    write(vault, "plain", status="active", created="2026-03-05T10:00:00Z")
    write(vault, "old", "The heron stood in the river once.", status="active", created="2024-03-05T10:00:00Z")
    write(vault, "boat", "Seen from the boat, a heron.", project="boat", created="2026-03-06T10:00:00Z")
    write(vault, "pottery", "A heron on a bowl.", project="pottery", created="2026-03-06T10:00:00Z")
    write(vault, "public", "Herons are birds.", privacy="public", created="2026-03-06T10:00:00Z")
    write(vault, "toms", "Tom's own heron.", owner="tom", privacy="private", created="2026-03-06T10:00:00Z")
    write(vault, "pending", "Perhaps two herons.", status="pending", created="2026-03-06T10:00:00Z")
    write(
        vault,
        "gone",
        "The heron has left.",
        valid_from="2024-06-01",
        valid_until="2025-01-31",
        created="2024-06-01T00:00:00Z",
    )
    vault.write(
        "episodes/2026/03/20-1000-now.md",
        "---\ntype: episode\nsession: now\nstarted: 2026-03-20T10:00:00Z\nspeakers: [Maya]\n---\n"
        "**Maya** (10:00): The heron came early. ^t1\n\n**Maya** (12:00): The heron came late. ^t2\n",
    )
    return vault


def found(vault, line):
    code, out, err = quaid(vault, "search", "heron", "-n", "50", "--json", *line.split())
    assert code == 0, err
    hits = json.loads(out)["hits"]
    return {
        hit["id"].removeprefix("01").removeprefix("20-1000-") if hit["kind"] != "turn" else f"t{hit['turn']}"
        for hit in hits
    }


EVERYTHING = {"plain", "old", "boat", "pottery", "public", "pending", "t1", "t2"}


@pytest.mark.parametrize(("line", "expected"), [
    ("", EVERYTHING),
    ("--superseded", EVERYTHING | {"gone"}),
    ("--kind turn", {"t1", "t2"}),
    ("--kind turn --kind fact", EVERYTHING),
    ("--project boat", EVERYTHING - {"pottery"}),
    ("--project boat --project pottery", EVERYTHING),
    ("--status pending", {"pending"}),
    ("--status pending --status active", EVERYTHING - {"t1", "t2"}),
    ("--privacy public", {"public"}),
    ("--owner tom", {"toms", "public"}),
    ("--session now", EVERYTHING - {"t1", "t2"}),
    ("--session now --compacted-at 2026-03-20T11:00:00Z", EVERYTHING - {"t2"}),
    ("--session now --compacted-at 2026-03-20T12:00+01:00", EVERYTHING - {"t2"}),
    ("--session now --compacted-at 2026-03-20T11:00", EVERYTHING - {"t2"}),
    ("--to 2024", {"old"}),
    ("--from 2026-03-06", EVERYTHING - {"old", "plain"}),
    ("--from 2026-03 --to 2026-03-05", {"plain"}),
    ("--at 2024-12-31", EVERYTHING | {"gone"}),
    ("--at 2025-02-01", EVERYTHING),
])  # fmt: skip
def test_an_option_leaves_out_what_it_says(herons, line, expected):
    shown = found(herons, line)
    if line == "--owner tom":  # what is private to nobody in particular belongs to the vault's own owner
        assert "toms" in shown
        assert "plain" not in shown
    else:
        assert shown == expected


def test_the_past_is_asked_by_revision_and_says_so(herons):
    herons.save("herons")
    (herons.root / "facts" / "plain.md").unlink()
    herons.save("one less")
    assert "plain" not in found(herons, "")
    assert "plain" in found(herons, "--as-of HEAD~1")
    _, out, err = quaid(herons, "recall", "heron", "--as-of", "HEAD~1", "--json")
    assert json.loads(out)["as_of"]["commit"] == herons.git("rev-parse", "HEAD~1")
    assert "quaid: as it was known " in err


def test_a_budget_is_kept(herons):
    _, out, _ = quaid(herons, "search", "heron", "--budget", "20", "--json")
    hits = json.loads(out)["hits"]
    assert 0 < sum(len(hit["text"]) for hit in hits) <= 80
    assert len(hits) < len(EVERYTHING)


@pytest.mark.parametrize("budget", [250, 500])
def test_a_budget_counts_all_that_json_has(herons, budget):
    _, out, _ = quaid(herons, "recall", "Where was the heron?", "--budget", str(budget), "--json")
    assert tokens(out) <= budget
    assert all(hit["text"] and hit["id"] and hit["score"] for hit in json.loads(out)["hits"])
    whole = json.loads(quaid(herons, "recall", "Where was the heron?", "--json")[1])["hits"][0]
    assert all(hit.keys() == whole.keys() for hit in json.loads(out)["hits"])
    assert json.loads(out)["hits"]


def test_context_comes_first(herons):
    herons.write("USER.md", "# Maya\n\nShe rows.\n")
    _, out, _ = quaid(herons, "recall", "heron", "--context", "--limit", "1")
    assert out.index("USER.md\n# Maya\n\nShe rows.") < out.index("[MEMORY]")
    _, out, _ = quaid(herons, "recall", "heron", "--context", "--json")
    assert {"path": "USER.md", "text": "# Maya\n\nShe rows."} in json.loads(out)["context"]


def test_search_has_the_options_of_recall_that_need_no_model():
    recall, search = ({parameter.name for parameter in parameters_of(name)} for name in ("recall", "search"))
    assert recall - search == {"context", "depth", "expect", "show_last"}
    assert search < recall


def test_a_budget_gives_a_text_to_read_and_ids_where_asked(herons):
    _, text, _ = quaid(herons, "recall", "where was the heron?", "--budget", "300")
    assert text.lstrip().startswith(("* ", "(* ", "## "))
    assert "[MEMORY]" not in text
    assert ", id " not in text
    assert ", id " in quaid(herons, "recall", "where was the heron?", "--budget", "300", "--ids")[1]
    code, _, error = quaid(herons, "recall", "herons", "--ids")
    assert (code, "--budget" in error) == (2, True)


# -- expectations ----------------------------------------------------------------------------------------------------


def test_an_expectation_is_met_or_not(herons):
    assert quaid(herons, "recall", "Seen from the boat", "--expect", "boat")[0] == 0
    code, out, err = quaid(herons, "recall", "Seen from the boat", "--expect", "nothing", "--json")
    assert code == 1
    assert json.loads(out)["expected"] == {"ref": "nothing", "rank": None}
    assert err.splitlines()[-1].startswith("quaid: nothing is not in the answer of ")


def test_an_expectation_is_no_use_of_a_memory_and_asks_no_model(herons, monkeypatch):
    given = {}

    def recall(self, query, limit, **options):
        given.update(options)
        return Recall(query, ())

    monkeypatch.setattr(Memory, "recall", recall)
    quaid(herons, "recall", "heron", "--expect", "x", "--session", "s")
    assert (given["keep"], given["depth"], given["door"], given["session"]) == (False, "fast", "cli", "s")
    given.clear()
    quaid(herons, "recall", "heron", "--expect", "x", "--depth", "deep")
    assert given["depth"] == "deep"
    given.clear()
    quaid(herons, "recall", "heron")
    assert given["keep"]
    assert "depth" not in given, "the vault's own setting counts"


def test_what_keeps_an_expectation_from_being_decided_is_no_verdict(herons, monkeypatch):
    line = ("recall", "heron", "--expect", "x")
    herons.write("quaid.toml", "not toml")
    assert quaid(herons, *line)[0] == 125
    herons.write("quaid.toml", "")
    assert quaid(herons, *line, "--status", "believed")[0] == 2

    def fail(*_: object, **__: object):
        raise ZeroDivisionError

    monkeypatch.setattr(Memory, "recall", fail)
    code, _, err = quaid(herons, *line)
    assert code == 125, "git bisect would blame the commit for a bug of Quaid's"
    assert "This is a bug in Quaid" in err
    assert quaid(herons, "recall", "heron")[0] == 3


# -- print -----------------------------------------------------------------------------------------------------------

LISBON = Hit(
    "01kagx3m7r9q2d5w8t0v7k3qd", "fact", "Maya lives in Lisbon.", 0.87, "facts/lisbon.md", created="2026-03-02T10:00:00Z",
    valid_from="2026-03-01", stands_for=3, speaker="Maya", project="move", marks=("contradicts 2025-01-02 “Porto”",),
    via=("Maya lives_in Lisbon",), channels={"keyword": ChannelRank(1, 2.5), "second_pass": ChannelRank(0, 0.0)},
    evidence={"likeness": 0.31, "words_before": 0.2, "beside": 0.18, "length": 0.1, "words": 0.08, "graph": 0.05, "asks": -0.03},
)  # fmt: skip
PORTO = Hit(
    "01kagx3m7r9q2d5w8t0v7k3qe", "fact", "Maya lives in Porto.", 0.5, "facts/porto.md", created="2025-01-02T10:00:00Z",
    superseded=True, provenance="agent", marks=("no longer true", "contradicts 2026-03-01 “Lisbon”"), channels={"vector": ChannelRank(2, 0.4)}, evidence={"likeness": 0.5},
)  # fmt: skip
STAGES = [
    {"stage": "query", "took_ms": 0.4, "intent": "where", "words": ["maya", "live"], "names": ["maya"]},
    {"stage": "keyword", "took_ms": 1.0, "found": 1200, "words": ["maya"]},
    {"stage": "vector", "took_ms": 8.0, "found": 400},
    {"stage": "fetch", "took_ms": 0.0, "found": 200},
    {"stage": "graph", "took_ms": 0.5, "found": 2, "named": ["maya"]},
    {"stage": "evidence", "took_ms": 2.0, "candidates": 243},
    {"stage": "score", "took_ms": 0.2, "candidates": 243, "left": 240},
    {"stage": "second_pass", "took_ms": 0.2, "words": ["lives"], "names": []},
    {"stage": "rerank", "took_ms": 100.0, "problem": "The model did not answer."},
    {"stage": "choose", "took_ms": 0.1, "limit": 2, "shown": 2, "behind": 7},
    {"stage": "answer", "took_ms": 0.1, "hits": 2},
]
ANSWER = Recall(
    "Where does Maya live?", (LISBON, PORTO), ("vectors", "model"), 112.5,
    {"stages": STAGES, "cut": [{"id": "a#t1", "score": 0.3, "why": "far behind the best"},
                               {"id": "a#t1", "score": 0.3, "why": "far behind the best"},
                               {"id": "01kagx3m7r9q2d5w8t0v7k3qf", "score": 0.4, "why": "superseded"}]},
    doubt="the best score is 0.40, under 0.5",
)  # fmt: skip


def test_a_person_reads_what_speaks_against_a_hit(shown_on_a_terminal):
    assert render_answer(ANSWER, explain=False) == (
        "0.87  Maya lives in Lisbon.\n"
        "      2026-03-02 · fact by Maya · from owner · project move · said 3 times ·\n"
        "      since 2026-03-01 · 01kagx3m7r9q2d5w8t0v7k3qd\n"
        "      ! contradicts 2025-01-02 “Porto”\n"
        "\n"
        "0.50  Maya lives in Porto.\n"
        "      2025-01-02 · fact · from agent · 01kagx3m7r9q2d5w8t0v7k3qe\n"
        "      ! no longer true\n"
        "      ! contradicts 2026-03-01 “Lisbon”"
    )


def test_an_agent_reads_one_line_a_hit():
    assert render_answer(ANSWER, explain=False).splitlines() == [
        (
            "[MEMORY] (2026-03-02, fact by Maya, from owner, project move, said 3 times, since 2026-03-01, contradicts 2025-01-02 “Porto”, "
            "score 0.87) Maya lives in Lisbon. |ID:01kagx3m7r9q2d5w8t0v7k3qd"
        ),
        (
            "[MEMORY] (2025-01-02, fact, from agent, no longer true, contradicts 2026-03-01 “Lisbon”, score 0.50) "
            "Maya lives in Porto. |ID:01kagx3m7r9q2d5w8t0v7k3qe"
        ),
    ]


def test_a_long_hit_is_cut_for_a_person_only(shown_on_a_terminal, monkeypatch):
    answer = Recall("q", (replace(PORTO, text="word " * 500),))
    assert len(render_answer(answer, explain=False)) < 1000
    monkeypatch.setattr("quaid.cli.recall.has_terminal", lambda: False)
    assert len(render_answer(answer, explain=False)) > 2500


PICTURE = """\
Question
  asks for  where
  words     maya live
  names     maya

Road
  query        0.4 ms  ▏
  keyword        1 ms  ▏                    →  1,200
  vector         8 ms  █▏                   →    400
  fetch          0 ms                       →    200
  graph        0.5 ms  ▏                    →      2
  evidence       2 ms  ▎               200  →    243
  score        0.2 ms  ▏               243  →    240
  second pass  0.2 ms  ▏                              words lives
  rerank       100 ms  ██████████████
  choose       0.1 ms  ▏               240  →      2  limit 2, behind 7
  answer       0.1 ms  ▏                 2  →      2
  all          112 ms                                 channels work side by side

Hits

0.87  01kagx3m7r9q2d5w8t0v7k3qd: Maya lives in Lisbon.
      ██████████████████▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒░░░░░░·······
      █ likeness .31  ▓ words before .20  ▒ beside .18  ░ length .10
      · 2 more .13  - asks .03  - later stages .02
      found by keyword 1. (2.50), second pass
      via Maya lives_in Lisbon

0.50  01kagx3m7r9q2d5w8t0v7k3qe: Maya lives in Porto.
      ██████████████████████████████
      █ likeness .50
      found by vector 2. (0.40)

Defended by
  BEAM, LoCoMo          beside
  LoCoMo, REALTALK      asks
  LoCoMo                length
  none, chosen by hand  graph

Left out
  1 superseded
    0.40 7k3qf
  1 far behind the best
    0.30 a#t1
  7 behind the last that is shown; a higher --limit shows more

Answer
  in doubt  the best score is 0.40, under 0.5
  missing   vectors: searched by words and graph only. See why with: quaid
            doctor · model: the order is not a model's. The model did not
            answer.
  took      112 ms"""


def test_a_picture_says_how_an_answer_came_about():
    explained = render_answer(ANSWER, explain=True)
    assert explained.startswith("[MEMORY] (")
    assert explained.partition("\n\n")[2] == PICTURE


def test_on_a_terminal_the_hits_are_part_of_the_picture(shown_on_a_terminal):
    explained = render_answer(ANSWER, explain=True)
    assert "[MEMORY]" not in explained
    assert explained.count("Maya lives in Lisbon.") == 1
    assert explained.index("Road") < explained.index("! contradicts 2025-01-02") < explained.index("█ likeness .31")


def test_what_was_done_after_the_evidence_is_part_of_the_bar():
    raised, lowered = (render_explanation(Recall("q", (replace(PORTO, score=score),))) for score in (1.5, 0.4))
    assert "█ later stages 1.00  ▓ likeness .50" in raised
    assert "█ likeness .50  - later stages .10" in lowered


def test_a_search_has_no_evidence_and_a_plain_bar():
    bar = render_explanation(Recall("q", (replace(PORTO, evidence={}),))).splitlines()
    assert f"      {'█' * 30}" in bar


numbers = st.floats(-0.5, 1.2)
names = st.sampled_from(["own", "beside", "session_best", "first_person", "length", "asks", "pieces", "phrase"])


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0, 2.5), st.dictionaries(names, numbers)), max_size=4),
    st.lists(st.sampled_from(STAGES)),
)
def test_any_answer_can_be_drawn_within_the_line(parts, stages):
    hits = tuple(replace(LISBON, score=score, evidence=evidence) for score, evidence in parts)
    most = max([1.0, *(score for score, _ in parts)])
    lines = render_explanation(replace(ANSWER, hits=hits, trace={"stages": stages})).splitlines()
    assert max(map(len, lines)) <= 80
    fills = "".join(fill for fill, _ in FILLS) + REST
    bars = [line.strip() for line in lines if line.startswith("      ") and set(line.strip()) <= set(fills)]
    drawn = [round(score / most * 60) for score, _ in parts]
    assert [len(bar) for bar in bars if bar] == [length for length in drawn if length]


def test_an_answer_without_a_trace_can_be_drawn():
    assert "words     none worth searching" in render_explanation(Recall("q", ()))


class TestSeveralVaults:
    @pytest.fixture
    def two(self, vault, tmp_path):
        team = copy_vault(tmp_path / "team")
        write(vault, "milk", "Maya takes oat milk.", created="2026-03-05T10:00:00Z")
        write(team, "launch", "The launch of the kiln is in May.", created="2026-03-05T10:00:00Z")
        return "--vault", str(vault.root), "--vault", str(team.root)

    def test_each_line_says_its_vault(self, two):
        code, out, _ = command_line.quaid("recall", "launch of the kiln", *two)
        assert code == 0
        assert out.startswith("[MEMORY] (vault team, 2026-03-05, fact, from owner, score ")

    def test_json_says_the_vault_only_where_several_were_asked(self, two, vault):
        _, out, _ = command_line.quaid("recall", "launch of the kiln", *two, "--json")
        (hit,) = json.loads(out)["hits"]
        assert (hit["vault"], hit["also_in"]) == ("team", [])
        _, out, _ = quaid(vault, "recall", "oat milk", "--json")
        assert not {"vault", "also_in"} & json.loads(out)["hits"][0].keys()

    def test_a_table_and_an_explanation_say_it_too(self, two, shown_on_a_terminal):
        _, out, _ = command_line.quaid("search", "launch", *two)
        assert "vault team · 2026-03-05" in out
        _, out, _ = command_line.quaid("recall", "launch of the kiln", "--explain", *two)
        assert re.search(r"vault team +\S+ ms .* weight 1", out)
        assert "vault vault" in out

    def test_a_vault_that_is_missing_is_told_on_stderr(self, two, tmp_path):
        code, out, err = command_line.quaid("recall", "launch", *two, "--vault", str(tmp_path / "gone"))
        assert code == 0
        assert "in May" in out
        assert "vault gone: No vault at" in err

    def test_a_vault_that_is_named_twice_is_one(self, two, vault):
        _, out, _ = command_line.quaid("recall", "oat milk", "--vault", str(vault.root), "--vault", f"{vault.root}/.")
        assert "Maya takes oat milk." in out

    @pytest.mark.parametrize(
        "line",
        [["remember", "Maya has a kiln."], ["forget", "01milk"], ["sync"], ["recall", "milk", "--expect", "01milk"]],
    )
    def test_what_is_for_one_vault_says_so(self, two, line):
        code, _, err = command_line.quaid(*line, *two)
        assert code == 2
        assert "one vault" in err
        assert "Leave all but one" in err

    def test_the_option_after_the_command_replaces_the_one_before(self, vault, tmp_path):
        write(vault, "milk", "Maya takes oat milk.")
        code, out, _ = command_line.quaid(
            "--vault", str(tmp_path / "gone"), "recall", "milk", "--vault", str(vault.root)
        )
        assert code == 0
        assert "oat milk" in out
        assert "vault " not in out
