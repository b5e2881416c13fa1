"""Scribe (Castro, Druschel, Kermarrec, Rowstron, IEEE JSAC 20, 2002) over Pastry: a tree a topic.

The root of a topic is the node nearest to its key. Who subscribes sends towards it; each node on
the way takes the sender for a child, and goes on unless it is in the tree already. An event goes to
the root by Pastry, and from there down the tree.

Ranges are mapped to topics: the domain of the first attribute is cut into 2^cell_bits cells, a
topic each. A node subscribes to all cells that one of its ranges reaches into, an event goes to the
topic of the cell that it is in, and nodes filter by all attributes what they get.

Each round a parent sends its children a heartbeat for each topic. A child that misses them
subscribes anew, one that gets some of a node which is not its parent says so. A node without
children that does not subscribe leaves the tree. Departs from the paper: publishers do not keep
the addresses of roots, each of an event's hops to the root is Pastry's; events that come back on
the way there are sent another way (as in MSPastry); nodes with many children do not pass any on.
"""

from pastry import MOST_HOPS, Pastry, next_hop

import gossamer.sim as gs

Subscribe = gs.message("Subscribe", topic=int)
Prune = gs.message("Prune", topic=int)
Heartbeat = gs.message("Heartbeat", topic=int)
Upward = gs.message("Upward", event=int, hops=int, values=gs.items("attributes"))
Downward = gs.message("Downward", event=int, hops=int, depth=int, values=gs.items("attributes"))

TOPICS = 0x746F706963  # of keys
VALUE_BITS = 62
UPWARD = Upward.kind


class Scribe(gs.PubSub):
    cell_bits: int = gs.setting(6, low=0, high=12)
    patience: int = gs.setting(2, low=1)  # rounds without a heartbeat
    children: int = gs.setting(512, low=1)  # of all topics of a node
    memory: int = gs.setting(512, low=1)  # events that are remembered
    pending: int = gs.setting(16, low=1)  # events on their way to the root that are kept

    pastry = gs.layer(Pastry)

    wanted = gs.column(bool, lambda own: 1 << own.cell_bits)
    joined = gs.column(bool, lambda own: 1 << own.cell_bits)
    parent = gs.column(int, lambda own: 1 << own.cell_bits, initial=-1)
    heard = gs.column(int, lambda own: 1 << own.cell_bits)
    child = gs.column(int, "children", initial=-1)
    topic_of = gs.column(int, "children")
    seen = gs.column(int, "memory", initial=-1)

    sent_to = gs.column(int, "pending", initial=-1)
    sent = gs.column(int, "pending")
    sent_hops = gs.column(int, "pending")
    sent_values = gs.column(int, lambda own: own.pending * own.attributes)
    turn = gs.column(int)
    beat = gs.Timer(rounds=1)

    def on_start(self, me, net, contact):
        if net.life > 1:  # others may have sent to one that starts for the first time
            self.joined[me, :] = False
            self.child[me, :] = -1
            self.sent_to[me, :] = -1
        find_topics(self, me)
        subscribe(self, me, net)

    def on_resubscribe(self, me, net, sender):
        find_topics(self, me)
        subscribe(self, me, net)

    def on_subscribe(self, me, net, sender, topic):
        place = child_place(self, me, topic, sender)
        if place < 0:
            place = gs.count_in(self.child[me])
            if place == self.children:
                return
            self.child[me, place], self.topic_of[me, place] = sender, topic
        if not self.joined[me, topic]:
            join(self, me, net, topic)
        elif self.parent[me, topic] == sender:
            self.parent[me, topic] = -1  # two that lead to each other: another way next round

    def on_prune(self, me, net, sender, topic):
        remove_child(self, me, child_place(self, me, topic, sender))

    def on_heartbeat(self, me, net, sender, topic):
        if self.joined[me, topic] and self.parent[me, topic] == sender:
            self.heard[me, topic] = net.round
        else:
            Prune.send(net, sender, topic)

    def on_beat(self, me, net):
        subscribe(self, me, net)
        for topic in range(len(self.joined[me])):
            if self.joined[me, topic]:
                tend(self, me, net, topic)
        for place in range(gs.count_in(self.child[me])):
            Heartbeat.send(net, self.child[me, place], self.topic_of[me, place])

    def on_publish(self, me, net, sender, event, values):
        climb(self, me, net, event, 0, values)

    def on_upward(self, me, net, sender, event, hops, values):
        climb(self, me, net, event, hops, values)

    def on_downward(self, me, net, sender, event, hops, depth, values):
        spread(self, me, net, sender, event, hops, depth, values)

    def on_unreachable(self, me, net, to, kind):
        """Another parent, one child less, and another way for events that came back."""
        for place in range(gs.count_in(self.child[me]) - 1, -1, -1):
            if self.child[me, place] == to:
                remove_child(self, me, place)
        for topic in range(len(self.joined[me])):
            if self.joined[me, topic] and self.parent[me, topic] == to:
                join(self, me, net, topic)
        for place in range(self.pending if kind == UPWARD else 0):
            if self.sent_to[me, place] == to:
                self.sent_to[me, place] = -1
                first = place * self.attributes
                values = self.sent_values[me, first : first + self.attributes]
                climb(self, me, net, self.sent[me, place], self.sent_hops[me, place], values)

    def table_entries(self, run):
        return (self.child >= 0).sum(axis=1)

    def overlay(self, run):
        return {"parent": gs.links_in(self.parent * self.joined - ~self.joined)}


@gs.rule
def key_of(topic):
    return gs.mix(TOPICS, topic, 0) >> 2


@gs.rule
def cell_of(self, value):
    return value >> (VALUE_BITS - self.cell_bits)


@gs.rule
def find_topics(self, me):
    """The cells that ranges of the first attribute reach into."""
    self.wanted[me, :] = False
    for first in range(0, len(self.low[me]), self.attributes):
        low, high = self.low[me, first], self.high[me, first]
        if low <= high:
            for topic in range(cell_of(self, low), cell_of(self, high) + 1):
                self.wanted[me, topic] = True


@gs.rule
def subscribe(self, me, net):
    """Join the trees of all topics that the node wants, once Pastry has taken it in."""
    if self.pastry.ready[me]:
        for topic in range(len(self.wanted[me])):
            if self.wanted[me, topic] and not self.joined[me, topic]:
                join(self, me, net, topic)


@gs.rule
def join(self, me, net, topic):
    """Become a child of the next node on the way to the root, or the root."""
    to = next_hop(self.pastry, me, key_of(topic))
    self.joined[me, topic], self.heard[me, topic] = True, net.round
    self.parent[me, topic] = -1 if to == me else to
    if to != me:
        Subscribe.send(net, to, topic)


@gs.rule
def tend(self, me, net, topic):
    """Leave a tree for which the node is of no use, or subscribe anew where a parent is gone."""
    parent = self.parent[me, topic]
    if not self.wanted[me, topic] and child_place(self, me, topic, -1) < 0 and parent >= 0:
        self.joined[me, topic] = False
        Prune.send(net, parent, topic)
    else:
        missed = parent >= 0 and self.heard[me, topic] + self.patience < net.round
        if missed or (parent < 0 and next_hop(self.pastry, me, key_of(topic)) != me):
            join(self, me, net, topic)


@gs.rule
def child_place(self, me, topic, node):
    """Where a child of a topic stands, any one of -1; -1 of none."""
    place = 0
    while place < self.children and self.child[me, place] >= 0:
        if self.topic_of[me, place] == topic and (node < 0 or self.child[me, place] == node):
            return place
        place += 1
    return -1


@gs.rule
def remove_child(self, me, place):
    if place >= 0:
        last = gs.count_in(self.child[me]) - 1
        self.child[me, place] = self.child[me, last]
        self.topic_of[me, place] = self.topic_of[me, last]
        self.child[me, last] = -1


@gs.rule
def climb(self, me, net, event, hops, values):
    """Pass an event on towards the root of its topic, and keep it in case it comes back."""
    to = next_hop(self.pastry, me, key_of(cell_of(self, values[0])))
    if to == me or hops == MOST_HOPS:  # tables of newcomers may lead in circles
        spread(self, me, net, -1, event, hops, 0, values)
        return
    place = self.turn[me] % self.pending
    self.turn[me] += 1
    self.sent_to[me, place], self.sent[me, place], self.sent_hops[me, place] = to, event, hops
    for a in range(self.attributes):
        self.sent_values[me, place * self.attributes + a] = values[a]
    Upward.send(net, to, event, hops + 1, values)


@gs.rule
def spread(self, me, net, sender, event, hops, depth, values):
    """Hand an event that is new to the application, if it wants it, and to all children."""
    if self.seen[me, event % self.memory] == event:
        return
    self.seen[me, event % self.memory] = event
    if gs.wants(self, me, values):
        gs.deliver(net, event, hops, depth)
    topic = cell_of(self, values[0])
    for place in range(gs.count_in(self.child[me])):
        if self.topic_of[me, place] == topic and self.child[me, place] != sender:
            Downward.send(net, self.child[me, place], event, hops + 1, depth + 1, values)
