"""What the page shows, as plain values, and where its script puts it."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files

import attrs
import pytest

from gossamer.node.monitoring.metrics import DROP_CAUSES, LINKS
from gossamer.node.page.snapshot import MAX_PEERS, PeerView, Queues, Rates, Snapshot, ring_fraction

SNAPSHOT = Snapshot(
    key=0xABC,
    name="first",
    cluster="ab" * 16,
    version="0.1.0",
    uptime_s=12.3456789,
    round=24,
    round_s=0.5,
    position=0.25,
    arc_start=0.125,
    load=1.5,
    subscriptions=3,
    clients=1,
    routing_entries=9,
    stored_events=0,
    rates=Rates(delivered=1 / 3),
    queues=Queues(frames=2, bytes=300, longest_bytes=200),
    dropped=dict.fromkeys(DROP_CAUSES, 0),
    known_peers=3,
    peers=(
        PeerView(key=7, position=0.5),
        PeerView(key=8, position=0.75, links=("ring",), connected=True, round_trip_s=0.001),
    ),
)

node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here to run it")


def run_script(script: str) -> object:
    """Run ``script`` with the page's layout module as ``layout``; its last value as JSON."""
    source = files("gossamer.node.page").joinpath("layout.js").read_text()
    program = (
        f"const source = {json.dumps(source)};"
        "const layout = await import('data:text/javascript,' + encodeURIComponent(source));"
        f"console.log(JSON.stringify((() => {{ {script} }})()));"
    )
    command = ["node", "--input-type=module", "--eval", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_a_snapshot_is_plain_values_with_keys_as_text_and_linked_peers_first() -> None:
    made = json.loads(json.dumps(SNAPSHOT.to_json(), allow_nan=False))
    assert made["key"] == "0000000000000abc"
    assert made["uptime_s"] == 12.34568
    assert made["rates"]["delivered"] == 0.33333
    assert made["queues"] == {"frames": 2, "bytes": 300, "longest_bytes": 200}
    assert [peer["key"][-1] for peer in made["peers"]] == ["8", "7"]
    assert made["peers"][0]["links"] == ["ring"]
    assert made["peers"][1]["round_trip_s"] is None
    assert set(made) == {field.name for field in attrs.fields(Snapshot)}


def test_no_more_peers_are_shown_than_a_page_takes() -> None:
    many = tuple(PeerView(key=key, position=0.0) for key in range(MAX_PEERS + 10))
    linked = PeerView(key=MAX_PEERS + 100, position=0.5, links=("friend",))
    made = attrs.evolve(SNAPSHOT, peers=(*many, linked)).to_json()
    assert len(made["peers"]) == MAX_PEERS
    assert made["peers"][0]["links"] == ["friend"]


@pytest.mark.parametrize(
    ("identifier", "fraction"), [(0, 0.0), (1 << 61, 0.5), ((1 << 62) - 1, 0.0)]
)
def test_positions_are_fractions_below_one(identifier: int, fraction: float) -> None:
    assert ring_fraction(identifier) == fraction


@node
def test_the_script_knows_the_same_links() -> None:
    assert run_script("return layout.LINKS") == list(LINKS)


@node
@pytest.mark.parametrize("peers", [0, 3, 300])
def test_everything_is_drawn_within_the_picture(peers: int) -> None:
    views = tuple(
        PeerView(key=key, position=key / max(peers, 1), links=(LINKS[key % 4],), load=float(key))
        for key in range(peers)
    )
    state = json.dumps(attrs.evolve(SNAPSHOT, peers=views).to_json())
    made = run_script(
        f"const state = {state}; const highest = Math.max(...state.peers.map((p) => p.load), 0);"
        "return { labels: layout.labels(state), size: layout.dotRadius(state.peers.length),"
        " bars: state.peers.map((p) => layout.loadBar(p.position, p.load, highest)),"
        " chords: state.peers.map((p) => layout.chord(state.position, p.position)) };"
    )
    assert isinstance(made, dict)
    assert 2 <= made["size"] <= 7
    assert 1 <= len(made["labels"]) <= 24
    assert made["labels"][0]["own"] is True
    numbers = [value for bar in made["bars"] for value in bar.values()]
    numbers += [label[axis] for label in made["labels"] for axis in ("x", "y")]
    numbers += [
        float(part) for line in made["chords"] for part in line.split() if part[0] in "-0123456789"
    ]
    assert all(0 <= number <= 480 for number in numbers)


@node
def test_numbers_and_times_are_short() -> None:
    made = run_script(
        "return [[0, 1.234, 999.7, 1234, 5e6, null].map(layout.short),"
        "[0.0123, 5, 119, 600, 9000, 1e6, null].map(layout.span)]"
    )
    assert made == [
        ["0", "1.23", "1k", "1.23k", "5M", "\u2013"],
        ["12.3 ms", "5 s", "119 s", "10 min", "2 h", "11 d", "\u2013"],
    ]


@node
def test_peers_are_searched_and_sorted_with_unknown_values_last() -> None:
    made = run_script(
        "const peers = [['a', 2, ['ring']], ['b', null, []], ['c', 1, ['ring', 'friend']]]"
        "  .map(([key, load, links]) => ({key, load, links, name: ''}));"
        "const keys = (...how) => layout.choosePeers(peers, ...how).map((p) => p.key).join('');"
        "return [keys('', (p) => p.load, false), keys('', (p) => p.key, true),"
        " keys('RING fri', (p) => p.key, false)]"
    )
    assert made == ["cab", "cba", "c"]
