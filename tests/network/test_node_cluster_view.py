"""One node shows all members that answer, and how many of how many they are."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.node.monitoring.cluster import SECTORS
from support.node_processes import PATIENCE_S, Shell, free_ports


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    made.ok("node", "init", "demo", "--peers", "3", "--port", str(free_ports(3)))
    with made.node("demo/peer1"), made.node("demo/peer2"):
        yield made


def cluster(shell: Shell, folder: str = "demo/peer1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.ok("top", folder, "--cluster", "--once", "--json"))
    return found


@pytest.mark.parametrize(
    "one_stands_still", [False, pytest.param(True, marks=pytest.mark.campaign)]
)
def test_all_who_answer_are_shown_and_the_others_are_counted(
    shell: Shell, one_stands_still: bool
) -> None:
    with shell.node("demo/peer3") as third:
        subscriber = shell.subscriber("--folder", "demo/peer2", "price > 80", "volume < 5")
        view = cluster(shell)
        while view["known"] < 3 or max(view["wanted"]) == 0:
            view = cluster(shell)
        assert (view["answered"], view["asked"]) == (3, 3)
        assert {one["name"] for one in view["members"]} == {"peer1", "peer2", "peer3"}
        assert len(view["wanted"]) == SECTORS
        by_name = {one["name"]: one["report"] for one in view["members"]}
        assert by_name["peer2"]["subscriptions"] >= 1
        assert by_name["peer3"]["subscriptions"] == 0
        page = shell.status("demo/peer1")["page"]
        with urllib.request.urlopen(f"{page}cluster.json", timeout=PATIENCE_S) as answer:
            assert json.load(answer)["known"] == 3
        if one_stands_still:
            os.kill(third.pid, signal.SIGSTOP)
        try:
            said = shell.ok("top", "demo/peer2", "--cluster", "--once")
            assert f"{2 if one_stands_still else 3} of 3 members answered" in said
        finally:
            os.kill(third.pid, signal.SIGCONT)
        subscriber.terminate()
        subscriber.communicate()


def test_a_broker_shows_the_members_that_it_has_met(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("node", "init", "hub", "--preset", "local")
    with shell.node("hub", "--role", "broker"):
        view = cluster(shell, "hub")
        assert (view["role"], view["known"], view["wanted"]) == ("broker", 1, [])
        said = shell.ok("top", "hub", "--cluster", "--once")
        assert "1 members met; brokers tell each other no figures" in said
        assert "deliv/s" not in said
