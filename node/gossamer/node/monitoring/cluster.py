"""The cluster as one node sees it: its members, and what those of them say who answered.

A report is what a member says of itself when it is asked. Nobody vouches for it, and a member that
does not answer is listed without one: how many of how many answered is part of the view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from gossamer.client.frames import PEER

# Parts of the ring for which is told how many subscriptions want events there.
SECTORS: Final = 64
# Members that a view lists, those who answered first; it counts all.
LISTED: Final = 256
# What a report has a number for; those of an older or newer version may lack some, or have more.
FIGURES: Final = (
    "uptime_s",
    "position",
    "arc_start",
    "load",
    "published",
    "delivered",
    "forwarded",
    "dropped",
    "received_bytes",
    "sent_bytes",
    "queued_bytes",
    "late_rounds",
    "overloading",
    "subscriptions",
    "known_peers",
)
# What waits at a member that is behind: more than a healthy one ever has.
LONG_QUEUES: Final = 1 << 20
# Of the rounds of a member that is behind, so many a second begin late.
LATE: Final = 0.05


@attrs.frozen(kw_only=True)
class Report:
    """What a member says of itself.

    Attributes:
        figures: of `FIGURES`; rates are per second, places fractions of the ring.
        wanted: for each of `SECTORS` equal parts of the ring, how many subscriptions of the member
            want events that go there.
        troubles: what is wrong with its place in the cluster, in sentences.
    """

    figures: Mapping[str, float]
    wanted: Sequence[int] = ()
    troubles: Sequence[str] = ()

    def overload(self) -> list[str]:
        """In which ways the member has more to do than it can."""
        found = {
            "a flood of events": self.figures.get("overloading", 0.0) > 0,
            "late rounds": self.figures.get("late_rounds", 0.0) > LATE,
            "long queues": self.figures.get("queued_bytes", 0.0) > LONG_QUEUES,
        }
        return [name for name, holds in found.items() if holds]

    def to_json(self, age_s: float) -> dict[str, Any]:
        """As plain values, but for what is wanted, of which a view has the sum."""
        return {
            "age_s": round(age_s, 1),
            **{name: round(self.figures.get(name, 0.0), 4) for name in FIGURES},
            "overload": self.overload(),
            "troubles": list(self.troubles),
        }


def cluster_view(
    members: Sequence[Mapping[str, Any]],
    reports: Mapping[str, tuple[Report, float]],
    asked: int,
    role: str = PEER,
    *,
    name: str = "",
) -> dict[str, Any]:
    """The view as plain values.

    Args:
        members: as `MemberTable.to_json` has them, the node itself first.
        reports: and their ages in seconds, by key as text, the node's own included.
        asked: how many other members were asked.
        name: of the cluster.
        role: of the node; brokers tell each other nothing, so that nobody is asked.
    """
    here = [one for one in members if one["state"] in ("alive", "suspect")]
    answered = [one for one in here if one["key"] in reports]
    rows = [_row(one, reports.get(one["key"])) for one in members]
    ordered = sorted(rows[1:], key=lambda one: (one["report"] is None, one["state"], one["name"]))
    return {
        "role": role,
        "cluster_name": name,
        "known": len(here),
        "asked": asked + 1,
        "answered": len(answered),
        "states": dict(Counter(one["state"] for one in members)),
        "versions": dict(Counter(one["version"] or "unknown" for one in here)),
        "overloaded": [
            one["name"] or one["key"] for one in rows if one["report"] and one["report"]["overload"]
        ],
        "wanted": _sum([report.wanted for report, _ in reports.values()]),
        "members": [*rows[:1], *ordered][:LISTED],
    }


def _row(member: Mapping[str, Any], found: tuple[Report, float] | None) -> dict[str, Any]:
    report = None if found is None else found[0].to_json(found[1])
    return {**member, "report": report}


def _sum(all_wanted: Sequence[Sequence[int]]) -> list[int]:
    """What is wanted in all; of members that have told it at all."""
    columns = [one for one in all_wanted if len(one) == SECTORS]
    return [sum(column) for column in zip(*columns, strict=True)]
