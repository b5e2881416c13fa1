"""Pictures of a SCOT and of a burst: the points are those of the result, and files repeat."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.sim.studies.scot import plots as scot_plots
from gossamer.sim.studies.scot.burst import Burst, BurstResult
from gossamer.sim.studies.scot.overlays import figure_2, figure_8
from gossamer.sim.studies.scot.records import RoutingRecord, ScotRunRecord
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from support.draws import larger


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


def test_each_point_is_the_largest_delay_of_its_group() -> None:
    at, delays = scot_plots.largest_delays(made_up([2, 9, 4]))
    assert np.allclose(at, [100e-6, 200e-6, 300e-6])
    assert np.allclose(delays, [2e-6, 9e-6, 4e-6])
    at, delays = scot_plots.largest_delays(made_up([*range(100)]))
    assert len(at) == 50
    assert np.allclose(delays[:2], [1e-6, 3e-6])
    assert len(scot_plots.largest_delays(made_up([1] * 100_000))[0]) == 100


def test_columns_keep_the_neighbours_of_a_path_side_by_side() -> None:
    assert "".join(scot_plots.column_order(figure_2())) == "abcdef"
    order = scot_plots.column_order(figure_8())
    assert sorted(order) == sorted(figure_8().regions)
    inner = [region for region in order if region in {"vi", "vii", "viii", "ix", "x"}]
    rows = list(itertools.pairwise(("vi", "vii", "viii", "ix", "x")))
    assert list(itertools.pairwise(inner)) in (rows, [(b, a) for a, b in reversed(rows)])


def test_a_point_of_queues_is_the_longest_of_its_windows() -> None:
    places = np.arange(1_000)
    windows = np.stack([5_000 + places * 1_000_000, places % 7, places, places], axis=1)
    at, lengths = scot_plots.longest_queues(attrs.evolve(made_up([1]), windows=windows))
    assert len(at) == len(lengths) == 500
    assert list(at[:3]) == [0, 2, 4]
    assert list(lengths[:4]) == [1, 3, 5, 6]


def test_pictures_are_the_same_for_the_same_input(tmp_path: Path) -> None:
    scot = Scot(Factor.path("abc"), Factor.complete(3))
    burst = Burst(scot=scot, settings=ScotSettings())
    systems = {
        name: RoutingRecord(name=name, burst=burst, result=made_up(delays), peak_rss_bytes=0)
        for name, delays in (("static", [2, 9, 4]), ("dynamic", [1, 2, 3]))
    }
    about: dict[str, Any] = {"scenario": {}, "scenario_text": "", "seed": 1, "versions": {}}
    record = ScotRunRecord(**about, wall_s=0.0, peak_rss_bytes=0, systems=systems)
    formats = larger(("svg",), FORMATS)
    with plots_as(PlotOptions(formats)):
        plots = [scot_plots.write_plots(record, tmp_path / folder) for folder in ("one", "two")]
    assert [plot.name for plot in plots[0]] == ["overlay", "delay", "queues", "messages"]
    for one, other in zip(*plots, strict=True):
        assert one.svg == other.svg
        assert [file.suffix for file in one.files] == [f".{kind}" for kind in formats]
        for file, again in zip(one.files, other.files, strict=True):
            assert file.read_bytes() == again.read_bytes()
