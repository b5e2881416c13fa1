"""What the figures about covering are made of: experiments that are run, checked and drawn apart.

An experiment covers some of the claims P1 to P9 and I1 to I6. `covering.figures.EXPERIMENTS` lists
them all; a module of an experiment ends with the experiment itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from matplotlib.figure import Figure

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.study.records import Table
from gossamer.sim.study.tasks import Task


@attrs.frozen(kw_only=True)
class Experiment:
    """Claims with the runs that decide them.

    Attributes:
        claims: their ids.
        tasks: what is run, reduced if the argument says so.
        check: the claims, from the outcomes of all tasks in their order.
        tables: what is kept of the outcomes, by name of the Parquet file.
        draw: the plots, by name of the file; called within `plot_style`.
    """

    claims: Sequence[str]
    tasks: Callable[[bool], Sequence[Task[Any]]]
    check: Callable[[Sequence[Any]], Sequence[Claim]]
    tables: Callable[[Sequence[Any]], Mapping[str, Table]]
    draw: Callable[[Sequence[Any]], Iterable[tuple[str, Figure]]]


# Where the checkout is that figures take examples and data from.


CHECKOUT: Final = Path(__file__).resolve().parents[5]
