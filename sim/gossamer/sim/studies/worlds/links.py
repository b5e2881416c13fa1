"""The engines' links, made of the table [network] of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
from gossamer.sim.engine.bandwidth import FASTEST, Bandwidth, Sizes, make_bandwidth
from gossamer.sim.engine.latency import (
    Latency,
    constant_latency,
    lognormal_latency,
    no_latency,
    uniform_latency,
)
from gossamer.sim.engine.latency_files.site_latency import MODELS, SiteFile, site_latency
from gossamer.sim.engine.link_conditions import LossPeriod, Partition
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.worlds.network import USUAL_SIGMA, Link, Rate

TICKS_A_SECOND: Final = 1000
Attributes = Mapping[str, npt.NDArray[Any]]

_PARTED, _UP, _DOWN = 0x7061727465, 0x7570, 0x646F776E
_ONE: Final = float(1 << 62)


def make_latency(link: Link, nodes: int, seed: int) -> Latency:
    """The model of latency of a scenario, in ticks of a millisecond; raises `ScenarioError`."""
    ticks = round(link.latency_s * TICKS_A_SECOND)
    if link.latency == "constant":
        return constant_latency(ticks)
    if link.latency == "uniform":
        return uniform_latency(ticks - ticks // 2, ticks + ticks // 2)
    if link.latency == "lognormal":
        sigma = USUAL_SIGMA if link.latency_sigma is None else link.latency_sigma
        return lognormal_latency(ticks, sigma)
    if link.latency in MODELS:
        file = SiteFile(
            model=link.latency,
            path=Path(getattr(link, link.latency)),
            unit_s=link.unit_s,
            access_s=link.access_s,
            placing=link.placing,
            form=link.matrix_form,
            edge_latency=link.edge_latency,
        )
        return site_latency(file, nodes, seed)
    return no_latency()


def loss_periods(link: Link) -> list[LossPeriod]:
    """When another share of messages is lost."""
    return [
        LossPeriod(_tick(one.begin_s), _tick(one.end_s), one.loss)
        for one in link.loss_period
        if _tick(one.begin_s) < _tick(one.end_s)
    ]


def partitions(link: Link, nodes: int, seed: int, attributes: Attributes) -> list[Partition]:
    """When nodes are parted, and into which groups.

    Raises:
        ScenarioError: an attribute is named that there is not.
    """
    found = []
    for number, one in enumerate(link.partition):
        if one.by is not None:
            values = _attribute("network.partition.by", one.by, attributes)
            groups = np.unique(values, return_inverse=True)[1]
        else:
            drawn = mix_many(seed, np.arange(nodes), _PARTED + number) / _ONE
            groups = np.searchsorted(np.cumsum(one.shares), drawn, "right")
        if _tick(one.begin_s) < _tick(one.end_s):
            found.append(Partition(_tick(one.begin_s), _tick(one.end_s), groups))
    return found


def bandwidth(link: Link, nodes: int, seed: int, sizes: Sizes, attributes: Attributes) -> Bandwidth:
    """The nodes' links into the network.

    Raises:
        ScenarioError: an attribute is named that there is not, or a node's is no possible rate.
    """
    return make_bandwidth(
        nodes,
        sizes,
        up=_rates("network.up_rate", link.up_rate, nodes, seed, _UP, attributes),
        down=_rates("network.down_rate", link.down_rate, nodes, seed, _DOWN, attributes),
        up_queue=link.up_queue,
        down_queue=link.down_queue,
    )


def _rates(
    field: str, rate: Rate, nodes: int, seed: int, stream: int, attributes: Attributes
) -> npt.NDArray[np.int64] | None:
    if rate is None:
        return None
    if isinstance(rate, str):
        values = np.asarray(_attribute(field, rate, attributes), np.float64)
        wrong = values[~((values >= 1) & (values <= FASTEST))]
        if wrong.size:
            expected = f"bytes a second from 1 to {FASTEST} at every node"
            found = f"an attribute with the value {wrong[0]:g}"
            raise ScenarioError(None, f"{field}, {rate}", rate, expected, found)
    elif isinstance(rate, tuple):
        drawn = mix_many(seed, np.arange(nodes), stream) / _ONE
        values = np.array(rate)[np.minimum((drawn * len(rate)).astype(np.int64), len(rate) - 1)]
    else:
        values = np.full(nodes, rate)
    return np.floor(values).astype(np.int64)


def _attribute(field: str, name: str, attributes: Attributes) -> npt.NDArray[Any]:
    if name not in attributes:
        known = ", ".join(attributes) or "none, as the scenario has no [attributes]"
        raise ScenarioError(None, field, name, f"one of {known}", found=f"no attribute ({name})")
    return attributes[name]


def _tick(time_s: float) -> int:
    return int(np.floor(time_s * TICKS_A_SECOND))
