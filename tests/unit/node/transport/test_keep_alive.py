"""Pings of one connection, and peers that are silent."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from gossamer.node.transport.base.base import Cause, Farewell
from gossamer.node.transport.base.frames import encode_frame
from support.connection_ends import LIMITS, HeldUp, Wire, both, served
from support.tasks import running
from support.transport_peers import Served, message


async def test_pings_are_answered_and_measure_the_round_trip() -> None:
    async with served(ping_seconds=5) as (ours, wire):
        await wire.send(encode_frame("ping", number=42))
        assert (await wire.next()) == {"type": "pong", "number": 42}
        frame = await wire.next()
        assert frame == {"type": "ping", "number": 1}
        await trio.sleep(0.25)
        await wire.send(encode_frame("pong", number=1))
        assert (await wire.next()) == {"type": "ping", "number": 2}
        assert ours.connection.stats.round_trip_s == pytest.approx(0.25)
        await wire.send(encode_frame("pong", number=77))
        await wait_all_tasks_blocked()
        assert ours.connection.stats.round_trip_s == pytest.approx(0.25), "it was not asked for"


async def test_who_is_heard_anyway_is_asked_only_once() -> None:
    async with served(ping_seconds=5) as (ours, wire):
        asked: list[object] = []

        async def answer() -> None:
            while frame := await wire.next():
                if frame["type"] == "pong":
                    continue
                asked.append(frame["number"])
                await wire.send(encode_frame("pong", number=frame["number"]))

        async with running(answer):
            for number in range(100):
                # Every answer to what it asks tells it that we are here.
                await wire.send(encode_frame("ping", number=number), message())
                await trio.sleep(1)
            assert asked == [1]
            await trio.sleep(100)
        assert len(asked) >= 10, "every other time while nothing else comes"
        assert ours.connection.is_open


async def test_two_connections_keep_each_other_alive() -> None:
    async with both() as (ours, theirs):
        await trio.sleep(600)
        assert ours.connection.is_open
        assert theirs.connection.is_open
        assert ours.connection.last_used_at == ours.connection.opened_at, "pings are no use"


async def test_a_silent_peer_is_cut() -> None:
    async with served(ping_seconds=5, silence_seconds=20) as (ours, _):
        farewell = await ours.end()
    assert trio.current_time() == pytest.approx(20)
    assert farewell == Farewell(Cause.SILENT, True, "no whole frame came for 20 s")


@pytest.mark.parametrize("heard_at", [0.2, 4.9, 5.1, 7.0, 9.9])
async def test_a_silent_peer_was_alive_when_it_was_heard_last(heard_at: float) -> None:
    async with served(ping_seconds=5, silence_seconds=20) as (ours, wire):
        await trio.sleep(heard_at)
        await wire.send(message())
        assert (await ours.end()).cause is Cause.SILENT
        assert heard_at - 5 <= ours.connection.alive_until <= heard_at
        assert 20 <= trio.current_time() - heard_at <= 25


async def test_a_frame_that_drips_in_counts_as_silence() -> None:
    async with served(ping_seconds=5, silence_seconds=20) as (ours, wire):

        async def drip() -> None:
            for byte in message(bytes(900)):
                await wire.send(bytes([byte]))
                await trio.sleep(1)

        with pytest.raises(trio.BrokenResourceError):
            await drip()
        assert (await ours.end()).cause is Cause.SILENT
        assert 20 <= trio.current_time() <= 26


async def test_a_slow_handler_does_not_make_the_peer_silent() -> None:
    near, far = memory_stream_pair()
    ours = Served(near, LIMITS)

    async def slow(frame: dict[str, Any]) -> None:
        await trio.sleep(100)
        ours.frames.append(frame)
        ours.changed()

    async with running(partial(ours.connection.run, slow)):
        await Wire(far).send(message(number=1), message(number=2))
        await ours.until(lambda: len(ours.frames) == 2, 300)
        assert ours.connection.is_open


async def test_who_takes_long_over_what_came_is_not_silent() -> None:
    near, far = memory_stream_pair()
    ours, theirs = Served(near, LIMITS), Served(far, LIMITS)

    async def stuck(_: dict[str, Any]) -> None:
        await trio.sleep_forever()

    async with running(ours.run, partial(theirs.connection.run, stuck)):
        await ours.connection.send(message())
        await trio.sleep(600)
        assert ours.connection.is_open, "it has pings of theirs that it need not answer"
        assert theirs.connection.is_open


async def test_who_is_sent_nothing_is_told_that_we_are_here() -> None:
    async with served(ping_seconds=5) as (_, wire):
        for count in range(1, 7):
            # A peer that is heard, and neither asks nor answers.
            await wire.send(message())
            assert (await wire.next()) == {"type": "ping", "number": 1}
            assert trio.current_time() == pytest.approx(5 * count)


async def test_a_peer_that_pings_without_reading_costs_no_memory() -> None:
    near, far = memory_stream_pair()
    ours = Served(trio.StapledStream(HeldUp(), near.receive_stream), LIMITS)
    async with running(ours.run):
        for _ in range(100):
            await Wire(far).send(*[encode_frame("ping", number=1)] * 100)
            await wait_all_tasks_blocked()
        assert ours.connection.stats.frames_in == 10_000
        assert ours.connection.queue_high_water <= LIMITS.queue_bytes
