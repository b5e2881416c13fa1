"""Members of a cluster as logs, commands, metrics and views tell of them, beside real nodes."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from typing import Any

import pytest

from gossamer.client import connect
from gossamer.node.monitoring.cluster import SECTORS
from support.node_processes import (
    PATIENCE_S,
    Shell,
    end,
    free_ports,
    next_line,
    wait_for_log,
)


def members(shell: Shell, folder: str) -> dict[str, dict[str, Any]]:
    said = json.loads(shell.ok("node", "members", folder, "--json"))
    return {one["name"]: one for one in said}


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
        table = shell.ok("node", "members", "demo/peer1")
        assert found["peer2"]["key"] in table
        shell.ok("node", "revoke", "peer2", "--folder", "demo/peer1")
        wait_for_log(first, "a member is revoked")
        with connect(shell.folder / "demo/peer1") as node:
            assert [one["state"] for one in node.members()["members"]] == ["alive", "revoked"]
            text = node.metrics()
        assert 'gossamer_member_changes_total{change="returned"} 1.0' in text
        assert 'gossamer_members{state="revoked"} 1.0' in text


def test_refusals_are_logged_with_the_address_and_do_not_fill_the_log(desk: Shell) -> None:
    with desk.node("desk", "--set", "limits.close_seconds=0.05") as node:
        host, port = desk.status("desk")["addresses"][0].rsplit(":", 1)
        for _ in range(5):
            with socket.create_connection((host, int(port))) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                while stranger.recv(4096):
                    continue
        first = wait_for_log(node, "a peer was refused")
        assert first["address"].startswith(f"{host}:")
        node.terminate()
        _, _, rest = end(node)
    lines = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert not [one for one in lines if one["event"] == "a peer was refused"]
    (told,) = [one for one in lines if one.get("of") == "a peer was refused"]
    assert told["count"] == 4


def cluster(shell: Shell, folder: str = "demo/peer1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.ok("top", folder, "--cluster", "--once", "--json"))
    return found


@pytest.mark.parametrize("stopped", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_all_who_answer_are_shown_and_others_counted(shell: Shell, stopped: bool) -> None:
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
        if stopped:
            os.kill(third.pid, signal.SIGSTOP)
        try:
            said = shell.ok("top", "demo/peer2", "--cluster", "--once")
            assert f"{2 if stopped else 3} of 3 members answered" in said
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
