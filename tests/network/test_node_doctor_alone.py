"""The doctor without arguments examines a machine, nodes in folders, a running node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.node_processes import Shell, free_ports


def examined(shell: Shell, *arguments: str, code: int | None = 0) -> dict[str, list[Any]]:
    """What was found, by check."""
    done = shell.run("node", "doctor", *arguments, "--json")
    assert code is None or done.returncode == code, done.stdout + done.stderr
    found: dict[str, list[Any]] = {}
    for one in json.loads(done.stdout)["findings"]:
        found.setdefault(one["check"], []).append(one)
    return found


def test_where_there_is_no_node_the_machine_is_examined(tmp_path: Path) -> None:
    found = examined(Shell(tmp_path), code=None)  # the ports may be taken on this machine
    assert found["python"][0]["ok"]
    assert found["disk"][0]["ok"]
    assert found["folder"][0]["ok"]
    assert len(found["port"]) == 3
    assert "gossamer node init" in found["nodes"][0]["advice"]


def test_nodes_in_the_folders_here_are_examined_running_or_not(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("node", "init", "demo", "--peers", "3", "--port", str(free_ports(3)))
    (tmp_path / "demo/peer2/peer.key").chmod(0o644)
    with shell.node("demo/peer1"), shell.node("demo/peer3"):
        found = examined(shell, code=1)
        assert [one["ok"] for one in found["node"]] == [True, False, True], found
        assert "it has run for" in found["node"][0]["what"]
        assert "peer2/peer.key can be used by others (mode 644)" in found["node"][1]["what"]
        text = shell.run("node", "doctor").stdout
    assert "demo/peer1" in text
    assert "demo/peer2" in text


def test_peers_of_the_configuration_are_tried_while_the_node_does_not_run(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("node", "init", "demo", "--peers", "2", "--port", str(free_ports(2)))
    with shell.node("demo/peer1"):
        examined(shell, "--folder", "demo/peer2")
    found = examined(shell, "--folder", "demo/peer2", code=1)
    assert not all(one["ok"] for checks in found.values() for one in checks)


def test_a_folder_that_is_named_has_to_hold_a_node(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused = Shell(tmp_path).run("node", "doctor", "--folder", "empty")
    assert refused.returncode == 2
    assert "empty holds no membership" in refused.stderr
