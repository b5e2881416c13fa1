"""Make the bundled churn traces again, byte for byte, from their specifications and seeds.

Usage: python traces/make_traces.py [FOLDER]   (default: the folder of this script)
"""

from __future__ import annotations

import sys
from pathlib import Path

from gossamer.sim.churn import (
    ChurnSpec,
    ChurnTrace,
    CorrelatedFailure,
    FlashCrowd,
    StationaryChurn,
    Weibull,
    generate,
    write_trace,
)

MINUTE_S = 60.0
HOUR_S = 3600.0

FLASH_CROWD = ChurnSpec(
    duration_s=6 * HOUR_S,
    populations=(
        StationaryChurn(
            nodes=600,
            sessions=Weibull(mean_s=2.4 * HOUR_S, shape=0.6),
            absences=Weibull(mean_s=2 * HOUR_S, shape=0.6),
        ),
        FlashCrowd(
            nodes=400,
            at_s=1 * HOUR_S,
            within_s=4 * MINUTE_S,
            stay=Weibull(mean_s=1 * HOUR_S, shape=0.6),
            remain=0.6,
        ),
    ),
    failures=(CorrelatedFailure(at_s=4 * HOUR_S, fraction=0.25, back_after_s=10 * MINUTE_S),),
)

WEIBULL_DAY = ChurnSpec(
    duration_s=24 * HOUR_S,
    populations=(
        StationaryChurn(
            nodes=1000,
            sessions=Weibull(mean_s=3.6 * HOUR_S, shape=0.6),
            absences=Weibull(mean_s=2.4 * HOUR_S, shape=0.6),
        ),
    ),
)

SEED = 20
TRACES = {"flash_crowd.avt.gz": FLASH_CROWD, "weibull_day.avt.gz": WEIBULL_DAY}


def bundled() -> dict[str, ChurnTrace]:
    """The bundled traces by file name."""
    return {name: generate(spec, SEED) for name, spec in TRACES.items()}


def main() -> None:
    """Write all bundled traces to the folder given on the command line."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    for name, trace in bundled().items():
        write_trace(trace, folder / name)
        print(f"{name}: {len(trace.names)} nodes, {trace.session_count} sessions")


if __name__ == "__main__":
    main()
