"""Chord's ring, as it was published and as it was repaired, to be explored.

`Chord` is the maintenance of the ring of Stoica, Morris, Karger, Kaashoek, Balakrishnan, "Chord: A
scalable peer-to-peer lookup service" (SIGCOMM 2001), with a list of successors: join, stabilise,
notify, and the removal of nodes that do not answer. `Repaired` follows Zave, "Reasoning about
identifier spaces: how to make Chord correct" (TSE 2017): a new successor is adopted with its list
only when it has answered, who has joined has a whole list, and a ring of ``successors`` + 1 members
is there from the beginning and never fails.

Rows are identifiers: nodes 0 to n - 1 are on the ring in this order.
"""

import gossamer.sim as gs

KEPT = 2  # successors in a list, r in the papers
NOBODY = -1

Find = gs.message("Find", joining=int)
Found = gs.message("Found", successor=int)
Ask = gs.message("Ask")
Tell = gs.message("Tell", predecessor=int, successors=gs.items(KEPT))
Notify = gs.message("Notify")


@gs.rule
def is_between(first, node, last):
    """Whether a node is on the way from one node of the ring to another; the ends are not."""
    if first < last:
        return first < node and node < last
    return node > first or node < last


@gs.rule
def next_up(self, alive, node):
    """The first of a node's successors that is up, by whom the ring goes on."""
    for place in range(KEPT):
        other = self.successors[node, place]
        if other >= 0 and alive[other]:
            return other
    return NOBODY


@gs.rule
def is_member(self, alive, node):
    return alive[node] and self.successors[node, 0] >= 0


@gs.rule
def on_ring(self, alive, node):
    """A node of the ring to which the successors of a member lead, NOBODY if they lead nowhere."""
    for _ in range(self.nodes):
        node = next_up(self, alive, node)
        if node < 0:
            return NOBODY
    return node


class Chord(gs.Protocol):
    """As published: no version promises anything if all in a list of successors fail at a time."""

    members: int = gs.setting(2, low=1)  # who are the ring at first; the others join

    successors = gs.column(int, KEPT, initial=NOBODY)
    predecessor = gs.column(int, initial=NOBODY)

    stabilise = gs.Timer(rounds=1)
    check = gs.Timer(rounds=1)

    alike = gs.symmetric_nodes(
        "successors", "predecessor", "Find.joining", "Found.successor", "Tell.predecessor",
        "Tell.successors", rotations=True,
    )  # fmt: skip

    @gs.initialiser
    def ring_of_members(self, run):
        ring = [place * self.nodes // self.members for place in range(self.members)]
        for place, node in enumerate(ring):
            self.predecessor[node] = ring[place - 1]
            for later in range(KEPT):
                self.successors[node, later] = ring[(place + later + 1) % len(ring)]
        run.crash([node for node in range(self.nodes) if node not in ring])

    # A node joins by asking any other for its successor, by which the question is passed on.

    def on_start(self, me, net, contact):
        if contact >= 0:
            self.successors[me] = NOBODY
            self.predecessor[me] = NOBODY
            Find.send(net, contact, me)

    def on_find(self, me, net, sender, joining):
        after = self.successors[me, 0]
        if after < 0:
            return
        if joining == after or is_between(me, joining, after) or after == me:
            Found.send(net, joining, after)
        else:
            Find.send(net, after, joining)

    def on_found(self, me, net, sender, successor):
        if self.successors[me, 0] < 0:
            self.successors[me, 0] = successor

    # A node asks its successor for its predecessor, which is a better one if it is between them.

    def on_stabilise(self, me, net):
        if self.successors[me, 0] >= 0:
            Ask.send(net, self.successors[me, 0])

    def on_ask(self, me, net, sender):
        Tell.send(net, sender, self.predecessor[me], self.successors[me])

    def on_tell(self, me, net, sender, predecessor, successors):
        if sender != self.successors[me, 0]:
            return
        if predecessor >= 0 and predecessor != me and is_between(me, predecessor, sender):
            self.successors[me, 0] = predecessor
            self.successors[me, 1] = sender
        else:
            self.successors[me, 1] = successors[0]
        Notify.send(net, self.successors[me, 0])

    def on_notify(self, me, net, sender):
        mine = self.predecessor[me]
        if mine < 0 or is_between(mine, sender, me):
            self.predecessor[me] = sender

    # Nodes that cannot be reached are removed.

    def on_check(self, me, net):
        if self.predecessor[me] >= 0 and self.predecessor[me] != me:
            Ask.send(net, self.predecessor[me])

    def on_unreachable(self, me, net, to, kind):
        if self.predecessor[me] == to:
            self.predecessor[me] = NOBODY
        if self.successors[me, 0] == to:
            self.successors[me, 0] = self.successors[me, 1]
            self.successors[me, 1] = NOBODY

    @gs.invariant
    @gs.rule
    def a_ring(self, alive):
        """Some members are on a ring."""
        for node in range(self.nodes):
            if is_member(self, alive, node) and on_ring(self, alive, node) >= 0:
                return True
        return False

    @gs.invariant
    @gs.rule
    def one_ring(self, alive):
        """The successors of all members lead to the same ring."""
        known = NOBODY
        for node in range(self.nodes):
            if is_member(self, alive, node):
                place = on_ring(self, alive, node)
                lowest = place
                for _ in range(self.nodes):
                    lowest = min(lowest, place)
                    place = next_up(self, alive, max(place, 0))
                if lowest < 0 or (known >= 0 and lowest != known):
                    return False
                known = lowest
        return True

    @gs.invariant
    @gs.rule
    def ordered_ring(self, alive):
        """Once around a ring is once through the identifiers."""
        for node in range(self.nodes):
            first = on_ring(self, alive, node) if is_member(self, alive, node) else NOBODY
            place, gone = first, 0
            for _ in range(self.nodes):
                if place >= 0 and (gone == 0 or place != first):
                    after = next_up(self, alive, place)
                    gone += (after - place - 1) % self.nodes + 1
                    place = after
            if first >= 0 and gone != self.nodes:
                return False
        return True

    @gs.eventually
    @gs.rule
    def ideal_ring(self, alive):
        """Every member's successor is the next member that is up."""
        for node in range(self.nodes):
            if is_member(self, alive, node):
                after = (node + 1) % self.nodes
                while not is_member(self, alive, after):
                    after = (after + 1) % self.nodes
                if self.successors[node, 0] != after:
                    return False
        return True


class Repaired(Chord):
    """With a stable base: those who are members at first, at least `KEPT` + 1, never fail."""

    members: int = gs.setting(KEPT + 1, low=KEPT + 1)

    # Who joins asks its successor for its list before it is a member.

    def on_found(self, me, net, sender, successor):
        if self.successors[me, 0] < 0:
            Ask.send(net, successor)

    def on_ask(self, me, net, sender):
        if self.successors[me, 0] >= 0:
            Tell.send(net, sender, self.predecessor[me], self.successors[me])

    # A predecessor of the successor that may be a better one is asked first, and adopted with its
    # list: it may have failed.

    def on_tell(self, me, net, sender, predecessor, successors):
        first = self.successors[me, 0]
        if first >= 0 and sender != first and not is_between(me, sender, first):
            return
        self.successors[me, 0] = sender
        self.successors[me, 1] = successors[0]
        if predecessor >= 0 and is_between(me, predecessor, sender):
            Ask.send(net, predecessor)
        Notify.send(net, sender)

    # What is left of a list is made whole at once.

    def on_unreachable(self, me, net, to, kind):
        if self.predecessor[me] == to:
            self.predecessor[me] = NOBODY
        if self.successors[me, 0] == to:
            self.successors[me, 0] = self.successors[me, 1]
            Ask.send(net, self.successors[me, 0])

    @gs.assumption
    @gs.rule
    def base_is_up(self, alive):
        """The members of the beginning do not fail."""
        for place in range(self.members):
            if not alive[place * self.nodes // self.members]:
                return False
        return True
