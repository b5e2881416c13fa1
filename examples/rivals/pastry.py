"""Pastry (Rowstron, Druschel, Middleware 2001): routing to the node nearest to a key.

Nodes have identifiers of 60 bits, 15 digits to the base 16 (the paper's b = 4), a leaf set of the 8
nearest on either side, and a table with a row a digit. Nodes that are up when a run begins have
whole tables, as they would be when all had joined; others join by the paper's protocol.

Departs from the paper: there is no neighbourhood set and no proximity, any node may stand in a
place of the table. As in MSPastry (Castro et al., DSN 2004) nodes that are heard of are asked
before they become leaves, and each round a node sends its leaf set to its nearest neighbours and
to one leaf more, in turn, and asks a node of its table for a row. Nodes learn that others are gone
from messages that come back.
"""

import numpy as np

import gossamer.sim as gs

BITS, DIGIT = 60, 4  # of an identifier, and of its digits
RING, COLUMNS = 1 << BITS, 1 << DIGIT
SIDE = 8  # leaves on either side
MOST_HOPS = 64

Join = gs.message("Join", newcomer=int, hops=int)
Ask = gs.message("Ask", row=int)
Known = gs.message("Known", last=bool, nodes=gs.items(2 * SIDE + COLUMNS))
Leaves = gs.message("Leaves", nodes=gs.items(2 * SIDE))
Hello = gs.message("Hello", answer=bool)


class Pastry(gs.Protocol):
    rows: int = gs.setting(8, low=1, high=BITS // DIGIT)  # of the table that are kept

    identifier = gs.column(int)
    table = gs.column(int, lambda own: own.rows * COLUMNS, initial=-1)
    right, left = gs.column(int, SIDE, initial=-1), gs.column(int, SIDE, initial=-1)
    offer = gs.column(int, 2 * SIDE + COLUMNS, initial=-1)
    gone = gs.column(int, 2 * SIDE, initial=-1)  # lately, so that nobody asks them again
    contact, ready = gs.column(int, initial=-1), gs.column(bool)  # joined by whom, and whether
    tend = gs.Timer(rounds=1)

    @gs.initialiser
    def settle(self, run):
        """Give those that are up whole tables."""
        self.identifier[:] = gs.mix_many(self.seed, np.arange(self.nodes), 1) >> 2
        up = np.flatnonzero(run.alive)
        order = up[np.argsort(self.identifier[up], kind="stable")]
        for away in range(1, min(SIDE, len(order) - 1) + 1):
            self.right[order, away - 1] = np.roll(order, -away)
            self.left[order, away - 1] = np.roll(order, away)
        sorted_ids = self.identifier[order]
        for row in range(self.rows):
            free = BITS - DIGIT * (row + 1)
            for digit in range(COLUMNS):
                first = ((sorted_ids >> (free + DIGIT) << DIGIT) | digit) << free
                begin = np.searchsorted(sorted_ids, first)
                count = np.searchsorted(sorted_ids, first + (1 << free)) - begin
                own = (sorted_ids >> free) & (COLUMNS - 1) == digit
                drawn = gs.mix_many(self.seed, order, 2 + row * COLUMNS + digit)
                chosen = order[np.minimum(begin + drawn % np.maximum(count, 1), len(order) - 1)]
                found = np.where(own | (count == 0), -1, chosen)
                self.table[order, row * COLUMNS + digit] = found
        self.ready[up] = True

    def on_start(self, me, net, contact):
        if contact >= 0:
            self.table[me, :] = -1
            self.right[me, :] = -1
            self.left[me, :] = -1
            self.gone[me, :] = -1
            self.contact[me], self.ready[me] = contact, False
            Join.send(net, contact, me, 1)

    def on_join(self, me, net, sender, newcomer, hops):
        """Send a newcomer what it needs of the tables here, and pass it on."""
        key = self.identifier[newcomer]
        to = next_hop(self, me, key)
        last = to in (me, newcomer) or hops == MOST_HOPS
        row = min(shared_digits(self.identifier[me], key), self.rows - 1)
        size = offered(self, me, row, last)
        Known.send(net, newcomer, last, self.offer[me, :size])
        if not last:
            Join.send(net, to, newcomer, hops + 1)

    def on_ask(self, me, net, sender, row):
        size = offered(self, me, row, False)
        Known.send(net, sender, False, self.offer[me, :size])

    def on_known(self, me, net, sender, last, nodes):
        self.ready[me] = self.ready[me] or last
        if learn(self, me, sender):
            Hello.send(net, sender, False)
        for node in nodes:
            if learn(self, me, node):
                Hello.send(net, node, False)

    def on_hello(self, me, net, sender, answer):
        gs.remove_from(self.gone[me], sender)
        learn(self, me, sender)
        if answer:
            Hello.send(net, sender, False)

    def on_leaves(self, me, net, sender, nodes):
        gs.remove_from(self.gone[me], sender)
        learn(self, me, sender)
        for node in nodes:
            if is_leaf(self, me, node) and not gs.holds(self.gone[me], node):
                Hello.send(net, node, True)

    def on_tend(self, me, net):
        """Compare leaf sets with neighbours, and ask somebody for a row of the table."""
        if not self.ready[me]:
            if self.contact[me] >= 0:
                Join.send(net, self.contact[me], me, 1)
            return
        size = offered(self, me, -1, True)
        if size == 0:
            return
        leaves = self.offer[me, :size]
        turn = leaves[net.round % size]
        right, left = self.right[me, 0], self.left[me, 0]
        Leaves.send(net, turn, leaves)
        if right >= 0 and right != turn:
            Leaves.send(net, right, leaves)
        if left >= 0 and left != turn and left != right:
            Leaves.send(net, left, leaves)
        place = gs.draw_below(self, me, len(self.table[me]))
        if self.table[me, place] >= 0:
            Ask.send(net, self.table[me, place], place // COLUMNS)

    def on_unreachable(self, me, net, to, kind):
        forget(self, me, to)
        gs.put_into(self, me, self.gone[me], to)

    def overlay(self, run):
        leaves = np.hstack((self.right, self.left))
        return {"leaf": gs.links_in(leaves), "table": gs.links_in(self.table)}


@gs.rule
def distance(one, other):
    """Between two identifiers, either way round."""
    ahead = (one - other) % RING
    return min(ahead, RING - ahead)


@gs.rule
def shared_digits(one, other):
    """How many digits two identifiers share at their beginning."""
    count = 0
    while count < BITS // DIGIT and (one ^ other) >> (BITS - DIGIT * (count + 1)) == 0:
        count += 1
    return count


@gs.rule
def place_of(self, me, key):
    """The place of the table where a node stands by which me gets nearer to a key; -1 of none."""
    row = shared_digits(self.identifier[me], key)
    if row >= self.rows:
        return -1
    return row * COLUMNS + ((key >> (BITS - DIGIT * (row + 1))) & (COLUMNS - 1))


@gs.rule
def next_hop(self, me, key):
    """Who is next on the way to a key (Sec. 2.3); me where nobody known is nearer."""
    right, left = self.right[me], self.left[me]
    best, nearest = me, distance(self.identifier[me], key)
    whole = right[SIDE - 1] >= 0 and left[SIDE - 1] >= 0
    low = self.identifier[left[SIDE - 1] if whole else me]
    high = self.identifier[right[SIDE - 1] if whole else me]
    if not whole or (key - low) % RING <= (high - low) % RING:
        for place in range(2 * SIDE):
            node = right[place] if place < SIDE else left[place - SIDE]
            if node >= 0 and distance(self.identifier[node], key) < nearest:
                best, nearest = node, distance(self.identifier[node], key)
        return best
    place = place_of(self, me, key)
    if place >= 0 and self.table[me, place] >= 0:
        return self.table[me, place]
    row = shared_digits(self.identifier[me], key)
    for place in range(2 * SIDE + len(self.table[me])):
        node = right[place] if place < SIDE else left[place % SIDE]
        if place >= 2 * SIDE:
            node = self.table[me, place - 2 * SIDE]
        away = distance(self.identifier[max(node, 0)], key)
        if node >= 0 and away < nearest and shared_digits(self.identifier[node], key) >= row:
            best, nearest = node, away
    return best


@gs.rule
def way(self, me, node, clockwise):
    """How far a node is from me, in one direction."""
    ahead = (self.identifier[node] - self.identifier[me]) % RING
    return ahead if clockwise else RING - ahead


@gs.rule
def leaf_place(self, me, node, clockwise):
    """Where a node would stand among the leaves of a side; -1 where it does, or is too far."""
    side = self.right[me] if clockwise else self.left[me]
    for place in range(SIDE):
        if side[place] == node:
            return -1
        if side[place] < 0 or way(self, me, node, clockwise) < way(
            self, me, side[place], clockwise
        ):
            return place
    return -1


@gs.rule
def is_leaf(self, me, node):
    """Whether a node that is no leaf should be one."""
    if node == me:
        return False
    return leaf_place(self, me, node, True) >= 0 or leaf_place(self, me, node, False) >= 0


@gs.rule
def learn(self, me, node):
    """Let a node that is up stand wherever it fits; returns whether that changes anything."""
    if node == me:
        return False
    right, left = leaf_place(self, me, node, True), leaf_place(self, me, node, False)
    if right >= 0:
        gs.insert_at(self.right[me], right, node)
    if left >= 0:
        gs.insert_at(self.left[me], left, node)
    place = place_of(self, me, self.identifier[node])
    fits = place >= 0 and self.table[me, place] < 0
    if fits:
        self.table[me, place] = node
    return right >= 0 or left >= 0 or fits


@gs.rule
def forget(self, me, node):
    """Remove a node that is gone."""
    gs.remove_from(self.right[me], node)
    gs.remove_from(self.left[me], node)
    place = place_of(self, me, self.identifier[node])
    if place >= 0 and self.table[me, place] == node:
        self.table[me, place] = -1


@gs.rule
def offered(self, me, row, leaves):
    """Write a row of the table (-1 for none) and maybe the leaves to the offer; its length."""
    size, offer = 0, self.offer[me]
    for place in range(COLUMNS if row >= 0 else 0):
        node = self.table[me, row * COLUMNS + place]
        if node >= 0:
            offer[size] = node
            size += 1
    for place in range(2 * SIDE if leaves else 0):
        node = self.right[me, place] if place < SIDE else self.left[me, place - SIDE]
        if node >= 0 and gs.place_in(offer[:size], node) < 0:
            offer[size] = node
            size += 1
    return size
