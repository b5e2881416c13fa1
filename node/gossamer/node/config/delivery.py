"""The section `[delivery]` of a node's configuration: what the delivery promise is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

import attrs

from gossamer.node.config import checks

# Settings of the protocol, and which of the fields below decides each.
DECIDED_BY_DELIVERY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "replicas": "delivery.successors",
        "event_memory": "delivery.event_memory",
        "replay_rounds": "delivery.replay_s",
        "retention_rounds": "delivery.retention_s",
        "held_events": "delivery.held_events",
        "pending_publications": "delivery.publications",
    }
)


@attrs.frozen(kw_only=True)
class Delivery:
    """What an acknowledged publish is worth.

    Attributes:
        successors: peers after the rendezvous node that hold an event before it is acknowledged,
            so as many may crash at once; 2, as a third failure within the seconds of a repair is
            rarer than a power cut that takes all.
        publications: events of this peer that may wait for their acknowledgement at a time; more
            wait their turn. One takes some 10 ms, so that 128 allow thousands a second.
        acknowledge_s: how long one may wait: twice what it takes to find out that a peer on the
            way is dead (`failure_age` rounds), and to publish again.
        replay_s: how long peers remember the events that pass, to hand them to neighbours whose
            path broke; a connection may be dead for 25 s (`limits.silence_seconds` and a ping)
            unnoticed.
        retention_s: how long events are kept for subscribers that are away; two hours outlast a
            meeting, a reboot and an upgrade.
        held_events: event copies that this peer holds, as rendezvous node or as a successor of
            one, for peers that are away: the oldest make room. Of 40 peers each holds 9 of 40
            events with 3 attributes, so that 16,384 are the last 72,000 events, ten a second for
            two hours; they take 13 MB with their signatures.
        event_memory: event copies remembered against duplicates and for `replay_s`. Where it is too
            small, what others offer anew is taken for new, and goes round again. With a routing key
            an event has one copy: 32,768 cover 30 s at 1,000 events/s, more than six peers of two
            processors take.
    """

    SECTION: ClassVar = "delivery"
    successors: int = attrs.field(default=2, validator=checks.whole_number(0, 16))
    publications: int = attrs.field(default=128, validator=checks.whole_number(0, 1 << 16))
    acknowledge_s: float = attrs.field(default=10.0, validator=checks.seconds(0.01, 3600))
    replay_s: float = attrs.field(default=30.0, validator=checks.seconds(0, 3600))
    retention_s: float = attrs.field(default=7200.0, validator=checks.seconds(0, 30 * 86400))
    held_events: int = attrs.field(default=16384, validator=checks.whole_number(0, 1 << 20))
    event_memory: int = attrs.field(default=32768, validator=checks.whole_number(1, 1 << 16))

    def settings(self, round_s: float) -> dict[str, int]:
        """The settings of the protocol that follow, with rounds of so many seconds."""
        return {
            "replicas": self.successors,
            "event_memory": self.event_memory,
            "replay_rounds": math.ceil(self.replay_s / round_s),
            "retention_rounds": math.ceil(self.retention_s / round_s),
            "held_events": self.held_events,
            "pending_publications": self.publications,
        }
