"""What happens to messages of plain nodes: as `engine.link_conditions` has it, draw by draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer.protocol.kernel.draws import mix
from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.engine.bandwidth import make_bandwidth, make_sizes, ticks_through
from gossamer.sim.engine.latency import trip_ticks
from gossamer.sim.engine.link_conditions import (
    DRAWS,
    DUPLICATION,
    LATENCY,
    LATENCY_OF_COPY,
    LOSS,
    LinkConditions,
    are_parted,
    loss_at,
    make_link_conditions,
)


class Way(NamedTuple):
    """What becomes of a message that is sent.

    Attributes:
        arrives: the ticks after which copies of it arrive: one, none or two.
        returns: the ticks after which it is back at its sender, -1 if it does not come back.
    """

    arrives: tuple[int, ...] = ()
    returns: int = -1


class PlainLinks:
    """The links of a run.

    Attributes:
        ticks: of every message where nothing is drawn and all links are alike; else None.
        sizes: whether it matters how large messages are.
        comes_in: whether messages take time to come in at their addressee.
        fates: int, by name as `conditions.FATES`, what became of messages so far.
    """

    def __init__(self, conditions: Conditions) -> None:
        nodes, latency = conditions.nodes, conditions.latency
        bandwidth = conditions.bandwidth and conditions.bandwidth(make_sizes())
        self._bandwidth = bandwidth or make_bandwidth(nodes)
        self._links: LinkConditions = make_link_conditions(
            nodes,
            seed=conditions.seed,
            latency=latency,
            loss=conditions.loss,
            loss_periods=conditions.loss_periods,
            duplication=conditions.duplication,
            partitions=conditions.partitions,
        )
        self._reports = conditions.reports_unreachable
        self._drawn = (
            conditions.loss > 0
            or len(conditions.loss_periods) > 0
            or conditions.duplication > 0
            or latency.spread > 0
        )
        self._leaves = len(self._bandwidth.up) > 0
        self.comes_in = len(self._bandwidth.down) > 0
        self.sizes = self._leaves or self.comes_in
        self._sent = [0] * nodes
        sited = len(latency.matrix) > 0 or len(latency.places) > 0
        alike = not (self._drawn or sited or self._leaves or conditions.partitions)
        self.ticks = int(latency.shortest) if alike else None
        self.fates = dict.fromkeys(("lost", "duplicated", "parted"), 0)
        self.fates |= dict.fromkeys(("up_overflowed", "down_overflowed"), 0)

    def send(self, source: int, to: int, tick: int, size: int) -> Way:
        """What becomes of a message of so many bytes that is sent now."""
        leaves = self._leave(source, tick, size) if self._leaves else 0
        if leaves < 0:
            self.fates["up_overflowed"] += 1
            return Way()
        links, draws = self._links, self._next_draws(source)
        loss = loss_at.interpreted(links, tick)
        if loss and mix.interpreted(links.seed, source, draws + LOSS) < loss:
            self.fates["lost"] += 1
            return Way()
        first = leaves + self._trip(source, to, draws + LATENCY)
        if are_parted.interpreted(links, source, to, tick):
            self.fates["parted"] += 1
            if not self._reports:
                return Way()
            back = self._next_draws(source)
            return Way(returns=first + self._trip(to, source, back + LATENCY))
        if links.duplication and (
            mix.interpreted(links.seed, source, draws + DUPLICATION) < links.duplication
        ):
            self.fates["duplicated"] += 1
            copy = leaves + self._trip(source, to, draws + LATENCY_OF_COPY)
            return Way((first, copy))
        return Way((first,))

    def come_in(self, to: int, tick: int, size: int) -> int:
        """The ticks that a message takes to come in; -1 if it is lost."""
        band = self._bandwidth
        ticks = ticks_through.interpreted(
            band.down, band.down_free, band.down_queue, to, tick, size
        )
        if ticks < 0:
            self.fates["down_overflowed"] += 1
        return int(ticks)

    def return_delay(self, source: int, back_from: int) -> int:
        """The ticks of a report to ``source`` that ``back_from`` cannot be reached."""
        draws = self._next_draws(back_from)
        return self._trip(back_from, source, draws + LATENCY)

    def _leave(self, source: int, tick: int, size: int) -> int:
        band = self._bandwidth
        return int(
            ticks_through.interpreted(band.up, band.up_free, band.up_queue, source, tick, size)
        )

    def _next_draws(self, source: int) -> int:
        if not self._drawn:
            return 0
        self._sent[source] += 1
        return self._sent[source] * DRAWS

    def _trip(self, source: int, to: int, counter: int) -> int:
        links = self._links
        return int(trip_ticks.interpreted(links.latency, source, to, links.seed, counter))

    def grown(self, before: PlainLinks) -> PlainLinks:
        """These links of more nodes, gone on with from those of fewer."""
        kept = before.dynamic_state()
        fresh = self.dynamic_state()
        for name in ("sent", "up_free", "down_free"):
            kept[name] = [*kept[name], *fresh[name][len(kept[name]) :]]
        self.restore(kept)
        return self

    def dynamic_state(self) -> dict[str, Any]:
        """All that changes."""
        return {
            "sent": list(self._sent),
            "fates": dict(self.fates),
            "up_free": self._bandwidth.up_free.tolist(),
            "down_free": self._bandwidth.down_free.tolist(),
        }

    def restore(self, dynamic: dict[str, Any]) -> None:
        """Go on from a `dynamic_state`."""
        self._sent, self.fates = list(dynamic["sent"]), dict(dynamic["fates"])
        self._bandwidth.up_free[:] = np.array(dynamic["up_free"], np.int64)
        self._bandwidth.down_free[:] = np.array(dynamic["down_free"], np.int64)
