"""What changes in the course of a run: interests, events, and who is online.

Beyond the paper, whose subscriptions stay what they are. All values are guesses: they are there to
be varied.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from gossamer.sim.study.scenarios import check, number_field, share_field, whole_field

MOST_CHANGES = 1_000_000


@attrs.frozen(kw_only=True)
class Drift:
    """How interests and events change.

    Attributes:
        every_s: time between two changes, seconds; they come at the beginning of a round.
        replaced: share of the subscribers that draw other subscriptions at each change.
        shifted: share of them, beside those, whose ranges all move by one normal draw.
        shift: standard deviation of that draw, as a share of the domain.
        event_shift: how far the values of events move in ``every_s``, steadily and around the
            domain, as a share of it.
        late: share of the nodes that have no subscriptions at first, and get theirs at one of the
            first ``late_changes`` changes.
        late_changes: over how many changes these are spread.
    """

    section: ClassVar[str] = "drift."

    every_s: float = number_field(
        "a time above 0, at most 1e9 s", lambda time_s: 0 < time_s <= 1e9, default=3600.0
    )
    replaced: float = share_field(0.0)
    shifted: float = share_field(0.0)
    shift: float = share_field(0.01)
    event_shift: float = share_field(0.0)
    late: float = share_field(0.0)
    late_changes: int = whole_field(1, MOST_CHANGES, default=1)

    def __attrs_post_init__(self) -> None:
        expected = f"at most {1 - self.replaced:g}, the share that drift.replaced leaves"
        check(self.replaced + self.shifted <= 1, "drift.shifted", self.shifted, expected)


@attrs.frozen(kw_only=True)
class Turnover:
    """Half of the nodes are online at a time, and others replace them.

    Attributes:
        share: of the nodes online, that leave in an hour; at the moment one of them leaves, one
            that was away joins.
    """

    section: ClassVar[str] = "turnover."

    share: float = number_field(
        "a number above 0, at most 60", lambda share: 0 < share <= 60, default=0.5
    )
