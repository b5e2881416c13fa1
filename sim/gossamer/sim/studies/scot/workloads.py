"""The overlays and workloads of the SCOT paper (Sec. 7.1), and its worked examples (Fig. 7).

A workload has few different publications, which are published over and over, and as many different
subscriptions as are asked for, each of which matches the same share of the publications.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Final

import attrs

from gossamer.protocol.brokers.core.messages import Attach, Publish
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.messages import QueueReport, WindowEnded
from gossamer.protocol.brokers.scot.topology import Vertex
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters import Publication as Values
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.scot.replay_network import Links, ScotNetwork, ServiceTimes, Unobserved
from gossamer.sim.studies.stock_quotes import Quote, make_quotes, read_quotes

SELECTIVITY: Final = 0.02
"""Share of the publications that a subscription matches (Sec. 7.1)."""
SYMBOLS: Final = 500
"""Stock symbols of the paper's data (Sec. 7.1)."""

_RANGED: Final = ("open", "high", "low", "close", "volume", "change", "spread")


@attrs.frozen
class Topics:
    """Publications that name one of some topics; a subscription asks for one of them.

    Attributes:
        topics: 50 give the paper's selectivity.
    """

    topics: int = 50

    @property
    def contents(self) -> Sequence[Values]:
        """One for each topic."""
        return [{"topic": topic} for topic in range(self.topics)]

    @property
    def burst_content(self) -> Values:
        """A topic of its own."""
        return {"topic": -1}

    @property
    def burst_filter(self) -> Filter:
        """That topic."""
        return parse("topic == -1")

    def wanted(self, draw: Random) -> Filter:
        """Any of the other topics."""
        return parse(f"topic == {draw.randrange(self.topics)}")


@attrs.define(slots=False, frozen=True)
class Quotes:
    """Stock quotes with ten attributes; a subscription asks for a range of one of them.

    A range begins and ends anywhere between two neighbouring values that differ, so that it holds
    as many quotes as the selectivity says.

    Attributes:
        number: different quotes; a multiple of 50 gives the paper's selectivity exactly.
        seed: of the choice of quotes.
        file: quotes to choose from (see `read_quotes`); made-up ones of 500 symbols if None.
    """

    number: int = 100
    seed: int = 1
    file: Path | None = None

    @cached_property
    def contents(self) -> Sequence[Values]:
        """Quotes drawn from all."""
        quotes = (
            make_quotes(10 * SYMBOLS, self.seed, SYMBOLS)
            if self.file is None
            else read_quotes(self.file)
        )
        if self.number > len(quotes):
            expected = f"at most {len(quotes)}, which the file of quotes has"
            raise ScenarioError(str(self.file), "workload.quotes", self.number, expected)
        chosen = Random(self.seed).sample(range(len(quotes)), self.number)
        return [_with_ten_attributes(quotes[place]) for place in sorted(chosen)]

    @property
    def burst_content(self) -> Values:
        """An index, whose class no subscription to a range of a stock asks for."""
        return {"class": "index", "symbol": "HRP", "value": 1.0}

    @property
    def burst_filter(self) -> Filter:
        """That index."""
        return parse('symbol == "HRP"')

    def wanted(self, draw: Random) -> Filter:
        """A range of an attribute that is drawn."""
        name = draw.choice(self._ranged)
        values = self._sorted[name]
        first = draw.choice(self._firsts[name])
        low = _between(draw, values, first - 1, first)
        high = _between(draw, values, first + self._held - 1, first + self._held)
        return Filter.of(
            [Comparison(name, Operator.AT_LEAST, low), Comparison(name, Operator.AT_MOST, high)]
        )

    @property
    def _held(self) -> int:
        """Quotes in a range."""
        return max(1, round(SELECTIVITY * self.number))

    @cached_property
    def _sorted(self) -> dict[str, list[float]]:
        return {name: sorted(_number(quote[name]) for quote in self.contents) for name in _RANGED}

    @cached_property
    def _firsts(self) -> dict[str, list[int]]:
        """By attribute, where ranges can begin so that neither end parts equal values."""
        held = self._held
        return {
            name: [
                first
                for first in range(len(values) - held + 1)
                if (first == 0 or values[first - 1] < values[first])
                and (first + held == len(values) or values[first + held - 1] < values[first + held])
            ]
            for name, values in self._sorted.items()
        }

    @cached_property
    def _ranged(self) -> list[str]:
        return [name for name in _RANGED if self._firsts[name]]


Workload = Topics | Quotes
"""Who says what, and who asks for what."""


def _with_ten_attributes(quote: Quote) -> Values:
    opened, closed = _number(quote["open"]), _number(quote["close"])
    spread = _number(quote["high"]) - _number(quote["low"])
    return {**quote, "change": round(closed - opened, 2), "spread": round(spread, 2)}


def _between(draw: Random, values: Sequence[float], below: int, above: int) -> float:
    """A number from between two neighbouring values; at the ends the value there."""
    if below < 0:
        return values[above]
    if above >= len(values):
        return values[below]
    return draw.uniform(values[below], values[above])


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


# The overlays of the SCOT paper.


_ABOVE: Final = ("i", "ii", "iii", "iv", "v")
_INNER: Final = ("vi", "vii", "viii", "ix", "x")
_BELOW: Final = ("xi", "xii", "xiii", "xiv", "xv")


def figure_2() -> Scot:
    """Fig. 2 and 3: six regions a to f in a row, three clusters, 18 brokers.

    The figure is not in the text. That says 6 regions, 33 links, a and c beside b, and names two
    regions of edge brokers, which makes it the path.
    """
    return Scot(Factor.path("abcdef"), Factor.complete(3))


def figure_8() -> Scot:
    """Fig. 8: 15 regions of which vi to x are inner, five clusters, 75 brokers.

    The figure is not in the text. That says which regions are inner; as they are the middle ones
    of the fifteen, we put them in a row, with one edge region above and one below each.
    """
    rows = zip(_ABOVE, _INNER, _BELOW, strict=True)
    edges = [*itertools.pairwise(_INNER)]
    edges += [edge for above, inner, below in rows for edge in ((inner, above), (inner, below))]
    return Scot(Factor.of((*_ABOVE, *_INNER, *_BELOW), edges), Factor.complete(5))


FACTORS: Final = "factors"
OVERLAYS: Final = {"figure_8": figure_8, "figure_2": figure_2}
"""The overlays by the names that scenarios know."""


def scot_of(
    regions: Sequence[str],
    region_links: Sequence[Sequence[str]],
    clusters: Sequence[int],
    cluster_links: Sequence[Sequence[int]] | None,
) -> Scot:
    """The overlay of factors that a scenario gives; raises `ScenarioError` that names the fault.

    Without ``cluster_links`` all clusters are linked.
    """
    if cluster_links is None:
        cluster_links = list(itertools.combinations(clusters, 2))
    acyclic = _factor(regions, region_links, ("overlay.regions", "overlay.region_links"))
    connectivity = _factor(clusters, cluster_links, ("overlay.clusters", "overlay.cluster_links"))
    try:
        return Scot(acyclic, connectivity)
    except ConfigError as error:
        raise ScenarioError(None, _FIELDS[error.field], error.value, error.expected) from None


# The keys of a scenario for what `check_factors` names.
_FIELDS: Final = {
    "acyclic factor": "overlay.region_links",
    "connectivity factor": "overlay.cluster_links",
    "label of the connectivity factor": "overlay.clusters",
    "factors": "overlay.clusters",
}


def _factor(
    vertices: Sequence[Vertex], edges: Sequence[Sequence[Vertex]], fields: tuple[str, str]
) -> Factor:
    try:
        return Factor.of(vertices, ((one, other) for one, other in edges))
    except ConfigError as error:
        # What is wrong with a vertex stands by itself, what is wrong with an edge is a pair.
        field = fields[isinstance(error.value, tuple) and len(error.value) == 2]
        raise ScenarioError(None, field, error.value, error.expected) from None


# The worked examples of Fig. 7: how many messages one notification takes under congestion.


PUBLISHER: Final = "B(b,2)"
SUBSCRIBERS: Final = ("B(c,0)", "B(a,2)", "B(c,1)", "B(c,2)")
"""The figure is not in the text, which gives counts of messages and of brokers on the ways."""

Loads = Mapping[tuple[str, str], int]

CASES: Final[Mapping[str, tuple[str, Loads]]] = MappingProxyType(
    {
        "static": ("static", {}),
        "7(b)": ("dynamic", {(PUBLISHER, "B(b,0)"): 100}),
        "7(c)": (
            "dynamic",
            {(PUBLISHER, "B(b,0)"): 100, (PUBLISHER, "B(b,1)"): 100, (PUBLISHER, "B(a,2)"): 5},
        ),
        "7(d)": (
            "dynamic",
            {
                (PUBLISHER, "B(b,0)"): 100,
                (PUBLISHER, "B(b,1)"): 50,
                (PUBLISHER, "B(a,2)"): 20,
                (PUBLISHER, "B(c,2)"): 20,
                ("B(b,1)", "B(b,0)"): 100,
                ("B(c,1)", "B(c,0)"): 100,
            },
        ),
    }
)
"""By name, how brokers route and the output queues that are not empty."""


def messages_of(case: str) -> int:
    """Messages between brokers that one notification of P takes in one of `CASES`."""
    routing, loads = CASES[case]
    settings = ScotSettings(routing=routing)
    network = ScotNetwork(figure_2(), settings, Links(), ServiceTimes(), Unobserved())
    for place, broker in enumerate(SUBSCRIBERS):
        network.send(0, f"S{place + 1}", broker, Attach((("all", parse("present(x)")),)))
    network.send(0, "P", PUBLISHER, Attach())
    network.run_until_idle()
    for (one, other), length in loads.items():
        report = QueueReport(other, length, entered=5, left=5)
        network.brokers[one].handle(network.now, None, WindowEnded((report,)))
    # All is over before a window ends, and brokers hear of the queues as they are.
    network.send(network.now, "P", PUBLISHER, Publish({"x": 1}))
    network.run_until_idle()
    brokers = network.brokers.values()
    return sum(broker.counters.sent.get("Notification", 0) for broker in brokers)
