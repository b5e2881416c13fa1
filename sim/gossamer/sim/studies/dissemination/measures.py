"""The measures of one strategy: what each means, and their values from its tables."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from gossamer.sim.studies.dissemination.records import StrategyRecord
from gossamer.sim.study.measure import Measure

TREES_MEASURES: Final[tuple[Measure, ...]] = (
    Measure(
        "trees",
        "trees",
        "count",
        None,
        "Trees that documents travel on; of OPT, one for every document.",
        brief=True,
    ),
    Measure(
        "cost",
        "cost of all documents",
        "count",
        "lower",
        "Links crossed by all documents, weighed by size and by link (Eq. 1).",
        brief=True,
    ),
    Measure(
        "cost_over_optimum",
        "cost over OPT",
        "number",
        "lower",
        "Times the cost of an approximate Steiner tree for every document.",
        brief=True,
    ),
    Measure(
        "duplicate_visits",
        "duplicates",
        "count",
        "lower",
        "Visits of a document to a broker that had it already from another tree (Fig. 7).",
        brief=True,
    ),
    Measure(
        "visits",
        "visits",
        "count",
        "lower",
        "Visits of documents to brokers other than their own, duplicates among them.",
    ),
    Measure(
        "trees_per_document",
        "trees a document takes",
        "number",
        "lower",
        "Mean number of trees, of those documents that anybody wants.",
    ),
    Measure(
        "load_max",
        "largest load of a link",
        "count",
        "lower",
        "Sizes of all documents that crossed the busiest link, once for each tree.",
    ),
    Measure(
        "links_used", "links used", "count", None, "Links that a document crossed at least once."
    ),
    Measure(
        "overloaded_links",
        "links beyond their capacity",
        "count",
        "lower",
        "Links that had to carry more than the scenario's capacity.",
        brief=True,
    ),
    Measure(
        "overload",
        "load beyond capacities",
        "count",
        "lower",
        "What all links together had to carry beyond their capacities.",
    ),
    Measure(
        "planning_s",
        "planning time",
        "fine",
        "lower",
        "Processor seconds that making groups and trees took.",
        brief=True,
    ),
    Measure("documents", "documents", "count", None, "Documents routed."),
    Measure("sampled", "documents sampled", "count", None, "Documents that trees were planned by."),
    Measure("subscriptions", "subscriptions", "count", None, "Subscriptions of all brokers."),
)


def summarise_strategy(record: StrategyRecord) -> dict[str, Any]:
    """The entry of ``summary.json``; ``worst_links`` names the most overloaded, at most ten."""
    documents, links = record.documents, record.links
    cost = float(documents["cost"].sum())
    wanted = documents["trees"] > 0
    beyond = np.maximum(links["load"] - links["capacity"], 0.0)
    limited = bool(np.isfinite(links["capacity"]).any())
    return {
        "trees": record.totals["trees"],
        "cost": cost,
        "cost_over_optimum": cost / record.optimum if record.optimum else math.nan,
        "duplicate_visits": int(documents["duplicates"].sum()),
        "visits": int(documents["visits"].sum()),
        "trees_per_document": float(documents["trees"][wanted].mean()) if wanted.any() else 0.0,
        "load_max": float(links["load"].max(initial=0.0)),
        "links_used": int((links["load"] > 0).sum()),
        "overloaded_links": int((beyond > 0).sum()) if limited else None,
        "overload": float(beyond.sum()) if limited else None,
        "planning_s": record.planning_s,
        "documents": record.totals["documents"],
        "sampled": record.totals["sampled"],
        "subscriptions": record.totals["subscriptions"],
        "worst_links": _worst_links(record),
        **({"verdict": record.verdict} if record.verdict else {}),
        "totals": dict(record.totals),
        "settings": dict(record.settings),
    }


def _worst_links(record: StrategyRecord) -> list[dict[str, Any]]:
    links = record.links
    share = links["load"] / links["capacity"]
    worst = np.argsort(-share, kind="stable")[:10]
    return [
        {
            "one": str(links["one"][link]),
            "other": str(links["other"][link]),
            "load": float(links["load"][link]),
            "capacity": float(links["capacity"][link]),
        }
        for link in worst.tolist()
        if share[link] > 1
    ]
