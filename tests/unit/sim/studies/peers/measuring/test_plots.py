"""Plots show what the tables say and come with the report; what is measured of overlays."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.presets import kindred, resilient
from gossamer.protocol.peer.settings.profile import LINK_KINDS, link_kinds
from gossamer.sim.results.plot_style import plot_style, save_all, system_styles
from gossamer.sim.results.report import report_html
from gossamer.sim.results.results import dump_json, summarise, write_results
from gossamer.sim.results.tables import compare_folders, comparison_table, print_json, summary_table
from gossamer.sim.studies.peers.measuring import plots as plotting
from gossamer.sim.studies.peers.measuring import records
from gossamer.sim.studies.peers.measuring.overlay_measures import snapshot
from gossamer.sim.studies.peers.measuring.overlay_plot import MAX_NODES, plot_overlay
from gossamer.sim.studies.peers.measuring.summary import BOUNDS, MEASURES, Bound, outgrown
from gossamer.sim.study.plot import FORMATS, PlotOptions, plots_as
from gossamer.sim.study.records import empty_table
from support.draws import larger
from support.made_up_runs import made_up_run, made_up_system
from support.overlays import converged, random_identifiers

PLOTS = {"hit_ratio", "overhead", "load_cdf", "path_length", "convergence", "overlay"}


@pytest.fixture
def style() -> Iterator[None]:
    with plot_style():
        yield


@pytest.fixture
def fewer_formats() -> Iterator[None]:
    """Plots as SVG, and in all formats with `--all`."""
    with plots_as(PlotOptions(larger(("svg",), FORMATS))):
        yield


def printed(renderable: object) -> str:
    """What ``renderable`` looks like on a wide terminal without colours."""
    stream = io.StringIO()
    Console(file=stream, width=160).print(renderable)
    return stream.getvalue()


@pytest.mark.campaign
def test_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    with plots_as(PlotOptions(FORMATS)):
        first, second = (
            save_all(plotting.drawings(made_up_run(seed=6).systems), tmp_path / name)
            for name in "ab"
        )
    assert {plot.name for plot in first} == PLOTS
    for one, other in zip(first, second, strict=True):
        assert one.svg == other.svg
        assert [file.suffix for file in one.files] == [".svg", ".png", ".pdf"]
        for file, again in zip(one.files, other.files, strict=True):
            assert file.read_bytes() == again.read_bytes()


def test_long_runs_are_drawn_by_the_hour_and_many_short_cycles_in_groups() -> None:
    cycles = made_up_system("kindred", 1, nodes=20, cycles=780, period_s=60.0).cycles
    hourly = plotting.timeline(cycles)
    assert (hourly.label, list(hourly.positions)) == ("time (hours)", list(range(13)))
    delivered, expected = cycles["delivered"][60:120], cycles["expected"][60:120]
    ratios = hourly.ratios(cycles["delivered"], cycles["expected"])
    assert ratios[1] == pytest.approx(delivered.sum() / expected.sum())
    cycles = made_up_system("kindred", 1, nodes=20, cycles=600, period_s=1.0).cycles
    grouped = plotting.timeline(cycles)
    assert grouped.label == "cycle"
    assert len(grouped.positions) == 200 <= plotting.MAX_POINTS
    assert list(grouped.positions[:3]) == [0, 3, 6]
    assert grouped.sums(cycles["expected"]).sum() == cycles["expected"].sum()


@pytest.mark.usefixtures("style")
def test_there_is_no_line_where_nothing_was_due() -> None:
    system = made_up_system("kindred", 1, nodes=20, cycles=10, period_s=1.0)
    expected = np.where(np.arange(10) == 4, 0, system.cycles["expected"]).astype(np.int64)
    silent = replace(system, cycles={**system.cycles, "expected": expected})
    line = plotting.plot_hit_ratio({"kindred": silent}).axes[0].lines[0]
    assert list(np.flatnonzero(np.isnan(line.get_ydata()))) == [4]


@pytest.mark.usefixtures("style")
def test_load_curves_end_where_all_nodes_are_and_path_length_bars_at_all_deliveries() -> None:
    systems = made_up_run(seed=2).systems
    lines = plotting.plot_load(systems).axes[0].lines
    for line, system in zip(lines, systems.values(), strict=True):
        assert np.asarray(line.get_ydata())[-1] == 1.0
        assert np.asarray(line.get_xdata())[-1] == system.nodes["load"].max()
    axes = plotting.plot_path_length(systems).axes[0]
    assert len(axes.containers) == 2
    for bars in axes.containers:
        assert sum(bar.get_height() for bar in bars) == pytest.approx(1.0)


@pytest.mark.usefixtures("style")
def test_one_late_delivery_does_not_crush_the_axis_of_path_lengths() -> None:
    system = made_up_system("kindred", 2, nodes=200, cycles=40, period_s=1.0)
    hops = system.deliveries["hops"].copy()
    longest = int(hops.max())
    assert len(hops) > 200
    hops[0] = 900
    late = replace(system, deliveries={**system.deliveries, "hops": hops})
    axes = plotting.plot_path_length({"kindred": late}).axes[0]
    assert axes.get_xlim()[1] < 1.5 * longest + 3
    (bars,) = axes.containers
    assert bars[-1].get_height() >= 1 / len(hops)
    assert sum(bar.get_height() for bar in bars) == pytest.approx(1.0)
    last = axes.xaxis.get_major_formatter()(axes.xaxis.get_major_locator()()[-1], 0)
    assert last.startswith("over ")
    assert plotting.plot_overhead({"kindred": late}).axes[1].get_ylim()[1] < 2 * longest + 2


@pytest.mark.usefixtures("style")
def test_overhead_is_smoothed_over_the_window_that_its_title_says() -> None:
    system = made_up_system("kindred", 1, nodes=20, cycles=200, period_s=1.0)
    figure = plotting.plot_overhead({"kindred": system})
    assert figure.axes[0].get_title(loc="left") == "Traffic overhead, over 11 cycles"
    line = np.asarray(figure.axes[0].lines[0].get_ydata())
    cycles = system.cycles
    around = slice(100 - 5, 100 + 6)
    wasted = cycles["uninterested"][around].sum() / cycles["received"][around].sum()
    assert line[100] == pytest.approx(wasted)


def test_path_lengths_over_time_are_percentiles_of_what_was_delivered() -> None:
    system = made_up_system("kindred", 4, nodes=50, cycles=12, period_s=1.0)
    groups = plotting.timeline(system.cycles)
    assert groups.window == 1
    low, middle, high = plotting.path_lengths(system, groups)
    cycle_of = dict(zip(system.events["event"], system.events["cycle"], strict=True))
    at = np.array([cycle_of[event] for event in system.deliveries["event"]])
    for cycle in range(12):
        hops = system.deliveries["hops"][at == cycle]
        if len(hops) == 0:
            assert np.isnan([low[cycle], middle[cycle], high[cycle]]).all()
            continue
        expected = np.percentile(hops, (10, 50, 90), method="inverted_cdf")
        assert [low[cycle], middle[cycle], high[cycle]] == list(expected)


@pytest.mark.usefixtures("style")
def test_both_systems_are_in_every_plot_with_their_own_look() -> None:
    systems = made_up_run().systems
    plots = (plotting.plot_hit_ratio, plotting.plot_overhead)
    for draw in (*plots, plotting.plot_load, plotting.plot_convergence):
        assert [line.get_label() for line in draw(systems).axes[0].lines] == ["kindred", "baseline"]
    styles = system_styles(["kindred", "mine", "baseline", "yours"])
    assert len({(look.colour, look.dashes) for look in styles.values()}) == 4
    assert styles["mine"].label == "mine"


@pytest.mark.usefixtures("style")
def test_large_overlay_is_drawn_in_groups_of_neighbouring_interest() -> None:
    system = made_up_system("kindred", 3, nodes=1000, cycles=1, period_s=1.0)
    figure = plot_overlay({"kindred": system})
    assert figure is not None
    by_identifier, by_interest, colours = figure.axes
    assert "by identifier" in by_identifier.get_title(loc="left")
    assert "150 of 1,000" in by_interest.get_title(loc="left")
    assert "subscribed range" in colours.get_ylabel()
    drawn = sum(len(np.asarray(points.get_offsets())) for points in by_interest.collections)
    assert drawn == MAX_NODES


@pytest.mark.usefixtures("style")
def test_every_kind_of_link_has_a_colour_of_its_own() -> None:
    system = made_up_system("kindred", 3, nodes=12, cycles=1, period_s=1.0)
    assert system.overlay is not None
    links = dict(system.overlay.links)
    links["kind"] = (np.arange(len(links["kind"])) % len(LINK_KINDS)).astype(np.int8)
    mixed = replace(system, overlay=replace(system.overlay, links=links))
    figure = plot_overlay({"kindred": mixed})
    assert figure is not None
    lines = [line for line in figure.legends[0].get_lines() if "link" in str(line.get_label())]
    assert len({line.get_color() for line in lines}) == len(lines) == len(LINK_KINDS)


@pytest.mark.usefixtures("style")
def test_overlay_nodes_lie_on_the_ring_at_their_identifier() -> None:
    system = made_up_system("baseline", 3, nodes=4, cycles=1, period_s=1.0)
    assert system.overlay is not None
    ends = {"low": np.arange(4), "high": np.arange(4) + 1}
    about = {"identifier": np.arange(4) << 60, "primary": np.zeros(4, np.int32)}
    nodes = {**system.overlay.nodes, **about, **ends}
    placed = replace(system, overlay=replace(system.overlay, nodes=nodes))
    figure = plot_overlay({"baseline": placed})
    assert figure is not None
    offsets = np.asarray(figure.axes[0].collections[0].get_offsets())
    np.testing.assert_allclose(offsets, [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-9)


@pytest.mark.usefixtures("fewer_formats")
def test_runs_without_deliveries_have_plots_and_without_nodes_a_report(tmp_path: Path) -> None:
    record = made_up_run(names=("kindred",))
    events, deliveries = map(empty_table, (records.EVENT_COLUMNS, records.DELIVERY_COLUMNS))
    nodes, cycles = map(empty_table, (records.NODE_COLUMNS, records.CYCLE_COLUMNS))
    silent = replace(record.systems["kindred"], overlay=None, events=events, deliveries=deliveries)
    plots = save_all(plotting.drawings({"kindred": silent}), tmp_path / "plots")
    assert {plot.name for plot in plots} == PLOTS - {"overlay"}
    nothing = replace(silent, nodes=nodes, cycles=cycles)
    write_results(replace(record, systems={"kindred": nothing}), tmp_path / "run")
    assert (tmp_path / "run" / "report.html").stat().st_size > 0


class Outline(HTMLParser):
    void = frozenset({"meta", "img", "br"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.usefixtures("fewer_formats")
def test_report_is_one_page_that_needs_nothing_else(tmp_path: Path) -> None:
    record = made_up_run(names=("kindred",))
    plots = save_all(plotting.drawings(record.systems), tmp_path / "plots")
    summary = summarise(record)
    page = report_html(record, summary, plots)
    outline = Outline(page)
    assert (outline.open, len(outline.references)) == ([], len(PLOTS))
    assert all(ref.startswith("data:image/svg+xml;base64,") for ref in outline.references)
    assert not re.search(r"url\(|@import|https?:", page)
    for text in (summary["result_hash"], record.scenario_text, "seed 1", "friend_links"):
        assert text in outline.text
    for measure in MEASURES:
        assert measure.label in outline.text
        assert measure.meaning in outline.text


def test_table_shows_kindred_beside_the_baseline_and_json_the_summary_file() -> None:
    summary = summarise(made_up_run())
    lines = printed(summary_table(summary)).splitlines()
    header = next(line for line in lines if "measure" in line)
    assert header.index("kindred") < header.index("baseline")
    overhead = next(line for line in lines if "traffic overhead" in line)
    for system in summary["systems"].values():
        assert f"{100 * system['traffic_overhead']:.2f} %" in overhead
    stream = io.StringIO()
    print_json(summary, stream)
    assert stream.getvalue() == dump_json(summary)


def test_comparison_table_says_what_differs(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("again", 1), ("b", 2)):
        write_results(made_up_run(seed=seed), tmp_path / name, pictures=False)
    same = printed(comparison_table(compare_folders([tmp_path / "a", tmp_path / "again"])))
    assert "The results are identical." in same
    assert "(+" not in same
    other = printed(comparison_table(compare_folders([tmp_path / "a", tmp_path / "b"])))
    assert "The seeds differ: 1, 2." in other
    assert re.search(r"\([+-]\d+\.\d %\)", other)


# What a snapshot says of an overlay, and which of its tables a run has outgrown

NODES = 60


def kinds_of(settings: Settings) -> Counter[str]:
    """How many links of each kind the overlay of some peers has, all slots of which are filled."""
    state = converged(settings, random_identifiers(NODES, 3), 3)
    found = snapshot(state, np.ones(NODES, np.bool_)).links["kind"]
    return Counter(LINK_KINDS[kind] for kind in found)


def test_links_are_told_apart_by_what_they_are() -> None:
    settings = resilient(NODES)
    assert kinds_of(settings) == {
        "ring": NODES * 2 * settings.ring_links,
        "friend": NODES * settings.friend_links,
    }


def test_fingers_hosts_and_guests_are_no_friends() -> None:
    settings = kindred(NODES, subscriptions=3)
    assert settings.friend_links == 0
    found = kinds_of(settings)
    assert found["friend"] == 0
    # Those beside the place that was left last count as fingers.
    assert found["finger"] == NODES * 2 * (settings.finger_levels + 1)
    assert found["host"] * 2 == found["guest"] == NODES * 2 * settings.guest_links
    assert len(link_kinds(settings)) == settings.links


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.total)
def test_what_is_counted_is_told_with_the_setting_that_would_help(bound: Bound) -> None:
    system = {"totals": {bound.total: 1234}, "settings": {bound.setting: 8}}
    (told,) = outgrown({"mine": system, "others": {"totals": {bound.total: 0}}})
    assert told.startswith("mine: 1,234 ")
    assert told.endswith("published." if bound.setting is None else f" ({bound.setting} is 8).")
