"""Disjoint sets of brokers, and links in order of length: what Kruskal's algorithm needs."""

from __future__ import annotations

from gossamer.protocol.dissemination.graphs.graph import Reals, Words
from gossamer.protocol.kernel.rules import inline_rule, rule


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
