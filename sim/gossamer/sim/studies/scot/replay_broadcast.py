"""Subscription broadcast at scale: brokers are asked once for all subscriptions that are alike.

What a broker does with a new subscription depends on where it comes from and on its host cluster
(Algorithm 1), so that the broadcast can be replayed (`replay`). Each way is asked with a probe,
which is taken back at once; then the subscriptions are entered into the tables. The outcome is that
of a `ScotNetwork`: the same tables, messages and times.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from gossamer.protocol.brokers.core.effects import Effect, Send
from gossamer.protocol.brokers.core.messages import Attach, Detach, Hop, client
from gossamer.protocol.brokers.scot import ScotBroker
from gossamer.protocol.brokers.scot.messages import Message, Subscription, Unsubscription
from gossamer.protocol.content.filters import Filter, parse
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot.replay import Publications, Replay, Replayed, effects_sent
from gossamer.sim.studies.scot.replay_network import ScotNetwork
from gossamer.sim.studies.scot.replay_state import Int64s

_PROBE, _LABEL = "probe", "one"


@attrs.frozen(kw_only=True, eq=False)
class Subscribers:
    """Clients that attach with one subscription each; in order of time.

    Attributes:
        at: int64, when each reaches its broker, microseconds.
        broker: int64, which broker, by place in the network.
        names: of the clients, all different.
        wanted: what each subscribes to.
    """

    at: Int64s
    broker: Int64s
    names: Sequence[str]
    wanted: Sequence[Filter]


def broadcast(network: ScotNetwork, subscribers: Subscribers) -> Replayed:
    """Let clients attach and subscribe in a network in which nothing is under way.

    Static or dynamic routing, without covering, all brokers sharing a catalogue. Brokers do not
    count what they send and receive; the result does.

    Raises `SimulationError` for other settings, and if a broker refuses anything.
    """
    settings = network.settings
    if settings.covering or settings.routing == "bid":
        raise SimulationError("only a broadcast in two steps, without covering, repeats itself")
    none = np.zeros(len(subscribers.at), np.int64)
    publications = Publications(
        at=subscribers.at,
        broker=subscribers.broker,
        content=none,
        marked=none,
        contents=(),
        publishers={},
    )
    attach = Attach(((_PROBE, parse(f"present({_PROBE})")),))
    replay = Replay(network, publications, [attach], _ask)
    result = replay.run()
    _enter(network, subscribers, replay)
    return result


def _ask(broker: ScotBroker, source: Hop | None, message: Message) -> list[Effect]:
    """What a broker does with a subscription; it is then as before."""
    if source is None:
        effects = broker.handle(0, client(_PROBE), message)
        broker.handle(0, client(_PROBE), Detach())
    else:
        assert isinstance(message, Subscription)
        effects = broker.handle(0, source, message)
        broker.handle(0, source, Unsubscription(message.id))
    return effects


def _enter(network: ScotNetwork, subscribers: Subscribers, replay: Replay) -> None:
    """Let brokers know the subscriptions: first at home, then wherever they came."""
    brokers = list(network.brokers.values())
    first: dict[int, int] = {}
    held: dict[int, list[int]] = {}
    for place, home in enumerate(subscribers.broker.tolist()):
        source, wanted = client(subscribers.names[place]), subscribers.wanted[place]
        effects = brokers[home].handle(network.now, source, Attach(((_LABEL, wanted),)))
        first.setdefault(home, place)
        held.setdefault(home, []).extend(_numbers(network, effects_sent(brokers[home], effects)))
    for home, place in first.items():
        numbers = np.array(held[home], np.intp)
        for one, other in replay.ways(place):
            network.brokers[other].learn(one, numbers)


def _numbers(network: ScotNetwork, sent: Sequence[Send]) -> list[int]:
    """The number of the subscription that is sent, if the broker has any neighbour."""
    messages = (effect.message for effect in sent[:1])
    ids = (message.id for message in messages if isinstance(message, Subscription))
    found = (network.catalogue.number_of(id_) for id_ in ids)
    return [number for number in found if number is not None]
