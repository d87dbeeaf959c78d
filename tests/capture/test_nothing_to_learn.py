"""A conversation that teaches nothing costs no call of a model and no commit; its episode goes along with the next."""

from __future__ import annotations

import pytest
from matrices import for_each
from replay import facts_of, write_talk
from vaults import Vault, assert_verified, copy_vault

from quaid.capture.prompt_pieces import MAX_ANSWERED, Material, NumberedTurn, states_nothing
from quaid.local.runs import EmptyReadings
from quaid.model import Edit, Message
from quaid.place import LOCAL_FILE, state_folder
from quaid.vault import transaction
from quaid.vault.transaction import VaultChange

pytestmark = pytest.mark.usefixtures("calm", "quick")


def material(*said, earlier=()):
    """`said` by the user and the assistant in turns."""
    turns = [NumberedTurn(number, ("User", "Assistant")[number % 2], text) for number, text in enumerate(said)]
    return Material("s", None, None, tuple(turns), tuple(NumberedTurn(0, "Assistant", text) for text in earlier))


@for_each("said", [
    ["go ahead", "x" * MAX_ANSWERED],
    ["hi"],
    ["Hallo!", "Hallo."],
    ["merci", "Avec plaisir."],
    ["谢谢"],
    ["да, спасибо"],
    ["/review"],
    ["run the tests", "All 42 pass."],
    ["continue", "Done.", "ok, thanks"],
    ["🎉"],
    ["Good morning!", "Good morning!"],
    ["Thank you very much, see you tomorrow"],
    ["Guten Morgen", "Guten Morgen!", "mach bitte weiter", "Gern.", "vielen Dank, bis morgen"],
    ["merci beaucoup", "Je vous en prie."],
    ["Bonsoir ! Ça va ?"],
    ["Buenos dias", "Hola.", "muchísimas gracias"],
    ["Bom dia!", "Bom dia.", "muito obrigada, até amanhã"],
    ["Buongiorno", "Ciao.", "grazie mille, a domani"],
    ["早上好", "早上好！", "非常感谢，辛苦了"],
    ["おはようございます", "おはようございます。", "ありがとうございました、お疲れ様でした"],
    ["좋은 아침이에요", "안녕하세요.", "정말 감사합니다, 내일 봐요"],
    ["Доброе утро!", "Здравствуйте!", "Большое спасибо, до завтра"],
    ["صباح الخير", "صباح النور", "شكراً جزيلاً، مع السلامة"],
])  # fmt: skip
def test_greetings_thanks_and_a_command_state_nothing(said):
    assert states_nothing(material(*said))


@for_each("said", [
    ["hi, I am Maya"], ["good morning, I moved to Berlin"], ["thanks a lot, Tom liked the cake"],
    ["Guten Abend, ich bin jetzt Vegetarier"], ["bis morgen ziehe ich um"], ["merci beaucoup, Marie est guérie"],
    ["buenas noches, mañana vuelo a Lima"], ["bom dia, mudei para o Porto"], ["grazie mille, il cane sta meglio"],
    ["早上好，我搬到柏林了"], ["おはようございます、引っ越しました"], ["좋은 아침, 저는 베를린으로 이사했어요"], ["доброе утро, я переехала в Берлин"],
    ["صباح الخير، انتقلت إلى برلين"], ["hi", "How was your morning?", "good morning"], ["/remember I hate tea"],
    ["go ahead", "x" * (MAX_ANSWERED + 1)], ["hi", "Do you eat fish?", "no"], ["run npm test"],
])  # fmt: skip
def test_what_may_state_something_is_for_a_model(said):
    assert not states_nothing(material(*said))


def test_an_answer_to_what_was_asked_before_is_a_statement():
    assert states_nothing(material("yes", earlier=["It is done."]))
    assert not states_nothing(material("yes", earlier=["お魚は食べますか？"]))


def commits(vault: Vault) -> list[str]:
    return vault.git("log", "--reverse", "--format=%s").splitlines()[1:]


def head_of(vault: Vault, path: str) -> str:
    return vault.git("show", f"HEAD:{path}")


@pytest.fixture
def vault(tmp_path) -> Vault:
    return copy_vault(tmp_path / "vault")


@pytest.fixture
def thanks(tmp_path):
    return write_talk(tmp_path / "thanks.jsonl", "hi", session="s9")


def test_no_model_is_asked_and_nothing_committed(service, vault, thanks):
    with vault.memory() as memory:
        done = memory.extract(thanks)
        assert (done.commit, done.left, done.waiting, done.new_turns) == (None, (), False, 1)
        assert memory.list_waiting() == ()
        again = memory.extract(thanks)
        assert (again.new_turns, again.waiting) == (0, False)
        assert "hi" in (memory.root / done.path).read_text()
        assert [hit.path for hit in memory.search("hi").hits] == [done.path]
    assert (service.requests, commits(vault)) == ([], [])
    noted = EmptyReadings(state_folder(vault.root) / LOCAL_FILE).since("2026-01-01")
    assert noted == [("s9", 1, None)]


def test_its_episode_goes_along_with_the_next_commit(service, vault, thanks):
    with vault.memory() as memory:
        episode = memory.extract(thanks).path
        memory.remember("Maya plays the flute")
        assert transaction.list_deferred(vault.root) == []
        assert_verified(memory)
    assert commits(vault) == ["remember: Maya plays the flute"]
    assert "hi" in head_of(vault, episode)
    assert f"Along with it:\n- {episode}\n" in vault.git("log", "-1", "--format=%b")
    assert vault.status() == ""


def test_a_session_that_taught_nothing_at_first_is_one_change_with_what_it_teaches_later(service, vault, tmp_path):
    service.answers["s9"] = facts_of("Maya adopted a quokka.", turns=["t3"])
    with vault.memory() as memory:
        memory.extract(write_talk(tmp_path / "talk.jsonl", "hi", session="s9"))
        done = memory.extract(write_talk(tmp_path / "talk.jsonl", "hi", "Hello!", "We adopted a quokka.", session="s9"))
        assert [fact.text for fact in done.facts] == ["Maya adopted a quokka."]
    assert commits(vault) == ["extract: 1 fact from session s9"]
    assert vault.status() == ""
    assert "quokka" in head_of(vault, done.path)


def test_what_a_model_finds_nothing_in_is_no_commit_either(service, vault, tmp_path):
    service.answers["s9"] = facts_of()
    talk = write_talk(tmp_path / "talk.jsonl", "The weather was like weather is.", session="s9")
    with vault.memory() as memory:
        done = memory.extract(talk)
        assert (done.commit, done.waiting, done.problem) == (None, False, None)
        memory.extract(talk)
    assert (len(service.requests), commits(vault)) == (1, [])


def test_an_episode_that_git_has_is_committed_as_it_grows_so_that_a_rebase_goes_through(service, vault, tmp_path):
    talk, said = tmp_path / "talk.jsonl", ["We adopted a quokka.", "Congratulations!"]
    service.answers["s9"] = facts_of("Maya adopted a quokka.")
    vault.git("init", "-q", "--bare", str(tmp_path / "remote"))
    with vault.memory() as memory:
        memory.extract(write_talk(talk, *said, session="s9"))
        branch = vault.git("branch", "--show-current")
        vault.git("push", "-q", "-u", str(tmp_path / "remote"), branch)
        vault.accept()
        other = copy_vault(tmp_path / "other")
        other.git("fetch", "-q", str(tmp_path / "remote"), branch)
        other.git("reset", "-q", "--hard", "FETCH_HEAD")
        other.write("elsewhere.md", "Written on another machine.\n")
        other.save("elsewhere")
        other.git("push", "-q", str(tmp_path / "remote"), f"HEAD:{branch}")
        done = memory.extract(write_talk(talk, *said, "thanks", session="s9"))
        untracked = memory.extract(write_talk(tmp_path / "hi.jsonl", "hi", session="s10"))
        assert (done.facts, done.commit is None, untracked.commit) == ((), False, None)
        vault.git("pull", "-q", "--rebase", str(tmp_path / "remote"), branch)
        assert "thanks" in head_of(vault, done.path)
    assert commits(vault)[-3:] == ["extract: 1 fact from session s9", "elsewhere", "keep: 1 turn of session s9"]
    assert vault.status() == f"?? {untracked.path}"


def test_a_change_that_git_refuses_takes_along_what_travels_later(service, vault, thanks):
    hook = vault.root / ".git" / "hooks" / "pre-commit"
    with vault.memory() as memory:
        episode = memory.extract(thanks).path
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        vault.accept()
        refused = memory.remember("Maya plays the flute")
        assert refused.left == (refused.path,)
        hook.unlink()
        memory.remember("Tom bakes bread every day")
    assert commits(vault) == ["remember: Maya plays the flute", "remember: Tom bakes bread every day"]
    assert "hi" in head_of(vault, episode)
    assert vault.status() == ""


def test_an_episode_that_travels_can_be_forgotten_and_brought_back(service, vault, thanks):
    with vault.memory() as memory:
        episode = memory.extract(thanks).path
        memory.forget("s9")
        assert not (vault.root / episode).exists()
        memory.restore(episode)
        assert "hi" in (vault.root / episode).read_text()
    assert vault.status() == ""


def test_what_its_owner_removed_or_committed_is_not_taken_along(service, vault, tmp_path):
    with vault.memory() as memory:
        gone, own = (
            memory.extract(write_talk(tmp_path / f"{session}.jsonl", "hi", session=session)).path
            for session in ("s8", "s9")
        )
        (vault.root / gone).unlink()
        vault.save("mine")
        memory.remember("Maya plays the flute")
    assert commits(vault) == ["mine", "remember: Maya plays the flute"]
    assert gone not in vault.git("ls-files")
    assert own not in vault.git("show", "--name-only", "--format=", "HEAD")


def test_undo_of_a_commit_leaves_what_only_came_along(service, vault, thanks):
    with vault.memory() as memory:
        episode = memory.extract(thanks).path
        fact = memory.remember("Maya plays the flute")
        memory.timeline.undo(fact.commit)
        assert (vault.root / episode).exists()
        assert not (vault.root / fact.path).exists()


def test_what_a_kill_left_of_it_is_finished_and_goes_along(service, vault):
    path, text = "episodes/2026/11/20-1400-abcdef.md", b"---\ntype: episode\nsession: s9\n---\n**User**: hi ^t1\n"
    killed = VaultChange("key", (Edit(path, None, text),), Message("keep: 1 turn of session s9"), travels=True)
    transaction.write_intent(vault.root, killed)
    with vault.memory() as memory:
        memory.remember("Maya plays the flute")
    assert commits(vault) == ["remember: Maya plays the flute"]
    assert "hi" in head_of(vault, path)
    assert vault.status() == ""


def test_it_says_why_it_is_in_no_commit(service, vault, thanks):
    with vault.memory() as memory:
        memory.extract(thanks)
        assert "it goes along with the next one" in " ".join(memory.why("s9").remarks)
