"""The table [sessions] of a scenario: nodes that come and go by a model, in place of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from gossamer.sim.churn import ChurnSpec, ChurnTrace, Pareto, StationaryChurn, Weibull, generate
from gossamer.sim.engine.latency import Int64s, Latency, trip_ticks
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.scenarios import number_field, one_of

# A distribution, its shape where none is given, and above which that has to be.
_SHAPES: Final[Mapping[str, tuple[float, float]]] = {
    "weibull": (0.5, 0.1),
    "pareto": (3.0, 1.0),
    "exponential": (1.0, 0.1),
}
# A tick.
_RESOLUTION_S: Final = 0.001


def _length() -> Any:
    return number_field("a time above 0 s", lambda time_s: 0 < time_s <= 1e9, default=attrs.NOTHING)


@attrs.frozen(kw_only=True)
class Sessions:
    """How long nodes stay and stay away, independently and as if since forever.

    Attributes:
        online_s, offline_s: mean lengths of sessions and absences.
        distribution: of both: "weibull", "pareto" or "exponential".
        shape: of a Weibull or Pareto distribution, see `churn.lifetimes`; 0.5 or 3 if None.
    """

    section: ClassVar[str] = "sessions."

    online_s: float = _length()
    offline_s: float = _length()
    distribution: str = attrs.field(default="weibull", validator=one_of(*_SHAPES))
    shape: float | None = number_field(
        "a number above 0.1, of pareto above 1",
        lambda shape: shape > 0.1,
        default=None,
        optional=True,
    )

    def __attrs_post_init__(self) -> None:
        shape, least = self.shape, _SHAPES[self.distribution][1]
        if shape is not None and (shape <= least or self.distribution == "exponential"):
            expected = (
                "left out" if self.distribution == "exponential" else f"a number above {least:g}"
            )
            expected += f" where sessions.distribution is {self.distribution!r}"
            raise ScenarioError(None, "sessions.shape", shape, expected)

    def trace(self, nodes: int, duration_s: float, seed: int) -> ChurnTrace:
        """A trace of so many nodes and so long."""
        default = _SHAPES[self.distribution][0]
        shape = default if self.shape is None else self.shape
        kind = Pareto if self.distribution == "pareto" else Weibull
        lengths = [kind(mean_s, shape) for mean_s in (self.online_s, self.offline_s)]
        spec = ChurnSpec(
            duration_s, (StationaryChurn(nodes, *lengths),), resolution_s=_RESOLUTION_S
        )
        return generate(spec, seed)


# What a world comes to, for people who check a scenario before they run it.


# Pairs of nodes that a mean is taken over.
_PAIRS: Final = 20_000


def latency_words(latency: Latency, nodes: int, seed: int) -> str:
    """Least, median and greatest latency between random nodes, with how many sites there are.

    A wrong unit of a file is seen at a glance.
    """
    sites = max(len(latency.matrix), len(latency.places))
    if sites == 0:
        if len(latency.quantiles):
            shortest, median, longest = (
                latency.shortest + int(np.percentile(latency.quantiles, part, method="higher"))
                for part in (0, 50, 100)
            )
            return f"{shortest:,} to {longest:,} ms, half of the messages up to {median:,} ms"
        shortest, longest = latency.shortest, latency.shortest + latency.spread
        return f"{shortest:,} ms" if shortest == longest else f"{shortest:,} to {longest:,} ms"
    draws = np.random.Generator(np.random.Philox(key=seed))
    one, other = draws.integers(0, nodes, (2, min(_PAIRS, 10 * nodes)))
    apart = one != other
    found = np.sort(_between(latency, one[apart], other[apart]))
    if len(found) == 0:
        return f"{sites:,} sites"
    least, median, most = (int(found[int(share * (len(found) - 1))]) for share in (0, 0.5, 1))
    return f"{sites:,} sites, {least:,} to {most:,} ms, half of the pairs up to {median:,} ms"


def _between(latency: Latency, one: Int64s, other: Int64s) -> Int64s:
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    if len(latency.matrix):
        return latency.matrix[latency.site[one], latency.site[other]].astype(np.int64)
    return np.array([trip_ticks.interpreted(latency, a, b, 0, 0) for a, b in pairs])


def network_words(link: Link) -> str:
    """What else links do."""
    told = [
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else _number(value)}"
        for name in ("loss", "duplication", "up_rate", "down_rate", "up_queue", "down_queue")
        if (value := getattr(link, name))
    ]
    told += [
        f"loss {one.loss:g} from {one.begin_s:g} to {one.end_s:g} s" for one in link.loss_period
    ]
    told += [f"parted from {one.begin_s:g} to {one.end_s:g} s" for one in link.partition]
    return ", ".join(told) or "nothing is lost"


def _number(value: float | tuple[float, ...]) -> str:
    return " or ".join(f"{one:,g}" for one in (value if isinstance(value, tuple) else (value,)))
