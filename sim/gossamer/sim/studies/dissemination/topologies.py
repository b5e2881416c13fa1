"""Topologies made up: transit-stub as GT-ITM makes them, Waxman, Barabasi-Albert.

Zegura, Calvert, Bhattacharjee (INFOCOM 1996); Waxman (JSAC 6, 1988); Barabasi, Albert (Science 286,
1999). The same seed makes the same graph anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.dissemination.graph import (
    DisconnectedError,
    Graph,
    TreesError,
    components_of,
    in_brief,
    make_graph,
)
from gossamer.protocol.kernel.draws import below, mix
from gossamer.sim.errors import ScenarioError

# Streams of random numbers for topologies and workloads: seed, key and counter, nothing else.


T = TypeVar("T")

_DRAWS = 1 << 62


class Stream:
    """Draws of one purpose; another key is another stream of the same seed."""

    def __init__(self, seed: int, key: int) -> None:
        self._seed = seed
        self._key = key
        self._counter = 0

    def _next(self) -> int:
        self._counter += 1
        return int(mix.interpreted(self._seed, self._key, self._counter))

    def below(self, bound: int) -> int:
        """A whole number from 0 to ``bound`` - 1."""
        return int(below.interpreted(self._next(), bound))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._next() / _DRAWS

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different ones of the items, all if there are no more, in order of draw."""
        left = list(items)
        chosen = []
        for _ in range(min(count, len(left))):
            place = self.below(len(left))
            left[place], left[-1] = left[-1], left[place]
            chosen.append(left.pop())
        return chosen


# Overlays of brokers that are no trees: a graph with names, and places to draw it at.


Link = tuple[int, int]
Positions = npt.NDArray[np.float64]


@attrs.frozen(eq=False)
class Topology:
    """A connected graph of named brokers.

    Attributes:
        name: what it is called in tables.
        names: of the brokers.
        graph: who is linked to whom, and at what cost.
        positions: float64[n, 2], where to draw each broker, NaN where nobody knows.
        dropped: parallel links and links of a broker to itself that the source has too many.
    """

    name: str
    names: tuple[str, ...]
    graph: Graph
    positions: Positions
    dropped: int = 0


def build_topology(
    name: str,
    names: Sequence[str],
    links: Iterable[tuple[int, int, Any]],
    positions: Positions | None = None,
    file: str | None = None,
) -> Topology:
    """The topology of these links; of parallel ones the cheapest is kept, loops are dropped.

    Args:
        links: two brokers and a cost each.
        positions: where to draw the brokers, None if nobody knows.
        file: where it comes from, for errors.

    Raises:
        ScenarioError: a cost is no number above zero, brokers cannot reach each other (names the
            components), or there are none.
    """
    if not names:
        raise ScenarioError(file, "brokers", [], "at least one broker", "missing")
    best: dict[Link, float] = {}
    given = 0
    for one, other, cost in links:
        given += 1
        number = _read_cost(cost, names[one], names[other], file)
        if one != other:
            link = (min(one, other), max(one, other))
            best[link] = min(number, best.get(link, number))
    ends = sorted(best)
    try:
        graph = make_graph(len(names), ends, [best[pair] for pair in ends])
    except DisconnectedError as error:
        raise _disconnected(error, names, file) from None
    except TreesError as error:
        raise ScenarioError(file, "links", None, "a graph of brokers", str(error)) from None
    if positions is None:
        positions = np.full((len(names), 2), np.nan)
    return Topology(name, tuple(names), graph, positions, given - len(best))


def _read_cost(cost: Any, one: str, other: str, file: str | None) -> float:
    number = cost if isinstance(cost, int | float) and not isinstance(cost, bool) else np.nan
    if not (np.isfinite(number) and number > 0):
        field = f"cost of the link between {one} and {other}"
        raise ScenarioError(file, field, cost, "a finite number above 0")
    return float(number)


def _disconnected(
    error: DisconnectedError, names: Sequence[str], file: str | None
) -> ScenarioError:
    parts = [[names[int(str(node))] for node in part] for part in error.components]
    expected = "brokers that all reach each other"
    return ScenarioError(file, "the graph", parts, expected, f"in {in_brief(parts)}")


_TRIES = 200
_TRANSIT_STUB_KEY, _WAXMAN_KEY, _ATTACHMENT_KEY = range(3)
_LINK_COST: Final = 1.0


@attrs.frozen
class TransitStub:
    """GT-ITM's parameters of a transit-stub graph.

    The defaults are those of the file ts100 that comes with it, for a hundred brokers.

    Attributes:
        transit_domains: domains that carry traffic of others, linked as a random graph.
        transit_nodes: brokers in each of these.
        stubs: stub domains at each transit broker.
        stub_nodes: brokers in each stub domain; the first ``larger_stubs`` have one more.
        larger_stubs: how many stub domains these are.
        domain_density: chance that two transit domains are linked.
        transit_density, stub_density: chance that two brokers of a domain are.
        transit_stub_links, stub_stub_links: links beyond those that every stub domain has.
    """

    transit_domains: int = 1
    transit_nodes: int = 4
    stubs: int = 3
    stub_nodes: int = 8
    larger_stubs: int = 0
    domain_density: float = 1.0
    transit_density: float = 0.6
    stub_density: float = 0.42
    transit_stub_links: int = 0
    stub_stub_links: int = 0

    def __attrs_post_init__(self) -> None:
        for name in ("transit_domains", "transit_nodes", "stub_nodes"):
            _at_least(name, getattr(self, name), 1)
        for name in ("stubs", "larger_stubs", "transit_stub_links", "stub_stub_links"):
            _at_least(name, getattr(self, name), 0)
        for name in ("domain_density", "transit_density", "stub_density"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise ScenarioError(None, name, value, "a chance above 0, up to 1")
        domains = self.transit_domains * self.transit_nodes * self.stubs
        if self.transit_stub_links + self.stub_stub_links > 0 and domains < 2:
            raise ScenarioError(None, "stubs", self.stubs, "two stub domains or more to link to")

    @property
    def brokers(self) -> int:
        """How many brokers the graph has."""
        transit = self.transit_domains * self.transit_nodes
        return transit * (1 + self.stubs * self.stub_nodes) + self.larger_stubs


def transit_stub_of(brokers: int) -> TransitStub:
    """Parameters for so many brokers, at least 40.

    The paper says no more than that GT-ITM made its graphs. Here domains, and brokers in a stub
    domain, grow with the square root of the size, 5 and 8 at 500; a broker has about 3 links in
    its domain, as in ts100.

    Raises:
        ScenarioError: fewer than 40 brokers.
    """
    _at_least("brokers", brokers, 40)
    domains = max(1, round(math.sqrt(brokers / 20)))
    stubs = 3 * 4 * domains
    inside, larger = divmod(brokers - 4 * domains, stubs)
    return TransitStub(
        transit_domains=domains,
        stub_nodes=inside,
        larger_stubs=larger,
        domain_density=min(1.0, 3 / max(domains - 1, 1)),
        stub_density=min(1.0, 3 / max(inside - 1, 1)),
    )


def transit_stub(parameters: TransitStub, seed: int) -> Topology:
    """A transit-stub graph: domains of brokers that carry traffic, and domains that hang there.

    Raises:
        ScenarioError: the densities make no connected domain in 200 tries.
    """
    stream = Stream(seed, _TRANSIT_STUB_KEY)
    maker = _TransitStubMaker(parameters, stream)
    return build_topology(
        f"transit_stub_{parameters.brokers}",
        maker.names,
        [(*link, _LINK_COST) for link in maker.links],
        np.array(maker.positions),
    )


class _TransitStubMaker:
    """A transit-stub graph while it is made; transit brokers come first in their domain."""

    def __init__(self, parameters: TransitStub, stream: Stream) -> None:
        self.names: list[str] = []
        self.links: list[Link] = []
        self.positions: list[tuple[float, float]] = []
        self._parameters = parameters
        self._stream = stream
        transit, stubs = self._transit(), []
        for place, broker in enumerate(transit):
            stubs += self._stubs(broker, place)
        self._more_links(transit, stubs)

    def _transit(self) -> list[int]:
        """The transit domains, on a circle, and the links among them."""
        wanted = self._parameters
        domains = []
        for domain in range(wanted.transit_domains):
            middle = _on_circle((0.0, 0.0), 10.0, domain, wanted.transit_domains)
            domains.append(
                self._domain(
                    f"T{domain + 1}", wanted.transit_nodes, wanted.transit_density, middle, 1.5
                )
            )
        for one, other in self._random_graph(len(domains), wanted.domain_density):
            self.links.append((self._one_of(domains[one]), self._one_of(domains[other])))
        return [broker for domain in domains for broker in domain]

    def _stubs(self, transit: int, place: int) -> list[list[int]]:
        """The stub domains of a transit broker, each linked to it by one of its own."""
        wanted = self._parameters
        domains = []
        for stub in range(wanted.stubs):
            larger = place * wanted.stubs + stub < wanted.larger_stubs
            middle = _on_circle(self.positions[transit], 1.2, stub, wanted.stubs)
            domain = self._domain(
                f"{self.names[transit]}.{stub + 1}",
                wanted.stub_nodes + larger,
                wanted.stub_density,
                middle,
                0.4,
            )
            self.links.append((transit, self._one_of(domain)))
            domains.append(domain)
        return domains

    def _domain(
        self, name: str, size: int, density: float, middle: tuple[float, float], radius: float
    ) -> list[int]:
        begin = len(self.names)
        for i in range(size):
            self.names.append(f"{name}-{i + 1}")
            self.positions.append(_on_circle(middle, radius, i, size))
        for one, other in self._random_graph(size, density):
            self.links.append((begin + one, begin + other))
        return list(range(begin, begin + size))

    def _random_graph(self, size: int, density: float) -> list[Link]:
        """Pairs linked by chance, drawn again until all reach each other, as GT-ITM does."""
        for _ in range(_TRIES):
            links = [
                (one, other)
                for one in range(size)
                for other in range(one + 1, size)
                if self._stream.uniform() < density
            ]
            if len(components_of(size, np.array(links, np.int64).reshape(-1, 2))) == 1:
                return links
        expected = f"one that makes a connected domain of {size} in {_TRIES} tries"
        raise ScenarioError(None, "density", density, expected)

    def _more_links(self, transit: list[int], stubs: list[list[int]]) -> None:
        wanted = self._parameters
        for _ in range(wanted.transit_stub_links):
            self.links.append((self._one_of(transit), self._one_of(self._one_domain(stubs))))
        for _ in range(wanted.stub_stub_links):
            one, other = self._stream.some(range(len(stubs)), 2)
            self.links.append((self._one_of(stubs[one]), self._one_of(stubs[other])))

    def _one_of(self, brokers: Sequence[int]) -> int:
        return brokers[self._stream.below(len(brokers))]

    def _one_domain(self, domains: Sequence[Sequence[int]]) -> Sequence[int]:
        return domains[self._stream.below(len(domains))]


def waxman(brokers: int, alpha: float = 0.4, beta: float = 0.1, *, seed: int) -> Topology:
    """Brokers in a square, linked with the chance alpha exp(-distance / (beta diagonal)).

    Parts that chance leaves apart are joined by their nearest brokers, our choice.

    Raises:
        ScenarioError: a parameter is impossible.
    """
    _at_least("brokers", brokers, 1)
    _above_zero("alpha", alpha)
    _above_zero("beta", beta)
    stream = Stream(seed, _WAXMAN_KEY)
    positions = np.array([(stream.uniform(), stream.uniform()) for _ in range(brokers)])
    scale = beta * math.sqrt(2)
    links = []
    for one in range(brokers):
        for other in range(one + 1, brokers):
            distance = math.dist(positions[one], positions[other])
            if stream.uniform() < alpha * math.exp(-distance / scale):
                links.append((one, other))
    links += _bridges(positions, links)
    return _plain("waxman", brokers, links, positions)


def barabasi_albert(brokers: int, links: int = 2, *, seed: int) -> Topology:
    """Brokers that come one after the other and link to those that have many links already.

    Raises:
        ScenarioError: not 1 <= links < brokers.
    """
    if not 1 <= links < brokers:
        raise ScenarioError(None, "links", links, f"1 to {brokers - 1} a broker")
    stream = Stream(seed, _ATTACHMENT_KEY)
    made: list[Link] = [(0, i) for i in range(1, links + 1)]
    ends = [broker for link in made for broker in link]
    for broker in range(links + 1, brokers):
        targets: list[int] = []
        while len(targets) < links:
            target = ends[stream.below(len(ends))]
            if target not in targets:
                targets.append(target)
        for target in targets:
            made.append((target, broker))
            ends += [target, broker]
    return _plain("barabasi_albert", brokers, made, None)


def _plain(name: str, brokers: int, links: Sequence[Link], positions: Positions | None) -> Topology:
    names = [f"B{i + 1}" for i in range(brokers)]
    costed = [(*link, _LINK_COST) for link in links]
    return build_topology(f"{name}_{brokers}", names, costed, positions)


def _bridges(positions: Positions, links: Sequence[Link]) -> list[Link]:
    parts = components_of(len(positions), np.array(links, np.int64).reshape(-1, 2))
    joined = np.array(parts[0])
    bridges = []
    for part in parts[1:]:
        away = np.linalg.norm(positions[part][:, None] - positions[joined][None], axis=2)
        one, other = np.unravel_index(int(away.argmin()), away.shape)
        bridges.append((part[int(one)], int(joined[other])))
        joined = np.concatenate([joined, part])
    return bridges


def _on_circle(
    middle: tuple[float, float], radius: float, place: int, places: int
) -> tuple[float, float]:
    angle = 2 * math.pi * place / places
    return middle[0] + radius * math.cos(angle), middle[1] + radius * math.sin(angle)


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ScenarioError(None, name, value, f"a whole number of at least {least}")


def _above_zero(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ScenarioError(None, name, value, "a finite number above 0")


GENERATORS: Final[dict[str, Callable[[int, int], Topology]]] = {
    "transit_stub": lambda brokers, seed: transit_stub(transit_stub_of(brokers), seed),
    "waxman": lambda brokers, seed: waxman(brokers, seed=seed),
    "barabasi_albert": lambda brokers, seed: barabasi_albert(brokers, seed=seed),
}
"""By name, what makes a topology of so many brokers from a seed."""
