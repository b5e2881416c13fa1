"""Commands typed at random beside a cluster of three, some of them killed, and nodes too.

No event that was acknowledged is lost, and no member cannot be revoked.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from gossamer.node.security.cluster import open_membership
from support.mutated_cluster import NODES, PATIENCE_S, POLL_S, MutatedCluster
from support.node_processes import Shell

DRAWS, MUTATIONS = 1, 40


@pytest.mark.campaign
async def test_nothing_acknowledged_is_lost_and_every_member_can_be_revoked(
    tmp_path: Path, seed: int
) -> None:
    cluster = MutatedCluster(Shell(tmp_path), seed)
    async with cluster.running():
        for _ in range(MUTATIONS):
            await cluster.mutate()
        await cluster.settled()
        for number in NODES:
            assert len(set(cluster.got[number])) == len(cluster.got[number]), cluster.said()
        cluster.check_files()
        await cluster.kill_node(1)
        members = await join_all(cluster)
        for member in members:
            await revoke(cluster, member)
        for member in ("demo/peer2", "demo/peer3"):
            await revoke(cluster, member)
        with trio.fail_after(PATIENCE_S):
            while await cluster.connections(1):
                await trio.sleep(POLL_S)
    print(
        f"seed {seed}: {MUTATIONS} mutations, {len(cluster.acknowledged)} events acknowledged, "
        f"{len(members) + 2} members revoked"
    )


async def join_all(cluster: MutatedCluster) -> list[str]:
    """Use every token that was printed, and end every join that was killed; folders of members."""
    for folder, token in cluster.joins.items():
        again = await cluster.command("node", "join", token, folder)
        assert again.code == 0 or "is a membership already" in again.err, cluster.said()
    for number, token in enumerate(cluster.tokens):
        joined = await cluster.command("node", "join", token, f"late{number}")
        assert joined.code == 0, cluster.said()
    return [*cluster.joins, *(f"late{number}" for number in range(len(cluster.tokens)))]


async def revoke(cluster: MutatedCluster, folder: str) -> None:
    done = await cluster.command("node", "revoke", Path(folder).name, "--folder", "demo/peer1")
    assert done.code == 0, cluster.said()
    key = open_membership(cluster.shell.folder / folder).identity.key
    assert open_membership(cluster.shell.folder / "demo/peer1").revoked.forbids(key, 0)
