"""PolderCast (Setty, van Steen, Vitenberg, Voulgaris, Middleware 2012): a ring a topic, no relays.

Nodes gossip about who wants which topics. Each keeps those who share most topics with it, Vicinity,
and of each of its topics the nodes next to it on a ring of all who want it, by random identifiers,
Rings. An event goes to both ring neighbours and to some others of its topic, and so to nobody who
does not want the topic; who has it already does nothing.

Ranges are mapped to topics: the domain of the first attribute is cut into 2^cell_bits cells, a
topic each, and nodes filter by all attributes what they get. Departs from the paper: random peers
are those of Newscast, not Cyclon; nodes that do not want a topic remember one that does, for what
they publish, and ask at random if they know none.
"""

import numpy as np

import gossamer.sim as gs

VALUE_BITS = 62
VIEW, OFFER = 20, 16  # nodes of the vicinity, and in a message
MOST_HOPS = 64  # of an event that looks for somebody who wants its topic

Trade = gs.message("Trade", answer=bool, mask=int, known=gs.items(2 * OFFER))
Copy = gs.message("Copy", event=int, hops=int, depth=int, values=gs.items("attributes"))


class PolderCast(gs.PubSub):
    cell_bits: int = gs.setting(5, low=0, high=5)
    fanout: int = gs.setting(4, low=2)  # two of them are ring neighbours
    memory: int = gs.setting(1024, low=1)  # events that are remembered

    peers = gs.Sampler("newscast", view_size=20)
    identifier = gs.column(int)
    mask = gs.column(int)  # of the topics that the node wants
    near, masks = gs.column(int, VIEW, initial=-1), gs.column(int, VIEW)
    after = gs.column(int, lambda own: 1 << own.cell_bits, initial=-1)
    before = gs.column(int, lambda own: 1 << own.cell_bits, initial=-1)
    contact = gs.column(int, lambda own: 1 << own.cell_bits, initial=-1)
    gone = gs.column(int, VIEW, initial=-1)  # lately, so that nobody learns of them again
    seen = gs.column(int, "memory", initial=-1)
    offer = gs.column(int, 2 * OFFER)
    beat = gs.Timer(rounds=1)

    @gs.initialiser
    def draw_identifiers(self, run):
        self.identifier[:] = gs.mix_many(self.seed, np.arange(self.nodes), 1)

    def on_start(self, me, net, contact):
        if net.life > 1:  # others may have sent to one that starts for the first time
            self.near[me, :], self.gone[me, :], self.seen[me, :] = -1, -1, -1
            self.after[me, :], self.before[me, :], self.contact[me, :] = -1, -1, -1
        find_topics(self, me)
        if contact >= 0:
            trade(self, me, net, contact, True, self.mask[me])

    def on_resubscribe(self, me, net, sender):
        """Want other topics, of which those who are known may want some."""
        find_topics(self, me)
        for topic in range(len(self.after[me])):
            if not self.mask[me] >> topic & 1:
                self.after[me, topic], self.before[me, topic] = -1, -1

    def on_beat(self, me, net):
        """Trade knowledge with a random peer, one of the vicinity, and a successor on a ring."""
        peer = gs.random_peer(self.peers, me, gs.draw(self, me))
        if peer >= 0:
            trade(self, me, net, peer, True, self.mask[me])
        known = gs.count_in(self.near[me])
        if known > 0:
            place = gs.draw_below(self, me, known)
            trade(self, me, net, self.near[me, place], True, self.masks[me, place])
        topics = len(self.after[me])
        for turn in range(topics):
            topic = (net.round + turn) % topics
            if self.after[me, topic] >= 0:
                trade(self, me, net, self.after[me, topic], True, 1 << topic)
                break

    def on_trade(self, me, net, sender, answer, mask, known):
        if answer:  # before the sender itself is the one known to want its topics
            trade(self, me, net, sender, False, mask)
        gs.remove_from(self.gone[me], sender)
        forget_topics(self, me, sender, mask)
        learn(self, me, sender, mask, True)
        for place in range(0, len(known), 2):
            learn(self, me, known[place], known[place + 1], False)

    def on_publish(self, me, net, sender, event, values):
        take(self, me, net, -1, event, 0, 0, values)

    def on_copy(self, me, net, sender, event, hops, depth, values):
        take(self, me, net, sender, event, hops, depth, values)

    def on_unreachable(self, me, net, to, kind):
        gs.put_into(self, me, self.gone[me], to)
        forget_topics(self, me, to, 0)

    def table_entries(self, run):
        return (self.after >= 0).sum(axis=1) + (self.before >= 0).sum(axis=1)

    def overlay(self, run):
        return {"ring": gs.links_in(self.after), "vicinity": gs.links_in(self.near)}


@gs.rule
def cell_of(self, value):
    return value >> (VALUE_BITS - self.cell_bits)


@gs.rule
def find_topics(self, me):
    """The cells that ranges of the first attribute reach into, as bits."""
    self.mask[me] = 0
    for first in range(0, len(self.low[me]), self.attributes):
        low, high = self.low[me, first], self.high[me, first]
        if low <= high:
            for topic in range(cell_of(self, low), cell_of(self, high) + 1):
                self.mask[me] |= 1 << topic


@gs.rule
def shared(one, other):
    """How many topics two masks share."""
    count, both = 0, one & other
    while both:
        both &= both - 1
        count += 1
    return count


@gs.rule
def ahead(self, me, node):
    """How far a node is from me on the rings, clockwise."""
    return (self.identifier[node] - self.identifier[me]) % (1 << VALUE_BITS)


@gs.rule
def learn(self, me, node, mask, itself):
    """Let a node that wants these topics, as it says or others do, be a neighbour where it fits."""
    if node == me or gs.holds(self.gone[me], node):
        return
    for topic in range(len(self.after[me])):
        if mask >> topic & 1:
            if itself or self.contact[me, topic] < 0:
                self.contact[me, topic] = node
            if self.mask[me] >> topic & 1:
                after, before = self.after[me, topic], self.before[me, topic]
                if after < 0 or ahead(self, me, node) < ahead(self, me, after):
                    self.after[me, topic] = node
                if before < 0 or ahead(self, node, me) < ahead(self, before, me):
                    self.before[me, topic] = node
    place, worth = gs.place_in(self.near[me], node), shared(mask, self.mask[me])
    if place < 0 and worth > 0:
        place = gs.count_in(self.near[me])
        if place == VIEW:
            place, least = -1, worth
            for k in range(VIEW):
                other = shared(self.masks[me, k], self.mask[me])
                if other < least:
                    place, least = k, other
        if place >= 0:
            self.near[me, place], self.masks[me, place] = node, mask


@gs.rule
def forget_topics(self, me, node, mask):
    """A node wants no topics but those of a mask: let it be no neighbour for any other."""
    for topic in range(len(self.after[me])):
        if not mask >> topic & 1:
            if self.after[me, topic] == node:
                self.after[me, topic] = -1
            if self.before[me, topic] == node:
                self.before[me, topic] = -1
            if self.contact[me, topic] == node:
                self.contact[me, topic] = -1
    place = gs.place_in(self.near[me], node)
    if place >= 0:
        last = gs.count_in(self.near[me]) - 1
        self.near[me, place], self.masks[me, place] = self.near[me, last], self.masks[me, last]
        self.near[me, last] = -1


@gs.rule
def trade(self, me, net, to, answer, mask):
    """Tell a node that wants these topics of others that want some of them."""
    size = 0
    for topic in range(len(self.after[me])):
        for side in range(3):
            node = self.after[me, topic] if side == 0 else self.before[me, topic]
            if side == 2:
                node = self.contact[me, topic]
            if mask >> topic & 1 and node >= 0 and node != to and size < OFFER:
                self.offer[me, 2 * size], self.offer[me, 2 * size + 1] = node, 1 << topic
                size += 1
    begin = gs.draw_below(self, me, VIEW)
    for k in range(VIEW):
        place = (begin + k) % VIEW
        node = self.near[me, place]
        if node >= 0 and node != to and size < OFFER:
            self.offer[me, 2 * size], self.offer[me, 2 * size + 1] = node, self.masks[me, place]
            size += 1
    Trade.send(net, to, answer, self.mask[me], self.offer[me, : 2 * size])


@gs.rule
def take(self, me, net, sender, event, hops, depth, values):
    """Pass an event on among those who want its topic, or to one of them."""
    topic = cell_of(self, values[0])
    if not self.mask[me] >> topic & 1:
        if sender >= 0:
            trade(self, me, net, sender, False, 1 << topic)
        to = self.contact[me, topic]
        if to < 0 or to == sender:
            to = gs.random_peer(self.peers, me, gs.draw(self, me))
        if to >= 0 and hops < MOST_HOPS:
            Copy.send(net, to, event, hops + 1, 0, values)
        return
    if self.seen[me, event % self.memory] == event:
        return
    self.seen[me, event % self.memory] = event
    if gs.wants(self, me, values):
        gs.deliver(net, event, hops, depth)
    after, before = self.after[me, topic], self.before[me, topic]
    if after >= 0 and after != sender:
        Copy.send(net, after, event, hops + 1, depth + 1, values)
    if before >= 0 and before != sender and before != after:
        Copy.send(net, before, event, hops + 1, depth + 1, values)
    begin, left = gs.draw_below(self, me, VIEW), self.fanout - 2
    for k in range(VIEW):
        node = self.near[me, (begin + k) % VIEW]
        fits = node >= 0 and self.masks[me, (begin + k) % VIEW] >> topic & 1
        if left > 0 and fits and node != sender and node != after and node != before:
            Copy.send(net, node, event, hops + 1, depth + 1, values)
            left -= 1
