"""What a node notes of the members of its cluster, and the view of all that it shows."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field
from rich.console import Console

from gossamer.node.commands.cluster.cluster_picture import cluster_picture
from gossamer.node.commands.cluster.tables import short_text, span_text
from gossamer.node.monitoring import members
from gossamer.node.monitoring.cluster import FIGURES, LISTED, SECTORS, cluster_view
from gossamer.node.monitoring.metrics import Counters
from support.cluster_views import member, report, view


@define
class Cluster:
    """A table, and what it asks others."""

    heard: dict[int, float] = field(factory=dict)
    revoked: set[int] = field(factory=set)
    counters: Counters = field(factory=Counters)
    table: members.MemberTable = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.table = members.MemberTable(
            members.Member(1, "desk", version="9"),
            self.counters,
            lambda: 1000.0 + trio.current_time(),
            self.heard.get,
            lambda: self.revoked,
        )

    def up(self, key: int = 2) -> None:
        self.table.connected(key, "kitchen", ("host:7710",), "9", 5000.0)

    def down(self, key: int = 2, *, left: bool = False, broken: bool = False) -> None:
        self.table.disconnected(key, left=left, broken=broken, cause="why")

    def state(self, key: int = 2) -> str:
        found = {one["key"]: one["state"] for one in self.table.to_json()["members"]}
        return str(found[f"{key:016x}"])

    def changes(self) -> list[str]:
        return [one["change"] for one in self.table.to_json()["changes"]]


@pytest.fixture
async def cluster() -> Cluster:
    return Cluster()


async def test_members_come_and_go(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster.up()
    cluster.down()  # an idle connection that was closed in order
    assert cluster.state() == "alive"
    cluster.up()
    cluster.down(left=True)
    assert cluster.state() == "gone"
    cluster.up()
    assert cluster.changes() == ["joined", "left", "returned"]
    said = ["a member has joined", "a member has left", "a member has returned"]
    assert caplog.messages == said
    assert cluster.counters.member_changes["joined"] == 1
    own, other = cluster.table.to_json()["members"]
    assert (own["name"], own["state"], own["version"]) == ("desk", "alive", "9")
    assert other["addresses"] == ["host:7710"]
    assert other["certificate_expires"] == 5000.0


async def test_a_broken_connection_makes_suspect_and_then_gone(cluster: Cluster) -> None:
    cluster.up()
    cluster.down(broken=True)
    assert cluster.state() == "suspect"
    cluster.up()
    assert cluster.state() == "alive"
    assert cluster.changes() == ["joined"]
    cluster.down(broken=True)
    await trio.sleep(members.SUSPECT_S / 2)
    assert cluster.state() == "suspect"
    await trio.sleep(members.SUSPECT_S)
    assert cluster.state() == "gone"
    assert cluster.changes() == ["joined", "failed"]
    assert cluster.table.counts() == {"alive": 1, "suspect": 0, "gone": 1, "revoked": 0}

    for key in (2, 3, 4):
        cluster.up(key)
        cluster.down(key, broken=True)
    await trio.sleep(2 * members.SUSPECT_S)
    assert [cluster.state(key) for key in (2, 3, 4)] == ["gone"] * 3
    changes = ["joined", "failed", "returned", "joined", "joined", *["failed"] * 3]
    assert cluster.changes() == changes


async def test_who_is_unreachable_has_failed_and_silence_makes_suspect(cluster: Cluster) -> None:
    cluster.up()
    cluster.table.unreachable(2, "nobody answers")
    assert cluster.state() == "alive"  # it is connected
    cluster.down(broken=True)
    cluster.table.unreachable(2, "nobody answers")
    assert cluster.state() == "gone"
    assert cluster.table.recent()[-1]["cause"] == "nobody answers"
    cluster.up(3)
    cluster.heard[3] = members.QUIET_S + 1
    assert cluster.state(3) == "alive"
    cluster.down(3)
    assert cluster.state(3) == "suspect"


async def test_the_revoked_stay_revoked_and_need_not_have_been_met(cluster: Cluster) -> None:
    cluster.up()
    cluster.revoked |= {2, 3}
    assert [cluster.state(2), cluster.state(3)] == ["revoked", "revoked"]
    cluster.down(left=True)
    assert cluster.state() == "revoked"
    assert cluster.changes() == ["joined", "revoked", "revoked"]


async def test_the_table_is_bounded(cluster: Cluster) -> None:
    for key in range(2, members.MAX_MEMBERS + 12):
        cluster.up(key)
        cluster.down(key, left=True)
    said = cluster.table.to_json()
    assert len(said["members"]) == members.MAX_MEMBERS + 1
    assert said["changes"][-1]["number"] == 2 * (members.MAX_MEMBERS + 10)


# The view


def drawn(view: dict[str, Any]) -> str:
    console = Console(width=80, force_terminal=False)
    with console.capture() as said:
        console.print(cluster_picture(view))
    return said.get()


def test_who_did_not_answer_is_counted_and_listed_last() -> None:
    members = [member(0), member(1), member(2, "gone"), member(3, "suspect"), member(4)]
    told = {one["key"]: report(wanted=2) for one in (members[0], members[4])}
    view = cluster_view(members, told, asked=3)
    assert (view["known"], view["asked"], view["answered"]) == (4, 4, 2)
    assert view["states"] == {"alive": 3, "gone": 1, "suspect": 1}
    assert view["wanted"] == [4] * SECTORS
    assert [one["name"] for one in view["members"]][:3] == ["peer0", "peer4", "peer1"]
    said = drawn(view)
    assert "2 of 4 members answered (4 were asked)" in said
    assert said.count("no answer") == 1, "of one that is suspect or gone none is expected"


@pytest.mark.parametrize(
    ("figure", "value", "words"),
    [
        ("overloading", 1.0, "a flood of events"),
        ("late_rounds", 0.5, "late rounds"),
        ("queued_bytes", 4e6, "long queues"),
    ],
)
def test_who_is_overloaded_is_named(figure: str, value: float, words: str) -> None:
    members = [member(0), member(1)]
    told = {members[0]["key"]: report(), members[1]["key"]: report(**{figure: value})}  # type: ignore[arg-type]
    view = cluster_view(members, told, asked=1)
    assert view["overloaded"] == ["peer1"]
    said = drawn(view)
    assert "overloaded: peer1" in said
    assert words.split()[0] in said


def test_versions_are_a_column_where_there_are_several() -> None:
    members = [member(0), member(1, version="0.2.0")]
    told = {one["key"]: report() for one in members}
    assert "0.2.0" in drawn(cluster_view(members, told, 1)).splitlines()[-1]
    assert "0.1.0" not in drawn(view(2, answered=2)).splitlines()[-1]


def test_nothing_is_cut_off_in_eighty_columns_and_a_view_is_bounded() -> None:
    figures = dict.fromkeys(FIGURES, 123_456.0)
    figures |= {"position": 0.99, "late_rounds": 0.0, "overloading": 0.0}
    members = [member(number) for number in range(40)]
    told = {one["key"]: report(wanted=9, **figures) for one in members}
    said = drawn(cluster_view(members, told, 39))
    assert "\u2026" not in said
    assert "+" in said, "forty members at one place of the ring"
    seen = view(1000, answered=1000)
    assert len(seen["members"]) == LISTED
    assert seen["known"] == seen["answered"] == 1000
    assert "and 216 more" in drawn(seen)


def test_numbers_are_short() -> None:
    short = [short_text(one) for one in (0, 0.148, 999, 12_700, 4e6)]
    assert short == ["0", "0.148", "999", "12.7k", "4M"]
    assert [span_text(one) for one in (7, 150, 8000, 200_000)] == ["7 s", "2 min", "2 h", "2 d"]
