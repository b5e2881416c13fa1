"""The protocol layer: what peers say to each other, written once for every host.

It knows no host, clock, socket or file. The entry point is `peer.step`: one record in, records out
(`messages`). A peer's whole memory is a row of `state.State`; a network node has one row, the
simulator as many as it has nodes. Read in this order:

- `config`: settings and presets (`paper`, `baseline`, `resilient`)
- `content`: schema, subscriptions and their text language; `space`: the identifier ring and the
  order-preserving hash that puts attribute values on it
- `overlay`: peer sampling, topology management, load shifting, joining
- `rendezvous`: showering, content routing tables, installation, delivery, recovery
- `broker`: content-based brokers with covering and pruning, a state machine of its own
- `trees`: which trees carry which documents where brokers form a general graph
- `rules`, `struct`, `compiler`: how one rule runs compiled or interpreted with the same result

The public interface is what this list names; everything else may change:

    config.Settings, config.paper, config.baseline, config.resilient
    content.schema.Schema, content.language.parse_subscription
    content.encoding.encode_event, content.encoding.encode_subscription
    content.filters, content.filters.composite
    content.matching.index.MatchingIndex, content.matching.composite_matcher.CompositeMatcher
    broker.Broker, broker.BrokerSettings, broker.messages, broker.effects, broker.errors
    trees.graph.make_graph, trees.sample.make_sample, trees.plan.make_plan, trees.strategies,
    trees.cost.price, trees.optimum, trees.errors
    space.hashing.uniform_hashes, space.hashing.equi_depth_hash
    state.make_state, peer.step, peer.TIMERS, peer.subscribe, peer.publish_record,
    peer.join_record, peer.largest_step, messages.make_outbox
    errors

A peer of its own, with nobody to talk to, still serves itself:

    >>> from gossamer.protocol import messages, peer
    >>> from gossamer.protocol.config import paper
    >>> from gossamer.protocol.content.encoding import encode_event, encode_subscription
    >>> from gossamer.protocol.content.language import parse_subscription
    >>> from gossamer.protocol.content.schema import FloatAttribute, Schema
    >>> from gossamer.protocol.space.hashing import uniform_hashes
    >>> from gossamer.protocol.state import make_state
    >>> import numpy as np
    >>> schema = Schema([FloatAttribute("price", 0, 1000)])
    >>> hashes = uniform_hashes(schema)
    >>> box = encode_subscription(schema, hashes, parse_subscription(schema, "price >= 80"))
    >>> ranges = np.array([[box.low[0], box.high[0]]])
    >>> state = make_state(paper(2), nodes=1)
    >>> peer.subscribe(state, 0, ranges, np.array([1]))
    >>> values = np.array(encode_event(schema, hashes, {"price": 81.5}))
    >>> out = messages.make_outbox(peer.largest_step(paper(2)))
    >>> peer.step(state, 0, 0, peer.publish_record(0, 7, values), 0, out)
    >>> int(out.words[messages.KIND]) == messages.DELIVER
    True
"""
