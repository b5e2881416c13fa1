"""A node that is a broker: `gossamer.protocol.broker` between sockets, clocks and files.

- `parts`: what it is made of; `node`: that, from a configuration
- `engine`: one message after another through the broker's door, stored before its effects happen
- `journal`: what is stored; `mail`: what clients have not got yet
- `links`: neighbours; `dialling`: finding them; `wire`: frames between brokers
- `assembly`: all of it joined
- `clients`, `session`, `server`: the local socket
- `routes`: where messages went; `tables`, `numbers`: what it tells of itself
"""
