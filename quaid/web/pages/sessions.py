"""Sessions: what each session of an agent was given before which prompt, on what evidence, and whether it was used."""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from quaid.agents.hosts import name_host
from quaid.capture.writer import WritePlan, WriteResult, make_key
from quaid.errors import BadInputError, NoteNotFoundError
from quaid.index import documents, listing
from quaid.index.documents import Document
from quaid.index.listing import TurnText
from quaid.index.scope import list_hidden
from quaid.local import recall_trail, sessions
from quaid.local.recall_log import normalise
from quaid.local.recall_trail import Reasons
from quaid.memory import Memory
from quaid.model import Edit, Hit, Message, name_key, note_name
from quaid.recall.cutoff import tokens
from quaid.recall.evaluation import NOT
from quaid.recall.retrieval import stem
from quaid.redaction import admit
from quaid.text.quoting import CLOSING
from quaid.text.stop_words import STOP_WORDS
from quaid.text.words import find_words
from quaid.text.zones import order_key
from quaid.vault import files
from quaid.web.answer import Context, Form, go_to_written, paginate
from quaid.web.pages.ask import share_scores

SESSIONS, MCP = "/sessions", "mcp"
MAX_SESSIONS, MAX_PROMPTS, MAX_HITS = 30, 20, 12
"""Of one page, and of one prompt."""
MIN_SHARE = 0.25
"""A memory counts as used if an answer repeats so much of what the memory has and the prompt has not."""
Entry = dict[str, Any]
"""What happened in a session, for the templates: its start, a prompt, or that its context was compacted."""


def show_sessions(memory: Memory, request: Request) -> Context:
    """Return one page of the sessions, newest first, of one host if the address has one."""
    found, host = list_sessions(memory), request.query_params.get("host", "")
    wanted = [each for each in found if host in {"", each["host"]}]
    part, pages = paginate(len(wanted), request, MAX_SESSIONS)
    shown = wanted[part]
    return {
        "sessions": shown,
        "talks": find_talks(memory, [each["name"] for each in shown]),
        "hosts": Counter(each["host"] for each in found).most_common(),
        "host": host,
        **pages,
        "log": memory.settings.recall.log,
    }


def show_agent_session(memory: Memory, request: Request) -> Context:
    """Return what one session was given. NoteNotFoundError: nothing is recorded of it."""
    session = find_session(memory, request.path_params["name"])
    part, pages = paginate(len(session["entries"]), request, MAX_PROMPTS)
    shown = session["entries"][part]
    talk, index = find_talks(memory, [session["name"]]).get(session["name"]), memory.index()
    turns = listing.read_turns(index, talk, listing.list_turns(index, talk.doc_id)) if talk else []
    ids = {hit.id for entry in shown for hit in entry["hits"]}
    texts = read_texts(memory, ids.union(*([each for each, _ in entry["left_out"]] for entry in shown)))
    for entry in shown:
        prompt, answer = entry["query"] or "", find_answer(entry["query"], turns)
        entry["shown"] = [
            {
                "hit": hit,
                "shares": shares,
                "evidence": entry["weighed"].get(hit.id, ""),
                "use": describe_use(texts.get(hit.id, ""), prompt, answer),
                "is_irrelevant": bool(prompt) and (memory.root / irrelevant_path(prompt, hit.id)).exists(),
                "text": texts.get(hit.id, ""),
                "tokens": tokens(texts.get(hit.id, "")),
            }
            for hit, shares in zip(entry["hits"], share_scores(entry["hits"][:MAX_HITS]), strict=False)
        ]
        entry["others"] = [(each, texts[each], why) for each, why in entry["left_out"] if each in texts][:5]
    return {
        "session": session,
        "entries": shown,
        "first": part.start,
        "talk": talk,
        "log": memory.settings.recall.log,
        **pages,
    }


def mark_irrelevant(memory: Memory, form: Form, _: Request) -> str:
    """Store a memory that a prompt was given for nothing as an example for `quaid eval`, in the owner's name."""
    session, which = find_session(memory, form.get("session", "")), (form.get("at"), form.get("memory", ""))
    given = [((each["at"], hit.id), place) for place, each in enumerate(session["entries"]) for hit in each["hits"]]
    if which not in dict(given):
        raise BadInputError("This prompt is not recorded any more, so nothing was stored.")
    number, reference = dict(given)[which], which[1]
    question = session["entries"][number]["query"] or form.get("question", "").strip()
    if not question:
        raise BadInputError("Quaid does not store the words of prompts here. Write what was asked, and try again.")
    example = {"question": admit(question).text, "expect": [f"{NOT}{reference}"], "group": "Not relevant"}
    path, data = irrelevant_path(question, reference), f"{json.dumps(example, ensure_ascii=False)}\n".encode()

    def plan() -> WritePlan:
        if files.read_note(memory.root, path) is not None:
            return WritePlan(WriteResult(reference, path, "unchanged"))
        subject = "eval: a memory was not relevant to a prompt"
        return WritePlan(WriteResult(reference, path, "created"), (Edit(path, None, data),), Message(subject))

    written = memory.writer.write(make_key("eval", path), plan, by_owner=True).written
    return go_to_written(f"{session['href']}?page={number // MAX_PROMPTS + 1}#e{number}", written, "irrelevant")


def irrelevant_path(question: str, reference: str) -> str:
    """Return the path of the example that a memory does not answer a question. Each has its own file, which is no note
    that recall finds, and no other example is in the way of its undo.
    """
    return f"eval/not-relevant/{make_key(question, reference)[:12]}.jsonl"


def session_path(name: str) -> str:
    """Return the address of the page of a session."""
    return f"{SESSIONS}/{quote(name, safe='')}"


# -- what is recorded ------------------------------------------------------------------------------------------------


def find_session(memory: Memory, name: str) -> Mapping[str, Any]:
    """Return one session. NoteNotFoundError: nothing is recorded of it."""
    session = next((each for each in list_sessions(memory) if each["name"] == name), None)
    if session is None:
        raise NoteNotFoundError(name)
    return session


def list_sessions(memory: Memory) -> list[dict[str, Any]]:
    """Return the sessions of the owner's agents that this machine has recorded, newest first, with all that each was
    given. An MCP client has one a day.
    """
    recorded, recalls = sessions.read_all(memory.state, memory.owners), dict[str, list[Reasons]]()
    for recall in recall_trail.list_recalls(memory.state):
        name = f"{MCP} {recall.at[:10]} {recall.session}" if recall.door == "mcp" else recall.session
        if name and recall.door in {"hook", "mcp"} and recall.asker in memory.owners:
            recalls.setdefault(name, []).append(recall)
    hidden = list_hidden(memory.whole_index(), memory.owners)
    found = []
    for name in recorded.keys() | recalls.keys():
        lines, is_mcp = recorded.get(name, []), name.startswith(f"{MCP} ")
        entries = sorted(list_entries(lines, recalls.get(name, [])[::-1], hidden), key=lambda each: each["at"])
        hosts = [name.split(" ", 2)[2]] if is_mcp else [str(line["host"]) for line in lines if line["host"]]
        if entries:
            found.append({
                "name": name,
                "href": session_path(name),
                "is_mcp": is_mcp,
                "host": name_host("".join(hosts[:1])) or ("an MCP client" if is_mcp else "an agent"),
                "began": entries[0]["at"],
                "last": entries[-1]["at"],
                "entries": entries,
                "prompts": sum(entry["kind"] == "prompt" for entry in entries),
                "given": len({hit.id for entry in entries for hit in entry["hits"]}),
                "tokens": sum(entry["tokens"] for entry in entries),
            })  # fmt: skip
    return sorted(found, key=lambda each: each["last"], reverse=True)


def list_entries(
    lines: Sequence[Mapping[str, Any]], recalls: Sequence[Reasons], hidden: frozenset[str]
) -> Iterator[Entry]:
    """Yield what happened in a session, from the `lines` of its file and its `recalls`, both oldest first. What others
    keep private is left out, and with it the text that a session began with.
    """

    def make(kind: str, at: str, recall: Reasons | None = None, ids: Sequence[str] = (), **fields: Any) -> Entry:
        given = recall.given if recall else [(each, 0.0, {}) for each in ids if not each.startswith("doc ")]
        return {
            "kind": kind,
            "at": order_key(at),
            "query": recall.query if recall else None,
            "hits": [Hit(each, "", "", score, "", evidence=why) for each, score, why in given if is_visible(each)],
            "left_out": [(each, why) for each, _, why in recall.left_out if is_visible(each)] if recall else [],
            "weighed": recall.weighed if recall else {},
            "tokens": 0,
            **fields,
        }

    def is_visible(reference: str) -> bool:
        return reference.partition("#")[0] not in hidden

    unpaired = list(recalls)
    for line in lines:
        at, ids = str(line.get("at") or line.get("compacted_at") or ""), line["ids"]
        if line.get("text"):
            text = str(line["text"]).partition(CLOSING)[0].partition(">")[2].strip()
            yield make("start", at, text="" if hidden else text, tokens=tokens(text))
        elif line.get("compacted_at"):
            yield make("compacted", at)
        elif ids:
            # The line does not have the prompt: it is that of the recall that gave these memories.
            recall = next((each for each in unpaired if each.given and {one for one, *_ in each.given} <= {*ids}), None)
            unpaired = [each for each in unpaired if each is not recall]
            yield make("prompt", recall.at if recall else at, recall, ids, tokens=line["tokens"])
    for recall in unpaired:
        yield make("prompt", recall.at, recall)


# -- what the hits are, and what became of them ----------------------------------------------------------------------


def find_talks(memory: Memory, names: Sequence[str]) -> dict[str, Document]:
    """Return the stored conversation of each of these sessions that has one."""
    where = "kind = 'episode' AND session IN (SELECT value FROM json_each(?))"
    found = documents.find_documents(memory.index(), where, (json.dumps(names),))
    return {each.session: each for each in found if each.session}


def read_texts(memory: Memory, ids: Collection[str]) -> dict[str, str]:
    """Return the present text of each of these memories; one that is gone is left out."""
    index, parts = memory.index(), [each.partition("#t") for each in ids]
    names, turns = [name for name, _, _ in parts], [turn for *_, turn in parts if turn.isdigit()]
    found = documents.find_called(index, names, names)
    texts = {name: each.text if each.kind == "fact" else each.title for each in found for name in (each.id, each.path)}
    rows = index.execute(
        "SELECT d.path, c.turn, c.text FROM documents d JOIN chunks c USING (doc_id) "
        f"WHERE d.path IN {documents.NAMES} AND c.turn IN {documents.IDS}",
        (json.dumps([each.path for each in found]), json.dumps(turns)),
    )
    texts |= {f"{note_name(path)}#t{turn}": text for path, turn, text in rows}
    return {each: " ".join(texts[each].split()) for each in ids if each in texts}


def find_answer(query: str | None, turns: Sequence[TurnText]) -> str:
    """Return what the agent answered to a prompt; empty if the conversation does not have it."""
    places = [place for place, turn in enumerate(turns) if name_key(turn.speaker or "") != "assistant"]
    asked = normalise(query or "")
    start = next((place for place in places if asked and normalise(turns[place].text).startswith(asked)), len(turns))
    end = next((place for place in places if place > start), len(turns))
    return "\n".join(turn.text for turn in turns[start + 1 : end])


def describe_use(text: str, prompt: str, answer: str) -> tuple[str, list[str]]:
    """Return whether an answer used a memory (used, unused, unknown), and the words that it took: those that the memory
    has and the prompt has not.
    """
    if not answer:
        return "unknown", []
    asked = {stem(word) for word in find_words(prompt)}
    own = {stem(word): word for word in find_words(text) if word not in STOP_WORDS and stem(word) not in asked}
    answered = {stem(word) for word in find_words(answer)}
    taken = [word for key, word in own.items() if key in answered]
    is_used = len(taken) >= max(min(2, len(own)), MIN_SHARE * len(own))
    return ("used" if is_used else "unused") if own else "unknown", taken[:4]
