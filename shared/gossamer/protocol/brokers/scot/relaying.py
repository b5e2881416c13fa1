"""Subscriptions around failed links and brokers, under `ScotSettings.take_over`; beyond the paper.
What a backup keeps goes to another the same way, if the link between them does not work.

What is to go over a link that does not work goes by way of the parallel links instead, and is taken
at the other end as if it had come over the link. So routing tables are what they would be.

- Into another cluster: by another broker of the region, or else by the next region.
- Within the cluster, from region r to region s: by another cluster, as a `Bypass` goes. If the
  broker of the cluster in s is dead, the one there that finds this out does in its place what it
  would have done: it tells the brokers of region s, itself included, and takes the subscription on
  to every region behind s but r, where it is taken as if it came from the dead broker.

Links come up again one by one, while messages are on their way around them. So that nothing stays
that was taken back meanwhile, the end of a subscription

- takes every way that the subscription may still be on (`Promises.send`);
- is seen to in the place of a broker that was dead even if that is back (`hand_on`);
- counts though the subscription comes late over the link itself (`TakeOverMemory.ended`);
- and whatever else a broker missed while it was dead is no more once all its neighbours have told
  it what stands, and it has told them (`broadcast.on_synchronise`).
"""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.core.messages import Hop, neighbour
from gossamer.protocol.brokers.scot import broadcast
from gossamer.protocol.brokers.scot.memory.messages import (
    ProxyNotification,
    Relay,
    Subscription,
    Unsubscription,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.topology import BrokerLabel
from gossamer.protocol.kernel.errors import RemoteProtocolError

Relayed = Subscription | Unsubscription | ProxyNotification


def relay(state: State, out: ScotOutbox, name: str, message: Relayed) -> None:
    """Send something around the link to a neighbour, which does not work."""
    here, there = state.position.label, state.labels[name]
    for path in _ways(state, there):
        first = _working(state, path[0])
        if first is not None:
            out.send(first, Relay(message, here, path[1:]))
            return
    state.counters.lost += 1
    if isinstance(message, Subscription) and state.table.get(message.id) is not None:
        state.take_over.doubt(message.id)


def on_relay(state: State, out: ScotOutbox, hop: Hop, message: Relay) -> None:
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
        _take(state, out, neighbour(origin), message.message)
    elif isinstance(message.message, Subscription):
        # Where it comes from has yet to say its name, and will tell it then.
        state.counters.lost += 1


def hand_on(state: State, out: ScotOutbox, message: Relay) -> None:
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
    elif not isinstance(message.message, ProxyNotification) and (
        name is None or isinstance(message.message, Unsubscription)
    ):
        _in_place_of(state, out, there, message)


def _in_place_of(state: State, out: ScotOutbox, dead: BrokerLabel, message: Relay) -> None:
    name = state.named(dead)
    if name is None:
        return
    _take(state, out, neighbour(name), message.message)
    for other in sorted(state.secondary.values()):
        if other != name and other not in state.down:
            out.send(other, Relay(message.message, dead, ()))
    for region in sorted(state.position.primary - {message.origin.region}):
        beside = state.primary_in(region)
        if beside is None or beside in state.down:
            state.counters.lost += 1
        else:
            path = (BrokerLabel(region, dead.cluster),)
            out.send(beside, Relay(message.message, dead, path))


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


def _take(state: State, out: ScotOutbox, hop: Hop, message: Relayed) -> None:
    if isinstance(message, ProxyNotification):
        state.take_over.stand_in(state, out, message.notification, message.cluster)
    elif isinstance(message, Subscription):
        broadcast.on_subscription(state, out, hop, message)
    else:
        if hop.name not in state.down:
            state.take_over.ends(hop.name, message.id)
        broadcast.on_unsubscription(state, out, hop, message)
