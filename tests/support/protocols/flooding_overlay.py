"""An overlay that sends every event to all peers that a node knows."""

import gossamer.sim as gs

Copy = gs.message("Copy", event=int, hops=int, values=gs.items("attributes"))


class Flooding(gs.PubSub):
    memory: int = gs.setting(64, low=1)
    peers = gs.Sampler("newscast", view_size=12)
    seen = gs.column(int, "memory", initial=-1)
    changes = gs.column(int)

    def on_publish(self, me, net, sender, event, values):
        flood(self, me, net, me, event, 0, values)

    def on_copy(self, me, net, sender, event, hops, values):
        flood(self, me, net, sender, event, hops, values)

    def on_resubscribe(self, me, net, sender):
        self.changes[me] += 1

    def table_entries(self, run):
        return (self.peers.views >= 0).sum(axis=1)

    def overlay(self, run):
        return {"everyone": [(0, 1), (1, 2), (0, 1)]}


@gs.rule
def flood(self, me, net, sender, event, hops, values):
    """Hand an event that is new to the application, if it wants it, and to all peers."""
    if self.seen[me, event % self.memory] == event:
        return
    self.seen[me, event % self.memory] = event
    if gs.wants(self, me, values):
        gs.deliver(net, event, hops, hops)
    for place in range(gs.peers_known(self.peers, me)):
        peer = gs.peer_at(self.peers, me, place)
        if peer != sender:
            Copy.send(net, peer, event, hops + 1, values)
