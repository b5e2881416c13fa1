"""What commands make of signals: ends in order, exit codes that tell, and losses that are told."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gossamer.client import RefusedByNodeError, connect, links
from support.node_processes import (
    COMMAND,
    PATIENCE_S,
    Shell,
    end,
    free_ports,
    next_line,
    wait_for_line,
    wait_for_log,
)

QUIET = ("--set", "discovery.multicast=false")
IN_A_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


@contextmanager
def terminal(shell: Shell, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A command in a terminal of its own, and what closes that: the other end."""
    master, slave = pty.openpty()
    inside = [sys.executable, "-c", IN_A_TERMINAL, *COMMAND]
    process = shell.start(*arguments, command=inside, stdin=slave)
    os.close(slave)
    try:
        yield process, master
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


PEERS = ("demo/peer1", "demo/peer2")


@contextmanager
def two_peers(shell: Shell) -> Iterator[subprocess.Popen[str]]:
    said = shell.ok("node", "init", "demo", "--peers", "2", "--port", str(free_ports(2)))
    command = said.splitlines()[-1].removeprefix("now: gossamer ").split()
    assert command == ["node", "run", *PEERS]
    nodes = shell.start(*command, start_new_session=True)
    try:
        assert {wait_for_log(nodes, "ready")["node"] for _ in PEERS} == {"peer1", "peer2"}
        yield nodes
    finally:
        if nodes.poll() is None:
            end(nodes, signal.SIGTERM)


def add_setting(shell: Shell, folder: str, table: str, line: str) -> None:
    file = shell.folder / folder / "node.toml"
    text = file.read_text(encoding="utf-8")
    before, _, after = text.partition(f"[{table}]\n")
    file.write_text(f"{before}[{table}]\n{line}\n{after}", encoding="utf-8")


def test_a_peer_that_ends_is_told_of_and_the_others_go_on(shell: Shell) -> None:
    with two_peers(shell) as nodes:
        children = psutil.Process(nodes.pid).children()
        (peer2,) = [child for child in children if "demo/peer2" in child.cmdline()]
        peer2.kill()
        told = wait_for_log(nodes, "a peer is lost")
        assert (told["folder"], told["left"]) == ("demo/peer2", "demo/peer1")
        assert told["cause"] == "it was killed by SIGKILL"
        assert shell.status("demo/peer1")["ready"]
        assert end(nodes, signal.SIGTERM)[0] == 128 + signal.SIGKILL
    nodes = shell.start("node", "run", "demo/peer1", "missing", *QUIET)
    told = wait_for_log(nodes, "a peer is lost")
    assert (told["folder"], told["cause"]) == ("missing", "it ended with exit code 2")
    assert end(nodes, signal.SIGTERM)[0] == 2


def test_several_peers_reload_together_and_end_well_when_each_was_stopped(shell: Shell) -> None:
    with two_peers(shell) as nodes:
        for peer in PEERS:
            add_setting(shell, peer, "local", "clients = 3")
        nodes.send_signal(signal.SIGHUP)
        told = [wait_for_log(nodes, "configuration read anew") for _ in PEERS]
        assert {one["node"] for one in told} == {"peer1", "peer2"}
        assert {one["changed"] for one in told} == {"local.clients"}
        assert nodes.poll() is None
        for peer in PEERS:
            shell.ok("node", "stop", peer)
        code, _, err = end(nodes)
    assert code == 0
    assert "lost" not in err


@pytest.mark.parametrize(
    ("folders", "role"),
    [
        (PEERS, "peer"),
        (PEERS[:1], "peer"),
        pytest.param(PEERS[:1], "broker", marks=pytest.mark.campaign),
    ],
)
def test_nodes_whose_terminal_is_closed_stop_in_order(
    shell: Shell, folders: Sequence[str], role: str
) -> None:
    shell.ok("node", "init", "demo", "--peers", "2", "--port", str(free_ports(2)))
    options = ("--set", "page.enabled=false", "--role", role, *QUIET)
    with terminal(shell, "node", "run", *folders, *options) as (nodes, master):
        for _ in folders:
            wait_for_log(nodes, "ready")
        os.close(master)
        for _ in folders:
            wait_for_log(nodes, "stopped")
        assert end(nodes)[0] == 0
    assert not list((shell.folder / "demo").glob("*/*.sock"))


@pytest.mark.parametrize("role", ["peer", pytest.param("broker", marks=pytest.mark.campaign)])
def test_a_node_without_a_terminal_takes_up_what_it_can(
    one_node: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    run = ["node", "run", "desk", "--role", role, *QUIET]
    node = one_node.start(*run, start_new_session=True)
    try:
        wait_for_log(node, "ready")
        assert one_node.ok("node", "reload", "desk") == "nothing has changed\n"
        wait_for_log(node, "configuration read anew")
        add_setting(one_node, "desk", "local", "clients = 1")
        add_setting(one_node, "desk", "delivery", "held_events = 5000")
        node.send_signal(signal.SIGHUP)
        told = wait_for_log(node, "configuration read anew")
        assert (told["changed"], told["restart"]) == ("local.clients", "delivery.held_events")
        # One client may be there now, and it is the one that asks.
        subscriber = one_node.start("sub", "--folder", "desk", "--name", "one", "price > 0")
        if role == "peer":
            wait_for_line(subscriber, "subscribed")
            monkeypatch.setattr(links, "ENTRY_S", 0.0)
            too_many = pytest.raises(
                RefusedByNodeError, match=r"more than 1 clients \(local.clients"
            )
            with too_many, connect(tmp_path / "desk"):
                pass
        end(subscriber, signal.SIGTERM)
        add_setting(one_node, "desk", "logging", "level = 'loud'")
        refused = one_node.refused("node", "reload", "desk")
        assert "logging.level" in refused
        assert "'loud'" in refused
        node.send_signal(signal.SIGHUP)
        cause = wait_for_log(node, "the configuration cannot be used, and stays as it was")["cause"]
        assert "logging.level" in cause
        file = one_node.folder / "desk" / "node.toml"
        file.write_text(file.read_text().replace("loud", "error"))
        said = json.loads(one_node.ok("node", "reload", "desk", "--json"))
        assert said == {"changed": ["logging.level"], "restart": ["delivery.held_events"]}
    finally:
        code, _, err = end(node, signal.SIGTERM)
    assert code == 0
    assert '"stopped"' not in err, "errors only are logged by now"


def test_a_node_that_is_to_outlive_its_terminal_does(one_node: Shell) -> None:
    node = one_node.start("node", "run", "desk", *QUIET, command=["nohup", *COMMAND])
    try:
        wait_for_log(node, "ready")
        node.send_signal(signal.SIGHUP)
        assert one_node.status("desk")["ready"]
        assert node.poll() is None
    finally:
        code, _, _ = end(node, signal.SIGTERM)
    assert code == 0


def test_a_subscriber_that_is_hung_up_on_says_goodbye(one_node: Shell) -> None:
    with one_node.node("desk"):
        subscriber = one_node.subscriber("--folder", "desk", "price > 0")
        code, _, err = end(subscriber, signal.SIGHUP)
        assert (code, err) == (128 + signal.SIGHUP, "")
        assert one_node.status("desk")["local"]["ended"] == {"shutdown": 1}


def test_a_subscriber_in_the_background_of_a_script_ends_by_sigterm_only(one_node: Shell) -> None:
    """Without job control a shell has what runs in the background ignore Ctrl-C."""
    script = f"{shlex.join(COMMAND)} sub --folder desk 'price > 0' & echo $! ; wait $! ; echo $?"
    with one_node.node("desk"):
        started = one_node.start(command=["sh", "-c", script])
        subscriber = int(next_line(started))
        wait_for_line(started, "subscribed")
        os.kill(subscriber, signal.SIGINT)
        one_node.ok("pub", "price=1", "--folder", "desk")
        assert json.loads(next_line(started))["values"] == {"price": 1}
        os.kill(subscriber, signal.SIGTERM)
        assert end(started)[1].splitlines() == [str(128 + signal.SIGTERM)]
        assert one_node.status("desk")["local"]["ended"]["shutdown"] >= 1


def test_a_picture_of_a_node_ends_with_its_terminal(one_node: Shell) -> None:
    with one_node.node("desk"):
        master, slave = pty.openpty()
        # Started the long way: its streams at its end are what this is about.
        terminal = {"stdin": slave, "stdout": slave, "stderr": slave}
        top = one_node.start("top", "desk", command=[*COMMAND], **terminal)
        os.close(slave)
        try:
            while b"queues" not in os.read(master, 1 << 16):
                pass
        finally:
            os.close(master)
        top.send_signal(signal.SIGHUP)
        assert top.wait(PATIENCE_S) == 0
        assert set(one_node.status("desk")["local"]["ended"]) == {"shutdown"}
