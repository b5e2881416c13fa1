"""What made a sweep: its plan, and every point with the versions that ran it.

A sweep that was resumed may have points of several versions; each tells its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gossamer.sim.results.sweeps.folder import PLAN_FILE, RUNS, plan_text
from gossamer.sim.results.sweeps.plan import SEED, SweepPlan


def with_points(
    lineage: Mapping[str, Any], plan: SweepPlan, summaries: Mapping[str, bytes]
) -> dict[str, Any]:
    """The lineage of a whole sweep.

    Args:
        lineage: of its command, without inputs.
        plan: of the sweep.
        summaries: the content of the ``summary.json`` of each point, by its name.
    """
    inputs = [{"place": PLAN_FILE, "sha256": _digest(plan_text(plan).encode())}]
    for point in plan.points:
        content = summaries[point.name]
        told = json.loads(content)
        inputs.append(
            {
                "place": f"{RUNS}/{point.name}",
                "sha256": _digest(content),
                "seed": point.values[SEED],
                "result_hash": told["result_hash"],
                "versions": told["versions"],
            }
        )
    return {**lineage, "inputs": inputs}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
