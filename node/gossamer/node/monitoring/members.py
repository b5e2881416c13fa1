"""The members of the cluster as one node has met them: who is there, since when, and what changed.

unknown   -- connected for the first time ------------------------------->  alive     joined
alive     -- says goodbye, since it stops ------------------------------->  gone      left
alive     -- its connection breaks, or it is silent for long ------------>  suspect
suspect   -- cannot be reached, or is suspect for `SUSPECT_S` ----------->  gone      failed
suspect   -- connected again -------------------------------------------->  alive
gone      -- connected again -------------------------------------------->  alive     returned
any       -- on the authority's list ------------------------------------>  revoked   revoked

An idle connection that is closed in order changes nothing. Each change with a name on the right is
logged, counted, and kept for those who watch.
"""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio
from attrs import define, field, frozen

from gossamer.client.frames import PEER
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.looks import next_look
from gossamer.node.monitoring.metrics import MEMBER_STATES, Counters

# How long a member may be suspect before it counts as failed: a restart takes less.
SUSPECT_S: Final = 30.0
# How long nothing may be heard of a member without a connection before it is suspect.
QUIET_S: Final = 300.0
# How often that is looked at.
LOOK_S: Final = 1.0
# Members that are remembered, and told; those gone for longest make room.
MAX_MEMBERS: Final = 1000
# Changes that are kept for those who watch.
MAX_CHANGES: Final = 128
# Changes that the page shows.
SHOWN_CHANGES: Final = 12


class State(enum.StrEnum):
    """What a member is, as far as this node knows."""

    ALIVE = "alive"
    SUSPECT = "suspect"
    GONE = "gone"
    REVOKED = "revoked"


class Change(enum.StrEnum):
    """What happened to a member."""

    JOINED = "joined"
    LEFT = "left"
    FAILED = "failed"
    RETURNED = "returned"
    REVOKED = "revoked"


@define(eq=False)
class Member:
    """A member of the cluster.

    Attributes:
        key: its permanent key.
        name: in its certificate, "" if nothing is known.
        addresses: where it listens.
        version: of its software, "" if nothing is known.
        state: what it is.
        since: of its state, Unix seconds.
        certificate_expires_s: Unix seconds, None without certificates.
    """

    key: int
    name: str = ""
    addresses: Sequence[str] = ()
    version: str = ""
    state: State = State.ALIVE
    since: float = 0.0
    certificate_expires_s: float | None = None
    _suspect_at: float = field(default=0.0, init=False)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "key": f"{self.key:016x}",
            "name": self.name,
            "addresses": list(self.addresses),
            "version": self.version,
            "state": str(self.state),
            "since": round(self.since, 3),
            "certificate_expires": self.certificate_expires_s,
        }

    def __str__(self) -> str:
        return f"{self.name} ({self.key:016x})" if self.name else f"{self.key:016x}"


@frozen
class MemberChange:
    """Something that happened to a member.

    Attributes:
        number: grows by one with each, from 1.
        at: Unix seconds.
        change: what happened.
        key, name: to whom.
        cause: why, in words; "" where there is no more to say.
    """

    number: int
    at: float
    change: Change
    key: int
    name: str
    cause: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "number": self.number,
            "at": round(self.at, 3),
            "change": str(self.change),
            "key": f"{self.key:016x}",
            "name": self.name,
            "cause": self.cause,
        }


class MemberTable:
    """The members that a node has met, its ``own`` included; `run` notices who is gone."""

    def __init__(
        self,
        own: Member,
        counters: Counters,
        now: Callable[[], float],
        heard_s: Callable[[int], float | None] = lambda _: None,
        revoked: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        """A table with the node itself only.

        Args:
            own: the node.
            counters: where changes are counted.
            now: Unix seconds.
            heard_s: seconds since anything was heard of a member; None where nobody counts them.
            revoked: the keys of those revoked.
        """
        self.own = own
        own.since = now()
        self._counters = counters
        self._now = now
        self._heard_s = heard_s
        self._revoked = revoked
        self._members: OrderedDict[int, Member] = OrderedDict()
        self._connected: set[int] = set()
        self._changes: deque[MemberChange] = deque(maxlen=MAX_CHANGES)
        self._number = 0

    def counts(self) -> dict[str, int]:
        """How many members there are of each state, this node included."""
        found = Counter(str(one.state) for one in (self.own, *self._members.values()))
        return {state: found[state] for state in MEMBER_STATES}

    def present(self) -> list[int]:
        """The keys of those that may be there, this node left out."""
        here = (State.ALIVE, State.SUSPECT)
        return [one.key for one in self._members.values() if one.state in here]

    def recent(self) -> tuple[dict[str, Any], ...]:
        """The last `SHOWN_CHANGES` changes as plain values."""
        return tuple(one.to_json() for one in list(self._changes)[-SHOWN_CHANGES:])

    def to_json(self) -> dict[str, Any]:
        """Members and recent changes as plain values, this node first."""
        self.look()
        ordered = sorted(self._members.values(), key=lambda one: (one.name, one.key))
        return {
            "members": [one.to_json() for one in (self.own, *ordered)],
            "changes": [one.to_json() for one in self._changes],
        }

    def connected(
        self,
        key: int,
        name: str,
        addresses: Sequence[str],
        version: str,
        certificate_expires_s: float | None,
    ) -> None:
        """A member is connected."""
        self._connected.add(key)
        member = self._members.get(key)
        if member is None:
            member = self._add(key)
            before = None
        else:
            before = member.state
        member.name, member.version = name or member.name, version
        member.addresses = tuple(addresses) or member.addresses
        member.certificate_expires_s = certificate_expires_s
        if before is None:
            self._note(member, State.ALIVE, Change.JOINED)
        elif before is State.GONE:
            self._note(member, State.ALIVE, Change.RETURNED)
        elif before is State.SUSPECT:
            self._note(member, State.ALIVE)

    def renewed(self, key: int, name: str, certificate_expires_s: float) -> None:
        """A member has a new certificate, and perhaps a new name."""
        member = self._members.get(key)
        if member is None:
            return
        if name != member.name:
            log.info("a member is renamed", peer=str(member), name=name)
        member.name, member.certificate_expires_s = name, certificate_expires_s

    def disconnected(self, key: int, *, left: bool, broken: bool, cause: str) -> None:
        """A member is connected no more: it left in order, its connection broke, or neither."""
        self._connected.discard(key)
        member = self._members.get(key)
        if member is None or member.state is not State.ALIVE:
            return
        if left:
            self._note(member, State.GONE, Change.LEFT, cause)
        elif broken:
            self._note(member, State.SUSPECT)

    def unreachable(self, key: int, cause: str) -> None:
        """A member whose connection broke cannot be reached."""
        member = self._members.get(key)
        if member is not None and member.state is State.SUSPECT:
            self._note(member, State.GONE, Change.FAILED, cause)

    def look(self) -> None:
        """Notice who is revoked, silent, or has been suspect for too long."""
        for key in self._revoked():
            member = self._members.get(key) or self._add(key)
            if member.state is not State.REVOKED:
                self._note(member, State.REVOKED, Change.REVOKED)
        now = trio.current_time()
        # To note something of a member moves it to the end.
        for member in tuple(self._members.values()):
            if member.key in self._connected:
                continue
            if member.state is State.ALIVE and (self._heard_s(member.key) or 0.0) > QUIET_S:
                self._note(member, State.SUSPECT)
            elif member.state is State.SUSPECT and now - member._suspect_at > SUSPECT_S:
                cause = f"not heard of for {SUSPECT_S:g} s"
                self._note(member, State.GONE, Change.FAILED, cause)

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            await trio.sleep_until(next_look(LOOK_S))
            self.look()

    def _add(self, key: int) -> Member:
        if len(self._members) >= MAX_MEMBERS:
            gone = (one.key for one in self._members.values() if one.state is State.GONE)
            del self._members[next(gone, next(iter(self._members)))]
        member = self._members[key] = Member(key, state=State.GONE, since=self._now())
        return member

    def _note(
        self, member: Member, state: State, change: Change | None = None, cause: str = ""
    ) -> None:
        member.state, member.since = state, self._now()
        self._members.move_to_end(member.key)
        if state is State.SUSPECT:
            member._suspect_at = trio.current_time()
        if change is None:
            return
        self._number += 1
        self._counters.member_changes[change] += 1
        self._changes.append(
            MemberChange(self._number, member.since, change, member.key, member.name, cause)
        )
        say = log.warning if change in (Change.FAILED, Change.REVOKED) else log.info
        fields = {"cause": cause} if cause else {}
        say(_SENTENCES[change], peer=str(member), **fields)


_SENTENCES: Final = {
    Change.JOINED: "a member has joined",
    Change.LEFT: "a member has left",
    Change.FAILED: "a member has failed",
    Change.RETURNED: "a member has returned",
    Change.REVOKED: "a member is revoked",
}


# The cluster as one node sees it: its members, and what those of them say who answered.
#
# A report is what a member says of itself when it is asked. Nobody vouches for it, and a member
# that does not answer is listed without one: how many of how many answered is part of the view.


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
