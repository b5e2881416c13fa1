"""Peers that change at random moments between all ways of taking what comes.

Events one by one or in batches, other records by `step` as it is or by its buffers; each in the
interpreted form, and by machine code where that is asked for and there is some.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import pytest
import trio

from gossamer.node.peer import peer_parts
from gossamer.node.peer.batches import machine_code
from gossamer.node.peer.batches.buffers import Batch
from gossamer.node.peer.batches.exchange import LinkedRules, Rules
from gossamer.node.peer.batches.taking import scan, take
from gossamer.node.peer.frames.core import Core
from gossamer.protocol.kernel.linking import LinkedCode

# Seconds from one change to the next, on average; some rounds of peers in memory.
MEAN_S: Final = 1.0


class _Interpreted(LinkedCode):
    """Stands for machine code whose rules are interpreted."""

    def __init__(self) -> None:
        """Nothing is linked."""


INTERPRETED: Final = _Interpreted()


class InterpretedRules:
    """Both rules of batches interpreted."""

    def __init__(self, core: Core, batch: Batch) -> None:
        self._state, self._batch = core.state.unboxed(), batch.unboxed()

    def scan(self, begin: int, end: int, source: int, most: int, first: int) -> int:
        return int(scan.linked(self._batch, begin, end, source, most, first))

    def take(self, first: int, count: int, now: int) -> int:
        return int(take.linked(self._state, self._batch, first, count, now))


def rules_of(core: Core, batch: Batch, code: LinkedCode) -> Rules:
    return InterpretedRules(core, batch) if code is INTERPRETED else LinkedRules(core, batch, code)


def buffered_step(core: Core, code: LinkedCode) -> machine_code.BufferedStep:
    if code is not INTERPRETED:
        return machine_code.linked_step(core, code)
    state = core.state.unboxed()
    return machine_code.BufferedStep(
        core, lambda buffers, now: machine_code.take_one.linked(state, buffers.unboxed(), now)
    )


class SwitchingTiers:
    """In place of a peer's `Tiers`: never content with what it has."""

    ways: ClassVar[Counter[str]] = Counter()  # how often each was taken up, by all peers
    by_machine_code: ClassVar[bool] = False

    def __init__(self, _choice: str, _counters: object, use: Mapping[str, Callable[..., Any]]):
        self.compiled = False
        self._use = use
        self._parts: Any = use[machine_code.EVENTS].__self__  # type: ignore[attr-defined]

    async def run(self) -> None:
        parts = self._parts
        draws = random.Random(parts.dependencies.key)
        while True:
            if draws.random() < 0.5:
                self._take_up("one by one")
                parts.runtime.take_in_batches(None)
            else:
                self._use[machine_code.EVENTS](self._code(machine_code.EVENTS))
            if draws.random() < 0.5:
                self._take_up("step")
                parts.core.take_by(parts.core._take_interpreted)
            else:
                self._use[machine_code.STEPS](self._code(machine_code.STEPS))
            await trio.sleep(draws.expovariate(1 / MEAN_S))

    def _code(self, part: str) -> LinkedCode:
        self._take_up(part)
        return (machine_code.load(part) if self.by_machine_code else None) or INTERPRETED

    def _take_up(self, way: str) -> None:
        SwitchingTiers.ways[way] += 1


def let_peers_switch(
    monkeypatch: pytest.MonkeyPatch, *, machine_code: bool = False
) -> Counter[str]:
    """Have all peers that are made from now on change; return how often they do, by way."""
    SwitchingTiers.ways, SwitchingTiers.by_machine_code = Counter(), machine_code
    monkeypatch.setattr(peer_parts, "Tiers", SwitchingTiers)
    monkeypatch.setattr(peer_parts, "LinkedRules", rules_of)
    monkeypatch.setattr(peer_parts, "linked_step", buffered_step)
    return SwitchingTiers.ways
