"""Churn: who is online when.

`trace` holds the one data type, `ChurnTrace`; `files` reads and writes it by file name, as
text or as `parquet`, and reads the `lists` of other programs; `synthetic` generates it from a
specification with distributions of session lengths, `by_row` node by node, and fits one to a trace.
Studies, workloads as tables and `gossamer.replay` import from here, most of it by this module's
names. Begin with `trace`.
"""

from gossamer.sim.churn.files import read_trace, write_trace
from gossamer.sim.churn.synthetic import (
    ChurnSpec,
    CorrelatedFailure,
    FlashCrowd,
    Lifetimes,
    Pareto,
    StationaryChurn,
    Weibull,
    generate,
)
from gossamer.sim.churn.trace import LONGEST_S, ChurnTrace, Transitions

__all__ = [
    "LONGEST_S",
    "ChurnSpec",
    "ChurnTrace",
    "CorrelatedFailure",
    "FlashCrowd",
    "Lifetimes",
    "Pareto",
    "StationaryChurn",
    "Transitions",
    "Weibull",
    "generate",
    "read_trace",
    "write_trace",
]
