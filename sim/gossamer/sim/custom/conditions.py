"""What a run of a protocol happens in: how many nodes, which engine, what links do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
from gossamer.sim.engine.latency import Bandwidth, Int64s, Latency, Sizes, no_latency
from gossamer.sim.engine.link_conditions import (
    LinkConditions,
    LossPeriod,
    Partition,
    make_link_conditions,
)

Floats = npt.NDArray[np.float64]
_DRIFT = 0x6472696674
# What may become of messages that are not taken as they were sent.
FATES: Final = ("to_dead_nodes", "lost", "duplicated", "parted", "up_overflowed", "down_overflowed")


@attrs.frozen(kw_only=True, eq=False)
class Conditions:
    """What a run happens in.

    Attributes:
        nodes: how many rows there are.
        seed: of everything random.
        engine: "event", "windows" or "cycle".
        round_ticks: ticks of a round; 1000 are a second.
        latency, loss, loss_periods, duplication, partitions, reports_unreachable: of links, see
            `engine.link_conditions`; the cycle engine knows only the last.
        bandwidth: makes the nodes' links of the sizes of messages; they take no time if None.
        attributes: by name, bool, int64 or float64[n].
        drift: by which share node's clocks are too fast or too slow at most.
        up: bool[n], who is up when the run begins; everybody if None.
        grown: makes the conditions of more nodes, of which the first are as here.
        window: ticks of a window of the windows engine at most, the least latency if None; changes
            no result.
    """

    nodes: int
    seed: int = 1
    engine: str = "event"
    round_ticks: int = 1000
    latency: Latency = attrs.field(factory=no_latency)
    loss: float = 0.0
    loss_periods: Sequence[LossPeriod] = ()
    duplication: float = 0.0
    partitions: Sequence[Partition] = ()
    bandwidth: Callable[[Sizes], Bandwidth] | None = None
    attributes: Mapping[str, npt.NDArray[Any]] = attrs.field(factory=dict)
    reports_unreachable: bool = True
    drift: float = 0.0
    up: npt.NDArray[np.bool_] | None = None
    grown: Callable[[int], Conditions] | None = None
    window: int | None = None

    @property
    def rates(self) -> Floats:
        """float64[n], seconds in a second of each node's clock; float64[0] where none drifts."""
        if self.drift == 0:
            return np.empty(0)
        draws = mix_many(self.seed, np.arange(self.nodes), _DRIFT)
        return np.asarray(1.0 + self.drift * (2.0 * draws / float(1 << 62) - 1.0))

    @property
    def alive(self) -> npt.NDArray[np.bool_]:
        """bool[n], a new array of who is up when the run begins."""
        return np.ones(self.nodes, np.bool_) if self.up is None else self.up.copy()

    def links(self, sizes: Sizes) -> LinkConditions:
        """New links between the nodes, on which records are of these sizes."""
        return make_link_conditions(
            self.nodes,
            seed=self.seed,
            latency=self.latency,
            loss=self.loss,
            loss_periods=self.loss_periods,
            duplication=self.duplication,
            partitions=self.partitions,
            bandwidth=self.bandwidth and self.bandwidth(sizes),
        )


@attrs.frozen(eq=False)
class Traffic:
    """What nodes were sent, and took.

    Attributes:
        messages, size_bytes: by kind of message, how many were taken, and their bytes.
        sent, received: int64[n], bytes of what a node's peers took from it, and of what it took.
    """

    messages: dict[str, int]
    size_bytes: dict[str, int]
    sent: Int64s
    received: Int64s


def whole_seconds(round_s: float) -> int:
    """The ticks of a round."""
    return max(1, math.floor(round_s * 1000 + 0.5))
