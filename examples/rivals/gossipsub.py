"""GossipSub 1.1 (libp2p; Vyzovitis et al., arXiv:2007.02754): a mesh, and gossip about what is new.

One topic has all events: everybody gets everything, and nodes filter what they get. Each node has
some d others in its mesh, both ways; what is new goes to all of them, and what a node publishes to
all peers that it knows (flood publishing). Each round, the heartbeat, a node repairs its mesh and
tells random peers outside of it what it has had lately (IHAVE); who lacks some of that asks for it
(IWANT).

Departs from the specification: peers are found by Newscast, not from a list of those that the
network has connected; nobody has a score, as nobody attacks; there is no back-off after a prune and
no exchange of peers with it.
"""

import gossamer.sim as gs

MOST_IDS = 64  # in one message about events

Graft, Prune = gs.message("Graft"), gs.message("Prune")
Copy = gs.message("Copy", event=int, hops=int, values=gs.items("attributes"))
Have = gs.message("Have", known=gs.items(MOST_IDS))
Want = gs.message("Want", missing=gs.items(MOST_IDS))


class GossipSub(gs.PubSub):
    d: int = gs.setting(6, low=1)
    d_low: int = gs.setting(5, low=1)
    d_high: int = gs.setting(12, low=1)
    d_lazy: int = gs.setting(6, low=0)
    gossip_factor: float = gs.setting(0.25, low=0, high=1)
    history: int = gs.setting(5, low=1)  # rounds for which events are kept
    gossip: int = gs.setting(3, low=1)  # and those of which peers are told
    kept: int = gs.setting(256, low=1)  # events at most
    memory: int = gs.setting(1024, low=1)  # events that are remembered

    peers = gs.Sampler("newscast", view_size=30)
    mesh = gs.column(int, lambda own: 2 * own.d_high, initial=-1)
    seen = gs.column(int, "memory", initial=-1)
    event, hops = gs.column(int, "kept", initial=-1), gs.column(int, "kept")
    since = gs.column(int, "kept")
    values = gs.column(int, lambda own: own.kept * own.attributes)
    turn = gs.column(int)
    ids = gs.column(int, MOST_IDS)
    beat = gs.Timer(rounds=1)

    def on_start(self, me, net, contact):
        if net.life > 1:  # others may have sent to one that starts for the first time
            self.mesh[me, :] = -1
            self.seen[me, :] = -1
            self.event[me, :] = -1
        if contact >= 0 and gs.add_to(self.mesh[me], contact):
            Graft.send(net, contact)

    def on_resubscribe(self, me, net, sender):
        pass

    def on_graft(self, me, net, sender):
        if not gs.holds(self.mesh[me], sender) and not gs.add_to(self.mesh[me], sender):
            Prune.send(net, sender)

    def on_prune(self, me, net, sender):
        gs.remove_from(self.mesh[me], sender)

    def on_unreachable(self, me, net, to, kind):
        gs.remove_from(self.mesh[me], to)

    def on_beat(self, me, net):
        count, known = gs.count_in(self.mesh[me]), gs.peers_known(self.peers, me)
        for _ in range(4 * self.d if count < self.d_low and known > 0 else 0):  # some draw in vain
            peer = gs.random_peer(self.peers, me, gs.draw(self, me))
            if gs.count_in(self.mesh[me]) < self.d and gs.add_to(self.mesh[me], peer):
                Graft.send(net, peer)
        for _ in range(count - self.d if count > self.d_high else 0):
            peer = gs.draw_from(self, me, self.mesh[me])
            gs.remove_from(self.mesh[me], peer)
            Prune.send(net, peer)
        tell(self, me, net, known)

    def on_have(self, me, net, sender, known):
        size = 0
        for event in known:
            if self.seen[me, event % self.memory] != event:
                self.ids[me, size] = event
                size += 1
        if size > 0:
            Want.send(net, sender, self.ids[me, :size])

    def on_want(self, me, net, sender, missing):
        for place in range(self.kept):
            event = self.event[me, place]
            if event >= 0 and gs.holds(missing, event):
                first = place * self.attributes
                values = self.values[me, first : first + self.attributes]
                Copy.send(net, sender, event, self.hops[me, place] + 1, values)

    def on_publish(self, me, net, sender, event, values):
        if accept(self, me, net, event, 0, values):
            pass_on(self, me, net, -1, event, 0, values)
            for place in range(gs.peers_known(self.peers, me)):
                peer = gs.peer_at(self.peers, me, place)
                if not gs.holds(self.mesh[me], peer):
                    Copy.send(net, peer, event, 1, values)

    def on_copy(self, me, net, sender, event, hops, values):
        if accept(self, me, net, event, hops, values):
            pass_on(self, me, net, sender, event, hops, values)

    def overlay(self, run):
        return {"mesh": gs.links_in(self.mesh)}


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
def pass_on(self, me, net, sender, event, hops, values):
    for place in range(gs.count_in(self.mesh[me])):
        if self.mesh[me, place] != sender:
            Copy.send(net, self.mesh[me, place], event, hops + 1, values)


@gs.rule
def tell(self, me, net, known):
    """Forget what is old, and tell random peers outside of the mesh what is not."""
    size = 0
    for place in range(self.kept):
        if self.event[me, place] >= 0:
            age = net.round - self.since[me, place]
            if age >= self.history:
                self.event[me, place] = -1
            elif age < self.gossip and size < MOST_IDS:
                self.ids[me, size] = self.event[me, place]
                size += 1
    outside = known - gs.count_in(self.mesh[me])
    wanted = max(self.d_lazy, int(self.gossip_factor * outside))
    for _ in range(wanted if size > 0 and known > 0 else 0):
        peer = gs.random_peer(self.peers, me, gs.draw(self, me))
        if not gs.holds(self.mesh[me], peer):
            Have.send(net, peer, self.ids[me, :size])
