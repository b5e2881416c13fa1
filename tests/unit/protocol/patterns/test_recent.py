"""The last identifiers of many, against a list of all of them."""

from __future__ import annotations

import random
import sys

import pytest

from gossamer.protocol.patterns.ordering import BLOCK, RecentNumbers

MOST = 4 * BLOCK


@pytest.mark.parametrize("known", [0, 1, BLOCK, BLOCK + 1, MOST - 1, MOST, 3 * MOST + 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_last_are_remembered_and_those_before_forgotten(seed: int, known: int) -> None:
    numbers = random.Random(seed).sample(range(1 << 62), known + 3 * MOST)
    recent = RecentNumbers(MOST, numbers[:known])
    for count in range(known, len(numbers)):
        assert numbers[count] not in recent
        recent.add(numbers[count])
        if count % 509 == 0:
            remembered = [number in recent for number in numbers[: count + 1]]
            assert all(remembered[remembered.index(True) :]), f"seed {seed}"
            assert sum(remembered) == len(recent) <= MOST
            assert len(recent) > min(count, MOST - BLOCK - 1), f"seed {seed}"


def test_numbers_at_the_bounds_of_words_are_as_others_and_take_two_words() -> None:
    recent = RecentNumbers(MOST)
    others = list(range(10, 10 + 2 * BLOCK))
    for number in (0, (1 << 63) - 1, -(1 << 63), *others):
        recent.add(number)
    assert all(number in recent for number in (0, (1 << 63) - 1, -(1 << 63), *others))
    assert 1 not in recent
    assert 1 << 62 not in recent
    recent = RecentNumbers(1 << 16, random.Random(1).sample(range(1 << 62), 1 << 16))
    blocks = sum(one.nbytes for one in recent._blocks if one.base is None)
    assert (blocks + sys.getsizeof(recent._sorted) + sys.getsizeof(recent._new)) <= 16.5 * (1 << 16)
