"""Clocks that are set forward and back while peers run."""

from __future__ import annotations

import pytest
import trio

from gossamer.node.peer.persistence import LAST_GAP, read_gap
from gossamer.node.store import Store
from support.clusters import DAY_S, MadeCluster
from support.memory_members import member_peers
from support.memory_peers import ring_errors
from support.node_peers import take
from support.transport_peers import on_jumping_clock

pytestmark = pytest.mark.usefixtures("each_preset")

# An hour, years, and before the cluster was made: certificates are valid for 30 days.
JUMPS_S = (3600.0, 1000 * DAY_S, -1000 * DAY_S, -3600.0, 1e-3)


@on_jumping_clock
async def test_events_go_on_arriving_once_while_clocks_jump(cluster: MadeCluster) -> None:
    """All clocks are wrong, then one of five is: nothing that lasts is decided by them."""
    async with member_peers(cluster, 5) as crowd:
        keys = list(crowd.peers)
        await crowd.whole()
        events = crowd.peers[keys[2]].subscribe("price >= 0", name="ledger")
        await crowd.rounds(8)
        published = set()
        for jump_s in JUMPS_S:
            crowd.offset_s = jump_s
            for key in keys:
                published.add(await crowd.publish(key, 1))
            await crowd.rounds(4)
            crowd.offset_s = 0.0
            crowd.offsets_s = {keys[3]: jump_s}
            published.add(await crowd.publish(keys[3], 1))
            await crowd.rounds(4)
            crowd.offsets_s = {}
        got = await take(events, len(published))
        assert {event.id for event in got} == published
        await crowd.rounds(8)
        assert len(events) == 0
        assert not ring_errors(crowd.peers)


@on_jumping_clock
async def test_a_peer_whose_clock_was_wrong_is_back_once_it_is_right(cluster: MadeCluster) -> None:
    """With a clock of years ahead all certificates have expired for it: it trusts nobody new."""
    async with member_peers(cluster, 4) as crowd:
        keys = list(crowd.peers)
        await crowd.stop(keys[2])
        crowd.offsets_s = {keys[2]: 1000 * DAY_S}
        await crowd.add(keys[2])
        await trio.sleep(10)
        assert crowd.peers[keys[2]].counters.refused["certificate"] > 0
        assert all(not one.links for one in crowd.peers[keys[2]].snapshot().peers)
        crowd.offsets_s = {}
        await crowd.whole()


@on_jumping_clock
async def test_a_peer_notes_from_when_to_when_its_clock_was_set(cluster: MadeCluster) -> None:
    """The doctor judges the clock by it."""
    async with member_peers(cluster, 1) as crowd:
        (key,) = crowd.peers
        await trio.sleep(15)
        before = crowd.now()
        crowd.offset_s = 1000 * DAY_S
        await trio.sleep(25)
        await crowd.stop(key)
        with Store(cluster.folder.parent / f"{key}.db") as store:
            raw = store.get_meta(LAST_GAP)
    assert raw is not None
    began, ended = (moment.timestamp() for moment in read_gap(raw))
    assert before - 15 <= began <= before
    assert before + 1000 * DAY_S <= ended <= before + 1000 * DAY_S + 25
