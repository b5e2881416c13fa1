"""Fits by which a workload that was made is checked against what was asked for."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

# Beyond which nothing is told apart.
_LEAST, _MOST = -20.0, 100.0


def fitted_exponent(counts: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Exponent of Zipf's law by maximum likelihood, and its standard error.

    Args:
        counts: int64[ranks], how often each rank was drawn, the most popular first.

    Returns:
        Both NaN where fewer than two ranks or no draws are there.
    """
    drawn = int(counts.sum())
    if len(counts) < 2 or drawn == 0:
        return math.nan, math.nan
    logs = np.log(np.arange(1, len(counts) + 1))
    seen = float(counts @ logs) / drawn

    def moments(exponent: float) -> tuple[float, float]:
        """Mean and variance of the logarithm of a rank."""
        powers = -exponent * logs
        weights = np.exp(powers - powers.max())
        weights /= weights.sum()
        mean = float(weights @ logs)
        return mean, float(weights @ (logs - mean) ** 2)

    if not moments(_MOST)[0] < seen < moments(_LEAST)[0]:
        return (_MOST if seen <= moments(_MOST)[0] else _LEAST), math.nan
    exponent = float(brentq(lambda one: moments(one)[0] - seen, _LEAST, _MOST))
    variance = moments(exponent)[1]
    return exponent, 1 / math.sqrt(drawn * variance) if variance > 0 else math.nan
