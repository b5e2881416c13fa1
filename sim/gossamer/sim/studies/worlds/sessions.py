"""The table [sessions] of a scenario: nodes that come and go by a model, in place of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs
from attrs.converters import optional

from gossamer.sim.churn import ChurnSpec, ChurnTrace, Pareto, StationaryChurn, Weibull, generate
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenario_checks import number, one_of, to_float

# A distribution, its shape where none is given, and above which that has to be.
_SHAPES: Final[Mapping[str, tuple[float, float]]] = {
    "weibull": (0.5, 0.1),
    "pareto": (3.0, 1.0),
    "exponential": (1.0, 0.1),
}
# A tick.
_RESOLUTION_S: Final = 0.001


def _length() -> Any:
    return attrs.field(
        converter=to_float, validator=number("a time above 0 s", lambda time_s: 0 < time_s <= 1e9)
    )


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
    shape: float | None = attrs.field(
        default=None,
        converter=optional(to_float),
        validator=number(
            "a number above 0.1, of pareto above 1", lambda shape: shape > 0.1, optional=True
        ),
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
