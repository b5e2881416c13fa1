"""Plumtree (Leitao, Pereira, Rodrigues, SRDS 2007): a tree for pushing, mended by gossip.

Everybody gets everything, and nodes filter what they get. Neighbours are those of the active view
of HyParView. An event is pushed to the eager ones; who has it already says so, and the two are lazy
to each other from then on. Lazy neighbours are told in each round what has come since the last one;
who lacks some of that asks for it, and the two are eager again. So eager links become a tree.

Departs from the paper: what lazy neighbours are told waits for the round, which is the time-out of
Sec. 3.5; who asked in vain asks the next one that tells of the event, a round later. The trees are
not optimised (Sec. 3.8).
"""

import gossamer.sim as gs

MOST_IDS = 64  # in one message about events

Copy = gs.message("Copy", event=int, hops=int, values=gs.items("attributes"))
Prune = gs.message("Prune")
Have = gs.message("Have", known=gs.items(MOST_IDS))
Graft = gs.message("Graft", missing=gs.items(MOST_IDS))


class Plumtree(gs.PubSub):
    active: int = gs.setting(5, low=2, high=5)  # neighbours, of all 35 that HyParView knows
    history: int = gs.setting(5, low=1)  # rounds for which events are kept
    kept: int = gs.setting(256, low=1)  # events at most
    memory: int = gs.setting(1024, low=1)  # events that are remembered

    peers = gs.Sampler("hyparview", view_size=35)
    lazy = gs.column(int, 32, initial=-1)
    seen = gs.column(int, "memory", initial=-1)
    event, hops = gs.column(int, "kept", initial=-1), gs.column(int, "kept")
    since = gs.column(int, "kept")
    values = gs.column(int, lambda own: own.kept * own.attributes)
    asked, asked_in = gs.column(int, "memory", initial=-1), gs.column(int, "memory")
    turn = gs.column(int)
    ids = gs.column(int, MOST_IDS)
    beat = gs.Timer(rounds=1)

    def on_start(self, me, net, contact):
        if net.life > 1:  # others may have sent to one that starts for the first time
            self.lazy[me, :] = -1
            self.seen[me, :] = -1
            self.event[me, :] = -1
            self.asked[me, :] = -1

    def on_resubscribe(self, me, net, sender):
        pass

    def on_publish(self, me, net, sender, event, values):
        accept(self, me, net, event, 0, values)
        push(self, me, net, -1, event, 0, values)

    def on_copy(self, me, net, sender, event, hops, values):
        if accept(self, me, net, event, hops, values):
            gs.remove_from(self.lazy[me], sender)
            push(self, me, net, sender, event, hops, values)
        else:
            gs.put_into(self, me, self.lazy[me], sender)
            Prune.send(net, sender)

    def on_prune(self, me, net, sender):
        gs.put_into(self, me, self.lazy[me], sender)

    def on_beat(self, me, net):
        """Tell lazy neighbours what has come; forget what is old, and who is no neighbour."""
        size = recent(self, me, net)
        for place in range(gs.count_in(self.lazy[me]) - 1, -1, -1):
            if not is_neighbour(self, me, self.lazy[me, place]):
                gs.remove_from(self.lazy[me], self.lazy[me, place])
            elif size > 0:
                Have.send(net, self.lazy[me, place], self.ids[me, :size])

    def on_have(self, me, net, sender, known):
        size = 0
        for event in known:
            place = event % self.memory
            was_asked = self.asked[me, place] == event and self.asked_in[me, place] + 1 >= net.round
            if self.seen[me, place] != event and not was_asked:
                self.asked[me, place], self.asked_in[me, place] = event, net.round
                self.ids[me, size] = event
                size += 1
        if size > 0:
            gs.remove_from(self.lazy[me], sender)
            Graft.send(net, sender, self.ids[me, :size])

    def on_graft(self, me, net, sender, missing):
        gs.remove_from(self.lazy[me], sender)
        for place in range(self.kept):
            event = self.event[me, place]
            if event >= 0 and gs.holds(missing, event):
                first = place * self.attributes
                values = self.values[me, first : first + self.attributes]
                Copy.send(net, sender, event, self.hops[me, place] + 1, values)

    def on_unreachable(self, me, net, to, kind):
        gs.remove_from(self.lazy[me], to)

    def overlay(self, run):
        return {"lazy": gs.links_in(self.lazy)}


@gs.rule
def is_neighbour(self, me, node):
    for place in range(min(self.active, gs.peers_known(self.peers, me))):
        if gs.peer_at(self.peers, me, place) == node:
            return True
    return False


@gs.rule
def accept(self, me, net, event, hops, values):
    """Whether an event is new; if so it is kept, and delivered where it is wanted."""
    if self.seen[me, event % self.memory] == event:
        return False
    self.seen[me, event % self.memory] = event
    place = self.turn[me] % self.kept
    self.turn[me] += 1
    self.event[me, place], self.hops[me, place] = event, hops
    self.since[me, place] = net.round
    for a in range(self.attributes):
        self.values[me, place * self.attributes + a] = values[a]
    if gs.wants(self, me, values):
        gs.deliver(net, event, hops, hops)
    return True


@gs.rule
def push(self, me, net, sender, event, hops, values):
    """Send an event on to the eager neighbours."""
    for place in range(min(self.active, gs.peers_known(self.peers, me))):
        peer = gs.peer_at(self.peers, me, place)
        if peer >= 0 and peer != sender and not gs.holds(self.lazy[me], peer):
            Copy.send(net, peer, event, hops + 1, values)


@gs.rule
def recent(self, me, net):
    """Note the events of the last round to tell of, forget old ones; how many there are to tell."""
    size = 0
    for place in range(self.kept):
        if self.event[me, place] >= 0:
            age = net.round - self.since[me, place]
            if age >= self.history:
                self.event[me, place] = -1
            elif age <= 1 and size < MOST_IDS:
                self.ids[me, size] = self.event[me, place]
                size += 1
    return size
