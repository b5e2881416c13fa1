"""Work in a process of its own sees this one's memory as it was, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import aclosing
from functools import partial

import pytest
import trio

from gossamer.node.broker import forked_work
from gossamer.node.broker.forked_work import Begun, in_a_process, in_this_process
from gossamer.node.errors import WorkApartError
from gossamer.protocol.brokers.core.effects import Compute
from support.waiting import running

pytestmark = pytest.mark.trio


def ends() -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def endless() -> bytes:
    time.sleep(3600)
    return b""


async def worked_out(begun: Begun) -> list[bytes]:
    async with aclosing(begun.portions()) as portions:
        return [portion async for portion in portions]


@pytest.mark.parametrize("begin", [in_a_process, in_this_process])
async def test_it_is_of_the_memory_as_it_was_when_it_was_begun(begin: forked_work.Apart) -> None:
    memory = {"a": 1}
    begun = begin(lambda: repr(memory).encode() * 100_000)
    memory["a"] = 2
    portions = await worked_out(begun)
    assert b"".join(portions) == b"{'a': 1}" * 100_000
    assert {len(portion) for portion in portions[:-1]} == {forked_work.PORTION}
    assert await worked_out(begin(bytes)) == []


def fails() -> bytes:
    raise ValueError("no such table")


async def test_work_that_fails_or_is_ended_elsewhere_says_why() -> None:
    for work, words in ((fails, "ValueError: no such table"), (ends, "ended with -9, expected 0")):
        with pytest.raises(WorkApartError, match=words):
            await worked_out(in_a_process(work))


async def test_its_process_ends_with_those_who_want_it_and_connections_though_it_goes_on() -> None:
    begun = in_a_process(endless)
    with trio.move_on_after(0.05):
        await worked_out(begun)
    with pytest.raises(ChildProcessError):
        os.waitpid(begun._process, os.WNOHANG)  # type: ignore[attr-defined]
    here, there = socket.socketpair()
    async with running(partial(worked_out, in_a_process(endless))):
        here.close()
        async with trio.SocketStream(trio.socket.from_stdlib_socket(there)) as end:
            assert await end.receive_some(1) == b""


async def test_where_no_process_can_be_made_the_work_is_done_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "fork", refused)
    assert await worked_out(in_a_process(lambda: b"done")) == [b"done"]
    assert "no process can be made" in caplog.text
    assert len(os.listdir("/proc/self/fd")) == before


class Squares(Compute):
    def __init__(self, most: int) -> None:
        self.most = most

    def work(self) -> object:
        return os.getpid(), {number: number**2 for number in range(self.most)}


async def test_what_a_broker_wants_to_know_is_worked_out_elsewhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    there, squares = await forked_work.worked_out(Squares(3), in_a_process)
    assert there != os.getpid()
    assert squares == {0: 0, 1: 1, 2: 4}
    begun: list[int] = []

    def ended_once(work: forked_work.Work) -> Begun:
        begun.append(len(begun))
        return in_a_process(work if len(begun) > 1 else ends)

    monkeypatch.setattr(forked_work, "AGAIN_S", 0.0)
    assert (await forked_work.worked_out(Squares(2), ended_once))[1] == {0: 0, 1: 1}
    assert begun == [0, 1]
    assert "not worked out yet" in caplog.text
