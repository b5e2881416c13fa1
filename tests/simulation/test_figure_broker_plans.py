"""What is planned for the figures about brokers: filter aggregation, SCOTs and trees."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gossamer.protocol.content.filters import exact_publication
from gossamer.sim.figures.covering import burst_runs as bursts
from gossamer.sim.figures.covering.burst_runs import GROUPS, delay_groups
from gossamer.sim.figures.covering.plots import plot_overlay
from gossamer.sim.figures.covering.scenes import plan_mobile, plan_workflow
from gossamer.sim.figures.dissemination import studies as trees
from gossamer.sim.figures.scot import studies as scot
from gossamer.sim.results.plot_style import plot_style, save
from gossamer.sim.studies.scot.workloads import Quotes, Topics
from gossamer.sim.studies.tree_brokers import covering_workload as placing
from gossamer.sim.studies.tree_brokers import topology as overlays
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.service_times import CongestedTimes
from support.checkout import ROOT, shared_file

# Filter aggregation


@pytest.mark.parametrize("plan", [bursts.FULL, bursts.QUICK])
def test_bursts_of_a_task_share_their_subscriptions_and_none_is_run_twice(plan: Any) -> None:
    tasks = bursts.plan_bursts(plan)
    runs = [run for task in tasks for run in task.runs]
    keys = [(run.study, run.reading, run.covering, run.x) for run in runs]
    assert len(set(keys)) == len(keys)
    assert len({task.label for task in tasks}) == len(tasks)
    for task in tasks:
        first = task.runs[0].burst
        for run in task.runs:
            assert run.burst.workload == first.workload
            assert run.burst.placement == first.placement
            assert (run.covering == "lazy") == (task.runs[0].covering == "lazy")
            assert run.burst.settings.covering == run.covering
            assert not run.burst.settings.drop_unpaid


def test_full_bursts_and_scenes_have_the_sizes_of_the_papers() -> None:
    planned = {task.runs[0].study: task.runs[0].burst for task in bursts.plan_bursts(bursts.FULL)}
    selective, incremental = planned["compared"], planned["incremental"]
    assert (len(selective.overlay.graph), len(incremental.overlay.graph)) == (55, 49)
    for burst, subscriptions in ((selective, 30_000), (incremental, 80_000)):
        found = burst.workload.roots * burst.workload.step
        assert abs(found - subscriptions) < burst.workload.step
    assert (selective.unsubscriptions, incremental.unsubscriptions) == (300, 20)
    assert (selective.publish_every, incremental.publish_every) == (400_000, 10_000)
    assert (selective.unsubscribe_every, incremental.unsubscribe_every) == (500_000, 500_000)
    runs = [run for task in plan_mobile(False) for run in task.runs if run.reading == "literal"]
    scenes = {run.case: run.scene for run in runs}
    game: Any = scenes["all move"].workload
    city: Any = scenes["rush hour"].workload
    assert (game.players, game.publishers, game.monitor_every) == (5_000, 40, 120_000_000)
    assert game.player_every == 1_000_000
    assert (city.subscribers, len(city.overlay.graph)) == (200_000, 17)
    sizes: Any = plan_workflow(False)[0].runs[0].scene.workload
    assert (sizes.small, sizes.medium, sizes.large, sizes.monitored) == (80, 80, 40, 0.3)
    assert (sizes.auditors, sizes.audit, sizes.audit_every) == (4, 60_000_000, 600_000_000)


@pytest.mark.parametrize("overlay", [overlays.controlled_55(), overlays.controlled_49()])
def test_clusters_are_two_to_four_brokers_behind_one_core_broker_or_adjacent(overlay: Any) -> None:
    behind, linked = placing.clusters(overlay), placing.linked_clusters(overlay)
    assert sorted(host for part in behind for host in part) == sorted(overlay.subscriber_hosts)
    assert {host for part in linked for host in part} >= set(overlay.subscriber_hosts)
    for part in behind:
        assert len(part) in (2, 3, 4)
        inner = {next(iter(overlay.graph[host])) for host in part}
        assert len({name for one in inner for name in overlay.graph[one] if name in "ABCDE"}) == 1
    for part in linked:
        assert len(part) in (2, 3, 4)
        assert nx.is_connected(overlay.graph.subgraph(part))


def test_a_root_and_what_it_covers_have_their_clients_in_one_cluster() -> None:
    overlay, workload = overlays.controlled_55(), CoveringWorkload(20, 10)
    wanted = list(workload.subscriptions())
    for placement, parts in (
        (placing.BEHIND_CORE, placing.clusters(overlay)),
        (placing.REGION, placing.linked_clusters(overlay)),
    ):
        hosts = placing.placed(placement, overlay, wanted, 3)
        for root in range(20):
            used = {host for host, one in zip(hosts, wanted, strict=True) if one.root == root}
            assert any(used <= set(part) for part in parts)


def test_both_readings_are_run_and_only_the_alternative_departs_from_the_letter() -> None:
    planned = [run for task in bursts.plan_bursts(bursts.QUICK) for run in task.runs]
    letter, other = ("literal", "below", "triggered"), ("alternative", "at_most", "quenched")
    for reading, rule, displaced in (letter, other):
        runs = [run for run in planned if run.reading == reading]
        assert {run.burst.settings.critical_rule for run in runs} == {rule}
        assert {run.burst.settings.displaced for run in runs} == {displaced}
        others = [run for run in runs if run.study != "incremental"]
        slow = {isinstance(run.burst.service, CongestedTimes) for run in others}
        assert slow == {reading == "alternative"}


def test_groups_of_delays_keep_what_they_are_of() -> None:
    times = np.array([0.0, 0.0, 10.0])
    groups = delay_groups(times, np.array([1.0, 3.0, 5.0]))
    assert {len(column) for column in groups.values()} == {GROUPS}
    means = groups["delay_mean_s"]
    assert (means[0], means[-1]) == (2.0, 5.0)
    assert np.isnan(means[1:-1]).all()


@pytest.mark.parametrize("quick", [False, True])
def test_scenes_of_a_task_differ_in_covering_alone(quick: bool) -> None:
    for task in [*plan_mobile(quick), *plan_workflow(quick)]:
        first, other = (run.scene for run in task.runs)
        assert other.workload is first.workload
        for name in ("service", "span", "drain"):
            assert getattr(other, name) == getattr(first, name)
        assert other.settings.covering != first.settings.covering


@pytest.mark.parametrize("name", sorted(overlays.OVERLAYS))
def test_every_overlay_can_be_drawn(name: str, tmp_path: Path) -> None:
    with plot_style():
        figure = plot_overlay(overlays.OVERLAYS[name]())
        svg, files = save(figure, tmp_path, name)
    assert len(svg) > 1_000
    assert all(file.stat().st_size > 1_000 for file in files)
    (axes,) = figure.axes
    places = np.concatenate([np.asarray(group.get_offsets()) for group in axes.collections])
    assert len(np.unique(places.round(6), axis=0)) == len(overlays.OVERLAYS[name]().graph)


# SCOT


@pytest.mark.parametrize("plan", [scot.FULL, scot.QUICK])
def test_every_way_of_routing_meets_the_same(plan: Any) -> None:
    runs = scot.plan_runs(plan, Topics())
    keys = {(run.study, run.reading, run.routing, run.x) for run in runs}
    varied = len(plan.subscribers) + len(plan.publishers) + len(plan.rates)
    assert len(keys) == len({run.label for run in runs}) == len(runs) == 2 * 3 * varied
    for run in runs:
        assert run.burst.settings.routing == run.routing
        assert run.burst.scot.broker_count == 75


def test_full_runs_of_a_scot_have_the_sizes_of_the_paper() -> None:
    of: dict[str, list[Any]] = {}
    for run in scot.plan_runs(scot.FULL, Topics()):
        of.setdefault(run.study, []).append(run.burst)

    def sizes(study: str, *names: str) -> set[tuple[int, ...]]:
        return {tuple(getattr(burst, name) for name in names) for burst in of[study]}

    assert sizes(scot.SUBSCRIBERS, "subscribers") >= {(500,), (10_000,)}
    load = ("notifications", "per_minute")
    assert sizes(scot.SUBSCRIBERS, "publishers", *load) == {(100, 1_000, 60)}
    assert sizes(scot.PUBLISHERS, "publishers") == {(n,) for n in (100, 200, 300, 400, 500)}
    assert sizes(scot.PUBLISHERS, "subscribers", *load) == {(3_000, 500, 100)}
    assert sizes(
        scot.BURST, "subscribers", "publishers", "notifications", "burst_notifications"
    ) == {(5_000, 100, 2_000, 100_000)}
    assert sizes(scot.BURST, "burst_per_minute") == {(60_000,), (80_000,), (100_000,)}
    assert all(5 * one.burst_subscribers == 0.002 * one.subscribers for one in of[scot.BURST])


@pytest.mark.parametrize("number", [50, 100])
def test_a_subscription_to_quotes_matches_two_in_a_hundred(number: int) -> None:
    load, draw = Quotes(number), random.Random(1)
    assert len(load.contents) == number
    assert {len(quote) for quote in load.contents} == {10}
    quotes = [exact_publication(quote) for quote in load.contents]
    for _ in range(100):
        wanted = load.wanted(draw)
        assert sum(map(wanted.matches, quotes)) == number // 50
        assert not wanted.matches(load.burst_content)
    assert load.burst_filter.matches(load.burst_content)
    assert not any(map(load.burst_filter.matches, quotes))


def test_real_quotes_are_taken_where_they_lie_beside_the_checkout(tmp_path: Path) -> None:
    assert scot.find_quotes(50, tmp_path / "checkout").file is None
    file = shared_file(tmp_path, scot.REAL_QUOTES)
    assert scot.find_quotes(50, tmp_path / "checkout").file == file


@pytest.mark.campaign
@pytest.mark.shared_data
@pytest.mark.skipif(
    scot.find_quotes(50, ROOT).file is None,
    reason="the shared data folder is not beside the checkout",
)
def test_subscriptions_to_real_quotes_match_two_in_a_hundred() -> None:
    load, draw = scot.find_quotes(100, ROOT), random.Random(1)
    quotes = [exact_publication(quote) for quote in load.contents]
    assert {len(quote) for quote in load.contents} == {10}
    assert len({quote["symbol"] for quote in load.contents}) > 30
    for _ in range(100):
        assert sum(map(load.wanted(draw).matches, quotes)) == 2


# Content-aware trees


def test_full_runs_of_trees_have_the_sizes_of_the_paper() -> None:
    runs = trees.plan_runs(trees.FULL, [])
    wanted = (trees.COSTS, trees.TRANSIT_STUB, "literal")
    costs = [run for run in runs if (run.study, run.topology, run.reading) == wanted]
    assert {run.scenario.topology.brokers for run in costs} == {500, 1000, 2000, 5000}
    assert {run.scenario.workload.neighbourhood for run in costs} == {0.02, 0.15, 1.0}
    for run in costs:
        workload = run.scenario.workload
        assert (workload.keywords, workload.documents, workload.subscribers) == (1000, 10_000, 10)
        assert run.scenario.planning.sample_share == 0.03
        assert run.exact
    shares = next(
        run for run in runs if run.study == trees.SHARES and run.locality == trees.LOCALIZED1
    )
    assert shares.scenario.topology.brokers == 2000
    assert (min(shares.shares), max(shares.shares)) == (0.001, 0.5)


def test_no_run_is_planned_twice_and_real_networks_come_along(tmp_path: Path) -> None:
    for plan in (trees.FULL, trees.QUICK):
        runs = trees.plan_runs(plan, [tmp_path / "Geant2012.gml"])
        keys = [(run.label, run.scenario.topology.brokers) for run in runs]
        assert len(set(keys)) == len(keys)
        assert [run.topology for run in runs if run.study == trees.REAL] == ["Geant2012"]
    assert trees.find_networks(tmp_path / "nowhere") == []
