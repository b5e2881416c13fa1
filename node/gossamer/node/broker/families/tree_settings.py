"""Tree brokers as a family of nodes; their settings are those that every broker has."""

from __future__ import annotations

from typing import Final

from gossamer.node.config.broker import BrokerFamily

TREE: Final = BrokerFamily(
    name="tree",
    schema="that of brokers, version 1",
    host="gossamer.node.broker.families.tree:host_of",
)
