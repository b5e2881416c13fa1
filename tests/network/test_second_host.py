"""A peer on another host, with an address of its own: it joins, is found, and is examined."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from support.namespaces import Host, firewall, two_hosts
from support.node_processes import COMMAND, PATIENCE_S, Shell, end, wait_for_line, wait_for_log

pytestmark = pytest.mark.campaign

LINE = '{"symbol": "IBM", "price": 90, "volume": 1}\n'
ATTEMPTS = 200
PORT = 7710


@pytest.fixture(scope="module")
def hosts() -> Iterator[Sequence[Host]]:
    with two_hosts() as made:
        yield made


def on(host: Host, shell: Shell, *arguments: str, text: str = "") -> str:
    """What a command prints that does its work on ``host``."""
    code, out, err = outcome(host, shell, *arguments, text=text)
    assert code == 0, err
    return out


def outcome(host: Host, shell: Shell, *arguments: str, text: str = "") -> tuple[int, str, str]:
    command = (*host.inside, *COMMAND)
    process = shell.start(*arguments, command=command, stdin=subprocess.PIPE)
    out, err = process.communicate(text, timeout=PATIENCE_S)
    return process.returncode, out, err


@contextmanager
def node(host: Host, shell: Shell, folder: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = (*host.inside, *COMMAND)
    process = shell.start("node", "run", folder, *more, command=command)
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
    subscriber = shell.start(*subscribe, command=(*kitchen.inside, *COMMAND))
    wait_for_line(subscriber, "subscribed")
    # A subscription needs some rounds to be known everywhere.
    for _ in range(ATTEMPTS):
        on(desk, shell, "pub", "--folder", "desk", "--jsonl", "-", text=LINE)
        try:
            subscriber.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
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


def test_peers_on_two_hosts_find_each_other_by_multicast(
    hosts: Sequence[Host], shell: Shell
) -> None:
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
    at = f"{desk.address}:{PORT}"
    examine = ("node", "doctor", "--folder", "kitchen")
    with node(desk, shell, "desk"):
        join(hosts, shell)
        assert f"{desk.address} is on the network of" in on(kitchen, shell, *examine, at, "--json")
        with firewall(desk, PORT):
            assert_found(outcome(kitchen, shell, *examine, at, "--json"), "or a firewall drops it")
        absent = f"10.77.0.9:{PORT}"
        wrong = outcome(kitchen, shell, *examine, absent, "--json")
        assert_found(wrong, "nobody on the way knows that machine")
        wrong = outcome(kitchen, shell, *examine, f"10.78.0.1:{PORT}", "--json")
        assert_found(wrong, "this machine has no way to that network")
    stopped = outcome(kitchen, shell, *examine, at, "--json")
    assert_found(stopped, "nothing listens on that port")


def assert_found(done: tuple[int, str, str], words: str) -> None:
    code, out, err = done
    assert code == 1, err
    assert words in out
