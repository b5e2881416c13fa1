"""Discovery: several sources in one stream, and multicast DNS that believes nobody."""

from __future__ import annotations

import fcntl
import itertools
import math
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import pytest
import trio
import trio.testing
from zeroconf import ServiceBrowser, ServiceInfo, ServiceStateChange, Zeroconf

from gossamer.node.discovery.multicast import (
    ATTEMPTS,
    NAMES_WAITING,
    SERVICE,
    Announcement,
    Multicast,
    MulticastCounts,
    _Names,
    read_answer,
)
from gossamer.node.discovery.sources import (
    MULTICAST,
    REMEMBERED,
    STATIC,
    DiscoveredPeer,
    InterfaceAddress,
    KnownPeers,
    Source,
    Tell,
    choose,
    discover,
    local_addresses,
    static_peers,
)
from gossamer.node.errors import InterfaceError
from support.transport_peers import on_jumping_clock
from support.waiting import PATIENCE_S, eventually, running

CLUSTER = "ab" * 16
LOOPBACK = "127.0.0.1"


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """Test processes of one machine hear each other's multicast: one test at a time."""
    with Path(tempfile.gettempdir(), "gossamer-multicast-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def announcement(key: int, cluster: str = CLUSTER, version: int = 1) -> Announcement:
    return Announcement(cluster=cluster, key=key, version=version, port=7000 + key)


def service(
    name: str = f"{5:016x}",
    text: dict[str, str | bytes] | None = None,
    hosts: tuple[str, ...] = ("10.0.0.5",),
    port: int = 7005,
) -> ServiceInfo:
    properties = {**announcement(5).properties(), **(text or {})}
    return ServiceInfo(
        SERVICE, f"{name}.{SERVICE}", port=port, properties=properties, parsed_addresses=list(hosts)
    )


def no_failure(name: str, error: Exception) -> None:
    raise AssertionError(f"{name}: {error}")


@attrs.frozen
class Made:
    name: str
    _run: Callable[[Tell], Awaitable[None]]

    async def run(self, tell: Tell) -> None:
        await self._run(tell)


def multicast_works() -> bool:
    loopback = socket.inet_aton(LOOPBACK)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        receiver.bind(("", 0))
        receiver.settimeout(1)
        try:
            membership = socket.inet_aton("224.0.0.251") + loopback
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            sender.sendto(b"?", ("224.0.0.251", receiver.getsockname()[1]))
            return receiver.recv(1) == b"?"
        except OSError:
            return False


needs_multicast = pytest.mark.skipif(
    not multicast_works(), reason="this machine carries no multicast on loopback"
)


@on_jumping_clock
async def test_all_sources_come_in_one_stream_and_one_that_fails_is_reported_once() -> None:
    """It is tried again while others go on."""
    failures: list[tuple[str, Exception]] = []
    tries = itertools.count(1)
    late = DiscoveredPeer(4, (("b", 2),), MULTICAST)

    async def come_late(tell: Tell) -> None:
        if next(tries) < 4:
            raise InterfaceError("no carrier")
        await tell(late)

    remembered = KnownPeers(REMEMBERED, ((9, (("10.0.0.9", 1), ("fd00::9", 1))),))
    sources: list[Source] = [Made("late", come_late), static_peers([("a", 1), ("b", 2)])]
    async with discover([*sources, remembered], lambda *one: failures.append(one)) as stream:
        *found, last = [one async for one in stream]
    assert last == late
    assert sorted(found, key=str) == [
        DiscoveredPeer(9, (("10.0.0.9", 1), ("fd00::9", 1)), REMEMBERED),
        DiscoveredPeer(None, (("a", 1),), STATIC),
        DiscoveredPeer(None, (("b", 2),), STATIC),
    ]
    assert [(name, str(error)) for name, error in failures] == [("late", "no carrier")]


async def test_a_source_waits_for_its_reader_and_stops_with_it() -> None:
    found, told, ended = DiscoveredPeer(None, (("h", 1),), "endless"), 0, trio.Event()

    async def tell_on(tell: Tell) -> None:
        nonlocal told
        try:
            while True:
                await tell(found)
                told += 1
        finally:
            ended.set()

    async with discover([Made("endless", tell_on)], no_failure) as stream:
        assert await anext(stream) == found
        await trio.testing.wait_all_tasks_blocked()
        before = told
        await trio.testing.wait_all_tasks_blocked()
        assert told == before < 50
    assert ended.is_set()


@needs_multicast
async def test_two_peers_of_a_cluster_find_each_other_and_no_stranger() -> None:
    first = Multicast(announcement(1), interface=LOOPBACK)
    second = Multicast(announcement(2), interface=LOOPBACK)
    foreign = Multicast(announcement(3, cluster="cd" * 16), interface=LOOPBACK)
    newer = Multicast(announcement(4, version=2), interface=LOOPBACK)
    with trio.move_on_after(PATIENCE_S) as waiting:
        async with (
            discover([foreign], no_failure),
            discover([newer], no_failure),
            discover([first], no_failure) as by_first,
            discover([second], no_failure) as by_second,
        ):
            assert await anext(by_first) == DiscoveredPeer(2, ((LOOPBACK, 7002),), MULTICAST)
            assert await anext(by_second) == DiscoveredPeer(1, ((LOOPBACK, 7001),), MULTICAST)
            await eventually(lambda: first.counts.foreign > 0 and first.counts.other_version > 0)
    assert not waiting.cancelled_caught, (first.counts, second.counts)
    assert first.counts.found == second.counts.found == 1


@needs_multicast
async def test_leaving_says_goodbye() -> None:
    source = Multicast(announcement(1), interface=LOOPBACK)
    watcher = Zeroconf([LOOPBACK])
    changes: list[str] = []

    def on_change(name: str, state_change: ServiceStateChange, **_: object) -> None:
        assert name == announcement(1).name
        changes.append(state_change.name)

    ServiceBrowser(watcher, SERVICE, handlers=[on_change])
    try:
        with trio.fail_after(PATIENCE_S):
            async with discover([source], no_failure):
                await eventually(lambda: changes == ["Added"])
            await eventually(lambda: changes == ["Added", "Removed"])
        threads = {thread.name for thread in threading.enumerate()}
        assert len([name for name in threads if "ServiceBrowser" in name]) == 1  # the watcher's
    finally:
        await trio.to_thread.run_sync(watcher.close)


@on_jumping_clock
async def test_a_goodbye_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    closing, released = threading.Event(), threading.Event()
    hanging = Mock()
    hanging.close = lambda: closing.set() or released.wait(PATIENCE_S)  # type: ignore[func-returns-value]
    monkeypatch.setattr("gossamer.node.discovery.multicast._open", lambda _: hanging)
    monkeypatch.setattr(_Names, "browse", lambda *_: hanging)
    began = trio.current_time()
    try:
        async with discover([Multicast(announcement(1), interface=LOOPBACK)], no_failure):
            await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() - began <= 2
        # The clock may have jumped before the thread began; it begins all the same.
        assert closing.wait(PATIENCE_S)
    finally:
        released.set()


@needs_multicast
async def test_a_liar_on_the_network_is_counted_and_the_honest_are_found() -> None:
    source = Multicast(announcement(1), interface=LOOPBACK)
    liar = Zeroconf([LOOPBACK])
    # The second announces key 5, which the third has.
    names = ["not-a-key", f"{6:016x}", f"{5:016x}"]
    register = partial(liar.register_service, cooperating_responders=True)
    try:
        with trio.fail_after(PATIENCE_S):
            async with discover([source], no_failure) as stream:
                async with trio.open_nursery() as registering:
                    for name in names:
                        info = service(name=name, hosts=(LOOPBACK,))
                        registering.start_soon(trio.to_thread.run_sync, register, info)
                assert (await anext(stream)).key == 5
                await eventually(lambda: source.counts.malformed >= 2)
    finally:
        await trio.to_thread.run_sync(liar.close)
    assert source.counts.found == 1


async def test_names_heard_while_too_many_wait_are_counted_and_not_kept() -> None:
    source = Multicast(announcement(1))
    names = _Names(source.counts, own=announcement(1).name)
    change = type("Added", (), {"name": "Added"})
    for key in range(2, NAMES_WAITING + 12):
        names._on_change(None, SERVICE, f"{key:016x}.{SERVICE}", change)  # type: ignore[arg-type]
    assert (source.counts.crowded_out, await names.next()) == (10, (f"{2:016x}.{SERVICE}", 1))


async def test_a_name_without_answer_is_tried_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Multicast(announcement(1))
    names = _Names(source.counts, own=announcement(1).name)
    asked: list[str] = []
    monkeypatch.setattr(
        "gossamer.node.discovery.multicast._look_up", lambda _, name: asked.append(name)
    )
    names.add(announcement(2).name, 1)
    async with running() as nursery:
        look_up: Any = source._look_up_names
        nursery.start_soon(look_up, None, names, None, ())
        await eventually(lambda: source.counts.silent == 1)
    assert asked == [announcement(2).name] * ATTEMPTS


@on_jumping_clock
async def test_what_is_remembered_is_bounded_and_finds_are_paced() -> None:
    source = Multicast(announcement(1), found_limit=3, found_per_s=2)
    began = trio.current_time()
    for key in range(10):
        assert source._is_news(DiscoveredPeer(key, (("h", 1),), MULTICAST))
        await source._keep_pace()
    assert len(source._known) == 3
    assert math.isclose(trio.current_time() - began, 9 / 2)
    assert not source._is_news(DiscoveredPeer(9, (("h", 1),), MULTICAST))
    assert source._is_news(DiscoveredPeer(9, (("h", 2),), MULTICAST))


def test_an_answer_of_the_cluster_is_a_find_of_no_more_addresses_than_it_can_need() -> None:
    counts = MulticastCounts()
    info = service(hosts=("10.0.0.5", "fd00::5", LOOPBACK, "0.0.0.0", "224.0.0.1"))
    found = read_answer(info, announcement(1), counts, loopback=False)
    assert found == DiscoveredPeer(5, (("10.0.0.5", 7005), ("fd00::5", 7005)), MULTICAST)
    info = service(hosts=tuple(f"10.0.0.{i}" for i in range(1, 30)))
    found = read_answer(info, announcement(1), counts, loopback=False)
    assert found is not None
    assert (len(found.addresses), counts) == (8, MulticastCounts())


@pytest.mark.parametrize(
    ("info", "cause"),
    [
        (service(name="x"), "malformed"),
        (service(name="f" * 16, text={"key": "f" * 16}), "malformed"),
        (service(text={"key": f"{6:016x}"}), "malformed"),
        (service(text={"cluster": b"\xff"}), "malformed"),
        (service(text={"more": "x" * 250, "and": "y" * 250}), "malformed"),
        (service(hosts=(LOOPBACK,)), "malformed"),
        (service(port=0), "malformed"),
        (service(name=f"{1:016x}", text={"key": f"{1:016x}"}), "malformed"),
        (service(text={"cluster": "cd" * 8}), "foreign"),
        (service(text={"version": "2"}), "other_version"),
    ],
)
def test_any_other_answer_is_counted_by_cause(info: ServiceInfo, cause: str) -> None:
    counts = MulticastCounts()
    assert read_answer(info, announcement(1), counts, loopback=False) is None
    assert counts == MulticastCounts(**{cause: 1})


def test_an_interface_is_chosen_by_name_or_address_or_is_any_but_loopback() -> None:
    addresses = local_addresses()
    (loopback,) = [one for one in addresses if str(one.address) == LOOPBACK]
    assert loopback in choose(loopback.interface, addresses)
    assert choose(LOOPBACK, addresses) == (loopback,)
    assert loopback not in choose("", addresses)
    with pytest.raises(InterfaceError, match=f"'nope', expected one of .*{loopback.interface}"):
        choose("nope", addresses)


@on_jumping_clock
async def test_a_machine_without_network_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    loopback = tuple(one for one in local_addresses() if one.address.is_loopback)
    monkeypatch.setattr("gossamer.node.discovery.multicast.local_addresses", lambda: loopback)
    failures: list[Exception] = []
    async with discover([Multicast(announcement(1))], lambda _, e: failures.append(e)):
        await trio.testing.wait_all_tasks_blocked()
    assert "there is no network interface" in str(failures[0])


async def test_multicast_begins_anew_with_other_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interface that is gone is told of once, and used again when it is back."""
    here, there = (
        InterfaceAddress("wlan0", ip_address(address), ip_network(f"{address}/24", strict=False))
        for address in ("10.0.0.5", "10.0.1.5")
    )
    addresses, opened = [here], list[tuple[InterfaceAddress, ...]]()
    zeroconf, failures = Mock(), list[Exception]()

    def opens(chosen: tuple[InterfaceAddress, ...]) -> Mock:
        opened.append(chosen)
        return zeroconf

    of_multicast = "gossamer.node.discovery.multicast"
    monkeypatch.setattr(f"{of_multicast}.ADDRESSES_S", 0.01)
    monkeypatch.setattr("gossamer.node.discovery.sources.TRY_AGAIN_S", 0.01)
    monkeypatch.setattr(f"{of_multicast}._open", opens)
    monkeypatch.setattr(f"{of_multicast}.local_addresses", lambda: tuple(addresses))
    monkeypatch.setattr(_Names, "browse", lambda *_: Mock())
    registered = zeroconf.register_service
    source = Multicast(announcement(1), interface="wlan0")
    async with discover([source], lambda _, error: failures.append(error)):
        await eventually(lambda: registered.call_count == 1)
        addresses[:] = [there]
        await eventually(lambda: registered.call_count == 2)
        assert zeroconf.close.call_count == 1
        addresses.clear()
        await eventually(lambda: len(failures) == 1)
        addresses[:] = [here]
        await eventually(lambda: registered.call_count == 3)
    assert opened == [(here,), (there,), (here,)]
    told = [one.args[0].parsed_addresses() for one in registered.call_args_list]
    assert told == [["10.0.0.5"], ["10.0.1.5"], ["10.0.0.5"]]
    assert [type(error) for error in failures] == [InterfaceError]
