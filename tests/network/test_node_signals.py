"""What commands make of signals: ends in order, exit codes that tell, and losses that are told."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.node_processes import COMMAND, Shell, end, free_ports, wait_for_line, wait_for_log

pytestmark = pytest.mark.slow

QUIET = ("--set", "discovery.multicast=false")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, forks=False)


@contextmanager
def three_peers(shell: Shell) -> Iterator[subprocess.Popen[str]]:
    """Three peers under one command, all of them ready."""
    shell.ok("node", "init", "demo", "--peers", "3", "--port", str(free_ports(3)))
    nodes = shell.start("node", "run", *(f"demo/peer{number}" for number in (1, 2, 3)))
    try:
        for _ in range(3):
            wait_for_log(nodes, "ready")
        yield nodes
    finally:
        if nodes.poll() is None:
            nodes.send_signal(signal.SIGTERM)
            end(nodes)


def process_of(nodes: subprocess.Popen[str], folder: str) -> int:
    """The id of the child of ``nodes`` that runs the peer in ``folder``."""
    threads = Path(f"/proc/{nodes.pid}/task").glob("*/children")
    children = [child for one in threads for child in one.read_text().split()]
    (found,) = [
        child
        for child in children
        if folder.encode() in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
    ]
    return int(found)


def test_a_peer_that_is_killed_is_told_of_and_the_others_go_on(shell: Shell) -> None:
    with three_peers(shell) as nodes:
        os.kill(process_of(nodes, "demo/peer2"), signal.SIGKILL)
        told = wait_for_log(nodes, "a peer is lost")
        assert told["folder"] == "demo/peer2"
        assert told["cause"] == "it was killed by SIGKILL"
        assert told["left"] == "demo/peer1, demo/peer3"
        for other in ("demo/peer1", "demo/peer3"):
            assert json.loads(shell.ok("node", "status", other, "--json"))["ready"]
        nodes.send_signal(signal.SIGTERM)
        assert end(nodes)[0] == 128 + signal.SIGKILL


def test_peers_of_which_each_was_stopped_in_order_leave_no_trace_in_the_exit_code(
    shell: Shell,
) -> None:
    with three_peers(shell) as nodes:
        for number in (1, 2, 3):
            shell.ok("node", "stop", f"demo/peer{number}")
        code, _, err = end(nodes)
    assert code == 0
    assert "lost" not in err


def test_a_peer_that_cannot_start_is_told_of(shell: Shell) -> None:
    shell.ok("node", "init", "desk", "--preset", "local")
    nodes = shell.start("node", "run", "desk", "missing", *QUIET)
    told = wait_for_log(nodes, "a peer is lost")
    assert told["folder"] == "missing"
    assert told["cause"] == "it ended with exit code 2"
    nodes.send_signal(signal.SIGTERM)
    assert end(nodes)[0] == 2


def test_who_hangs_up_on_several_peers_stops_them_in_order(shell: Shell) -> None:
    with three_peers(shell) as nodes:
        nodes.send_signal(signal.SIGHUP)
        for _ in range(3):
            wait_for_log(nodes, "stopped")
        assert end(nodes)[0] == 0
    assert not list((shell.folder / "demo").glob("*/client.sock"))


@pytest.mark.parametrize("role", ["peer", "broker"])
def test_a_node_whose_terminal_is_closed_stops_in_order(shell: Shell, role: str) -> None:
    shell.ok("node", "init", "desk", "--preset", "local")
    options = ("--set", "page.enabled=false", "--role", role)
    with shell.node("desk", *options) as node:
        node.send_signal(signal.SIGHUP)
        wait_for_log(node, "stopped")
        assert end(node)[0] == 0
    assert not list((shell.folder / "desk").glob("*.sock"))


def test_a_node_that_is_to_outlive_its_terminal_does(shell: Shell) -> None:
    shell.ok("node", "init", "desk", "--preset", "local")
    node = shell.start("node", "run", "desk", *QUIET, command=["nohup", *COMMAND])
    try:
        wait_for_log(node, "ready")
        node.send_signal(signal.SIGHUP)
        assert json.loads(shell.ok("node", "status", "desk", "--json"))["ready"]
        assert node.poll() is None
    finally:
        node.send_signal(signal.SIGTERM)
    assert end(node)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_subscriber_that_is_told_to_end_says_goodbye(
    shell: Shell, number: signal.Signals
) -> None:
    shell.ok("node", "init", "desk", "--preset", "local")
    with shell.node("desk"):
        subscriber = shell.start("sub", "--folder", "desk", "price > 0")
        wait_for_line(subscriber, "subscribed")
        subscriber.send_signal(number)
        code, _, err = end(subscriber)
        assert (code, err) == (128 + number, "")
        status = json.loads(shell.ok("node", "status", "desk", "--json"))
        assert status["local"]["ended"] == {"shutdown": 1}


def test_a_picture_of_a_node_ends_with_its_terminal(shell: Shell) -> None:
    shell.ok("node", "init", "desk", "--preset", "local")
    with shell.node("desk"):
        master, slave = pty.openpty()
        top = shell.start("top", "desk", stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        try:
            while b"queues" not in os.read(master, 1 << 16):
                pass
        finally:
            os.close(master)
        top.send_signal(signal.SIGHUP)
        assert top.wait(60) == 0
        status = json.loads(shell.ok("node", "status", "desk", "--json"))
        assert set(status["local"]["ended"]) == {"shutdown"}
