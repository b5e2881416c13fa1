"""What one peer may make another do in a round."""

from __future__ import annotations

from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.load.rate_limits import A_ROUND, SAVED, Budgets
from gossamer.protocol.peer.record_table.records import ACKNOWLEDGE, REPLAY_OFFER, SAMPLE_REQUEST

PEER, OTHER = 1, 2
MOST = A_ROUND[SAMPLE_REQUEST]


def taken(budgets: Budgets, count: int, sender: int = PEER, kind: int = SAMPLE_REQUEST) -> int:
    return sum(budgets.allows(sender, kind) for _ in range(count))


def test_what_is_beyond_the_budget_is_dropped_and_counted() -> None:
    counters = Counters()
    budgets = Budgets(counters)
    for _ in range(20):
        assert taken(budgets, 10 * MOST) == MOST
        budgets.new_round()
    assert counters.dropped["flood"] == 20 * 9 * MOST
    assert taken(budgets, MOST, OTHER) == MOST
    assert taken(budgets, 1, PEER, REPLAY_OFFER) == 1
    assert taken(budgets, 10_000, PEER, ACKNOWLEDGE) == 10_000


def test_what_honest_peers_sent_in_several_rounds_may_come_in_one() -> None:
    """As where it was delayed, or this peer was busy."""
    counters = Counters()
    budgets = Budgets(counters)
    assert taken(budgets, 1) == 1
    for _ in range(50):
        budgets.new_round()
    assert taken(budgets, SAVED * MOST) == SAVED * MOST
    assert taken(budgets, 1) == 0
    budgets.new_round()
    assert taken(budgets, 2 * MOST) == MOST


def test_a_peer_that_comes_back_has_saved_nothing() -> None:
    budgets = Budgets(Counters())
    assert taken(budgets, 1) == 1
    for _ in range(5):
        budgets.new_round()
    budgets.forget(PEER)
    assert taken(budgets, 2 * MOST) == MOST
