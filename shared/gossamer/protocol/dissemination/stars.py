"""Low-stretch spanning trees by star decomposition (Elkin, Emek, Spielman, Teng, STOC 2005).

A part of the graph is cut into a ball around its centre and cones that hang on the ball's surface;
the trees of these, each made in the same way, are joined by the links along which the cones were
reached. Where to cut is chosen so that few documents cross.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.dissemination.graph import NONE, Graph, Reals, Words, Workspace
from gossamer.protocol.dissemination.paths import pop_nearest, raise_in_heap, reach
from gossamer.protocol.dissemination.spanning import Trees, hung_up, new_mark
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct

WIDTH: Final = 0.1
"""How wide cones may grow, as a share of the radius.

Departs from the paper: the width for which its bound is proven, 1 / (2 log(n + 32)) to the base of
4 / 3 (beta of LowStretchTree), is less than a link unless the radius is above forty, so that cones
would hardly be chosen at all. On grids this one halves the stretch and more, elsewhere it changes
little (docs/trees.md).
"""
SHALLOWEST: Final = 1 / 3
DEEPEST: Final = 2 / 3
# Words of a part: where its brokers begin in `members`, and its centre.
BEGIN, CENTRE, PART_WORDS = range(3)
OUTSIDE: Final = -1


class Stars(Struct):
    """What the star decomposition writes, for a graph of n brokers.

    Attributes:
        loads: float64[m], multiplicity of each link; 0 leaves a link out.
        loaded: int64[m], the links that are not left out.
        part: int64[n], the part each broker is in; OUTSIDE of all.
        members: int64[n], brokers, those of a part side by side.
        parts: int64[n, 2], parts that are still to be cut, see the words above.
        radius: float64[n], distance of a broker from the centre of its part.
        entry: int64[n], the broker before it on the shortest path from there.
        entry_link: int64[n], the link on that path.
        surface: int64[n], brokers just outside the ball, nearest first.
    """

    loads: Reals
    loaded: Words
    part: Words
    members: Words
    parts: Words
    radius: Reals
    entry: Words
    entry_link: Words
    surface: Words


def make_stars(graph: Graph) -> Stars:
    """Room for the decomposition, all links left out."""
    n = graph.nodes

    def words() -> Words:
        return np.full(n, NONE, np.int64)

    return Stars(
        loads=np.zeros(graph.links),
        loaded=np.zeros(graph.links, np.int64),
        part=np.full(n, OUTSIDE, np.int64),
        members=words(),
        parts=np.zeros((n, PART_WORDS), np.int64),
        radius=np.zeros(n),
        entry=words(),
        entry_link=words(),
        surface=words(),
    )


@rule
def grow(
    graph: Graph, work: Workspace, stars: Stars, source: int, part: int, limit: float, cone: bool
) -> int:
    """Find the brokers of ``part`` within ``limit`` of ``source``; writes order and distances.

    In a cone, links that lead straight away from the centre of the ball are free. Departs from the
    paper: straight away from its centre, not from its surface, which is the same where links are
    equally long and saves cutting links in two where not.
    """
    work.distance[source] = 0.0
    work.origin[source] = source
    work.before[source] = NONE
    work.via[source] = NONE
    raise_in_heap(work, source, 0)
    size, found = 1, 0
    while size > 0 and work.distance[work.heap[0]] <= limit:
        node = pop_nearest(work, size)
        size -= 1
        work.order[found] = node
        found += 1
        for i in range(graph.first[node], graph.first[node + 1]):
            other, link = graph.to[i], graph.link[i]
            if stars.part[other] == part and stars.loads[link] > 0:
                length = graph.costs[link]
                if cone and stars.radius[node] + length == stars.radius[other]:
                    length = 0.0
                size = reach(work, node, other, link, length, size)
    for i in range(found):
        work.place[work.order[i]] = NONE
    for i in range(size):
        work.place[work.heap[i]] = NONE
    return found


@rule
def cut(
    graph: Graph, work: Workspace, stars: Stars, found: int, part: int, least: float, most: float
) -> int:
    """How many of the brokers ``work.order[:found]`` to cut off, at a radius in [least, most].

    BallCut and ConeCut take the first radius at which the multiplicity of the links cut, each
    over its length, is small beside the volume inside; here it is the radius at which it is
    smallest, which is at least as good.
    """
    inside = new_mark(work)
    boundary, volume = 0.0, 0.0
    smallest, chosen = math.inf, 1
    for i in range(found):
        node = work.order[i]
        if i > 0 and work.distance[node] > most:
            break
        work.marks[node] = inside
        for j in range(graph.first[node], graph.first[node + 1]):
            other, link = graph.to[j], graph.link[j]
            if stars.part[other] == part and stars.loads[link] > 0:
                crossing = stars.loads[link] / graph.costs[link]
                if work.marks[other] == inside:
                    boundary -= crossing
                else:
                    boundary += crossing
                    volume += stars.loads[link]
        following = math.inf
        if i + 1 < found:
            following = work.distance[work.order[i + 1]]
        if following > work.distance[node] and following > least:
            share = boundary / (volume + 1.0)
            if share < smallest:
                smallest, chosen = share, i + 1
    return chosen


@rule
def cut_off_ball(
    graph: Graph, work: Workspace, stars: Stars, begin: int, found: int
) -> tuple[int, int]:
    """Part the brokers of ``work.order[:found]`` into a ball around the first and the rest.

    Writes radii and entries, the ball to ``members`` and the surface of the rest to ``surface``.
    Returns how many brokers are in the ball and on the surface.
    """
    for i in range(found):
        node = work.order[i]
        stars.radius[node] = work.distance[node]
        stars.entry[node] = work.before[node]
        stars.entry_link[node] = work.via[node]
    deepest = work.distance[work.order[found - 1]]
    inside = cut(graph, work, stars, found, begin, SHALLOWEST * deepest, DEEPEST * deepest)
    rest = graph.first.shape[0] + begin
    for i in range(inside, found):
        stars.part[work.order[i]] = rest
    shell = 0
    for i in range(inside, found):
        if stars.part[stars.entry[work.order[i]]] == begin:
            stars.surface[shell] = work.order[i]
            shell += 1
    for i in range(inside):
        stars.members[begin + i] = work.order[i]
    return inside, shell


@inline_rule
def push_part(stars: Stars, waiting: int, begin: int, size: int, centre: int) -> int:
    """Remember a part to be cut, unless it is a single broker; returns how many wait."""
    if size < 2:
        return waiting
    stars.parts[waiting, BEGIN] = begin
    stars.parts[waiting, CENTRE] = centre
    return waiting + 1


@rule
def decompose(
    graph: Graph, work: Workspace, stars: Stars, waiting: int, links: int, width: float
) -> tuple[int, int]:
    """Cut the last waiting part into a star; returns how many parts wait and links there are."""
    waiting -= 1
    begin, centre = stars.parts[waiting, BEGIN], stars.parts[waiting, CENTRE]
    found = grow(graph, work, stars, centre, begin, math.inf, False)
    limit = width * work.distance[work.order[found - 1]]
    inside, shell = cut_off_ball(graph, work, stars, begin, found)
    waiting = push_part(stars, waiting, begin, inside, centre)
    rest = graph.first.shape[0] + begin
    at = begin + inside
    for i in range(shell):
        tip = stars.surface[i]
        if stars.part[tip] != rest:
            continue
        work.tree[links] = stars.entry_link[tip]
        links += 1
        within = grow(graph, work, stars, tip, rest, limit, True)
        size = cut(graph, work, stars, within, rest, 0.0, limit)
        for j in range(size):
            stars.part[work.order[j]] = at
            stars.members[at + j] = work.order[j]
        waiting = push_part(stars, waiting, at, size, tip)
        at += size
    return waiting, links


@rule
def gather_component(graph: Graph, work: Workspace, stars: Stars, node: int, begin: int) -> int:
    """Make the loaded component of ``node`` a part that begins at ``begin``.

    Returns its size; its centre, the broker with most load, comes first among its members.
    """
    found = grow(graph, work, stars, node, stars.part[node], math.inf, False)
    heaviest, centre = -1.0, 0
    for i in range(found):
        member = work.order[i]
        load = 0.0
        for j in range(graph.first[member], graph.first[member + 1]):
            load += stars.loads[graph.link[j]]
        if load > heaviest:
            heaviest, centre = load, i
    for i in range(found):
        stars.part[work.order[i]] = begin
        stars.members[begin + i] = work.order[i]
    stars.members[begin + centre] = work.order[0]
    stars.members[begin] = work.order[centre]
    return int(found)


@rule
def load_link(stars: Stars, link: int, load: float, loaded: int) -> int:
    """Add to the multiplicity of a link; returns how many links are loaded."""
    if stars.loads[link] == 0:
        stars.loaded[loaded] = link
        loaded += 1
    stars.loads[link] += load
    return loaded


@rule
def unload_links(stars: Stars, loaded: int) -> None:
    """Leave all links out again."""
    for i in range(loaded):
        stars.loads[stars.loaded[i]] = 0.0


@rule
def write_low_stretch_forest(
    graph: Graph, work: Workspace, stars: Stars, loaded: int, width: float
) -> int:
    """Write a low-stretch tree of every loaded component to ``work.tree``; returns how many links.

    Args:
        loaded: how many links are loaded.
        width: how wide cones may grow, as a share of the radius.
    """
    unseen = 2 * graph.first.shape[0]
    for i in range(loaded):
        for side in range(2):
            node = graph.ends[stars.loaded[i], side]
            stars.part[node] = unseen
            work.place[node] = NONE
    begin, links = 0, 0
    for i in range(loaded):
        node = graph.ends[stars.loaded[i], 0]
        if stars.part[node] == unseen:
            size = gather_component(graph, work, stars, node, begin)
            waiting = push_part(stars, 0, begin, size, stars.members[begin])
            while waiting > 0:
                waiting, links = decompose(graph, work, stars, waiting, links, width)
            begin += size
    for i in range(begin):
        stars.part[stars.members[i]] = OUTSIDE
    return links


def low_stretch_tree(
    graph: Graph, work: Workspace, loads: npt.ArrayLike = 1.0, width: float = WIDTH
) -> Trees:
    """A spanning tree of low average stretch (Eq. 2), links weighing as ``loads`` say.

    Args:
        loads: multiplicity of each link, above zero, or one for all.
        width: how wide cones may grow, as a share of the radius.
    """
    multiplicities = np.array(np.broadcast_to(np.asarray(loads, np.float64), graph.links))
    stars = make_stars(graph)
    stars.loads[:] = multiplicities
    stars.loaded[:] = np.arange(graph.links)
    links = write_low_stretch_forest(graph, work, stars, graph.links, width)
    return hung_up(graph, work, links, 0)
