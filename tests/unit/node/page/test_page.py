"""What the page shows, as plain values, and its script in a browser reduced to what it uses."""

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

from gossamer.node.monitoring.members import LISTED, SECTORS, cluster_view
from gossamer.node.monitoring.metrics import DROP_CAUSES, LINKS
from gossamer.node.page.snapshot import MAX_PEERS, PeerView, Queues, Rates, Snapshot, ring_fraction
from support.checkout import ROOT
from support.clusters import member, view
from support.loopback_peer import EMPTY

BROWSER = ROOT / "tests" / "support" / "page_browser.mjs"
NOTHING: dict[str, Any] = {"rates": Rates(), "queues": Queues(), "dropped": {}, "peers": ()}
ALONE = attrs.evolve(EMPTY, key=0xAB << 48, name="", round=130, known_peers=0, **NOTHING)
SNAPSHOT = attrs.evolve(
    ALONE,
    key=0xABC,
    uptime_s=12.3456789,
    rates=Rates(delivered=1 / 3),
    queues=Queues(frames=2, bytes=300, longest_bytes=200),
    dropped=dict.fromkeys(DROP_CAUSES, 0),
    peers=(
        PeerView(key=7, position=0.5),
        PeerView(key=8, position=0.75, links=("ring",), connected=True, round_trip_s=0.001),
    ),
)


@attrs.define
class Scripts:
    """The scripts of the page, which Node.js runs in a folder of theirs."""

    folder: Path

    def __attrs_post_init__(self) -> None:
        for name in ("index.html", "page.js", "layout.js", "cluster.html", "cluster.js"):
            content = files("gossamer.node.page").joinpath(name).read_bytes()
            self.folder.joinpath(name).write_bytes(content)
        # A folder of its own that says so, since a script's kind is known by its package.
        self.folder.joinpath("package.json").write_text('{"type": "module"}')

    def run(self, script: str) -> Any:
        """What a script returns that has the page's layout module as ``layout``."""
        program = (
            "const layout = await import('./layout.js');"
            f"console.log(JSON.stringify((() => {{ {script} }})()));"
        )
        return self._node("--input-type=module", "--eval", program)

    def browse(
        self, *states: Snapshot | Mapping[str, Any] | str, page: str = "page.js"
    ) -> dict[str, Any]:
        """What the page shows after these states arrived, by element."""
        sent = [state.to_json() if isinstance(state, Snapshot) else state for state in states]
        shown = self._node(str(BROWSER), str(self.folder / page), given=json.dumps(sent))
        return dict(shown)

    def _node(self, *arguments: str, given: str = "") -> Any:
        how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}
        command = ["node", *arguments]
        done = subprocess.run(command, cwd=self.folder, input=given, check=False, **how)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    if shutil.which("node") is None:
        pytest.skip("there is no Node.js here")
    return Scripts(tmp_path)


def test_a_snapshot_is_plain_values_with_keys_as_text_and_linked_peers_first() -> None:
    """No more peers are shown than a page takes, at fractions of the ring below one."""
    made = json.loads(json.dumps(SNAPSHOT.to_json(), allow_nan=False))
    assert (made["key"], made["uptime_s"]) == ("0000000000000abc", 12.34568)
    assert made["rates"]["delivered"] == 0.33333
    assert made["queues"] == {"frames": 2, "bytes": 300, "longest_bytes": 200}
    assert [peer["key"][-1] for peer in made["peers"]] == ["8", "7"]
    assert made["peers"][0]["links"] == ["ring"]
    assert made["peers"][1]["round_trip_s"] is None
    assert set(made) == {field.name for field in attrs.fields(Snapshot)}
    many = tuple(PeerView(key=key, position=0.0) for key in range(MAX_PEERS + 10))
    linked = PeerView(key=MAX_PEERS + 100, position=0.5, links=("friend",))
    made = attrs.evolve(SNAPSHOT, peers=(*many, linked)).to_json()
    assert len(made["peers"]) == MAX_PEERS
    assert made["peers"][0]["links"] == ["friend"]
    assert [ring_fraction(key) for key in (0, 1 << 61, (1 << 62) - 1)] == [0.0, 0.5, 0.0]


def views(count: int) -> tuple[PeerView, ...]:
    return tuple(
        PeerView(key=n, position=n / count, links=(LINKS[n % 4],), load=float(n), connected=True)
        for n in range(count)
    )


@pytest.mark.parametrize("peers", [0, 3, 300])
def test_everything_is_drawn_within_the_picture(scripts: Scripts, peers: int) -> None:
    state = json.dumps(attrs.evolve(SNAPSHOT, peers=views(peers)).to_json())
    made = scripts.run(
        f"const state = {state}; const highest = Math.max(...state.peers.map((p) => p.load), 0);"
        "return { labels: layout.labels(state), size: layout.dotRadius(state.peers.length),"
        " bars: state.peers.map((p) => layout.loadBar(p.position, p.load, highest)),"
        " chords: state.peers.map((p) => layout.chord(state.position, p.position)) };"
    )
    assert 2 <= made["size"] <= 7
    assert 1 <= len(made["labels"]) <= 24
    assert made["labels"][0]["own"] is True
    numbers = [value for bar in made["bars"] for value in bar.values()]
    numbers += [label[axis] for label in made["labels"] for axis in ("x", "y")]
    numbers += [float(one) for one in " ".join(made["chords"]).split() if one[0] in "-0123456789"]
    assert all(0 <= number <= 480 for number in numbers)


def test_the_script_knows_the_same_links_writes_shortly_and_sorts_peers(scripts: Scripts) -> None:
    assert scripts.run("return layout.LINKS") == list(LINKS)
    made = scripts.run(
        "return [[0, 1.234, 999.7, 1234, 5e6, null].map(layout.short),"
        "[0.0123, 5, 119, 600, 9000, 1e6, null].map(layout.span)]"
    )
    assert made == [
        ["0", "1.23", "1k", "1.23k", "5M", "\u2013"],
        ["12.3 ms", "5 s", "119 s", "10 min", "2 h", "11 d", "\u2013"],
    ]
    made = scripts.run(
        "const peers = [['a', 2, ['ring']], ['b', null, []], ['c', 1, ['ring', 'friend']]]"
        "  .map(([key, load, links]) => ({key, load, links, name: ''}));"
        "const keys = (...how) => layout.choosePeers(peers, ...how).map((p) => p.key).join('');"
        "return [keys('', (p) => p.load, false), keys('', (p) => p.key, true),"
        " keys('RING fri', (p) => p.key, false)]"
    )
    assert made == ["cab", "cba", "c"]


# All of a state is shown, as text


@pytest.mark.parametrize("count", [3, 300])
def test_every_peer_is_drawn_listed_and_counted(scripts: Scripts, count: int) -> None:
    dropped = {"flood": 5, "stale": 0}
    crowd = attrs.evolve(ALONE, peers=views(count), known_peers=count + 7, dropped=dropped)
    shown = scripts.browse(ALONE, crowd)
    children = {element: one["children"] for element, one in shown.items() if "children" in one}
    assert children["ring-peers"] == children["ring-loads"] == count + 1
    assert children["ring-chords"] == children["rows"] == count
    assert shown["shown"]["text"] == f"{count} shown of {count + 7} known"
    assert sum(int(shown[f"count-{link.replace(' ', '-')}"]["text"]) for link in LINKS) == count
    assert shown["dropped"]["text"] == "flood5"
    assert shown["connection"]["text"] == "live"
    assert f"{count} of {count + 7} known peers" in shown["ring-words"]["text"]


def test_a_peer_alone_and_a_lost_connection_are_shown_and_names_are_text(scripts: Scripts) -> None:
    shown = scripts.browse(ALONE)
    assert shown["documentTitle"] == "00ab0000 \N{EN DASH} gossamer"
    assert shown["dropped"]["text"] == "nothing"
    assert shown["loads"]["text"] == "no peer is known"
    assert "round 130, one every 500 ms" in shown["identity"]["text"]
    assert shown["ring-peers"]["children"] == 1
    lost = {"text": "connection lost, trying again", "children": 0, "class": "lost"}
    assert scripts.browse(ALONE, "lost")["connection"] == lost
    assert scripts.browse(ALONE, "lost", ALONE)["connection"]["class"] == "live"
    name = "<img src=x onerror=alert(1)>"
    peers = (PeerView(key=1, position=0.5, name=name, links=("ring",)),)
    shown = scripts.browse(attrs.evolve(ALONE, peers=peers))
    assert name in shown["rows"]["text"]
    assert name in shown["ring-labels"]["text"]


def drawn_positions(scripts: Scripts, *positions: list[float]) -> list[list[float]]:
    """Where these peers are drawn, the first of each list being the one whose page it is."""
    states = [
        {
            "key": "00",
            "position": own,
            "arc_start": others[0],
            "peers": [{"key": f"{n:04x}", "position": at} for n, at in enumerate(others, 1)],
        }
        for own, *others in positions
    ]
    drawn: list[list[float]] = scripts.run(
        f"return {json.dumps(states)}.map(layout.apart).map((drawn) =>"
        " [drawn.position, drawn.arc_start, ...drawn.peers.map((peer) => peer.position)]);"
    )
    for one, given in zip(drawn, positions, strict=True):
        assert one.pop(1) in one, "the arc begins at a peer"
        assert len(one) == len(given)
    return drawn


def test_peers_are_drawn_where_they_are_or_side_by_side_in_their_order(scripts: Scripts) -> None:
    roomy = [0.5, 0.0, 0.25, 0.75, 0.97]
    assert drawn_positions(scripts, roomy) == [pytest.approx(roomy)]
    draws = random.Random(1)
    hot = [[draws.random(), *(0.999 + draws.random() / 500 for _ in range(5))] for _ in range(20)]
    mixed = [[draws.random() for _ in range(40)] + [0.3] * 30 for _ in range(20)]
    given = [[at % 1 for at in positions] for positions in (*hot, *mixed, [0.2] * 300)]
    for positions, drawn in zip(given, drawn_positions(scripts, *given), strict=True):
        gap = min(0.028, 0.8 / len(positions))
        around = sorted(drawn)
        gaps = [after - at for at, after in pairwise([*around, around[0] + 1])]
        assert min(gaps) > 0.99 * gap
        order = sorted(range(len(positions)), key=lambda n: (positions[n], n))
        found = sorted(range(len(positions)), key=drawn.__getitem__)
        begin = found.index(order[0])
        assert found[begin:] + found[:begin] == order


@pytest.mark.parametrize(("count", "answered"), [(1, 1), (3, 2), (300, 290)])
def test_a_cluster_view_says_who_answered(scripts: Scripts, count: int, answered: int) -> None:
    shown = scripts.browse(view(count, answered), page="cluster.js")
    assert shown["summary"]["text"].startswith(f"{answered} of {count} members answered")
    assert shown["rows"]["children"] == min(count, LISTED)
    assert shown["ring-wanted"]["children"] == SECTORS
    assert shown["ring-members"]["children"] == min(answered, LISTED)
    assert ("no answer" in shown["rows"]["text"]) == (answered < min(count, LISTED))
    assert shown["connection"]["text"] == "live"


def test_brokers_have_no_ring_and_no_rounds_and_lost_views_say_so(scripts: Scripts) -> None:
    neighbour = PeerView(key=7, position=0.0, name="hub", connected=True)
    shown = scripts.browse(
        attrs.evolve(ALONE, role="broker", peers=(neighbour,), known_peers=1, subscriptions=4)
    )
    assert shown["page"]["class"] == "broker"
    assert "round" not in shown["identity"]["text"]
    assert shown["peers-title"]["text"] == "Neighbours"
    assert shown["rows"]["text"] == "0000000000000007hubconnected\u20130"
    assert shown["ring-peers"]["children"] == 0
    seen = cluster_view([member(0), member(1)], {}, 0, "broker")
    shown = scripts.browse(seen, page="cluster.js")
    assert shown["map"]["hidden"] is True
    assert shown["page"]["class"] == "broker"
    assert shown["rows"]["text"] == "peer0alive0.1.0hub:1peer1alive0.1.0hub:1"
    assert scripts.browse("lost", page="cluster.js")["connection"]["class"] == "lost"
    again = scripts.browse("lost", view(2, 2), page="cluster.js")
    assert again["connection"]["text"] == "live"
    assert again["rows"]["children"] == 2
