"""What nodes want at present, where that changes in the course of a run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.places.placement import want_place
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.scales import held_boxes
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.step import subscribe
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.drifting import changed_boxes, changes_before, late_changes
from gossamer.sim.studies.peers.inputs.workload import Workload

Int64s = npt.NDArray[np.int64]


class Interests:
    """Applies a drift of subscriptions, change after change; can be pickled between rounds.

    Args:
        workload: that subscriptions are drawn by.
        drift: what changes, and when; nothing does if None.
        settings: of the system.
        nodes: how many there are.

    Attributes:
        since_s: float64[n], when each node last changed what it wants; -inf where never.
        until_s: float64[n], when it does so next, if that is at the next change; else inf.
    """

    def __init__(
        self, workload: Workload, drift: Drift | None, settings: Settings, nodes: int
    ) -> None:
        self.since_s = np.full(nodes, -np.inf)
        self.until_s = np.full(nodes, np.inf)
        self._workload = workload
        self._drift = drift
        self._settings = settings
        self._boxes, self._constrained = workload.subscriptions(nodes)
        self._in_the_end = self._constrained.copy()
        self._late_at = np.zeros(nodes, np.int64)
        if drift is not None:
            self._late_at = late_changes(workload, drift, nodes)
            self._constrained[self._late_at > 0] = -1
        self._changes = 0
        self._next = self._foresee()

    @property
    def present(self) -> tuple[Int64s, Int64s]:
        """Boxes int64[n, S, 2A] and the attributes they constrain, int64[n, S] of bits."""
        return self._boxes, self._constrained

    def advance(self, s: State, time_s: float) -> None:
        """Let nodes want what they want at a time."""
        if self._drift is None:
            return
        while self._changes < changes_before(self._drift, time_s):
            nodes, boxes = self._next
            self._boxes[nodes] = boxes
            late = np.flatnonzero(self._late_at == self._changes + 1)
            self._constrained[late] = self._in_the_end[late]
            changed = np.union1d(nodes, late)
            self.since_s[changed] = time_s
            for node in changed.tolist():
                self._subscribe(s, node)
            self._changes += 1
            self._next = self._foresee()

    def _foresee(self) -> tuple[Int64s, Int64s]:
        """Whose subscriptions the next change concerns, and what they are from then on."""
        if self._drift is None:
            return np.empty(0, np.int64), self._boxes[:0]
        change = self._changes + 1
        nodes, boxes = changed_boxes(
            self._workload, self._drift, change, self._boxes, self._constrained
        )
        self.until_s[:] = np.inf
        self.until_s[nodes] = change * self._drift.every_s
        return nodes, boxes

    def _subscribe(self, s: State, node: int) -> None:
        """Let a node have its subscriptions, and want to stand where they are."""
        wanted = self._constrained[node] >= 0
        boxes, constrained = self._boxes[node, wanted], self._constrained[node, wanted]
        subscribe(s, node, *held_boxes(self._settings, boxes, constrained))
        if self._settings.placement == "interest":
            want_place(s, self._settings, node, boxes, constrained)
