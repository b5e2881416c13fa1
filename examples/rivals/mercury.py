"""Mercury (Bharambe, Agrawal, Seshan, SIGCOMM 2004): a ring of nodes a hub, a hub an attribute.

A node is in one hub and has a place among the values of its attribute; it answers for those from
there to its successor's place. It knows some successors, nodes of the other hubs, and long links at
ranks that are drawn so that each scale is as likely (Sec. 3.2), whatever the places are. A range of
all attributes is stored at the nodes that answer for it in the hub where it is narrowest, an event
goes to the node of its value in every hub, which sends it to those whose ranges have it.

Departs from the paper: ranks come from the places of 16 nodes that a node has heard of, without
random walks, and the number of nodes is known; nodes do not leave and join again where load is
high, ranges are not copied to successors, and nothing is cached. What is stored is stored again all
`refresh` rounds, and forgotten after three times as many; so newcomers come to know it.
"""

import numpy as np

import gossamer.sim as gs

RING = 1 << 62  # of values
NEAR, SAMPLES = 6, 16  # successors; places that ranks are told by
MOST_HUBS, ACROSS = 16, 2  # and nodes known of each

Enter = gs.message("Enter", newcomer=int)
Ask = gs.message("Ask")
Known = gs.message("Known", nodes=gs.items(NEAR + 2 + ACROSS * MOST_HUBS))
Find = gs.message("Find", origin=int, key=int)
Found = gs.message("Found")
Store = gs.message(
    "Store",
    owner=int,
    box=int,
    spread=bool,
    low=gs.items("attributes"),
    high=gs.items("attributes"),
)
Route = gs.message("Route", event=int, hops=int, hub=int, values=gs.items("attributes"))
Notify = gs.message("Notify", event=int, hops=int, values=gs.items("attributes"))
ROUTE = Route.kind


class Mercury(gs.PubSub):
    links: int = gs.setting(8, low=1)  # long ones
    skew: float = gs.setting(1.0, low=1)  # exponent by which places crowd at the low end
    stored: int = gs.setting(256, low=1)  # ranges at a node
    refresh: int = gs.setting(5, low=1)  # rounds
    memory: int = gs.setting(256, low=1)  # events that are remembered
    pending: int = gs.setting(16, low=1)  # events on their way that are kept

    place = gs.column(int)
    near = gs.column(int, NEAR, initial=-1)
    before, contact = gs.column(int, initial=-1), gs.column(int, initial=-1)
    long = gs.column(int, "links", initial=-1)
    across = gs.column(int, ACROSS * MOST_HUBS, initial=-1)
    sample = gs.column(int, SAMPLES, initial=-1)
    gone = gs.column(int, 2 * NEAR, initial=-1)  # lately, so that nobody learns of them again
    offer = gs.column(int, NEAR + 2 + ACROSS * MOST_HUBS)
    owner, owned = gs.column(int, "stored", initial=-1), gs.column(int, "stored")
    until = gs.column(int, "stored")
    stored_low = gs.column(int, lambda own: own.stored * own.attributes)
    stored_high = gs.column(int, lambda own: own.stored * own.attributes)
    seen = gs.column(int, "memory", initial=-1)
    sent_to = gs.column(int, "pending", initial=-1)
    sent_hub, turn = gs.column(int, "pending"), gs.column(int)
    sent, sent_hops = gs.column(int, "pending"), gs.column(int, "pending")
    sent_values = gs.column(int, lambda own: own.pending * own.attributes)
    tend = gs.Timer(rounds=1)

    @gs.initialiser
    def settle(self, run):
        """Draw places, and give those that are up the right links."""
        drawn = gs.mix_many(self.seed, np.arange(self.nodes), 1) / RING
        self.place[:] = (drawn**self.skew * (RING - 1)).astype(np.int64)
        up = np.flatnonzero(run.alive)
        hubs = [up[up % self.attributes == hub] for hub in range(self.attributes)]
        for hub, members in enumerate(hubs):
            order = members[np.argsort(self.place[members], kind="stable")]
            count = len(order)
            for away in range(1, min(NEAR, count - 1) + 1):
                self.near[order, away - 1] = np.roll(order, -away)
            self.before[order] = np.roll(order, 1) if count > 1 else -1
            for k in range(self.links if count > 1 else 0):
                scale = gs.mix_many(self.seed, order, 2 + k) / RING
                ahead = (np.maximum(count - 1, 1) ** scale).astype(np.int64)
                self.long[order, k] = order[(np.arange(count) + ahead) % count]
            for other, found in enumerate(hubs):
                for k in range(ACROSS if other != hub and len(found) else 0):
                    chosen = gs.mix_many(self.seed, order, 200 + ACROSS * other + k) % len(found)
                    self.across[order, ACROSS * other + k] = found[chosen]

    def on_start(self, me, net, contact):
        if net.life > 1:  # others may have sent to one that starts for the first time
            self.near[me, :], self.long[me, :], self.across[me, :] = -1, -1, -1
            self.sample[me, :], self.gone[me, :], self.before[me] = -1, -1, -1
            self.owner[me, :], self.sent_to[me, :] = -1, -1
        self.contact[me] = contact
        if contact >= 0:
            Enter.send(net, contact, me)
        store_own(self, me, net)

    def on_resubscribe(self, me, net, sender):
        store_own(self, me, net)

    def on_enter(self, me, net, sender, newcomer):
        """Lead a newcomer to whom it follows in its hub."""
        to = next_hop(self, me, newcomer % self.attributes, self.place[newcomer])
        if to >= 0 and to != me and to != newcomer:
            Enter.send(net, to, newcomer)
        Known.send(net, newcomer, self.offer[me, : offered(self, me)])
        learn(self, me, newcomer)

    def on_ask(self, me, net, sender):
        learn(self, me, sender)
        Known.send(net, sender, self.offer[me, : offered(self, me)])

    def on_known(self, me, net, sender, nodes):
        gs.remove_from(self.gone[me], sender)
        learn(self, me, sender)
        for node in nodes:
            learn(self, me, node)

    def on_find(self, me, net, sender, origin, key):
        to = next_hop(self, me, me % self.attributes, key)
        if to != me:
            Find.send(net, to, origin, key)
        elif origin != me:
            Found.send(net, origin)

    def on_found(self, me, net, sender):
        gs.put_into(self, me, self.long[me], sender)

    def on_tend(self, me, net):
        """Compare successors, seek a long link, store again and forget what is old."""
        successor = self.near[me, 0]
        if successor >= 0:
            Ask.send(net, successor)
        elif self.contact[me] >= 0:
            Enter.send(net, self.contact[me], me)
        other = gs.draw_below(self, me, len(self.across[me]))
        if self.across[me, other] >= 0:
            Ask.send(net, self.across[me, other])
        is_full = gs.count_in(self.long[me]) == self.links
        if successor >= 0 and (not is_full or net.round % 8 == 0):
            Find.send(net, me, me, (self.place[me] + drawn_distance(self, me)) % RING)
        for k in range(self.stored):
            if self.until[me, k] < net.round:
                self.owner[me, k] = -1
        if (net.round + me) % self.refresh == 0:
            store_own(self, me, net)

    def on_store(self, me, net, sender, owner, box, spread, low, high):
        store(self, me, net, owner, box, spread, low, high)

    def on_publish(self, me, net, sender, event, values):
        for hub in range(self.attributes):
            route(self, me, net, event, 0, hub, values)

    def on_route(self, me, net, sender, event, hops, hub, values):
        route(self, me, net, event, hops, hub, values)

    def on_notify(self, me, net, sender, event, hops, values):
        if self.seen[me, event % self.memory] != event and gs.wants(self, me, values):
            self.seen[me, event % self.memory] = event
            gs.deliver(net, event, hops, 1)

    def on_unreachable(self, me, net, to, kind):
        """Know one node less, and another way for events that came back."""
        gs.put_into(self, me, self.gone[me], to)
        gs.remove_from(self.near[me], to)
        gs.remove_from(self.sample[me], to)
        while gs.remove_from(self.long[me], to):
            pass
        first = to % self.attributes * ACROSS
        gs.remove_from(self.across[me, first : first + ACROSS], to)
        if self.before[me] == to:
            self.before[me] = -1
        for place in range(self.pending if kind == ROUTE else 0):
            if self.sent_to[me, place] == to:
                self.sent_to[me, place] = -1
                first = place * self.attributes
                values = self.sent_values[me, first : first + self.attributes]
                event, hops = self.sent[me, place], self.sent_hops[me, place]
                route(self, me, net, event, hops, self.sent_hub[me, place], values)

    def table_entries(self, run):
        return (self.owner >= 0).sum(axis=1)

    def overlay(self, run):
        return {"successor": gs.links_in(self.near[:, :1]), "long": gs.links_in(self.long)}


@gs.rule
def ahead(self, me, node):
    """How far a node of the same hub is from me, clockwise."""
    return (self.place[node] - self.place[me]) % RING


@gs.rule
def next_hop(self, me, hub, key):
    """Who is next on the way to a value of a hub; me who answers for it, -1 of nobody."""
    if hub != me % self.attributes:
        return gs.draw_from(self, me, self.across[me, hub * ACROSS : (hub + 1) * ACROSS])
    successor, left = self.near[me, 0], (key - self.place[me]) % RING
    if successor < 0 or left < ahead(self, me, successor):
        return me
    best, farthest = successor, ahead(self, me, successor)
    for k in range(NEAR + self.links):
        node = self.near[me, k] if k < NEAR else self.long[me, k - NEAR]
        if node >= 0 and farthest < ahead(self, me, node) <= left:
            best, farthest = node, ahead(self, me, node)
    return best


@gs.rule
def learn(self, me, node):
    """Let a node stand wherever it fits."""
    if node == me or gs.holds(self.gone[me], node):
        return
    if node % self.attributes != me % self.attributes:
        first = node % self.attributes * ACROSS
        if not gs.holds(self.across[me, first : first + ACROSS], node):
            gs.add_to(self.across[me, first : first + ACROSS], node)
        return
    if not gs.holds(self.sample[me], node):
        gs.put_into(self, me, self.sample[me], node)
    if not gs.holds(self.near[me], node):
        for k in range(NEAR):
            held = self.near[me, k]
            if held < 0 or ahead(self, me, node) < ahead(self, me, held):
                gs.insert_at(self.near[me], k, node)
                break
    before = self.before[me]
    if before < 0 or ahead(self, node, me) < ahead(self, before, me):
        self.before[me] = node


@gs.rule
def offered(self, me):
    """Write whom me knows to the offer; how many they are."""
    size = 0
    for k in range(NEAR + 1 + len(self.across[me])):
        node = self.before[me]
        if k != NEAR:
            node = self.near[me, k] if k < NEAR else self.across[me, k - NEAR - 1]
        if node >= 0:
            self.offer[me, size] = node
            size += 1
    return size


@gs.rule
def drawn_distance(self, me):
    """A distance whose rank is m ** u of m nodes, u uniform: read off the places of the sample."""
    members = max(self.nodes // self.attributes, 2)
    rank = members ** gs.draw_float(self, me)
    count, known = gs.count_in(self.sample[me]), gs.count_in(self.near[me])
    wanted = int(rank / members * count)
    if wanted == 0:
        return int(min(ahead(self, me, self.near[me, known - 1]) / known * rank, RING - 1.0))
    for k in range(count):
        distance, nearer = ahead(self, me, self.sample[me, k]), 0
        for other in range(count):
            nearer += ahead(self, me, self.sample[me, other]) < distance
        if nearer == wanted:
            return distance
    return RING - 1


@gs.rule
def narrowest(self, owner, low, high):
    """The hub in which a range is stored: that of an attribute where it is narrowest."""
    best = owner % self.attributes
    for hub in range(self.attributes):
        if high[hub] - low[hub] < high[best] - low[best]:
            best = hub
    return best


@gs.rule
def store_own(self, me, net):
    for box in range(len(self.low[me]) // self.attributes):
        first = box * self.attributes
        low = self.low[me, first : first + self.attributes]
        high = self.high[me, first : first + self.attributes]
        if low[0] <= high[0]:
            store(self, me, net, me, box, False, low, high)


@gs.rule
def store(self, me, net, owner, box, spread, low, high):
    """Lead a range to where it begins; there and on, as far as it goes, it is kept."""
    hub = narrowest(self, owner, low, high)
    to = me if spread else next_hop(self, me, hub, low[hub])
    if to != me:
        if to >= 0:
            Store.send(net, to, owner, box, False, low, high)
        return
    keep(self, me, net, owner, box, low, high)
    successor = self.near[me, 0]
    if successor >= 0:
        distance = (self.place[successor] - low[hub]) % RING
        is_farther = not spread or distance > (self.place[me] - low[hub]) % RING
        if distance <= high[hub] - low[hub] and is_farther:
            Store.send(net, successor, owner, box, True, low, high)


@gs.rule
def keep(self, me, net, owner, box, low, high):
    """Keep a range, in place of what its owner had stored before, if there is room."""
    place = -1
    for k in range(self.stored - 1, -1, -1):
        is_same = self.owner[me, k] == owner and self.owned[me, k] == box
        if is_same or (place < 0 and self.owner[me, k] < 0):
            place = k
        if is_same:
            break
    if place >= 0:
        self.owner[me, place], self.owned[me, place] = owner, box
        self.until[me, place] = net.round + 3 * self.refresh
        for a in range(self.attributes):
            self.stored_low[me, place * self.attributes + a] = low[a]
            self.stored_high[me, place * self.attributes + a] = high[a]


@gs.rule
def route(self, me, net, event, hops, hub, values):
    """Lead an event to the node of its value in a hub, and keep it in case it comes back."""
    to = next_hop(self, me, hub, values[hub])
    if to == me:
        match(self, me, net, event, hops, values)
    elif to >= 0:
        place = self.turn[me] % self.pending
        self.turn[me] += 1
        self.sent_to[me, place], self.sent[me, place], self.sent_hops[me, place] = to, event, hops
        self.sent_hub[me, place] = hub
        for a in range(self.attributes):
            self.sent_values[me, place * self.attributes + a] = values[a]
        Route.send(net, to, event, hops + 1, hub, values)


@gs.rule
def match(self, me, net, event, hops, values):
    """Send an event to all whose ranges have it."""
    for k in range(self.stored):
        inside = self.owner[me, k] >= 0
        for a in range(self.attributes):
            first = k * self.attributes
            low, high = self.stored_low[me, first + a], self.stored_high[me, first + a]
            inside = inside and low <= values[a] <= high
        if inside:
            Notify.send(net, self.owner[me, k], event, hops + 1, values)
