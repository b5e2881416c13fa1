"""Subscriptions of the unsubscription bench overlap as they say, and its ledger finds faults."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.content.filters import covers, parse
from support.burst_ledger import Ledger
from support.overlapping_interests import Interests

interests = st.builds(
    Interests,
    roots=st.integers(1, 6),
    degree=st.integers(1, 5),
    overlap=st.integers(1, 4),
    children_matched=st.integers(0, 7),
)


@given(interests, st.integers(0, 9))
def test_so_many_broad_ones_cover_each_narrow_one_and_no_other(made: Interests, seed: int) -> None:
    """And a publication matches what it is said to."""
    every = [(one, parse(one.expression)) for one in made.all()]
    for one, narrow in every:
        covering = [other.label for other, broad in every if other != one and covers(broad, narrow)]
        roots = range(one.root, min(one.root + made.overlap, made.roots))
        assert covering == ([] if one.is_root else [f"{root}.0" for root in roots])
    for x, y in made.publications(5, seed):
        matching = [one.label for one, wanted in every if wanted.matches({"x": x, "y": y})]
        assert sorted(made.matching(x, y)) == sorted(matching)


def make_ledger(**got: str) -> Ledger:
    """One broad subscription at S1 and what it covers at S2, and a publication that both want.

    What hosts get of it at 6, for these labels, is noted.
    """
    ledger = Ledger(Interests(roots=1, degree=1, overlap=1), {"0.0": "S1", "0.1": "S2"})
    assert ledger.publish(1, 1, due=5.0) == {"x": 1, "y": 1, "number": 0}
    for host, labels in got.items():
        ledger.deliver(host, 0, labels.split(), now=6.0)
    return ledger


def test_what_is_due_has_to_come_once_and_nothing_else_may() -> None:
    assert make_ledger().wrong() == {"missing": 2}
    ledger = make_ledger(S1="0.0")
    ledger.deliver("S2", 0, ["0.1"], now=7.0)
    assert ledger.wrong() == {}
    assert ledger.delays() == [(5.0, 1.0), (5.0, 2.0)]
    ledger.deliver("S2", 0, ["0.1"], now=8.0)
    assert ledger.wrong() == {"repeated": 1}
    assert make_ledger(S1="0.0 0.1", S2="0.1").wrong() == {"false": 1}


def test_what_is_being_taken_back_may_bring_something_or_not() -> None:
    ledger = make_ledger(S2="0.1")
    ledger.asked["0.0"] = 5.5
    assert ledger.wrong() == {}
    ledger.deliver("S1", 0, ["0.0"], now=6.0)
    assert ledger.wrong() == {}
    ledger.answered["0.0"] = 4.0
    assert ledger.wrong() == {"false": 1}
    # What was waited for before is due all the same.
    ledger = make_ledger(S2="0.1")
    ledger.settled = 1
    ledger.asked["0.0"] = ledger.answered["0.0"] = 9.0
    assert ledger.wrong() == {"missing": 1}
