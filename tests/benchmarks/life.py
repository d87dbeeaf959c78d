"""A made-up life for year.py, and a stand-in for a model that answers by rules over what a prompt shows.

Maya talks to her assistant every day: what people did, chat trivia, what she says again, and eight values that change
every 24 days. The model knows ways to say a thing, not Maya's days: what a prompt does not show it does not know.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from bench import QUAID  # noqa: F401 - puts the fixtures of the tests on the path
from janitor_context import _nothing
from janitor_facts import answer_pairs
from model_service import Service

from quaid.llm.prompts import Prompt, load_prompt
from quaid.place import data_folder

OWNER = "Maya Brandt"
NAMES = (OWNER, "Maya")
PERIOD = 24
"""Days from one value to the next."""
BYTES_PER_TOKEN = 4
"""What counts as a token of a request as it is sent, instructions and schema included, and of an answer."""


# -- what changes, and what stays ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """Something that has one value at a time. `says` are ways to state a new one, `repeats` to state it again."""

    name: str
    question: str
    fact: str
    values: tuple[str, ...]
    says: tuple[str, ...]
    repeats: tuple[str, ...]
    file: str = ""
    edge: str = ""
    category: str = "fact"

    def at(self, day: int, place: int) -> int:
        """The number of the value that holds on `day`. The eight do not change on one day."""
        return max(0, (day - 3 * place) // PERIOD)

    def value(self, number: int) -> str:
        return self.values[number % len(self.values)]


VALUES = (
    Value(
        "address", "Where do I live?", "Maya lives at {v}.",
        ("Lindenweg 4 in Kiel", "Hafenstrasse 19 in Flensburg", "Am Markt 7 in Husum", "Birkenallee 52 in Eutin",
         "Mühlenweg 3 in Plön", "Kanalufer 88 in Rendsburg", "Deichstrasse 11 in Tönning", "Schlossgang 26 in Gottorf",
         "Fischergrube 9 in Lübeck", "Rosenhof 31 in Schleswig", "Nordring 45 in Heide", "Seeblick 6 in Malente",
         "Torfweg 14 in Bordesholm", "Alte Werft 2 in Eckernförde", "Gartenzeile 17 in Preetz", "Wallstrasse 23 in Itzehoe"),
        ("I live at {v} now.", "The boxes are unpacked, home is {v} now.", "We have moved, my new address is {v}.",
         "From today you will find me at {v}."),
        ("As you know I live at {v}.",), "USER.md", "lives_in",
    ),
    Value(
        "job", "Where do I work?", "Maya works at {v}.",
        ("Nordlicht Optics", "the Tidemark Institute", "Brandung Software", "Kessler Marine", "the Baltic Archive",
         "Fjordline Freight", "Lotse Analytics", "Sandbank Studio", "the Kelp Foundation", "Ankerplatz Media",
         "Bluewater Charts", "Strandgut Games", "Molenkopf Energy", "the Pilot School", "Gezeiten Labs", "Seezeichen Press"),
        ("I work at {v} now.", "Today was my first day at {v}.", "I have changed jobs and started at {v}.",
         "My new employer is {v}."),
        ("I still work at {v}.",), "USER.md", "works_at",
    ),
    Value(
        "editor", "Which editor do I write code in?", "Maya writes code in the editor {v}.",
        ("Neovim", "Helix", "Zed", "Emacs", "Kakoune", "Sublime Text", "Lapce", "Kate", "Geany", "Micro", "Nova", "Acme",
         "Vis", "Amp", "Lite XL", "Textadept"),
        ("I write code in {v} now.", "I have switched my editor to {v}.", "My editor is {v} from now on."),
        ("My editor is still {v}.",), "USER.md",
    ),
    Value(
        "weight", "What is my target weight?", "The target weight of Maya is {v}.",
        tuple(f"{kilos} kg" for kilos in (71, 68, 66, 69, 64, 67, 63, 70, 62, 65, 61, 72, 60, 73, 59, 74)),
        ("My target weight is {v} now.", "Make it {v}, my target weight.", "I have set my target weight to {v}.",
         "Let us say {v} as my target weight."),
        ("My target weight is still {v}.",),
    ),
    Value(
        "answers", "How do I want you to answer?", "Maya wants answers {v}.",
        ("in bullet points", "in short prose", "in tables", "in one paragraph", "in numbered steps", "in plain sentences",
         "in two lines", "in headlines with text", "in full detail", "in keywords", "in letters", "in dialogue",
         "in outlines", "in summaries", "in examples first", "in diagrams"),
        ("Please answer me {v} from now on.", "No, not like that any more: answer {v}, please.",
         "I have changed my mind, I want answers {v}."),
        ("As I said, I want answers {v}.",), "USER.md", "", "preference",
    ),
    Value(
        "choir", "On which day does my choir rehearse?", "The choir of Maya rehearses on {v}.",
        ("Mondays at 19:00", "Tuesdays at 20:00", "Wednesdays at 18:30", "Thursdays at 19:30", "Fridays at 17:00",
         "Sundays at 11:00", "Mondays at 20:30", "Tuesdays at 18:00", "Wednesdays at 20:15", "Thursdays at 17:45",
         "Saturdays at 10:00", "Sundays at 16:00", "Mondays at 17:15", "Tuesdays at 19:15", "Wednesdays at 19:45",
         "Thursdays at 20:45"),
        ("My choir rehearses on {v} now.", "Choir has been moved to {v}.", "From this week on choir is on {v}."),
        ("My choir still rehearses on {v}.",),
    ),
    Value(
        "manager", "Who is my manager?", "Maya reports to {v}.",
        ("Petra Lund", "Holger Timm", "Sofie Aagaard", "Rahul Mehta", "Greta Voss", "Emil Dahl", "Nina Petrov",
         "Oskar Brix", "Lale Yilmaz", "Björn Sander", "Ada Quist", "Milan Horak", "Frida Ness", "Igor Wolk",
         "Carla Reuter", "Anton Beck"),
        ("I report to {v} now.", "My new manager is {v}.", "{v} has taken over as my manager."),
        ("I still report to {v}.",), "", "reports_to",
    ),
    Value(
        "car", "Which car do I drive?", "Maya drives {v}.",
        ("a blue Skoda Octavia", "a white Renault Zoe", "a red Mazda 2", "a grey Volvo V60", "a green Fiat Panda",
         "a black Kia Niro", "a silver Opel Astra", "a yellow Mini Cooper", "a brown Citroen Berlingo",
         "an orange Dacia Spring", "a beige Toyota Yaris", "a purple Smart Forfour", "a golden Seat Leon",
         "a turquoise Honda Jazz", "a maroon Subaru Forester", "a navy Peugeot 208"),
        ("I drive {v} now.", "We sold the old car and I drive {v} now.", "My new car is {v}."),
        ("I still drive {v}.",),
    ),
)  # fmt: skip
STABLE = (
    ("My partner is called Jonas Reimers.", "The partner of Maya is Jonas Reimers.", "What is my partner called?", "Jonas"),
    ("I am allergic to hazelnuts.", "Maya is allergic to hazelnuts.", "What am I allergic to?", "hazelnuts"),
    ("One day I want to become a lighthouse keeper.", "Maya wants to become a lighthouse keeper.",
     "What do I want to become one day?", "lighthouse"),
    ("My sister Ida studies medicine in Graz.", "Ida, the sister of Maya, studies medicine in Graz.",
     "Where does my sister study?", "Graz"),
    ("Our cat is called Pixel.", "The cat of Maya is called Pixel.", "What is our cat called?", "Pixel"),
    ("The birthday of my mother is on 14 April.", "The birthday of the mother of Maya is on 14 April.",
     "When is my mother's birthday?", "14 April"),
    ("The spare key is with Mrs Haddad next door.", "The spare key of Maya is with Mrs Haddad next door.",
     "Who has the spare key?", "Haddad"),
    ("My dentist is Doctor Okafor.", "The dentist of Maya is Doctor Okafor.", "Who is my dentist?", "Okafor"),
    ("We got married on 12 September 2021 in Bergen.", "Maya and Jonas Reimers got married on 12 September 2021 in Bergen.",
     "When did we get married?", "12 September 2021"),
    ("I play the viola.", "Maya plays the viola.", "Which instrument do I play?", "viola"),
    ("My blood type is B negative.", "The blood type of Maya is B negative.", "What is my blood type?", "B negative"),
    ("My shoe size is 39.", "The shoe size of Maya is 39.", "What is my shoe size?", "39"),
)  # fmt: skip
"""Each is what is said, the fact, the question and what the answer must name."""
LASTING = ("lighthouse", "hazelnuts", "Jonas Reimers")
"""Words of what an agent should know before every conversation."""
AT_ONCE = 5
"""The number of STABLE that are told on the first day; the others are told a day each after that."""

PEOPLE = tuple(
    f"{first} {last}"
    for first in ("Tomas", "Priya", "Noor", "Lev", "Ines", "Kofi", "Mei", "Ana", "Jon", "Rosa")
    for last in ("Weber", "Ortiz", "Chen", "Lindqvist", "Rossi", "Novak")
)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "p": PEOPLE,
    "q": PEOPLE,
    "thing": ("bicycle", "greenhouse", "film camera", "stone oven", "sailing boat", "record player", "loom", "telescope",
              "kayak", "typewriter", "bookshelf", "beehive", "violin", "garden gate", "wind chime", "chess clock"),
    "town": ("Lisbon", "Prague", "Accra", "Oslo", "Delhi", "Riga", "Porto", "Cork", "Turin", "Bern", "Malmö", "Split"),
    "spot": ("the market", "the harbour", "the library", "the old mill", "the station", "the museum", "the allotment"),
    "subject": ("tide gauges", "bird migration", "old maps", "wind turbines", "salt marshes", "ferry timetables",
                "sea grass", "sound archives", "rain radar", "peat soil", "harbour fees", "signal lamps"),
    "dish": ("lentil soup", "plum cake", "rye bread", "fish stew", "beetroot salad", "potato dumplings", "apple tart",
             "mushroom risotto", "cardamom buns", "pumpkin curry"),
    "book": ("The Silent Harbour", "Nine Winters", "A Map of Salt", "The Glass Orchard", "Letters from the Ferry",
             "The Last Pilot", "Stone and Reed", "An Atlas of Rain", "The Second Shore", "Quiet Machines"),
    "skill": ("Portuguese", "book binding", "juggling", "welding", "sign language", "origami", "fencing", "calligraphy"),
    "bone": ("a wrist", "an ankle", "a toe", "a collarbone", "a finger"),
    "pet": ("a beagle", "a parrot", "a tortoise", "a pony", "a ferret", "a goldfish"),
    "name": ("Biscuit", "Momo", "Waltz", "Turnip", "Comet", "Olive", "Rudi", "Sprout", "Figaro", "Nutmeg"),
    "month": ("January", "March", "May", "July", "September", "November"),
}  # fmt: skip
_STORIES = (
    "{p} repaired the {thing} together with {q}.",
    "{p} told me that {q} is planning a journey to {town}.",
    "I met {p} at {spot} and we talked about {subject}.",
    "{p} lent me the book {book}.",
    "I cooked {dish} for {p} and {q}.",
    "{p} will give a talk about {subject} in {month}.",
    "{p} has {pet} called {name}.",
    "{p} finished the report on {subject}.",
    "{p} broke {bone} in {town}.",
    "{p} sold the {thing} to {q}.",
    "I decided to write about {subject} for {p}.",
    "{p} recommended the {dish} at {spot}.",
    "{p} is learning {skill} with {q}.",
    "{p} was born in {town}.",
)
_TRIVIA = (
    "I had {drink} at {cafe} this morning.",
    "It has been raining on {spot} since {hour} o'clock.",
    "I slept {hour} hours after {drink}.",
    "The tram to {spot} was {hour} minutes late today.",
    "I saw {bird} on the way to {spot}.",
    "I forgot the umbrella at {cafe}.",
)
_TRIVIAL: Mapping[str, tuple[str, ...]] = {
    "drink": ("a flat white", "a cocoa", "a mint tea", "an espresso", "a chai", "a lemonade", "a broth", "a cider"),
    "cafe": ("Café Nord", "Café Anker", "the kiosk", "the canteen", "Café Pelle", "the bakery", "the tea house"),
    "hour": ("four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    "bird": ("a heron", "two swans", "a magpie", "a kingfisher", "some cranes", "an owl", "a stork", "a wren"),
    "spot": _WORDS["spot"],
}
_IDLE = ("Good morning!", "Thanks, that helps.", "What is on my list for today?", "Great, thank you!")
_REPLIES = ("Noted.", "Of course.", "Thank you for telling me.", "Good to know.")


def live_day(day: int, facts_a_day: int, chance: random.Random) -> list[str]:
    """Return what Maya says on `day`, in order."""
    told = [STABLE[number][0] for number in _stable_on(day)]
    if day == 0:
        told += [value.says[0].format(v=value.value(0)) for value in VALUES]
    for place, value in enumerate(VALUES):
        number = value.at(day, place)
        if day and number != value.at(day - 1, place):
            told.append(value.says[number % len(value.says)].format(v=value.value(number)))
    told += [_made(chance.choice(_STORIES), _WORDS, chance) for _ in range(facts_a_day - len(told))]
    chance.shuffle(told)
    told += [_made(trivia, _TRIVIAL, chance) for trivia in chance.sample(_TRIVIA, 3)]
    if day:
        place = chance.randrange(len(VALUES))
        value = VALUES[place]
        told.append(value.repeats[0].format(v=value.value(value.at(day, place))))
        told.append(STABLE[chance.randrange(min(len(STABLE), AT_ONCE + day - 1))][0])
    return [_IDLE[day % 2], *told, chance.choice(_IDLE[1:])]


def reply(day: int, place: int) -> str:
    return _REPLIES[(day + place) % len(_REPLIES)]


def current(day: int) -> list[tuple[Value, str, set[str]]]:
    """Each value with what it is on `day`, and what it has been."""
    found = []
    for place, value in enumerate(VALUES):
        number = value.at(day, place)
        now = value.value(number)
        found.append((value, now, {value.value(old) for old in range(number)} - {now}))
    return found


def questions_on(day: int) -> list[tuple[str, str]]:
    """What can be asked on `day`, with what the answer must name."""
    stable = [
        (asked, answer) for place in range(day + 1) for _, _, asked, answer in (STABLE[n] for n in _stable_on(place))
    ]
    return [*((value.question, now) for value, now, _ in current(day)), *stable]


def _stable_on(day: int) -> range:
    return range(AT_ONCE) if day == 0 else range(AT_ONCE + day - 1, min(AT_ONCE + day, len(STABLE)))


def _made(frame: str, words: Mapping[str, tuple[str, ...]], chance: random.Random) -> str:
    return frame.format(**{name: chance.choice(found) for name, found in words.items()})


# -- what a text says ---------------------------------------------------------------------------------------------------


def _pattern(frame: str) -> re.Pattern[str]:
    return re.compile(re.escape(frame).replace(re.escape("{v}"), "(?P<v>.+?)").removesuffix(r"\.") + r"\.?")


_SAID = [(_pattern(way), value) for value in VALUES for way in (*value.says, *value.repeats)]
_STATED = [(_pattern(value.fact), value) for value in VALUES]
_TRIVIAL_TEXT = re.compile(
    "|".join(re.sub(r"\\{\w+\\}", ".+?", re.escape(frame)).replace("I\\ ", "(?:I|Maya)\\ ") for frame in _TRIVIA)
)


def read_value(text: str) -> tuple[Value, str] | None:
    """What a fact, or a line of a core note, says of a value that changes."""
    line = text.strip().lstrip("-* ").split(" ([[", 1)[0].strip()
    for pattern, value in (*_STATED, *_SAID):
        if found := pattern.fullmatch(line):
            return value, found["v"]
    return None


def is_trivia(text: str) -> bool:
    return _TRIVIAL_TEXT.search(text) is not None


# -- the model ----------------------------------------------------------------------------------------------------------


@cache
def _prompts() -> tuple[Prompt, ...]:
    return tuple(load_prompt(path.stem) for path in sorted(data_folder("prompts").glob("*.md")))


@dataclass
class Spent:
    """Tokens and calls by prompt."""

    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    tokens: dict[str, int] = field(default_factory=lambda: defaultdict(int))


class StandIn(Service):
    """Answers each prompt of Quaid by rules, and counts what it is asked and answers."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = Spent()
        self.rules: Mapping[str, Callable[[str, Prompt], dict[str, Any]]] = {
            "extract": _extract, "review": _review, "compare": _compare, "resolve": _resolve, "snippets": _fold,
            "workspace": _shorten, "decay_review": _keep, "edges": _relate,
        }  # fmt: skip

    @property
    def value(self) -> dict[str, Any]:  # type: ignore[override]
        body = self.asked[-1]
        self.requests.clear()
        system = _text_of(body.get("system") or body["messages"][0]["content"])
        prompt = next(prompt for prompt in _prompts() if prompt.system[:200] in system)
        question = "\n".join(_text_of(message["content"]) for message in body["messages"])
        rule = self.rules.get(prompt.name)
        answer = rule(question, prompt) if rule else _nothing(prompt.schema)
        size = len(json.dumps(body, ensure_ascii=False).encode()) + len(json.dumps(answer, ensure_ascii=False).encode())
        self.spent.calls[prompt.name] += 1
        self.spent.tokens[prompt.name] += size // BYTES_PER_TOKEN
        return answer

    @value.setter
    def value(self, value: object) -> None:
        pass


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _slot(question: str, name: str) -> str:
    """What stands between the tags of a prompt; empty where it has no such tags."""
    found = re.findall(rf"<{name}>\n(.*?)\n</{name}>", question, re.DOTALL)
    return found[-1] if found else ""


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith('{"n"')]


_TURN = re.compile(r"\[t(\d+)\] ([^\n(:]+)(?:\(([^)]*)\))?: (.*)")


def _extract(question: str, prompt: Prompt) -> dict[str, Any]:
    item = prompt.schema["properties"]["facts"]["items"]["properties"]
    related = _related(question)
    facts, observed, names = [], [], set()
    for number, speaker, when, text in _TURN.findall(_slot(question, "conversation")):
        if speaker.strip() == "Assistant" or text.rstrip().endswith(("?", "!")) or text in _IDLE:
            continue
        day = (re.search(r"\d{4}-\d\d-\d\d", when) or [""])[0]
        said: dict[str, Any] = {"turns": [f"t{number}"], "durability": "immutable"}
        found = read_value(text)
        if found is not None:
            value, now = found
            fact = value.fact.format(v=now)
            said |= {"text": fact, "durability": "mutable", "category": value.category}
            if text in {way.format(v=now) for way in value.says}:
                said |= {"valid_from": day} if day else {}
                observed += [fact] if value.file else []
            if value.edge:
                said["edges"] = [f"{OWNER} | {value.edge} | {now.rpartition(' in ')[2]}"]
            for n, other in related:
                known = read_value(other)
                if known is not None and known[0] is value:
                    said |= {"confirms": str(n)} if known[1] == now else {"replaces": str(n)}
        elif is_trivia(text):
            observed.append(_third_person(text))
            if zlib.crc32(text.encode()) % 3:
                continue
            said |= {"text": _third_person(text), "durability": "contextual", "confidence": 0.8}
        else:
            stable = next((one for one in STABLE if one[0] == text), None)
            said["text"] = stable[1] if stable else _third_person(text)
            if stable and any(word in text for word in LASTING):
                observed.append(stable[1])
            same = [n for n, other in related if other == said["text"]]
            said |= {"confirms": str(same[0])} if same else {}
        names |= {*re.findall(r"\b[A-Z][\w]+ [A-Z][\w]+\b", said["text"])} & {*PEOPLE}
        facts.append({key: given for key, given in said.items() if given != item[key].get("default")})
    return {
        "names": [f"{name} | person" for name in sorted(names)],
        "facts": facts,
        "snippets": [f"USER.md: {line}" for line in observed[:20]],
    }


def _related(question: str) -> list[tuple[int, str]]:
    """The numbered facts that a prompt shows as what a conversation may replace."""
    shown = _slot(question, "related")
    return [(int(n), text) for n, text in re.findall(r"^(\d+)\. (.*) \([^()]*\)$", shown, re.MULTILINE)]


def _third_person(text: str) -> str:
    for was, becomes in ((r"\bI am\b", "Maya is"), (r"\bI\b", "Maya"), (r"\bme\b", "Maya"), (r"\b[Mm]y\b", "Maya's"),
                         (r"\bwe\b", "they")):  # fmt: skip
        text = re.sub(was, becomes, text)
    return text


def _review(question: str, _: Prompt) -> dict[str, Any]:
    shown = _lines(_slot(question, "facts"))
    verdicts = [
        {"n": line["n"], "verdict": "reject", "rewrite": None, "reason": "Small talk that nobody will ask for."}
        for line in shown
        if is_trivia(line["text"])
    ]
    rejected = {verdict["n"] for verdict in verdicts}
    return {"approve": [line["n"] for line in shown if line["n"] not in rejected], "verdicts": verdicts}


def _pairs(question: str) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    facts = {line["n"]: line for line in _lines(_slot(question, "facts"))}
    for line in _slot(question, "pairs").splitlines():
        n, a, b = map(int, re.findall(r"\d+", line))
        yield n, facts[a], facts[b]


def _compare(question: str, _: Prompt) -> dict[str, Any]:
    judged = []
    for n, a, b in _pairs(question):
        known, other = read_value(a["text"]), read_value(b["text"])
        if a["text"].rstrip(".") == b["text"].rstrip("."):
            judged.append({"n": n, "verdict": "same", "keep": "a", "reason": "Both say the same."})
        elif known is None or other is None or known[0] is not other[0]:
            judged.append({"n": n, "verdict": "different"})
        elif known[1] == other[1]:
            judged.append({"n": n, "verdict": "same", "keep": "a", "reason": "Both name the same."})
        else:
            reason = f"Maya has stated {other[1]} after {known[1]}."
            judged.append({"n": n, "verdict": "update", "reason": reason})
    return answer_pairs(judged)


def _resolve(question: str, _: Prompt) -> dict[str, Any]:
    judged = []
    for n, a, b in _pairs(question):
        known, other = read_value(a["text"]), read_value(b["text"])
        if known is None or other is None or known[0] is not other[0] or known[1] == other[1]:
            judged.append({"n": n, "verdict": "compatible", "resolution": "keep_both"})
            continue
        # What was stated again may hold since long: the day it was last said decides, then the day since when it holds.
        days = [(fact.get("said") or "", fact.get("from") or "") for fact in (a, b)]
        if days[0] == days[1]:
            reason = "Both were stated on the same day, and neither shows which is right."
            judged.append({"n": n, "verdict": "contradiction", "resolution": "keep_both", "reason": reason})
            continue
        kept, named = ("keep_b", other[1]) if days[1] > days[0] else ("keep_a", known[1])
        judged.append({"n": n, "verdict": "update", "resolution": kept, "reason": f"Maya has stated {named} later."})
    return {"pairs": judged}


def _says(note: str, text: str) -> bool:
    plain = text.strip().rstrip(".").lower()
    return any(plain in line.lower() for line in note.splitlines())


def _fold(question: str, _: Prompt) -> dict[str, Any]:
    """A middling model: it folds what is new, and half of what is trivial; of the facts, two that last get a line."""
    note, seen = _slot(question, "note"), set()
    verdicts: list[dict[str, Any]] = []
    discarded: list[int] = []
    for line in _lines(_slot(question, "observations")):
        text = line["text"]
        is_new = not _says(note, text) and text not in seen
        if line.get("from") == "facts":
            is_lasting = any(word in text for word in LASTING) or read_value(text) is not None
            chosen = is_new and is_lasting and sum(one["verdict"] == "rewrite" for one in verdicts) < 2
            reason = "She says it often, and it changes how to help her."
            verdict = {"verdict": "rewrite", "text": text.rstrip("."), "reason": reason} if chosen else None
            verdicts += [{"n": line["n"], **verdict}] if verdict else []
            discarded += [] if verdict else [line["n"]]
            continue
        is_folded = is_new and (not is_trivia(text) or zlib.crc32(text.encode()) % 2 == 0)
        seen.add(text)
        reason = "It tells how to help her." if is_folded else "The note says it, or it passes."
        verdicts.append(
            {
                "n": line["n"],
                "verdict": "fold" if is_folded else "discard",
                "section": "Learned",
                "text": None,
                "reason": reason,
            }
        )
    return {"observations": verdicts, "discard": discarded}


def _shorten(question: str, _: Prompt) -> dict[str, Any]:
    """It cuts what later lines have made out of date, then trivia, the oldest first, to half at most."""
    lines = [(int(n), text) for n, text in re.findall(r"^ *(\d+)\t(.*)$", _slot(question, "note"), re.MULTILINE)]
    newest = {found[0].name: n for n, text in lines if (found := read_value(text))}
    old = [n for n, text in lines if (found := read_value(text)) and newest[found[0].name] != n]
    passing = [n for n, text in lines if is_trivia(text)]
    size = {n: len(text) + 1 for n, text in lines}
    room, changes = sum(size.values()) * 0.45, []
    for n in [*old, *passing]:
        room -= size[n]
        if room < 0 or len(changes) == 60:
            break
        changes.append({"from": n, "to": n, "replace": "", "reason": "A later line says it, or it has passed."})
    return {"changes": changes}


def _keep(question: str, _: Prompt) -> dict[str, Any]:
    return {
        "verdicts": [
            {"n": line["n"], "verdict": "delete" if is_trivia(line["text"]) else "extend", "reason": "By what it says."}
            for line in _lines(_slot(question, "facts"))
        ]
    }


def _relate(question: str, _: Prompt) -> dict[str, Any]:
    return {"none": [line["n"] for line in _lines(_slot(question, "facts"))], "facts": []}
