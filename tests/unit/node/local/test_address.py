"""Where the local socket is, who may open it, and what waits for clients with a name."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from gossamer.client.link import PATH_BYTES, LocalAddress, knock
from gossamer.node import errors
from gossamer.node.config.node import Local
from gossamer.node.local.address import (
    LOCK_NAME,
    close_door,
    is_locked,
    local_address,
    locked,
    open_door,
    until_unlocked,
)
from gossamer.node.local.groups import wire
from gossamer.node.local.groups.leading import Leading, OtherPeers
from gossamer.node.local.groups.log import GroupLog
from gossamer.node.local.history import PENDING, open_history
from gossamer.node.peer.frames.events import Event
from gossamer.node.transport.base import Address
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.patterns.groups import ANSWER_S, LOST_S, Member, Round
from support.waiting import turns_of_others


def test_the_socket_lies_in_the_folder_or_that_of_the_runtime_or_this_machine(
    tmp_path: Path,
) -> None:
    assert local_address(tmp_path, Local(), {}).path == tmp_path / "client.sock"
    deep, runtime = tmp_path / ("x" * PATH_BYTES), {"XDG_RUNTIME_DIR": "/run/user/7"}
    address = local_address(deep, Local(), runtime)
    assert address.path is not None
    assert address.path.parent == Path("/run/user/7")
    assert address == local_address(deep, Local(), runtime)
    for environment in ({}, {"XDG_RUNTIME_DIR": "/" + "r" * PATH_BYTES}):
        with pytest.raises(errors.LocalSocketError, match=r"XDG_RUNTIME_DIR, or local\.address"):
            local_address(deep, Local(), environment)
    for other in ("10.0.0.1:1", "example.org:1", "127.0.0.1", "::", ":1", 7):
        with pytest.raises(ConfigError, match=r"local\.address"):
            Local(address=other)  # type: ignore[arg-type]
    for here in ("127.0.0.1:0", "[::1]:7", "localhost:7", ""):
        assert Local(address=here).address == here


@pytest.mark.trio
@pytest.mark.usefixtures("no_umask")
async def test_only_the_user_can_open_the_socket_and_one_left_over_is_replaced(
    tmp_path: Path,
) -> None:
    address = LocalAddress(tmp_path, tmp_path / "client.sock")
    left_over = open_door(address)
    assert stat.S_IMODE((tmp_path / "client.sock").stat().st_mode) == 0o600
    left_over.listener.socket.close()
    with pytest.raises(errors.NodeNotRunningError, match="Connection refused"):
        await knock(address)
    door = open_door(address)
    stream, token = await knock(address)
    assert token is None
    await stream.aclose()
    close_door(door)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(errors.ListenFailed, match=r"none/client\.sock"):
        open_door(LocalAddress(tmp_path, tmp_path / "none/client.sock"))


@pytest.mark.trio
async def test_the_token_file_tells_port_and_token(tmp_path: Path) -> None:
    address = local_address(tmp_path, Local(address="127.0.0.1:0"), {})
    door = open_door(address)
    stream, token = await knock(address)
    await stream.aclose()
    assert token == door.token
    assert len(door.token or "") >= 32
    assert stat.S_IMODE(address.token_file.stat().st_mode) == 0o600
    address.token_file.chmod(0o644)
    with pytest.raises(errors.LocalSocketError, match="can be used by others"):
        await knock(address)
    address.token_file.write_text("nothing")
    address.token_file.chmod(0o600)
    with pytest.raises(errors.LocalSocketError, match="holds no address and token"):
        await knock(address)
    close_door(door)
    with pytest.raises(errors.NodeNotRunningError, match=r"no client\.token is there"):
        await knock(address)


def test_a_folder_has_one_node_and_looking_for_it_keeps_none_from_starting(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    assert not list(tmp_path.iterdir())
    with locked(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(errors.CommandError, match="already"), locked(tmp_path):
            pass
    assert not is_locked(tmp_path)
    # As a command does that looks at the very moment.
    looking = os.open(tmp_path / LOCK_NAME, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    closing = threading.Timer(0.1, os.close, [looking])
    closing.start()
    with locked(tmp_path):
        closing.join()
    with pytest.raises(errors.ClusterFolderError, match=r"node\.lock"), locked(tmp_path / "none"):
        pass


async def test_a_node_that_stops_is_waited_for_and_otherwise_named(tmp_path: Path) -> None:
    held = os.open(tmp_path / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(errors.CommandError, match=r"after 30 s one runs there still, or again"):
        await until_unlocked(tmp_path, 30)
    assert trio.current_time() == pytest.approx(30)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_unlocked, tmp_path, 30)
        await trio.sleep(1)
        fcntl.flock(held, fcntl.LOCK_UN)
    assert trio.current_time() < 32
    os.close(held)


@pytest.mark.trio
async def test_events_come_in_without_turns_for_others_while_there_is_room(tmp_path: Path) -> None:
    """Turns of a busy peer are long: with one for each event, events would come faster."""
    async with open_history(tmp_path / "clients.db", 3600) as history:
        async with turns_of_others() as turns:
            for number in range(PENDING):
                await history.append(Event(number, {"price": 1.0}, 1, 0.0))
            taken_in = turns()
        assert taken_in <= 2


LEADER, OTHER = 1, 2


class PausedAmidARound:
    """One other peer; while it is asked, this process is paused until that one leads.

    It takes a moment to reach it again afterwards.
    """

    def __init__(self, clock: MockClock) -> None:
        self.asked = 0
        self.member = Member(OTHER)
        self._clock = clock

    def learn(self, _addresses: object) -> None:
        return

    def with_addresses(self, _keys: object) -> Mapping[int, tuple[Address, ...]]:
        return {}

    async def announce(self) -> None:
        await trio.lowlevel.checkpoint()

    async def ask(self, key: int, question: bytes, patience_s: float) -> bytes:
        self.asked += 1
        if self.asked == 1:
            self._clock.jump(ANSWER_S + 2 * LOST_S)
            self.member.take(Round((2, OTHER), 1, (OTHER,)), 0)
        if self.asked <= 3:
            await trio.sleep(min(patience_s, 1.0))
            raise errors.NoAnswerError(key, "the connection ended")
        await trio.lowlevel.checkpoint()
        told, _ = wire.read_round(wire.read_question(question)[2])
        return wire.report(self.member.take(told, 8)[0], {})


async def test_a_leader_paused_in_a_round_asks_before_it_assigns(autojump_clock: MockClock) -> None:
    own, others = Member(LEADER), PausedAmidARound(autojump_clock)
    for event in range(50):
        own.arrive(event)

    def take_round(told: Round, _addresses: object) -> bytes:
        return wire.report(own.take(told, 64)[0], {})

    async def fetch(_key: int, _event: int) -> None:
        await trio.lowlevel.checkpoint()

    log = SimpleNamespace(is_full=False, keeps=lambda _: True, learn=lambda _: None)
    parts = (cast(GroupLog, log), cast(OtherPeers, others), take_round, fetch)
    leading = Leading("workers", bytes(wire.DIGEST_BYTES), LEADER, own, *parts)
    with trio.fail_after(10 * LOST_S):
        await leading.lead((1, LEADER), {LEADER, OTHER})
    assert own.held == set(), "another peer leads, and has given these to others"
    assert others.asked == 4
