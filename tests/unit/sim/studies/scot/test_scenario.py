"""Scenarios of a SCOT and quotes, read strictly, one sentence a fault; pictures of a burst."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotSettings
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.plot_style import save_all
from gossamer.sim.studies.scot import plots as scot_plots
from gossamer.sim.studies.scot import study as scot_preview
from gossamer.sim.studies.scot.burst import Burst, BurstResult
from gossamer.sim.studies.scot.records import RoutingRecord, ScotRunRecord
from gossamer.sim.studies.scot.scenario import (
    FORMAT,
    SCOT_SETTINGS,
    ScotScenario,
)
from gossamer.sim.studies.scot.workloads import Quotes, figure_2, figure_8
from gossamer.sim.studies.stock_quotes import read_quotes
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from gossamer.sim.study.scenarios import read_scenario
from support.checkout import ROOT
from support.draws import larger
from support.refusals import fault_of, read_as

EXAMPLE = ROOT / "examples" / "scot" / "scenario.toml"
REFERENCE = ROOT / "docs" / "scot_scenario.md"

FACTORS = """
[overlay]
name = "factors"
regions = ["a", "b", "c"]
region_links = [["a", "b"], ["b", "c"]]
clusters = [0, 1]
"""

FULL = f"""
kind = "scot"
name = "all of it"
seed = 7
routings = ["static", "dynamic"]
{FACTORS}
cluster_links = [[0, 1]]

[workload]
kind = "quotes"
quotes = 40
subscribers = 9
subscribe_every_ms = 1.5
publishers = 3
notifications = 4
per_minute = 30

[burst]
notifications = 20
per_minute = 6000
subscribers = 1
broker = "B(c,1)"

[links]
latency_ms = 2

[service]
matching_ms = 3

[scot]
threshold = 5
covering = true
"""


MANY = str(list(range(4_000)))
THREE = "[0, 1, 2]\ncluster_links = [[0, 1], [1, 2]]"
LINK_OF_ONE = "[0, 1]\ncluster_links = [[0]]"


def read(folder: Path, text: str, **overrides: object) -> ScotScenario:
    return read_as(ScotScenario, folder, text, overrides)


def test_every_value_of_a_file_arrives(tmp_path: Path) -> None:
    scenario = read(tmp_path, FULL)
    assert scenario.routings == ("static", "dynamic")
    burst = scenario.run_of("dynamic")
    assert (burst.scot.regions, len(burst.scot.clusters)) == (("a", "b", "c"), 2)
    assert burst.settings == ScotSettings(routing="dynamic", threshold=5, covering=True)
    assert isinstance(burst.workload, Quotes)
    assert (burst.workload.number, burst.workload.seed, burst.seed) == (40, 7, 7)
    assert (burst.subscribers, burst.subscribe_every) == (9, 1_500)
    assert (burst.publishers, burst.notifications, burst.per_minute) == (3, 4, 30)
    assert (burst.burst_notifications, burst.burst_per_minute) == (20, 6_000)
    assert (burst.burst_subscribers, burst.hrp) == (1, BrokerLabel("c", 1))
    assert (burst.links.latency, burst.service.matching) == (2_000, 3_000)


def test_a_scenario_reads_back_as_it_was_written_and_with_other_values(tmp_path: Path) -> None:
    for text in (FULL, 'kind = "scot"', 'kind = "scot"\n' + FACTORS):
        scenario = read(tmp_path, text)
        written = FORMAT.write(scenario)
        again = read(tmp_path, written)
        assert again.run_of("static").scot.brokers == scenario.run_of("static").scot.brokers
        assert FORMAT.write(again) == written
    changes = {"burst.per_minute": 9, "scot.spare_links": True, "seed": 3, "routings": ["bid"]}
    scenario = read(tmp_path, FULL, **changes)
    assert (scenario.burst.per_minute, scenario.seed) == (9, 3)
    assert scenario.settings("bid").spare_links


def test_the_example_is_a_burst_under_three_ways_of_routing() -> None:
    scenario, text = read_scenario(EXAMPLE, {})
    assert isinstance(scenario, ScotScenario)
    assert scenario.routings == ("bid", "static", "dynamic")
    assert (scenario.run_of("bid").scot.broker_count, text) == (75, EXAMPLE.read_text())


@pytest.mark.parametrize(
    ("text", "sentence"),
    {
        "nodes = 5": "nodes is an unknown key, expected one of kind, name, seed, routings",
        'name = " "': "name is ' ', expected one line of text",
        "seed = -1": "seed is -1, expected a whole number from 0",
        "routings = []": "routings is [], expected a list of some of bid, static, dynamic",
        'routings = ["flood"]': "routings is 'flood', expected one of bid, static, dynamic",
        'routings = ["bid", "bid"]': "routings is ['bid', 'bid'], expected each way of routing",
        '[overlay]\nname = "ring"': "overlay.name is 'ring', expected one of figure_8, figure_2",
        "[overlay]\nclusters = [0]": "overlay.clusters is [0], expected nothing but with name",
        "[workload]\nsubscribers = -1": "workload.subscribers is -1, expected a whole number",
        '[workload]\nkind = "news"': "workload.kind is 'news', expected one of topics, quotes",
        '[workload]\nfile = "none.gz"': "workload.file is 'none.gz', expected a file that exists",
        "[workload]\npublishers = 100000\nnotifications = 100000": (
            "workload.notifications is 100000, expected at most 100,000,000 in all"
        ),
        "[burst]\nper_minute = 0": "burst.per_minute is 0, expected a whole number from 1",
        'burst.broker = "B(vi,7)"': "burst.broker is 'B(vi,7)', expected a number from 0 to 4 (cl",
        'burst.broker = "B(7,vi)"': "burst.broker is 'B(7,vi)', expected the region first, as in",
        '[burst]\nbroker = "B(z,0)"': "burst.broker is 'B(z,0)', expected one of i, ii, iii",
        "[links]\ngap_ms = -1": "links.gap_ms is -1.0, expected a time from 0",
        "[service]\nmatching_ms = inf": "service.matching_ms is inf, expected a time from 0",
        "[scot]\nrouting = 'bid'": "scot.routing is an unknown key, expected one of threshold",
        "[scot]\ncovering = 1": "scot.covering is 1, expected true or false",
        "[scot]\nwindow = 0": "scot.window is 0, expected a whole number of microseconds",
        "[scot]\nthreshold = nan": "scot.threshold is nan, expected a number from 0 on",
        "[scot]\nthreshold = -1": "scot.threshold is -1, expected a number from 0 on",
        "[scot]\ncluster_detours = true\naround_failures = true": (
            "scot.cluster_detours is True, expected false together with around_failures"
        ),
    }.items(),
)
def test_every_fault_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    assert sentence in str(fault_of(tmp_path, 'kind = "scot"\n' + text))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            '"c"]]',
            '"c"], ["c", "a"]]',
            "region_links is ('a', 'c'), expected a tree, and this edge",
        ),
        (
            ', ["b", "c"]]',
            "]",
            "region_links is 'c', expected a tree, and no path leads there from",
        ),
        ('"c"]]', '"z"]]', "region_links is ('b', 'z'), expected edges of vertices, and z is none"),
        ('"c"]\nr', '"a"]\nr', "regions is 'a', expected labels that differ"),
        ('["a", "b", "c"]', "[]", "regions is (), expected at least one"),
        ("[0, 1]", THREE, "cluster_links is (0, 2), expected an edge between every two vertices"),
        ("[0, 1]", "[1, 2]", "clusters is 2, expected the whole numbers from 0 to 1, each once"),
        ("[0, 1]", '["a"]', "clusters is ['a'], expected a list of num"),
        ("[0, 1]", LINK_OF_ONE, "cluster_links is [0], expected pairs of names, or of numbers"),
        ("[0, 1]", MANY, "clusters is 4000, expected at most 10,000 brokers in all"),
    ],
)
def test_every_fault_of_an_overlay_is_one_sentence(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    text = 'kind = "scot"\n' + FACTORS.replace(old, new)
    assert f"overlay.{sentence}" in str(fault_of(tmp_path, text))


def test_what_no_machine_has_memory_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = ScotScenario()
    scot_preview.SCOT.check(scenario)
    monkeypatch.setattr(scot_preview, "SUBSCRIPTION_BYTES", 1 << 50)
    with pytest.raises(ScenarioError, match=r"^workload\.subscribers is 500, expected fewer"):
        scot_preview.SCOT.check(scenario)


def test_the_reference_lists_every_key_with_its_default() -> None:
    text = REFERENCE.read_text()
    for section, kind in FORMAT.sections.items():
        assert f"## `[{section}]`" in text
        for field in attrs.fields(kind):
            default = "all there can be" if field.default is None else f"`{_toml(field.default)}`"
            assert f"| `{field.name}` | {default} |" in text, f"{section}.{field.name}"
    for field in attrs.fields(ScotSettings):
        if field.name in SCOT_SETTINGS:
            assert f"| `{field.name}` | `{_toml(field.default)}` |" in text, field.name
    for name in ("name", "seed", "routings"):
        default = getattr(ScotScenario(), name)
        assert f"| `{name}` | `{_toml(default)}` |" in text


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


# Quotes from a file of prices, as programs write CSV


QUOTES = "symbol,date,open,high,low,close,volume\r\nIBM,1996-01-02,22.5,22.75,22,22.6,7800\r\n"


def quotes_file(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "quotes.csv.gz"
    path.write_bytes(gzip.compress(text.encode(encoding)))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_mark_is_no_part_of_the_first_name(encoding: str, tmp_path: Path) -> None:
    (quote,) = read_quotes(quotes_file(tmp_path, QUOTES, encoding))
    assert (quote["symbol"], quote["open"], quote["volume"]) == ("IBM", 22.5, 7800)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("22.5", "22,5", "line 2: further columns is '7800', expected no more than in the first"),
        ("7800", "7_800", "line 2: volume is '7_800', expected a whole number from 0 to 1e+15"),
        (",7800", "", "line 2: volume is missing, expected a value"),
    ],
)
def test_a_line_that_is_no_quote_is_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_quotes(quotes_file(tmp_path, QUOTES.replace(old, new)))
    assert message in str(caught.value)


# Pictures


def made_up(delays: list[int]) -> BurstResult:
    received = np.arange(1, len(delays) + 1) * 100 + 5_000
    none = np.zeros(0, np.int64)
    counts = (
        *("longer_ways", "subscription_messages", "subscription_duplicates", "kept_back"),
        *("table_entries", "inter_messages", "intra_messages", "matchings", "detours"),
    )
    return BurstResult(
        **dict.fromkeys(counts, 0),
        subscription_delays=none,
        subscription_hops=none,
        published=received - np.array(delays),
        received=received,
        clients=np.ones(len(delays), np.int64),
        burst=np.ones(len(delays), np.bool_),
        cases={},
        windows=np.array([[5_100, 3, 4, 4], [5_200, 0, 0, 0]]),
        burst_links=2,
        started=5_000,
        ended=int(received[-1]),
    )


def test_points_are_the_largest_of_their_groups_and_windows() -> None:
    at, delays = scot_plots.largest_delays(made_up([2, 9, 4]))
    assert np.allclose(at, [100e-6, 200e-6, 300e-6])
    assert np.allclose(delays, [2e-6, 9e-6, 4e-6])
    at, delays = scot_plots.largest_delays(made_up([*range(100)]))
    assert len(at) == 50
    assert np.allclose(delays[:2], [1e-6, 3e-6])
    assert len(scot_plots.largest_delays(made_up([1] * 100_000))[0]) == 100
    places = np.arange(1_000)
    windows = np.stack([5_000 + places * 1_000_000, places % 7, places, places], axis=1)
    at, lengths = scot_plots.longest_queues(attrs.evolve(made_up([1]), windows=windows))
    assert len(at) == len(lengths) == 500
    assert (list(at[:3]), list(lengths[:4])) == ([0, 2, 4], [1, 3, 5, 6])


def test_columns_keep_the_neighbours_of_a_path_side_by_side() -> None:
    assert "".join(scot_plots.column_order(figure_2())) == "abcdef"
    order = scot_plots.column_order(figure_8())
    assert sorted(order) == sorted(figure_8().regions)
    inner = [region for region in order if region in {"vi", "vii", "viii", "ix", "x"}]
    rows = list(itertools.pairwise(("vi", "vii", "viii", "ix", "x")))
    assert list(itertools.pairwise(inner)) in (rows, [(b, a) for a, b in reversed(rows)])


def test_pictures_are_the_same_for_the_same_input(tmp_path: Path) -> None:
    burst = Burst(scot=Scot(Factor.path("abc"), Factor.complete(3)), settings=ScotSettings())
    systems = {
        name: RoutingRecord(name=name, burst=burst, result=made_up(delays), peak_rss_bytes=0)
        for name, delays in (("static", [2, 9, 4]), ("dynamic", [1, 2, 3]))
    }
    about: dict[str, Any] = {"scenario": {}, "scenario_text": "", "seed": 1, "versions": {}}
    record = ScotRunRecord(**about, wall_s=0.0, peak_rss_bytes=0, systems=systems)
    formats = larger(("svg",), FORMATS)
    with plots_as(PlotOptions(formats)):
        plots = [
            save_all(scot_plots.drawings(record), tmp_path / folder) for folder in ("one", "two")
        ]
    assert [plot.name for plot in plots[0]] == ["overlay", "delay", "queues", "messages"]
    for one, other in zip(*plots, strict=True):
        assert one.svg == other.svg
        assert [file.suffix for file in one.files] == [f".{kind}" for kind in formats]
        for file, again in zip(one.files, other.files, strict=True):
            assert file.read_bytes() == again.read_bytes()
