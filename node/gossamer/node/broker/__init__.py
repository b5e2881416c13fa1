"""A node that is a broker: one of `gossamer.protocol.brokers` between sockets, clocks and files.

- `host`: a family of brokers for the node around it; `families`: those there are
- `engine`: one message after another through the broker, stored by `journal` before its effects
  happen; `forked_work`: long work on its memory in a process of its own
- `links`: neighbours, and finding them; `wire`: frames between brokers; `routes`: where
  publications went lately
- `node`: what it is made of, from a configuration; `assembly`: all of it joined
- `session`: one client's connection; `members`: clients; `deliveries`: what waits for each
  of them; `composites`: composite subscriptions
- `numbers`: counters and gauges
"""
