"""T1 to T5: what the paper on content-aware trees claims of costs, held against measurements.

The bounds were written from the paper, before these runs: where it gives a number we accept from
half of it to twice as much, where it sets strategies side by side about a third around their ratio,
or around the difference it names; else our reading of its words. That one tree is nearly as good as
many on our transit-stub graphs was known by then from earlier measurements (docs/trees.md); no
bound takes account of it. Verdicts are about transit-stub graphs; notes tell of others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.protocol.dissemination.graphs.graph import Reals, Words
from gossamer.sim.figures.common.claims import COUNT, RATIO, Check, Claim
from gossamer.sim.figures.dissemination.plots import Outcomes
from gossamer.sim.figures.dissemination.studies import (
    COSTS,
    LINKED,
    LOCALIZED1,
    LOCALIZED2,
    MERGERS,
    MULT2_LISTS,
    ONE_KEYWORD,
    SHARE,
    SHARES,
    TRANSIT_STUB,
    UNIFORM,
    WAXMAN,
    RunResult,
)

STUBS = (
    "A stub domain hangs on one transit broker, so that on these graphs documents take the same "
    "way there whatever the tree, and no tree costs much more than the graph itself"
)


def check_costs(found: Outcomes) -> list[Claim]:
    """T1 to T5, in order."""
    return [check_t1(found), check_t2(found), check_t3(found), check_t4(found), check_t5(found)]


def check_read_otherwise(found: Outcomes) -> list[Claim]:
    """Those of them that are judged on the documents sampled: T2 to T5."""
    return [check_t2(found), check_t3(found), check_t4(found), check_t5(found)]


def check_t1(found: Outcomes) -> Claim:
    """Fig. 4: how much is gained by sampling more documents."""
    shares = sorted({one.share for one in found.select(SHARES, "MULT", LOCALIZED1)})
    least, most = shares[0], shares[-1]
    checks = [
        Check(
            f"{strategy}, {locality}: {100 * most:g} % over 3 % sampled",
            found.over_share(strategy, locality, most, SHARE),
            RATIO,
            "only a marginal reduction",
            low=0.9,
            high=1.02,
        )
        for strategy in ("SINGLE", "MULT")
        for locality in found.localities(SHARES)
    ]
    checks.append(
        Check(
            f"MULT, Localized1: {100 * least:g} % over 3 % sampled",
            found.over_share("MULT", LOCALIZED1, least, SHARE),
            RATIO,
            "a significant reduction by 3 %",
            low=1.1,
        )
    )
    return Claim(
        "T1",
        "Sampling beyond 3 % of the documents buys only a marginal gain.",
        checks,
        f"Beyond 3 % there is nothing to gain at all. {STUBS}, so that even a tenth of a per "
        "cent loses less than we expected of it",
    )


def check_t2(found: Outcomes) -> Claim:
    """Fig. 5: SemCast."""
    checks = []
    for locality in (LOCALIZED1, LOCALIZED2, UNIFORM):
        checks += [
            Check(
                f"SemCast over MULT, {locality}",
                found.ratio("SemCast", "MULT", locality),
                RATIO,
                "nearly 2",
                low=1.33,
                high=2.67,
            ),
            Check(
                f"SemCast filtered over SemCast, {locality}",
                found.ratio("SemCast-filtered", "SemCast", locality),
                RATIO,
                "30 % saved",
                low=0.6,
                high=0.8,
            ),
        ]
    return Claim(
        "T2",
        "SemCast costs about twice MULT; internal filtering on its trees saves 30 %.",
        checks,
        "What SemCast costs hangs on two things that neither paper tells: how many channels "
        "there may be, and where documents go that the sample had none alike of. With random "
        "keywords 97 % of the documents are such, and the wider spread the subscribers of a "
        "keyword are, the more brokers a channel has that do not want them; filters, which "
        "spare just these, then save far more",
        _elsewhere(found, "SemCast", "MULT", "SemCast over MULT"),
    )


def check_t3(found: Outcomes) -> Claim:
    """Fig. 5: one tree made for the documents beside one that is not."""
    ratios = found.ratios("SPT", "SINGLE", LOCALIZED1)
    most = max(float(found.ratios("SPT", "SINGLE", where).max()) for where in _places(found))
    flooded = found.ratios("SPT-flooded", "SINGLE", LOCALIZED1)
    sizes = [one.brokers for one in found.select(COSTS, "SINGLE", LOCALIZED1)]
    return Claim(
        "T3",
        "SINGLE costs up to 10 times less than SPT, the factor growing with size.",
        [
            Check("SPT over SINGLE, the most anywhere", most, RATIO, "up to 10", low=5, high=20),
            Check(
                f"SPT over SINGLE, {sizes[-1]:,} over {sizes[0]:,} brokers, Localized1",
                float(ratios[-1] / ratios[0]),
                RATIO,
                "increases consistently",
                low=1.1,
            ),
        ],
        "The paper lets brokers inside a tree filter (Sec. III-A), and so does SPT here. Only "
        "beside an SPT whose brokers do not filter a factor of ten appears, and it grows with "
        f"size. {STUBS}",
        f"Without filters, SPT over SINGLE is {flooded[0]:.1f} at {sizes[0]:,} brokers and "
        f"{flooded[-1]:.1f} at {sizes[-1]:,}. " + _elsewhere(found, "SPT", "SINGLE", "Filtered"),
    )


def check_t4(found: Outcomes) -> Claim:
    """Fig. 5(a): one tree, many trees, a tree a document."""
    localized = [where for where in (LOCALIZED1, LOCALIZED2) if where in _places(found)]
    checks = []
    for locality in localized:
        checks += [
            Check(
                f"SINGLE over OPT, {locality}",
                found.ratio("SINGLE", "OPT", locality),
                RATIO,
                "OPT 60 to 70 % less",
                low=1.9,
                high=4.4,
            ),
            Check(
                f"MULT over OPT, {locality}",
                found.ratio("MULT", "OPT", locality),
                RATIO,
                "within 10 %",
                high=1.13,
            ),
            Check(
                f"MULT over SINGLE, {locality}",
                found.ratio("MULT", "SINGLE", locality),
                RATIO,
                "nearly 50 % less",
                low=0.33,
                high=0.67,
            ),
        ]
    return Claim(
        "T4",
        "OPT costs 60 to 70 % less than SINGLE; MULT is within 10 % of OPT and, with "
        "localised subscriptions, about 50 % below SINGLE.",
        checks,
        f"{STUBS}: SINGLE is within a tenth of OPT, and MULT, which may end with one tree, "
        "cannot be much better. Where stubs are linked or there are none, the gap opens, but "
        "MULT does not close it: a further tree pays for all documents that it shares with "
        "others by a second way through the same brokers",
        ". ".join(
            _elsewhere(found, above, below, f"{above} over {below}")
            for above, below in (("SINGLE", "OPT"), ("MULT", "SINGLE"))
        ),
    )


def check_t5(found: Outcomes) -> Claim:
    """Fig. 5(c): nothing to divide where subscribers are anywhere."""
    trees = [one.trees for one in found.select(COSTS, "MULT", UNIFORM)]
    return Claim(
        "T5",
        "Uniform subscriptions: MULT picks one cluster, and SINGLE and MULT cost the same.",
        [
            Check("trees of MULT, most", float(max(trees)), COUNT, "1", low=1, high=1),
            Check(
                "MULT over SINGLE",
                found.ratio("MULT", "SINGLE", UNIFORM),
                RATIO,
                "almost the same",
                low=0.98,
                high=1.02,
            ),
        ],
        "MULT found several groups to cost less",
        _elsewhere(found, "MULT", "SINGLE", "MULT over SINGLE", UNIFORM),
    )


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


# T6 and T7: what the paper on content-aware trees claims of grouping, held against measurements.
#
# For the bounds see `trees_claims`.


def check_grouping(found: Outcomes) -> list[Claim]:
    """T6 and T7."""
    return [check_t6(found), check_t7(found)]


def check_t6(found: Outcomes) -> Claim:
    """Fig. 6 and 7: what mergers do to cost and duplicates."""
    checks = []
    for strategy in ("MULT", "MULT2"):
        one = _merged(found, strategy, TRANSIT_STUB)
        trees, costs = _curve(one)
        best = int(costs.argmin())
        checks += [
            Check(
                f"{strategy}, trees at the least cost",
                float(trees[best]),
                COUNT,
                "80 to 100",
                low=53,
                high=133,
            ),
            Check(
                f"{strategy}, least cost over that of all apart",
                float(costs[best] / costs[0]),
                RATIO,
                "cost falls at first",
                high=0.9,
            ),
        ]
    _, costs = _curve(_merged(found, "MULT", TRANSIT_STUB))
    checks += [
        Check(
            "MULT, one tree over the least cost",
            float(costs[-1] / costs.min()),
            RATIO,
            "cost rises again, by about half",
            low=1.33,
        ),
        Check(
            "MULT, largest rise of duplicates between states, of those at first",
            _largest_rise(_merged(found, "MULT", TRANSIT_STUB)),
            RATIO,
            "fall steadily",
            high=0.02,
        ),
    ]
    return Claim(
        "T6",
        "500 brokers, Localized1: cost falls, then rises as clusters merge, the least at 80 to "
        "100 trees; duplicates fall steadily.",
        checks,
        f"{STUBS}. A merger so costs nothing and spares duplicates, down to the last. A hollow "
        "appears where documents are as local as can be, of one keyword, on a graph without "
        "stubs; but there a document that was not sampled matches many groups, so that one "
        "tree costs all documents less",
        _least_elsewhere(found),
    )


def check_t7(found: Outcomes) -> Claim:
    """Fig. 6 and 8: both ways of grouping."""
    checks = [
        Check(
            f"cost of MULT2 over MULT, {locality}",
            found.ratio("MULT2", "MULT", locality),
            RATIO,
            "3 to 5 % less",
            low=0.93,
            high=0.99,
        )
        for locality in found.localities(COSTS)
    ]
    first, second = (_merged(found, name, TRANSIT_STUB).trees for name in ("MULT", "MULT2"))
    slow = found.select(COSTS, "MULT2", LOCALIZED1)
    fast = found.select(COSTS, "MULT", LOCALIZED1)
    times = [
        one.planning_s / max(other.planning_s, 1e-9) for one, other in zip(slow, fast, strict=True)
    ]
    checks += [
        Check(
            "trees of MULT2 over MULT",
            second / first,
            RATIO,
            "up to 20 % fewer",
            low=0.75,
            high=1.0,
        ),
        Check(
            "planning time, MULT2 over MULT, most",
            max(times),
            RATIO,
            "several orders of magnitude",
            low=100,
        ),
    ]
    return Claim(
        "T7",
        "MULT2 is 3 to 5 % cheaper than MULT and makes up to 20 % fewer trees; MULT is orders "
        "of magnitude faster.",
        checks,
        "Both end with one tree or few, so that neither can be cheaper. MULT2 stops where no "
        "two groups save, MULT looks at every number of groups. A tree for two groups takes a "
        "fraction of a millisecond here, with the table of shortest paths, and pairs that "
        "share no document are not judged; so Algorithm 2 is slower by less than in the paper",
        _lists(found),
    )


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
