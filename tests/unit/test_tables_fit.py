"""Every table of a command fits eighty columns, whatever things are called; no name is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from rich.console import RenderableType

from gossamer.node.commands.cluster.listing import members_lines, members_table, tables_for_people
from gossamer.node.commands.cluster.watching import cluster_picture, picture, status_table
from gossamer.node.config.file import config_table, load_config
from gossamer.node.doctor.failures import Finding, findings_table
from gossamer.node.monitoring.members import cluster_view
from gossamer.node.page.snapshot import PeerView
from gossamer.sim.commands.reproduction import benchmark_table, claims_table
from gossamer.sim.commands.sweep import print_means
from gossamer.sim.results.intervals import Interval
from gossamer.sim.results.results import summarise
from gossamer.sim.results.tables import all_measures, compare, comparison_table, summary_table
from gossamer.sim.study.scenarios import read_scenario, study_of
from gossamer.spark.commands.tables import print_windows
from support.clusters import member, report
from support.loopback_peer import EMPTY
from support.made_up_runs import made_up_run
from support.terminals import assert_fits, columns_of, printed_at

LONG = "kindred-with-many-ring-links-and-more-fingers-than-anybody-has-ever-wanted"
# The member that is asked gets a name of its own, which is in the title as well.
NAMES = [f"{LONG}-{number}" for number in range(3)]


def summary_of(*names: str, seed: int = 1) -> dict[str, Any]:
    return summarise(made_up_run(seed, nodes=20, cycles=5, names=names))


def joined(shown: str) -> str:
    """What stands in a table, each column from above to below: a name that is wrapped is whole."""
    columns = ["".join(column) for column in columns_of(shown)]
    sides = ["".join(line[:40].strip() for line in shown.splitlines()), re.sub(r"\s", "", shown)]
    return " ".join([*columns, *sides])


@pytest.mark.parametrize("count", [1, 3])
def test_summaries_wrap_the_names_of_systems(count: int) -> None:
    shown = printed_at(80, summary_table(summary_of(*NAMES[:count])))
    assert all(name in joined(shown) for name in NAMES[:count])


def test_summaries_of_many_systems_turn_on_their_side() -> None:
    names = [f"{LONG}-{number}" for number in range(9)]
    shown = printed_at(80, summary_table(summary_of(*names)))
    assert all(name in joined(shown) for name in names)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_comparisons_name_runs_and_systems_whole(count: int) -> None:
    runs = [(f"{LONG}-run-{seed}", summary_of(LONG, seed=seed)) for seed in range(count)]
    shown = printed_at(80, comparison_table(compare(runs)))
    assert LONG in joined(shown)
    assert all(name in joined(shown) for name, _ in runs)


def test_means_of_sweeps_fit(capsys: pytest.CaptureFixture[str]) -> None:
    measures = all_measures([summary_of("kindred")])
    found = [
        Interval(
            condition=(("nodes", 100_000), ("subscriptions.width", width)),
            system=name,
            measure="hit_ratio",
            seeds=10,
            mean=0.99987,
            deviation=0.001,
            low=0.999,
            high=1.0,
        )
        for name in NAMES
        for width in (0.01, 0.02)
    ]
    print_means(found, measures)
    shown = capsys.readouterr().out
    assert_fits(shown)
    assert shown.count("99.99 %") == len(found)


def test_verdicts_and_benchmarks_fit() -> None:
    claim = {
        "id": "V12",
        "verdict": "holds",
        "claim": "the overhead is " * 20,
        "alternative": {"verdict": "differs", "reading": "as the sum of all"},
    }
    assert "the overhead is" in printed_at(80, claims_table([claim]))
    row = {
        "name": "kindred-windows-on-all-cores-of-the-machine",
        "size": 1_000_000,
        "median_s": 0.123456,
        "unit": "cycle and node",
        "runs": 5,
        "bytes": 123_456,
        "note": "a note that is long as well",
    }
    shown = printed_at(80, benchmark_table([row]))
    assert "kindred-windows-on-all-cores-of-the-machine" in joined(shown)
    assert "1,000,000" in shown


@pytest.mark.parametrize("kind", ["peers", "brokers", "scot", "trees"])
def test_previews_fit(kind: str) -> None:
    scenario, _ = read_scenario(None, {"kind": kind, "name": LONG})
    assert LONG in joined(printed_at(80, study_of(scenario).preview(scenario)))


def test_windows_of_streams_fit(capsys: pytest.CaptureFixture[str]) -> None:
    from datetime import datetime

    row = {
        "begin": datetime(2026, 1, 1),
        "subscriber": LONG,
        "due": 123_456,
        "delivered": 123_456,
        "hit_ratio": 0.99999,
        "rate_per_s": 1234.5,
        "latency_p50_s": 0.01234,
        "latency_p99_s": 1.234,
    }
    print_windows(pa.Table.from_pylist([row]), "there")
    shown = capsys.readouterr().out
    assert_fits(shown)
    assert shown.count("123,456") == 2


def long_member(number: int) -> dict[str, Any]:
    addresses = [f"a-host-of-a-long-name-{number}.example.org:7710", f"[2001:db8::{number}]:7710"]
    return member(number) | {"name": f"{LONG}-{number}", "addresses": addresses}


def test_members_are_a_table_for_people_and_a_line_each_for_programs() -> None:
    members = [long_member(number) for number in range(3)]
    shown = printed_at(80, members_table(members))
    lines = members_lines(members)
    assert len(lines) == 4
    for one, line in zip(members, lines[1:], strict=True):
        assert one["key"] in joined(shown)
        assert {one["name"], one["key"], *one["addresses"]} <= set(line.split())


def test_the_cluster_is_titled_by_its_name_and_fits() -> None:
    members = [member(0), *(long_member(number) for number in (1, 2))]
    figures = {"queued_bytes": 123_456_789.0, "sent_bytes": 123_456.0, "overloading": 1.0}
    told = {one["key"]: report(**figures) for one in members}  # type: ignore[arg-type]
    shown = printed_at(80, cluster_picture(cluster_view(members, told, 2, name="quotes")))
    assert "quotes, as peer0 sees it" in shown
    assert "123M" in shown


def test_peers_of_top_keep_their_names_and_it_is_titled_by_the_cluster() -> None:
    links = ("ring", "small-world", "friend", "finger", "host", "guest", "random view")
    peer = PeerView(
        key=7,
        name=LONG,
        position=0.5,
        links=links,
        load=1234.5,
        connected=True,
        round_trip_s=1.2345,
        received_per_s=12_345.6,
        sent_per_s=12_345.6,
        queued_bytes=123_456_789,
    )
    snapshot = attrs.evolve(EMPTY, peers=(peer,), cluster_name="quotes").to_json()
    shown = printed_at(80, picture(snapshot))
    assert "made up in quotes" in shown
    assert "123,456,789" in shown
    assert LONG in re.sub(r"\s", "", shown.partition("the 1 peers")[2])
    del snapshot["cluster_name"]  # of an older node
    assert "made up in desk" in printed_at(80, picture(snapshot))


def broker_tables(_folder: Path) -> RenderableType:
    link = {"neighbour": LONG, "up": True, "sent": 123_456, "quenched": 123_456}
    told = {
        "broker": LONG,
        "sizes": {"by last hop": {LONG: 7}, "subscriptions": 7, "advertisements": 1},
        "links": [link | {f"column {number}": 123_456 for number in range(9)}],
        "subscriptions": [],
        "advertisements": [],
        "aggregates": [],
    }
    return tables_for_people(told)[0][1]


def configuration(folder: Path) -> RenderableType:
    file = folder / f"{LONG}.toml"
    file.write_text("[local]\nclients = 7\n")
    return config_table(load_config(file, {}))


def findings(_folder: Path) -> RenderableType:
    what = f"{LONG} cannot be reached at a-host-of-a-very-long-name-indeed.example.org:7710"
    return findings_table([Finding("peer", False, what, "start it")], "others")


@pytest.mark.parametrize(
    ("table", "name"),
    [
        (broker_tables, LONG),
        (configuration, f"{LONG}.toml"),
        (findings, LONG),
        (lambda _: status_table({"name": LONG, "folder": f"/{LONG}" * 3}), f"/{LONG}"),
    ],
)
def test_tables_of_nodes_keep_names(
    tmp_path: Path, table: Callable[[Path], RenderableType], name: str
) -> None:
    shown = printed_at(80, table(tmp_path))
    assert name in joined(shown)
