"""What one peer may make another do in a round."""

from __future__ import annotations

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.load.rate_limits import PER_ROUND, SAVED, RateLimits
from gossamer.protocol.peer.record_table.records import ACKNOWLEDGE, REPLAY_OFFER, SAMPLE_REQUEST

PEER, OTHER = 1, 2
MOST = PER_ROUND[SAMPLE_REQUEST]


def taken(limits: RateLimits, count: int, sender: int = PEER, kind: int = SAMPLE_REQUEST) -> int:
    return sum(limits.allows(sender, kind) for _ in range(count))


def test_what_is_beyond_the_budget_is_dropped_and_counted() -> None:
    counters = Counters()
    limits = RateLimits(counters)
    for _ in range(20):
        assert taken(limits, 10 * MOST) == MOST
        limits.new_round()
    assert counters.dropped["flood"] == 20 * 9 * MOST
    assert taken(limits, MOST, OTHER) == MOST
    assert taken(limits, 1, PEER, REPLAY_OFFER) == 1
    assert taken(limits, 10_000, PEER, ACKNOWLEDGE) == 10_000


def test_what_honest_peers_sent_in_several_rounds_may_come_in_one() -> None:
    """As where it was delayed, or this peer was busy."""
    counters = Counters()
    limits = RateLimits(counters)
    assert taken(limits, 1) == 1
    for _ in range(50):
        limits.new_round()
    assert taken(limits, SAVED * MOST) == SAVED * MOST
    assert taken(limits, 1) == 0
    limits.new_round()
    assert taken(limits, 2 * MOST) == MOST


def test_a_peer_that_comes_back_has_saved_nothing() -> None:
    limits = RateLimits(Counters())
    assert taken(limits, 1) == 1
    for _ in range(5):
        limits.new_round()
    limits.forget(PEER)
    assert taken(limits, 2 * MOST) == MOST
