"""Peers on hosts of their own: one joins, is found and examined; and drawn accidents of several."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest
import trio

from support.host_stories import PORT, HostFleet, Story
from support.network_hosts import Host, firewall, network_hosts, number_anew
from support.node_fleets import QUICK, Follower
from support.node_processes import COMMAND, PATIENCE_S, Shell, end, wait_for_line, wait_for_log

pytestmark = pytest.mark.campaign

LINE = '{"symbol": "IBM", "price": 90, "volume": 1}\n'
ATTEMPTS = 200


@pytest.fixture
def hosts() -> Iterator[Sequence[Host]]:
    with network_hosts(2) as made:
        yield made


def on(host: Host, shell: Shell, *arguments: str, text: str = "", alone: bool = False) -> str:
    """What a command prints that does its work on ``host``, which may be ``alone`` then."""
    process = shell.start(*arguments, command=command_on(host), stdin=subprocess.PIPE)
    out, err = process.communicate(text, timeout=PATIENCE_S)
    assert process.returncode in ((0, 3) if alone else (0,)), err
    return out


def command_on(host: Host) -> tuple[str, ...]:
    return (*host.inside, *COMMAND)


@contextmanager
def node(host: Host, shell: Shell, folder: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    process = shell.start("node", "run", folder, *more, command=command_on(host))
    try:
        wait_for_log(process, "ready")
        yield process
    finally:
        end(process, signal.SIGTERM)


def join(hosts: Sequence[Host], shell: Shell) -> None:
    """Make a cluster on the first host and a member of it on the second, in `desk` and `kitchen`.

    The desk's node has to run.
    """
    desk, kitchen = hosts
    token = on(desk, shell, "node", "invite", "--folder", "desk").strip()
    on(kitchen, shell, "node", "join", token, "kitchen")


def assert_events_arrive(hosts: Sequence[Host], shell: Shell) -> None:
    """Events published on the first host reach a subscriber on the second."""
    desk, kitchen = hosts
    subscribe = ("sub", "--folder", "kitchen", "--count", "1", "price > 80")
    subscriber = shell.start(*subscribe, command=command_on(kitchen))
    wait_for_line(subscriber, "subscribed")
    # A subscription needs some rounds to be known everywhere.
    for _ in range(ATTEMPTS):
        on(desk, shell, "pub", "--folder", "desk", "--jsonl", "-", text=LINE, alone=True)
        with suppress(subprocess.TimeoutExpired):
            subscriber.wait(0.2)
            break
    code, out, _ = end(subscriber)
    assert code == 0
    assert json.loads(out)["values"] == json.loads(LINE)


def test_a_peer_on_a_second_host_joins_by_token_and_gets_events(
    hosts: Sequence[Host], shell: Shell
) -> None:
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    with node(desk, shell, "desk"):
        join(hosts, shell)
        with node(kitchen, shell, "kitchen", "--set", "discovery.multicast=false"):
            assert_events_arrive(hosts, shell)
            told = json.loads(on(kitchen, shell, "node", "status", "kitchen", "--json"))
            assert told["addresses"] == [f"{kitchen.address}:{PORT}"]


def test_peers_on_two_hosts_find_each_other(hosts: Sequence[Host], shell: Shell) -> None:
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    with node(desk, shell, "desk"):
        join(hosts, shell)
    forgetful = ("--set", "discovery.peers=[]", "--set", "discovery.remember=false")
    with node(desk, shell, "desk", *forgetful), node(kitchen, shell, "kitchen", *forgetful):
        assert_events_arrive(hosts, shell)


def test_the_doctor_tells_why_a_peer_on_another_host_cannot_be_reached(
    hosts: Sequence[Host], shell: Shell
) -> None:
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    examine = ("node", "doctor", "--folder", "kitchen", "--json")

    def assert_found(words: str, host: str = desk.address) -> None:
        process = shell.start(*examine, f"{host}:{PORT}", command=command_on(kitchen))
        code, out, err = end(process)
        assert code == 1, err
        assert words in out

    with node(desk, shell, "desk"):
        join(hosts, shell)
        found = on(kitchen, shell, *examine, f"{desk.address}:{PORT}")
        assert f"{desk.address} is on the network of" in found
        with firewall(desk, PORT):
            assert_found("or a firewall drops it")
        assert_found("nobody on the way knows that machine", "10.77.0.9")
        assert_found("this machine has no way to that network", "10.78.0.1")
    assert_found("nothing listens on that port")


def test_a_cluster_that_is_given_new_addresses_meets_again(
    hosts: Sequence[Host], shell: Shell
) -> None:
    """While its nodes run, while they do not, and while one starts without a network."""
    desk, kitchen = hosts
    shell.ok("node", "init", "desk")
    with node(desk, shell, "desk"):
        join(hosts, shell)
        with node(kitchen, shell, "kitchen"):
            assert_events_arrive(hosts, shell)
            number_anew(hosts, "10.78.0")
            assert_events_arrive(hosts, shell)
    number_anew(hosts, "10.79.0")
    with node(desk, shell, "desk"):
        kitchen.unplug(is_unplugged=True)
        with node(kitchen, shell, "kitchen"):
            kitchen.unplug(is_unplugged=False)
            assert_events_arrive(hosts, shell)


# Everyday accidents, drawn: cuts between parts and in one direction, new addresses, nodes that boot
# before the switch does, nodes that are killed, paused, or all restarted while they are apart.

HOSTS, EPISODES = 5, 3
DRAWS = 2
SETTINGS: dict[str, object] = {
    **QUICK,
    "page__enabled": False,
    "preset": "lan",
    "listen__addresses": [f"0.0.0.0:{PORT}"],
    "discovery__peers": [],
    "discovery__multicast": True,  # they find each other
}


@contextmanager
def host_fleet(shell: Shell, hosts: Sequence[Host]) -> Iterator[HostFleet]:
    made = HostFleet.make(shell, len(hosts), **SETTINGS)
    assert isinstance(made, HostFleet)
    made.hosts = hosts
    try:
        made.start(*made.names)
        yield made
    finally:
        made.stop()


async def test_nothing_acknowledged_is_lost_or_comes_twice(shell: Shell, seed: int) -> None:
    """Every node publishes all the time, and a named application at each wants everything.

    A seed fixes the story, which a failing test prints.
    """
    with network_hosts(HOSTS) as hosts, host_fleet(shell, hosts) as fleet:
        await fleet.ready()
        followers = [Follower(fleet, name, "ledger") for name in fleet.names]
        async with trio.open_nursery() as nursery:
            for one in followers:
                await nursery.start(one.run)
            await trio.sleep(4)
            await Story(fleet, random.Random(seed)).play(followers, EPISODES)
            nursery.cancel_scope.cancel()
