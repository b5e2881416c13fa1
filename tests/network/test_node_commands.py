"""Commands at folders, mistakes and signals: one sentence, ends in order, exit codes that tell."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from gossamer.client import RefusedByNodeError, connect, links
from gossamer.node.commands.backup.archive import MANIFEST
from support.installed_command import sentence
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
from support.waiting import started_by


def test_what_is_typed_wrong_is_answered_in_one_sentence(one_node: Shell) -> None:
    sub, pub = ("sub", "--folder", "desk"), ("pub", "--folder", "desk")
    with one_node.node("desk"):
        for command, words in (
            ((*sub, "prize > 3"), "no attribute 'prize', did you mean 'price'"),
            ((*sub, "price >"), "expected a number.* found the end at column 8"),
            ((*sub, "price = = 3"), "expected a comparison .* found '=' at column 7"),
            ((*sub, 'price > "high"'), "'price' takes a number"),
            ((*sub, "(" * 9000 + "price > 3"), "expression|characters"),
            ((*pub, "prize=3", "symbol=A"), "prize"),
            ((*pub, "price=high", "symbol=A"), "price"),
            ((*pub, "price=200000"), ""),
            ((*pub, "price"), "price"),
            ((*pub, "price=3", "price=4"), "price"),
            (("node", "join", "nonsense", "new"), "token"),
        ):
            done = one_node.run(*command)
            assert (done.returncode, done.stdout) == (2, ""), done.stderr
            assert re.search(words, sentence(done.stderr)), done.stderr
    assert not (one_node.folder / "new").exists()


def test_a_node_whose_configuration_is_spoilt_is_used_and_stopped_anyway(one_node: Shell) -> None:
    with one_node.node("desk") as node:
        with (one_node.folder / "desk/node.toml").open("a", encoding="utf-8") as file:
            file.write("no TOML")
        one_node.ok("pub", "symbol=IBM", "price=81", "--folder", "desk")
        said = [one_node.refused("node", "reload", "desk")]
        one_node.ok("node", "stop", "desk")
        assert node.wait(PATIENCE_S) == 0
    said += [one_node.refused("node", command, "desk") for command in ("status", "stop", "run")]
    assert all("node.toml: the text is no TOML" in sentence(one) for one in said)


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        one.name: (stat.S_IMODE(one.stat().st_mode), one.read_bytes())
        for one in folder.iterdir()
        if one.suffix in (".toml", ".json", ".pem", ".key")
    }


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_running_peer_goes_on_from_its_backup(one_node: Shell) -> None:
    with one_node.node("desk"):
        subscriber = one_node.subscriber("--folder", "desk", "--name", "watcher", "price > 80")
        subscriber.terminate()
        end(subscriber)
        event = one_node.ok("pub", "--folder", "desk", "symbol=IBM", "price=81", "volume=1").strip()
        assert "private keys" in one_node.ok("node", "backup", "desk", "desk.backup")
        refused = one_node.refused("node", "restore", "desk.backup", "copy")
        assert f"a peer that runs in {one_node.folder / 'desk'}" in refused
    assert stat.S_IMODE((one_node.folder / "desk.backup").stat().st_mode) == 0o600
    before = files(one_node.folder / "desk")
    shutil.rmtree(one_node.folder / "desk")
    assert "cannot be known here" in one_node.ok("node", "restore", "desk.backup", "elsewhere/desk")
    assert files(one_node.folder / "elsewhere/desk") == before
    assert stat.S_IMODE((one_node.folder / "elsewhere/desk/state.db").stat().st_mode) == 0o600
    with one_node.node("elsewhere/desk"):
        ledger = ("--folder", "elsewhere/desk", "--name", "watcher", "--count", "1")
        assert json.loads(one_node.ok("sub", *ledger, "price > 80"))["id"] == event


def test_what_goes_back_in_time_does_no_harm(one_node: Shell) -> None:
    """Descriptors go on above those that were signed since; tokens out there are void."""
    with one_node.node("desk"):
        one_node.ok("node", "invite", "--folder", "desk")
    one_node.ok("node", "backup", "desk", "desk.backup")
    began = time.time() * 1000
    one_node.ok("node", "restore", "desk.backup", "copy")
    with sqlite3.connect(one_node.folder / "copy/state.db") as state:
        ((sequence,),) = state.execute("SELECT next_sequence FROM identity")
        assert sequence >= int(began)
        assert state.execute("SELECT count(*) FROM tokens").fetchall() == [(0,)]
    with sqlite3.connect(one_node.folder / "desk/state.db") as state:
        assert state.execute("SELECT count(*) FROM tokens").fetchall() == [(1,)]


def test_a_copy_of_a_folder_does_not_run_beside_it(one_node: Shell) -> None:
    shutil.copytree(one_node.folder / "desk", one_node.folder / "copy")
    with one_node.node("desk"):
        refused = one_node.refused("node", "run", "copy")
    assert f"which runs in {one_node.folder / 'desk'} already" in refused
    with one_node.node("copy"):
        pass


def test_a_backup_replaces_nothing_and_leaves_nothing_half_written(one_node: Shell) -> None:
    folder = one_node.folder
    one_node.ok("node", "backup", "desk", "desk.backup")
    (folder / "mine").write_text("mine")
    (folder / "empty").mkdir()
    before, desk = names(folder), files(folder / "desk")
    for arguments, words in (
        (("backup", "desk", "mine"), "mine"),
        (("backup", "desk", "nowhere/desk.backup"), "nowhere/desk.backup"),
        (("backup", "empty", "new.backup"), "empty "),
        (("backup", "none", "new.backup"), "none "),
        (("restore", "desk.backup", "desk"), "expected a new or an empty folder"),
    ):
        assert words in one_node.refused("node", *arguments)
    assert (names(folder), files(folder / "desk")) == (before, desk)


def content_of(backup: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(backup)) as tar:
        return {one.name: file.read() for one in tar if (file := tar.extractfile(one)) is not None}


def packed(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, body in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return made.getvalue()


def manifest_with(backup: bytes, **fields: object) -> bytes:
    files = content_of(backup)
    return packed(files | {MANIFEST: json.dumps(json.loads(files[MANIFEST]) | fields).encode()})


def test_what_is_no_whole_backup_restores_nothing(one_node: Shell) -> None:
    one_node.ok("node", "backup", "desk", "whole")
    whole = (one_node.folder / "whole").read_bytes()
    outside = [{"name": "../outside", "mode": 0o644, "size": 0, "digest": 64 * "0"}]
    for name, (data, words) in {
        "cut": (whole[: len(whole) // 2], "no whole backup"),
        "noise": (b"no backup at all", "no whole backup"),
        "empty": (b"", "no whole backup"),
        "edited": (
            packed(content_of(whole) | {"node.toml": b"[node]\n"}),
            "'node.toml' is not what",
        ),
        "newer": (manifest_with(whole, format=2), "format 2, expected 1"),
        "outside": (manifest_with(whole, items=outside), "'../outside' is no name of a file"),
        "foreign": (manifest_with(whole, key=16 * "0"), "expected 0000000000000000"),
        "more": (manifest_with(whole, items=[]), "more files than its manifest"),
    }.items():
        (one_node.folder / name).write_bytes(data)
        before = names(one_node.folder)
        assert words in one_node.refused("node", "restore", name, "copy"), name
        assert names(one_node.folder) == before, name


def test_a_broker_begins_anew(one_node: Shell) -> None:
    one_node.ok("node", "init", "hub", "--preset", "local")
    advertise = ("advertise", "present(price)", "--name", "feed", "--folder")
    with one_node.node("hub", "--role", "broker"):
        one_node.ok(*advertise, "hub")
        one_node.ok("node", "backup", "hub", "hub.backup")
    one_node.ok("node", "restore", "hub.backup", "copy")
    with one_node.node("copy", "--role", "broker"):
        one_node.ok(*advertise, "copy")


# What commands make of signals: losses are told.

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
    before, _, after = file.read_text(encoding="utf-8").partition(f"[{table}]\n")
    file.write_text(f"{before}[{table}]\n{line}\n{after}", encoding="utf-8")


def test_a_peer_that_ends_is_named_and_the_others_go_on(shell: Shell) -> None:
    with two_peers(shell) as nodes:
        (peer2,) = started_by(nodes.pid, "demo/peer2")
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
def test_nodes_stop_with_their_terminal(shell: Shell, folders: Sequence[str], role: str) -> None:
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
    node = one_node.start("node", "run", "desk", "--role", role, *QUIET, start_new_session=True)
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
        code, _, err = end(one_node.subscriber("--folder", "desk", "price > 0"), signal.SIGHUP)
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
