"""T1 to T5: what the paper on content-aware trees claims of costs, held against measurements.

The bounds were written from the paper, before these runs: where it gives a number we accept from
half of it to twice as much, where it sets strategies side by side about a third around their ratio,
or around the difference it names; else our reading of its words. That one tree is nearly as good as
many on our transit-stub graphs was known by then from earlier measurements (docs/trees.md); no
bound takes account of it. Verdicts are about transit-stub graphs; notes tell of others.
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.sim.figures.common.claims import COUNT, RATIO, Check, Claim
from gossamer.sim.figures.dissemination.outcomes import Outcomes
from gossamer.sim.figures.dissemination.studies import (
    COSTS,
    LINKED,
    LOCALIZED1,
    LOCALIZED2,
    SHARE,
    SHARES,
    UNIFORM,
    WAXMAN,
)

STUBS = (
    "A stub domain hangs on one transit broker, so that on these graphs documents take the same "
    "way there whatever the tree, and no tree costs much more than the graph itself"
)


def check_costs(found: Outcomes) -> list[Claim]:
    """T1 to T5, in order."""
    return [
        check_t1(found),
        check_t2(found),
        check_t3(found),
        check_t4(found),
        check_t5(found),
    ]


def check_read_otherwise(found: Outcomes) -> list[Claim]:
    """Those of them that are judged on the documents sampled: T2 to T5."""
    return [check_t2(found), check_t3(found), check_t4(found), check_t5(found)]


def check_t1(found: Outcomes) -> Claim:
    """Fig. 4: how much is gained by sampling more documents."""
    shares = sorted({one.share for one in found.select(SHARES, "MULT", LOCALIZED1)})
    least, most = shares[0], shares[-1]
    checks = [
        Check(
            name=f"{strategy}, {locality}: {100 * most:g} % over 3 % sampled",
            value=found.over_share(strategy, locality, most, SHARE),
            unit=RATIO,
            paper="only a marginal reduction",
            low=0.9,
            high=1.02,
        )
        for strategy in ("SINGLE", "MULT")
        for locality in found.localities(SHARES)
    ]
    checks.append(
        Check(
            name=f"MULT, Localized1: {100 * least:g} % over 3 % sampled",
            value=found.over_share("MULT", LOCALIZED1, least, SHARE),
            unit=RATIO,
            paper="a significant reduction by 3 %",
            low=1.1,
        )
    )
    return Claim(
        id="T1",
        claim="Sampling beyond 3 % of the documents buys only a marginal gain.",
        checks=checks,
        explanation=(
            f"Beyond 3 % there is nothing to gain at all. {STUBS}, so that even a tenth of a per "
            "cent loses less than we expected of it"
        ),
    )


def check_t2(found: Outcomes) -> Claim:
    """Fig. 5: SemCast."""
    checks = []
    for locality in (LOCALIZED1, LOCALIZED2, UNIFORM):
        checks += [
            Check(
                name=f"SemCast over MULT, {locality}",
                value=found.ratio("SemCast", "MULT", locality),
                unit=RATIO,
                paper="nearly 2",
                low=1.33,
                high=2.67,
            ),
            Check(
                name=f"SemCast filtered over SemCast, {locality}",
                value=found.ratio("SemCast-filtered", "SemCast", locality),
                unit=RATIO,
                paper="30 % saved",
                low=0.6,
                high=0.8,
            ),
        ]
    return Claim(
        id="T2",
        claim="SemCast costs about twice MULT; internal filtering on its trees saves 30 %.",
        checks=checks,
        explanation=(
            "What SemCast costs hangs on two things that neither paper tells: how many channels "
            "there may be, and where documents go that the sample had none alike of. With random "
            "keywords 97 % of the documents are such, and the wider spread the subscribers of a "
            "keyword are, the more brokers a channel has that do not want them; filters, which "
            "spare just these, then save far more"
        ),
        note=_elsewhere(found, "SemCast", "MULT", "SemCast over MULT"),
    )


def check_t3(found: Outcomes) -> Claim:
    """Fig. 5: one tree made for the documents beside one that is not."""
    ratios = found.ratios("SPT", "SINGLE", LOCALIZED1)
    most = max(float(found.ratios("SPT", "SINGLE", where).max()) for where in _places(found))
    flooded = found.ratios("SPT-flooded", "SINGLE", LOCALIZED1)
    sizes = [one.brokers for one in found.select(COSTS, "SINGLE", LOCALIZED1)]
    return Claim(
        id="T3",
        claim="SINGLE costs up to 10 times less than SPT, the factor growing with size.",
        checks=[
            Check(
                name="SPT over SINGLE, the most anywhere",
                value=most,
                unit=RATIO,
                paper="up to 10",
                low=5,
                high=20,
            ),
            Check(
                name=f"SPT over SINGLE, {sizes[-1]:,} over {sizes[0]:,} brokers, Localized1",
                value=float(ratios[-1] / ratios[0]),
                unit=RATIO,
                paper="increases consistently",
                low=1.1,
            ),
        ],
        explanation=(
            "The paper lets brokers inside a tree filter (Sec. III-A), and so does SPT here. Only "
            "beside an SPT whose brokers do not filter a factor of ten appears, and it grows with "
            f"size. {STUBS}"
        ),
        note=(
            f"Without filters, SPT over SINGLE is {flooded[0]:.1f} at {sizes[0]:,} brokers and "
            f"{flooded[-1]:.1f} at {sizes[-1]:,}. " + _elsewhere(found, "SPT", "SINGLE", "Filtered")
        ),
    )


def check_t4(found: Outcomes) -> Claim:
    """Fig. 5(a): one tree, many trees, a tree a document."""
    localized = [where for where in (LOCALIZED1, LOCALIZED2) if where in _places(found)]
    checks = []
    for locality in localized:
        checks += [
            Check(
                name=f"SINGLE over OPT, {locality}",
                value=found.ratio("SINGLE", "OPT", locality),
                unit=RATIO,
                paper="OPT 60 to 70 % less",
                low=1.9,
                high=4.4,
            ),
            Check(
                name=f"MULT over OPT, {locality}",
                value=found.ratio("MULT", "OPT", locality),
                unit=RATIO,
                paper="within 10 %",
                high=1.13,
            ),
            Check(
                name=f"MULT over SINGLE, {locality}",
                value=found.ratio("MULT", "SINGLE", locality),
                unit=RATIO,
                paper="nearly 50 % less",
                low=0.33,
                high=0.67,
            ),
        ]
    return Claim(
        id="T4",
        claim=(
            "OPT costs 60 to 70 % less than SINGLE; MULT is within 10 % of OPT and, with "
            "localised subscriptions, about 50 % below SINGLE."
        ),
        checks=checks,
        explanation=(
            f"{STUBS}: SINGLE is within a tenth of OPT, and MULT, which may end with one tree, "
            "cannot be much better. Where stubs are linked or there are none, the gap opens, but "
            "MULT does not close it: a further tree pays for all documents that it shares with "
            "others by a second way through the same brokers"
        ),
        note=". ".join(
            _elsewhere(found, above, below, f"{above} over {below}")
            for above, below in (("SINGLE", "OPT"), ("MULT", "SINGLE"))
        ),
    )


def check_t5(found: Outcomes) -> Claim:
    """Fig. 5(c): nothing to divide where subscribers are anywhere."""
    trees = [one.trees for one in found.select(COSTS, "MULT", UNIFORM)]
    return Claim(
        id="T5",
        claim="Uniform subscriptions: MULT picks one cluster, and SINGLE and MULT cost the same.",
        checks=[
            Check(
                name="trees of MULT, most",
                value=float(max(trees)),
                unit=COUNT,
                paper="1",
                low=1,
                high=1,
            ),
            Check(
                name="MULT over SINGLE",
                value=found.ratio("MULT", "SINGLE", UNIFORM),
                unit=RATIO,
                paper="almost the same",
                low=0.98,
                high=1.02,
            ),
        ],
        explanation="MULT found several groups to cost less",
        note=_elsewhere(found, "MULT", "SINGLE", "MULT over SINGLE", UNIFORM),
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
