"""The live page answers whoever knows its address, on this machine, and lets the run be."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from gossamer.sim.errors import SimulationError
from gossamer.sim.results.page import live
from gossamer.sim.results.page.live import LEAST_PAUSE_S, LivePage, served
from gossamer.sim.study.records import Table
from gossamer.sim.study.watching import Floats
from support.watched_runs import WatchedRun


def places(nodes: Table) -> dict[str, Floats]:
    return {"place": nodes["place"]}


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> LivePage:
    monkeypatch.setattr(live, "_LATELY_S", 0.5)  # for so long an end waits for who looks
    return LivePage("mine", "seed 1", places)


@pytest.fixture
def address(page: LivePage) -> Iterator[str]:
    with served(page) as address:
        yield address


def get(address: str, path: str = "", **headers: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        connection.request("GET", parts.path + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def state(address: str, have: int = -1) -> Any:
    status, _, body = get(address, f"state?have={have}")
    return json.loads(body) if status == 200 else status


def test_the_page_and_its_state_are_served(page: LivePage, address: str) -> None:
    status, headers, body = get(address)
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert b"connect-src &#x27;self&#x27;" in body or b"connect-src 'self'" in body
    assert state(address)["run"]["systems"] == []
    page(WatchedRun("one", 20, 50, 80))
    told = state(address)
    (system,) = told["run"]["systems"]
    assert (system["name"], system["round"], system["rounds"]) == ("one", 20, 50)
    assert system["course"]["rounds"][-1] == 20
    assert system["overlays"][0]["nodes_in_all"] == 80
    assert not told["run"]["ended"]
    assert state(address, told["version"]) == 204


def test_nothing_is_told_to_who_does_not_know_the_address(address: str) -> None:
    parts = urlsplit(address)
    root = f"http://{parts.netloc}"
    for path in ("/", "/state", "/state?have=-1", "/guess/", f"{parts.path}../", "//", "/%00/"):
        assert get(root, path)[0] == 404
    assert get(address, "page.js")[0] == 404
    # A page elsewhere whose name leads here, by a name server that lies.
    assert get(address, "state", Host="evil.example:80")[0] == 404
    assert get(address, "state", Host=f"localhost:{parts.port}")[0] == 200
    assert get(address, "state?have=99999999999999999999999")[0] == 200
    assert get(address, "state?have=x")[0] == 200


def test_two_pages_have_different_addresses() -> None:
    with served(LivePage("a", "", places)) as one, served(LivePage("b", "", places)) as other:
        assert urlsplit(one).path != urlsplit(other).path
        assert len(urlsplit(one).path) > 20


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        expected = f"--live-port is {port}, expected a port that is free"
        with (
            pytest.raises(SimulationError, match=expected),
            served(LivePage("a", "", places), port),
        ):
            pass


def test_a_run_is_looked_at_no_more_often_than_is_cheap() -> None:
    now = [0.0]
    page = LivePage("mine", "", places, clock=lambda: now[0])
    run = WatchedRun("one", 0, 100, 50)
    for round_ in range(100):
        run.round = round_
        now[0] += LEAST_PAUSE_S / 10
        page(run)
    assert 9 <= run.looks <= 11
    run.round = 100
    page(run)
    assert run.looks <= 12, "the end is looked at in any case"
    told = page.state(-1)
    assert told is not None
    assert json.loads(told)["run"]["systems"][0]["round"] == 100


def test_the_end_is_told_to_who_looks(page: LivePage) -> None:
    with served(page) as address:
        page(WatchedRun("one", 50, 50, 20))
        version = state(address)["version"]
        page.end()
        told = state(address, version)
        assert told["run"]["ended"]
    with pytest.raises(OSError):
        get(address)
