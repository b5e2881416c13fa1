"""MSER-5: what of a series belongs to its warm-up, against the rule worked out slowly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.results.warm_up import mser5


def slow_mser5(values: list[float]) -> int:
    """Values to be left out, by the definition: the least sum of squares over the square of n."""
    batches = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) - len(values) % 5, 5)]
    best, least = 0, math.inf
    for cut in range(len(batches) - 3):
        kept = batches[cut:]
        mean = sum(kept) / len(kept)
        error = sum((one - mean) ** 2 for one in kept) / len(kept) ** 2
        if error < least * (1 - 1e-9):
            best, least = cut, error
    return 5 * best


@given(st.lists(st.integers(-50, 50), min_size=20, max_size=80))
def test_it_leaves_out_what_the_definition_says(values: list[int]) -> None:
    found = mser5(values)
    expected = slow_mser5([float(one) for one in values])
    if found.left_out != expected:  # equal errors but for rounding
        assert mser_error(values, found.left_out) == pytest.approx(mser_error(values, expected))
    assert found.mean == pytest.approx(float(np.mean(values[found.left_out :])))


def mser_error(values: list[int], left_out: int) -> float:
    """The standard error squared of the batches that are kept."""
    batches = np.array(values[: len(values) - len(values) % 5], float).reshape(-1, 5).mean(axis=1)
    kept = batches[left_out // 5 :]
    return float(kept.var()) / len(kept)


def test_a_start_from_nothing_is_left_out() -> None:
    noise = np.random.Generator(np.random.Philox(key=3)).normal(0, 0.01, 200)
    values = 1 - np.exp(-np.arange(200) / 8) + noise
    found = mser5(values)
    assert 20 <= found.left_out <= 60
    assert found.settled
    assert abs(found.mean - 1) < 0.01


def test_a_series_that_never_settles_says_so() -> None:
    assert not mser5(np.arange(100.0) ** 2).settled


@pytest.mark.parametrize("count", [0, 1, 19])
def test_too_short_a_series_tells_its_mean_and_that_it_is_not_to_be_trusted(count: int) -> None:
    found = mser5(np.ones(count))
    assert (found.left_out, found.settled) == (0, False)
    assert math.isnan(found.mean) if count == 0 else found.mean == 1
