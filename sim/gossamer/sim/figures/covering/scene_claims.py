"""P9, I5 and I6: what the papers claim of mobile clients and of business processes, and its runs.

P9 and I5 are the selective paper's Sec. V-F, Fig. 12, and the incremental paper's Sec. V-B, Fig. 9;
I6 is the latter's Sec. V-C, Fig. 10. The checks were written from the papers, and not changed by
what was measured, but not blindly: P9's after trials of an hour, with other service times, I6's
after trials of three minutes with an earlier workload. Where the papers give a number we accept a
third of it to three times as much, as they say nothing of how often processes are triggered nor of
how long they take; where they give a shape ("virtually no congestion") the bounds are our reading.

mobile.parquet, workflow.parquet  one row a run
..._times.parquet                 queues, tables and delays over time
..._brokers.parquet               one row a broker of a run
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from gossamer.sim.figures.common.claims import LITERAL, RATIO, SHARE
from gossamer.sim.figures.common.measurements import (
    Quantity,
    Row,
    Statement,
    at,
    check_readings,
    run_tables,
)
from gossamer.sim.figures.common.points import Experiment
from gossamer.sim.figures.covering.plots import by_tier, draw_mobile, draw_workflow
from gossamer.sim.figures.covering.readings import READINGS
from gossamer.sim.figures.covering.scenes import (
    ACTIVE,
    CASES,
    CITY,
    EVERYBODY,
    GAME,
    INCREMENTAL,
    MONITORS,
    RUSH,
    SELECTIVE,
    TOGETHER,
    WORKFLOW,
    Scenes,
    SharedRuns,
    plan_mobile,
    plan_workflow,
)


def _game(measure: str, covering: str, case: str) -> Quantity:
    return at(measure, GAME, covering, case)


def _named(study: str, case: str, measure: str, *, compared: str) -> Quantity:
    return at(measure, study, compared, case)


_star, _star_pruned, _flow, _flow_pruned = (
    partial(_named, *where, compared=name)
    for where in ((CITY, RUSH), (WORKFLOW, TOGETHER))
    for name in (ACTIVE, INCREMENTAL)
)
_WORST: Final = "worst delay, active over incremental"


def _worst(active: Callable[[str], Quantity], pruned: Callable[[str], Quantity]) -> Quantity:
    return active("delay_max_s") / pruned("delay_max_s")


def _grown(tables: Callable[[str], Quantity]) -> Quantity:
    return tables("table_last") / tables("table_first")


def _queues(case: str) -> Iterator[Row]:
    begin, end, pruned = (
        _game("queue_core_first", ACTIVE, case),
        _game("queue_core_last", ACTIVE, case),
        _game("queue_core_last", SELECTIVE, case),
    )
    name = f"core queue, active, last third over first, {case}"
    yield Row(name, end.over(begin, 1.0), "large and growing", 2.0)
    name = f"core queue, selective, last third over active's, {case}"
    yield Row(name, pruned.over(end, 1.0), "virtually no congestion", high=0.01)


def _tables(case: str) -> Iterator[Row]:
    for name, measure, paper, high in (
        ("mean table", "table_mean", "much smaller", 0.8),
        ("fluctuation of tables", "table_sd", "much more stable", 0.5),
    ):
        ratio = _game(measure, SELECTIVE, case) / _game(measure, ACTIVE, case)
        yield Row(f"{name}, selective over active, {case}", ratio, paper, high=high)


def _load_of_tiers(found: Scenes) -> float:
    received = by_tier(found.one(GAME, SELECTIVE, EVERYBODY), "received")[1]
    return float(received[-1] / received[0])


def _wasted_in_tiers(found: Scenes) -> float:
    tiers, wasted = by_tier(found.one(GAME, SELECTIVE, EVERYBODY), "false_positives")
    lower = tiers >= tiers.mean()
    return float(wasted[lower].sum() / wasted.sum()) if wasted.sum() else np.nan


def _wasted_below(found: Scenes) -> float:
    """Share of all false positives in the lower half of the tiers, not of a broker's mean."""
    brokers = found.one(GAME, SELECTIVE, EVERYBODY).tables["brokers"]
    lower = brokers["tier"] >= np.unique(brokers["tier"]).mean()
    wasted = brokers["false_positives"]
    return float(wasted[lower].sum() / max(1, wasted.sum()))


def _game_note(found: Scenes) -> str:
    return (
        f"{_congestion(found, GAME, (MONITORS, EVERYBODY), SELECTIVE)}; of all false "
        f"positives {100 * _wasted_below(found):.0f} % were in the lower half of the tiers, "
        "where most of the brokers are"
    )


def _congestion(found: Scenes, study: str, cases: tuple[str, ...], pruned: str) -> str:
    """Delays and queues of all runs of a study, in words."""
    return "; ".join(
        f"{case}, {covering}: mean delay {value('delay_mean_s'):.3g} s, worst "
        f"{value('delay_max_s'):,.3g} s, longest core queue {value('queue_core_max'):,.0f}, mean "
        f"of the last third {value('queue_core_last'):,.0f}"
        for case in cases
        for covering in (ACTIVE, pruned)
        for value in [partial(found.value, study=study, compared=covering, x=case)]
    )


def _note(found: Scenes) -> str:
    cases = {one.run.case for one in found.found}
    return "; ".join(
        f"{case}: worst delay {value('delay_max_s'):.3g} s, mean {value('delay_mean_s'):.3g} s, "
        f"longest core queue {value('queue_core_max'):,.0f} with {covering}"
        for case in CASES
        if case in cases
        for covering in (ACTIVE, INCREMENTAL)
        for value in [partial(found.value, study=WORKFLOW, compared=covering, x=case)]
    )


MOBILE_CLAIMS: Final = (
    Statement(
        "P9",
        "Mobile, 5,000 subscribers, 40 publishers, monitors that move every 2 minutes: active "
        "covering's queue grows without end, selective has none, whether the others move or "
        "not; its tables are smaller and steadier; false positives are mostly on lower tiers.",
        [
            *(row for case in (MONITORS, EVERYBODY) for row in _queues(case)),
            *(row for case in (MONITORS, EVERYBODY) for row in _tables(case)),
            Row(
                "publications at a broker, lowest tier over highest, selective",
                Quantity(_load_of_tiers, RATIO),
                "upper tiers are more heavily loaded",
                high=0.5,
            ),
            Row(
                "false positives in the lower half of the tiers, selective",
                Quantity(_wasted_in_tiers, SHARE),
                "the lower tiers carry most of them",
                low=0.5,
            ),
        ],
        "A monitor that leaves triggers no more than the players behind a link, a quarter of them "
        "at the root, and only where no other monitor is behind it; that drains before much more "
        "comes, so that the queue comes and goes, but does not grow. Selective pruning is "
        "congested too at first: the paper's formula preserves nothing at the first hop, so that "
        "a monitor that leaves a broker beside the root triggers all of its region there, until "
        "trees are left behind everywhere. Most of a table are the players of the broker itself "
        "and below it, which no covering hides",
        _game_note,
    ),
    Statement(
        "I5",
        "17-broker star, 2,000 publishers, 200,000 mobile subscribers: worst delay 1,200 s "
        "with active covering, 17 s with incremental pruning, whose tables shrink while "
        "active covering's stay as they are.",
        [
            Row("worst delay, active", _star("delay_max_s"), "more than 1,200 s", 400),
            Row("worst delay, incremental", _star_pruned("delay_max_s"), "17 s", high=51),
            Row(
                _WORST,
                _star("delay_max_s") / _star_pruned("delay_max_s"),
                "1,200 s over 17 s",
                23,
            ),
            Row(
                "longest core queue, incremental over active",
                _star_pruned("queue_core_max").over(_star("queue_core_max"), 1.0),
                "most of the roots' trees are preserved",
                high=0.1,
            ),
            Row("tables, active, last tenth over first", _grown(_star), "stable", 0.9, 1.1),
            Row(
                "tables, incremental, last tenth over first",
                *(_grown(_star_pruned), "decreasing"),
                high=0.95,
            ),
        ],
        "Hardly anything is triggered here: a root of SIENA's workload covers many subscriptions, "
        "but nearly all of these are covered by others as well, on average less than one becomes "
        "a root when a root goes (`covering_degree`), and our brokers send no more than that. The "
        "paper's congestion would need most of what a root covers to be sent again. Publications "
        "alone keep every broker busy for three quarters of the time",
        lambda found: _congestion(found, CITY, (RUSH,), INCREMENTAL),
    ),
)
WORKFLOW_CLAIMS: Final = (
    Statement(
        "I6",
        "Business processes: worst delay 400 s with active covering, 0.24 s on average with "
        "incremental pruning; core queue above 18,400 against next to none; tables fluctuate "
        "much less.",
        [
            Row("worst delay, active", _flow("delay_max_s"), "400 s", 130, 1_200),
            Row(
                "mean delay, incremental",
                _flow_pruned("delay_mean_s"),
                "about 0.24 s, stable",
                high=0.72,
            ),
            Row(_WORST, _worst(_flow, _flow_pruned), "400 s against stable delays", 100),
            Row("longest core queue, active", _flow("queue_core_max"), "above 18,400", 6_100),
            Row(
                "longest core queue, incremental",
                _flow_pruned("queue_core_max"),
                "virtually no congestion",
                high=100,
            ),
            Row(
                "fluctuation of tables, incremental over active",
                _flow_pruned("table_sd") / _flow("table_sd"),
                "much less severe",
                high=0.5,
            ),
        ],
        "Most of what reaches an auditor's domain from others is wanted by nobody else there, so "
        "that a threshold of 90 % takes its tree down as far as the broker that links the "
        "domains; what the auditors quenched in all domains goes there at once. Beyond, trees are "
        "preserved, and other brokers have short queues. How long delays last depends on how many "
        "instances run at a time, which the paper does not say",
        _note,
    ),
)


_KEYS: Final = ("run.study", "run.reading", "run.case", "run.covering")


def _experiment(
    name: str,
    statements: Sequence[Statement],
    tasks: Callable[[bool], Sequence[SharedRuns]],
    draw: Callable[[Scenes], Iterable[tuple[str, Figure]]],
) -> Experiment:
    return Experiment(
        tasks=tasks,
        check=lambda outcomes: check_readings(
            statements, partial(Scenes.of, list(chain(*outcomes))), READINGS
        ),
        tables=lambda outcomes: run_tables(list(chain(*outcomes)), name, _KEYS, prefix=f"{name}_"),
        draw=lambda outcomes: draw(Scenes.of(chain(*outcomes), LITERAL)),
    )


MOBILE: Final = _experiment("mobile", MOBILE_CLAIMS, plan_mobile, draw_mobile)
WORKFLOWS: Final = _experiment(WORKFLOW, WORKFLOW_CLAIMS, plan_workflow, draw_workflow)
