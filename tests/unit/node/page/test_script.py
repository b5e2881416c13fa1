"""The page's script in a browser reduced to what it uses: all of a state is shown, as text."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest

from gossamer.node.monitoring.cluster import FIGURES, LISTED, SECTORS, Report, cluster_view
from gossamer.node.monitoring.metrics import LINKS
from gossamer.node.page.snapshot import PeerView, Queues, Rates, Snapshot
from support.checkout import ROOT

BROWSER = ROOT / "tests" / "support" / "page_browser.mjs"
ALONE = Snapshot(
    key=0xAB << 48,
    name="",
    cluster="cd" * 16,
    version="0.1.0",
    uptime_s=65.0,
    round=130,
    round_s=0.5,
    position=0.0,
    arc_start=0.0,
    load=0.0,
    subscriptions=0,
    clients=0,
    routing_entries=0,
    stored_events=0,
    rates=Rates(),
    queues=Queues(),
    dropped={},
    known_peers=0,
    peers=(),
)

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")


def browse(
    folder: Path, *states: Snapshot | Mapping[str, Any] | str, page: str = "page.js"
) -> dict[str, Any]:
    """What the page shows after these states arrived, by element."""
    # A folder of its own that says so, since a script's kind is known by its package.
    for name in ("index.html", "page.js", "layout.js", "cluster.html", "cluster.js"):
        folder.joinpath(name).write_bytes(files("gossamer.node.page").joinpath(name).read_bytes())
    folder.joinpath("package.json").write_text('{"type": "module"}')
    sent = [state.to_json() if isinstance(state, Snapshot) else state for state in states]
    done = subprocess.run(
        ["node", str(BROWSER), str(folder / page)],
        input=json.dumps(sent),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


def crowd(count: int) -> Snapshot:
    peers = tuple(
        PeerView(
            key=key, position=key / count, links=(LINKS[key % 4],), load=float(key), connected=True
        )
        for key in range(count)
    )
    return attrs.evolve(ALONE, peers=peers, known_peers=count + 7, dropped={"flood": 5, "stale": 0})


@pytest.mark.parametrize("count", [3, 300])
def test_every_peer_is_drawn_listed_and_counted(tmp_path: Path, count: int) -> None:
    shown = browse(tmp_path, ALONE, crowd(count))
    assert shown["ring-peers"]["children"] == count + 1
    assert shown["ring-loads"]["children"] == count + 1
    assert shown["ring-chords"]["children"] == count
    assert shown["rows"]["children"] == count
    assert shown["shown"]["text"] == f"{count} shown of {count + 7} known"
    assert sum(int(shown[f"count-{link.replace(' ', '-')}"]["text"]) for link in LINKS) == count
    assert shown["dropped"]["text"] == "flood5"
    assert shown["connection"]["text"] == "live"
    assert f"{count} of {count + 7} known peers" in shown["ring-words"]["text"]


def test_a_peer_alone_is_shown_as_well(tmp_path: Path) -> None:
    shown = browse(tmp_path, ALONE)
    assert shown["documentTitle"] == "00ab0000 \N{EN DASH} gossamer"
    assert shown["dropped"]["text"] == "nothing"
    assert shown["loads"]["text"] == "no peer is known"
    assert "round 130, one every 500 ms" in shown["identity"]["text"]
    assert shown["ring-peers"]["children"] == 1


def test_a_lost_connection_is_said_and_forgotten_when_it_is_back(tmp_path: Path) -> None:
    assert browse(tmp_path, ALONE, "lost")["connection"] == {
        "text": "connection lost, trying again",
        "children": 0,
        "class": "lost",
    }
    assert browse(tmp_path, ALONE, "lost", ALONE)["connection"]["class"] == "live"


def test_names_of_peers_are_text_and_never_markup(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    peers = (PeerView(key=1, position=0.5, name=name, links=("ring",)),)
    shown = browse(tmp_path, attrs.evolve(ALONE, peers=peers))
    assert name in shown["rows"]["text"]
    assert name in shown["ring-labels"]["text"]


CROWDED = """
import { apart } from "./layout.js";
const states = JSON.parse(process.argv[2]);
console.log(JSON.stringify(states.map((state) => {
  const drawn = apart(state);
  return [drawn.position, drawn.arc_start, ...drawn.peers.map((peer) => peer.position)];
})));
"""


def drawn_positions(folder: Path, *positions: list[float]) -> list[list[float]]:
    """Where these peers are drawn, the first of each list being the one whose page it is."""
    browse(folder, ALONE)
    folder.joinpath("crowded.js").write_text(CROWDED)
    states = [
        {
            "key": "00",
            "position": own,
            "arc_start": others[0],
            "peers": [{"key": f"{n:04x}", "position": at} for n, at in enumerate(others, 1)],
        }
        for own, *others in positions
    ]
    done = subprocess.run(
        ["node", "crowded.js", json.dumps(states)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    drawn: list[list[float]] = json.loads(done.stdout)
    for one, given in zip(drawn, positions, strict=True):
        assert one.pop(1) in one, "the arc begins at a peer"
        assert len(one) == len(given)
    return drawn


def test_peers_with_room_are_drawn_where_they_are(tmp_path: Path) -> None:
    given = [0.5, 0.0, 0.25, 0.75, 0.97]
    (drawn,) = drawn_positions(tmp_path, given)
    assert drawn == pytest.approx(given)


def test_crowded_peers_are_drawn_side_by_side_in_their_order(tmp_path: Path) -> None:
    draws = random.Random(1)
    hot = [[draws.random(), *(0.999 + draws.random() / 500 for _ in range(5))] for _ in range(20)]
    mixed = [[draws.random() for _ in range(40)] + [0.3] * 30 for _ in range(20)]
    given = [[at % 1 for at in positions] for positions in (*hot, *mixed, [0.2] * 300)]
    for positions, drawn in zip(given, drawn_positions(tmp_path, *given), strict=True):
        gap = min(0.028, 0.8 / len(positions))
        around = sorted(drawn)
        gaps = [after - at for at, after in pairwise([*around, around[0] + 1])]
        assert min(gaps) > 0.99 * gap
        order = sorted(range(len(positions)), key=lambda n: (positions[n], n))
        found = sorted(range(len(positions)), key=drawn.__getitem__)
        begin = found.index(order[0])
        assert found[begin:] + found[:begin] == order


def test_a_broker_shows_no_ring_and_no_rounds(tmp_path: Path) -> None:
    neighbour = PeerView(key=7, position=0.0, name="hub", connected=True)
    shown = browse(
        tmp_path,
        attrs.evolve(ALONE, role="broker", peers=(neighbour,), known_peers=1, subscriptions=4),
    )
    assert shown["page"]["class"] == "broker"
    assert "round" not in shown["identity"]["text"]
    assert shown["peers-title"]["text"] == "Neighbours"
    assert shown["rows"]["text"] == "0000000000000007hubconnected\u20130"
    assert shown["ring-peers"]["children"] == 0


def view(count: int, answered: int) -> dict[str, Any]:
    """A cluster of so many members, of which so many have answered."""
    members: list[dict[str, Any]] = [
        {
            "key": f"{number:016x}",
            "name": f"peer{number}",
            "addresses": ["127.0.0.1:7710"],
            "version": "0.1.0",
            "state": "alive",
            "since": 0.0,
            "certificate_expires": None,
        }
        for number in range(count)
    ]
    figures = dict.fromkeys(FIGURES, 1.5) | {"position": 0.25, "overloading": 0, "late_rounds": 0}
    report = Report(figures=figures, wanted=range(SECTORS))
    told = {one["key"]: (report, 1.0) for one in members[:answered]}
    return cluster_view(members, told, count - 1)


@pytest.mark.parametrize(("count", "answered"), [(1, 1), (3, 2), (300, 290)])
def test_the_view_of_a_cluster_says_who_answered(tmp_path: Path, count: int, answered: int) -> None:
    shown = browse(tmp_path, view(count, answered), page="cluster.js")
    assert shown["summary"]["text"].startswith(f"{answered} of {count} members answered")
    assert shown["rows"]["children"] == min(count, LISTED)
    assert shown["ring-wanted"]["children"] == SECTORS
    assert shown["ring-members"]["children"] == min(answered, LISTED)
    assert ("no answer" in shown["rows"]["text"]) == (answered < min(count, LISTED))
    assert shown["connection"]["text"] == "live"


def test_the_view_of_a_cluster_of_brokers_has_no_ring(tmp_path: Path) -> None:
    members = [{**one, "addresses": ["hub:1"]} for one in view(2, 0)["members"]]
    seen = cluster_view(members, {}, 0, "broker")
    shown = browse(tmp_path, seen, page="cluster.js")
    assert shown["map"]["hidden"] is True
    assert shown["page"]["class"] == "broker"
    assert shown["rows"]["text"] == "peer0alive0.1.0hub:1peer1alive0.1.0hub:1"


def test_a_view_that_is_lost_says_so_until_it_is_back(tmp_path: Path) -> None:
    assert browse(tmp_path, "lost", page="cluster.js")["connection"]["class"] == "lost"
    again = browse(tmp_path, "lost", view(2, 2), page="cluster.js")
    assert again["connection"]["text"] == "live"
    assert again["rows"]["children"] == 2
