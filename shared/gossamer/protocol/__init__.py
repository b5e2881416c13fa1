"""The protocol layer: what peers say to each other, written once for every host.

It knows no host, clock, socket or file. A folder imports from those before it in this list only:

- `kernel`: how one rule runs compiled or interpreted with the same result, structs of arrays,
  records, draws, errors
- `content`: schema, subscriptions, filters, their text languages, and the matching index
- `dissemination`: which trees carry which documents where brokers form a general graph
- `peer`: the peer-to-peer overlay of Vinifera; one record in, records out (`peer.step`)
- `brokers`: content-based brokers on trees, on structured cyclic overlays and on general graphs

The public interface is what this list names; everything else may change:

    kernel.errors, kernel.records.make_outbox
    content.schema.Schema, content.language.parse_subscription
    content.expressions.language.parse_expression, content.filters, content.filters.composite
    content.matching.index.MatchingIndex, content.matching.composite_matcher.CompositeMatcher
    dissemination.graphs.graph.make_graph, dissemination.sample.make_sample,
    dissemination.plan.make_plan, dissemination.strategies, dissemination.cost.price,
    dissemination.optimum, dissemination.graphs.errors
    peer.settings.config.Settings, .paper, .baseline, .resilient
    peer.space.hashing.uniform_hashes, peer.space.hashing.equi_depth_hash
    peer.space.encoding.encode_event, peer.space.encoding.encode_subscription,
    peer.space.covering.cover
    peer.state.state.make_state, peer.step.step, peer.step.TIMERS, peer.step.subscribe,
    peer.step.publish_record, peer.step.join_record, peer.step.largest_step
    brokers.tree.Broker, brokers.tree.BrokerSettings
    brokers.core.messages, brokers.core.effects, brokers.core.errors

A peer of its own, with nobody to talk to, still serves itself:

    >>> from gossamer.protocol.kernel.records import KIND, make_outbox
    >>> from gossamer.protocol.peer.record_table.records import DELIVER
    >>> from gossamer.protocol.peer import step as peer
    >>> from gossamer.protocol.peer.settings.config import paper
    >>> from gossamer.protocol.peer.space.encoding import encode_event, encode_subscription
    >>> from gossamer.protocol.content.language import parse_subscription
    >>> from gossamer.protocol.content.schema import FloatAttribute, Schema
    >>> from gossamer.protocol.peer.space.hashing import uniform_hashes
    >>> from gossamer.protocol.peer.state.state import make_state
    >>> import numpy as np
    >>> schema = Schema([FloatAttribute("price", 0, 1000)])
    >>> hashes = uniform_hashes(schema)
    >>> box = encode_subscription(schema, hashes, parse_subscription(schema, "price >= 80"))
    >>> ranges = np.array([[box.low[0], box.high[0]]])
    >>> state = make_state(paper(2), nodes=1)
    >>> peer.subscribe(state, 0, ranges, np.array([1]))
    >>> values = np.array(encode_event(schema, hashes, {"price": 81.5}))
    >>> out = make_outbox(peer.largest_step(paper(2)))
    >>> peer.step(state, 0, 0, peer.publish_record(0, 7, values), 0, out)
    >>> int(out.words[KIND]) == DELIVER
    True
"""
