"""Links of brokers whose connection another one replaces before its end is noticed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from gossamer.protocol.brokers.scot import Factor, Scot
from support.memory_brokers import (
    LIMITS,
    MemoryBrokers,
    MemoryGraph,
    all_got,
    memory_brokers,
    memory_scot,
)
from support.memory_transport import MemoryNetwork, MemoryStream
from support.transport_peers import on_jumping_clock

WANTED = "present(x)"
FOUR = Scot(Factor.path("ab"), Factor.complete(2))
Overlay = Callable[[Path], AbstractAsyncContextManager[MemoryBrokers]]
FAMILIES: dict[str, Overlay] = {
    "tree": lambda folder: memory_brokers(folder, [(2, 1)]),
    "scot": partial(memory_scot, scot=FOUR),
    "graph": lambda folder: MemoryGraph.running(folder, [(2, 1)]),
}


def lose_connection(network: MemoryNetwork, near: int, far: int) -> None:
    """Let nothing more come over a connection; one end notices, and the other does not."""
    for stream in list(network.streams):
        if {stream.owner, stream.other_end} == {near, far}:
            stream.other = MemoryStream(network, stream.other_end, stream.owner)
            stream.other.other = stream
            if stream.owner == near:
                stream.break_now()


@pytest.mark.parametrize("unnoticed", [1, 2], ids=["who listens", "who dials"])
@pytest.mark.parametrize("family", FAMILIES)
@on_jumping_clock
async def test_a_connection_that_replaces_a_dead_one_brings_a_session_of_its_own(
    tmp_path: Path, family: str, unnoticed: int
) -> None:
    async with FAMILIES[family](tmp_path) as brokers:
        clients: dict[int, Any] = await brokers.subscribers(all=WANTED)
        for client in clients.values():
            await client.advertise("all", WANTED)
        await brokers.settle()
        due = {await client.publish({"x": 1}) for client in clients.values()}
        await all_got(clients, due)
        lose_connection(brokers.network, 3 - unnoticed, unnoticed)
        due |= {await client.publish({"x": 2}) for client in clients.values()}
        await all_got(clients, due)
        # Until the dead connection is given up, or brokers that stop would be dialled meanwhile.
        await trio.sleep(2 * LIMITS.close_seconds)
