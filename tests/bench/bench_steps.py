"""What a peer's rules take of a gossip round, interpreted and as machine code.

Run it by hand: ``python tests/bench/bench_steps.py [--peers 40] [--rounds 20] [--runs 3]``. Peers
with the settings of nodes form an overlay on a network in memory, with five subscriptions each to
ranges of three attributes of stock quotes. What one of them takes, which wants nothing itself, is
taken again by two peers that know nothing but that, one interpreted and one by machine code; both
have to write the same. Figures are milliseconds of processor time a round, for each kind of record,
in rounds in which the overlay is at rest; medians of the runs. Sockets, TLS, frames and signatures
are not in them.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from time import process_time
from typing import Any

import attrs
import trio
import trio.testing

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import SEED, read_options
from gossamer.node.config.delivery import Delivery
from gossamer.node.config.node import Protocol
from gossamer.node.discovery.sources import static_peers
from gossamer.node.peer.batches import machine_code
from gossamer.node.peer.batches.machine_code import STEPS, linked_step
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.frames.core import Core, Record
from gossamer.node.transport.base import Address
from gossamer.protocol.kernel.linking import LinkedCode
from gossamer.protocol.kernel.records import KIND
from gossamer.protocol.peer.record_table.fields import Sort
from gossamer.protocol.peer.record_table.records import TABLE
from gossamer.sim.bench.benchmarks import machine
from support.memory_peers import MemoryPeers
from support.memory_transport import Faults, MemoryNetwork
from support.quotes import SCHEMA, make_quotes, make_wishes

# Until the overlay is at rest.
FORMING_ROUNDS = 60
WISHES_EACH = 5
NAMES = {kind.number: kind.name for kind in TABLE}
EFFECTS = {kind.number for kind in TABLE if kind.sort is Sort.EFFECT}
SETTINGS = Protocol().settings_for(len(SCHEMA), Delivery())
# Keys have 62 bits, of which the highest eight are a peer's number here.
PEER_BITS = 54

Taken = list[tuple[int, Record]]


def key_of(number: int) -> int:
    return number << PEER_BITS | 1


def address_of(key: int) -> Address:
    return Address("memory", 1000 + (key >> PEER_BITS))


class NodePeers(MemoryPeers):
    """Peers with the settings of nodes, which look for the first one."""

    def _dependencies(self, key: int, writer: Any) -> Dependencies:
        contacts = [address_of(key_of(0))] if key != key_of(0) else []
        return attrs.evolve(
            super()._dependencies(key, writer),
            settings=SETTINGS,
            listen=[address_of(key)],
            sources=lambda _: [static_peers(contacts)],
        )


async def overhear(count: int, rounds: int, folder: Path) -> tuple[int, int, Taken]:
    """Key of a peer, the round from which on it was at rest, and all records that it took."""
    wishes = make_wishes(WISHES_EACH * count, make_quotes(2000, SEED), SEED)
    network = MemoryNetwork(SEED, Faults(latency_s=(0.0005, 0.001)))
    async with trio.open_nursery() as nursery:
        crowd = NodePeers(network, folder, nursery, schema=SCHEMA)
        for number in range(count):
            await crowd.add(key_of(number))
        watched, *others = crowd.peers.values()
        watched._core.restart()
        taken: Taken = []

        def note(record: Record) -> None:
            if record[KIND] not in EFFECTS:
                taken.append((watched._core.now, list(record)))

        watched.observe(note)
        for number, wish in enumerate(wishes):
            others[number % len(others)].subscribe(wish.expression)
        await trio.sleep(FORMING_ROUNDS * crowd.round_s)
        at_rest = watched._core.now + 1
        await trio.sleep(rounds * crowd.round_s)
        nursery.cancel_scope.cancel()
    return watched.key, at_rest, taken


def name_of(record: Record) -> str:
    return NAMES.get(record[KIND], f"SAMPLER {record[KIND]}")


def timed(core: Core, taken: Taken, at_rest: int) -> tuple[dict[str, float], list[list[Record]]]:
    """Seconds by kind of record from a round on, and what is written."""
    used: dict[str, float] = defaultdict(float)
    written = []
    for core.now, record in taken:
        given = list(record)
        begun = process_time()
        found = core.take(given)
        if core.now >= at_rest:
            used[name_of(record)] += process_time() - begun
        written.append(found)
    return used, written


def compare(key: int, taken: Taken, at_rest: int, code: LinkedCode) -> list[dict[str, float]]:
    interpreted, linked = Core(SETTINGS, key), Core(SETTINGS, key)
    linked.take_by(linked_step(linked, code).take)
    used, written = zip(
        *(timed(core, taken, at_rest) for core in (interpreted, linked)), strict=True
    )
    if written[0] != written[1]:
        sys.exit("the machine code wrote something else than the rules it was made of")
    return list(used)


def main() -> None:
    given = read_options(__doc__, peers=40, rounds=20, runs=3)
    if machine_code.load(STEPS) is None and machine_code.make(STEPS) is not machine_code.Made.HERE:
        sys.exit("the machine code could not be made")
    code = machine_code.load(STEPS)
    assert code is not None
    clock = trio.testing.MockClock(autojump_threshold=0)
    with tempfile.TemporaryDirectory() as folder:
        key, at_rest, taken = trio.run(
            overhear, given.peers, given.rounds, Path(folder), clock=clock
        )
    runs = [compare(key, taken, at_rest, code) for _ in range(given.runs)]
    rounds = taken[-1][0] + 1 - at_rest
    times = Counter(name_of(record) for now, record in taken if now >= at_rest)
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}; {given.peers} peers, {rounds} rounds")
    print(f"{'kind':20} {'a round':>8} {'interpreted, ms':>16} {'machine code, ms':>17}")
    for kind in [*sorted(times, key=lambda kind: -runs[0][0][kind]), ""]:
        kinds = [kind] if kind else list(times)
        often = sum(times[one] for one in kinds) / rounds
        seconds = [[sum(used[one] for one in kinds) for used in run] for run in runs]
        slow, fast = (1e3 * statistics.median(one) / rounds for one in zip(*seconds, strict=True))
        print(f"{kind or 'all':20} {often:8.1f} {slow:16.3f} {fast:17.3f}")


if __name__ == "__main__":
    main()
