"""Distributions of session and absence lengths, drawn by inversion.

Measured session lengths have heavier tails than the exponential distribution. Stutzbach and
Rejaie ("Understanding churn in peer-to-peer networks", IMC 2006) fit Weibull distributions of a
shape below 1; Yao, Leonard, Wang and Loguinov ("Modeling heterogeneous user churn and local
resilience of unstructured P2P networks", ICNP 2006) use the shifted Pareto distribution. The
default shapes are guesses within the range of such measurements.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from gossamer.sim.errors import ScenarioError

Floats = NDArray[np.float64]


class Lifetimes(Protocol):
    """A distribution of lengths of time, in seconds."""

    @property
    def mean_s(self) -> float:
        """The mean length."""
        ...

    def length_s(self, u: Floats) -> Floats:
        """Lengths for uniform draws `u` from [0, 1), of the same shape: the quantile function."""
        ...

    def residual_s(self, u: Floats) -> Floats:
        """Remaining lengths seen at a random instant of a process that has run forever.

        The quantile function of the equilibrium distribution of renewal theory, whose density is
        P(length > x) / mean.
        """
        ...


def above(bound: float) -> Any:
    """An attrs validator: a finite number greater than `bound`, else `ScenarioError`."""

    def check(_: object, attribute: attrs.Attribute[float], value: float) -> None:
        if not bound < value < math.inf:
            expected = f"a finite number greater than {bound:g}"
            raise ScenarioError(None, attribute.name, value, expected)

    return check


@attrs.frozen
class Weibull:
    """P(length > x) = exp(-(x / scale) ** shape); shape 1 is exponential, below 1 heavy-tailed.

    Raises:
        ScenarioError: the mean is not positive, or the shape not above 0.1 (where ten orders of
            magnitude lie between median and mean).
    """

    mean_s: float = attrs.field(validator=above(0.0))
    shape: float = attrs.field(default=0.5, validator=above(0.1))

    @property
    def scale_s(self) -> float:
        """The length that a fraction 1/e of all lengths exceeds."""
        return self.mean_s / math.gamma(1 + 1 / self.shape)

    def length_s(self, u: Floats) -> Floats:
        """See `Lifetimes`."""
        return np.asarray(self.scale_s * (-np.log1p(-u)) ** (1 / self.shape))

    def residual_s(self, u: Floats) -> Floats:
        """See `Lifetimes`."""
        from scipy.special import gammaincinv

        return np.asarray(self.scale_s * gammaincinv(1 / self.shape, u) ** (1 / self.shape))


@attrs.frozen
class Pareto:
    """P(length > x) = (1 + x / scale) ** -shape, the shifted Pareto distribution.

    Raises:
        ScenarioError: the mean is not positive, or the shape not above 1 (no mean exists).
    """

    mean_s: float = attrs.field(validator=above(0.0))
    shape: float = attrs.field(default=3.0, validator=above(1.0))

    @property
    def scale_s(self) -> float:
        """The shift of the distribution, in seconds."""
        return self.mean_s * (self.shape - 1)

    def length_s(self, u: Floats) -> Floats:
        """See `Lifetimes`."""
        return self._quantile_s(u, self.shape)

    def residual_s(self, u: Floats) -> Floats:
        """See `Lifetimes`; the residual life is shifted Pareto too, of a shape one lower."""
        return self._quantile_s(u, self.shape - 1)

    def _quantile_s(self, u: Floats, shape: float) -> Floats:
        with np.errstate(over="ignore"):  # a length beyond all numbers is longer than any trace
            return np.asarray(self.scale_s * np.expm1(-np.log1p(-u) / shape))
