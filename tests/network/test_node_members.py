"""Members of a cluster of real nodes, as its log, its commands and its metrics tell of them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from gossamer.client import connect
from support.node_processes import Shell, end, wait_for_log


def members(shell: Shell, folder: str) -> dict[str, dict[str, Any]]:
    said = json.loads(shell.ok("node", "members", folder, "--json"))
    return {one["name"]: one for one in said}


def test_members_come_go_fail_and_are_revoked(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("node", "init", "demo", "--peers", "2", "--preset", "local")
    quick = ("--set", "protocol.round_s=0.1")
    with shell.node("demo/peer1", *quick) as first:
        with shell.node("demo/peer2", *quick):
            assert "peer2" in wait_for_log(first, "a member has joined", since_start=True)["peer"]
            found = members(shell, "demo/peer1")
            assert {name: one["state"] for name, one in found.items()} == {
                "peer1": "alive",
                "peer2": "alive",
            }
            assert found["peer2"]["version"] == found["peer1"]["version"] != ""
            assert found["peer2"]["addresses"]
            assert found["peer2"]["certificate_expires"] > found["peer2"]["since"]
            shell.ok("node", "stop", "demo/peer2")
            wait_for_log(first, "a member has left")
        assert members(shell, "demo/peer1")["peer2"]["state"] == "gone"
        watching = shell.start("node", "members", "demo/peer1", "--watch", "--json")
        assert watching.stdout is not None
        assert "peer1" in watching.stdout.readline()
        assert "peer2" in watching.stdout.readline()
        with shell.node("demo/peer2", *quick) as second:
            wait_for_log(first, "a member has returned")
            assert json.loads(watching.stdout.readline())["change"] == "returned"
            second.kill()
            second.wait()
            assert "peer2" in wait_for_log(first, "a member has failed")["peer"]
            assert json.loads(watching.stdout.readline())["change"] == "failed"
        watching.terminate()
        end(watching)
        (line,) = shell.ok("top", "demo/peer1", "--once", "--json").splitlines()
        assert json.loads(line)["members"]["gone"] == 1
        table = shell.ok("node", "members", "demo/peer1")
        assert found["peer2"]["key"] in table
        shell.ok("node", "revoke", "peer2", "--folder", "demo/peer1")
        wait_for_log(first, "a member is revoked")
        with connect(tmp_path / "demo/peer1") as node:
            assert [one["state"] for one in node.members()["members"]] == ["alive", "revoked"]
            text = node.metrics()
        assert 'gossamer_member_changes_total{change="returned"} 1.0' in text
        assert 'gossamer_members{state="revoked"} 1.0' in text


def test_refusals_are_logged_with_the_address_and_do_not_fill_the_log(desk: Shell) -> None:
    with desk.node("desk", "--set", "limits.close_seconds=0.05") as node:
        said = desk.status("desk")
        host, port = said["addresses"][0].rsplit(":", 1)
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
