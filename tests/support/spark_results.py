"""What Spark made of results and streams, and sweeps of small scenarios or on no session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gossamer.sim.results.storage.place import LocalPlace, Place
from gossamer.sim.results.sweeps.plan import Point, SweepPlan
from gossamer.sim.results.sweeps.scheduling import SweepOutcome
from gossamer.spark.crunch.crunching import Crunched, crunch_results
from gossamer.spark.crunch.folders import find_runs
from gossamer.spark.handover import SharedFolder
from gossamer.spark.stream.following import windows_of
from gossamer.spark.sweep.running import SweepOptions, run_sweep


def crunch(
    session: Any, results: Path | Place | Sequence[Path | Place], out: Path | Place, **options: Any
) -> Crunched:
    """Crunch folders of results, exactly and without plots unless something else is asked for."""
    places = [*results] if isinstance(results, Sequence) else [results]
    given = {"plots": False, "exact_up_to": 10**9, **options}
    return crunch_results(session, find_runs(places), out, **given)


def windows_in(out: Path, since: int = 0) -> dict[tuple[int, str], dict[str, Any]]:
    """The windows of a stream by when they begin, in seconds since a time, and subscriber."""
    table = windows_of(LocalPlace(out))
    assert table is not None
    return {
        (round(row["begin"].timestamp()) - since, row["subscriber"]): row
        for row in table.to_pylist()
    }


SCENARIO: Final = "nodes = 24\nrounds = 12\n[events]\nper_round = 2\nwarm_up_rounds = 6\n"


def sweep_file(folder: Path, points: int, scenario: str = SCENARIO, more: str = "") -> Path:
    (folder / "base.toml").write_text(scenario)
    seeds = list(range(1, points + 1))
    (folder / "sweep.toml").write_text(f'scenario = "base.toml"\nseeds = {seeds}\n{more}')
    return folder / "sweep.toml"


def run_made_up(out: Path, points: int, **options: Any) -> SweepOutcome[Place]:
    """Run a sweep of points p0, p1 and so on, one after another, on a session that is none."""
    made = (
        Point(name=f"p{i}", values={"nodes": i, "seed": 1}, text="", memory_bytes=1)
        for i in range(points)
    )
    plan = SweepPlan(name="made up", points=tuple(made))
    return run_sweep(NoSession(), plan, out, SweepOptions(at_once=1, **options))


def made_up_results(_session: Any, _text: str, label: str, shared: SharedFolder) -> Path:
    summary = {"systems": {"a": {"hit_ratio": 1.0}}, "result_hash": label}
    results = shared.own_folder()
    (results / "summary.json").write_text(json.dumps({**summary, "seed": 1, "versions": {}}))
    return results


class NoSession:
    """What a sweep asks of a session when it begins and when it gives up."""

    version = "4.0.0"
    sparkContext = None  # noqa: N815

    def interruptAll(self) -> None:  # noqa: N802
        """Spark's name."""
