"""Runs that are looked at come out as those that are not; what is kept of them is true."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.space.ring import RING
from gossamer.sim.results.overlay_files import SnapshotWriter, read_snapshot, snapshot_rounds
from gossamer.sim.results.page.live import LivePage, served
from gossamer.sim.results.results import Results, read_results, result_hash
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.scenarios import read_scenario, study_of
from gossamer.sim.study.watching import Watch, watched_by
from support.draws import with_campaigns
from support.made_up_results import contents
from support.own_protocols import PROTOCOLS
from support.sim_commands import interrupted_after, sim

PEERS = """
name = "seen"
nodes = 150
rounds = 24
round_s = 30

[subscriptions]
kind = "skewed"
per_node = 2
attributes = 2

[events]
per_round = 2
warm_up_rounds = 10

[turnover]
share = 0.01

[[system]]
name = "kindred"

[[system]]
name = "baseline"
"""
OWN = f"""
protocol = "{PROTOCOLS}/looked_at.py:Ring"
name = "seen"
nodes = 120
rounds = 15
[settings]
stride = 1
"""
NODES = OWN.replace("Ring", "RingOfNodes").replace("[settings]\nstride = 1\n", "")
LOOK = ("--live", "--snapshots", "5", "--no-plots")
DRIFT = """
[drift]
every_s = 300
replaced = 0.1
shifted = 0.1
shift = 0.05
event_shift = 0.01
[[system]]"""


def pairs(table: Mapping[str, Any], *names: str) -> Iterator[tuple[Any, ...]]:
    """The rows of some columns."""
    return zip(*(table[name].tolist() for name in names), strict=True)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "peers.toml").write_text(PEERS)
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "nodes.toml").write_text(NODES)
    return tmp_path


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "peers.toml").write_text(PEERS)
    assert sim("run", folder / "peers.toml", *LOOK, "--out", folder / "out") == 0
    return folder / "out"


@pytest.mark.usefixtures("interpreted")
@with_campaigns("name", ["nodes"], ["own"])
def test_a_protocol_that_is_looked_at_comes_out_the_same(name: str, work: Path) -> None:
    assert sim("run", f"{name}.toml", "--no-plots", "--out", "plain") == 0
    assert sim("run", f"{name}.toml", *LOOK, "--out", "seen") == 0
    plain, seen = read_results(work / "plain"), read_results(work / "seen")
    assert plain.summary["result_hash"] == seen.summary["result_hash"]
    (system,) = seen.systems
    assert snapshot_rounds(seen, system) == [0, 5, 10, 15]
    assert snapshot_rounds(plain, system) == [15]
    overlay = read_snapshot(seen, system, 10)
    kinds = {"own": ("peers", "ring"), "nodes": ("link",)}[name]
    assert overlay.kinds == kinds
    ring = overlay.links["kind"] == len(kinds) - 1
    source, target = overlay.links["source"][ring], overlay.links["target"][ring]
    assert np.array_equal(np.sort(source), np.arange(120))
    assert np.array_equal(target, (source + 1) % 120)
    if name == "own":
        views = np.bincount(overlay.links["source"][~ring], minlength=120)
        assert views.max() == 6


def test_peers_that_are_looked_at_come_out_the_same(seen: Path, work: Path) -> None:
    assert sim("run", "peers.toml", "--no-plots", "--out", "plain") == 0
    plain, found = read_results(work / "plain"), read_results(seen)
    assert plain.summary["result_hash"] == found.summary["result_hash"]
    for system in found.systems:
        assert snapshot_rounds(found, system) == [0, 5, 10, 15, 20, 24]
        last = read_snapshot(found, system)
        kept = {name: found.table(system, name) for name in ("overlay_nodes", "overlay_links")}
        numbers = last.nodes["node"]
        assert np.array_equal(last.nodes["identifier"], kept["overlay_nodes"]["identifier"])
        assert np.array_equal(last.links["source"], numbers[kept["overlay_links"]["source"]])
        assert np.array_equal(last.links["target"], numbers[kept["overlay_links"]["target"]])
        nodes = found.table(system, "nodes")
        assert np.array_equal(nodes["identifier"][numbers], last.nodes["identifier"])


def test_subscriptions_are_kept_from_when_on_nodes_have_them(work: Path) -> None:
    """By the tables alone whoever got an event subscribed to it, though interests drift."""
    (work / "peers.toml").write_text(PEERS.replace("[[system]]", DRIFT, 1))
    keep = ("--keep", "subscriptions,events")
    assert sim("run", "peers.toml", "--no-plots", *keep, "--out", "o") == 0
    subscriptions = Results(work, {}).table("o", "subscriptions")
    assert set(subscriptions["attribute"]) == {1, 2}
    assert set(subscriptions["subscription"]) == {0, 1}
    assert np.allclose(subscriptions["low"], subscriptions["low_hashed"] / RING)
    times = np.unique(subscriptions["since_s"])
    assert times.tolist() == [-np.inf, 300.0, 600.0]
    since = (subscriptions["since_s"] == at for at in times)
    changed = [len(np.unique(subscriptions["node"][rows])) for rows in since]
    assert changed[0] == 150
    assert all(10 < count < 60 for count in changed[1:])
    values = Results(work, {}).table("o", "event_values")
    deliveries = read_results(work / "o").table("kindred", "deliveries")
    published = dict(pairs(values, "event", "time_s"))
    wrong = 0
    for event, node in pairs(deliveries, "event", "node"):
        own = subscriptions["node"] == node
        before = own & (subscriptions["since_s"] <= published[event])
        now = before & (subscriptions["since_s"] == subscriptions["since_s"][before].max())
        at = values["event"] == event
        point = dict(zip(values["attribute"][at], values["value_hashed"][at], strict=True))
        wanted = False
        for number in (0, 1):
            rows = np.flatnonzero(now & (subscriptions["subscription"] == number))
            wanted |= bool(len(rows)) and all(
                subscriptions["low_hashed"][row]
                <= point[subscriptions["attribute"][row]]
                <= subscriptions["high_hashed"][row]
                for row in rows
            )
        wrong += not wanted
    # An event under way may come when its subscriber wants something else already, or still.
    assert wrong <= 0.05 * len(deliveries["event"])


@pytest.mark.usefixtures("interpreted")
def test_snapshots_of_an_interrupted_run_are_those_of_a_whole_one(work: Path) -> None:
    scenario, text = read_scenario(work / "own.toml")
    study = study_of(scenario)

    def run(folder: Path, **how: Any) -> str:
        execution = Execution(watch=SnapshotWriter(folder, 4), **how)
        return result_hash(study.run(scenario, text, execution))

    whole = run(work / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(work / "parts", checkpoint=work / "held", progress=interrupted_after(9))
    assert run(work / "parts", checkpoint=work / "held", resume=True) == whole
    one, other = (contents(work / name) for name in ("whole", "parts"))
    assert sum(name.endswith(".parquet") for name in one) == 2 * 5
    assert one == other


@pytest.mark.usefixtures("interpreted")
def test_a_resumed_run_is_looked_at_as_it_was_begun(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the command that goes on with it says nothing of snapshots."""
    rounds: list[int] = []

    def interrupting(self: SnapshotWriter, run: Any) -> None:
        rounds.append(run.round)
        if run.round == 7 and rounds.count(7) == 1:
            raise KeyboardInterrupt
        original(self, run)

    original = SnapshotWriter.__call__
    monkeypatch.setattr(SnapshotWriter, "__call__", interrupting)
    line = ("run", "own.toml", "--no-plots", "--out", "o", "--threads", 1)
    assert sim(*line, "--snapshots", 3) == 130
    assert sim("run", "o.unfinished/scenario.toml", "--no-plots", "--out", "o", "--resume") == 0
    assert snapshot_rounds(read_results(work / "o"), "ring") == [0, 3, 6, 9, 12, 15]
    assert not (work / "o.unfinished").exists()


def test_a_live_run_is_seen_while_it_goes_on(work: Path) -> None:
    """A browser's requests come in while the run goes on, and the run comes out the same."""
    scenario, text = read_scenario(work / "peers.toml")
    study = study_of(scenario)
    page = LivePage(scenario.name, "", study.places)
    rounds: list[int] = []
    halfway = threading.Event()

    def look(address: str) -> None:
        halfway.wait(120)
        with urllib.request.urlopen(f"{address}state?have=-1", timeout=60) as answer:
            told = json.load(answer)
        rounds.extend(system["round"] for system in told["run"]["systems"])

    def note(run: Any) -> None:
        if run.round == 12:
            halfway.set()

    with served(page) as address:
        browser = threading.Thread(target=look, args=(address,))
        browser.start()
        watch: Watch | None = watched_by([page, note])
        seen = study.run(scenario, text, Execution(watch=watch, workers=2))
        browser.join(120)
    assert len(rounds) in (1, 2)
    assert result_hash(seen) == result_hash(study.run(scenario, text, Execution()))


def test_pages_and_exports_of_results(
    seen: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sim("page", seen, "--out", "p.html") == 0
    text = (work / "p.html").read_text()
    run = json.loads(re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)[0])
    assert [system["name"] for system in run["systems"]] == ["kindred", "baseline"]
    for system in run["systems"]:
        assert [overlay["round"] for overlay in system["overlays"]] == [0, 5, 10, 15, 20, 24]
        assert set(system["overlays"][0]["places"]) == {"identifier", "subscribed range"}
        keys = {curve["key"] for curve in system["course"]["curves"]}
        assert {"hit_ratio", "traffic_overhead", "path_length", "control_messages"} <= keys
    for name in ("o.graphml", "o.gexf", "o.csv"):
        assert sim("export", seen, "--system", "kindred", "--round", 10, "--out", name) == 0
        assert (work / name).stat().st_size > 1_000
    assert "links of kindred after round 10" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run peers.toml --live-port 80", "--live-port is 80, expected --live with it"),
        ("run peers.toml --live --live-port 70000", "expected a whole number from 0 to 65535"),
        ("run peers.toml --snapshots 0", "--snapshots is 0, expected a number of rounds from 1"),
        ("run peers.toml --keep views", "--keep is 'views', expected some of subscriptions, ev"),
        ("run own.toml --keep events", "--keep is 'events', expected nothing in a scenario"),
        ("run brokers.toml --live", "--live is True, expected no such option"),
        ("page none", "none/summary.json does not exist, expected a folder with results"),
        ("page out --out out/summary.json", "out/summary.json exists, expected a new file"),
        ("export out", "--system is missing, expected one of kindred, baseline"),
        ("export out --system other", "--system is 'other', expected one of kindred, baseline"),
        ("export out --system kindred --round 3", "--round is 3, expected a round with a snapsh"),
        ("export out --system kindred --format dot", "--format is 'dot', expected one of graphml"),
        ("export out --system kindred --out a.dot", "expected a name that ends with one of"),
        ("run wrong.toml --no-plots --out w", "Wrong.overlay of kind 'link' is [0, 120]"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(
    line: str, told: str, seen: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(seen, work / "out")
    (work / "brokers.toml").write_text('kind = "brokers"\nname = "b"\n')
    (work / "wrong.toml").write_text(NODES.replace("RingOfNodes", "Wrong"))
    before = sorted(work.rglob("*"))
    capsys.readouterr()
    assert sim(*line.split()) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert told in said
    assert said.startswith("gossamer: ")
    assert sorted(work.rglob("*")) == before


@pytest.fixture(scope="module")
def browser() -> Callable[[str], str]:
    """Gives what a browser makes of a page: its elements, when its script has run."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
    if found is None:
        pytest.skip("needs Chromium")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000")

    def show(address: str) -> str:
        line = [found, *options, "--dump-dom", address]
        shown = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True)
        return html.unescape(shown.stdout)

    return show


def shown_value(page: str, measure: str) -> list[str]:
    """What the table below the plots shows of a measure, a text a system."""
    row = re.search(rf'<tr data-measure="{measure}">(.*?)</tr>', page)
    assert row
    return re.findall(r"<td>(.*?)</td>", row[1])[1:]


def test_a_browser_replays_a_run(seen: Path, work: Path, browser: Callable[[str], str]) -> None:
    assert sim("page", seen, "--out", "p.html") == 0
    cycles = read_results(seen).table("kindred", "cycles")
    address = (work / "p.html").as_uri()
    for asked, row in (("", -1), ("#12", 11)):
        page = browser(address + asked)
        rounds = 24 if asked == "" else 12
        assert f"round {rounds}, {(rounds - 1) * 30} s" in page
        population, _ = shown_value(page, "population")
        assert int(population) == cycles["population"][row]
        at = max(one for one in (0, 5, 10, 15, 20, 24) if one <= rounds)
        assert page.count(f"After round {at}: {cycles['population'][at - 1]} nodes") == 2


@pytest.mark.usefixtures("interpreted")
def test_a_browser_shows_a_live_run(work: Path, browser: Callable[[str], str]) -> None:
    scenario, text = read_scenario(work / "own.toml")
    study = study_of(scenario)
    page = LivePage("seen", "seed 1", study.places)
    with served(page) as address:
        assert "preparing" in browser(address)
        study.run(scenario, text, Execution(watch=page))
        found = browser(address)
        assert re.search(r"seed 1; \S+ 15 of 15 rounds", found)
        (heard,) = shown_value(found, "heard_by_all")
        assert float(heard) > 10
        assert "After round 15: 120 nodes" in found
