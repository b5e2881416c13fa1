"""One connection: queue, back-pressure, floods, pings, and the ways it ends."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import cbor2
import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from gossamer.node.errors import BadFrame, FrameTooLarge, TransportBroken
from gossamer.node.transport.base import Cause, Farewell
from gossamer.node.transport.connection import RATED_AT_ONCE
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.writer import KeepAlive
from support.transport_peers import (
    LIMITS,
    HeldUp,
    Served,
    Wire,
    both,
    drip,
    held_up,
    message,
    served,
)
from support.waiting import running


async def test_frames_arrive_in_order_and_are_counted_and_what_is_queued_is_one_write() -> None:
    frames = [message(b"x", i) for i in range(50)]
    async with both() as (ours, theirs):
        for frame in frames[:40]:
            assert ours.connection.try_send(frame)
        await theirs.until(lambda: len(theirs.frames) == 40)
        assert ours.connection.stats.writes == 1
        for frame in frames[40:]:
            await ours.connection.send(frame)
        await theirs.until(lambda: len(theirs.frames) == 50)
    assert [frame["number"] for frame in theirs.frames] == list(range(50))
    size = sum(map(len, frames))
    assert (ours.connection.stats.frames_out, ours.connection.stats.bytes_out) == (50, size)
    assert (theirs.connection.stats.frames_in, theirs.connection.stats.bytes_in) == (50, size)


async def test_a_full_queue_makes_senders_wait() -> None:
    frame = message(bytes(900))
    async with held_up() as (ours, release):
        sent = 0
        while ours.connection.try_send(frame):
            sent += 1
        assert sent == 4
        assert ours.connection.stats.refused == 1
        assert ours.connection.queue_high_water <= 4096
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ours.connection.send, frame)
            await wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 1
            release()


async def test_a_consumer_that_stalls_is_cut() -> None:
    async with held_up(stall_seconds=7) as (ours, _):

        async def keep_sending() -> None:
            while True:
                await ours.connection.send(message(bytes(900)))

        with pytest.raises(TransportBroken, match="was closed here"):
            await keep_sending()
        farewell = await ours.end()
    assert trio.current_time() == pytest.approx(7)
    assert (farewell.cause, farewell.by_us) == (Cause.STALLED, True)
    assert ours.connection.stats.dropped > 0
    assert ours.connection.queued_bytes <= 4096


async def test_a_burst_is_taken_and_a_flood_slowed_down() -> None:
    async with served(frames_per_second=10, frames_burst=20) as (ours, wire):
        await wire.send(*[message(number=i) for i in range(20)])
        await ours.until(lambda: len(ours.frames) == 20)
        assert ours.connection.stats.throttled == 0
        for i in range(20):
            await wire.send(message(number=i))
            await wait_all_tasks_blocked()
        await ours.until(lambda: len(ours.frames) == 40)
        assert ours.connection.stats.throttled >= 1
        assert ours.connection.is_open
    assert trio.current_time() <= 3
    # Large frames count by their size.
    limits = {"frames_per_second": 10, "frames_burst": 20, "frame_bytes": 8192}
    async with served(**limits, queue_bytes=1 << 16) as (ours, wire):
        for _ in range(3):
            await wire.send(message(bytes(8000)))
            await wait_all_tasks_blocked()
        await ours.until(lambda: len(ours.frames) == 3)
        assert ours.connection.stats.throttled == 1


async def test_a_flood_that_goes_on_is_cut() -> None:
    limits = {"frames_per_second": 10, "frames_burst": 20, "flood_seconds": 5}
    async with served(**limits) as (ours, wire):

        async def flood() -> None:
            while True:
                await wire.send(*[message(number=i) for i in range(5)])
                await trio.sleep(0.1)

        async def flood_until_cut() -> None:
            with pytest.raises(trio.BrokenResourceError):
                await flood()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(flood_until_cut)
            farewell = await ours.end()
    expected = Farewell(Cause.FLOOD, True, "more than 10 frames a second for 5 s")
    assert farewell == expected
    assert ours.connection.stats.frames_in <= 20 + 10 * 7 + 2 * RATED_AT_ONCE


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7f\xff\xff\xff", "length is 2147483647"),
        (b"\x00\x00\x00\x01\x01", "is 1, expected a map"),
        (encode_frame("nonsense"), "type is 'nonsense'"),
        (encode_frame("welcome", echo=bytes(16)), "no introduction after the first"),
    ],
)
async def test_a_bad_frame_costs_its_sender_the_connection(data: bytes, why: str) -> None:
    async with served(close_seconds=1) as (ours, wire):
        await wire.send(message(number=1), data)
        goodbye = await wire.next()
        assert goodbye is not None
        assert goodbye["reason"] == "bad frame"
        assert why in goodbye["detail"]
        await wire.stream.aclose()
        farewell = await ours.end()
    assert (farewell.cause, farewell.by_us) == (Cause.BAD_FRAME, True)
    assert [frame["number"] for frame in ours.frames] == [1], "what came before was in order"
    began = trio.current_time()
    async with served(close_seconds=1) as (ours, wire):
        await wire.send(b"\xff\xff\xff\xff", message(number=1))
        assert (await ours.end()).cause is Cause.BAD_FRAME
        assert ours.frames == [], "who goes on is not listened to"
    assert trio.current_time() == pytest.approx(began + 1)


async def test_a_handler_may_find_a_frame_bad_and_its_defects_are_not_hidden() -> None:
    error: Exception = BadFrame("message", "kind", "1", "another")

    async def fail(_: dict[str, Any]) -> None:
        raise error

    near, far = memory_stream_pair()
    await Wire(far).send(message())
    assert (await Served(near, LIMITS).connection.run(fail)).cause is Cause.BAD_FRAME
    near, far = memory_stream_pair()
    ours, error = Served(near, LIMITS), ZeroDivisionError()
    await Wire(far).send(message())
    with pytest.raises(ExceptionGroup) as caught:
        await ours.connection.run(fail)
    assert caught.group_contains(ZeroDivisionError, depth=1)
    assert not ours.connection.is_open


async def test_closing_delivers_what_was_queued() -> None:
    async with both() as (ours, theirs):
        for i in range(30):
            await ours.connection.send(message(number=i))
            await theirs.connection.send(message(number=i))
        await ours.connection.close(Cause.SHUTDOWN, "going home")
        assert await ours.end() == Farewell(Cause.SHUTDOWN, True, "going home")
        assert await theirs.end() == Farewell(Cause.SHUTDOWN, False, "going home")
        assert len(theirs.frames) == len(ours.frames) == 30
    assert trio.current_time() == 0, "nobody waited for a deadline"


async def test_who_is_expelled_hears_why_and_is_heard_no_more() -> None:
    async with both() as (ours, theirs):
        assert ours.connection.try_send(message(number=1))
        assert theirs.connection.try_send(message(number=2))
        ours.connection.expel(Cause.REFUSED, "revoked")
        assert await ours.end() == Farewell(Cause.REFUSED, True, "revoked")
        assert await theirs.end() == Farewell(Cause.REFUSED, False, "revoked")
    assert ours.frames == theirs.frames == []
    assert ours.connection.stats.dropped == 1


async def test_both_may_close_at_once_and_closing_is_bounded_without_an_answer() -> None:
    async with both() as (ours, theirs):
        for end in (ours, theirs):
            await end.connection.send(message(number=1))
            end.connection.start_closing(Cause.REPLACED)
        await ours.end()
        await theirs.end()
        assert len(ours.frames) == len(theirs.frames) == 1
    assert trio.current_time() == 0
    async with held_up(close_seconds=1) as (ours, _):
        await ours.connection.send(message())
        await ours.connection.close()
        assert ours.connection.stats.dropped == 2, "the message and the goodbye"
    assert trio.current_time() == pytest.approx(1)


async def test_what_cannot_be_sent_is_said_and_who_closed_is_told_from_who_broke() -> None:
    body = bytes(1024)
    async with both() as (ours, theirs):
        with pytest.raises(FrameTooLarge, match="expected at most 1024"):
            await ours.connection.send(message(body))
        with pytest.raises(FrameTooLarge):
            ours.connection.try_send(message(body))
        assert ours.connection.is_open
        await ours.connection.close(Cause.UNUSED)
        await theirs.end()
        with pytest.raises(TransportBroken, match="was closed here"):
            await ours.connection.send(message())
        with pytest.raises(TransportBroken, match=r"broke \(unused"):
            theirs.connection.try_send(message())


async def test_an_end_without_goodbye_is_a_loss_and_one_in_unknown_words_none() -> None:
    async with served() as (ours, wire):
        await wire.stream.aclose()
        farewell = await ours.end()
        assert (farewell.cause, farewell.by_us) == (Cause.LOST, False)
        with pytest.raises(TransportBroken):
            await ours.connection.send(message())
    async with served() as (ours, wire):
        await wire.send(encode_frame("goodbye", reason="moonrise"))
        assert await ours.end() == Farewell(Cause.OTHER, False)


async def test_what_came_with_the_handshake_is_not_lost() -> None:
    near, far = memory_stream_pair()
    ours = Served(near, LIMITS)
    frame = message(number=9)
    ours.connection.admitted = attrs.evolve(ours.connection.admitted, rest=frame[:7])
    async with running(ours.run):
        await far.send_all(frame[7:])
        await ours.until(lambda: bool(ours.frames))
    assert cbor2.loads(frame[4:]) == ours.frames[0]


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


async def test_two_connections_keep_each_other_alive_and_a_silent_peer_is_cut() -> None:
    async with both() as (ours, theirs):
        await trio.sleep(600)
        assert ours.connection.is_open
        assert theirs.connection.is_open
        assert ours.connection.last_used_at == ours.connection.opened_at, "pings are no use"
    async with served(ping_seconds=5, silence_seconds=20) as (ours, _):
        began = trio.current_time()
        farewell = await ours.end()
    assert trio.current_time() == pytest.approx(began + 20)
    assert farewell == Farewell(Cause.SILENT, True, "no whole frame came for 20 s")
    # A frame that drips in counts as silence.
    async with served(ping_seconds=5, silence_seconds=20) as (ours, wire):
        began = trio.current_time()
        with pytest.raises(trio.BrokenResourceError):
            await drip(wire.stream, message(bytes(900)))
        assert (await ours.end()).cause is Cause.SILENT
        assert 20 <= trio.current_time() - began <= 26


def test_peers_that_rest_are_pinged_later_and_cut_as_soon() -> None:
    pings: list[bytes] = []
    cut: list[Cause] = []

    def put(frame: bytes) -> bool:
        pings.append(frame)
        return True

    limits = attrs.evolve(LIMITS, ping_seconds=5, silence_seconds=20)
    keep_alive = KeepAlive(limits, 0.0, lambda: len(pings), put, lambda why, _: cut.append(why), 8)
    keep_alive.is_reading = True
    found = []
    for now in range(5, 65, 5):
        keep_alive.heard = now <= 40 and now % 10 == 0  # what is said comes every ten seconds
        keep_alive.look(float(now))
        found.append((len(pings), len(cut)))
    assert found[:8] == [(1, 0), (1, 0), (2, 0), (2, 0), (3, 0), (3, 0), (4, 0), (4, 0)]
    assert found[8:] == [(5, 0), (5, 0), (6, 0), (6, 1)]
    assert cut == [Cause.SILENT]


async def test_who_takes_long_over_what_came_is_not_silent_nor_is_its_peer() -> None:
    near, far = memory_stream_pair()
    ours, theirs = Served(near, LIMITS), Served(far, LIMITS)

    async def slow(frame: dict[str, Any]) -> None:
        await trio.sleep(600)
        theirs.frames.append(frame)
        theirs.changed()

    async with running(ours.run, partial(theirs.connection.run, slow)):
        for number in (1, 2):
            await ours.connection.send(message(number=number))
        await theirs.until(lambda: len(theirs.frames) == 2, 1500)
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
