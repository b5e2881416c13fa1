"""The commands as people type them: every peer a process, TLS on, over loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from contextlib import closing
from typing import Any

import pytest

from gossamer.client import connect
from gossamer.node.local.address import is_locked
from gossamer.node.monitoring.members import SECTORS
from gossamer.node.store import Store
from support.node_processes import PATIENCE_S, Shell, end, free_ports, next_line, say, wait_for_log

DEAR = 'symbol == "IBM" and price > 80'
LINE = '{"symbol": "IBM", "price": 81.5, "volume": 100}\n'
EVENT = ("symbol=IBM", "price=79", "volume=1")
NO_PAGE = ("--set", "page.enabled=false")
ATTEMPTS = 200


def publish_until(shell: Shell, folder: str, subscriber: subprocess.Popen[str]) -> None:
    """Publish `LINE` again and again, until the subscriber has enough.

    A subscription needs some rounds to be known everywhere.
    """
    for _ in range(ATTEMPTS):
        shell.published(folder, "--jsonl", "-", text=LINE)
        try:
            subscriber.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
        return
    raise AssertionError("nothing arrived")


def test_a_peer_that_joined_by_token_gets_events(shell: Shell) -> None:
    shell.ok("node", "init", "desk", "--preset", "local", "--cluster", "desk")
    with shell.node("desk"):
        token = shell.ok("node", "invite", "--folder", "desk").strip()
        shell.ok("node", "join", token, "kitchen")
        schemas = [(shell.folder / one / "schema.toml").read_bytes() for one in ("kitchen", "desk")]
        assert schemas[0] == schemas[1]
        used = shell.refused("node", "join", token, "hall")
        assert used.count("\n") == 1
        assert "the token was used by another peer" in used
        with shell.node("kitchen"):
            subscriber = shell.subscriber("--folder", "kitchen", "--count", "1", DEAR)
            publish_until(shell, "desk", subscriber)
            assert json.loads(end(subscriber)[1])["values"] == json.loads(LINE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_stops_a_node_in_order(one_node: Shell, number: signal.Signals, code: int) -> None:
    with one_node.node("desk") as node:
        node.send_signal(number)
        wait_for_log(node, "stopped")
        assert end(node)[0] == code
    assert not list((one_node.folder / "desk").glob("*.sock"))


def test_a_client_can_stop_the_node(one_node: Shell) -> None:
    with one_node.node("desk") as node:
        one_node.ok("node", "stop", "desk")
        # It has closed its files, so that the folder can be removed or copied.
        assert not is_locked(one_node.folder / "desk")
        assert not list((one_node.folder / "desk").glob("*.db-*"))
        assert end(node)[0] == 0
        assert "no node runs in" in one_node.refused("node", "stop", "desk")


def test_what_keeps_a_node_from_starting_is_one_sentence(one_node: Shell) -> None:
    with one_node.node("desk"):
        assert_sentence(one_node.refused("node", "run", "desk"), "a node runs in .*desk already")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        for setting, words in (
            (f'listen.addresses=["{at}"]', "[Aa]ddress already in use"),
            (f'listen.join_addresses=["{at}"]', "[Aa]ddress already in use"),
            (f"page.address={at}", "[Aa]ddress already in use"),
            (f"local.address={at}", "[Aa]ddress already in use"),
            ("local.address=10.0.0.1:0", "a loopback address"),
            ("delivery.successors=x", "a whole number"),
        ):
            assert_sentence(one_node.refused("node", "run", "desk", "--set", setting), words)
    desk = one_node.folder / "desk"
    for name in ("state.db", "clients.db"):
        Store(desk / name).close()
        with closing(sqlite3.connect(desk / name)) as database, database:
            database.execute("INSERT INTO migrations (version) VALUES (99)")
        told = f"{name} has state of version 6, expected at most 5; upgrade gossamer$"
        assert_sentence(one_node.refused("node", "run", "desk"), told)
        (desk / name).unlink()
    for name in ("events.key", "peer.key"):
        (desk / name).touch()
        (desk / name).chmod(0o644)
        told = rf"{name} can be used by others \(mode 644\), expected mode 600; run: chmod 600"
        assert_sentence(one_node.refused("node", "run", "desk"), told)
        (desk / name).unlink()


def assert_sentence(told: str, words: str) -> None:
    last = told.splitlines()[-1]
    assert last.startswith("gossamer: ")
    assert re.search(words, last), last


def test_whoever_interrupts_pub_knows_what_was_published(one_node: Shell) -> None:
    with one_node.node("desk"):
        publisher = one_node.start("pub", "--folder", "desk", "--jsonl", "-", stdin=subprocess.PIPE)
        say(publisher, LINE + "no event\n" + LINE)
        printed = [next_line(publisher).split() for _ in range(2)]
        assert [number for number, _ in printed] == ["1", "3"]
        assert all(re.fullmatch("[0-9a-f]{16}", event) for _, event in printed)
        publisher.send_signal(signal.SIGINT)
        publisher.wait(PATIENCE_S)
        code, out, err = end(publisher)
        assert (code, out) == (130, "")
        named, rest, summary = err.splitlines()
        assert named.startswith("gossamer: line 2: no JSON")
        assert rest == "gossamer: nothing after line 3 was published"
        assert summary.endswith("; 1 line was not published")


def test_pub_of_lines_ends_as_it_went(one_node: Shell) -> None:
    pub = ("pub", "--folder", "desk", "--jsonl")
    with one_node.node("desk") as node:
        bad = one_node.run(*pub, "-", text=f"x\n{LINE}")
        assert bad.returncode == 2
        assert bad.stdout.startswith("2 ")
        assert bad.stderr.startswith("gossamer: line 1: no JSON")
        told = one_node.refused(*pub, str(one_node.folder))
        assert "line 1: cannot be read (Is a directory)" in told
        publisher = one_node.start(*pub, "-", stdin=subprocess.PIPE)
        say(publisher, LINE)
        assert next_line(publisher).startswith("1 ")
        node.kill()
        node.wait()
        say(publisher, LINE)
        code, out, err = end(publisher)
        assert (code, out) == (2, "")
        assert "gossamer: line 2: not published: the connection to the node broke" in err


def test_a_revoked_peer_or_broker_says_so_and_publishes_nothing(shell: Shell) -> None:
    port = free_ports(2)
    desk, kitchen, address = "demo/peer1", "demo/peer2", f"127.0.0.1:{port}"
    shell.ok("node", "init", "demo", "--peers", "2", "--port", str(port))
    shell.ok("node", "revoke", "peer2", "--folder", desk)
    with shell.node(desk, *NO_PAGE), shell.node(kitchen, *NO_PAGE) as node:
        wait_for_log(node, "this peer is revoked", since_start=True)
        refused = shell.run("pub", "--folder", kitchen, *EVENT)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert_sentence(refused.stderr, r"this peer \([0-9a-f]{16}\) is revoked")
        told = shell.refused("pub", "--folder", kitchen, "--jsonl", "-", text=LINE)
        assert re.search("^gossamer: line 1: .* is revoked", told)
        assert "is revoked" in shell.status(kitchen)["troubles"][0]
        assert "is revoked" in shell.ok("top", kitchen, "--once")
        found = shell.run("node", "doctor", "--folder", kitchen, address, "--json")
        assert found.returncode == 1
        findings = json.loads(found.stdout)["findings"]
        faults = {one["check"]: one["what"] for one in findings if not one["ok"]}
        assert "this peer is revoked" in faults["membership"]
        assert faults["hello"] == "it says that this peer is revoked"
    broker = ("--role", "broker", *NO_PAGE)
    with shell.node(desk, *broker), shell.node(kitchen, *broker, "--neighbour", address) as node:
        wait_for_log(node, "this peer is revoked", since_start=True)
        shell.ok("advertise", "--folder", kitchen, "--name", "ada", "price > 0")
        told = shell.refused("pub", "--folder", kitchen, "--name", "ada", "price=1")
        assert_sentence(told, "is revoked")


def test_a_peer_that_has_lost_its_cluster_says_so_on_publishing(shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "2", "--port", str(free_ports(2)))
    publish = ("pub", "--folder", "demo/peer1", *EVENT)
    with shell.node("demo/peer1", *NO_PAGE):
        with shell.node("demo/peer2", *NO_PAGE) as other:
            shell.ok(*publish)
            shell.ok("node", "stop", "demo/peer2")
            assert end(other)[0] == 0
        for _ in range(ATTEMPTS):
            done = shell.run(*publish)
            if done.returncode == 3:
                break
        assert done.returncode == 3
        assert re.fullmatch(r"[0-9a-f]{16}\n", done.stdout)
        assert "no other peer is reached, though others are known" in done.stderr
        batch = shell.run("pub", "--folder", "demo/peer1", "--jsonl", "-", text=2 * LINE)
        assert batch.returncode == 3
        assert "by this peer alone: 2" in batch.stderr


def test_a_broker_that_reaches_none_of_its_neighbours_says_so(one_node: Shell) -> None:
    """Though what it acknowledges is safe: it is on its disk until neighbours come."""
    event = ("pub", "--folder", "desk", "--name", "ada", "price=1")
    broker = ("--role", "broker", *NO_PAGE)
    with one_node.node("desk", *broker):
        one_node.ok("advertise", "--folder", "desk", "--name", "ada", "price > 0")
        one_node.ok(*event)
        assert one_node.status("desk")["troubles"] == []
    with one_node.node("desk", *broker, "--neighbour", f"127.0.0.1:{free_ports(1)}"):
        one_node.ok(*event)
        (trouble,) = one_node.status("desk")["troubles"]
        assert "no other peer is reached" in trouble


def members(shell: Shell, folder: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(shell.ok("node", "members", folder, "--json"))}


def test_members_come_go_fail_and_are_revoked(shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "2", "--preset", "local")
    quick = ("--set", "protocol.round_s=0.1")
    with shell.node("demo/peer1", *quick) as first:
        with shell.node("demo/peer2", *quick):
            assert "peer2" in wait_for_log(first, "a member has joined", since_start=True)["peer"]
            found = members(shell, "demo/peer1")
            states = {name: one["state"] for name, one in found.items()}
            assert states == dict.fromkeys(("peer1", "peer2"), "alive")
            assert found["peer2"]["version"] == found["peer1"]["version"] != ""
            assert found["peer2"]["addresses"]
            assert found["peer2"]["certificate_expires"] > found["peer2"]["since"]
            shell.ok("node", "stop", "demo/peer2")
            wait_for_log(first, "a member has left")
        assert members(shell, "demo/peer1")["peer2"]["state"] == "gone"
        watching = shell.start("node", "members", "demo/peer1", "--watch", "--json")
        assert "peer1" in next_line(watching)
        assert "peer2" in next_line(watching)
        with shell.node("demo/peer2", *quick) as second:
            wait_for_log(first, "a member has returned")
            assert json.loads(next_line(watching))["change"] == "returned"
            second.kill()
            second.wait()
            assert "peer2" in wait_for_log(first, "a member has failed")["peer"]
            assert json.loads(next_line(watching))["change"] == "failed"
        watching.terminate()
        end(watching)
        (line,) = shell.ok("top", "demo/peer1", "--once", "--json").splitlines()
        assert json.loads(line)["members"]["gone"] == 1
        assert found["peer2"]["key"] in shell.ok("node", "members", "demo/peer1")
        shell.ok("node", "revoke", "peer2", "--folder", "demo/peer1")
        wait_for_log(first, "a member is revoked")
        with connect(shell.folder / "demo/peer1") as node:
            assert [one["state"] for one in node.members()["members"]] == ["alive", "revoked"]
            text = node.metrics()
        assert 'gossamer_member_changes_total{change="returned"} 1.0' in text
        assert 'gossamer_members{state="revoked"} 1.0' in text


def test_refusals_are_logged_with_the_address_and_do_not_fill_the_log(one_node: Shell) -> None:
    with one_node.node("desk", "--set", "limits.close_seconds=0.05") as node:
        host, port = one_node.status("desk")["addresses"][0].rsplit(":", 1)
        for _ in range(5):
            with socket.create_connection((host, int(port))) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                while stranger.recv(4096):
                    continue
        assert wait_for_log(node, "a peer was refused")["address"].startswith(f"{host}:")
        node.terminate()
        _, _, rest = end(node)
    lines = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert not [one for one in lines if one["event"] == "a peer was refused"]
    (told,) = [one for one in lines if one.get("of") == "a peer was refused"]
    assert told["count"] == 4


def cluster(shell: Shell, folder: str = "demo/peer1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.ok("top", folder, "--cluster", "--once", "--json"))
    return found


def test_all_who_answer_are_shown_and_others_counted(shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "3", "--port", str(free_ports(3)))
    nodes = [shell.node(f"demo/peer{number}") for number in (1, 2, 3)]
    with nodes[0], nodes[1], nodes[2] as third:
        subscriber = shell.subscriber("--folder", "demo/peer2", "price > 80", "volume < 5")
        view = cluster(shell)
        while view["known"] < 3 or max(view["wanted"]) == 0:
            view = cluster(shell)
        assert (view["answered"], view["asked"]) == (3, 3)
        assert {one["name"] for one in view["members"]} == {"peer1", "peer2", "peer3"}
        assert len(view["wanted"]) == SECTORS
        wanted = {one["name"]: one["report"]["subscriptions"] for one in view["members"]}
        assert wanted["peer2"] >= 1
        assert wanted["peer3"] == 0
        page = shell.status("demo/peer1")["page"]
        with urllib.request.urlopen(f"{page}cluster.json", timeout=PATIENCE_S) as answer:
            assert json.load(answer)["known"] == 3
        os.kill(third.pid, signal.SIGSTOP)
        try:
            assert "2 of 3 members answered" in shell.ok("top", "demo/peer2", "--cluster", "--once")
        finally:
            os.kill(third.pid, signal.SIGCONT)
        subscriber.terminate()
        subscriber.communicate()


def test_a_broker_shows_the_members_that_it_has_met(shell: Shell) -> None:
    shell.ok("node", "init", "hub", "--preset", "local")
    with shell.node("hub", "--role", "broker"):
        view = cluster(shell, "hub")
        assert (view["role"], view["known"], view["wanted"]) == ("broker", 1, [])
        said = shell.ok("top", "hub", "--cluster", "--once")
        assert "1 members met; brokers tell each other no figures" in said
        assert "deliv/s" not in said
