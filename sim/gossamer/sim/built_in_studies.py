"""The studies that come with gossamer, by kind, as a table that imports none of them.

`gossamer.sim.study.scenarios` reads it. It is a table and no group of entry points, so that the
kind of a scenario is known without reading what is installed, and a checkout works without
installing.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# By kind: the module, and the study in it. Their order is that of measures in comparisons.
STUDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "peers": "gossamer.sim.studies.peers.study:PEERS",
        "brokers": "gossamer.sim.studies.tree_brokers.study:BROKERS",
        "scot": "gossamer.sim.studies.scot.study:SCOT",
        "trees": "gossamer.sim.studies.dissemination.study:TREES",
        "protocol": "gossamer.sim.studies.custom.study:CUSTOM",
    }
)

# By key at the top of a scenario that says no kind: the kind that it has by that.
IMPLIED: Final[Mapping[str, str]] = MappingProxyType({"protocol": "protocol"})
