"""How the times that brokers work on messages are spread about their means."""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
import numpy.typing as npt

CONSTANT, EXPONENTIAL = "constant", "exponential"
SPREADS: Final = (CONSTANT, EXPONENTIAL)
"""How the times that a broker works on messages of one kind are distributed."""

_DRAWS: Final = 4_096
_SPREAD_SEED: Final = 229


@functools.cache
def spread_of(spread: str) -> npt.NDArray[np.int64]:
    """int64[draws]: by how many thousandths the times of messages are multiplied, one by one.

    The k-th message that the broker of place b takes in has draw ``7919 b + k``, modulo their
    number, whatever it is. Exponential draws are the quantiles of the distribution in a random
    order that never changes, and have its mean.
    """
    if spread == CONSTANT:
        return np.full(1, 1_000, np.int64)
    ranks = (np.arange(_DRAWS) + 0.5) / _DRAWS
    quantiles = -np.log1p(-ranks)
    draws = np.rint(1_000 * quantiles / quantiles.mean()).astype(np.int64)
    return np.random.Generator(np.random.Philox(_SPREAD_SEED)).permutation(draws)
