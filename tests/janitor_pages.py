"""A vault with real nights behind it: decisions of each kind, questions open and answered, a stranger's secrets."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager
from html import unescape

from janitor_context import Scripted
from janitor_facts import CONFLICT, DIFFERENT, keep, saying, write_fact
from starlette.testclient import TestClient
from vaults import Vault

from quaid.janitor.runner import RunOptions
from quaid.web.app import make_app
from quaid.web.guard import Keys

PORT = 7438

ALLERGY, BREAKFAST = "Anna is allergic to peanuts.", "Anna eats peanut butter for breakfast."
OAT, COFFEE = "Maya takes oat milk in her coffee.", "Maya takes oat milk in coffee, and no sugar."
MERGED = "Maya takes oat milk in her coffee, and no sugar."
DIET, MEAT = "Tom eats no meat at all.", "Tom eats meat at dinner with his team."
LEARNED = ("Maya swims on Tuesdays.", "Maya plays the cello.", "Tom lives in Lisbon.")
CAT, CAT_TOLD = "She has that cat Biscuit I think.", "Maya has a cat called Biscuit."
HELLO = "The assistant said hello to Maya."
HIDDEN, HIDDEN_TOO = "Bob has hidden the spare key under the stone.", "Bob has hidden no spare key anywhere."
UNSETTLED = {"verdict": "contradiction", "resolution": "keep_both", "reason": "Neither shows which is right."}
TOLD = (
    "---\nid: 20-1402-2f1c9a\ntype: episode\nsession: 2f1c9a\nstarted: 2026-10-20T14:02:00Z\nturn_count: 3\n---\n"
    "**Maya** (14:02): Careful with the sauce, Anna is allergic to peanuts. ^t1\n\n"
    "**Assistant** (14:03): I will remember that for the menu. ^t2\n\n"
    "**Maya** (14:05): She has peanut butter on toast every morning though. ^t3\n"
)


def model() -> Scripted:
    """It finds two contradictions it cannot settle, one pair that says the same, and facts to reword."""
    table = {
        (ALLERGY, BREAKFAST): CONFLICT,
        (DIET, MEAT): CONFLICT,
        (HIDDEN, HIDDEN_TOO): CONFLICT,
        (OAT, COFFEE): keep("merge", "Both are about her coffee.", MERGED),
    }
    return Scripted(review=_review, compare=saying(table, DIFFERENT), resolve=saying({}, UNSETTLED))


def _review(question: str) -> dict:
    approved, verdicts = [], []
    for line in (json.loads(line) for line in question.splitlines() if line.startswith('{"n"')):
        if line["text"] == CAT:
            told = {"verdict": "rewrite", "rewrite": CAT_TOLD, "reason": "It says whose cat it is."}
            verdicts.append({"n": line["n"], **told})
        elif line["text"] == HELLO:
            verdicts.append({"n": line["n"], "verdict": "reject", "rewrite": "", "reason": "Nothing to remember."})
        else:
            approved.append(line["n"])
    return {"approve": approved, "verdicts": verdicts}


def fill(vault: Vault) -> None:
    """Facts of two owners, and a conversation."""
    vault.write("episodes/2026/10/20-1402-2f1c9a.md", TOLD)
    cited = "[[20-1402-2f1c9a#^t{}]]"
    write_fact(vault, "allergy", ALLERGY, speaker="Maya", source="user", turns=[cited.format(1)], confirmations=2)
    write_fact(vault, "breakfast", BREAKFAST, speaker="Maya", source="user", turns=[cited.format(3)], confidence=0.7)
    write_fact(vault, "oat", OAT, speaker="Maya", source="user")
    write_fact(vault, "coffee", COFFEE, speaker="Maya", source="user")
    for number, text in enumerate((*LEARNED, CAT, HELLO)):
        write_fact(vault, f"learned{number}", text, status="pending", speaker="Maya", source="user")
    write_fact(vault, "diet", DIET, speaker="Maya", valid_from="2024-05-01")
    write_fact(vault, "meat", MEAT, speaker="Maya")
    for name, text in (("hidden", HIDDEN), ("hiddentoo", HIDDEN_TOO)):
        write_fact(vault, name, text, owner="bob", privacy="private")
    vault.run("add", "-A")
    quaid = ("-c", "user.name=Quaid", "-c", "user.email=quaid@localhost")
    vault.run(*quaid, "commit", "-q", "-m", "extract: learned 13 facts\n\nQuaid-Task: extraction")


def night(vault: Vault, service: Scripted, monkeypatch, **options):
    """One run of the janitor with `service` as its model; the report."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    settings = {"provider": "anthropic", "url": service.url, "deep": "wise", "fast": "quick"}
    for name, value in settings.items():
        monkeypatch.setenv(f"QUAID_MODELS_{name.upper()}", value)
    monkeypatch.setattr("quaid.janitor.asking.MAX_A_WEEK", 20)  # a page with many questions
    with vault.memory() as memory:
        return memory.janitor.run(RunOptions(**options))


class Reader:
    """The owner's browser on the pages of a vault, without JavaScript."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str, status: int = 200) -> str:
        """The page at `path`, as it is written."""
        answer = self.client.get(path)
        assert answer.status_code == status, (path, answer.status_code)
        return unescape(answer.text)

    def post(self, path: str, status: int = 303, **form: str) -> str:
        """Post a form of our own; the address that it leads to, or the page that answers it."""
        origin = {"Origin": f"http://127.0.0.1:{PORT}"}
        fields = {"form_token": "form", **form}
        answer = self.client.post(path, data=fields, headers=origin, follow_redirects=False)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return answer.headers["location"] if status == 303 else unescape(answer.text)


@contextmanager
def reading(vault: Vault):
    """A `Reader` of `vault`."""
    app = make_app(vault.root, Keys("printed", "started", "cookie", "form"), PORT, asyncio.Event())
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        client.cookies.set(f"quaid-view-{PORT}", "cookie")
        yield Reader(client)


def keys_of(page: str) -> list[str]:
    """The keys of the questions on a page, in their order."""
    return re.findall(r'id="q-([0-9a-f]{16})"', page)


def card_of(page: str, text: str) -> str:
    """The card with `text` in it."""
    (card,) = [card for card in re.findall(r"<article.*?</article>", page, re.DOTALL) if text in card]
    return card
