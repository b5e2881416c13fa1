"""The tables of Kademlia (Maymounkov, Mazieres, IPTPS 2002): k-buckets, and the nearest by XOR."""

import numpy as np

import gossamer.sim as gs

BUCKETS = 20  # of k nodes each; the last one has all that are nearer still


@gs.rule
def apart(one, other):
    """How far two nodes are apart; identifiers are hashes of rows."""
    return gs.mix(0, one, 0) ^ gs.mix(0, other, 0)


@gs.rule
def learn(table, k, base, node):
    """Let a node into its bucket if that has fewer than k: those in it are up, and stay."""
    bucket = 0  # how many bits of their identifiers are the same, from the left
    while bucket < BUCKETS - 1 and apart(base, node) >> 61 - bucket == 0:
        bucket += 1
    if node != base:
        gs.add_to(table[bucket * k : bucket * k + k], node)


@gs.rule
def insert(row, target, node):
    """Insert a node where the nearest to a target come first; returns the place, -1 of none."""
    place = len(row) if node >= 0 else 0
    while place > 0 and (row[place - 1] < 0 or apart(target, node) < apart(target, row[place - 1])):
        place -= 1
    if node < 0 or place == len(row) or (place > 0 and row[place - 1] == node):
        return -1
    gs.insert_at(row, place, node)
    return place


@gs.rule
def fill(row, target, table):
    """Fill a row with the nodes of a table that are the nearest to a target."""
    row[:] = -1
    for node in table:
        insert(row, target, node)


@gs.rule
def note(near, depth, asked, target, node, hops):
    """Insert a node that was not asked, so many hops away; returns whether it is that near."""
    place = insert(near, target, node)
    if place >= 0:
        gs.insert_at(depth, place, hops)
        gs.insert_at(asked, place, False)
    return place >= 0


def nearest(nodes, target, k):
    """The k of some nodes that are the nearest to a target, as a list."""
    return sorted(nodes, key=lambda node: apart(target, node))[:k]


def settled_tables(run, k):
    """Tables of nodes that have been up for long: of each bucket k random nodes, or all."""
    nodes, random = len(run.nodes), run.random()
    table = np.full((nodes, k * BUCKETS), -1)
    places = gs.mix_many(0, np.arange(nodes), 0)
    order = np.argsort(places)
    for bucket in range(BUCKETS):
        bits = 61 - bucket  # those that an identifier of the bucket is free to have
        begins = (places >> bits ^ 1) << bits
        ends = begins + (1 << bits)
        ranges = np.searchsorted(places[order], np.column_stack((begins, ends)))
        for row, (first, last) in zip(table, ranges.tolist(), strict=True):
            count = min(k, last - first)
            chosen = first + random.choice(last - first, count, replace=False) if count else []
            row[bucket * k : bucket * k + count] = order[chosen]
    return table
