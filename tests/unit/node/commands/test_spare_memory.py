"""What the C library keeps of freed memory goes back to the system."""

from __future__ import annotations

import math

import psutil
import pytest
import trio
import trio.testing

from gossamer.node.commands.running import spare_memory
from gossamer.node.commands.running.spare_memory import PAUSE_S, find_trim, give_back_spare_memory

PIECES, PIECE_BYTES = 16_000, 2_000


def test_holes_that_a_burst_left_go_back() -> None:
    trim = find_trim()
    if trim is None:
        pytest.skip("the C library is not glibc, which alone keeps holes")
    # What stays lies between what goes, so that no end of the heap is free.
    pieces = [bytes(PIECE_BYTES) for _ in range(PIECES)]
    kept = [piece for i, piece in enumerate(pieces) if i % 8 == 0]
    del pieces
    before = psutil.Process().memory_info().rss
    trim()
    assert before - psutil.Process().memory_info().rss > PIECES * PIECE_BYTES // 2
    assert all(piece == bytes(PIECE_BYTES) for piece in kept)


@pytest.mark.parametrize("has_glibc", [True, False])
def test_memory_is_given_back_every_minute_where_it_can_be(
    monkeypatch: pytest.MonkeyPatch, has_glibc: bool
) -> None:
    times: list[float] = []

    async def main() -> None:
        begun = trio.current_time()

        def trim() -> None:
            times.append(trio.current_time() - begun)

        monkeypatch.setattr(spare_memory, "find_trim", lambda: trim if has_glibc else None)
        with trio.move_on_after(3.5 * PAUSE_S):
            await give_back_spare_memory()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    expected = [PAUSE_S, 2 * PAUSE_S, 3 * PAUSE_S] if has_glibc else []
    assert all(map(math.isclose, times, expected))
    assert len(times) == len(expected)
