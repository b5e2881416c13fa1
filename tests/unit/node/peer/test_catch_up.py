"""When a peer asks for what it missed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from gossamer.node.peer.catch_up import MARGIN_ROUNDS, ROUNDS_TO_MERGE, ROUNDS_TO_START, CatchUp
from support.transport_peers import on_jumping_clock

ROUND_S, SILENCE_S, REPLAY_S, KEPT_S = 0.5, 20.0, 30.0, 3600.0
# Since a connection that is found to be broken was alive: a frame may have come just after a look.
DEAD_S = 24.5


@attrs.define(eq=False)
class Asked:
    """A runtime that notes when, and for how many seconds back, it was asked to catch up."""

    heard_back: trio.Event = attrs.field(factory=trio.Event)
    calls: list[tuple[float, float]] = attrs.field(factory=list)
    losses: list[int] = attrs.field(factory=list)
    answers: bool = True
    on_caught_up: Callable[[], None] = lambda: None

    def catch_up(self, rounds: int) -> None:
        self.calls.append((trio.current_time(), (rounds - MARGIN_ROUNDS) * ROUND_S))
        if self.answers:
            self.on_caught_up()

    def report_loss(self, key: int) -> None:
        self.losses.append(key)


@asynccontextmanager
async def watched(*, heard: bool = True) -> AsyncIterator[tuple[CatchUp, Asked]]:
    asked = Asked()
    if heard:
        asked.heard_back.set()
    catch_up = CatchUp(
        asked,  # type: ignore[arg-type]
        round_s=ROUND_S,
        silence_s=SILENCE_S,
        replay_s=REPLAY_S,
        kept_s=KEPT_S,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(catch_up.run)
        yield catch_up, asked
        nursery.cancel_scope.cancel()


@on_jumping_clock
async def test_a_peer_that_did_not_run_asks_once_it_has_its_place() -> None:
    async with watched(heard=False) as (catch_up, asked):
        catch_up.was_stopped(3600)
        await trio.sleep(100)
        assert asked.calls == []
        asked.heard_back.set()
        await trio.sleep(100)
        settled = 100 + ROUNDS_TO_START * ROUND_S
        assert asked.calls == [(settled, 3600 + settled)]


@on_jumping_clock
async def test_who_was_out_of_reach_for_long_is_reason_to_ask_twice() -> None:
    """Once the parts have merged, and once more for what was published meanwhile."""
    async with watched() as (catch_up, asked):
        catch_up.lost(5, trio.current_time() - DEAD_S)
        await trio.sleep(60)
        catch_up.found(5)
        await trio.sleep(100)
        merging = ROUNDS_TO_MERGE * ROUND_S
        first, second = 60 + merging, 60 + 2 * merging
        assert asked.calls == [(first, first + DEAD_S), (second, 2 * merging)]
        assert asked.losses == [5]


@pytest.mark.parametrize("gap_s", [1.0, REPLAY_S - DEAD_S])
@on_jumping_clock
async def test_short_breaks_are_no_reason_to_ask(gap_s: float) -> None:
    async with watched() as (catch_up, asked):
        catch_up.lost(5, trio.current_time() - DEAD_S)
        await trio.sleep(gap_s)
        catch_up.found(5)
        catch_up.found(6)
        catch_up.was_paused(gap_s)
        await trio.sleep(100)
        assert asked.calls == []


@on_jumping_clock
async def test_a_paused_process_asks_for_the_pause() -> None:
    async with watched() as (catch_up, asked):
        await trio.sleep(50)
        catch_up.was_paused(30)
        await trio.sleep(100)
        merging = ROUNDS_TO_MERGE * ROUND_S
        assert asked.calls[0] == (50 + merging, 30 + merging)
        assert len(asked.calls) == 2


@on_jumping_clock
async def test_many_who_come_back_at_once_make_one_question() -> None:
    async with watched() as (catch_up, asked):
        for key in range(10):
            catch_up.lost(key, trio.current_time() - DEAD_S)
            await trio.sleep(1)
        await trio.sleep(60)
        for key in range(10):
            catch_up.found(key)
            await trio.sleep(0.1)
        await trio.sleep(100)
        assert len(asked.calls) == 2
        assert asked.calls[0][0] - asked.calls[0][1] == -DEAD_S


@on_jumping_clock
async def test_a_peer_is_not_whole_until_it_has_everything() -> None:
    """What it knows by then has to be asked for again should it fail meanwhile."""
    async with watched() as (catch_up, asked):
        assert catch_up.is_whole
        asked.answers = False
        catch_up.was_stopped(3600)
        assert not catch_up.is_whole
        await trio.sleep(100)
        assert len(asked.calls) == 1
        assert not catch_up.is_whole
        asked.on_caught_up()
        await trio.sleep(1)
        assert catch_up.is_whole


@on_jumping_clock
async def test_what_peers_out_of_reach_may_have_is_missing_until_they_are_back() -> None:
    async with watched() as (catch_up, _):
        assert catch_up.missing_s == 0
        catch_up.lost(5, trio.current_time() - DEAD_S)
        await trio.sleep(10)
        catch_up.lost(6, trio.current_time())
        assert catch_up.missing_s == DEAD_S + 10
        catch_up.found(5)
        await trio.sleep(5)
        assert catch_up.missing_s == 5
        await trio.sleep(KEPT_S)
        assert catch_up.missing_s == 0, "nobody keeps that"
