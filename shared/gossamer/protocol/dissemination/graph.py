"""The graph of brokers (Sec. III), and the arrays that algorithms on it work in.

Brokers are 0 to n - 1 and links 0 to m - 1: names belong to the host. A broker's links lie together
(compressed sparse rows), so that a search reads memory in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.errors import LocalProtocolError
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct

NONE: Final = -1
_SHOWN_NODES: Final = 4
_SHOWN_COMPONENTS: Final = 4

Words = np.ndarray[Any, np.dtype[np.int64]]
Reals = np.ndarray[Any, np.dtype[np.float64]]


class TreesError(LocalProtocolError):
    """A graph or a sample of documents is impossible; nothing was built from it."""


class DisconnectedError(TreesError):
    """Some brokers cannot reach each other; nothing was built.

    Attributes:
        components: the brokers of each component, the largest component first.
    """

    def __init__(self, components: Sequence[Sequence[object]]) -> None:
        self.components = [list(component) for component in components]
        super().__init__(
            f"the graph is in {in_brief(self.components)}, "
            "expected brokers that all reach each other"
        )


def no_broker(what: str, host: int, nodes: int) -> TreesError:
    """The error of what names a broker that is not there, such as "host of document 3"."""
    return TreesError(f"{what} is {host}, expected a broker from 0 to {nodes - 1}")


def read_weights(
    given: npt.ArrayLike, count: int, what: str, named: Callable[[int], str], *, finite: bool = True
) -> Reals:
    """A size, cost or capacity above zero for each of so many, or one for all.

    Raises `TreesError` about ``what``, or by its name about the first that is none.
    """
    try:
        weights = np.array(np.broadcast_to(np.asarray(given, np.float64), count))
    except (TypeError, ValueError):
        raise TreesError(f"{what} is {given!r}, expected a finite number above 0") from None
    fits = weights > 0
    if finite:
        fits &= np.isfinite(weights)
    if not fits.all():
        wrong = int(np.argmin(fits))
        value = weights[wrong]
        raise TreesError(f"{named(wrong)} is {value}, expected a finite number above 0")
    return weights


def link_named(ends: Words, link: int) -> str:
    """A link by its number and the brokers that it joins, for messages."""
    one, other = ends[link].tolist()
    return f"link {link} between {one} and {other}"


def in_brief(components: Sequence[Sequence[object]]) -> str:
    """How many components there are, and some brokers of some."""
    shown = "; ".join(_brief(part) for part in components[:_SHOWN_COMPONENTS])
    more = len(components) - _SHOWN_COMPONENTS
    rest = f"; and {more} more" if more > 0 else ""
    return f"{len(components)} components ({shown}{rest})"


def _brief(component: Sequence[object]) -> str:
    names = ", ".join(str(node) for node in component[:_SHOWN_NODES])
    more = len(component) - _SHOWN_NODES
    return f"{names} and {more} more" if more > 0 else names


class Graph(Struct):
    """A connected undirected graph of n brokers and m links, without loops or parallel links.

    Attributes:
        first: int64[n + 1], where the links of a broker begin in ``to`` and ``link``.
        to: int64[2 m], the broker at the other end.
        link: int64[2 m], which link leads there.
        ends: int64[m, 2], the brokers that a link joins, the lower one first.
        costs: float64[m], what a document of size 1 costs on a link; above zero.
    """

    first: Words
    to: Words
    link: Words
    ends: Words
    costs: Reals

    @property
    def nodes(self) -> int:
        """How many brokers there are."""
        return len(self.first) - 1

    @property
    def links(self) -> int:
        """How many links there are."""
        return len(self.ends)


class Workspace(Struct):
    """What algorithms on a graph of n brokers and m links write while they run.

    Attributes:
        distance: float64[n], cost of the best path found to a broker; sums: float64[n], of several.
        origin: int64[n], the source at which that path begins; NONE where none was found.
        before: int64[n], the broker before it on that path; NONE at a source.
        via: int64[n], the link over which the path comes; NONE at a source.
        order: int64[n], the brokers found, nearest first.
        heap, place: int64[n], a heap of brokers by distance, and where in it each is.
        sets: int64[n], disjoint sets of brokers: the one above, a set's head above itself.
        marks: int64[n], counted up so that nothing need be cleared: see ``mark``.
        seen: int64[n], the same for brokers that a document has reached on any tree.
        mark: int64[1], the latest mark.
        terminals: int64[n], the brokers that a tree has to join.
        tree: int64[m], links of the tree that was found; kept: int64[m], those of an earlier one.
        bridges: int64[m], candidates among the links; lengths: float64[m], their lengths.
        degree: int64[n], links of the tree at a broker.
        used: int64[m], marks of links.
    """

    distance: Reals
    sums: Reals
    origin: Words
    before: Words
    via: Words
    order: Words
    heap: Words
    place: Words
    sets: Words
    marks: Words
    seen: Words
    mark: Words
    terminals: Words
    tree: Words
    kept: Words
    bridges: Words
    lengths: Reals
    degree: Words
    used: Words


def make_graph(
    nodes: int, ends: Sequence[tuple[int, int]] | Words, costs: npt.ArrayLike = 1.0
) -> Graph:
    """The graph of ``nodes`` brokers with these links.

    Args:
        nodes: number of brokers, at least 1.
        ends: the two brokers of each link.
        costs: what each link costs a document of size 1, or one cost for all.

    Raises:
        TreesError: a link ends at a broker that is not there, joins a broker to itself or repeats
            another, or a cost is not a finite number above zero.
        DisconnectedError: some brokers cannot reach each other.
    """
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    weights = read_weights(
        costs, len(pairs), "cost of links", lambda link: f"cost of {link_named(pairs, link)}"
    )
    _check_ends(nodes, pairs)
    pairs = np.sort(pairs, axis=1)
    sources = np.concatenate([pairs[:, 0], pairs[:, 1]])
    targets = np.concatenate([pairs[:, 1], pairs[:, 0]])
    links = np.tile(np.arange(len(pairs), dtype=np.int64), 2)
    sequence = np.lexsort((targets, sources))
    first = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=nodes), out=first[1:])
    graph = Graph(
        first=first,
        to=targets[sequence],
        link=links[sequence],
        ends=np.ascontiguousarray(pairs),
        costs=weights,
    )
    components = components_of(nodes, pairs)
    if len(components) > 1:
        raise DisconnectedError(components)
    return graph


def components_of(nodes: int, ends: Words) -> list[list[int]]:
    """The brokers that reach each other, largest component first, then by lowest broker."""
    above = list(range(nodes))
    for one, other in ends.tolist():
        above[_head(above, one)] = _head(above, other)
    parts: dict[int, list[int]] = {}
    for node in range(nodes):
        parts.setdefault(_head(above, node), []).append(node)
    return sorted(parts.values(), key=lambda part: (-len(part), part[0]))


def make_workspace(graph: Graph) -> Workspace:
    """Room for the algorithms on this graph; one workspace serves one caller at a time."""

    def words(size: int) -> Words:
        return np.zeros(size, np.int64)

    n, m = graph.nodes, graph.links
    return Workspace(
        distance=np.zeros(n),
        sums=np.zeros(n),
        origin=words(n),
        before=words(n),
        via=words(n),
        order=words(n),
        heap=words(n),
        place=words(n),
        sets=words(n),
        marks=words(n),
        seen=words(n),
        mark=words(1),
        terminals=words(n),
        tree=words(m),
        kept=words(m),
        bridges=words(m),
        lengths=np.zeros(m),
        degree=words(n),
        used=words(m),
    )


def _head(above: list[int], node: int) -> int:
    while above[node] != node:
        above[node] = above[above[node]]
        node = above[node]
    return node


def _check_ends(nodes: int, pairs: Words) -> None:
    wrong = np.argwhere((pairs < 0) | (pairs >= nodes))
    if len(wrong):
        link, side = wrong[0].tolist()
        raise no_broker(f"an end of link {link}", int(pairs[link, side]), nodes)
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        raise TreesError(
            f"{link_named(pairs, loops[0])} joins a broker to itself, expected two brokers"
        )
    sides = np.sort(pairs, axis=1)
    _, firsts = np.unique(sides, axis=0, return_index=True)
    repeated = np.setdiff1d(np.arange(len(pairs)), firsts)
    if len(repeated):
        raise TreesError(
            f"{link_named(pairs, repeated[0])} is a second one there, expected one link a pair"
        )


@inline_rule
def head_of(sets: Words, node: int) -> int:
    """The head of the set of ``node``; paths there are halved on the way."""
    while sets[node] != node:
        sets[node] = sets[sets[node]]
        node = sets[node]
    return node


@inline_rule
def unite(sets: Words, one: int, other: int) -> bool:
    """Make one set of two; whether they were two. The lower head stays a head."""
    first, second = head_of(sets, one), head_of(sets, other)
    if first == second:
        return False
    if first < second:
        sets[second] = first
    else:
        sets[first] = second
    return True


@inline_rule
def shorter(lengths: Reals, one: int, other: int) -> bool:
    """Whether a link is shorter than another, by number where they are equally long."""
    if lengths[one] != lengths[other]:
        return bool(lengths[one] < lengths[other])
    return one < other


@rule
def sink(links: Words, lengths: Reals, at: int, count: int) -> None:
    """Move a link of the heap ``links[:count]``, longest on top, down to its place."""
    link = links[at]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and shorter(lengths, links[below], links[below + 1]):
            below += 1
        if not shorter(lengths, link, links[below]):
            break
        links[at] = links[below]
        at = below
    links[at] = link


@rule
def sort_links(links: Words, lengths: Reals, count: int) -> None:
    """Sort ``links[:count]`` by their lengths, shortest first; lengths are by link."""
    for at in range(count // 2 - 1, -1, -1):
        sink(links, lengths, at, count)
    for last in range(count - 1, 0, -1):
        link = links[0]
        links[0] = links[last]
        links[last] = link
        sink(links, lengths, 0, last)
