"""The presets of a peer's settings, and the sizes of tables that follow from the number of nodes.

`paper` comes first; the others are visible differences from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.protocol.peer.settings.config import MAX_EVENT_MEMORY, Settings


def friend_links_for(nodes: int) -> int:
    """K_f = log2(N) - 2, rounded, at least 1 (Vinifera, Sec. V-A)."""
    return max(1, round(math.log2(max(nodes, 2))) - 2)


# How many times one after another an event is expected to be handed on to subscriptions that are
# new; measured: with crowds that join at once and a hundred events a round three times suffice for
# none to come to a peer that has forgotten it.
REPLAYS_EXPECTED = 4


def event_memory_for(events_per_round: float, attributes: int, replay_rounds: int) -> int:
    """The event copies that a peer has to remember which takes all events that there are.

    Of the rounds in which copies may come again: this one and the last, and those of replays. At
    least the default, and no more than `Settings` allows.
    """
    rounds = 2 + REPLAYS_EXPECTED * replay_rounds
    copies = math.ceil(events_per_round) * attributes * rounds
    return min(max(copies, Settings().event_memory), MAX_EVENT_MEMORY)


def paper(nodes: int, **changes: Any) -> Settings:
    """Vinifera as the paper describes and configures it (Sec. IV and V-A)."""
    return attrs.evolve(Settings(friend_links=friend_links_for(nodes)), **changes)


def baseline(nodes: int, **changes: Any) -> Settings:
    """The paper's baseline: one rendezvous node and one tree per attribute, small-world links.

    Differs from `paper` in its rendezvous, its links (all small-world, as many in number) and in
    having no load shifting (Sec. V).
    """
    standard = {
        "rendezvous": "attribute",
        "friend_links": 0,
        "small_world_links": friend_links_for(nodes),
        "load_shifting": False,
    }
    return paper(nodes, **{**standard, **changes})


def resilient(nodes: int, **changes: Any) -> Settings:
    """Vinifera that keeps delivering under heavy churn; goes beyond the paper.

    Differs from `paper` in a ring kept three deep; in a place on the ring that is looked up at
    join, where the successor hands over what it knows of subscribers; in greeting a new successor
    at once; in rerouting around unreachable neighbours; in two successors that disseminate beside
    the rendezvous node; in events replayed to subscriptions that a peer hears of for the first
    time; and in heartbeats only now and then, where something else would tell of a failure.
    """
    standard = {
        "ring_links": 3,
        "join_lookup": True,
        "stabilise": True,
        "reroute": True,
        "replicas": 2,
        "replay_rounds": 3,
        "heartbeat_rounds": 4,
    }
    return paper(nodes, **{**standard, **changes})


# Of the preset `kindred`: more interests than that have no host of their own.
MOST_GUEST_LINKS = 8
# More than that bring the publications of a peer off the ring hardly any nearer.
MOST_ENTRY_LINKS = 8
# By then everybody has forgotten where a peer was that has moved.
KINDRED_MOVE_ROUNDS = 10


def finger_levels_for(nodes: int, ring_links: int) -> int:
    """Levels by which fingers reach every peer: the last reaches a third of the ring or more."""
    return max(1, math.ceil(math.log2(max(nodes, 2) / ring_links)) - 1)


def kindred(nodes: int, **changes: Any) -> Settings:
    """Neighbours on the ring want the same things; keeps the paper's promise (docs/kindred.md).

    Differs from `resilient` in that peers have their places where their subscriptions lie, and move
    as these do; in that those without any stand off the ring; in fingers by rank in place of
    friends; in routing both ways round the ring, to the nearest neighbour; in events that are
    delivered on their way; in one successor that disseminates beside the rendezvous node; in
    suspecting neighbours that have not answered for a round; in repeating installations every
    fourth round only, and handing events of more rounds than that to subscriptions that are new;
    in shifting load from a fifth of the paper's threshold on, which peers at the edges of what
    nobody wants need; in mending the ring at once; and in neighbours that offer each other events,
    events that are handed on, and hops that are acknowledged.
    """
    ring, held = changes.get("ring_links", 3), changes.get("subscriptions", 1)
    # What is impossible is refused as such, not as what would follow from it.
    is_ring = isinstance(ring, int) and ring > 0
    others = min(MOST_GUEST_LINKS, held - 1) if isinstance(held, int) and held > 0 else 0
    levels = finger_levels_for(nodes, ring) if is_ring else 0
    standard = {
        "friend_links": 0,
        "finger_levels": levels,
        "entry_links": min(MOST_ENTRY_LINKS, 2 * changes.get("finger_levels", levels)),
        "placement": "interest",
        "move_rounds": KINDRED_MOVE_ROUNDS if is_ring else 0,
        "guest_links": others if is_ring else 0,
        "rendezvous": "key",
        "nearest_routing": True,
        "enter_on_the_way": True,
        "shift_threshold": 0.1,
        "replicas": 1,
        "suspect_rounds": 1,
        "refresh_rounds": 4,
        "entry_lifetime": 12,
        "replay_rounds": 5,
        "failures_remembered": 32,
        "ring_repairs": 8,
        "ring_offers": True,
        "hand_on": True,
        "replay_backoff": True,
        "acknowledged_hops": 32,
    }
    return resilient(nodes, **{**standard, **changes})


# By name, as scenarios and nodes name them: of so many nodes, with changes.
PRESETS: Final[Mapping[str, Callable[..., Settings]]] = MappingProxyType(
    {preset.__name__: preset for preset in (paper, baseline, resilient, kindred)}
)
