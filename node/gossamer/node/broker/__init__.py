"""A node that is a broker: one of `gossamer.protocol.brokers` between sockets, clocks and files.

- `families`: what differs between families of brokers
- `machine`: one message after another through the broker, stored before its effects happen
- `links`: neighbours, finding them, and frames between brokers
- `node`: what it is made of, from a configuration; `assembly`: all of it joined
- `members`: clients, and what waits for them; `content`, `session`, `server`: the local socket
- `numbers`: counters and gauges
"""
