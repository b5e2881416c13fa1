"""What a node notes of the members of its cluster."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing
from attrs import define, field

from gossamer.node.monitoring import members
from gossamer.node.monitoring.metrics import Counters


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


async def test_a_member_joins_leaves_and_returns(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster = Cluster()
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


async def test_a_broken_connection_makes_suspect_and_then_gone() -> None:
    cluster = Cluster()
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


async def test_several_fail_together() -> None:
    cluster = Cluster()
    for key in (2, 3, 4):
        cluster.up(key)
        cluster.down(key, broken=True)
    await trio.sleep(2 * members.SUSPECT_S)
    assert [cluster.state(key) for key in (2, 3, 4)] == ["gone"] * 3
    assert cluster.changes() == ["joined"] * 3 + ["failed"] * 3


async def test_who_cannot_be_reached_has_failed_at_once() -> None:
    cluster = Cluster()
    cluster.up()
    cluster.table.unreachable(2, "nobody answers")
    assert cluster.state() == "alive"  # it is connected
    cluster.down(broken=True)
    cluster.table.unreachable(2, "nobody answers")
    assert cluster.state() == "gone"
    assert cluster.table.recent()[-1]["cause"] == "nobody answers"


async def test_long_silence_without_a_connection_makes_suspect() -> None:
    cluster = Cluster()
    cluster.up()
    cluster.heard[2] = members.QUIET_S + 1
    assert cluster.state() == "alive"
    cluster.down()
    assert cluster.state() == "suspect"


async def test_the_revoked_stay_revoked_and_need_not_have_been_met() -> None:
    cluster = Cluster()
    cluster.up()
    cluster.revoked |= {2, 3}
    assert [cluster.state(2), cluster.state(3)] == ["revoked", "revoked"]
    cluster.down(left=True)
    assert cluster.state() == "revoked"
    assert cluster.changes() == ["joined", "revoked", "revoked"]


async def test_the_table_is_bounded() -> None:
    cluster = Cluster()
    for key in range(2, members.MAX_MEMBERS + 12):
        cluster.up(key)
        cluster.down(key, left=True)
    said = cluster.table.to_json()
    assert len(said["members"]) == members.MAX_MEMBERS + 1
    assert said["changes"][-1]["number"] == 2 * (members.MAX_MEMBERS + 10)
