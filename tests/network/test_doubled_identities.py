"""Two processes under one key: everybody is told, and where both are."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.node.peer.assembly import run_peer
from gossamer.node.store.writer import open_writer
from gossamer.node.transport.base.base import Address
from support.memory_peers import address_of, memory_peers
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true

KEYS = [1 + (i << 58) for i in range(4)]
COPIED = KEYS[2]
ELSEWHERE = Address("memory", 7000)


@pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)
@pytest.mark.usefixtures("each_preset")
@on_jumping_clock
async def test_a_copied_identity_is_named_by_all_with_both_places(tmp_path: Path) -> None:
    async with memory_peers(tmp_path, *KEYS) as crowd:
        await crowd.whole()
        original = crowd.peers[COPIED]
        await crowd.stop(KEYS[3])
        await crowd.add(KEYS[3])
        await crowd.whole()
        assert not any(peer.standing.troubles() for peer in crowd.peers.values()), (
            "a restart is none"
        )
        async with AsyncExitStack() as stack:
            writer = await stack.enter_async_context(open_writer(tmp_path / "copy.db"))
            dependencies = attrs.evolve(
                crowd._dependencies(COPIED, writer), listen=[ELSEWHERE], name="copy"
            )
            copy = await stack.enter_async_context(run_peer(dependencies))
            others = [peer for key, peer in crowd.peers.items() if key != COPIED]

            def told() -> bool:
                return all(
                    "identity" in peer.standing.by_kind() for peer in (original, copy, *others)
                )

            assert await comes_true(told, 120.0)
            for peer in others:
                sentence = peer.standing.by_kind()["identity"]
                assert f"{COPIED:016x}" in sentence
                assert str(ELSEWHERE) in sentence
                assert str(address_of(COPIED)) in sentence
            assert str(ELSEWHERE) in original.standing.by_kind()["identity"]
            assert str(address_of(COPIED)) in copy.standing.by_kind()["identity"]
        await trio.sleep(90)
        assert not any("identity" in peer.standing.by_kind() for peer in crowd.peers.values())
