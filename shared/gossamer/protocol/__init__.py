"""The protocol layer: what peers say to each other, written once for every host.

It knows no host, clock, socket or file. A folder imports from those before it in this list only:

- `kernel`: how one rule runs compiled or interpreted with the same result, structs of arrays,
  records, draws, errors
- `content`: schema, subscriptions, filters, their text languages, and the matching index
- `dissemination`: which trees carry which documents where brokers form a general graph
- `patterns`: queue groups, last values, order and replies, built on events
- `peer`: the peer-to-peer overlay of Vinifera; one record in, records out (`peer.step`)
- `brokers`: content-based brokers on trees, on structured cyclic overlays and on general graphs

The public interface is what `__all__` lists, loaded when it is first used, and described in
docs/reference/protocol.md; everything else may change. Families of brokers are offered by
`gossamer.brokers`.

A peer of its own, with nobody to talk to, still serves itself:

    >>> import numpy as np
    >>> from gossamer import protocol as gp
    >>> schema = gp.Schema([gp.FloatAttribute("price", 0, 1000)])
    >>> hashes = gp.uniform_hashes(schema)
    >>> wanted = gp.parse_subscription(schema, "price >= 80")
    >>> box = gp.encode_subscription(schema, hashes, wanted)
    >>> ranges = np.array([[box.low[0], box.high[0]]])
    >>> state = gp.make_state(gp.paper(2), nodes=1)
    >>> gp.subscribe(state, 0, ranges, np.array([1]))
    >>> values = np.array(gp.encode_event(schema, hashes, {"price": 81.5}))
    >>> out = gp.make_outbox(gp.largest_step(gp.paper(2)))
    >>> gp.step(state, 0, 0, gp.publish_record(0, 7, values), 0, out)
    >>> int(out.words[gp.KIND]) == gp.DELIVER
    True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.protocol.brokers.core.broker import Broker, Routing
    from gossamer.protocol.brokers.core.messages import (
        ClientError,
        CycleError,
        DumpError,
        MalformedMessageError,
        NotAdvertisedError,
        UnsafeError,
    )
    from gossamer.protocol.content.filters.composite import (
        Composite,
        composite_text,
        parse_composite,
    )
    from gossamer.protocol.content.filters.expressions import parse_expression
    from gossamer.protocol.content.matching.composite_matcher import CompositeMatcher
    from gossamer.protocol.content.matching.index import MatchingIndex
    from gossamer.protocol.content.schema import (
        BooleanAttribute,
        DateAttribute,
        DecimalAttribute,
        EnumerationAttribute,
        FloatAttribute,
        IntegerAttribute,
        Schema,
        StringAttribute,
    )
    from gossamer.protocol.content.subscription import parse_subscription
    from gossamer.protocol.dissemination.cost import Bill, Sample, make_sample, price
    from gossamer.protocol.dissemination.graph import (
        DisconnectedError,
        Graph,
        TreesError,
        make_graph,
    )
    from gossamer.protocol.dissemination.optimum import document_bill, document_costs, lower_bounds
    from gossamer.protocol.dissemination.plan import Plan, make_plan
    from gossamer.protocol.dissemination.strategies import (
        Routes,
        route_by_minimum_spanning_tree,
        route_by_shortest_paths,
        route_groups,
        route_hybrid,
        route_mult,
        route_mult2,
        route_single,
    )
    from gossamer.protocol.kernel.draws import mix, mix_many
    from gossamer.protocol.kernel.errors import (
        CapacityError,
        ConfigError,
        ContentError,
        ExpressionError,
        InvariantError,
        LocalProtocolError,
        MalformedRecordError,
        ProtocolError,
        RecordError,
        RemoteProtocolError,
        RuleCompilationError,
        RuleError,
        StructError,
        UnknownAttributeError,
        WrongValueError,
    )
    from gossamer.protocol.kernel.records import KIND, Outbox, make_outbox
    from gossamer.protocol.kernel.rules import rule, use_compiled
    from gossamer.protocol.kernel.struct import Struct
    from gossamer.protocol.peer.record_table.records import DELIVER
    from gossamer.protocol.peer.settings.config import Settings
    from gossamer.protocol.peer.settings.presets import baseline, kindred, paper, resilient
    from gossamer.protocol.peer.space.covering import cover
    from gossamer.protocol.peer.space.encoding import EncodedBox, encode_event, encode_subscription
    from gossamer.protocol.peer.space.hashing import (
        OrderPreservingHash,
        equi_depth_hash,
        uniform_hashes,
    )
    from gossamer.protocol.peer.state.state import State, make_state
    from gossamer.protocol.peer.step import (
        TIMERS,
        join_record,
        largest_step,
        publish_record,
        step,
        subscribe,
    )

__all__ = [
    "DELIVER",
    "KIND",
    "TIMERS",
    "Bill",
    "BooleanAttribute",
    "Broker",
    "CapacityError",
    "ClientError",
    "Composite",
    "CompositeMatcher",
    "ConfigError",
    "ContentError",
    "CycleError",
    "DateAttribute",
    "DecimalAttribute",
    "DisconnectedError",
    "DumpError",
    "EncodedBox",
    "EnumerationAttribute",
    "ExpressionError",
    "FloatAttribute",
    "Graph",
    "IntegerAttribute",
    "InvariantError",
    "LocalProtocolError",
    "MalformedMessageError",
    "MalformedRecordError",
    "MatchingIndex",
    "NotAdvertisedError",
    "OrderPreservingHash",
    "Outbox",
    "Plan",
    "ProtocolError",
    "RecordError",
    "RemoteProtocolError",
    "Routes",
    "Routing",
    "RuleCompilationError",
    "RuleError",
    "Sample",
    "Schema",
    "Settings",
    "State",
    "StringAttribute",
    "Struct",
    "StructError",
    "TreesError",
    "UnknownAttributeError",
    "UnsafeError",
    "WrongValueError",
    "baseline",
    "composite_text",
    "cover",
    "document_bill",
    "document_costs",
    "encode_event",
    "encode_subscription",
    "equi_depth_hash",
    "join_record",
    "kindred",
    "largest_step",
    "lower_bounds",
    "make_graph",
    "make_outbox",
    "make_plan",
    "make_sample",
    "make_state",
    "mix",
    "mix_many",
    "paper",
    "parse_composite",
    "parse_expression",
    "parse_subscription",
    "price",
    "publish_record",
    "resilient",
    "route_by_minimum_spanning_tree",
    "route_by_shortest_paths",
    "route_groups",
    "route_hybrid",
    "route_mult",
    "route_mult2",
    "route_single",
    "rule",
    "step",
    "subscribe",
    "uniform_hashes",
    "use_compiled",
]

# By module below this one, what it offers here.
_PLACES = {
    "gossamer.protocol.brokers.core.broker": "Broker Routing",
    "gossamer.protocol.brokers.core.messages": (
        "ClientError CycleError DumpError MalformedMessageError NotAdvertisedError UnsafeError"
    ),
    "gossamer.protocol.content.filters.composite": "Composite composite_text parse_composite",
    "gossamer.protocol.content.filters.expressions": "parse_expression",
    "gossamer.protocol.content.matching.composite_matcher": "CompositeMatcher",
    "gossamer.protocol.content.matching.index": "MatchingIndex",
    "gossamer.protocol.content.schema": (
        "BooleanAttribute DateAttribute DecimalAttribute EnumerationAttribute FloatAttribute "
        "IntegerAttribute Schema StringAttribute"
    ),
    "gossamer.protocol.content.subscription": "parse_subscription",
    "gossamer.protocol.dissemination.cost": "Bill Sample make_sample price",
    "gossamer.protocol.dissemination.graph": "DisconnectedError Graph TreesError make_graph",
    "gossamer.protocol.dissemination.optimum": "document_bill document_costs lower_bounds",
    "gossamer.protocol.dissemination.plan": "Plan make_plan",
    "gossamer.protocol.dissemination.strategies": (
        "Routes route_by_minimum_spanning_tree route_by_shortest_paths route_groups "
        "route_hybrid route_mult route_mult2 route_single"
    ),
    "gossamer.protocol.kernel.draws": "mix mix_many",
    "gossamer.protocol.kernel.errors": (
        "CapacityError ConfigError ContentError ExpressionError InvariantError "
        "LocalProtocolError MalformedRecordError ProtocolError RecordError "
        "RemoteProtocolError RuleCompilationError RuleError StructError UnknownAttributeError "
        "WrongValueError"
    ),
    "gossamer.protocol.kernel.records": "KIND Outbox make_outbox",
    "gossamer.protocol.kernel.rules": "rule use_compiled",
    "gossamer.protocol.kernel.struct": "Struct",
    "gossamer.protocol.peer.record_table.records": "DELIVER",
    "gossamer.protocol.peer.settings.config": "Settings",
    "gossamer.protocol.peer.settings.presets": "baseline kindred paper resilient",
    "gossamer.protocol.peer.space.covering": "cover",
    "gossamer.protocol.peer.space.encoding": "EncodedBox encode_event encode_subscription",
    "gossamer.protocol.peer.space.hashing": "OrderPreservingHash equi_depth_hash uniform_hashes",
    "gossamer.protocol.peer.state.state": "State make_state",
    "gossamer.protocol.peer.step": "TIMERS join_record largest_step publish_record step subscribe",
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
