"""`gossamer sim figures trees`: the paper on content-aware trees, T1 to T7.

claims.json       verdicts, see `gossamer.sim.figures.common.claims`
checks.json       the numbers and bounds behind them
readings.md       both readings of every claim side by side
costs.parquet     one row a strategy and run: what was varied, trees, cost, duplicates, time
mergers.parquet   cost of the sampled documents after every merger (Fig. 6)
states.parquet    cost and duplicates of all documents by number of trees (Fig. 7)
plots/            fig4 to fig8 like the paper's; fig5_graphs other graphs, real the real networks
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from gossamer.protocol.dissemination.graph import Reals, Words
from gossamer.sim.figures.common.claims import COUNT, LITERAL, RATIO, Claim
from gossamer.sim.figures.common.measurements import Quantity, Row, Statement, check_readings
from gossamer.sim.figures.common.points import CHECKOUT, write_figures
from gossamer.sim.figures.dissemination.plots import Outcomes, draw
from gossamer.sim.figures.dissemination.studies import (
    CONTRADICTIONS,
    COSTS,
    FULL,
    LINKED,
    LOCALIZED1,
    LOCALIZED2,
    MERGERS,
    MULT2_LISTS,
    ONE_KEYWORD,
    QUICK,
    READINGS,
    SHARE,
    SHARES,
    TRANSIT_STUB,
    UNIFORM,
    WAXMAN,
    RunResult,
    find_networks,
    plan_runs,
)
from gossamer.sim.results.results import check_destination
from gossamer.sim.study.tasks import Progress, run_tasks

# T1 to T7: what the paper on content-aware trees claims, to be held against measurements.
#
# The bounds were written from the paper, before these runs: where it gives a number we accept from
# half of it to twice as much, where it sets strategies side by side about a third around their
# ratio, or around the difference it names; else our reading of its words. That one tree is nearly
# as good as many on our transit-stub graphs was known by then from earlier measurements
# (docs/trees.md); no bound takes account of it. Verdicts are about transit-stub graphs; notes tell
# of others.


STUBS: Final = (
    "A stub domain hangs on one transit broker, so that on these graphs documents take the same "
    "way there whatever the tree, and no tree costs much more than the graph itself"
)


def _ratio(above: str, below: str, locality: str) -> Quantity:
    """Cost of one strategy over that of another, mean over sizes."""
    return Quantity(lambda found: found.ratio(above, below, locality), RATIO)


def _samples(found: Outcomes) -> Iterator[Row]:
    shares = sorted({one.share for one in found.select(SHARES, "MULT", LOCALIZED1)})
    least, most = shares[0], shares[-1]
    for strategy in ("SINGLE", "MULT"):
        for locality in found.localities(SHARES):
            name = f"{strategy}, {locality}: {100 * most:g} % over 3 % sampled"
            value = found.over_share(strategy, locality, most, SHARE)
            yield Row(name, value, "only a marginal reduction", 0.9, 1.02)
    name = f"MULT, Localized1: {100 * least:g} % over 3 % sampled"
    value = found.over_share("MULT", LOCALIZED1, least, SHARE)
    yield Row(name, value, "a significant reduction by 3 %", 1.1)


def _semcast() -> Iterator[Row]:
    for where in (LOCALIZED1, LOCALIZED2, UNIFORM):
        twice, filtered = (
            _ratio("SemCast", "MULT", where),
            _ratio("SemCast-filtered", "SemCast", where),
        )
        yield Row(f"SemCast over MULT, {where}", twice, "nearly 2", 1.33, 2.67)
        yield Row(f"SemCast filtered over SemCast, {where}", filtered, "30 % saved", 0.6, 0.8)


def _sizes(found: Outcomes) -> list[int]:
    return [one.brokers for one in found.select(COSTS, "SINGLE", LOCALIZED1)]


def _one_tree(found: Outcomes) -> Iterator[Row]:
    ratios = found.ratios("SPT", "SINGLE", LOCALIZED1)
    most = max(found.ratios("SPT", "SINGLE", where).max() for where in _places(found))
    sizes = _sizes(found)
    yield Row("SPT over SINGLE, the most anywhere", most, "up to 10", 5, 20)
    name = f"SPT over SINGLE, {sizes[-1]:,} over {sizes[0]:,} brokers, Localized1"
    yield Row(name, ratios[-1] / ratios[0], "increases consistently", 1.1)


def _flooded(found: Outcomes) -> str:
    flooded, sizes = found.ratios("SPT-flooded", "SINGLE", LOCALIZED1), _sizes(found)
    return (
        f"Without filters, SPT over SINGLE is {flooded[0]:.1f} at {sizes[0]:,} brokers and "
        f"{flooded[-1]:.1f} at {sizes[-1]:,}. " + _elsewhere(found, "SPT", "SINGLE", "Filtered")
    )


def _many_trees(found: Outcomes) -> Iterator[Row]:
    for where in (LOCALIZED1, LOCALIZED2):
        if where in _places(found):
            single, mult = (_ratio(one, "OPT", where) for one in ("SINGLE", "MULT"))
            yield Row(f"SINGLE over OPT, {where}", single, "OPT 60 to 70 % less", 1.9, 4.4)
            yield Row(f"MULT over OPT, {where}", mult, "within 10 %", high=1.13)
            half = _ratio("MULT", "SINGLE", where)
            yield Row(f"MULT over SINGLE, {where}", half, "nearly 50 % less", 0.33, 0.67)


def _most_trees(found: Outcomes) -> float:
    return max(one.trees for one in found.select(COSTS, "MULT", UNIFORM))


def _places(found: Outcomes) -> Sequence[str]:
    return found.localities(COSTS)


def _elsewhere(
    found: Outcomes, above: str, below: str, what: str, locality: str = LOCALIZED1
) -> str:
    """A ratio on the graphs that no verdict is about, in words."""
    values = [
        f"{found.ratio(above, below, locality, topology):.2f} ({topology})"
        for topology in (LINKED, WAXMAN)
        if len(found.ratios(above, below, locality, topology))
    ]
    return f"{what}, {locality}: {', '.join(values)}" if values else ""


def _merging(found: Outcomes) -> Iterator[Row]:
    for strategy in ("MULT", "MULT2"):
        trees, costs = _curve(_merged(found, strategy, TRANSIT_STUB))
        best = int(costs.argmin())
        fewest = float(trees[best])
        yield Row(f"{strategy}, trees at the least cost", fewest, "80 to 100", 53, 133, COUNT)
        name = f"{strategy}, least cost over that of all apart"
        yield Row(name, costs[best] / costs[0], "cost falls at first", high=0.9)
    merged = _merged(found, "MULT", TRANSIT_STUB)
    _, costs = _curve(merged)
    paper = "cost rises again, by about half"
    yield Row("MULT, one tree over the least cost", costs[-1] / costs.min(), paper, 1.33)
    name = "MULT, largest rise of duplicates between states, of those at first"
    yield Row(name, _largest_rise(merged), "fall steadily", high=0.02)


def _both_ways(found: Outcomes) -> Iterator[Row]:
    for where in found.localities(COSTS):
        name = f"cost of MULT2 over MULT, {where}"
        yield Row(name, _ratio("MULT2", "MULT", where), "3 to 5 % less", 0.93, 0.99)
    first, second = (_merged(found, name, TRANSIT_STUB).trees for name in ("MULT", "MULT2"))
    yield Row("trees of MULT2 over MULT", second / first, "up to 20 % fewer", 0.75, 1.0)
    slow, fast = (found.select(COSTS, name, LOCALIZED1) for name in ("MULT2", "MULT"))
    times = [
        one.planning_s / max(other.planning_s, 1e-9) for one, other in zip(slow, fast, strict=True)
    ]
    name = "planning time, MULT2 over MULT, most"
    yield Row(name, max(times), "several orders of magnitude", 100)


def _merged(found: Outcomes, strategy: str, topology: str) -> RunResult:
    (one,) = found.select(MERGERS, strategy, LOCALIZED1, topology)
    return one


def _curve(one: RunResult) -> tuple[Words, Reals]:
    """Trees, and cost of the sample, after each merger."""
    assert one.mergers is not None
    return one.mergers


def _largest_rise(one: RunResult) -> float:
    """Of duplicates of all documents from one state of the mergers to the next."""
    duplicates = one.states["duplicates"].astype(np.float64)
    return float(np.diff(duplicates).max(initial=0.0) / max(duplicates[0], 1.0))


def _least_elsewhere(found: Outcomes) -> str:
    """Where cost is least on the graphs that no verdict is about, in words."""
    parts = []
    for topology in (LINKED, WAXMAN, ONE_KEYWORD):
        if not found.select(MERGERS, "MULT", LOCALIZED1, topology):
            continue
        one = _merged(found, "MULT", topology)
        trees, costs = _curve(one)
        best = int(costs.argmin())
        whole = one.states["cost"][one.states["trees"] == trees[best]][0]
        parts.append(
            f"{topology}: at {trees[best]} of {trees[0]}, one tree {costs[-1] / costs[best]:.2f} "
            f"times that for the sample, {one.states['cost'][-1] / whole:.2f} for all documents"
        )
    return "Elsewhere MULT costs least as follows; " + "; ".join(parts) if parts else ""


def _lists(found: Outcomes) -> str:
    """What neighbour lists lose and gain, in words."""
    costs, times = [], []
    for locality in found.localities(COSTS):
        exact = found.select(COSTS, "MULT2", locality)
        lists = found.select(COSTS, MULT2_LISTS, locality)
        for one, other in zip(exact, lists, strict=False):
            costs.append(other.cost / one.cost - 1)
            times.append(one.planning_s / max(other.planning_s, 1e-9))
    if not costs:
        return ""
    return (
        f"With neighbour lists MULT2 costs {100 * min(costs):+.2f} to {100 * max(costs):+.2f} % "
        f"against all pairs, and takes a {max(times):.0f}th of the time at best"
    )


CLAIMS: Final = (
    Statement(
        "T1",
        "Sampling beyond 3 % of the documents buys only a marginal gain.",
        _samples,
        f"Beyond 3 % there is nothing to gain at all. {STUBS}, so that even a tenth of a per "
        "cent loses less than we expected of it",
    ),
    Statement(
        "T2",
        "SemCast costs about twice MULT; internal filtering on its trees saves 30 %.",
        tuple(_semcast()),
        "What SemCast costs hangs on two things that neither paper tells: how many channels "
        "there may be, and where documents go that the sample had none alike of. With random "
        "keywords 97 % of the documents are such, and the wider spread the subscribers of a "
        "keyword are, the more brokers a channel has that do not want them; filters, which "
        "spare just these, then save far more",
        lambda found: _elsewhere(found, "SemCast", "MULT", "SemCast over MULT"),
    ),
    Statement(
        "T3",
        "SINGLE costs up to 10 times less than SPT, the factor growing with size.",
        _one_tree,
        "The paper lets brokers inside a tree filter (Sec. III-A), and so does SPT here. Only "
        "beside an SPT whose brokers do not filter a factor of ten appears, and it grows with "
        f"size. {STUBS}",
        _flooded,
    ),
    Statement(
        "T4",
        "OPT costs 60 to 70 % less than SINGLE; MULT is within 10 % of OPT and, with "
        "localised subscriptions, about 50 % below SINGLE.",
        _many_trees,
        f"{STUBS}: SINGLE is within a tenth of OPT, and MULT, which may end with one tree, "
        "cannot be much better. Where stubs are linked or there are none, the gap opens, but "
        "MULT does not close it: a further tree pays for all documents that it shares with "
        "others by a second way through the same brokers",
        lambda found: ". ".join(
            _elsewhere(found, above, below, f"{above} over {below}")
            for above, below in (("SINGLE", "OPT"), ("MULT", "SINGLE"))
        ),
    ),
    Statement(
        "T5",
        "Uniform subscriptions: MULT picks one cluster, and SINGLE and MULT cost the same.",
        [
            Row("trees of MULT, most", Quantity(_most_trees, COUNT), "1", 1, 1),
            Row(
                "MULT over SINGLE", _ratio("MULT", "SINGLE", UNIFORM), "almost the same", 0.98, 1.02
            ),
        ],
        "MULT found several groups to cost less",
        lambda found: _elsewhere(found, "MULT", "SINGLE", "MULT over SINGLE", UNIFORM),
    ),
    Statement(
        "T6",
        "500 brokers, Localized1: cost falls, then rises as clusters merge, the least at 80 to "
        "100 trees; duplicates fall steadily.",
        _merging,
        f"{STUBS}. A merger so costs nothing and spares duplicates, down to the last. A hollow "
        "appears where documents are as local as can be, of one keyword, on a graph without "
        "stubs; but there a document that was not sampled matches many groups, so that one "
        "tree costs all documents less",
        _least_elsewhere,
    ),
    Statement(
        "T7",
        "MULT2 is 3 to 5 % cheaper than MULT and makes up to 20 % fewer trees; MULT is orders "
        "of magnitude faster.",
        _both_ways,
        "Both end with one tree or few, so that neither can be cheaper. MULT2 stops where no "
        "two groups save, MULT looks at every number of groups. A tree for two groups takes a "
        "fraction of a millisecond here, with the table of shortest paths, and pairs that "
        "share no document are not judged; so Algorithm 2 is slower by less than in the paper",
        _lists,
    ),
)


def reproduce_trees(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    checkout: Path = CHECKOUT,
) -> list[Claim]:
    """Run everything behind Fig. 4 to 8 (Sec. VII), judge T1 to T7, write ``out`` whole.

    Takes and raises what `reproduce_vinifera` does, but needs no trace.
    ``quick`` runs small graphs and few documents.
    Beside ``checkout``, ``shared/data/topologies`` may hold files of real networks.
    """
    check_destination(out)
    runs = plan_runs(QUICK if quick else FULL, find_networks(checkout))
    outcomes = run_tasks(runs, processes, progress)
    found = Outcomes.of(outcomes)
    claims = check_readings(CLAIMS, partial(Outcomes.of, outcomes), READINGS, CONTRADICTIONS)
    tables = {
        "costs": found.table(),
        "mergers": found.mergers_table(),
        "states": found.states_table(),
    }
    write_figures(out, claims, tables, lambda: draw(Outcomes.of(outcomes, LITERAL)))
    return claims
