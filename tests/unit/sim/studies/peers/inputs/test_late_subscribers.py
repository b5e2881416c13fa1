"""Who subscribes only later, and when."""

from __future__ import annotations

import numpy as np

from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.drifting import late_changes
from gossamer.sim.studies.peers.inputs.scenario import Subscriptions
from gossamer.sim.studies.peers.inputs.workload import Workload

NODES = 4000
WORKLOAD = Workload(Subscriptions(), 7)


def test_a_share_of_the_nodes_subscribes_late_spread_over_the_changes() -> None:
    found = late_changes(WORKLOAD, Drift(late=0.5, late_changes=10), NODES)
    counts = np.bincount(found, minlength=11)
    assert len(counts) == 11
    assert 0.45 < counts[0] / NODES < 0.55
    assert (counts[1:] > NODES * 0.5 / 10 * 0.7).all()
    assert np.array_equal(found, late_changes(WORKLOAD, Drift(late=0.5, late_changes=10), NODES))


def test_nobody_is_late_unless_it_is_asked_for() -> None:
    assert not late_changes(WORKLOAD, Drift(), NODES).any()
