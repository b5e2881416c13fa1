"""Figures of the papers, reproduced: by name, what runs them.

`FIGURES[name](out, quick=..., processes=..., progress=...)` writes the new folder ``out`` whole,
with ``claims.json``, the data and the plots, and returns the claims. A folder here is a paper
(`vinifera`, `covering`, `scot`, `dissemination`), but for `kindred`, which sets our own preset
beside one, and `rivals`, which sets it beside overlays of others; `common` is what they share. Only
the command line and `gossamer.spark` import from here. Begin with `vinifera`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gossamer.sim.figures.common.claims import Claim
from gossamer.sim.figures.covering.figures import reproduce_covering
from gossamer.sim.figures.dissemination.figures import reproduce_trees
from gossamer.sim.figures.kindred.figures import reproduce_kindred
from gossamer.sim.figures.rivals.figures import reproduce_rivals
from gossamer.sim.figures.scot.figures import reproduce_scot
from gossamer.sim.figures.vinifera.figures import reproduce_vinifera

FIGURES: Mapping[str, Callable[..., list[Claim]]] = MappingProxyType(
    {
        "covering": reproduce_covering,
        "kindred": reproduce_kindred,
        "rivals": reproduce_rivals,
        "scot": reproduce_scot,
        "trees": reproduce_trees,
        "vinifera": reproduce_vinifera,
    }
)

__all__ = ["FIGURES", "Claim"]
