"""Subscription broadcast in two steps (Sec. 5, Algorithm 1), and covering within a cluster.

In the first step a subscription goes through the cluster of its host broker, which is a tree; it is
*primary* there. In the second each broker of that cluster sends it to its secondary neighbours,
where it is *secondary* and goes no further. So each broker gets it once, and on the shortest way:
the hops between the regions, and one more into another cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from gossamer.protocol.brokers.core.messages import Hop, neighbour
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.state import ScotOutbox, State, wrong_clusters
from gossamer.protocol.brokers.scot.table import Entry
from gossamer.protocol.brokers.scot.topology import BrokerLabel, ClusterBitVector
from gossamer.protocol.kernel.errors import RemoteProtocolError

# Covering within a cluster: what a wider subscription does for a narrower one.
#
# Beyond the paper, which leaves it out (Sec. 7.2) but says that a cluster, a tree, allows it;
# `ScotSettings.covering`. A broker does not pass a subscription on while another one covers it that
# came from the same direction (from the same neighbour, or likewise from a client of its own) and
# was passed on itself. That went to the same brokers, primary and secondary, and leads back here.
#
# Deliveries are the same as without. Take a subscription S and a broker in its cluster that a
# notification for S comes to. Either S is known there, and the next hop is the one that it came
# from. Or some broker on the way keeps S back for T, which covers S and came from the same
# direction; then the notification matches T, or in turn what keeps T back, and moves on the tree
# towards that broker, as all of these lie in one direction. There S is known. Secondary neighbours
# know the same subscriptions, and the vector of T names the cluster that S is in. When T is taken
# back, what it kept back is passed on first; links are first in, first out, so there is no gap.
#
# Where clients are taken over (`take_over`) links fail, and what goes around them may come in
# another order. So T keeps nothing back until all that was to follow from it is acknowledged: from
# then on whoever is to know S knows T, or hears of it before it acknowledges anything. And the end
# of T is sent once what T alone kept back is acknowledged in turn (`take_over.promises`). So S is
# promised no less than T was: a notification for S goes where one for T goes, around failures as
# well, and the backups of a broker know what its clients asked for by themselves.


def keeps_back(state: State, entry: Entry) -> bool:
    """Whether a subscription that is in the table need not be passed on."""
    if not state.settings.covering or state.cluster not in entry.host:
        return False
    return any(
        other.id not in state.covered and state.take_over.stands(other.id)
        for other in state.table.covering(entry)
    )


def uncovered_without(state: State, gone: Entry) -> list[Entry]:
    """Subscriptions that are to be passed on, as one that was has just left the table."""
    if not state.covered or state.cluster not in gone.host:
        return []
    found = []
    for entry in sorted(state.table.covered_by(gone), key=lambda other: other.id):
        if entry.id in state.covered:
            # Taken for passed on at once, so that it may keep back those that follow.
            state.covered.discard(entry.id)
            if keeps_back(state, entry):
                state.covered.add(entry.id)
            else:
                found.append(entry)
    return found


def host_cluster(state: State) -> ClusterBitVector:
    """The vector that a host broker gives its subscriptions (Algorithm 1, lines 4-7)."""
    return ClusterBitVector.of(state.cluster)


def on_subscription(state: State, out: ScotOutbox, hop: Hop, message: m.Subscription) -> None:
    """Take a subscription of a neighbour.

    Raises `RemoteProtocolError`, and leaves everything as it was, unless its one bit is that of the
    neighbour's cluster: no broker passes on what came to it from another cluster.

    Where clients are taken over, what comes again goes on again: it is to be acknowledged once it
    is known everywhere, and the first that came may still be under way.
    """
    _check_host(state, hop, message)
    known = state.table.get(message.id)
    _take(state, out, hop, message)
    if state.take_over.passes_on_again and known is not None and known.hop == hop:
        pass_on_again(state, out, known)


def _take(state: State, out: ScotOutbox, hop: Hop, message: m.Subscription) -> None:
    known = state.table.get(message.id)
    if state.take_over.has_ended(hop.name, message.id):
        state.counters.stale += 1
    elif known is None:
        subscribe(state, out, Entry(message.id, message.filter, hop, message.host))
    elif known.hop != hop:
        state.counters.duplicates += 1


def subscribe(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Save a subscription that is new, and take both steps if it is primary (lines 8-15)."""
    state.table.add(entry)
    if keeps_back(state, entry):
        state.counters.kept_back += 1
        state.covered.add(entry.id)
    else:
        pass_on(state, out, entry)


def on_unsubscription(state: State, out: ScotOutbox, hop: Hop, message: m.Unsubscription) -> None:
    """Take an unsubscription of a neighbour."""
    known = state.table.get(message.id)
    if known is None or known.hop != hop:
        state.counters.stale += 1
    else:
        unsubscribe(state, out, known)


def unsubscribe(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Forget a subscription, and take that along the tree that it made.

    Where clients are taken over, another broker may have passed on what this one kept back, when it
    took this one for dead: then its end goes on from here all the same.
    """
    state.table.remove(entry.id)
    if entry.id in state.covered:
        state.covered.discard(entry.id)
        if state.settings.take_over:
            pass_on_end(state, out, entry)
        return
    uncovered = uncovered_without(state, entry)
    later = state.take_over.replacing(state, out, entry, covered=bool(uncovered))
    for one in uncovered:
        pass_on(state, out, one)
    if later:
        state.take_over.replaced(state, out)
    else:
        pass_on_end(state, out, entry)


def _check_host(state: State, hop: Hop, message: m.Subscription) -> None:
    sender = state.labels[hop.name].cluster
    if message.host != ClusterBitVector.of(sender):
        raise wrong_clusters(
            "Subscription", hop.name, message.host, f"expected only its own, {sender}"
        )


def synchronise(state: State, out: ScotOutbox, neighbour: str) -> None:
    """Tell a neighbour whose link came up all that stands on it; beyond the paper."""
    told = (
        m.Subscription(entry.id, entry.filter, entry.host)
        for entry in state.table
        if entry.id not in state.covered and neighbour in _next_brokers(state, entry)
    )
    anew = neighbour in state.unknown
    out.send(neighbour, m.Synchronise(tuple(told), anew, state.complete))


def on_synchronise(state: State, out: ScotOutbox, hop: Hop, message: m.Synchronise) -> None:
    """Take over what a neighbour tells: first what is new, then away with what is no more.

    From a neighbour without memory only subscriptions of its own clients are taken away: it may
    hear of all others in a moment. Where clients are taken over, subscriptions go around whoever is
    dead: who was not knows more than who was, and its clients are handed back. So a broker tells
    its neighbours again once they all have told it, and then all else that came from it is no more.

    Raises `RemoteProtocolError`, and leaves everything as it was, as `on_subscription` does.
    """
    for told in message.subscriptions:
        _check_host(state, hop, told)
    for told in message.subscriptions:
        _take(state, out, hop, told)
    standing = {told.id for told in message.subscriptions}
    for entry in [one for one in state.table if one.hop == hop and one.id not in standing]:
        if _is_void(state, hop, entry, message):
            unsubscribe(state, out, entry)
    state.behind.discard(hop.name)
    if hop.name in state.unknown:
        state.returned = not message.anew
        first = hop.name not in state.heard
        state.joined = state.joined or (first and bool(message.subscriptions))
    if state.take_over.memory is not None:
        _note_heard(state, out, hop.name)


def _note_heard(state: State, out: ScotOutbox, name: str) -> None:
    """Tell neighbours again what stands, once all of them have told it.

    Only those that wait for that: where neither end takes over clients, none does.
    """
    before = state.complete
    state.heard.add(name)
    if state.complete and not before:
        for other in sorted(state.labels.keys() - state.down):
            if state.settings.take_over or state.takes_over(other):
                synchronise(state, out, other)


def _is_void(state: State, hop: Hop, entry: Entry, message: m.Synchronise) -> bool:
    """Whether a subscription that a neighbour does not tell of is no more."""
    own = entry.id.broker == hop.name
    backed_up = state.takes_over(hop.name)
    if not (state.settings.take_over or backed_up) or hop.name in state.behind:
        return own or not message.anew
    return not (message.anew and backed_up) if own else message.complete


def introduce(state: State, out: ScotOutbox, neighbour: str) -> None:
    """Tell a neighbour whose link came up what it should know of."""
    for entry in state.table:
        if entry.id not in state.covered and neighbour in _next_brokers(state, entry):
            out.send(neighbour, m.Subscription(entry.id, entry.filter, entry.host))


def pass_on(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Send a subscription where it goes on from here."""
    for name in _next_brokers(state, entry):
        out.send(name, m.Subscription(entry.id, entry.filter, entry.host))


def pass_on_again(state: State, out: ScotOutbox, entry: Entry) -> None:
    """Send a subscription that is in the table once more, unless another keeps it back."""
    if entry.id in state.covered:
        if keeps_back(state, entry):
            return
        state.covered.discard(entry.id)
    pass_on(state, out, entry)


def pass_on_end(state: State, out: ScotOutbox, gone: Entry) -> None:
    """Send the end of a subscription where that has gone."""
    for name in _next_brokers(state, gone):
        out.send(name, m.Unsubscription(gone.id))


def _next_brokers(state: State, entry: Entry) -> Iterator[str]:
    """Where a subscription goes on: primary neighbours but the last hop, then secondary ones."""
    if state.cluster in entry.host:
        yield from (name for name in state.primary if entry.hop.is_client or name != entry.hop.name)
        yield from (state.secondary[cluster] for cluster in sorted(state.secondary))


# Subscriptions around failed links and brokers, under `ScotSettings.take_over`; beyond the paper.
# What a backup keeps goes to another the same way, if the link between them does not work.
#
# What is to go over a link that does not work goes by way of the parallel links instead, and is
# taken at the other end as if it had come over the link. So routing tables are what they would be.
#
# - Into another cluster: by another broker of the region, or else by the next region.
# - Within the cluster, from region r to region s: by another cluster, as a `Bypass` goes. If the
#   broker of the cluster in s is dead, the one there that finds this out does in its place what it
#   would have done: it tells the brokers of region s, itself included, and takes the subscription
#   on to every region behind s but r, where it is taken as if it came from the dead broker.
#
# Links come up again one by one, while messages are on their way around them. So that nothing stays
# that was taken back meanwhile, the end of a subscription
#
# - takes every way that the subscription may still be on (`Promises.send`);
# - is seen to in the place of a broker that was dead even if that is back (`hand_on`);
# - counts though the subscription comes late over the link itself (`TakeOverMemory.ended`);
# - and whatever else a broker missed while it was dead is no more once all its neighbours have told
#   it what stands, and it has told them (`broadcast.on_synchronise`).

Relayed = m.Subscription | m.Unsubscription | m.ProxyNotification


def relay(state: State, out: ScotOutbox, name: str, message: Relayed) -> None:
    """Send something around the link to a neighbour, which does not work."""
    here, there = state.position.label, state.labels[name]
    for path in _ways(state, there):
        first = _working(state, path[0])
        if first is not None:
            out.send(first, m.Relay(message, here, path[1:]))
            return
    state.counters.lost += 1
    if isinstance(message, m.Subscription) and state.table.get(message.id) is not None:
        state.take_over.doubt(message.id)


def on_relay(state: State, out: ScotOutbox, hop: Hop, message: m.Relay) -> None:
    """Hand a subscription on, or take it as if it came from where it says.

    Raises `RemoteProtocolError`, and leaves everything as it was, for a path that does not lead to
    a neighbour, and for a subscription from none or of another cluster than it can come from.
    """
    label = message.path[0] if message.path else message.origin
    if not (state.position.is_primary(label) or state.position.is_secondary(label)):
        raise RemoteProtocolError(
            f"Relay from broker {hop.name!r} names {label}, expected a neighbour of its receiver"
        )
    if message.path:
        hand_on(state, out, message)
        return
    origin = state.named(label)
    if origin is not None:
        _take_relayed(state, out, neighbour(origin), message.message)
    elif isinstance(message.message, m.Subscription):
        # Where it comes from has yet to say its name, and will tell it then.
        state.counters.lost += 1


def hand_on(state: State, out: ScotOutbox, message: m.Relay) -> None:
    """Send what is relayed to the next broker on its path, or do what that would do.

    If that was dead and is back, it may not know what was done in its place: an end is seen to by
    both.
    """
    there = message.path[0]
    name = _working(state, there)
    if name is not None:
        out.send(name, evolve(message, path=message.path[1:]))
    if len(message.path) > 1:
        state.counters.lost += name is None
    elif not (message.origin.region != there.region == state.position.label.region):
        return  # Only this leads to it: if it is dead, it is told when it is back.
    elif not isinstance(message.message, m.ProxyNotification) and (
        name is None or isinstance(message.message, m.Unsubscription)
    ):
        _in_place_of(state, out, there, message)


def _in_place_of(state: State, out: ScotOutbox, dead: BrokerLabel, message: m.Relay) -> None:
    name = state.named(dead)
    if name is None:
        return
    _take_relayed(state, out, neighbour(name), message.message)
    for other in sorted(state.secondary.values()):
        if other != name and other not in state.down:
            out.send(other, m.Relay(message.message, dead, ()))
    for region in sorted(state.position.primary - {message.origin.region}):
        beside = state.primary_in(region)
        if beside is None or beside in state.down:
            state.counters.lost += 1
        else:
            path = (BrokerLabel(region, dead.cluster),)
            out.send(beside, m.Relay(message.message, dead, path))


def _working(state: State, label: BrokerLabel) -> str | None:
    name = state.named(label)
    return None if name in state.down else name


def _ways(state: State, there: BrokerLabel) -> list[tuple[BrokerLabel, ...]]:
    """Paths around the link to a neighbour."""
    here = state.position.label
    others = [BrokerLabel(here.region, cluster) for cluster in sorted(state.secondary)]
    if there.cluster == here.cluster:
        return [(one, one._replace(region=there.region), there) for one in others]
    beside = [BrokerLabel(region, here.cluster) for region in sorted(state.position.primary)]
    return [
        *((one, there) for one in others if one != there),
        *((one, one._replace(cluster=there.cluster), there) for one in beside),
    ]


def _take_relayed(state: State, out: ScotOutbox, hop: Hop, message: Relayed) -> None:
    if isinstance(message, m.ProxyNotification):
        state.take_over.stand_in(state, out, message.notification, message.cluster)
    elif isinstance(message, m.Subscription):
        on_subscription(state, out, hop, message)
    else:
        if hop.name not in state.down:
            state.take_over.ends(hop.name, message.id)
        on_unsubscription(state, out, hop, message)
