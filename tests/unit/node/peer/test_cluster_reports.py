"""Reports are asked for while somebody looks, and answered now and then only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field

from gossamer.node.errors import PeerUnreachable
from gossamer.node.monitoring.cluster import FIGURES, SECTORS, Report
from gossamer.node.monitoring.members import Member, MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.membership.cluster_reports import (
    ANSWER_S,
    MOST_DIALLED,
    STALE_S,
    ClusterReports,
)
from gossamer.node.transport.base.frames import FrameReader
from gossamer.node.transport.base.limits import Limits
from support.tasks import running

OWN = Report(figures=dict.fromkeys(FIGURES, 1.0), wanted=[0] * SECTORS)


@define
class FakePool:
    """Connections to some peers, by their keys, and those to whom there could be one."""

    connected: set[int]
    reachable: set[int] = field(factory=set)
    sent: list[tuple[int, dict[str, Any]]] = field(factory=list)
    dialled: list[int] = field(factory=list)

    def __iter__(self) -> Any:
        identities = [SimpleNamespace(key=key) for key in sorted(self.connected)]
        return iter([SimpleNamespace(identity=identity) for identity in identities])

    def try_send(self, key: int, frame: bytes) -> bool:
        if key not in self.connected:
            return False
        reader = FrameReader(Limits(), 1 << 20)
        reader.feed(frame)
        (read,) = reader
        self.sent.append((key, read))
        return True

    async def connect(self, key: int) -> None:
        await trio.lowlevel.checkpoint()
        self.dialled.append(key)
        if key not in self.reachable:
            raise PeerUnreachable(key, [("127.0.0.1:1", "nobody listens")])
        self.connected.add(key)


@asynccontextmanager
async def running_with(pool: FakePool, known: int) -> AsyncIterator[ClusterReports]:
    """The service of peer 0, which has met so many others."""
    members = MemberTable(Member(0, "own"), Counters(), lambda: 1000.0)
    for key in range(1, known + 1):
        members.connected(key, f"peer{key}", ("127.0.0.1:1",), "0.1.0", None)
    reports = ClusterReports(members, pool, lambda: OWN)  # type: ignore[arg-type]
    async with running(reports.run):
        yield reports


def answer(number: int, **figures: float) -> dict[str, Any]:
    return {
        "type": "report",
        "number": number,
        "figures": figures,
        "wanted": [1] * SECTORS,
        "troubles": [],
    }


async def looked(reports: ClusterReports, nursery: trio.Nursery) -> list[dict[str, Any]]:
    """The view that somebody asks for, as soon as it is there."""
    found: list[dict[str, Any]] = []

    async def look() -> None:
        found.append(await reports.fresh_view())

    nursery.start_soon(look)
    await trio.testing.wait_all_tasks_blocked()
    return found


async def test_those_who_answer_are_in_the_view(nursery: trio.Nursery) -> None:
    pool = FakePool({1, 2})
    async with running_with(pool, known=2) as reports:
        found = await looked(reports, nursery)
        number = pool.sent[0][1]["number"]
        reports.receive(1, answer(number, delivered=7.0, unknown=3.0))
        reports.receive(9, answer(number))  # nobody asked it
        reports.receive(2, answer(number + 1))  # for another question
        await trio.sleep(ANSWER_S + 1)
        (view,) = found
        assert (view["known"], view["asked"], view["answered"]) == (3, 3, 2)
        assert view["wanted"] == [1] * SECTORS
        by_key = {one["key"]: one["report"] for one in view["members"]}
        assert by_key[f"{1:016x}"]["delivered"] == 7.0
        assert by_key[f"{2:016x}"] is None
        await trio.sleep(STALE_S + 1)
        assert reports.view()["answered"] == 1, "what was said long ago does not count"


async def test_nobody_is_asked_while_nobody_looks() -> None:
    pool = FakePool({1})
    async with running_with(pool, known=1) as reports:
        await trio.sleep(60)
        assert pool.sent == []
        for _ in range(100):
            reports.view()
            await trio.sleep(0.1)
        assert len(pool.sent) <= 6, "ten seconds of looking"


async def test_a_bounded_number_of_others_is_connected_to(nursery: trio.Nursery) -> None:
    pool = FakePool({1}, reachable={2})
    async with running_with(pool, known=300) as reports:
        found = await looked(reports, nursery)
        await trio.sleep(ANSWER_S + 1)
        assert len(pool.dialled) == MOST_DIALLED
        assert {key for key, _ in pool.sent} == {1, 2}
        assert (found[0]["known"], found[0]["asked"]) == (301, 3)


async def test_a_member_that_asks_too_often_is_answered_now_and_then() -> None:
    pool = FakePool({1, 2})
    async with running_with(pool, known=2) as reports:
        for number in range(1000):
            reports.receive(1, {"type": "report wanted", "number": number})
            await trio.sleep(0.001)
        reports.receive(2, {"type": "report wanted", "number": 5})
    assert [key for key, _ in pool.sent] in ([1, 2], [1, 1, 2])
    assert pool.sent[-1][1]["number"] == 5
    assert len(pool.sent[-1][1]["wanted"]) == SECTORS


@pytest.mark.parametrize("forgotten", [True, False])
async def test_a_member_that_leaves_is_not_waited_for(
    nursery: trio.Nursery, forgotten: bool
) -> None:
    pool = FakePool({1})
    async with running_with(pool, known=1) as reports:
        found = await looked(reports, nursery)
        if forgotten:
            reports.forget(1)
        await trio.testing.wait_all_tasks_blocked()
        assert bool(found) == forgotten
