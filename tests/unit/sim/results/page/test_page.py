"""The page is one file that refers to nothing; the live one answers who knows its address."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from gossamer.sim.errors import SimulationError
from gossamer.sim.results.page import live
from gossamer.sim.results.page import page as drawing
from gossamer.sim.results.page.live import LEAST_PAUSE_S, LivePage, served
from gossamer.sim.results.page.page import page_html, with_styles
from gossamer.sim.study.records import Table
from gossamer.sim.study.watching import Floats
from support.made_up_runs import WatchedRun, made_up_course, made_up_overlay

EVIL = "</script><script>alert(1)</script><!-- {{data}}"


def page(title: str = "mine", nodes: int = 60, rounds: int = 30) -> str:
    overlay = made_up_overlay(nodes)
    drawn = drawing.drawn_overlay(overlay, {"place": overlay.nodes["place"]}, rounds)
    course = drawing.drawn_course(made_up_course(rounds))
    shown = {"name": "one", "course": course, "overlays": [drawn]}
    systems = with_styles([{**shown, "round": rounds, "rounds": rounds}])
    run = {"title": title, "facts": "", "live": False, "ended": True, "systems": systems}
    return page_html(run)


class Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_the_page_refers_to_nothing_outside_itself_and_its_policy_lets_run_nothing_else() -> None:
    text = page()
    found = Reader(text)
    for tag, attributes in found.elements:
        assert not {"src", "srcset", "action", "onclick", "onload", "style"} & set(attributes), tag
        assert attributes.get("href", "data:,") == "data:,"
    assert not re.search("https?://", text)
    (policy,) = [
        str(attributes["content"])
        for tag, attributes in found.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'none'" in policy
    parts = re.findall(r"<(style|script)>(.*?)</\1>", text, re.DOTALL)
    assert [name for name, _ in parts] == ["style", "script"]
    for name, code in parts:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_names_never_become_part_of_the_page_which_is_small() -> None:
    text = page(title=EVIL)
    found = Reader(text)
    assert [tag for tag, _ in found.elements].count("script") == 2
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    assert json.loads(data[1])["title"] == EVIL
    assert len(page(nodes=100_000, rounds=50_000)) < 100_000


def run_script(code: str) -> Any:
    """What a piece of JavaScript prints as JSON, after the page's functions for drawing."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    package = files("gossamer.sim.results.page")
    parts = [package.joinpath(name).read_text() for name in ("charts.js", "overlay.js")]
    printed = subprocess.run(
        [node, "-e", "\n".join([*parts, f"console.log(JSON.stringify({code}))"])],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return json.loads(printed.stdout)


def test_axes_have_round_numbers() -> None:
    assert run_script("ticks(0, 120, 4)") == [0, 50, 100]
    assert run_script("ticks(0, 1.04, 4)") == [0, 0.5, 1]
    assert run_script("bounds([{values: [null, 5, 5]}])") == [0, pytest.approx(5.2)]
    assert run_script("bounds([{values: [null]}])") == [0, 1]
    assert run_script("bounds([{values: [0, 0]}])")[0] == 0
    told = run_script("[told(0.98765, 'ratio'), told(null), told(20000, 'count')]")
    assert told == ["98.77 %", "-", "20,000"]


def test_curves_of_more_rounds_than_places_are_means_in_a_band() -> None:
    line = {"rounds": [1, 2, 3, 4, 5, 6, 7], "values": [0, 6, None, 9, None, None, 5]}
    assert run_script(f"thinned({json.dumps(line)}, 7)") == {**line, "low": None, "high": None}
    found = run_script(f"thinned({json.dumps(line)}, 4.9)")
    assert (found["rounds"], found["values"]) == ([1.5, 3.5, 5.5, 7], [3, 9, None, 5])
    assert (found["low"], found["high"]) == ([0, 9, None, 5], [6, 9, None, 5])
    # What goes up and down every round, in a chart 320 pixels wide: few corners, and a band.
    drawn = run_script(
        "(() => { const calls = {}; const context = new Proxy({}, { get: (_, name) =>"
        " (...given) => { calls[name] = (calls[name] ?? 0) + 1; }, set: () => true });"
        " const values = Array.from({ length: 600 }, (_, i) => i % 2);"
        " const canvas = { clientWidth: 320, clientHeight: 176, getContext: () => context };"
        " globalThis.window = { devicePixelRatio: 1 };"
        " const line = { rounds: values.map((_, i) => i + 1), values, colour: '', dashes: [] };"
        " drawChart(canvas, [line], 'fine', 0, 600); return calls; })()"
    )
    assert drawn["fill"] == 1
    assert 150 < drawn["lineTo"] < 230, "a line and both edges of its band, 64 points at most each"


def test_springs_bring_linked_nodes_together_inside_the_picture() -> None:
    overlay = drawing.drawn_overlay(made_up_overlay(60), {}, 0)
    places = run_script(
        f"(() => {{ const a = new Arrangement(), o = {json.dumps(overlay)}; a.places(o, SPRINGS);"
        " while (a.moves) a.step(); return a.places(o, SPRINGS); })()"
    )
    assert len(places) == 60
    assert max(abs(one) for place in places for one in place) <= 1.0
    assert len({tuple(place) for place in places}) == 60


def test_small_overlays_are_drawn_whole_and_those_of_nobody_as_nothing() -> None:
    overlay = made_up_overlay(50)
    found = drawing.drawn_overlay(overlay, {"place": overlay.nodes["place"]}, 7)
    assert found["nodes"] == overlay.nodes["node"].tolist()
    assert (found["nodes_in_all"], found["links_in_all"], found["round"]) == (50, 400, 7)
    triples = np.array(found["links"]).reshape(-1, 3)
    numbers = np.array(found["nodes"])
    assert np.array_equal(numbers[triples[:, 0]], overlay.links["source"])
    assert np.array_equal(numbers[triples[:, 1]], overlay.links["target"])
    assert np.array_equal(triples[:, 2], overlay.links["kind"])
    assert found["places"]["place"] == pytest.approx(overlay.nodes["place"], abs=1e-4)
    found = drawing.drawn_overlay(made_up_overlay(0), {}, 0)
    assert (found["nodes"], found["links"]) == ([], [])


def test_of_large_overlays_nodes_are_drawn_with_those_that_they_know() -> None:
    overlay = made_up_overlay(100_000)
    found = drawing.drawn_overlay(overlay, {"place": overlay.nodes["place"]}, 7)
    assert drawing.MOST_NODES // 2 < len(found["nodes"]) <= drawing.MOST_NODES
    triples = np.array(found["links"]).reshape(-1, 3)
    assert len(triples) <= drawing.MOST_LINKS
    ends = (overlay.links[name].tolist() for name in ("source", "target"))
    known = set(zip(*ends, strict=True))
    numbers = found["nodes"]
    assert {(numbers[a], numbers[b]) for a, b, _ in triples.tolist()} <= known
    joined = {int(end) for end in triples[:, :2].ravel()}
    assert len(joined) > 0.9 * len(numbers), "most are drawn with a link"
    assert len(json.dumps(found)) < 40_000
    again = made_up_overlay(100_000)
    assert found == drawing.drawn_overlay(again, {"place": overlay.nodes["place"]}, 7)


@pytest.mark.parametrize(
    "rounds", [0, 1, 9, 40, drawing.MOST_POINTS, drawing.MOST_POINTS + 1, 100_000]
)
def test_courses_have_few_points_however_many_rounds(rounds: int) -> None:
    found = drawing.drawn_course(made_up_course(rounds))
    (curve,) = found["curves"]
    size = found["rounds_a_point"]
    points = -(-rounds // size)
    assert points <= drawing.MOST_POINTS
    assert len(found["rounds"]) == len(found["time_s"]) == len(curve["values"]) == points
    assert len(found["population"]) == points
    if rounds:
        assert found["rounds"][-1] == rounds
    if 10 <= rounds <= drawing.MOST_POINTS:
        assert curve["values"][8] is None
        assert curve["values"][9] == pytest.approx(0.1)
    if size > 9:
        assert curve["values"][0] == pytest.approx(np.mean(1 / np.arange(10, size + 1)), rel=1e-4)
    json.dumps(found, allow_nan=False)


# The live page


def places(nodes: Table) -> dict[str, Floats]:
    return {"place": nodes["place"]}


@pytest.fixture
def live_page(monkeypatch: pytest.MonkeyPatch) -> LivePage:
    monkeypatch.setattr(live, "_LATELY_S", 0.5)  # for so long an end waits for who looks
    return LivePage("mine", "seed 1", places)


@pytest.fixture
def address(live_page: LivePage) -> Iterator[str]:
    with served(live_page) as address:
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


def test_the_page_and_its_state_are_served(live_page: LivePage, address: str) -> None:
    status, headers, body = get(address)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["cache-control"] == "no-store"
    assert b"connect-src &#x27;self&#x27;" in body or b"connect-src 'self'" in body
    assert state(address)["run"]["systems"] == []
    live_page(WatchedRun("one", 20, 50, 80))
    told = state(address)
    (system,) = told["run"]["systems"]
    assert (system["name"], system["round"], system["rounds"]) == ("one", 20, 50)
    assert (system["course"]["rounds"][-1], system["overlays"][0]["nodes_in_all"]) == (20, 80)
    assert not told["run"]["ended"]
    assert state(address, told["version"]) == 204


def test_nothing_is_told_to_who_does_not_know_the_address_of_the_page(address: str) -> None:
    parts = urlsplit(address)
    root = f"http://{parts.netloc}"
    for path in ("/", "/state", "/state?have=-1", "/guess/", f"{parts.path}../", "//", "/%00/"):
        assert get(root, path)[0] == 404
    assert get(address, "page.js")[0] == 404
    # A live_page elsewhere whose name leads here, by a name server that lies.
    assert get(address, "state", Host="evil.example:80")[0] == 404
    assert get(address, "state", Host=f"localhost:{parts.port}")[0] == 200
    assert get(address, "state?have=99999999999999999999999")[0] == 200
    assert get(address, "state?have=x")[0] == 200
    with served(LivePage("a", "", places)) as one, served(LivePage("b", "", places)) as other:
        assert urlsplit(one).path != urlsplit(other).path
        assert len(urlsplit(one).path) > 20


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port, page = taken.getsockname()[1], LivePage("a", "", places)
        expected = f"--live-port is {port}, expected a port that is free"
        with pytest.raises(SimulationError, match=expected), served(page, port):
            pass


def test_a_run_is_looked_at_no_more_often_than_is_cheap() -> None:
    now = [0.0]
    live_page = LivePage("mine", "", places, clock=lambda: now[0])
    run = WatchedRun("one", 0, 100, 50)
    for round_ in range(100):
        run.round = round_
        now[0] += LEAST_PAUSE_S / 10
        live_page(run)
    assert 9 <= run.looks <= 11
    run.round = 100
    live_page(run)
    assert run.looks <= 12, "the end is looked at in any case"
    told = live_page.state(-1)
    assert told is not None
    assert json.loads(told)["run"]["systems"][0]["round"] == 100


def test_the_end_is_told_to_who_looks(live_page: LivePage) -> None:
    with served(live_page) as address:
        live_page(WatchedRun("one", 50, 50, 20))
        version = state(address)["version"]
        live_page.end()
        assert state(address, version)["run"]["ended"]
    with pytest.raises(OSError):
        get(address)
