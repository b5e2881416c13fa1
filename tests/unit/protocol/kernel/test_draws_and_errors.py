"""Random draws and arithmetic on the ring; errors, which cross processes whole."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gossamer.protocol.kernel import errors
from gossamer.protocol.kernel.draws import below, mix, mix_many
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.protocol.peer.space.ring import RING, RING_MASK, clockwise, in_arc

WORD = st.integers(-(1 << 63), (1 << 63) - 1)
PLACE = st.integers(0, RING_MASK)


@given(seed=WORD, key=WORD, counter=WORD)
def test_a_draw_is_the_same_in_all_forms(seed: int, key: int, counter: int) -> None:
    interpreted = int(mix(seed, key, counter))
    with use_compiled():
        compiled = int(mix(seed, key, counter))
    assert interpreted == compiled == int(mix_many(seed, np.array([key], np.int64), counter)[0])
    assert 0 <= interpreted < RING


def test_draws_have_stayed_what_they_were() -> None:
    """Results of old seeds can be reproduced only as long as this holds."""
    found = [int(mix(1, 2, 3)), int(mix(0, 0, 0)), int(mix(-1, 5, 1 << 40))]
    assert found == [338008712274212547, 0, 3283272881303147722]


@pytest.mark.parametrize("varying", ["seed", "key", "counter"])
def test_draws_are_uniform_in_each_argument(varying: str) -> None:
    standard = {"seed": 11, "key": 12, "counter": 13}
    drawn = [int(mix(*(standard | {varying: i}).values())) for i in range(4000)]
    assert stats.kstest(np.array(drawn) / RING, "uniform").pvalue > 1e-3
    assert len(set(drawn)) == len(drawn)


def test_every_bit_of_a_draw_is_even() -> None:
    ones = (mix_many(3, np.arange(20_000), 5)[:, None] >> np.arange(62) & 1).mean(axis=0)
    assert np.abs(ones - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)


@given(draw=PLACE, bound=st.integers(1, (1 << 31) - 1))
def test_below_scales_a_draw_to_its_bound(draw: int, bound: int) -> None:
    assert below(draw, bound) == (draw >> 31) * bound >> 31
    assert 0 <= below(draw, bound) < bound


@given(value=PLACE, start=PLACE, end=PLACE)
def test_an_arc_leaves_its_start_out_and_takes_its_end_in(value: int, start: int, end: int) -> None:
    distance, inside = clockwise(start, end), in_arc(value, start, end)
    assert 0 <= distance < RING
    assert ((start + distance) % RING, (distance + clockwise(end, start)) % RING) == (end, 0)
    between = (start < value, value <= end)
    assert inside == (all(between) if start < end else start == end or any(between))
    assert in_arc(end, start, end)
    with use_compiled():
        assert (clockwise(start, end), in_arc(value, start, end)) == (distance, inside)


ERRORS = [
    errors.CapacityError("the outbox", 12, "raise outbox_words"),
    errors.ConfigError("links", 0, "at least 2"),
    errors.ExpressionError("prise > 5", 1, "there is no attribute 'prise'"),
    errors.InvariantError("a row vanished"),
    errors.RemoteProtocolError("a frame of 9 bytes"),
    errors.MalformedRecordError(20, "count", 99, "at most 8"),
    errors.RecordError(129, 2, 99, 4, "TO is 99, expected a peer from 0 to 3"),
    errors.RuleCompilationError("step", "gossip.py", 31, "print needs Python's interpreter"),
    errors.RuleError("step", "gossip.py", 31, 3, "cycle 5", (129, 7, 3), "it writes row 7"),
    errors.ContentError("price", "price takes one value"),
    errors.UnknownAttributeError("prise", "price"),
    errors.WrongValueError("price", "the text 'high'", "a number from 0 to 500"),
    errors.ContradictionError("price", "no price is below 3 and above 5"),
    errors.StructError("Shares", "view", "the name is taken", "another name"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_a_journey(error: errors.ProtocolError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_every_kind_of_error_is_tried() -> None:
    types = {name: one for name, one in vars(errors).items() if isinstance(one, type)}
    kinds = {name for name, one in types.items() if issubclass(one, errors.ProtocolError)}
    assert kinds - {"LocalProtocolError", "ProtocolError"} == {type(e).__name__ for e in ERRORS}
