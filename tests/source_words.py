"""What the generated repositories are about: 26 trades, nine sides of each, and what their docs say in two wordings.

Every doc of them has facts that no other one has, and a question for each in other words than the doc's.
"""

from __future__ import annotations

from typing import NamedTuple


class Trade(NamedTuple):
    """The same thing and the same person in two wordings: the first is the sources' and the docs', the other the asker's."""

    name: str
    thing: str
    things: str
    asked_thing: str
    actor: str
    asked_actor: str
    place: str


class Fact(NamedTuple):
    """A constant of the sources, what a doc says of it, and how one asks for it."""

    constant: str
    least: int
    most: int
    said: str
    asked: str


class Side(NamedTuple):
    name: str
    verbs: tuple[str, ...]
    purpose: str
    facts: tuple[Fact, ...]
    trouble: str
    """What its runbook is for, in the words of the docs and then of who asks."""
    asked_trouble: str


TRADES = tuple(
    Trade(*words.split(" | "))
    for words in """\
harbour | berth | berths | mooring place | pilot | ship guide | quay
library | loan | loans | borrowed book | librarian | person at the book desk | reading room
clinic | appointment | appointments | visit to the doctor | nurse | care staff | ward
rail | seat | seats | place on the train | conductor | train crew | platform
bakery | batch | batches | run of dough | baker | person at the oven | oven room
orchard | crate | crates | box of fruit | picker | harvest hand | cold store
theatre | ticket | tickets | admission to the play | usher | door staff | foyer
mail | parcel | parcels | package in the post | courier | delivery person | depot
bank | transfer | transfers | money movement | teller | clerk at the counter | counter hall
museum | exhibit | exhibits | piece on show | curator | keeper of the collection | gallery
airport | suitcase | suitcases | checked luggage | handler | ground crew | carousel
brewery | keg | kegs | barrel of beer | brewer | beer maker | cellar
farm | herd | herds | group of cattle | veterinarian | doctor for animals | barn
school | exam | exams | written test of pupils | teacher | person before the class | classroom
hotel | suite | suites | overnight stay | porter | bell staff | lobby
printing | poster | posters | large printed sheet | typesetter | layout person | press hall
mine | cart | carts | ore wagon | foreman | shift leader underground | shaft
radio | broadcast | broadcasts | programme on air | presenter | host of the show | studio
garden | seedling | seedlings | young plant | gardener | keeper of plants | greenhouse
court | hearing | hearings | session before the judge | bailiff | guard of the court | chamber
observatory | exposure | exposures | long photograph of the sky | astronomer | star watcher | dome
fishery | net | nets | fishing gear | skipper | boat captain | pier
kitchen | dish | dishes | ordered meal | cook | chef | stove line
laundry | bundle | bundles | load of washing | presser | person who irons | drying room
cinema | screening | screenings | film showing | projectionist | person at the projector | auditorium
power | turbine | turbines | generator wheel | machinist | plant technician | dam""".splitlines()
)

SIDES = (
    Side(
        "holding",
        ("hold", "release", "extend", "reserve", "reclaim", "expire", "swap", "claim"),
        "keeps {things} free for whoever asked first, and gives them back when nobody comes",
        (
            Fact("hold minutes", 11, 97, "An unclaimed {thing} is held for {value} minutes, then the next {actor} in the queue may have it.", "How long does a reserved {asked_thing} stay blocked before somebody else gets it?"),
            Fact("extension count", 2, 9, "A hold can be extended {value} times; after that the {actor} has to begin again.", "How often may somebody prolong their reservation of a {asked_thing}?"),
            Fact("grace seconds", 20, 90, "Whoever is late by less than {value} seconds keeps the {thing} all the same.", "How much too late can one come and still keep the {asked_thing}?"),
        ),
        "The holds do not expire any more, and every new request for one of the {things} is refused.",
        "Reservations of a {asked_thing} are stuck and nobody can book: what do I do?",
    ),
    Side(
        "pricing",
        ("price", "discount", "round", "quote", "levy", "refund", "bill", "waive"),
        "works out what one of the {things} costs, and what is given back",
        (
            Fact("weekend percent", 5, 40, "On Saturdays and Sundays {value} percent are added to every {thing}.", "How much dearer is a {asked_thing} at the end of the week?"),
            Fact("refund days", 3, 45, "The money is given back in full up to {value} days after a {thing} was paid.", "Until when do customers get all their cash back for a {asked_thing}?"),
            Fact("rounding cents", 2, 50, "Sums are rounded up to the next {value} cents before the {actor} sees them.", "To which step is the total for a {asked_thing} rounded?"),
        ),
        "A quote for one of the {things} does not agree with the bill that was sent.",
        "Customers were charged the wrong sum for a {asked_thing}: how do we put that right?",
    ),
    Side(
        "routing",
        ("route", "detour", "assign", "balance", "divert", "rank", "merge", "split"),
        "decides by which way {things} reach the {place}, and who takes them there",
        (
            Fact("detour kilometres", 2, 60, "A detour of more than {value} kilometres is refused, and the {thing} waits.", "What is the longest way round that is accepted for a {asked_thing}?"),
            Fact("lane count", 3, 24, "Traffic towards the {place} is spread over {value} lanes by a hash of its number.", "Over how many tracks is the flow of every {asked_thing} distributed?"),
            Fact("rebalance hours", 2, 36, "Every {value} hours the lanes are balanced anew while no {actor} is on the way.", "How frequently is the distribution of each {asked_thing} evened out again?"),
        ),
        "A lane to the {place} is closed, and the {things} on it do not move.",
        "A path is blocked and every {asked_thing} piles up: which steps help?",
    ),
    Side(
        "archive",
        ("store", "prune", "seal", "fetch", "compress", "index", "purge", "thaw"),
        "keeps old {things} for the auditors and throws away what the law does not want kept",
        (
            Fact("retention months", 7, 120, "Records of {things} are kept for {value} months and deleted the night after.", "For what span do we retain the history of a {asked_thing}?"),
            Fact("segment megabytes", 16, 512, "A segment is sealed when it reaches {value} megabytes; nothing is appended to it any more.", "At which size is a file of past {asked_thing} data closed for writing?"),
            Fact("thaw hours", 2, 48, "Fetching a sealed {thing} takes up to {value} hours, for it comes back from tape.", "How long must I wait for an old {asked_thing} record out of deep storage?"),
        ),
        "A {thing} was purged before its time and has to be thawed from the last sealed segment.",
        "An auditor wants a deleted {asked_thing} back: how do I recover it?",
    ),
    Side(
        "alerts",
        ("warn", "silence", "escalate", "page", "acknowledge", "group", "mute", "notify"),
        "tells the {actor} on duty when something is wrong with the {things}, once and not forty times",
        (
            Fact("escalation minutes", 4, 55, "A page that nobody acknowledges goes to the second {actor} after {value} minutes.", "When does a backup {asked_actor} hear of an unanswered alarm?"),
            Fact("quiet hours", 2, 12, "After it was acknowledged an alert about the same {thing} stays quiet for {value} hours.", "For what time are repeated alarms about one {asked_thing} suppressed?"),
            Fact("burst count", 5, 80, "From {value} warnings in a minute on they are put into one message.", "How many notices about the {asked_thing} in sixty seconds are bundled?"),
        ),
        "The same page is sent again and again, and the {actor} on duty cannot acknowledge it.",
        "The {asked_actor} is flooded with alarms at night: how can they be stopped?",
    ),
    Side(
        "intake",
        ("accept", "reject", "weigh", "label", "inspect", "queue", "register", "unload"),
        "takes new {things} in at the {place}, looks at them, and turns away what is broken",
        (
            Fact("sample percent", 2, 35, "Of all {things} {value} percent are opened and looked at by a {actor}.", "What share of each incoming {asked_thing} is inspected by hand?"),
            Fact("weight limit kilograms", 12, 900, "Anything above {value} kilograms is turned away at the {place}.", "How heavy may a {asked_thing} be so that we still take it?"),
            Fact("label width millimetres", 40, 210, "Labels are {value} millimetres wide, since the scanner reads no others.", "Which breadth do the stickers on a {asked_thing} need?"),
        ),
        "Nothing is accepted at the {place}: the inspection turns all {things} away.",
        "The scanner at the entrance rejects every {asked_thing}: what now?",
    ),
    Side(
        "rota",
        ("schedule", "relieve", "roster", "swap", "approve", "cancel", "plan", "cover"),
        "says which {actor} is at the {place} and when, and who stands in for whom",
        (
            Fact("rest hours", 8, 16, "Between two shifts a {actor} rests for at least {value} hours.", "What is the minimum break of a {asked_actor} from one duty to the next?"),
            Fact("swap notice days", 2, 14, "Swaps are possible until {value} days before the shift begins.", "How early must a {asked_actor} ask to trade duties with a colleague?"),
            Fact("crew size", 2, 17, "A full crew at the {place} is {value} people; with fewer the doors stay shut.", "How many people, {asked_actor} all of them, must be present before we open?"),
        ),
        "The crew at the {place} is too small, and nobody is left on the roster to cover the shift.",
        "Half of the staff is ill: how do I find a replacement {asked_actor}?",
    ),
    Side(
        "metering",
        ("measure", "calibrate", "sample", "smooth", "report", "reset", "compare", "clip"),
        "counts and measures {things}, smooths the figures and reports them every morning",
        (
            Fact("sampling seconds", 5, 300, "The sensor in the {place} is read every {value} seconds.", "At what interval do we take readings around the {asked_thing}?"),
            Fact("drift permille", 2, 25, "A sensor that drifts by more than {value} permille is calibrated the same day.", "Which deviation of the {asked_thing} gauge is no longer tolerated?"),
            Fact("smoothing window", 3, 60, "Figures are smoothed over the last {value} readings, outliers clipped.", "Across how many values is the average for a {asked_thing} formed?"),
        ),
        "The morning report of {things} shows figures that cannot be, most likely from a sensor that drifts.",
        "The numbers about the {asked_thing} look absurd this morning: how do I check the gauge?",
    ),
    Side(
        "access",
        ("admit", "deny", "grant", "revoke", "verify", "issue", "renew", "lock"),
        "decides who may touch the {things} and walk into the {place}",
        (
            Fact("badge weeks", 3, 52, "A badge is good for {value} weeks and has to be renewed in person.", "After which time does the pass of a {asked_actor} run out?"),
            Fact("attempt count", 3, 11, "After {value} wrong codes the door stays locked until a {actor} comes.", "How many failed entries near the {asked_thing} lead to a lockout?"),
            Fact("visitor count", 2, 30, "One {actor} may bring in {value} visitors at a time.", "How many guests can accompany a {asked_actor}?"),
        ),
        "A badge of a {actor} is gone and may be in the wrong hands: it has to be revoked.",
        "A {asked_actor} lost their pass: what must be done at once?",
    ),
)  # fmt: skip

OBJECTS = ("{thing}", "{actor}", "{place}", "queue", "window", "notice", "ledger", "limit", "request", "journal")
TAKEN = ("amount", "queued", "elapsed", "level", "offset", "share")
REASONS = (
    "the {place} is closed at that hour", "no {thing} is left", "a {actor} has to agree first",
    "{things} of yesterday are not touched", "the queue is longer than it may be", "this was asked for twice",
)  # fmt: skip
REMARKS = (
    "The {place} reports late on Mondays.",
    "A {actor} may have changed this by hand.",
    "Cheaper than asking the {place} again.",
    "Nobody relies on the order of {things} here.",
    "Both ends count, as the {actor} sees it.",
    "Kept apart so that a {thing} is never counted twice.",
    "What is left over goes to the next {actor}.",
    "See the report of last winter before changing this.",
    "Rounding first would favour the {place}.",
    "An empty {place} is no error.",
)
SENTENCES = (
    "`{function}` is the one entry point for this; everything else in the package is called from it.",
    "The {actor} sees the result at the {place} within the minute, and the ledger a little later.",
    "When `{function}` refuses, it says why, and the {thing} stays where it is.",
    "Nothing is guessed here: a {thing} whose record is incomplete goes back to the {actor}.",
    "The old way of doing this, a list on paper at the {place}, is still kept for the day the network is down.",
    "Most questions of the {actor} are about the difference between a {thing} that waits and one that was refused.",
    "Two of the {things} never share a record, even where they arrive together.",
    "`{function}` may be called twice with the same request: the second call changes nothing.",
    "We tried to let the {place} decide, and went back: it knows only what stands before it.",
    "A {thing} is compared with the limits first and with the queue afterwards, because limits are cheap to look up.",
    "The order of {things} is the order of their numbers, not of their arrival.",
    "Whoever changes `{function}` should read the ledger of one busy day against it before merging.",
    "There is no configuration for this; the constants of the module are the configuration.",
    "At night the {place} is empty, and `{function}` only keeps the books.",
    "Reports about {things} are made from the ledger and never from memory.",
    "If the {actor} and the ledger disagree, the ledger is right, and a notice is written.",
    "The first version had one queue for all {things}; a slow {actor} then stopped the whole {place}.",
    "Errors are counted by reason, so that the morning report can name the three most frequent.",
)
STEPS = (
    "Ask the {actor} at the {place} whether anybody still works by hand.",
    "Stop the worker with `make stop-{slug}` and wait until its queue is empty.",
    "Look for the newest {thing} in the ledger and write its number down.",
    "Call `{function}` with that number and an offset of {number}.",
    "Compare the count of {things} with the one the {place} reports; up to {number} may differ.",
    "Start the worker again with `make start-{slug}`.",
    "Leave a notice for the next {actor}, with the number and the reason.",
)
