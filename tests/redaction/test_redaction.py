"""No secret is written: what is taken out, what stays, and that nothing else changes."""

from __future__ import annotations

import json
import os
import re
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matrices import examples, for_each, tenth
from secret_samples import IN_PLACES, IN_PROSE, KEY_PLACES, KEYS, LOOK_ALIKES, block

from quaid.redaction import Admitted, admit, admit_all
from quaid.redaction.detector import redact
from quaid.redaction.secret_values import is_opaque
from quaid.vault import frontmatter, markdown

DATA = Path(os.environ.get("QUAID_DATA", Path(__file__).parents[3] / "shared" / "data"))
PLACEHOLDER = re.compile(r"\[redacted: [a-z0-9-]+\]")
WORDS = st.sampled_from(
    """password passwd pin token secret api_key key is was : = " ' ` ** * \\ \\n \n \t , . ( ) hunter2 Tr0ub4dor&3 4821 swordfish
    postgres://maya: @host/db Authorization: Bearer -----BEGIN -----END PRIVATE KEY----- <private> </private> [redacted: password]
    and from to my the for user login -u -p mysql --password value sk-ant- ghp_ aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6 é 🦘""".split()  # noqa: SIM905
)
TEXTS = st.text(max_size=200) | st.lists(WORDS | st.text(max_size=5), max_size=30).flatmap(
    lambda words: st.sampled_from([" ", ""]).map(lambda gap: gap.join(words))
)


def is_gone(place: str, value: str) -> bool:
    text = place.format(value)
    admitted = admit(text)
    return (
        bool(admitted.redacted) and value not in admitted.text and admit(admitted.text) == Admitted(admitted.text, ())
    )


def what_stays(place: str, value: str) -> list[str]:
    return [part for part in place.format("\0").split("\0") if part not in admit(place.format(value)).text]


def needs(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not there: set QUAID_DATA to the folder that holds it")
    return path


# What is found


@for_each("name", KEYS)
def test_a_key_is_found_wherever_it_stands(name):
    assert [place for place in KEY_PLACES if not is_gone(place, KEYS[name])] == []
    assert [place for place in KEY_PLACES if what_stays(place, KEYS[name])] == []


@for_each(("place", "value"), IN_PLACES)
def test_a_secret_is_found_in_what_machines_read(place, value):
    assert is_gone(place, value)
    assert what_stays(place, value) == []


@for_each(("place", "value"), IN_PROSE)
def test_a_password_is_found_in_what_people_say(place, value):
    assert is_gone(place, value)
    assert what_stays(place, value) == []


@for_each("text", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_stays(text):
    assert admit(text) == Admitted(text, ())


@for_each(("text", "kinds"), [
    (f"id {KEYS['aws-access-key']}, my password is hunter2, PIN: 4821", ("aws-access-key", "password", "pin")),
    (f"first {KEYS['jwt']} then {KEYS['github-pat']}", ("jwt", "github-pat")),
    (f"twice {KEYS['github-pat']} and {KEYS['github-pat']}", ("github-pat", "github-pat")),
    (KEYS["rsa"], ("private-key",)), (f"API Key: {KEYS['twilio'][2:]}", ("api-key",)),
    ("seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow", ("seed-phrase",)),
    ("I changed my password from hunter2 to hunter3.", ("password", "password")),
    ("my passwords are hunter2, Tiger99 and monkey12", ("password", "password", "password")),
])  # fmt: skip
def test_each_secret_is_named_in_its_order(text, kinds):
    admitted = admit(text)
    assert admitted.redacted == kinds
    assert tuple(kind[11:-1] for kind in PLACEHOLDER.findall(admitted.text)) == kinds


@for_each("text", [
    "my password is **hunter2**", "my **password** is *hunter2*", "__Password:__ hunter2", "> password: `hunter2`", "- **pw**: hunter2",
    "the password is hunt**er2**", 'the "password" is hunter2', "password\\: hunter2", "pass\u200bword: hunter2", '{\\"password\\":\\"hunter2\\"}',
])  # fmt: skip
def test_dress_does_not_hide_a_password(text):
    assert "hunter2" not in admit(text).text.replace("*", "")
    assert admit(text).redacted == ("password",)


def test_a_key_that_markdown_splits_is_taken_out_whole():
    key = KEYS["github-pat"]
    for text in (f"**{key[:20]}**{key[20:]}", key.replace("_", "\\_"), f"{key[:9]}\u200b{key[9:]}"):
        assert admit(f"see {text} there") == Admitted(
            "see **[redacted: github-pat] there" if text[0] == "*" else "see [redacted: github-pat] there",
            ("github-pat",),
        )


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n> ", "\n    "])
def test_a_private_key_is_taken_out_in_whatever_lines(newline):
    secret = block("EC PRIVATE KEY", newline)
    assert admit(f"Use this: {secret}\nand go on") == Admitted(
        "Use this: [redacted: private-key]\nand go on", ("private-key",)
    )


def test_a_private_key_that_was_cut_off_takes_nothing_else_with_it():
    secret = block("RSA PRIVATE KEY").rsplit("\n", 1)[0]
    assert admit(f"{secret}\n\nWhat is wrong with it?").text == "[redacted: private-key]\n\nWhat is wrong with it?"


def test_what_is_private_is_dropped():
    text = "Maya <private>and Tom</private> left.\n\n<private>my password is hunter2\n\nStill here."
    assert admit(text) == Admitted("Maya  left.\n\n\n\nStill here.", ())
    assert admit("a <system-reminder>stays</system-reminder>").text == "a <system-reminder>stays</system-reminder>"


def test_every_string_of_an_answer_is_admitted():
    value = {
        "facts": [{"text": "Maya's PIN is 4821", "turns": [1, None, True, 0.5]}],
        "note": "ok",
        "my pw is hunter2": ("pw: hunter2",),
    }
    assert admit_all(value) == (
        {"facts": [{"text": "Maya's PIN is [redacted: pin]", "turns": [1, None, True, 0.5]}], "note": "ok",
         "my pw is [redacted: password]": ["pw: [redacted: password]"]},
        ("pin", "password", "password"),
    )  # fmt: skip
    assert admit_all("plain") == ("plain", ())


# What stays


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS)
@example('password: "[redacted: password] hunter2')
@example("password is <private>x</private>hunter2")
@example("\\" * 50 + "password:hunter2" + "*" * 50)
@example("\ud800 password: hunter2\ud800")
def test_whatever_it_is_given_it_is_done_at_once_and_keeps_the_rest(text):
    admitted = admit(text)
    assert admit(admitted.text) == Admitted(admitted.text, ())
    position = 0
    for kept in PLACEHOLDER.split(admitted.text):
        if "<" not in text:
            position = text.index(kept, position) + len(kept)
    if not admitted.redacted and "<" not in text:
        assert admitted.text == text


@settings(max_examples=examples(200), deadline=None)
@given(st.text(string.ascii_letters + " ,.\n", max_size=40), st.text(string.ascii_letters + " ,.\n", max_size=40))
def test_a_password_is_found_between_any_words(before, after):
    assert "Tr0ub4dor&3" not in admit(f"{before} password: Tr0ub4dor&3 {after}").text


@for_each("part", tenth([
    "password ", "password is ", 'password: "', "-----BEGIN PRIVATE KEY-----\n", "<private>", "a1", "http://a:", "*", "\\", "`", "eyJ.",
    "bearer ", "-u a:", "mysql ", "user: ", "[redacted: password] is ", "a1 is my password ", "password" + " " * 500, "seed phrase: word ",
    "| password |\n", "password?\n", "what password?\nab1!cd ", "codes: a1b2c ", "abandon ", "1,", "ghp_a1\n", "ghp_a1'\n'", "password,x\n", "cookie: a=b;",
    "kind: Secret\ndata:\n a: bcd\n", "otpauth://a?", "2fa ABCD ", "a@b.co / ", "login a with ", "Private-Lines: 1 A", "WIFI:", "]:22 a:", "a:1:b:c:", "ENV a ",
    "password {", "LS0t", "пароль ", "密码是", "4111 ", "DE89 ", "net use /user:a ", "htpasswd -b ", "$6$a", "key: [", "pass\n\n", "code of the door ", "unzip -P",
    "MIIEpAIBAAKCAQEA", "aB3+" * 16 + "\n", "-----BEGIN X-----\n", "ssn ", "ABCDE-", "1 85 ", "token is a1b2c3d4e5\n", "PIN?\n4 ", "api key: 'abcdef\n", "[10:02] A: pin?\n", "NL02ABNA",
], 10))  # fmt: skip
@pytest.mark.slow
def test_a_long_text_takes_no_longer_than_its_length(part):
    assert isinstance(admit(part * (60_000 // len(part))), Admitted)


def test_no_conversation_loses_a_word():
    turns = [
        turn["text"]
        for conversation in json.loads(needs("locomo/locomo10.json").read_bytes())
        for session in conversation["conversation"].values()
        if isinstance(session, list)
        for turn in session
    ]
    assert len(turns) > 5_000
    assert [turn for turn in turns if admit(turn) != Admitted(turn, ())] == []


@pytest.mark.parametrize("folder", ["extraction", "transcripts", "precisionmembench"])
def test_no_real_text_loses_a_word(folder):
    files = [path for path in needs(folder).rglob("*") if path.suffix in {".json", ".jsonl", ".md", ".txt"}]
    values = [json.loads(line) for path in files if path.suffix == ".jsonl" for line in _lines(path)]
    values += [json.loads(path.read_bytes()) for path in files if path.suffix == ".json"]
    assert [kinds for kinds in (admit_all(value)[1] for value in values) if kinds] == []


def _lines(path):
    for line in path.read_text().splitlines():
        try:
            json.loads(line)
        except ValueError:
            continue
        yield line


# Where a placeholder may stand


def test_a_placeholder_harms_no_note():
    key = KEYS["github-pat"]
    text = admit(f"---\nnote: {key}\n---\nSee [[Maya|{key}]] and [[{key}]].\n").text
    assert text.count("[redacted: github-pat]") == 3
    assert all("[" not in link and "]" not in link for link in markdown.links(text))
    for value in (admit(key).text, admit(f"{key}: it").text, f"- {admit(key).text}"):
        head = frontmatter.render({"title": value, "aliases": [value]})
        fields = frontmatter.parse(head).fields
        assert (fields["title"], fields["aliases"]) == (value, [value])


def test_ordinary_words_load_nothing():
    code = (
        "import sys\nfrom quaid.redaction import admit\nadmit('Maya went to the lake with Tom. ID:01k4v6f3704jjq5ja46spks37h, ' * 100)\n"
        "admit('state      /home/maya/.local/state/quaid/vaults, next to /Library/Application')\n"
        "print('quaid.redaction.detector' in sys.modules)\n"
        "admit('my password is hunter2, see 01JCQ8Z5RB9W3X7V2M4K6N8PTD and 4b825dc642cb6eb9a060e54bf8d69288fbee4904')\n"
        "print('quaid.redaction.detector' in sys.modules, 'kingfisher_sdk' in sys.modules)"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == ["False", "True", "False"]


def test_a_value_of_twelve_characters_with_a_sign_is_no_word():
    assert is_opaque("abc!12345678")
    assert not is_opaque("abc!1234567")


def test_a_key_that_begins_in_the_text_before_is_replaced_to_its_end():
    begun = "-----BEGIN RSA PRIVATE KEY-----"
    rest = "MIIEowIBAAKCAQEA" + "x7Kd9" * 8 + "\n-----END RSA PRIVATE KEY-----\nSo much for the key."
    text, kinds = redact(rest, after=begun)
    assert kinds
    assert "MIIE" not in text
    assert text.endswith("So much for the key.")
