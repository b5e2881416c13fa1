"""Protocols of one's own: how they are declared and written, and the drivers that run them.

Scripts and protocol files import what is named here from `gossamer.sim`. Studies may import from
the modules. Begin with `protocol` (rules) or `node` (plain classes); `step` makes one
rule of a stack of protocols, `rule_driver` and `plain` run them. `library` has what handlers and
measures call.
"""

from gossamer.protocol.kernel.rules import rule
from gossamer.sim.custom.language.context import Net, cancel, seconds
from gossamer.sim.custom.language.declarations import layer
from gossamer.sim.custom.language.functions import control, initialiser, measure, observer
from gossamer.sim.custom.language.members import Sampler, Timer, attribute, column, setting
from gossamer.sim.custom.language.messages import Message, items, message
from gossamer.sim.custom.library import (
    NOBODY,
    add_to,
    clustering,
    count_in,
    draw,
    draw_below,
    draw_but,
    draw_float,
    draw_from,
    draw_other,
    graph_of,
    holds,
    insert_at,
    largest_component,
    mean_path_length,
    peer_at,
    peers_known,
    place_in,
    put_into,
    random_peer,
    remove_from,
)
from gossamer.sim.custom.node import Node
from gossamer.sim.custom.protocol import Protocol
from gossamer.sim.custom.simulation import links_in

__all__ = [
    "NOBODY",
    "Message",
    "Net",
    "Node",
    "Protocol",
    "Sampler",
    "Timer",
    "add_to",
    "attribute",
    "cancel",
    "clustering",
    "column",
    "control",
    "count_in",
    "draw",
    "draw_below",
    "draw_but",
    "draw_float",
    "draw_from",
    "draw_other",
    "graph_of",
    "holds",
    "initialiser",
    "insert_at",
    "items",
    "largest_component",
    "layer",
    "links_in",
    "mean_path_length",
    "measure",
    "message",
    "observer",
    "peer_at",
    "peers_known",
    "place_in",
    "put_into",
    "random_peer",
    "remove_from",
    "rule",
    "seconds",
    "setting",
]
