"""Tables of fixed size that a run has outgrown, in words.

Every table of a peer has a size. Where a scenario decides how much a table has to hold it is sized
by it (`config.event_memory_for`); what finds no room elsewhere is counted by peers, and told here.
So is what a run is too short for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs


@attrs.frozen
class Bound:
    """What is counted when a table has outgrown its size.

    Attributes:
        total: of `SystemRecord.totals`.
        setting: which a larger value would help, None where none would.
        happened: what happened so many times, and what may follow from it.
    """

    total: str
    setting: str | None
    happened: str


BOUNDS = (
    Bound(
        "forgotten_copies",
        "event_memory",
        "event copies were forgotten while they could still come again or be asked for, so that "
        "events may be missed or delivered twice",
    ),
    Bound(
        "pushed_out_copies",
        "held_events",
        "held event copies made room before the retention time was over, so that nodes which come "
        "back may miss them",
    ),
    Bound(
        "publications_not_taken",
        "pending_publications",
        "publications were not taken, since as many waited for their acknowledgement",
    ),
    Bound(
        "late_events",
        None,
        "events of the file come after the last round, and were not published",
    ),
    Bound(
        "refused_subscriptions",
        "routing_table_entries",
        "subscriptions found no room in a routing table, so that events did not get to them there",
    ),
    Bound(
        "hop_limit_drops",
        "hop_limit",
        "event copies took more hops than any should, and were dropped; they go round, so that no "
        "larger limit brings them there",
    ),
    Bound(
        "merged_subscriptions",
        "boxes_per_neighbour",
        "times subscriptions were merged, which costs messages and no event",
    ),
    Bound(
        "forgotten_failures",
        "failures_remembered",
        "failed nodes were forgotten while others could still name them, which costs messages",
    ),
)


def outgrown(systems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for every bound that a system has outgrown.

    Args:
        systems: what `summary.json` has of each, by name.
    """
    for name, system in systems.items():
        totals = system.get("totals", {})
        for bound in BOUNDS:
            count = totals.get(bound.total, 0)
            if count:
                yield f"{name}: {count:,} {bound.happened}{_advice(bound, system)}."


def _advice(bound: Bound, system: Mapping[str, Any]) -> str:
    if bound.setting is None:
        return ""
    size = system.get("settings", {}).get(bound.setting)
    return f" ({bound.setting} is {size})"
