"""A broker's compiled index is compiled before the first message, all of it."""

from __future__ import annotations

import random

from gossamer.protocol.brokers.core.index import compiled_index, load_compiled_rules
from gossamer.protocol.content.filters import parse
from gossamer.protocol.content.matching.search import search
from gossamer.protocol.content.matching.tree import insert, remove, set_marks

RULES = (search, insert, remove, set_marks)
SEED = 1


def variants() -> list[int]:
    """For how many kinds of arguments each rule has been compiled."""
    return [len(rule.compiled.signatures) for rule in RULES]


def test_no_message_waits_for_the_compiler() -> None:
    load_compiled_rules()
    before = variants()
    assert min(before) > 0
    draws = random.Random(SEED)
    index = compiled_index()
    places = []
    for number in range(300):
        low = draws.randrange(100)
        text = draws.choice([f"x > {low} and x < {low + 9}", f'y == "a{number}"', f"z <= {low}.5"])
        wanted = parse(text)
        if index.place_of(wanted) is None:
            places.append(index.add(wanted, draws.choice([1, 2, 3])))
        index.covering(wanted, 3)
        index.covered_by(wanted, 3)
        index.meeting(wanted, 3)
        index.met_by(wanted, 3)
        index.directions(wanted, 3, 1)
        index.reach({"x": draws.randrange(110), "z": 3, "y": "a7"}, 3, 1)
    for place in places:
        index.mark(place, 7, 2, 7)
        index.remove(place)
    assert variants() == before, f"seed {SEED}"
