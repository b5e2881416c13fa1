"""The figures of the SCOT paper: a quick run, and the plan behind them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gossamer.protocol.content.filters import exact_publication
from gossamer.sim.figures import FIGURES
from gossamer.sim.figures.scot.readings import READINGS
from gossamer.sim.figures.scot.studies import (
    BURST,
    FULL,
    PUBLISHERS,
    QUICK,
    REAL_QUOTES,
    SUBSCRIBERS,
    find_quotes,
    plan_runs,
)
from gossamer.sim.studies.scot.workloads import Quotes, Topics
from support.checkout import ROOT
from support.golden import check_golden, measured_by_checks

SWEEPS = (*(f"scot9{part}" for part in "abcd"), *(f"scot10{part}" for part in "abcd"))


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run with made-up quotes."""
    folder = tmp_path_factory.mktemp("figures") / "work"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        FIGURES["scot"](folder / "scot", quick=True, processes=1)
    return folder / "scot"


def checks_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    checks = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    return {(check["claim"], check["name"]): check for check in checks if "reading" not in check}


@pytest.mark.slow
def test_a_quick_run_judges_its_claims_in_order(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims] == [f"O{number}" for number in range(1, 8)]
    for claim in claims:
        assert claim["verdict"] in ("holds", "differs")
        assert "not measured" not in claim["measured"]
        assert claim["reason"]


@pytest.mark.slow
def test_claims_that_hang_on_times_are_judged_under_both_readings(reproduced: Path) -> None:
    claims = json.loads((reproduced / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in claims if "alternative" in claim] == list(READINGS)
    assert [claim["id"] for claim in claims if "contradiction" in claim] == ["O1", "O3", "O4"]
    checks = json.loads((reproduced / "checks.json").read_text(encoding="utf-8"))
    (shorter,) = (
        one["value"] for one in checks if one["name"] == "shorter trees" and "reading" in one
    )
    # Only times that vary make the first copy of a flood come by a longer way.
    assert shorter > 3 * checks_of(reproduced)["O1", "shorter trees"]["value"]


@pytest.mark.slow
def test_a_quick_run_measures_what_it_did(reproduced: Path) -> None:
    check_golden("figures scot", measured_by_checks(reproduced))


@pytest.mark.slow
def test_a_quick_run_leaves_data_and_plots_and_nothing_else(reproduced: Path) -> None:
    names = {path.relative_to(reproduced).as_posix() for path in reproduced.rglob("*.*")}
    tables = {f"{name}.parquet" for name in ("runs", "delays", "queues")}
    plots = {
        f"plots/{plot}.{kind}"
        for plot in (*SWEEPS, "scot11", "scot_queues")
        for kind in ("pdf", "svg", "png")
    }
    assert names == tables | plots | {"claims.json", "checks.json", "readings.md"}
    for table in tables:
        assert pq.read_table(reproduced / table).num_rows > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "name", "low", "high"),
    [
        # What follows from the overlay and the rules, whatever a broker's speed.
        ("O1", "fewer messages", 0.79, 0.81),
        ("O1", "duplicates by BID", 0.79, 0.81),
        ("O2", "less delay", 0.2, 0.9),
        ("O4", "fewer matchings by BID", 0.3, 0.9),
        ("O6", "dynamic settles before static by", 1.0, 10.0),
        ("O6", "dynamic, queues less than static", 0.4, 1.0),
        ("O6", "dynamic, delay less than static", 0.1, 1.0),
        ("O6", "dynamic, more messages than static", -0.01, 0.01),
        ("O7", "duplicates of all broadcasts", 0, 0),
        ("O7", "ways longer than the shortest", 0, 0),
        ("O7", "messages, static", 6, 6),
        ("O7", "messages, Fig. 7(b)", 6, 6),
        ("O7", "messages, Fig. 7(c)", 4, 4),
        ("O7", "messages, Fig. 7(d)", 5, 5),
    ],
)
def test_quick_values_are_in_their_bands(
    reproduced: Path, claim: str, name: str, low: float, high: float
) -> None:
    assert low <= checks_of(reproduced)[claim, name]["value"] <= high


@pytest.mark.parametrize("plan", [FULL, QUICK])
def test_every_way_of_routing_meets_the_same(plan: Any) -> None:
    runs = plan_runs(plan, Topics())
    keys = [(run.study, run.reading, run.routing, run.x) for run in runs]
    assert (
        len(set(keys))
        == len(keys)
        == 2 * 3 * (len(plan.subscribers) + len(plan.publishers) + len(plan.rates))
    )
    assert len({run.label for run in runs}) == len(runs)
    for run in runs:
        assert run.burst.settings.routing == run.routing
        assert run.burst.scot.broker_count == 75


def test_the_full_plan_has_the_sizes_of_the_paper() -> None:
    runs = plan_runs(FULL, Topics())
    of = {study: [run.burst for run in runs if run.study == study] for study in _STUDIES}
    assert {burst.subscribers for burst in of[SUBSCRIBERS]} >= {500, 10_000}
    assert {(one.publishers, one.notifications, one.per_minute) for one in of[SUBSCRIBERS]} == {
        (100, 1_000, 60)
    }
    assert {burst.publishers for burst in of[PUBLISHERS]} == {100, 200, 300, 400, 500}
    assert {(one.subscribers, one.notifications, one.per_minute) for one in of[PUBLISHERS]} == {
        (3_000, 500, 100)
    }
    for burst in of[BURST]:
        assert (burst.subscribers, burst.publishers, burst.notifications) == (5_000, 100, 2_000)
        assert burst.burst_notifications == 100_000
        assert burst.burst_subscribers * 5 == burst.subscribers * 0.002
    assert {burst.burst_per_minute for burst in of[BURST]} == {60_000, 80_000, 100_000}


_STUDIES = (SUBSCRIBERS, PUBLISHERS, BURST)


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
    assert find_quotes(50, tmp_path / "checkout").file is None
    data = tmp_path / "shared" / "data"
    data.mkdir(parents=True)
    (data / REAL_QUOTES).write_bytes(b"")
    assert find_quotes(50, tmp_path / "checkout").file == data / REAL_QUOTES


@pytest.mark.shared_data
@pytest.mark.skipif(
    find_quotes(50, ROOT).file is None,
    reason="the shared data folder is not beside the checkout",
)
def test_subscriptions_to_real_quotes_match_two_in_a_hundred() -> None:
    load, draw = find_quotes(100, ROOT), random.Random(1)
    quotes = [exact_publication(quote) for quote in load.contents]
    assert {len(quote) for quote in load.contents} == {10}
    assert len({quote["symbol"] for quote in load.contents}) > 30
    for _ in range(100):
        assert sum(map(load.wanted(draw).matches, quotes)) == 2
