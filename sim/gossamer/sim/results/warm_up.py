"""How long a run takes to settle: MSER-5.

What is measured while a simulation still depends on how it began biases a mean. White's rule leaves
out as much of the beginning as makes the standard error of the mean of the rest least; MSER-5
(White, Cobb and Spratt, Winter Simulation Conference 2000) does so for means of five values at a
time.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

BATCH: Final = 5
# Fewer batches tell nothing about when something settles.
LEAST_BATCHES: Final = 4


class WarmUp(NamedTuple):
    """What MSER-5 finds of a series.

    Attributes:
        left_out: values at the beginning to be left out, a multiple of five.
        mean: of the others; NaN of none.
        settled: whether the rule is to be trusted: where it would leave out more than half, or
            there are fewer than twenty values, the run is too short to tell.
    """

    left_out: int
    mean: float
    settled: bool


def mser5(values: npt.ArrayLike) -> WarmUp:
    """Find how much of the beginning of a series belongs to its warm-up.

    Args:
        values: float[n], equally spaced in time; what is left over of five at the end counts for
            the mean alone.

    Returns:
        of all that may be left out, the shortest beginning with the least error.
    """
    series = np.asarray(values, dtype=np.float64)
    count = len(series) // BATCH
    if count < LEAST_BATCHES:
        return WarmUp(0, float(series.mean()) if len(series) else math.nan, False)
    batches = series[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    errors = [
        float(np.var(batches[cut:])) / (count - cut) for cut in range(count - LEAST_BATCHES + 1)
    ]
    cut = int(np.argmin(errors))
    left_out = cut * BATCH
    return WarmUp(left_out, float(series[left_out:].mean()), 2 * cut <= count)
